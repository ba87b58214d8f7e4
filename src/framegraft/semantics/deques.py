"""collections.deque on trackers (CPython: Modules/_collectionsmodule.c)."""

from __future__ import annotations

import collections
from collections.abc import Iterable
from typing import Any

from ..errors import GraphBreak, UserRaise
from ..interp.state import realize, user_error
from ..model.dispatch import constructs, method
from ..model.value import NONE, ConstantVariable, DequeVariable, IteratorVariable, VariableTracker, constant
from . import comparing, containers, hashed, iteration

_FORWARDS, _BACKWARDS = type(iter(collections.deque())), type(reversed(collections.deque()))


@constructs(collections.deque)
def make_deque(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    given = dict(zip(("iterable", "maxlen"), args, strict=False)) | kwargs
    if len(args) > 2 or not given.keys() <= {"iterable", "maxlen"}:
        raise GraphBreak("raised_exception", "deque() with other arguments than it takes")
    limit = given.get("maxlen", NONE)
    if not (isinstance(limit, ConstantVariable) and limit.value is None):
        if not issubclass(limit.python_type(), int):  # deque_init asks for no __index__
            raise UserRaise(user_error(TypeError, "an integer is required"))
        number = containers.index_of(tx, limit)
        if number < 0:
            raise UserRaise(user_error(ValueError, "maxlen must be non-negative"))
        made = DequeVariable([], number)
    else:
        made = DequeVariable([], None)
    if "iterable" in given:
        _extend(tx, made, given["iterable"])
    return made


def _changed(tx: Any, obj: DequeVariable) -> None:
    hashed.changing(tx, obj)


def _replaced(tx: Any, obj: DequeVariable, places: Iterable[int]) -> None:
    """Other items at the same places: deque_ass_item and deque_reverse leave the state that iterators look at."""
    hashed.changing(tx, obj, seen=False)
    obj.replaced.update(places)


def _trimmed(obj: DequeVariable, from_left: bool) -> None:
    """Let go of what is more than ``maxlen``, at the other end than that at which was added."""
    if obj.maxlen is not None and len(obj.items) > obj.maxlen:
        more = len(obj.items) - obj.maxlen
        del obj.items[slice(0, more) if from_left else slice(obj.maxlen, None)]


def _extend(tx: Any, obj: DequeVariable, iterable: VariableTracker) -> None:
    """deque_extend: each item as it comes, for its source may look at the deque."""
    for item in _given(tx, obj, iterable):
        append(tx, obj, [item], {})


def _given(tx: Any, obj: DequeVariable, iterable: VariableTracker) -> Iterable[VariableTracker]:
    """What is to be added. For a deque that holds nothing the iterable is only used up (consume_iterator)."""
    if iterable is obj:
        return list(obj.items)
    if obj.maxlen != 0:
        return iteration.drawn(tx, iterable)
    iteration.all_items(tx, iterable)
    return []


@method(DequeVariable, "append")
def append(tx: Any, obj: DequeVariable, args: list, kwargs: dict) -> VariableTracker:
    obj.items.append(args[0])
    _trimmed(obj, True)
    _changed(tx, obj)
    return NONE


@method(DequeVariable, "appendleft")
def appendleft(tx: Any, obj: DequeVariable, args: list, kwargs: dict) -> VariableTracker:
    obj.items.insert(0, args[0])
    _trimmed(obj, False)
    _changed(tx, obj)
    return NONE


@method(DequeVariable, "extend")
def extend(tx: Any, obj: DequeVariable, args: list, kwargs: dict) -> VariableTracker:
    _extend(tx, obj, args[0])
    return NONE


@method(DequeVariable, "__iadd__")
def iadd(tx: Any, obj: DequeVariable, args: list, kwargs: dict) -> VariableTracker:
    _extend(tx, obj, args[0])
    return obj


@method(DequeVariable, "extendleft")
def extendleft(tx: Any, obj: DequeVariable, args: list, kwargs: dict) -> VariableTracker:
    for item in _given(tx, obj, args[0]):
        appendleft(tx, obj, [item], {})
    return NONE


def _taken(tx: Any, obj: DequeVariable, index: int) -> VariableTracker:
    if not obj.items:
        raise UserRaise(user_error(IndexError, "pop from an empty deque"))
    _changed(tx, obj)
    return obj.items.pop(index)


@method(DequeVariable, "pop")
def pop(tx: Any, obj: DequeVariable, args: list, kwargs: dict) -> VariableTracker:
    return _taken(tx, obj, -1)


@method(DequeVariable, "popleft")
def popleft(tx: Any, obj: DequeVariable, args: list, kwargs: dict) -> VariableTracker:
    return _taken(tx, obj, 0)


@method(DequeVariable, "clear")
def clear(tx: Any, obj: DequeVariable, args: list, kwargs: dict) -> VariableTracker:
    if obj.items:
        obj.items.clear()
        _changed(tx, obj)
    return NONE


@method(DequeVariable, "reverse")
def reverse(tx: Any, obj: DequeVariable, args: list, kwargs: dict) -> VariableTracker:
    obj.items.reverse()
    _replaced(tx, obj, range(len(obj.items)))
    return NONE


@method(DequeVariable, "rotate")
def rotate(tx: Any, obj: DequeVariable, args: list, kwargs: dict) -> VariableTracker:
    count = containers.index_of(tx, args[0]) if args else 1
    if len(obj.items) > 1:
        count %= len(obj.items)
        obj.items[:] = obj.items[-count:] + obj.items[:-count] if count else obj.items
        _changed(tx, obj)
    return NONE


@method(DequeVariable, "copy", "__copy__")
def copy(tx: Any, obj: DequeVariable, args: list, kwargs: dict) -> VariableTracker:
    return DequeVariable(list(obj.items), obj.maxlen)


@method(DequeVariable, "insert")
def insert(tx: Any, obj: DequeVariable, args: list, kwargs: dict) -> VariableTracker:
    if obj.maxlen is not None and len(obj.items) >= obj.maxlen:
        raise UserRaise(user_error(IndexError, "deque already at its maximum size"))
    obj.items.insert(containers.index_of(tx, args[0]), args[1])
    _changed(tx, obj)
    return NONE


def _matches(tx: Any, obj: DequeVariable, wanted: VariableTracker, places: range | None = None) -> Any:
    """For each item, whether it is equal to ``wanted``, and whether asking that has changed the deque."""
    changes = obj.changes
    for index in range(len(obj.items)) if places is None else places:
        equal = comparing.equal_items(tx, realize(obj.items[index], tx.state), wanted)
        yield equal, obj.changes != changes


def _mutated(error: type[Exception] = RuntimeError) -> UserRaise:
    return UserRaise(user_error(error, "deque mutated during iteration"))


@method(DequeVariable, "count")
def count(tx: Any, obj: DequeVariable, args: list, kwargs: dict) -> VariableTracker:
    found = 0
    for equal, mutated in _matches(tx, obj, args[0]):
        if mutated:
            raise _mutated()
        found += equal
    return constant(found)


@method(DequeVariable, "__contains__")
def contains(tx: Any, obj: DequeVariable, args: list, kwargs: dict) -> VariableTracker:
    for equal, mutated in _matches(tx, obj, args[0]):
        if equal:
            return constant(True)
        if mutated:
            raise _mutated()
    return constant(False)


@method(DequeVariable, "remove")
def remove(tx: Any, obj: DequeVariable, args: list, kwargs: dict) -> VariableTracker:
    for index, (equal, mutated) in enumerate(_matches(tx, obj, args[0])):
        if mutated:
            raise _mutated(IndexError)
        if equal:
            del obj.items[index]
            _changed(tx, obj)
            return NONE
    raise _not_in_deque(args[0])


@method(DequeVariable, "index")
def index(tx: Any, obj: DequeVariable, args: list, kwargs: dict) -> VariableTracker:
    ends = [containers.index_of(tx, a) for a in args[1:]]
    places = range(len(obj.items))[slice(*[*ends, None][:2])] if ends else None
    for place, (equal, mutated) in zip(places or range(len(obj.items)), _matches(tx, obj, args[0], places), strict=False):
        if equal:
            return constant(place)
        if mutated:
            raise _mutated()
    raise _not_in_deque(args[0])


def _not_in_deque(wanted: VariableTracker) -> UserRaise:
    if not isinstance(wanted, ConstantVariable):
        raise GraphBreak("raised_exception", "a search for what is not in the deque, whose repr the error tells")
    return UserRaise(user_error(ValueError, f"{wanted.value!r} is not in deque"))


@method(DequeVariable, "__len__")
def length(tx: Any, obj: DequeVariable, args: list, kwargs: dict) -> VariableTracker:
    return constant(len(obj.items))


@method(DequeVariable, "__bool__")
def truth_of(tx: Any, obj: DequeVariable, args: list, kwargs: dict) -> VariableTracker:
    return constant(bool(obj.items))


def _place(tx: Any, obj: DequeVariable, key: VariableTracker) -> int:
    index = containers.index_of(tx, key, "deque")
    if not -len(obj.items) <= index < len(obj.items):
        raise UserRaise(user_error(IndexError, "deque index out of range"))
    return index


@method(DequeVariable, "__getitem__")
def get(tx: Any, obj: DequeVariable, args: list, kwargs: dict) -> VariableTracker:
    return obj.items[_place(tx, obj, args[0])]


@method(DequeVariable, "__setitem__")
def put(tx: Any, obj: DequeVariable, args: list, kwargs: dict) -> VariableTracker:
    place = _place(tx, obj, args[0]) % len(obj.items)
    obj.items[place] = args[1]
    _replaced(tx, obj, (place,))
    return NONE


@method(DequeVariable, "__delitem__")
def delete(tx: Any, obj: DequeVariable, args: list, kwargs: dict) -> VariableTracker:
    del obj.items[_place(tx, obj, args[0])]
    _changed(tx, obj)
    return NONE


@method(DequeVariable, "__iter__")
def iterate(tx: Any, obj: DequeVariable, args: list, kwargs: dict) -> VariableTracker:
    return IteratorVariable(list(obj.items), obj, _FORWARDS)


@method(DequeVariable, "__reversed__")
def backwards(tx: Any, obj: DequeVariable, args: list, kwargs: dict) -> VariableTracker:
    return IteratorVariable(obj.items[::-1], obj, _BACKWARDS)
