"""Builders of iterators and generators, which stand where the trace left them."""

from __future__ import annotations

import collections
from typing import Any

from ..bytecode.code import qualified_name
from ..model.value import (
    AskedIterator,
    CombinedIteratorVariable,
    ConstantVariable,
    DequeVariable,
    DictVariable,
    GeneratorVariable,
    IteratorVariable,
    ListVariable,
    ObjectVariable,
    SetVariable,
    TupleVariable,
    VariableTracker,
)
from ..semantics.lazy import LazyIteratorVariable, SequenceIteratorVariable
from ..semantics.started import Rest, rest_of
from .codegen import Codegen, Unreconstructible, builds, refers_to
from .made import Asked, advanced, new_dict_iterator, new_generator, new_iterator, new_reversed
from .resume import Suspended


def _by_place(cg: Codegen, holder: VariableTracker | None, index: int, view: str = "", backwards: bool = False) -> None:
    """An iterator over a dict, set or deque that has given ``index`` items."""
    cg.load_object(new_dict_iterator)
    cg.load(holder)  # type: ignore[arg-type]
    for part in (index, view, backwards):
        cg.op("LOAD_CONST", part)
    cg.call(4)


@builds(IteratorVariable)
def _iterator(cg: Codegen, t: IteratorVariable) -> None:
    origin, holder = t.origin, t.holder
    backwards = t.kind.__name__.startswith("dict_reverse")
    if holder is not None and issubclass(holder.python_type(), collections.OrderedDict):
        raise Unreconstructible("an iterator over an OrderedDict")
    if isinstance(origin, (ListVariable, TupleVariable)) and origin.items is t.items:
        cg.load_object(new_iterator)
        cg.load(holder)  # type: ignore[arg-type]
        cg.op("LOAD_CONST", t.index)
        cg.call(2)
    elif isinstance(origin, ConstantVariable) and isinstance(origin.value, range):
        rest = origin.value[t.index :]
        cg.load_object(iter)
        cg.load_object(range)
        for part in (rest.start, rest.stop, rest.step):
            cg.op("LOAD_CONST", part)
        cg.call(3)
        cg.call(1)
    elif isinstance(origin, DictVariable) and origin.cls is dict and all(
            a is b for (a, _), b in zip(origin.items.values(), t.items[::-1] if backwards else t.items, strict=False)) and (
            len(origin.items) == len(t.items)):
        if t.broken or origin.source is not None and origin.mutated:
            raise Unreconstructible("an iterator over a dict that has changed")
        _by_place(cg, holder, t.index, t.view, backwards)
    elif isinstance(origin, DequeVariable):
        later = origin.source is not None and origin.changes  # its changes are made when the iterator is there
        if t.broken or later or origin.changes != t.changes or t.kind is not type(iter(collections.deque())):
            raise Unreconstructible("an iterator over a deque that has changed")
        _by_place(cg, holder, t.index)
    elif isinstance(origin, (DictVariable, SetVariable)) and (t.broken or origin.changes != t.changes):
        raise Unreconstructible("an iterator over a container that has changed")
    elif isinstance(origin, SetVariable):
        if origin.source is not None and origin.mutated:
            raise Unreconstructible("an iterator over a set whose changes are made later")
        _by_place(cg, holder, t.index)
    elif isinstance(origin, ConstantVariable):
        cg.load_object(new_iterator)
        cg.load(origin)
        cg.op("LOAD_CONST", t.index)
        cg.call(2)
    elif t.view:
        raise Unreconstructible("an iterator over a view of a dict")
    elif t.kind in (type(reversed([])), type(reversed(()))) and origin is not None:
        if len(t.items) - t.index > len(origin.items):  # type: ignore[attr-defined]
            raise Unreconstructible("a reversed iterator over a list that has become shorter")
        cg.load_object(new_reversed)
        cg.load(holder)  # type: ignore[arg-type]
        cg.op("LOAD_CONST", len(t.items) - 1 - t.index)
        cg.call(2)
    elif t.kind not in (type(iter([])), type(iter(()))):
        raise Unreconstructible(f"a {t.kind.__name__}")
    else:
        cg.load_object(iter)
        cg.load_many(t.items[t.index :])
        cg.op("BUILD_TUPLE" if t.kind is type(iter(())) else "BUILD_LIST", len(t.items) - t.index)
        cg.call(1)
    cg.store_temp(t)


def _asked(cg: Codegen, iterator: VariableTracker) -> None:
    """An iterator for what asks it for its iterator: one of the program has been asked in the trace."""
    if not isinstance(iterator, ObjectVariable):
        cg.load(iterator)
        return
    cg.load_object(Asked)
    cg.load(iterator)
    cg.call(1)


@builds(CombinedIteratorVariable)
def _combined(cg: Codegen, t: CombinedIteratorVariable) -> None:
    if t.kind is AskedIterator:
        _asked(cg, t.iterators[0])
        cg.store_temp(t)
        return
    cg.load_object(t.kind)
    if t.kind in (map, filter):
        if t.fn is None:
            cg.op("LOAD_CONST", None)
        else:
            cg.load(t.fn)
    for iterator in t.iterators:
        _asked(cg, iterator)
    count = len(t.iterators) + (t.kind in (map, filter))
    if t.kind is enumerate:
        cg.op("LOAD_CONST", t.count)
        count += 1
    if t.kind is zip and t.strict:
        cg.op("LOAD_CONST", True)
        cg.op("CALL", (count, ("strict",)))
    else:
        cg.call(count)
    cg.store_temp(t)


@builds(SequenceIteratorVariable)
def _by_number(cg: Codegen, t: SequenceIteratorVariable) -> None:
    if t.started:
        raise Unreconstructible("an iterator through __getitem__ that the trace has started")
    cg.load_object(iter)
    cg.load_many(t.args)
    cg.call(1)
    cg.store_temp(t)


@builds(LazyIteratorVariable)
def _lazy(cg: Codegen, t: LazyIteratorVariable) -> None:
    rest = rest_of(t) if t.started else Rest(t.args, t.kwargs)
    if rest is None:
        raise Unreconstructible(f"an itertools.{t.cls.__name__} that the trace has started")
    if rest.given:
        cg.load_object(advanced)
    cg.load_object(t.cls)
    cg.load_many(rest.args)
    cg.load_many(list(rest.kwargs.values()))
    cg.op("CALL", (len(rest.args), tuple(rest.kwargs)))
    if rest.given:
        cg.op("LOAD_CONST", rest.given)
        cg.call(2)
    cg.store_temp(t)


def _nothing() -> Any:
    return
    yield


@builds(GeneratorVariable)
def _generator(cg: Codegen, t: GeneratorVariable) -> None:
    if t.running or refers_to(t, t, set()):
        raise Unreconstructible("a generator that is running, or refers to itself")
    code = t.frame.code
    cg.load_object(new_generator)
    if t.finished:
        cg.op("LOAD_CONST", _nothing.__code__)
        values, delegate = [], -1
    else:
        suspended = Suspended(t.frame, t.started)
        values, delegate = suspended.values, len(suspended.stack) - 1 if suspended.delegates else -1
        cg.op("LOAD_CONST", suspended.build())
    cg.load_object(t.frame.scope.real)
    cg.load_many(values)
    cg.op("BUILD_TUPLE", len(values))
    for part in (t.started, t.finished, delegate, code.co_name, qualified_name(code)):
        cg.op("LOAD_CONST", part)
    cg.call(8)
    cg.store_temp(t)
