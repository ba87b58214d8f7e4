"""What a call can see of its arguments, and which trackers stand for one another in two calls that do the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from ..model.source import Source
from ..model.value import (
    MISSING,
    CellVariable,
    ConstantVariable,
    DequeVariable,
    DictVariable,
    FunctionVariable,
    LazyVariable,
    ListVariable,
    MethodVariable,
    ObjectVariable,
    SetVariable,
    SliceVariable,
    TensorVariable,
    TupleVariable,
    VariableTracker,
)
from .fake import FakeTensor
from .running import metadata

PLAIN = (ConstantVariable, TensorVariable)
_EXACT = (int, bool, str, bytes, type(None), torch.dtype, torch.device)  # values of which equal ones are alike


class Pairs:
    """Trackers of the first call, and what stands for them in the second."""

    def __init__(self) -> None:
        self._new: dict[int, VariableTracker] = {}
        self.nodes: dict[Any, Any] = {}  # of the graph, in the same way

    def add(self, old: VariableTracker, new: VariableTracker) -> None:
        if old is new:
            return
        if isinstance(old, TensorVariable) and isinstance(new, TensorVariable):
            self._new[id(old)] = new
            self.nodes[old.node] = new.node
        elif isinstance(old, (TupleVariable, ListVariable)) and type(old) is type(new):
            for a, b in zip(old.items, new.items, strict=True):  # type: ignore[attr-defined]
                self.add(a, b)
        elif isinstance(old, ObjectVariable) and isinstance(new, ObjectVariable) and old.payload is not None:
            self.add(old.payload, new.payload)  # type: ignore[arg-type]

    def new(self, old: VariableTracker) -> VariableTracker:
        if isinstance(old, TensorVariable):
            return self._new.get(id(old), old)
        if type(old) is TupleVariable:
            return TupleVariable([self.new(i) for i in old.items])
        if type(old) is ListVariable:
            return ListVariable([self.new(i) for i in old.items])
        if type(old) is SliceVariable:
            return SliceVariable([self.new(i) for i in old.items])
        if type(old) is DictVariable:
            return DictVariable({k: (key, self.new(v)) for k, (key, v) in old.items.items()})
        return old


def as_is(tracker: VariableTracker) -> VariableTracker:
    """A tracker that does not change with the program's lists."""
    if type(tracker) is LazyVariable:
        return tracker if tracker.tracker is None else as_is(tracker.tracker)
    if type(tracker) is ListVariable:
        return ListVariable([as_is(i) for i in tracker.items])
    if type(tracker) is TupleVariable:
        return TupleVariable([as_is(i) for i in tracker.items])
    if type(tracker) is SliceVariable:
        return SliceVariable([as_is(i) for i in tracker.items])
    if type(tracker) is DictVariable and tracker.source is None:
        return DictVariable({k: (key, as_is(v)) for k, (key, v) in tracker.items.items()})
    return tracker


def is_operand(tracker: VariableTracker) -> bool:
    """Whether other tensors can be put in place of those in this argument."""
    if type(tracker) in (TupleVariable, ListVariable, SliceVariable):
        return all(map(is_operand, tracker.items))  # type: ignore[attr-defined]
    if type(tracker) is DictVariable:
        return all(is_operand(v) for _, v in tracker.items.values())
    return type(tracker) in PLAIN or isinstance(tracker, ObjectVariable) and isinstance(tracker.value, type)


def alike(old: VariableTracker, new: VariableTracker) -> bool:
    """Whether the program could not tell the two results apart."""
    if isinstance(old, TensorVariable) and isinstance(new, TensorVariable):
        return metadata(old.fake) == metadata(new.fake)
    if isinstance(old, (TupleVariable, ListVariable)) and type(old) is type(new) and len(old.items) == len(new.items):  # type: ignore[attr-defined]
        return all(map(alike, old.items, new.items))  # type: ignore[attr-defined]
    if isinstance(old, ConstantVariable) and isinstance(new, ConstantVariable):
        return type(old.value) is type(new.value) and repr(old.value) == repr(new.value)
    if isinstance(old, ObjectVariable) and isinstance(new, ObjectVariable) and old.payload is not None and new.payload is not None:
        return alike(old.payload, new.payload)
    return False


