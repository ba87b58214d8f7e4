"""Thirty lengths and sizes through whole models: two captures each, with eager mode's results."""

import pytest
import torch
from torch import nn

import framegraft

SMALL = dict(vocab_size=64, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)


def ids(batch, length):
    return torch.randint(0, 64, (batch, length))


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.norms = nn.ModuleList([nn.BatchNorm2d(8), nn.BatchNorm2d(16)])
        self.pool, self.average, self.head = nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Linear(16, 10)

    def forward(self, x):
        x = self.pool(self.norms[0](self.first(x)).relu())
        x = self.norms[1](self.second(x)).relu()
        return self.head(torch.flatten(self.average(x), 1))


def transformer():
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


def hugging_face(name, **settings):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    config = getattr(transformers, f"{name}Config")(**SMALL, **settings)
    return getattr(transformers, f"{name}Model")(config)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.gates = nn.Embedding(64, 16), nn.Linear(32, 16)

    def forward(self, tokens):
        state = torch.zeros(tokens.size(0), 16)
        for step in range(3):
            state = torch.tanh(self.gates(torch.cat([self.embedding(tokens[:, step]), state], -1)))
        return state, tokens.size(1) - 3


# name -> model, inputs of call i
MODELS = {
    "bert": (lambda: hugging_face("Bert"), lambda i: ids(2 + i % 3, 3 + i)),
    "llama": (lambda: hugging_face("Llama", num_key_value_heads=1), lambda i: ids(2, 3 + i)),
    "convolutions": (Convolutions, lambda i: torch.randn(2 + i % 4, 3, 16 + i, 20 + 2 * (i % 7))),
    "transformer": (transformer, lambda i: torch.randn(2 + i % 3, 3 + i, 16)),
    "recurrent": (Recurrent, lambda i: ids(2 + i % 5, 4 + i)),
}


def tensors(output):
    values = output.to_tuple() if hasattr(output, "to_tuple") else output if isinstance(output, tuple) else (output,)
    return [v for v in values if isinstance(v, (torch.Tensor, int))]


def check(name, backend, calls, training=False):
    make, inputs = MODELS[name]
    torch.manual_seed(0)
    model = make().train(training)
    compiled = framegraft.compile(model, backend=backend)
    with torch.set_grad_enabled(training):
        for i in range(calls):
            given = inputs(i)
            torch.testing.assert_close(tensors(compiled(given)), tensors(model(given)), rtol=1e-4, atol=1e-4)
    assert framegraft.stats()["graphs"] <= 2 and framegraft.stats()["graph_breaks"] == 0


@pytest.mark.parametrize("name", MODELS)
def test_thirty_shapes(name):
    check(name, "eager", 30)


@pytest.mark.parametrize("name", ["transformer", "convolutions"])
def test_thirty_shapes_behind_autograd(name):
    check(name, "aot_eager", 30, training=name == "transformer")


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_thirty_shapes_behind_inductor(name):
    check(name, "inductor", 30)
