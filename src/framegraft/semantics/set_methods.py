"""Methods of sets and frozensets on trackers."""

from __future__ import annotations

from typing import Any

from ..errors import GraphBreak, UserRaise
from ..interp.state import realize, user_error
from ..model.dispatch import METHODS, method
from ..model.value import (
    NONE,
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
        hashed.set_update(tx, obj, other)
    return NONE


def _take_away(tx: Any, obj: SetVariable, key: Any) -> VariableTracker:
    item = obj.items.pop(key)
    hashed.reordered(obj, "discard", key)
    if obj.log is not None:
        obj.log.append(("discard", item))
    hashed.changing(tx, obj)
    return item


@method(SetVariable, "discard")
def set_discard(tx: Any, obj: SetVariable, args: list, kwargs: dict) -> VariableTracker:
    key = hashed.element_key(tx, args[0])
    if key in obj.items:
        _take_away(tx, obj, key)
    return NONE


@method(SetVariable, "remove")
def set_remove(tx: Any, obj: SetVariable, args: list, kwargs: dict) -> VariableTracker:
    key = hashed.element_key(tx, args[0])
    if key not in obj.items:
        raise UserRaise(containers.key_error(args[0]))
    _take_away(tx, obj, key)
    return NONE


@method(SetVariable, "pop")
def set_pop(tx: Any, obj: SetVariable, args: list, kwargs: dict) -> VariableTracker:
    if not obj.items:
        raise UserRaise(user_error(KeyError, "pop from an empty set"))
    if len(obj.items) > 1 and obj.order is None:
        raise GraphBreak("unsupported_iterator", "the order of a set from outside, or that the trace has changed")
    key = next(iter(obj.items)) if obj.order is None else obj.order.pop()
    item = obj.items.pop(key)
    obj.log = None
    hashed.changing(tx, obj)
    return item


@method(SetVariable, "clear")
def set_clear(tx: Any, obj: SetVariable, args: list, kwargs: dict) -> VariableTracker:
    obj.items.clear()
    obj.order, obj.log = set(), [("clear", None)]
    hashed.changing(tx, obj)
    return NONE


@method(SetVariable, "copy")
def set_copy(tx: Any, obj: SetVariable, args: list, kwargs: dict) -> VariableTracker:
    if obj.cls is frozenset:
        return obj
    return SetVariable(dict(obj.items), cls=obj.cls, order=None if obj.order is None else obj.order.copy())


def _order_of(tx: Any, name: str, obj: SetVariable, args: list) -> Any:
    """What the method makes of ``order``."""
    operands = [hashed.shadow(tx, a) for a in args]
    return None if obj.order is None or any(o is None for o in operands) else getattr(obj.order, name)(*operands)


def _set_operation(name: str, fn: Any) -> None:
    def operation(tx: Any, obj: SetVariable, args: list, kwargs: dict) -> VariableTracker:
        order = _order_of(tx, name, obj, args)
        table = dict(obj.items)
        keys = set(table)
        for other in args:
            others = {}
            for item in iteration.unpack_iterable(tx, other):
                item = realize(item, tx.state)
                others[hashed.hash_key(tx, item)] = item
            keys = fn(keys, set(others))
            table = {**others, **table}
        return SetVariable({k: v for k, v in table.items() if k in keys}, cls=obj.cls, order=order)

    METHODS[SetVariable, name] = operation


@method(SetVariable, "intersection")
def set_intersection(tx: Any, obj: SetVariable, args: list, kwargs: dict) -> VariableTracker:
    order = _order_of(tx, "intersection", obj, args)
    table = dict(obj.items)
    for other in args:
        items = [realize(i, tx.state) for i in iteration.unpack_iterable(tx, other)]
        others: dict = {}
        for item in items:
            others.setdefault(hashed.hash_key(tx, item), item)
        table = containers.common_items(table, others, isinstance(hashed.payload_of(other), SetVariable))
    return SetVariable(table, cls=obj.cls, order=order)


_set_operation("union", lambda a, b: a | b)
_set_operation("difference", lambda a, b: a - b)
_set_operation("symmetric_difference", lambda a, b: a ^ b)


def _set_update(name: str, operation: str) -> None:
    def update(tx: Any, obj: SetVariable, args: list, kwargs: dict) -> VariableTracker:
        operands = [hashed.shadow(tx, a) for a in args]
        if obj.as_is and not obj.changes:
            obj.as_is = False
        obj.items = METHODS[SetVariable, operation](tx, obj, args, {}).items
        hashed.reordered(obj, name, *operands)
        obj.log = None
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
