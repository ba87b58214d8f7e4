"""Objects and dicts of the program as arguments of ``autograd.Function.apply``: how the graph has them in each call.

Modules, and what ``forward`` keeps for the backward pass, are the very objects, which is guarded. Others are made anew of what they
hold now, tensors among that as inputs of the node, as nobody can tell a copy that is not kept; so are those that the trace has made
and that nobody else holds.
"""

from __future__ import annotations

import enum
import weakref
from collections.abc import Sequence
from typing import Any

import torch

from ..errors import GraphBreak
from ..interp.state import realize
from ..model.value import MISSING, DictVariable, FunctionVariable, ListVariable, ObjectVariable, VariableTracker
from ..semantics import copies, hashed, lookup
from ..semantics.wrapping import CONSTANT_TYPES
from . import steady
from .arguments import FunctionArguments, Recipe, refusal


class ApplyArguments(FunctionArguments):
    """``needed``: what somebody else holds, too; ``kept``: what ``forward`` keeps or returns."""

    def __init__(self, tx: Any, inputs: list, needed: dict[int, VariableTracker], kept: dict[int, VariableTracker]) -> None:
        self.needed = needed
        self.kept = kept
        super().__init__(tx, inputs)

    def is_made(self, tracker: VariableTracker) -> bool:
        tracker = realize(tracker, self.tx.state)
        of_outside = isinstance(tracker, DictVariable) and tracker.source is not None
        return is_object(tracker) or of_outside or self.is_very(tracker) or super().is_made(tracker)

    def check_kept(self) -> None:
        """Break where ``forward`` keeps a copy that differs from the original, or will."""
        for fn in self.copies.values():
            if id(fn) in self.kept and (id(fn) in self.needed or not isinstance(fn, FunctionVariable)):
                raise refusal("that is kept for the backward pass, and held elsewhere, too,")
            if id(fn) in self.kept and isinstance(fn, FunctionVariable) and not steady.holds_what_stays(self.tx, fn):
                raise refusal("that is kept for the backward pass, and whose variables may change before,")

    def recipe(self, tracker: VariableTracker) -> Recipe:
        tracker = realize(tracker, self.tx.state)
        if self.is_very(tracker):
            return self.very(tracker)
        if isinstance(tracker, DictVariable) and tracker.cls is dict and tracker.source is not None:
            return self.entries(tracker)
        if not is_object(tracker):
            return super().recipe(tracker)
        assert isinstance(tracker, ObjectVariable)
        return self.made_anew(tracker)

    def is_very(self, tracker: VariableTracker) -> bool:
        """Whether the object is handed over itself. One that is kept has to be, but a parameter may be another one in each call."""
        if tracker.source is None or not (is_object(tracker) or type(tracker) in (DictVariable, ListVariable)):
            return False
        return issubclass(tracker.python_type(), torch.nn.Module) or id(tracker) in self.kept and tracker.source.base is not None

    def very(self, tracker: Any) -> Recipe:
        value = tracker.value
        self.tx.state.guards.pin(tracker.source, value)
        if type(value) in (dict, list):  # which the guard holds, too: they cannot be referenced weakly
            return lambda values, made: value
        try:
            held = weakref.ref(value)
        except TypeError:
            raise _object_refused(tracker, "which cannot be referenced weakly,") from None
        return lambda values, made: held()

    def made_anew(self, tracker: ObjectVariable) -> Recipe:
        cls = tracker.cls
        if lookup.mro_lookup(self.tx, cls, "__del__") is not MISSING or not _is_plain(cls):
            raise _object_refused(tracker, "which may do something when it dies, or is of a class that is built on one of C,")
        if tracker.value is not MISSING:
            if not all(lookup.mro_lookup(self.tx, cls, name) is getattr(object, name, MISSING) for name in _ASKED):
                raise _object_refused(tracker, "of which a copy may differ,")
            copied: Any = copies.duplicate(self.tx, tracker, None)
            assert isinstance(copied, ObjectVariable)
            tracker = copied
        attrs = dict(tracker.attrs)
        if tracker.namespace is not None:
            attrs |= {key: item for key, (_, item) in hashed.complete(self.tx, tracker.namespace).items()}
        recipes = {name: self.recipe(item) for name, item in attrs.items() if item is not MISSING}

        def make(values: Sequence[Any], made: dict[int, Any]) -> Any:
            fresh = object.__new__(cls)
            for name, item in recipes.items():
                object.__setattr__(fresh, name, item(values, made))
            return fresh

        return make

    def entries(self, tracker: DictVariable) -> Recipe:
        entries = hashed.complete(self.tx, tracker)
        if any(type(key) not in CONSTANT_TYPES for key in entries):
            raise GraphBreak("untraceable_call", "a dict with other keys than constants as an argument of autograd.Function.apply")
        recipes = {key: self.recipe(item) for key, (_, item) in entries.items()}
        return lambda values, made: {key: item(values, made) for key, item in recipes.items()}


_ASKED = ("__copy__", "__reduce_ex__", "__reduce__", "__getstate__", "__setstate__", "__getattribute__")


def is_object(tracker: VariableTracker) -> bool:
    """Whether it stands for an instance of a class of the program, or for a module."""
    if type(tracker) is not ObjectVariable or tracker.payload is not None or issubclass(tracker.cls, (type, enum.Enum)):
        return False
    return bool(tracker.cls.__flags__ & lookup.HEAP_TYPE)


def _is_plain(cls: type) -> bool:
    """Whether instances have attributes and nothing else: ``object.__new__`` refuses the others, and abstract classes."""
    try:
        object.__new__(cls)
    except TypeError:
        return False
    return True


def _object_refused(tracker: VariableTracker, what: str) -> GraphBreak:
    return GraphBreak("untraceable_call", f"a {tracker.python_type().__name__}, {what} as an argument of autograd.Function.apply")
