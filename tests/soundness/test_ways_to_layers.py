"""Layers that are alike reach each other, and what hangs off the program, by other ways than the call: equal to eager mode."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

import framegraft

SHARED = {}


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.parent = nn.Parameter(torch.randn(4)), []

    def forward(self, x, *more):
        return x * self.weight + ACT(self, x, *more)

    def get(self):
        return self.weight


def ACT(layer, x, *more):
    raise NotImplementedError


class Model(nn.Module):
    def __init__(self, forward):
        super().__init__()
        self.layers, self.start, self.run = nn.ModuleList(Layer() for _ in range(5)), nn.Parameter(torch.ones(4)), forward
        for layer in self.layers:
            layer.parent.append(self)

    def forward(self, x):
        for x in self.run(self, x * self.start):
            pass
        return x


def plain(model, x):
    for layer in model.layers:
        yield (x := layer(x))


def given(make):
    def run(model, x):
        for layer in model.layers:
            yield (x := layer(x, make(model)))
    return run


def stored(make):
    def run(model, x):
        SHARED["it"] = make(model)
        yield from plain(model, x)
    return run


def one_after_another(make):
    def run(model, x):
        for layer, value in zip(model.layers, make(), strict=True):
            yield (x := layer(x, value))
    return run


def called_back(model, x):
    def back():
        return model.layers[0].weight
    SHARED["it"] = back
    yield from plain(model, x)


def summed(model, x):
    SHARED["sum"] = torch.zeros(4)
    yield from plain(model, x)


def seen_twice(model, x):
    SHARED["sum"] = total = torch.zeros(4)
    SHARED["same"] = total.view(4)
    yield from plain(model, x)


def views(model, x):
    for at, layer in enumerate(model.layers):
        fresh = x.detach() * 1
        yield (x := layer(x, fresh, fresh.view(fresh.shape) if at % 2 else fresh * 1))


def listed(model, x):
    for layer in LISTED:
        yield (x := layer(x))


LISTED = []


def add_up(layer, x):
    known = SHARED["sum"].requires_grad
    SHARED["sum"].add_(layer.weight)
    return 1 if known else 2


def add_up_and_look(layer, x):
    SHARED["sum"].add_(layer.weight)
    return 1 if SHARED["same"].requires_grad else 2


def write(layer, x, first, second):
    first.add_(layer.weight)
    return second.detach() + (1 if second.requires_grad else 2)


def weight_of(layer, x, other):
    return other.weight


CASES = {
    "the first layer": (given(lambda model: model.layers[0]), weight_of),
    "the second layer": (given(lambda model: model.layers[1]), weight_of),
    "the first of all layers": (given(lambda model: model.layers), lambda layer, x, layers: layers[0].weight),
    "the model": (given(lambda model: model), lambda layer, x, model: model.layers[0].weight),
    "is it the third": (given(lambda model: model.layers[2]), lambda layer, x, other: 1 if other is layer else 2),
    "the first weight": (given(lambda model: model.layers[0].weight), lambda layer, x, weight: weight),
    "the second weight": (given(lambda model: model.layers[1].weight), lambda layer, x, weight: weight * 1),
    "a tuple of weights": (given(lambda model: (model.layers[0].weight, 1)), lambda layer, x, pair: pair[0]),
    "stored layer": (stored(lambda model: model.layers[0]), lambda layer, x: SHARED["it"].weight),
    "stored weight": (stored(lambda model: [(model.layers[0].weight,)]), lambda layer, x: SHARED["it"][0][0]),
    "stored method": (stored(lambda model: model.layers[0].get), lambda layer, x: SHARED["it"]()),
    "closure": (called_back, lambda layer, x: SHARED["it"]()),
    "parent": (plain, lambda layer, x: layer.parent[0].layers[0].weight),
    "parent, identity": (plain, lambda layer, x: 1 if layer.parent[0].layers[2] is layer else 2),
    "list": (listed, lambda layer, x: LISTED[0].weight),
    "list, identity": (plain, lambda layer, x: 1 if LISTED[2] is layer else 2),
    "sum": (summed, add_up),
    "sum and its view": (seen_twice, add_up_and_look),
    "views": (views, write),
    "zeros": (one_after_another(lambda: [np.float64(z) for z in (0.0, 0.0, -0.0, 0.0, -0.0)]),
              lambda layer, x, zero: 1 if np.copysign(1.0, zero) > 0 else 2),
    "ranges": (one_after_another(lambda: [range(0), range(0), range(5, 5), range(3, 2), range(0)]), lambda layer, x, numbers: numbers.start),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("first", [0, 1])  # the layer that later ones are told to repeat
def test_other_ways(case, first, monkeypatch):
    run, act = CASES[case]
    monkeypatch.setitem(globals(), "ACT", act)
    torch.manual_seed(0)
    model, x = Model(run), torch.randn(3, 4)
    model.start.requires_grad_(not first)
    monkeypatch.setitem(globals(), "LISTED", list(model.layers))
    compiled = framegraft.compile(model, backend="eager")
    for _ in range(2):
        torch.testing.assert_close(compiled(x), model(x), rtol=0, atol=0)
        with torch.no_grad():
            model.layers[0].weight.mul_(2)
    model.layers[3] = copy.copy(model.layers[3])
    model.layers[3].weight = nn.Parameter(torch.ones(4))
    torch.testing.assert_close(compiled(x), model(x), rtol=0, atol=0)
