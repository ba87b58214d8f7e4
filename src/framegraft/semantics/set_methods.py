"""Methods of sets and frozensets on trackers."""

from __future__ import annotations

from collections.abc import Iterator
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


def _ends_early(method: Any) -> bool:
    """Whether a method of sets asks an iterator for no more items than it needs for its result: in later versions of CPython."""
    items = iter((1, 2))
    method(items)
    return next(items, None) is not None


_INTERSECTION_ENDS_EARLY = _ends_early({1}.intersection)
_SUBSET_ENDS_EARLY = _ends_early({1}.issubset)
_SUPERSET_ENDS_EARLY = _ends_early({2}.issuperset)


def _drawn(tx: Any, other: VariableTracker) -> Iterator[tuple[Any, VariableTracker]]:
    """The items of an operand, each with its key; of a set what is in it, whatever methods its class has (PyAnySet_Check)."""
    inner = hashed.payload_of(other)
    for item in iteration.drawn(tx, inner if isinstance(inner, SetVariable) else other):
        item = realize(item, tx.state)
        yield hashed.hash_key(tx, item), item


def _collected(tx: Any, other: VariableTracker) -> dict[Any, VariableTracker]:
    """An operand as a set: of equal items the first."""
    found: dict[Any, VariableTracker] = {}
    for key, item in _drawn(tx, other):
        found.setdefault(key, item)
    return found


@method(SetVariable, "union")
def set_union(tx: Any, obj: SetVariable, args: list, kwargs: dict) -> VariableTracker:
    table = dict(obj.items)
    for other in args:
        table = {**_collected(tx, other), **table}
    return SetVariable(table, cls=obj.cls, order=_order_of(tx, "union", obj, args))


@method(SetVariable, "difference")
def set_difference(tx: Any, obj: SetVariable, args: list, kwargs: dict) -> VariableTracker:
    table = dict(obj.items)
    for other in args:
        for key, _ in _drawn(tx, other):
            table.pop(key, None)
    return SetVariable(table, cls=obj.cls, order=_order_of(tx, "difference", obj, args))


@method(SetVariable, "symmetric_difference")
def set_symmetric_difference(tx: Any, obj: SetVariable, args: list, kwargs: dict) -> VariableTracker:
    """The other set is made first: drawing its items may change this one."""
    others, mine = _collected(tx, args[0]), obj.items
    table = {k: v for k, v in others.items() if k not in mine} | {k: v for k, v in mine.items() if k not in others}
    return SetVariable(table, cls=obj.cls, order=_order_of(tx, "symmetric_difference", obj, args))


@method(SetVariable, "intersection")
def set_intersection(tx: Any, obj: SetVariable, args: list, kwargs: dict) -> VariableTracker:
    result = obj
    for other in args:
        result = SetVariable(_common(tx, result, other), cls=obj.cls)
    return SetVariable(dict(result.items), cls=obj.cls, order=_order_of(tx, "intersection", obj, args))


def _common(tx: Any, mine: SetVariable, other: VariableTracker) -> dict[Any, VariableTracker]:
    """set_intersection of two; each item drawn from an iterable is looked for in what the set holds by then."""
    if isinstance(hashed.payload_of(other), SetVariable):
        return containers.common_items(mine.items, _collected(tx, other), True)
    found: dict[Any, VariableTracker] = {}
    for key, item in _drawn(tx, other):
        if key in mine.items:
            found.setdefault(key, item)
            if _INTERSECTION_ENDS_EARLY and len(found) >= len(mine.items):
                break
    return found


@method(SetVariable, "difference_update")
def set_difference_update(tx: Any, obj: SetVariable, args: list, kwargs: dict) -> VariableTracker:
    for other in args:
        _subtract(tx, obj, other)
    return NONE


def _subtract(tx: Any, obj: SetVariable, other: VariableTracker) -> None:
    """set_difference_update_internal: each item is discarded as it comes, for its source may look at the set."""
    order, obj.order = obj.order, None
    if hashed.payload_of(other) is obj:
        set_clear(tx, obj, [], {})
        return
    for key, _ in _drawn(tx, other):
        if key in obj.items:
            _take_away(tx, obj, key)
    obj.order, obj.log, obj.as_is = order, None, False
    hashed.reordered(obj, "difference_update", hashed.shadow(tx, other))
    hashed.changing(tx, obj)


def _set_update(name: str, operation: str) -> None:
    """Those that make another set first, and then take what is in it."""

    def update(tx: Any, obj: SetVariable, args: list, kwargs: dict) -> VariableTracker:
        made = METHODS[SetVariable, operation](tx, obj, args, {})
        operands = [hashed.shadow(tx, a) for a in args]
        if obj.as_is and not obj.changes:
            obj.as_is = False
        obj.items = made.items
        hashed.reordered(obj, name, *operands)
        obj.log = None
        hashed.changing(tx, obj)
        return NONE

    METHODS[SetVariable, name] = update


_set_update("intersection_update", "intersection")
_set_update("symmetric_difference_update", "symmetric_difference")


@method(SetVariable, "issubset")
def set_issubset(tx: Any, obj: SetVariable, args: list, kwargs: dict) -> VariableTracker:
    if _SUBSET_ENDS_EARLY and not isinstance(hashed.payload_of(args[0]), SetVariable):
        return constant(len(_common(tx, obj, args[0])) == len(obj.items))  # 3.12 and later: what is in both is counted
    others = _collected(tx, args[0])
    return constant(obj.items.keys() <= others.keys())


@method(SetVariable, "issuperset")
def set_issuperset(tx: Any, obj: SetVariable, args: list, kwargs: dict) -> VariableTracker:
    keys = (key for key, _ in _drawn(tx, args[0])) if _SUPERSET_ENDS_EARLY else _collected(tx, args[0])
    return constant(all(key in obj.items for key in keys))


@method(SetVariable, "isdisjoint")
def set_isdisjoint(tx: Any, obj: SetVariable, args: list, kwargs: dict) -> VariableTracker:
    return constant(not any(key in obj.items for key, _ in _drawn(tx, args[0])))
