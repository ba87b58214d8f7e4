"""Tensors that get the memory of others: ``x.data = y``, ``vector_to_parameters``, ``detach_()``."""

import copy

import pytest
import torch
import torch.utils.checkpoint
from torch import nn

import framegraft

from .differential import differential
from .snapshot import Snapshot, first_difference


def two():
    return torch.arange(1.0, 4.0), torch.full((3,), 2.0)


def with_gradient():
    return torch.arange(1.0, 4.0), torch.full((3,), 2.0).requires_grad_()


def layers():
    torch.manual_seed(1)
    return torch.ones(2, 3), nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3))


@differential(two, graphs=1)
def test_of_inputs(x, y):
    z = x * 2
    x.data = y * 2
    y.data = z
    y.data = y.data + 1
    return x * 2, z, y.data.data_ptr() == y.data_ptr(), x, [x, y]


@differential(two, graphs=1)
def test_other_shapes(x, y):
    x.data = torch.arange(6.0).reshape(2, 3)
    return x.shape, x.sum(), x.t(), x, y


@differential(two, graphs=1)
def test_swapped(x, y):
    kept, view = x.data, x.view(3, 1)
    x.data = y.data
    y.data = kept
    return x + 1, y * 2, view, view + y


@differential(two, graphs=1)
def test_shared_memory(x, y):
    v = y + 1
    x.data = v[:2]
    v.add_(1)
    return x * 2, v


@differential(two, graphs=2)
def test_written_to_afterwards(x, y):
    x.data = y + 1
    x.add_(1)
    return x * 2


@differential(with_gradient, graphs=1)
def test_gradients_reach_what_it_is_now(x, w):
    w.data = x * 3
    return w + x, w.is_leaf, w.requires_grad, w.grad, (w.view(3, 1) * x).sum()


@differential(with_gradient, graphs=1)
def test_data_with_a_gradient(x, w):
    x.data = w * 2
    return x + 1, x.requires_grad, x.grad_fn


@differential(with_gradient, graphs=2)
def test_used_before(x, w):
    z = w * w  # autograd saves w, and finds what it is by then
    w.data = x * 5
    return z.sum() + w.sum()


@differential(with_gradient, graphs=2)
def test_used_afterwards(x, w):
    w.data = x * 5
    return (w * w).sum()


@differential(with_gradient, graphs=1)
def test_without_grad_mode(x, w):
    with torch.no_grad():
        w.data = x * 5
        z = w * w
    return z, w + 1


@differential(with_gradient, graphs=1)
def test_of_results(x, w):
    y = x * 2
    y.data = x + 1
    y.add_(1)
    return y, y * 2 + w


@differential(with_gradient)
def test_of_results_with_a_gradient(x, w):
    z = w * 2
    z.data = x
    return z, z + 1


@differential(with_gradient)
def test_views_of_it(x, w):
    w.data = x * 3
    x.data = w.detach() + 1
    v, u = w.view(3, 1), x[1:]
    return v, u, w.detach(), v._base is w, u._base is x


@differential(with_gradient, graphs=1)
def test_views_inside(x, w):
    w.data = x * 3
    return w.view(3, 1) * 2, w[1:] + x[1:]


@differential(layers, graphs=1)
def test_of_layers(x, model):
    for p in model.parameters():
        p.grad = torch.ones_like(p)
        p.data = p.data - 0.1 * p.grad.sign()
        p.grad = None
    return model(x)


@differential(layers, graphs=1)
def test_of_one_layer_of_several(x, model):
    for i, layer in enumerate(model):
        if i == 2:
            layer.weight.data = layer.weight.data * 0.5
        x = layer(x)
    return x


@differential(layers, graphs=1)
def test_vector_to_parameters(x, model):
    v = nn.utils.parameters_to_vector(model.parameters()).detach()
    w = torch.arange(36.0)
    nn.utils.vector_to_parameters(v * 2, list(model.parameters()))
    nn.utils.vector_to_parameters(w, model.parameters())
    return model(x), w


def of_a_view():
    base = torch.arange(4.0)
    return base, base[1:]


@differential(of_a_view, graphs=1)
def test_base_of_a_view(base, view):
    base.data = torch.ones(4)
    view.add_(1)
    return base * 1, view * 1


@differential(of_a_view)
def test_view(base, view):
    view.data = torch.ones(3)
    view.add_(1)
    return base * 1, view * 1


@differential(two)
def test_other_dtypes(x, y):
    x.data = y.double()
    return x + 1


@differential(two)
def test_seen_by_numpy(x, y):
    a = x.numpy()
    x.data = y * 2
    b = x.numpy()
    return a + 1, b + 1, x, a, b


@differential(layers)
def test_in_autocast(x, model):
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        y = model(x)
        with torch.autocast("cpu", enabled=False):
            model[0].weight.data = model[0].weight.data * 2
        return y, model(x)


@differential(layers, graphs=1)
def test_checkpointed(x, model):
    model[0].weight.data = model[0].weight.data * 2
    return torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False)


@differential(two, graphs=1)
def test_around_functions_given_to_torch(x, y):
    x.data = y * 3
    return torch.func.grad(lambda a: (a * a * x).sum())(y), torch.func.vmap(lambda a: a * x)(torch.ones(2, 3)), x


@differential(with_gradient, graphs=1)
def test_hooks(x, w):
    w.register_hook(lambda grad: grad * 2)
    w.data = x * 3
    return w + x


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * KEPT

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


KEPT = torch.ones(3)


@differential(with_gradient)
def test_seen_by_a_function_of_autograd(x, w):
    KEPT.data = x * 2
    return Doubled.apply(w) + KEPT


@differential(with_gradient, graphs=1)
def test_hidden_states(x, w):
    h = torch.tanh(x * w)
    h.detach_()
    other = (h * w) + 1
    torch.detach_(other)
    return h, other, other.requires_grad, h * w, x.detach_()


@differential(with_gradient)
def test_detached_inputs(x, w):
    w.detach_()
    return x * w, w.requires_grad


@differential(with_gradient)
def test_detached_after_use(x, w):
    h = x * w
    z = h * h
    v = h[1:]
    h.detach_()
    return z, v, h


def step(x, model, target):
    v = nn.utils.parameters_to_vector(model.parameters()).detach() * 0.5
    nn.utils.vector_to_parameters(v, model.parameters())
    target.data = model(x).detach()
    return (model(x) + target).sum(), v, target


def in_parts(x, model, target):
    v = nn.utils.parameters_to_vector(model.parameters()).detach() * 0.5
    nn.utils.vector_to_parameters(v, model.parameters())
    scale = nn.Parameter(torch.ones(3))
    target.data = x + 1
    return ((model(x) + target) * scale).sum(), v, target


@pytest.mark.parametrize("step", [step, in_parts])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("dynamic", [False, True])
def test_behind_backends(step, backend, dynamic):
    framegraft.reset()
    x, model = layers()
    twin, target = copy.deepcopy(model), torch.zeros(2, 3)
    mine = target.clone()
    compiled = framegraft.compile(step, backend=backend, fullgraph=True, dynamic=dynamic)
    for _ in range(3):
        expected, got = step(x, model, target), compiled(x, twin, mine)
        expected[0].backward()
        got[0].backward()
        got[1].mul_(2)
        expected[1].mul_(2)  # parameters have this memory
        seen = [Snapshot()((list(m.parameters()), [p.grad for p in m.parameters()], t, float(r[0].detach()), r[2]))
                for m, t, r in ((model, target, expected), (twin, mine, got))]
        assert (difference := first_difference(*seen)) is None, difference
        assert mine is got[2]
