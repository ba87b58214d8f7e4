"""Models in plain torch, eval mode."""

import pytest
import torch
import torch.nn as nn

from . import architectures as arch
from .check import check_model


def images(size=32):
    return lambda n: (torch.randn(2, 3, size, size, generator=torch.Generator().manual_seed(n)),)


def sequence(*shape):
    return lambda n: (torch.randn(*shape, generator=torch.Generator().manual_seed(n)),)


def tokens(n):
    return torch.randint(0, 40, (2, 9), generator=torch.Generator().manual_seed(n))


def transformer_inputs(n):
    return sequence(2, 5, 16)(n)[0], sequence(2, 4, 16)(n)[0]


def attention_inputs(n):
    x = sequence(2, 5, 16)(n)[0]
    return {"query": x, "key": x, "value": x, "key_padding_mask": torch.tensor([[False] * 4 + [True]] * 2)}


def lstm_with_state(n):
    return sequence(2, 5, 6)(n)[0], (torch.zeros(4, 2, 7), torch.ones(4, 2, 7))


def decoder_inputs(n):
    x, past = sequence(2, 3, 16)(n)[0], sequence(2, 2, 4, 4)(n + 9)[0]
    return x, (past, past * 2)


MODELS = {
    "resnet": (arch.ResNet, images()),
    "convnext": (arch.ConvNeXt, images()),
    "efficientnet": (arch.EfficientNet, images()),
    "swin": (arch.Swin, images()),
    "gpt": (arch.GPT, lambda n: (tokens(n),)),
    "gpt_loss": (arch.GPT, lambda n: (tokens(n), tokens(n + 1))),
    "rotary_decoder": (arch.RotaryDecoder, sequence(2, 5, 16)),
    "rotary_decoder_cache": (arch.RotaryDecoder, decoder_inputs),
    "mixture_of_experts": (arch.MixtureOfExperts, sequence(2, 5, 8)),
    "transformer": (lambda: nn.Transformer(16, 2, 1, 1, 32, batch_first=True), transformer_inputs),
    "transformer_norm_first": (
        lambda: nn.Transformer(16, 2, 1, 1, 32, norm_first=True),
        (lambda n: (sequence(5, 2, 16)(n)[0], sequence(4, 2, 16)(n)[0])),
    ),
    "encoder": (
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2),
        sequence(2, 5, 16),
    ),
    "attention": (lambda: nn.MultiheadAttention(16, 2, batch_first=True), attention_inputs),
    "lstm": (lambda: nn.LSTM(6, 7, 2, batch_first=True, bidirectional=True), sequence(2, 5, 6)),
    "lstm_state": (lambda: nn.LSTM(6, 7, 2, batch_first=True, bidirectional=True), lstm_with_state),
    "gru": (lambda: nn.GRU(6, 7), sequence(5, 2, 6)),
    "rnn": (lambda: nn.RNN(6, 7, nonlinearity="relu"), sequence(5, 2, 6)),
    "lstm_cell": (lambda: nn.LSTMCell(6, 7), sequence(2, 6)),
}


@pytest.mark.parametrize("name", MODELS)
def test_eval(name):
    make, inputs = MODELS[name]
    torch.manual_seed(0)
    check_model(make(), inputs)


@pytest.mark.parametrize("name", ["resnet", "efficientnet", "convnext", "gpt_loss"])
def test_train_mode(name):
    """Batch statistics and dropout: the same numbers and the same random stream as eager, gradients too."""
    import copy

    import framegraft

    make, inputs = MODELS[name]
    torch.manual_seed(0)
    model = make().train()
    twin = copy.deepcopy(model)
    compiled = framegraft.compile(twin, backend="eager")
    for n in range(2):
        results = []
        for net, run in ((model, model), (twin, compiled)):
            torch.manual_seed(n)
            out = run(*inputs(n))
            total = sum(t.sum() for t in (out if isinstance(out, tuple) else (out,)))
            total.backward()
            results.append((out, dict(net.state_dict()), [p.grad for p in net.parameters()], torch.get_rng_state()))
        assert framegraft.testing.same(*results), f"call {n} differs from eager"
