"""Random stacks of layers that are alike, or nearly, and share things: equal to eager mode, also after anything in them changes."""

import copy
import random

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import framegraft


class Options:
    def __init__(self, pick):
        self.scale, self.flag = pick.choice([1.0, 2.0]), pick.random() < 0.5
        self.names, self.table = ["a", "b"][: pick.randint(1, 2)], {"k": pick.randint(0, 2)}


class Inner(nn.Module):
    def __init__(self, pick, options):
        super().__init__()
        self.linear = nn.Linear(4, 4, bias=pick.random() < 0.8)
        self.options, self.act, self.weight = options, pick.choice([nn.ReLU, nn.Tanh, nn.GELU])(), pick.choice([1.0, 0.5])
        if pick.random() < 0.5:
            self.register_buffer("shift", torch.full((4,), pick.choice([1.0, 2.0])))

    def forward(self, x):
        y = self.act(self.linear(x)) * self.weight
        if self.options.flag:
            y = y * self.options.scale
        for name in self.options.names:
            y = y + len(name) + self.options.table["k"]
        return y + self.shift if getattr(self, "shift", None) is not None else y


class Layer(nn.Module):
    def __init__(self, pick, options):
        super().__init__()
        self.first = Inner(pick, options)
        self.second = Inner(pick, options) if pick.random() < 0.8 else self.first
        self.norm, self.factors, self.tag, self.extra = nn.LayerNorm(4), [1, 2.0], pick.choice(["x", "y"]), None

    def forward(self, x):
        h = self.first(self.norm(x))
        if self.tag == "x":
            h = h + self.second(h)
        for factor in self.factors:
            h = h * factor
        return x + torch.tanh(h if self.extra is None else self.extra(h))


class Attending(nn.Module):
    def __init__(self, pick):
        super().__init__()
        self.attention, self.norm, self.drop = nn.MultiheadAttention(4, 2, batch_first=True), nn.LayerNorm(4), nn.Dropout(0.0)
        self.weights = pick.random() < 0.5

    def forward(self, x):
        y, weights = self.attention(self.norm(x)[None], x[None], x[None], need_weights=self.weights)
        spread, mean = torch.var_mean(self.drop(y[0]).to(x.dtype), -1, keepdim=True)
        x = x + F.dropout(y[0], 0.5, False) * spread + mean
        return x if weights is None else x + weights.mean()


class Stack(nn.Module):
    def __init__(self, pick):
        super().__init__()
        alike, options, seed = pick.random() < 0.9, Options(pick), pick.random()
        self.layers = nn.ModuleList()
        for _ in range(pick.randint(5, 8)):
            own = copy.deepcopy(options) if alike and pick.random() < 0.1 else options if alike or pick.random() < 0.6 else Options(pick)
            self.layers.append(Layer(random.Random(seed) if alike else pick, own))
        self.others = nn.ModuleList(Attending(random.Random(seed)) for _ in range(pick.choice([0, 3])))
        if pick.random() < 0.1:
            self.layers[2] = self.layers[1]
        if pick.random() < 0.1:
            self.layers[-1].first.linear = self.layers[0].first.linear
        if pick.random() < 0.1:
            self.layers[-1].norm.weight = self.layers[0].norm.weight
        self.again = pick.choice([None, None, None, "forth", "back"])

    def forward(self, x):
        for layer in (*self.layers, *self.others):
            x = layer(x)
        if self.again is not None:
            for layer in list(self.layers)[1:] if self.again == "forth" else reversed(self.layers):
                x = x + layer.first(x)
        return x


def _another(pick, stack, layer, inner):
    stack.layers.append(copy.deepcopy(layer)) if len(stack.layers) < 10 else stack.layers.pop(0)


CHANGES = [
    lambda pick, stack, layer, inner: setattr(layer, "tag", "y" if layer.tag == "x" else "x"),
    lambda pick, stack, layer, inner: layer.factors.append(3),
    lambda pick, stack, layer, inner: layer.factors.__setitem__(0, pick.randint(1, 5)),
    lambda pick, stack, layer, inner: setattr(layer, "extra", nn.ReLU() if layer.extra is None else None),
    lambda pick, stack, layer, inner: setattr(inner.options, "flag", not inner.options.flag),
    lambda pick, stack, layer, inner: inner.options.names.append("zz"),
    lambda pick, stack, layer, inner: inner.options.table.update(k=inner.options.table["k"] + 1),
    lambda pick, stack, layer, inner: setattr(inner, "act", nn.Sigmoid()),
    lambda pick, stack, layer, inner: setattr(inner, "weight", pick.choice([1.0, 0.25, 2])),
    lambda pick, stack, layer, inner: inner.register_forward_hook(lambda module, args, out: out + 1),
    lambda pick, stack, layer, inner: setattr(inner.linear, "weight", nn.Parameter(torch.randn(4, 4))),
    lambda pick, stack, layer, inner: inner.linear.weight.requires_grad_(not inner.linear.weight.requires_grad),
    lambda pick, stack, layer, inner: setattr(inner, "shift", None if getattr(inner, "shift", None) is not None else torch.ones(4)),
    lambda pick, stack, layer, inner: setattr(layer.norm, "eps", pick.choice([1e-5, 0.1])),
    lambda pick, stack, layer, inner: setattr(
        inner.linear, "bias", None if inner.linear.bias is not None else nn.Parameter(torch.ones(4))),
    _another,
]


@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 200))])
def test_layers_that_change(seed):
    pick = random.Random(seed)
    torch.manual_seed(seed)
    model, x = Stack(pick), torch.randn(2, 4, requires_grad=pick.random() < 0.3)
    compiled, grad = framegraft.compile(model, backend="eager"), pick.random() < 0.6
    for step in range(8):
        with torch.set_grad_enabled(grad):
            expected, got = model(x), compiled(x)
        assert torch.equal(expected, got) and expected.requires_grad == got.requires_grad, step
        layer = pick.choice(list(model.layers))
        pick.choice(CHANGES)(pick, model, layer, pick.choice([layer.first, layer.second]))
