"""``checkpoint(..., context_fn=...)``: what a policy of the program's is asked, and what it may do."""

import collections
import functools
import inspect

import pytest
import torch
import torch.nn as nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.utils.checkpoint import (
    CheckpointPolicy,
    SelectiveCheckpointContext,
    checkpoint,
    create_selective_checkpoint_contexts,
    noop_context_fn,
)

from .differential import differential

pytestmark = pytest.mark.skipif("op_output" not in inspect.signature(SelectiveCheckpointContext).parameters, reason="torch before 2.13")
MM = torch.ops.aten.mm.default


def square():
    return (torch.arange(16.0).view(4, 4).sin().requires_grad_(),)


def products(x):
    return (x @ x @ x @ x).sin()


def saves_products(context, op, *args, **kwargs):
    return CheckpointPolicy.MUST_SAVE if op == MM else CheckpointPolicy.PREFER_RECOMPUTE


def every_second_product():
    counts = collections.defaultdict(int)

    def policy(context, op, *args, **kwargs):
        mode = "recompute" if context.is_recompute else "forward"
        counts[mode] += op == MM
        return CheckpointPolicy.MUST_SAVE if op == MM and counts[mode] % 2 else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)


@differential(square, graphs=1)
def test_policies(x):
    a = checkpoint(products, x, use_reentrant=False, context_fn=functools.partial(create_selective_checkpoint_contexts, saves_products))
    b = checkpoint(products, x, use_reentrant=False, context_fn=every_second_product)
    return a + b


@differential(square, graphs=1)
def test_lists_of_operators(x):
    return checkpoint(products, x, use_reentrant=False, context_fn=lambda: create_selective_checkpoint_contexts([MM]))


@differential(square, graphs=1)
def test_policies_that_look_at_arguments(x):
    def policy(context, op, *args, **kwargs):
        return len(args) == 2 and args[0].shape[0] == 4 and context.op_output.dim() == 2

    return checkpoint(products, x, use_reentrant=False, context_fn=lambda: create_selective_checkpoint_contexts(policy))


@differential(square, graphs=1)
def test_no_policy_is_asked(x):
    with torch.no_grad():
        y = checkpoint(products, x, use_reentrant=False, context_fn=every_second_product)
    return y + checkpoint(products, x, use_reentrant=False, context_fn=noop_context_fn)


ASKED = []


def writes_down():
    def policy(context, op, *args, **kwargs):
        ASKED.append(str(op))
        return True

    return create_selective_checkpoint_contexts(policy)


@differential(square)
def test_policies_with_effects(x):
    return checkpoint(products, x, use_reentrant=False, context_fn=writes_down), list(ASKED)


@differential(square)
def test_what_is_no_policy(x):
    seen = []
    for wrong in (3, [torch.ops.aten.mm]):
        try:
            checkpoint(products, x, use_reentrant=False, context_fn=lambda: create_selective_checkpoint_contexts(wrong))  # noqa: B023
        except (TypeError, ValueError) as error:
            seen.append(type(error))
    return seen


@differential(square)
def test_contexts_behind_a_break(x):
    pair = create_selective_checkpoint_contexts([MM])
    print(end="")
    return checkpoint(products, x, use_reentrant=False, context_fn=lambda: pair), type(pair[0]).__name__


@differential(lambda: (nn.Sequential(*[checkpoint_wrapper(nn.Linear(4, 4), context_fn=every_second_product) for _ in range(3)]), *square()),
              graphs=1)
def test_wrapped_modules(model, x):
    return model(x)


@differential(lambda: (torch.ones(3),))
def test_contexts_of_something_else(x):
    found = []
    for given in ([2], [torch.ops.aten.mm], (MM,), 3):
        try:
            create_selective_checkpoint_contexts(given)
        except (TypeError, ValueError) as error:
            found.append((type(error), str(error)))
    try:
        create_selective_checkpoint_contexts()
    except TypeError as error:
        found.append(str(error))
    return x + 1, found
