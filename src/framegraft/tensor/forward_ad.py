"""``torch.autograd.forward_ad`` inside of a trace: the level is entered for real, so that fake tensors carry fake tangents.

The graph enters and leaves it, too. A level is never open where a graph ends: tensors with tangents belong to one graph alone. Where the
trace would end inside, it ends before the level is entered. While a level from outside is open, nothing is captured: fake tensors
know nothing of the tangents of real ones, nor does the code of all compilers.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.autograd.forward_ad as forward_ad

from ..errors import GraphBreak
from ..interp.state import constant_value, realize
from ..model.dispatch import handles
from ..model.value import MISSING, NONE, TensorVariable, VariableTracker, constant
from ..semantics import making
from .modes import enter_level, exit_level, switch_node
from .running import run_node


def unpack(tensor: torch.Tensor) -> tuple:
    """In a graph: ``unpack_dual`` without its class."""
    primal, tangent = forward_ad.unpack_dual(tensor)
    return primal, tangent


def _is_plain(tx: Any, obj: VariableTracker) -> bool:
    return realize(obj, tx.state).python_type() is forward_ad.dual_level


@handles(forward_ad.dual_level.__enter__)
def enter(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    graph = tx.state.graph
    if not _is_plain(tx, args[0]) or tx.inst.op != "BEFORE_WITH" or graph.body is not None or tx.state.pure:
        raise GraphBreak("unsupported_context", "a dual_level that is not entered by a with statement of the function")
    if forward_ad._current_level >= 0 or torch.is_inference_mode_enabled():
        raise GraphBreak("unsupported_context", "a dual_level inside of another one, or of inference mode")
    graph.modes.level = -1
    switch_node(tx, enter_level, ())
    forward_ad.enter_dual_level()
    graph.levels += 1
    tx.state.outside += 1  # for blocks: the node is none of those that they repeat
    return constant(0)


@handles(forward_ad.dual_level.__exit__)
def leave(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    graph = tx.state.graph
    if not _is_plain(tx, args[0]) or not graph.levels:
        raise GraphBreak("unsupported_context", "a dual_level left that was entered outside of the trace")
    switch_node(tx, exit_level, ())
    forward_ad.exit_dual_level()
    graph.levels -= 1
    tx.state.outside += 1
    return NONE


def _check(tx: Any, tensors: list, kwargs: dict) -> list:
    tensors = [realize(t, tx.state) for t in tensors]
    level = constant_value(realize(kwargs["level"], tx.state)) if "level" in kwargs else None
    if not tx.state.graph.levels or level not in (None, 0) or level is MISSING or kwargs.keys() - {"level"}:
        raise GraphBreak("untraceable_call", "forward_ad at a level that was entered outside of the trace")
    if not all(isinstance(t, TensorVariable) for t in tensors):
        raise GraphBreak("untraceable_call", "forward_ad of something other than tensors")
    return tensors


@handles(forward_ad.make_dual)
def make_dual(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    if len(args) != 2:
        raise GraphBreak("untraceable_call", "make_dual with keyword arguments")
    return run_node(tx, "call_function", forward_ad.make_dual, _check(tx, args, kwargs), {})


@handles(forward_ad.unpack_dual)
def unpack_dual(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    if len(args) != 1:
        raise GraphBreak("untraceable_call", "unpack_dual with keyword arguments")
    parts: Any = run_node(tx, "call_function", unpack, _check(tx, args, kwargs), {})
    return making.call_class(tx, forward_ad.UnpackedDualTensor, parts.items, {})
