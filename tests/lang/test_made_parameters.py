"""``nn.Parameter`` of tensors from outside and of those that the trace has made: leaves of their own, made in each call."""

import copy

import pytest
import torch
from torch import nn
from torch._functorch._aot_autograd.utils import make_boxed_func
from torch._functorch.aot_autograd import aot_module_simplified

import framegraft

from .differential import differential
from .snapshot import Snapshot, first_difference


def two():
    return torch.arange(1.0, 4.0), torch.full((3,), 2.0).requires_grad_()


def layer():
    torch.manual_seed(1)
    return torch.ones(2, 3), nn.Linear(3, 2)


@differential(two, graphs=1)
def test_of_an_input(x, w):
    p = nn.Parameter(x)
    return (p * w).sum(), p, p.is_leaf, p.requires_grad, type(p), isinstance(p, nn.Parameter), p.grad, p.grad_fn


@differential(two, graphs=1)
def test_of_a_result(x, w):
    p, q = nn.Parameter(x * w), nn.Parameter(w)
    return p, (q * w).sum(), q, p.shape


@differential(two, graphs=1)
def test_without_a_gradient(x, w):
    return nn.Parameter(x * 2, requires_grad=False), nn.Parameter(torch.arange(3), False)


@differential(two, graphs=1)
def test_written_to(x, w):
    p = nn.Parameter(x[1:])
    q = nn.Parameter(p)
    z = q * 3
    with torch.no_grad():
        p.mul_(2)
    x.add_(1)
    return p, q, z.detach(), x


@differential(two)
def test_in_no_grad_mode(x, w):
    with torch.no_grad():
        p = nn.Parameter(x * 2)
        y = p * 3
    return p, y, p * w


@differential(layer, graphs=1)
def test_set_on_a_module(x, model):
    model.weight = nn.Parameter(model.weight * 2)
    model.scale = nn.Parameter(torch.ones(3))
    return model(x * model.scale)


@differential(layer, graphs=1)
def test_of_a_module_made_inside(x, model):
    made = nn.Linear(3, 2)
    return made(x) + model(x), made.weight, made.bias


@differential(two, graphs=1)
def test_many(x, w):
    found = [nn.Parameter(x * i) for i in range(12)]
    for p in found:
        w = w * p
    return w, found


@differential(two)
def test_data_set(x, w):
    p = nn.Parameter(x * 2)
    p.data = x
    q = nn.Parameter(x + 1, requires_grad=False)
    q.data = x * 3
    return p, q, p * w


def step(x, model):
    model.weight = nn.Parameter(model.weight.detach() * 0.5)
    fixed = nn.Parameter(x + 1, requires_grad=False)
    own = nn.Parameter(x)
    with torch.no_grad():
        x.add_(1)
    return (model(x + own) * fixed[:, :1]).sum(), fixed, own


def no_gradient(x, model):
    return x + 1, nn.Parameter(x * 2, requires_grad=False), model


def used_alone(x, model):
    return (nn.Parameter(x * 2) * 3).detach(), (nn.Parameter(x) + 1).detach(), x.shape[0]


def next_to_a_gradient(x, model):
    p = nn.Parameter(torch.zeros(3))
    with torch.no_grad():
        y = x * 2
    return model(y).sum(), p


def traced_by_a_compiler(gm, example_inputs):
    return aot_module_simplified(gm, example_inputs, fw_compiler=lambda graph, _: make_boxed_func(graph.forward))


def test_compilers_that_trace_through_it_get_none():
    """They would take it for a result like any other, and no gradient would come to it."""
    found = []
    for fn in (next_to_a_gradient, framegraft.compile(next_to_a_gradient, backend=traced_by_a_compiler)):
        x, model = layer()
        loss, made = fn(x, model)
        loss.backward()
        found.append((loss, made, made.grad, model.weight.grad))
    assert all(a is b is None or torch.equal(a, b) for a, b in zip(*found, strict=True))
    x, model = layer()
    compiled = framegraft.compile(next_to_a_gradient, backend=traced_by_a_compiler, fullgraph=True)
    with pytest.raises(framegraft.exc.Unsupported, match="for a compiler that traces"):
        compiled(x, model)


@pytest.mark.parametrize("fn", [step, no_gradient, used_alone, next_to_a_gradient])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("dynamic", [False, True])
def test_behind_backends(fn, backend, dynamic):
    framegraft.reset()
    x, model = layer()
    other, twin = x.clone(), copy.deepcopy(model)
    compiled = framegraft.compile(fn, backend=backend, fullgraph=True, dynamic=dynamic)
    for _ in range(3):
        ends = [fn(x, model), compiled(other, twin)]
        for end in ends:
            if end[0].requires_grad:
                end[0].backward()
        seen = [Snapshot()((a, list(m.parameters()), [p.grad for p in m.parameters()], r[0].detach().tolist(), r[1:]))
                for a, m, r in ((x, model, ends[0]), (other, twin, ends[1]))]
        assert [type(t) for t in ends[0]] == [type(t) for t in ends[1]]
        assert (difference := first_difference(*seen)) is None, difference
