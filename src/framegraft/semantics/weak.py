"""Reads of ``weakref.WeakKeyDictionary`` and ``WeakValueDictionary`` from outside (CPython: Lib/weakref.py).

What is written to one is written in eager mode: entries hold callbacks that are made there.
"""

from __future__ import annotations

import weakref
from typing import Any

from ..errors import GraphBreak
from ..interp.letting_go import may_have_died
from ..interp.state import realize
from ..model.dispatch import handles
from ..model.value import (
    MISSING,
    NONE,
    ConstantVariable,
    DictVariable,
    LazyVariable,
    ListVariable,
    ObjectVariable,
    VariableTracker,
    constant,
)
from . import attributes, hashed, lookup

_BY_KEY, _BY_VALUE = weakref.WeakKeyDictionary, weakref.WeakValueDictionary


class _ValueOf:
    """Accessor: what the dict of a WeakKeyDictionary has for an object. It keeps nothing alive."""

    def __init__(self, key: Any, name: str) -> None:
        self.key = weakref.ref(key)
        self.__name__ = f"weak_value_of[{name}]"

    def __call__(self, data: dict) -> Any:
        return data.get(self.key, MISSING)


class _Has(_ValueOf):
    """Accessor: whether the dict has something for it."""

    def __call__(self, data: dict) -> bool:
        return self.key in data


class _Lives:
    """Accessor: whether the dict of a WeakValueDictionary has a living object for a constant."""

    def __init__(self, key: Any) -> None:
        self.key = key
        self.__name__ = f"lives[{key!r}]"

    def __call__(self, data: dict) -> bool:
        reference = data.get(self.key)
        return reference is not None and reference() is not None


def _data(tx: Any, obj: VariableTracker, cls: type) -> tuple[dict, Any]:
    """The dict inside, as it was at frame entry, and its source."""
    if not isinstance(obj, ObjectVariable) or obj.value is MISSING or obj.cls is not cls:
        raise GraphBreak("untraceable_call", f"{cls.__name__}, made in the trace, or a subclass")
    data = realize(attributes.get_attr(tx, obj, "data"), tx.state)
    waiting = realize(attributes.get_attr(tx, obj, "_pending_removals"), tx.state)
    if type(data) is not DictVariable or data.mutated or type(data.value) is not dict or data.source is None:
        raise GraphBreak("untraceable_call", f"a {cls.__name__} that the trace has changed")
    if not isinstance(waiting, ListVariable) or waiting.items:  # guards that none waits
        raise GraphBreak("untraceable_call", f"a {cls.__name__} with entries that are to be removed")
    return data.value, data.source


def _find(tx: Any, obj: VariableTracker, key: VariableTracker) -> VariableTracker | None:
    data, source = _data(tx, obj, _BY_KEY)
    key = realize(key, tx.state)
    if not isinstance(key, ObjectVariable) or key.value is MISSING or key.source is None or isinstance(key.value, hashed.PINNED) or any(
            lookup.mro_lookup(tx, key.cls, name) is not getattr(object, name) for name in ("__hash__", "__eq__")):
        raise GraphBreak("untraceable_call", f"look-up of a {key.python_type().__name__} in a WeakKeyDictionary")
    tx.state.guards.pin(key.source, key.value)
    name, has = key.source.name, _Has(key.value, key.source.name)
    tx.state.guards.add(source.child("PYCALL", has), "EQ", has(data))
    if not has(data):
        return None
    value_of = _ValueOf(key.value, name)
    return LazyVariable(value_of(data), source.child("PYCALL", value_of))


@handles(_BY_KEY.__getitem__)
def get_item(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    found = _find(tx, *args)
    if found is None:
        raise GraphBreak("raised_exception", "a key that a WeakKeyDictionary does not have")  # the KeyError has a weak reference
    return found


@handles(_BY_KEY.get)
def get(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    found = _find(tx, *args[:2])
    if found is None:
        return args[2] if len(args) > 2 else kwargs.get("default", NONE)
    return found


@handles(_BY_KEY.__contains__)
def contains(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    return constant(_find(tx, *args) is not None)


@handles(_BY_VALUE.__contains__)
def contains_value(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    data, source = _data(tx, args[0], _BY_VALUE)
    key = realize(args[1], tx.state)
    if type(key) is not ConstantVariable:
        raise GraphBreak("untraceable_call", f"look-up of a {key.python_type().__name__} in a WeakValueDictionary")
    lives = _Lives(key.value)
    answer = lives(data)
    if answer and may_have_died(tx.state, data[key.value]()):
        raise GraphBreak("untraceable_call", "a weak reference to what may have died in the trace")
    tx.state.guards.add(source.child("PYCALL", lives), "EQ", answer)
    return constant(answer)


@handles(_BY_KEY.__len__, _BY_VALUE.__len__)
def length(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    obj = realize(args[0], tx.state)
    data, source = _data(tx, obj, _BY_KEY if obj.python_type() is _BY_KEY else _BY_VALUE)
    if any(may_have_died(tx.state, entry()) for entry in (data if obj.python_type() is _BY_KEY else data.values())):
        raise GraphBreak("untraceable_call", "a weak reference to what may have died in the trace")
    tx.state.guards.add(source, "LEN", len(data))
    return constant(len(data))
