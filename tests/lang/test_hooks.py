"""Hooks on the gradients of tensors that the captured function makes."""

import pytest
import torch

import framegraft

from .differential import differential


def leaves():
    return torch.arange(6.0).reshape(2, 3).requires_grad_(), torch.ones(2, 3)


@differential(leaves, graphs=1)
def test_gradient_is_scaled(x, y):
    z = x * y
    z.register_hook(lambda g: g * 2)
    return (z * 3).sum()


@differential(leaves, graphs=1)
def test_hook_with_values_from_around(x, y):
    z, k, w = x * 2, 3.0, y + 1

    def hook(grad):
        return grad * k + w if torch.is_grad_enabled() else grad * k - w

    z.register_hook(hook)
    return z.sin(), w


@differential(leaves, graphs=1)
def test_hook_on_what_was_used_before(x, y):
    z = x * 2
    w = z * 3
    handle = z.register_hook(lambda g: g * 5)
    z.register_hook(lambda g: g + 1)
    return w, handle is None


@differential(leaves, graphs=1)
def test_hook_that_only_looks(x, y):
    z = x * 2

    def hook(grad):
        grad.sum()

    z.register_hook(hook)
    return z * 2


@differential(leaves, graphs=1)
def test_views_and_writes(x, y):
    z = x * y
    v = z[0]
    v.register_hook(lambda g: g * 2)
    w = x * 3
    w.register_hook(lambda g: g * 7)
    w.mul_(y + 1)
    return z.sum() + v.sum() * 3 + w.sum()


seen = []


@differential(leaves)
def test_hook_with_a_side_effect(x, y):
    z = x * 2
    z.register_hook(lambda g: seen.append(1))
    return z * 2


@differential(leaves)
def test_handle_that_is_used(x, y):
    z = x * y
    handle = z.register_hook(lambda g: g * 2)
    w = z * 1
    handle.remove()
    return (w * 3).sum()


@differential(leaves)
def test_break_behind_a_hook(x, y):
    z = x * y
    z.register_hook(lambda g: g * 2)
    print("half-way")
    return z * 3


@differential(leaves)
def test_hooks_that_eager_mode_refuses(x, y):
    z = x * y
    z.register_hook(lambda g: g.sum())
    try:
        (y * 2).register_hook(lambda g: g)
    except RuntimeError:
        return z


class Reversal(torch.nn.Module):
    def forward(self, x):
        y = x.view_as(x)
        if y.requires_grad:
            y.register_hook(lambda g: -g * 0.5)
        return y


LAYERS = torch.nn.Sequential(*(Reversal() for _ in range(3)))


@differential(leaves, graphs=1)
def test_layers_with_hooks(x, y):
    return LAYERS(x * 2) * y


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=[pytest.mark.slow, pytest.mark.inductor])])
def test_compiled_backward_pass(backend):
    def f(x, y):
        z = LAYERS(x * 2) * y
        z.register_hook(lambda g: g.clamp(max=0.5) + y)
        return z.sin()

    compiled = framegraft.compile(f, backend=backend, fullgraph=True)
    grads = []
    for fn in (f, compiled):
        x, y = leaves()
        fn(x, y).sum().backward()
        grads.append(x.grad)
    torch.testing.assert_close(*grads)
