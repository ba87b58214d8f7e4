"""Views from before their base was written to with a gradient: torch gives them a grad_fn only when somebody looks."""

from __future__ import annotations

import pytest
import torch

import framegraft

VIEWS = {"view": lambda x: x.view(3), "slice": lambda x: x[1:], "view of a view": lambda x: x.view(3, 1)[1:]}
BACKENDS = ["eager", "aot_eager"]


def same(fn):
    return fn


def state(make):
    x, weight = torch.arange(3.0), torch.ones(3, requires_grad=True)
    return x, make(x), weight


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("make", VIEWS.values(), ids=VIEWS)
def test_capture_without_a_gradient_is_not_used_with_one(make, backend):
    def run(wrap):
        fn = wrap(lambda v: v * 3)
        x, v, weight = state(make)
        before = fn(v)
        x += weight * 2
        after = fn(v)
        after.sum().backward()
        x, w, other = state(make)
        x += other * 2
        first = fn(w)
        return before, after, weight.grad, first.requires_grad, fn(state(make)[1]).requires_grad

    for got, want in zip(run(lambda fn: framegraft.compile(fn, backend=backend)), run(same), strict=True):
        assert type(got) is type(want)
        assert torch.equal(got, want) and got.requires_grad is want.requires_grad if isinstance(got, torch.Tensor) else got == want


def written(v):
    v.fill_(0.5)
    return v


def looked_at_and_written(v):
    other = v + 1
    return written(v), other


def made_and_written(x, v, weight):
    late = x.view(3)
    x += weight * 2
    return written(late)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("make", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("fn", [written, looked_at_and_written, made_and_written])
def test_write_to_a_view_that_nobody_looked_at(fn, make, warm, backend):
    def run(fn):
        if warm:
            x, v, weight = state(make)
            x += weight
            fn(v + 0) if fn_takes_view else fn(x.detach(), v, weight.detach())
        x, v, weight = state(make)
        try:
            if fn_takes_view:
                x += weight * 2
                fn(v)
            else:
                fn(x, v, weight)
        except RuntimeError as error:
            return str(error)
        return "written"

    fn_takes_view = fn is not made_and_written
    assert run(framegraft.compile(fn, backend=backend)) == run(fn)
