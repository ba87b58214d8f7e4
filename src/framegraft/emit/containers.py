"""Builders of lists, tuples, slices, dicts and sets."""

from __future__ import annotations

import collections

from ..model.value import (
    ConstantVariable,
    DequeVariable,
    DictVariable,
    ListVariable,
    SetVariable,
    SizeVariable,
    SliceVariable,
    TupleVariable,
    VariableTracker,
)
from .codegen import LITERALS, Codegen, Unreconstructible, builds, refers_to


@builds(ListVariable)
def _list(cg: Codegen, t: ListVariable) -> None:
    if refers_to(t, t, set()):
        cg.op("BUILD_LIST", 0)
        cg.store_temp(t)
        for item in t.items:
            cg.load(item)
            cg.op("LIST_APPEND", 1)
        return
    if len(t.items) > 2 and all(
            type(i) is ConstantVariable and i.source is None and type(i.value) in LITERALS and i.value == i.value for i in t.items):
        cg.op("BUILD_LIST", 0)
        cg.op("LOAD_CONST", tuple(i.value for i in t.items))
        cg.op("LIST_EXTEND", 1)
    else:
        cg.load_many(t.items)
        cg.op("BUILD_LIST", len(t.items))
    cg.store_temp(t)


@builds(DequeVariable)
def _deque(cg: Codegen, t: DequeVariable) -> None:
    cg.load_object(collections.deque)
    cg.op("LOAD_CONST", ())
    cg.op("LOAD_CONST", t.maxlen)
    cg.call(2)
    cg.store_temp(t)
    for item in t.items:
        cg.load_object(collections.deque.append)
        cg.op("LOAD_FAST", cg.temps[id(t)])
        cg.load(item)
        cg.call(2)
        cg.op("POP_TOP")


@builds(TupleVariable)
def _tuple(cg: Codegen, t: TupleVariable) -> None:
    cg.load_many(t.items)
    if cg.closed(t, len(t.items)):
        return
    cg.op("BUILD_TUPLE", len(t.items))
    if t.items:
        cg.store_temp(t)


@builds(SizeVariable)
def _size(cg: Codegen, t: SizeVariable) -> None:
    cg.load_object(t.cls)
    cg.load_many(t.items)
    cg.op("BUILD_TUPLE", len(t.items))
    cg.call(1)
    cg.store_temp(t)


@builds(SliceVariable)
def _slice(cg: Codegen, t: SliceVariable) -> None:
    cg.load_many(t.items)
    cg.op("BUILD_SLICE", 3)
    cg.store_temp(t)


@builds(DictVariable)
def _dict(cg: Codegen, t: DictVariable) -> None:
    if t.owner is not None:
        cg.load(t.owner)
        cg.op("POP_TOP")
        cg.op("LOAD_FAST", cg.temps[id(t)])
        return
    cg.op("BUILD_MAP", 0)
    cg.store_temp(t)
    for key, value in t.items.values():
        cg.load(key)
        cg.load(value)
        cg.op("MAP_ADD", 1)


def _as_ordered(t: SetVariable) -> list:
    """A set's items in an order in which a set made of them gives them again: that in which the program's own set does."""
    if t.log is not None:  # all were added one by one
        return list(t.items.values())
    keys = list(t.items if t.order is None else t.order)
    if len(keys) > 1:
        known = t.order is not None or t.as_is and not t.changes
        if known and list(t.cls(keys)) != keys or not known and all(not isinstance(key, VariableTracker) for key in keys):
            raise Unreconstructible("a set in an order that hangs on how it came to be")
    return [t.items[key] for key in keys]


@builds(SetVariable)
def _set(cg: Codegen, t: SetVariable) -> None:
    if t.order is not None and t.log and any(method != "add" for method, _ in t.log):
        # all of it once more: what comes later finds the same order, too
        cg.load_object(set)
        cg.call(0)
        cg.store_temp(t)
        cg.op("POP_TOP")
        for method, item in t.log:
            cg.load_object(getattr(set, method))
            cg.op("LOAD_FAST", cg.temps[id(t)])
            if item is not None:
                cg.load(item)
            cg.call(1 if item is None else 2)
            cg.op("POP_TOP")
        cg.op("LOAD_FAST", cg.temps[id(t)])
        return
    cg.load_object(t.cls)
    cg.load_many(_as_ordered(t))
    if cg.closed(t, len(t.items) + 1):
        return
    cg.op("BUILD_LIST", len(t.items))
    cg.call(1)
    cg.store_temp(t)