def is_plain(tracker: VariableTracker) -> bool:
    """Whether a result is made of tensors of the trace and of constants without a place."""
    if type(tracker) is LazyVariable:
        return tracker.tracker is not None and is_plain(tracker.tracker)
    if type(tracker) is TupleVariable:
        return tracker.source is None and all(is_plain(i) for i in tracker.items)
    plain = type(tracker) in PLAIN and tracker.source is None and not getattr(tracker, "attrs", None)
    return plain and getattr(tracker, "cls", torch.Tensor) is torch.Tensor


def parts_of(tracker: Any) -> list[Any] | None:
    """Trackers that the object holds; None for a kind of object that changes without being counted."""
    kind = type(tracker)
    if kind in (ListVariable, TupleVariable, SliceVariable):
        return list(tracker.appended if kind is ListVariable else tracker.items)
    if kind is DictVariable:
        return [t for pair in tracker.items.values() for t in pair]
    if kind is DequeVariable:
        return list(tracker.items)
    if kind is SetVariable:
        return list(tracker.items.values())
    if kind is CellVariable:
        return [tracker.contents]
    if kind is MethodVariable:
        return [tracker.func, tracker.obj]
    if kind is FunctionVariable:
        return [tracker.defaults, tracker.kwdefaults, tracker.annotations, *tracker.closure, *tracker.attrs.values()]
    if isinstance(tracker, TensorVariable):
        return list(tracker.attrs.values())
    if isinstance(tracker, ObjectVariable):
        return [tracker.payload, tracker.namespace, *tracker.attrs.values(), *tracker.new_args]
    return [] if kind is ConstantVariable else None


class Held:
    """The trace's own objects that hang off objects from outside, and what these hold of those from outside."""

    def __init__(self) -> None:
        self.ids: set[int] = set()
        self.all_known = True  # False: one is of a kind that changes without being counted
        self.tensors: list[TensorVariable] = []
        self.places: set[Source] = set()

    def collect(self, trackers: Iterable[Any]) -> None:
        left = list(trackers)
        while left:
            tracker = left.pop()
            if tracker is None or tracker is MISSING:
                continue
            if tracker.source is not None:
                self.places.add(tracker.source)
            elif type(tracker) is LazyVariable:
                left.append(tracker.tracker)
            elif id(tracker) not in self.ids:
                self.ids.add(id(tracker))
                if isinstance(tracker, TensorVariable):
                    self.tensors.append(tracker)
                parts = parts_of(tracker)
                self.all_known = self.all_known and parts is not None
                left.extend(parts or ())


def shown(tracker: VariableTracker, seen: dict[Any, int], places: list[Source]) -> Any:
    """What a block can see of an argument, None where it may see more than that. ``places``: those of what is from outside."""
    if type(tracker) is LazyVariable:
        if tracker.tracker is None:
            assert tracker.source is not None
            places.append(tracker.source)
            return "place", tracker.source
        tracker = tracker.tracker
    if type(tracker) is ConstantVariable:
        value = tracker.value
        if type(value) in _EXACT:
            return type(value), value
        # of others, unequal ones may compare equal: -0.0, ranges
        return type(value), repr(value) if type(value) in (float, complex) else id(value)
    if tracker.source is not None:
        places.append(tracker.source)
        return "place", tracker.source
    if type(tracker) is TensorVariable:
        fake = tracker.fake
        if tracker.attrs or tracker.value is not None or type(fake) is not FakeTensor or tracker.cls is not torch.Tensor:
            return None
        memory = seen.setdefault(("memory", fake.untyped_storage()._cdata), len(seen)) if fake.layout is torch.strided else None
        return (seen.setdefault(id(tracker), len(seen)), memory, fake.shape, fake.stride(), fake.storage_offset(), fake.dtype,
                fake.device, fake.requires_grad, fake.is_leaf, fake.is_inference(), fake.is_conj(), fake.is_neg())
    if type(tracker) is TupleVariable:
        items = tuple(shown(i, seen, places) for i in tracker.items)
        return None if None in items else (tuple, items)
    return None
