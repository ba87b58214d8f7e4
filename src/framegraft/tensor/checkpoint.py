"""``torch.utils.checkpoint``: the region goes into the graph like any other code, its operations marked to be computed anew.

AOTAutograd's partitioner reads the marks (``node.meta["recompute"]``); a backend that runs the graph as it is keeps what the
region computed. Where the region cannot be traced, the call runs in eager mode with all that it calls: forward and
recomputation must be the same operations.

Eager mode runs the function itself once more in the backward pass (torch/utils/checkpoint.py: _CheckpointFrame.recompute_fn), up to
the last tensor that it wants. What the function changes is changed twice then, statistics of a batch norm among that, and without
``preserve_rng_state`` other random numbers are drawn. A graph cannot do that, so such a region runs in eager mode, too.

With ``use_reentrant=True`` eager mode runs the function without grad mode at first, and with it in the backward pass (CheckpointFunction).
A region is the same where both do the same operations, all that it gives requires a gradient as it does there, and no gradient goes to
a tensor of the program's graph that is no argument. What eager mode refuses then, ``torch.autograd.grad``, works.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from typing import Any

import torch
import torch.utils.checkpoint

from ..errors import GraphBreak
from ..interp.regions import pure
from ..interp.state import realize
from ..model.dispatch import handles
from ..model.value import ConstantVariable, ObjectVariable, VariableTracker
from ..semantics import calls
from . import recompute, steady
from .modes import guard_answer, hooks_disabled, set_hooks_disabled
from .reentrant import run_in_both_modes
from .selective import Selection

# Keywords of checkpoint() itself; others go to the function. Those without effect on what is computed may have any value.
_REENTRANT = ("preserve_rng_state", "determinism_check", "early_stop")
_HARMLESS = ("preserve_rng_state", "determinism_check", "debug", "early_stop")


@handles(torch.utils.checkpoint.checkpoint)
def checkpoint(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    reentrant = kwargs.pop("use_reentrant", None)
    if not args or not isinstance(reentrant, ConstantVariable) or type(reentrant.value) is not bool:
        raise GraphBreak("untraceable_call", "torch.utils.checkpoint with use_reentrant other than True or False")
    same_numbers, given = kwargs.get("preserve_rng_state"), list(kwargs)
    selection = _selection(tx, kwargs.pop("context_fn", None), kwargs.get("debug"))
    for name in _HARMLESS:
        if not isinstance(kwargs.pop(name, None), (ConstantVariable, type(None))):
            raise GraphBreak("untraceable_call", f"torch.utils.checkpoint with {name} of something other than a constant")
    fn = realize(args[0], tx.state)
    if torch.is_grad_enabled() and steady.may_be_stored_later(tx, fn):
        raise GraphBreak("untraceable_call", "torch.utils.checkpoint of a function whose variables may change before it runs again")
    if reentrant.value and (kwargs or any(name not in _REENTRANT for name in given)):
        raise GraphBreak("untraceable_call", "torch.utils.checkpoint with use_reentrant=True and keywords for the function")
    if not reentrant.value and torch.is_grad_enabled():
        guard_answer(tx, hooks_disabled, tx.state.graph.modes.values[set_hooks_disabled,])
        if hooks_disabled() is not None:
            raise GraphBreak("untraceable_call", "torch.utils.checkpoint where hooks on saved tensors are disabled")
    graph = tx.state.graph.graph
    before = next(iter(reversed(graph.nodes)), None)
    with _run_twice(tx.state, same_numbers is None or bool(same_numbers.value)):
        if reentrant.value and torch.is_grad_enabled():
            result = run_in_both_modes(tx, fn, args[1:])
        else:
            result = calls.call(tx, fn, args[1:], kwargs)
    made = list(itertools.takewhile(lambda node: node is not before, reversed(graph.nodes)))[::-1]
    region = [node for node in made if node.op != "placeholder" and not recompute.is_marked(node)]
    recompute.mark(region)
    if selection is not None and torch.is_grad_enabled():
        selection.mark(region)
    return result


def _selection(tx: Any, context_fn: VariableTracker | None, debug: VariableTracker | None) -> Selection | None:
    if context_fn is None or isinstance(context_fn, ObjectVariable) and context_fn.value is torch.utils.checkpoint.noop_context_fn:
        return None
    if debug is not None:
        raise GraphBreak("untraceable_call", "torch.utils.checkpoint with a context_fn and debug")
    return Selection(tx, context_fn)


@contextlib.contextmanager
def _run_twice(state: Any, same_numbers: bool) -> Iterator[None]:
    """Break where a second run of the region would change something, or give something else. In ``no_grad`` mode there is none."""
    if not torch.is_grad_enabled():
        yield
        return
    graph, mode = state.graph, state.graph.mode
    older = graph.snapshot()
    before = mode.random, mode.written
    mode.random, mode.written = False, {}
    try:
        with pure(state, "torch.utils.checkpoint"):
            yield
        if graph.changed_since(older):
            raise GraphBreak("unsupported_mutation", "torch.utils.checkpoint of what changes a tensor that it did not make")
        if mode.random and not same_numbers:
            raise GraphBreak("random_call", "torch.utils.checkpoint of what draws random numbers, without preserve_rng_state")
    finally:
        mode.random |= before[0]
        mode.written |= before[1]
