"""What a wrapper subclass tells of itself, as guards: ``__tensor_flatten__`` is traced, which guards what it reads and nothing else.

Where it cannot be traced, a guard asks it again at each call.
"""

from __future__ import annotations

import dataclasses
import types
from typing import Any

import torch

from ..errors import GraphBreak, UserRaise
from ..interp.state import realize
from ..model.value import (
    MISSING,
    ConstantVariable,
    DictVariable,
    ListVariable,
    ObjectVariable,
    TensorVariable,
    TupleVariable,
    VariableTracker,
)
from ..semantics import attributes, calls, hashed, lookup
from ..semantics.wrapping import wrap_pinned
from . import subclasses, wrappers


def guard(state: Any, tensor: TensorVariable) -> None:
    """Guard the names of the tensors inside, and the context."""
    if not _traced(state, tensor):
        wrappers.guard_context(state, tensor.value, tensor.source)  # type: ignore[arg-type]


def _traced(state: Any, tensor: TensorVariable) -> bool:
    told = lookup.peek(tensor.cls, "__tensor_flatten__")
    if not state.frames or type(told) is not types.FunctionType:
        return False
    tx = state.frames[-1]
    parts, context = wrappers.flatten(tensor.value)
    before = _changes(state)
    try:
        with subclasses.switched_off(state):
            result = realize(calls.call(tx, wrap_pinned(tx, told), [tensor], {}), state)
            known = isinstance(result, TupleVariable) and len(result.items) == 2 and _is(tx, result.items[0], list(parts)) and (
                _is(tx, result.items[1], context))
    except (GraphBreak, UserRaise, wrappers.Unknown):
        known = False
    if _changes(state) != before:  # what nobody has called in eager mode must leave no trace
        raise GraphBreak("input_subclass", f"a {tensor.cls.__name__} whose __tensor_flatten__ changes something")
    return known


def _changes(state: Any) -> tuple:
    changed = [key for key, tracker in state.mutated.items() if tracker.source is not None]
    return changed, state.graph.call_count, set(state.written), sum(len(s.stores) for s in state.scopes.values()), len(state.warned)


def _is(tx: Any, tracker: VariableTracker, value: Any) -> bool:
    """Whether a tracker stands for this very value in every call in which the guards hold."""
    tracker = realize(tracker, tx.state)
    if isinstance(tracker, ConstantVariable):
        return type(tracker.value) is type(value) and wrappers.is_same(tracker.value, wrappers.kept(value))
    if isinstance(tracker, (ListVariable, TupleVariable)):
        same = type(value) in (list, tuple, torch.Size) and tracker.python_type() is type(value) and len(tracker.items) == len(value)
        return same and all(_is(tx, item, other) for item, other in zip(list(tracker.items), value, strict=True))
    if type(tracker) is DictVariable:
        if type(value) is not dict:
            return False
        items = {key: item for key, (_, item) in hashed.complete(tx, tracker).items()}
        return items.keys() == value.keys() and all(_is(tx, item, value[key]) for key, item in items.items())
    if type(tracker) is not ObjectVariable or tracker.value is not value or value is MISSING:
        return False
    if isinstance(value, type) or wrappers.is_known(type(value)):
        if tracker.source is not None:
            tx.state.guards.pin(tracker.source, value)
        return True
    fields = getattr(type(value), "__dataclass_fields__", None)
    if not dataclasses.is_dataclass(value) or vars(value).keys() != fields.keys():  # type: ignore[union-attr]
        return False
    return all(_is(tx, attributes.get_attr(tx, tracker, name), vars(value)[name]) for name in vars(value))
