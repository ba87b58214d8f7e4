"""Training: loss and gradients as eager gives them, over three steps of an optimizer."""

import copy
import importlib.util

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

import framegraft

BACKENDS = ["eager", "aot_eager", "inductor"]


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 8, 3, padding=1),
            nn.GELU(),
        )
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


class TinyTransformer(nn.Module):
    """Masked-token model written by hand: stands in for BERT where transformers is not installed."""

    def __init__(self, words=50, width=16, depth=2):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Embedding(12, width)
        layers = [nn.TransformerEncoderLayer(width, 2, 32, dropout=0.0, batch_first=True) for _ in range(depth)]
        self.layers = nn.ModuleList(layers)
        self.out = nn.Linear(width, words)

    def forward(self, ids, labels=None):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        for layer in self.layers:
            x = layer(x)
        logits = self.out(x)
        loss = None if labels is None else F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return loss, logits


def conv_case():
    torch.manual_seed(0)
    model, images, labels = ConvNet(), torch.randn(4, 3, 8, 8), torch.tensor([0, 1, 2, 3])
    return model, lambda m: F.cross_entropy(m(images), labels)


def transformer_case():
    torch.manual_seed(0)
    model, ids = TinyTransformer(), torch.randint(0, 50, (2, 9))
    return model, lambda m: m(ids, labels=ids)[0]


def bert_case():
    from transformers import BertConfig, BertForMaskedLM

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=60,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    model, ids = BertForMaskedLM(config), torch.randint(0, 60, (2, 9))
    return model, lambda m: m(input_ids=ids, labels=ids).loss


CASES = {"conv": conv_case, "transformer": transformer_case}
if importlib.util.find_spec("transformers"):
    CASES["bert"] = bert_case


def train(model, loss_of, run, make_optimizer):
    """Three steps; gives the losses, every step's gradients and the last parameters."""
    optimizer = make_optimizer(model.parameters())
    losses, grads = [], []
    for _ in range(3):
        optimizer.zero_grad()
        loss = loss_of(run)
        loss.backward()
        losses.append(loss.detach())
        grads.append({n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None})
        optimizer.step()
    return losses, grads, {k: v.clone() for k, v in model.state_dict().items()}


OPTIMIZERS = {
    "sgd": lambda params: torch.optim.SGD(params, lr=0.1, momentum=0.9),
    # A bias before BatchNorm has no gradient but rounding errors, which the usual eps would make whole steps of.
    "adam": lambda params: torch.optim.Adam(params, lr=0.01, eps=1e-3),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", CASES)
def test_three_steps(name, backend):
    model, loss_of = CASES[name]()
    twin = copy.deepcopy(model)
    compiled = framegraft.compile(twin, backend=backend)
    optimizer = OPTIMIZERS["adam" if name == "conv" else "sgd"]
    expected = train(model, loss_of, model, optimizer)
    got = train(twin, loss_of, compiled, optimizer)
    torch.testing.assert_close(got, expected, rtol=1e-3, atol=1e-4)
    if backend == "eager":
        assert all(torch.equal(a, b) for a, b in zip(expected[0], got[0]))


@pytest.mark.parametrize("backend", BACKENDS)
def test_loss_inside_the_captured_function(backend):
    model, loss_of = conv_case()
    twin = copy.deepcopy(model)
    compiled = framegraft.compile(loss_of, backend=backend)
    loss_of(model).backward()
    loss = compiled(twin)
    loss.backward()
    for (n, p), q in zip(model.named_parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(q.grad, p.grad, msg=lambda m, n=n: f"{n}: {m}", rtol=1e-3, atol=1e-4)


def test_whole_step_captured():
    def step(model, optimizer, loss_of):
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        optimizer.step()
        return loss.detach()

    results = []
    for wrap in (lambda f: f, lambda f: framegraft.compile(f, backend="eager")):
        model, loss_of = conv_case()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        run = wrap(step)
        losses = [run(model, optimizer, loss_of) for _ in range(3)]
        results.append((losses, dict(model.state_dict())))
    assert framegraft.testing.same(*results)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_inputs_that_take_gradients_and_mutation(backend):
    def f(x, w, buffer):
        y = (x * w).tanh()
        buffer.add_(y.detach().sum())
        return y, y.sum() * buffer.detach().clone()

    def run(fn):
        x = torch.linspace(-1, 1, 4, requires_grad=True)
        w = torch.full((4,), 0.5, requires_grad=True)
        buffer = torch.zeros(1)
        y, s = fn(x, w, buffer)
        (y.sum() + s.sum()).backward()
        return y, s, x.grad, w.grad, buffer

    torch.testing.assert_close(run(framegraft.compile(f, backend=backend)), run(f))


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_inference(backend):
    model, _ = conv_case()
    model.eval()
    x = torch.randn(2, 3, 8, 8)
    compiled = framegraft.compile(model, backend=backend)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)
