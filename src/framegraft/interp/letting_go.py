"""Where a frame lets go of an object, and something happens when that dies: the trace ends there, so that it dies at its time."""

from __future__ import annotations

import types
import weakref
from typing import Any

import torch

from ..errors import GraphBreak
from ..model.value import LazyVariable, VariableTracker

TELL_NOBODY = frozenset((type(None), bool, int, float, complex, str, bytes, tuple, list, dict, set, frozenset, range, slice, torch.Tensor,
                    torch.nn.Parameter))
_FRAMES = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)


def let_go(tx: Any, tracker: VariableTracker | None) -> None:
    """The frame is about to drop a value. Break where that may be the end of a parameter's object, and the program is told of it."""
    source = tracker.source if tracker is not None else None
    if source is None or source.access != "ARG":
        return
    value = getattr(tracker, "value", None)
    if type(value) not in TELL_NOBODY and tells(value) and _holders(tx.state, tracker) <= 1:
        raise GraphBreak("finaliser", f"a {type(value).__name__}, which tells when it dies")


def tells(value: Any) -> bool:
    """Whether something happens when the object dies."""
    kind = type(value)
    if issubclass(kind, torch.inference_mode):  # what it has entered is left then
        return "_inference_mode_context" in vars(value)
    if any("__del__" in base.__dict__ for base in kind.__mro__) or issubclass(kind, _FRAMES) and _waits(value):
        return True
    return kind.__weakrefoffset__ != 0 and any(r.__callback__ is not None for r in weakref.getweakrefs(value))


def _waits(value: Any) -> bool:
    """Whether a generator or coroutine has begun and not ended."""
    frame = getattr(value, "gi_frame", None) or getattr(value, "cr_frame", None) or getattr(value, "ag_frame", None)
    return frame is not None and frame.f_lasti > 0


def _held(state: Any) -> list[Any]:
    """What the variables and stacks of the frames in the trace hold."""
    return [v for frame in state.frames
            for v in (*frame.locals.values(), *frame.stack, *(cell.contents for cell in frame.cells.values()))]


def _holders(state: Any, tracker: Any) -> int:
    """How many variables and stack entries of the frames in the trace hold the value."""
    return sum(held is tracker or isinstance(held, LazyVariable) and held.tracker is tracker for held in _held(state))


def may_have_died(state: Any, value: Any) -> bool:
    """Whether the trace may have let go of ``value``, an object from outside: of one that may hold it, and no frame holds it itself."""
    trackers = _held(state)
    if any(getattr(v, "value", None) is value for v in trackers):
        return False
    if state.outside:
        return True
    held = set(map(id, trackers))
    return any(id(v) not in held and type(v.value) not in (type(None), bool, int, float, str) for v in state.arguments)
