"""Methods of sets and frozensets on trackers."""

from __future__ import annotations

from typing import Any

from ..interp.state import realize
from ..model.dispatch import METHODS, method
from ..model.value import (
    NONE,
    DictVariable,
    SetVariable,
    VariableTracker,
    constant,
)
from . import (
    containers,
    hashed,
    iteration,
)


@method(SetVariable, "add")
def set_add(tx: Any, obj: SetVariable, args: list, kwargs: dict) -> VariableTracker:
    hashed.set_add(tx, obj, args[0])
    return NONE


@method(SetVariable, "update")
def set_update(tx: Any, obj: SetVariable, args: list, kwargs: dict) -> VariableTracker:
    for other in args:
        if isinstance(hashed.payload_of(other), (SetVariable, DictVariable)):
            obj.grown = False
        for item in iteration.unpack_iterable(tx, other):
            hashed.set_add(tx, obj, realize(item, tx.state))
    return NONE


@method(SetVariable, "discard", "remove")
def set_discard(tx: Any, obj: SetVariable, args: list, kwargs: dict) -> VariableTracker:
    raise_missing = hashed.hash_key(tx, args[0]) not in obj.items
    if not raise_missing:
        del obj.items[hashed.hash_key(tx, args[0])]
        obj.grown = False
        hashed.changing(tx, obj)
    return NONE


METHODS.pop((SetVariable, "remove"))


@method(SetVariable, "clear")
def set_clear(tx: Any, obj: SetVariable, args: list, kwargs: dict) -> VariableTracker:
    obj.items.clear()
    hashed.changing(tx, obj)
    return NONE


@method(SetVariable, "copy")
def set_copy(tx: Any, obj: SetVariable, args: list, kwargs: dict) -> VariableTracker:
    if obj.cls is frozenset:
        return obj
    return SetVariable(dict(obj.items), cls=obj.cls)


def _set_operation(name: str, fn: Any) -> None:
    def operation(tx: Any, obj: SetVariable, args: list, kwargs: dict) -> VariableTracker:
        table = dict(obj.items)
        keys = set(table)
        for other in args:
            others = {}
            for item in iteration.unpack_iterable(tx, other):
                item = realize(item, tx.state)
                others[hashed.hash_key(tx, item)] = item
            keys = fn(keys, set(others))
            table = {**others, **table}
        return SetVariable({k: v for k, v in table.items() if k in keys}, cls=obj.cls)

    METHODS[SetVariable, name] = operation


@method(SetVariable, "intersection")
def set_intersection(tx: Any, obj: SetVariable, args: list, kwargs: dict) -> VariableTracker:
    table = dict(obj.items)
    for other in args:
        items = [realize(i, tx.state) for i in iteration.unpack_iterable(tx, other)]
        others: dict = {}
        for item in items:
            others.setdefault(hashed.hash_key(tx, item), item)
        table = containers.common_items(table, others, isinstance(hashed.payload_of(other), SetVariable))
    return SetVariable(table, cls=obj.cls)


_set_operation("union", lambda a, b: a | b)
_set_operation("difference", lambda a, b: a - b)
_set_operation("symmetric_difference", lambda a, b: a ^ b)


def _set_update(name: str, operation: str) -> None:
    def update(tx: Any, obj: SetVariable, args: list, kwargs: dict) -> VariableTracker:
        if obj.as_is and not obj.changes:
            obj.as_is = False
        obj.items = METHODS[SetVariable, operation](tx, obj, args, {}).items
        obj.grown = False
        hashed.changing(tx, obj)
        return NONE

    METHODS[SetVariable, name] = update


_set_update("intersection_update", "intersection")
_set_update("difference_update", "difference")
_set_update("symmetric_difference_update", "symmetric_difference")


def _set_question(name: str, fn: Any) -> None:
    def question(tx: Any, obj: SetVariable, args: list, kwargs: dict) -> VariableTracker:
        others = {hashed.hash_key(tx, realize(i, tx.state)) for i in iteration.unpack_iterable(tx, args[0])}
        return constant(fn(set(obj.items), others))

    METHODS[SetVariable, name] = question


_set_question("issubset", lambda a, b: a <= b)
_set_question("issuperset", lambda a, b: a >= b)
_set_question("isdisjoint", lambda a, b: not a & b)
