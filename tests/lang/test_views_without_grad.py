"""Views of parameters that were made in no_grad mode: they require a gradient, as their base does, and have no history."""

import contextlib

import pytest
import torch
from torch import nn

import framegraft
from framegraft.testing import CompileCounter


def parameter():
    return nn.Parameter(torch.arange(6.0).reshape(2, 3))


def row(p):
    with torch.no_grad():
        return p[0]


def written_to(p):
    """Its history is ambiguous now; autograd says so when it is asked."""
    made = row(p)
    with torch.no_grad():
        p.add_(1)
    return made


def late(p):
    """Its base came to require a gradient by a write, and nobody has looked at it since."""
    base = torch.zeros(6)
    made = base[:3]
    base.mul_(p.reshape(6))
    return made


def without(p):
    return p.detach()[0]


MAKERS = (row, written_to, late, without)


def computes(v):
    return v * 2 + 1, v.requires_grad


def asks(v):
    return v + 1, v.is_leaf, v.grad_fn is None, v.requires_grad


def views(v):
    w = v[1:]
    return w, w * v[:2], w.requires_grad, v.unsqueeze(0).expand(2, 3)


def gives_itself(v):
    return v, v + 1


def writes(v):
    v.mul_(3)
    return v + 1


def enables_grad(v):
    y = v * 2
    with torch.enable_grad():
        z = v * 3
        return y.requires_grad, z.requires_grad, (z + y).sum()


def detaches(v):
    w = v.detach()
    return w.requires_grad, w + v.clone(), v.clone().requires_grad


def describe(result):
    return [(t.detach().clone(), t.requires_grad, t._is_view()) if isinstance(t, torch.Tensor) else t for t in
            (result if isinstance(result, tuple) else (result,))]


def told(fn, maker, mode):
    """What a call gives, or raises, and what it makes of the parameter."""
    p = parameter()
    try:
        v = maker(p)
        with mode():
            result = describe(fn(v))
    except RuntimeError as error:
        result = str(error)[:60]
    return str(result), p.detach().clone().tolist()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("fn", [computes, asks, views, gives_itself, writes, enables_grad, detaches])
def test_views_without_history(fn, backend):
    compiled = framegraft.compile(fn, backend=backend)
    for _ in range(2):
        for maker in MAKERS:
            for mode in (torch.no_grad, contextlib.nullcontext):
                if maker is row and mode is contextlib.nullcontext and backend == "aot_eager":
                    continue  # the compiled graph's results have a history, where there is none
                assert told(compiled, maker, mode) == told(fn, maker, mode), (maker, mode)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.p = parameter()

    def forward(self, x):
        first, second = self.p[0], self.p.unsqueeze(0).expand(2, 2, 3)
        x = x + first
        print(end="")
        return (x + second).relu() * first


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_break_where_one_is_in_use(backend):
    torch.manual_seed(0)
    net, counter = Net(), CompileCounter()
    compiled = framegraft.compile(net, backend=counter if backend == "eager" else backend)
    x = torch.randn(2, 3)
    with torch.no_grad():
        for _ in range(3):
            assert torch.equal(compiled(x), net(x))
            net.p.mul_(2)
    if backend == "eager":
        assert counter.frame_count == 2
    net.p.requires_grad_(False)
    assert torch.equal(compiled(x), net(x))
    net.p.requires_grad_()
    compiled(x).sum().backward()
    wanted, net.p.grad = net.p.grad, None
    net(x).sum().backward()
    torch.testing.assert_close(net.p.grad, wanted)
