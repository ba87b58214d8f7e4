"""Modules that make their parameters, or their class, in their first call."""

import pytest
import torch
from torch import nn
from torch.nn.modules.lazy import LazyModuleMixin

import framegraft

from .differential import differential


class Scale(nn.Module):
    def forward(self, xs):
        return xs[0] * self.scale + xs[1]


class LazyScale(LazyModuleMixin, Scale):
    cls_to_become = Scale

    def initialize_parameters(self, xs):
        self.scale = nn.Parameter(torch.full(xs[0].shape, 0.5))


class LazyTwice(LazyModuleMixin, nn.Module):
    def initialize_parameters(self, xs):
        self.first, self.second = LazyScale(), nn.LazyLinear(2)
        with torch.no_grad():
            self.second(xs[0]).zero_()
            for p in self.second.parameters():
                p.fill_(0.25)

    def forward(self, xs):
        return self.second(self.first(xs))


class Net(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer([x, x + 1]).sum()


@differential(lambda: (Net(LazyScale()), torch.arange(6.0).reshape(2, 3)), calls=3)
def test_a_module_that_becomes_another(net, x):
    return net(x), type(net.layer), len(list(net.parameters()))


@differential(lambda: (Net(LazyTwice()), torch.arange(6.0).reshape(2, 3)), calls=3)
def test_a_module_that_makes_lazy_modules(net, x):
    first = net(x)
    return first, net(x), type(net.layer.first), net.layer.cls_to_become


@pytest.mark.parametrize("layer", [LazyScale, LazyTwice])
def test_the_call_after_the_first_is_one_graph(layer):
    counter = framegraft.testing.CompileCounter()
    net, x = Net(layer()), torch.ones(2, 3)
    compiled = framegraft.compile(net, backend=counter, fullgraph=True)
    given = [compiled(x) for _ in range(3)]
    assert counter.frame_count == 1
    assert torch.equal(given[0], given[1]) and torch.equal(given[0], net(x))


def test_a_first_call_that_raises():
    layer = nn.LazyLinear(3)
    compiled = framegraft.compile(layer, backend="eager", fullgraph=True)
    for _ in range(2):
        with pytest.raises(AttributeError, match="shape"):
            compiled("no tensor")
    x = torch.ones(2, 4)
    assert torch.equal(compiled(x), compiled(x)) and type(layer) is nn.Linear
