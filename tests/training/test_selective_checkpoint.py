"""torch.utils.checkpoint with a context_fn: a policy says what is kept."""

import functools

import pytest
import torch
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

import framegraft

from .test_checkpoint import saved_elements

MM = torch.ops.aten.mm.default
ASKED = []


def keeps_products(ctx, op, *args, **kwargs):
    ASKED.append((op, ctx.is_recompute))
    return CheckpointPolicy.MUST_SAVE if op == MM else CheckpointPolicy.PREFER_RECOMPUTE


def contexts():
    return create_selective_checkpoint_contexts(keeps_products)


def body(x, w, options=None):
    y = (torch.mm(x, w) @ w).sigmoid().exp() * (options or {"scale": 1})["scale"]
    return y.sin(), x + 1


def by_function(x, w):
    return checkpoint(body, x, w, use_reentrant=False, context_fn=contexts)


def by_policy(x, w):
    return checkpoint(body, x, w, {"scale": 3}, use_reentrant=False, context_fn=functools.partial(create_selective_checkpoint_contexts, keeps_products))


def by_list(x, w):
    context_fn = functools.partial(create_selective_checkpoint_contexts, [MM])
    return checkpoint(lambda x: body(x, w), x, use_reentrant=False, context_fn=context_fn, preserve_rng_state=False)


def inputs():
    torch.manual_seed(0)
    return torch.randn(16, 16, requires_grad=True), torch.randn(16, 16, requires_grad=True)


def run(fn):
    found = []
    for _ in range(2):
        x, w = inputs()
        results = fn(x, w)
        sum(r.sum() for r in results).backward()
        found += [*results, x.grad, w.grad]
    return found


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("fn", [by_function, by_policy, by_list])
def test_gradients(fn, backend):
    compiled = framegraft.compile(fn, backend=backend, fullgraph=True)
    for mine, other in zip(run(fn), run(compiled), strict=True):
        torch.testing.assert_close(other, mine)


def test_the_policy_is_asked_as_in_eager_mode():
    compiled = framegraft.compile(by_function, backend="eager", fullgraph=True)
    asked = []
    for fn in (by_function, compiled):
        ASKED.clear()
        run(fn)
        asked.append(ASKED[:])
    assert asked[0] == asked[1]


def test_what_is_kept():
    def whole(x, w):
        return checkpoint(body, x, w, use_reentrant=False)

    kept = []
    for fn in (whole, by_function):
        compiled = framegraft.compile(fn, backend="aot_eager", fullgraph=True)
        x, w = inputs()
        kept.append(saved_elements(lambda c=compiled, x=x, w=w: c(x, w))[1])
    assert kept[0] < kept[1]


def drawing(x, w):
    return checkpoint(lambda x: torch.dropout(x @ w, 0.5, True), x, use_reentrant=False, context_fn=contexts)


def writing(x, w):
    seen = []
    y = checkpoint(lambda x: seen.append(1) or x @ w, x, use_reentrant=False, context_fn=contexts)
    return y, seen


@pytest.mark.parametrize("fn", [drawing, writing])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_regions_that_are_left_to_eager_mode(fn, backend):
    def told(fn):
        x, w = inputs()
        result = fn(x, w)
        y, *more = result if isinstance(result, tuple) else (result,)
        y.sum().backward()
        return y, more, x.grad, w.grad

    mine, other = told(fn), told(framegraft.compile(fn, backend=backend))
    torch.testing.assert_close(other, mine)
