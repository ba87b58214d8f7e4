"""warnings.warn of constant texts: replayed behind the graph, from the line where it was (CPython: Python/_warnings.c, do_warn).

The filters are asked when it is replayed. Where one of them makes errors of warnings, or the program shows them itself, the call
breaks the graph; that none does is guarded. They may be recorded in a list (see ``recording``).
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from ..errors import GraphBreak
from ..interp.frame import origin_of
from ..model.dispatch import handles
from ..model.guards import Condition
from ..model.source import pinned
from ..model.value import NONE, ConstantVariable, ListVariable, ObjectVariable, VariableTracker
from . import core, recording

_POLYFILLS = os.path.join(os.path.dirname(os.path.dirname(__file__)), "polyfills")
_SHOWN: Any = getattr(warnings, "_showwarning_orig", warnings.showwarning)


Edit = tuple[str, Any]  #: "insert", "append" or "clear", and a filter


class _IsOnlyTold(Condition):
    """Guard: no filter makes errors of warnings of a class, and they are shown as CPython does, or recorded."""

    __name__ = "warnings_are_only_told"

    def __init__(self, category: type, edits: tuple[Edit, ...] = ()) -> None:
        self.category = category
        self.edits = edits  # what the program has done to the filters where it warns
        self.key = (category, edits)

    def __call__(self, value: Any) -> bool:
        return warnings.showwarning is _SHOWN and recording.way() is not None and not self._may_be_error()

    def _may_be_error(self) -> bool:
        for action, message, category, module, line in _edited(self.edits):  # the first that matches decides
            if issubclass(self.category, category):
                if action == "error":
                    return True
                if message is None and module is None and line == 0:  # matches every warning of the class
                    return False
        return warnings.defaultaction == "error"  # type: ignore[attr-defined]


def _edited(edits: tuple[Edit, ...]) -> Sequence[Any]:
    if not edits:
        return warnings.filters
    filters = list(warnings.filters)
    for how, item in edits:
        if how == "clear":
            filters.clear()
        elif how == "insert":  # before one that is equal
            filters.insert(0, item)
        elif item not in filters:
            filters.append(item)
    return filters


def warn_again(namespace: dict, text: str, category: type, filename: str, line: int) -> None:
    """What do_warn does once it knows where it was called. Called by transformed code."""
    registry = namespace.setdefault("__warningregistry__", {})
    warnings.warn_explicit(text, category, filename, line, namespace.get("__name__") or "<string>", registry)  # type: ignore[arg-type]


def are_as_told(state: Any) -> bool:
    """Whether nothing that the trace has changed decides what becomes of a warning: that changes behind the graph, too, in no order."""
    for module in (warnings, sys):
        scope = state.scopes.get(id(vars(module)))
        if id(vars(module)) in state.written or scope is not None and scope.stores:
            return False
    return id(state.by_id.get(id(warnings.filters))) not in state.mutated


def guard_lists(state: Any) -> None:
    """Warnings come behind the graph: they are not recorded in a list that the trace has looked into."""
    for tracker in list(state.by_id.values()):
        if type(tracker) is ListVariable and tracker.source is not None:
            state.guards.add(tracker.source, "PY", recording.RECORDS_NONE)


def _category(category: VariableTracker) -> Any:
    if isinstance(category, ConstantVariable) and category.value is None:
        return UserWarning
    found = category.value if isinstance(category, ObjectVariable) else None
    if not isinstance(found, type) or not issubclass(found, Warning):
        raise GraphBreak("untraceable_call", "warnings.warn with something other than a class of warnings")
    return found


@handles(warnings.warn)
def warn(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    given = dict(zip(("message", "category", "stacklevel"), args, strict=False)) | kwargs
    text = given.get("message")
    known = given.keys() <= {"message", "category", "stacklevel"} and len(args) <= 3
    if not known or not isinstance(text, ConstantVariable) or type(text.value) is not str:
        raise GraphBreak("untraceable_call", "warnings.warn of something other than a constant text")
    category = _category(given.get("category", NONE))
    level = core.need_constant(given["stacklevel"], "stacklevel") if "stacklevel" in given else 1
    state = tx.state
    if any(block.records for block in state.catching):
        raise GraphBreak("unsupported_context", "a warning, inside of warnings.catch_warnings(record=True)")
    told = _IsOnlyTold(category, tuple(edit for block in state.catching for edit in block.edits))
    frames = state.frames[-max(level, 1) :] if type(level) is int else []
    if len(frames) < max(level, 1) or any(f.code.co_filename.startswith(_POLYFILLS) for f in frames) or not told(None):
        raise GraphBreak("untraceable_call", "warnings.warn that is an error, or tells a line outside of the captured function")
    frame = frames[0]
    namespace = frame.scope.real
    if "importlib" in frame.code.co_filename:  # whose frames CPython leaves out (is_internal_frame)
        raise GraphBreak("untraceable_call", "warnings.warn in importlib")
    if not are_as_told(state):
        raise GraphBreak("untraceable_call", "warnings.warn behind a change of where warnings go")
    state.changed(None)
    state.guards.add(pinned(warnings), "PY", told)
    state.warned.append((warn_again, namespace, text.value, category, origin_of(frame.code).co_filename, frame.line()))
    return NONE
