"""Activation checkpointing: what is saved, what is computed anew, and with the same random numbers."""

import pytest
import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint

import framegraft


def saved_elements(fn):
    seen = []

    def pack(t):
        seen.append(t)
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        out = fn()
    return out, sum(t.numel() for t in seen if t.numel() > 64)


def chain(x, w):
    for _ in range(6):
        x = (x @ w).sin().exp().tanh()
    return x


def test_region_is_computed_anew():
    w = torch.randn(16, 16, requires_grad=True)
    x = torch.randn(16, 16)
    plain = framegraft.compile(chain, backend="aot_eager", fullgraph=True)
    region = framegraft.compile(lambda x, w: checkpoint(chain, x, w, use_reentrant=False).cos(), backend="aot_eager", fullgraph=True)
    _, kept = saved_elements(lambda: plain(x, w))
    out, left = saved_elements(lambda: region(x, w))
    assert left < kept / 2
    expected = chain(x, w).cos()
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(torch.autograd.grad(out.sum(), w), torch.autograd.grad(expected.sum(), w))


@pytest.mark.parametrize("backend", ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
@pytest.mark.parametrize("reentrant", [False, True])
def test_same_dropout_both_times(backend, reentrant):
    def f(x, w):
        return checkpoint(lambda x, w: torch.dropout(x * w, 0.5, True) * 2, x, w, use_reentrant=reentrant)

    w = torch.ones(64, requires_grad=True)
    x = torch.full((64,), 3.0, requires_grad=True)
    out = framegraft.compile(f, backend=backend)(x, w)
    out.sum().backward()
    assert set(out.tolist()) == {0.0, 12.0}
    torch.testing.assert_close(w.grad, out.detach())


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_region_with_a_break(backend):
    def body(x, w):
        y = (x * w).sin()
        print(end="")
        return (y * w).cos() * y

    def f(x, w):
        return checkpoint(body, x, w, use_reentrant=False) * 2

    grads = []
    compiled = framegraft.compile(f, backend=backend)
    for fn in (f, compiled, compiled):
        w = torch.linspace(0, 1, 8, requires_grad=True)
        out = fn(torch.ones(8), w)
        grads.append((out.detach(), *torch.autograd.grad(out.sum(), w)))
    torch.testing.assert_close(grads[1], grads[0])
    torch.testing.assert_close(grads[2], grads[0])


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_captured_function_inside_an_eager_checkpoint(backend):
    model = nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.Linear(4, 4))
    compiled = framegraft.compile(model, backend=backend)
    x = torch.randn(3, 4)
    grads = []
    for fn in (model, compiled):
        model.zero_grad()
        checkpoint(fn, x, use_reentrant=False).square().sum().backward()
        grads.append([p.grad.clone() for p in model.parameters()])
    torch.testing.assert_close(*grads)


def test_keywords_and_what_breaks():
    def body(x, *, scale):
        return x.sin() * scale

    x = torch.ones(3, requires_grad=True)
    f = framegraft.compile(lambda x: checkpoint(body, x, use_reentrant=False, preserve_rng_state=False, scale=3), backend="eager", fullgraph=True)
    assert torch.equal(f(x), body(x, scale=3))
    g = framegraft.compile(lambda x: checkpoint(body, x, use_reentrant=True, scale=3), backend="eager")
    with pytest.raises(ValueError, match="scale"):
        g(x)
