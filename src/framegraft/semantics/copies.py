"""The copy module on trackers (CPython: Lib/copy.py)."""

from __future__ import annotations

import collections
import copy
import copyreg
import enum
import types
from typing import Any

from ..errors import GraphBreak
from ..interp.state import realize
from ..model.dispatch import TENSOR, handles
from ..model.source import pinned
from ..model.value import (
    MISSING,
    NONE,
    ConstantVariable,
    DequeVariable,
    DictVariable,
    FunctionVariable,
    ListVariable,
    ObjectVariable,
    SetVariable,
    SymbolicVariable,
    TensorVariable,
    TupleVariable,
    VariableTracker,
    constant,
)
from . import attributes, calls, core, hashed, instances, lookup, making, reducing, storing
from .wrapping import wrap_class


@handles(copy.deepcopy)
def handle_deepcopy(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    given = args[1] if len(args) > 1 else kwargs.get("memo", NONE)
    if len(args) + len(kwargs) > 2 or not args or kwargs.keys() - {"memo"}:
        raise GraphBreak("untraceable_call", "copy.deepcopy with other arguments")
    if not _is_none(given) and not isinstance(given, MemoVariable):
        raise GraphBreak("untraceable_call", "copy.deepcopy with a memo")
    memo: dict = given.memo if isinstance(given, MemoVariable) else {}
    return duplicate(tx, args[0], memo)


class MemoVariable(VariableTracker):
    """What ``__deepcopy__`` gets, for nothing but to hand it on."""

    __slots__ = ("memo",)

    def __init__(self, memo: dict) -> None:
        self.memo = memo
        self.source = None

    def python_type(self) -> type:
        return dict


_ATOMIC = (types.FunctionType, type, types.BuiltinFunctionType, enum.Enum, property, range)


def duplicate(tx: Any, obj: VariableTracker, memo: dict | None) -> VariableTracker:
    """copy.deepcopy, or copy.copy where ``memo`` is None, of what Lib/copy.py copies without calling the program."""
    obj = realize(obj, tx.state)
    if isinstance(obj, (ConstantVariable, SymbolicVariable, FunctionVariable)):
        return obj
    if isinstance(obj, ObjectVariable) and issubclass(type(obj.value), _ATOMIC):
        return obj
    if memo is not None and id(obj) in memo:
        return memo[id(obj)][0]

    def part(value: VariableTracker) -> VariableTracker:
        return value if memo is None else duplicate(tx, value, memo)

    def keep(made: Any) -> Any:
        if memo is not None:
            memo[id(obj)] = (made, obj)
        return made

    if isinstance(obj, TensorVariable):
        return keep(TENSOR.duplicate(tx, obj, memo))
    if isinstance(obj, ListVariable):
        made = keep(ListVariable([]))
        _extend(made, obj, part)
        return made
    if isinstance(obj, DequeVariable):
        made, changes = keep(DequeVariable([], obj.maxlen)), obj.changes
        _extend(made, obj, part)
        if obj.changes != changes:
            raise GraphBreak("untraceable_call", "a copy of a deque that changes meanwhile")
        return made
    if isinstance(obj, TupleVariable):
        items = [part(i) for i in obj.items]
        if memo is not None and id(obj) in memo:  # it is among what its items refer to
            return memo[id(obj)][0]
        return obj if all(a is b for a, b in zip(items, obj.items, strict=True)) else keep(TupleVariable(items))
    if isinstance(obj, DictVariable):
        made = keep(DictVariable({}))
        entries = hashed.complete(tx, obj)
        keys = list(entries)
        for at in keys:
            if at not in entries:
                break
            key, value = entries[at]
            hashed.dict_set(tx, made, realize(part(key), tx.state), part(value))
        if list(entries) != keys:
            raise GraphBreak("untraceable_call", "a copy of a dict that changes meanwhile")
        return made
    if isinstance(obj, SetVariable):
        if memo is None and obj.cls is frozenset:
            return obj
        if memo is not None and not all(isinstance(i, ConstantVariable) for i in obj.items.values()):
            raise GraphBreak("untraceable_call", f"a deep copy of a {obj.cls.__name__} of objects")
        return keep(SetVariable(dict(obj.items), cls=obj.cls, order=None if obj.order is None or memo is not None else obj.order.copy()))
    if isinstance(obj, ObjectVariable) and obj.cls in (collections.OrderedDict, collections.defaultdict):
        return _duplicate_mapping(tx, obj, part, keep)
    if isinstance(obj, ObjectVariable) and type(obj) is ObjectVariable and obj.payload is None and obj.cls.__flags__ & lookup.HEAP_TYPE:
        return _duplicate_object(tx, obj, memo, keep)
    raise GraphBreak("untraceable_call", f"a copy of a {obj.python_type().__name__}")


def _extend(made: Any, obj: Any, part: Any) -> None:
    """Item by item: a ``__deepcopy__`` may change the list, of which the rest is copied as it is then."""
    at = 0
    while at < len(obj.items):
        made.items.append(part(obj.items[at]))
        at += 1


def _duplicate_mapping(tx: Any, obj: ObjectVariable, part: Any, keep: Any) -> VariableTracker:
    """An OrderedDict or defaultdict, by its ``__copy__`` or ``__reduce__``: made of the factory, then item by item."""
    namespace: Any = instances.instance_dict(tx, obj) if obj.cls is collections.OrderedDict else None
    if namespace is not None and hashed.complete(tx, namespace):
        raise GraphBreak("untraceable_call", "a copy of an OrderedDict with attributes")
    factory = [attributes.get_attr(tx, obj, "default_factory")] if obj.cls is collections.defaultdict else []
    made: Any = keep(making.call_class(tx, obj.cls, factory, {}))
    entries: Any = hashed.payload_of(obj)
    for key, value in list(hashed.complete(tx, entries).values()):
        hashed.dict_set(tx, made.payload, realize(part(key), tx.state), part(value))
    return made


def _duplicate_object(tx: Any, obj: ObjectVariable, memo: dict | None, keep: Any) -> VariableTracker:
    """An object of a class of the program: what it, its class and the copy are asked for, they are asked here, too."""
    cls = obj.cls
    reducing.check_class(tx, cls)
    for table in (copyreg.dispatch_table, copy._copy_dispatch if memo is None else copy._deepcopy_dispatch):  # type: ignore[attr-defined]
        if cls in table:
            raise GraphBreak("untraceable_call", f"a copy of a {cls.__name__}, for which copy or copyreg has a function")
        tx.state.guards.add(pinned(table), "NOKEY", cls)
    if memo is None:
        own = reducing.look_up(tx, wrap_class(tx, cls), "__copy__")
    else:
        if cls.__dictoffset__ and lookup.mro_lookup(tx, cls, "__deepcopy__") is MISSING:
            hashed.complete(tx, instances.instance_dict(tx, obj))  # type: ignore[arg-type] # one guard for all that it has not
        own = reducing.look_up(tx, obj, "__deepcopy__")
    if own is not None and not _is_none(own):
        copied = realize(calls.call(tx, own, [obj] if memo is None else [MemoVariable(memo)], {}), tx.state)
        return copied if copied is obj else keep(copied)
    reductor = reducing.look_up(tx, obj, "__reduce_ex__")
    if reductor is None or _is_none(reductor):
        raise GraphBreak("untraceable_call", f"a copy of a {cls.__name__}, which has no __reduce_ex__")
    reduced = realize(calls.call(tx, reductor, [constant(4)], {}), tx.state)
    if isinstance(reduced, ConstantVariable) and isinstance(reduced.value, str):
        return obj
    if type(reduced) is not TupleVariable or not 2 <= len(reduced.items) <= 5:
        raise GraphBreak("untraceable_call", f"a copy of a {cls.__name__}, whose __reduce_ex__ gives no tuple of two to five")
    return _reconstruct(tx, memo, keep, *(realize(i, tx.state) for i in reduced.items))


def _is_none(value: VariableTracker) -> bool:
    return isinstance(value, ConstantVariable) and value.value is None


def _reconstruct(tx: Any, memo: dict | None, keep: Any, func: VariableTracker, args: VariableTracker, state: VariableTracker = NONE,
                 *iterators: VariableTracker) -> VariableTracker:
    """copy._reconstruct."""
    if type(args) is not TupleVariable or not all(map(_is_none, iterators)):
        raise GraphBreak("untraceable_call", "a copy of an object that is made with items")
    given = args.items if memo is None else [duplicate(tx, i, memo) for i in args.items]
    made = keep(realize(calls.call(tx, func, given, {}), tx.state))
    if _is_none(state):
        return made
    if memo is not None:
        state = duplicate(tx, state, memo)
    if reducing.look_up(tx, made, "__setstate__") is not None:
        calls.call(tx, attributes.get_attr(tx, made, "__setstate__"), [state], {})
        return made
    slots: VariableTracker = NONE
    if type(state) is TupleVariable and len(state.items) == 2:
        state, slots = (realize(i, tx.state) for i in state.items)
    if not all(type(part) is DictVariable or _is_none(part) for part in (state, slots)):
        raise GraphBreak("untraceable_call", f"a copy of an object whose state is a {state.python_type().__name__}")
    if isinstance(state, DictVariable):
        _update(tx, made, state)
    if isinstance(slots, DictVariable):
        for key, value in list(hashed.complete(tx, slots).values()):
            storing.set_attr(tx, made, core.attribute_name(realize(key, tx.state)), value)
    return made


def _update(tx: Any, made: VariableTracker, state: DictVariable) -> None:
    """``made.__dict__.update(state)``"""
    entries = hashed.complete(tx, state)
    if type(made) is ObjectVariable and made.value is MISSING and made.namespace is None and made.cls.__dictoffset__ and (
            reducing.shows_own_dict(tx, made.cls) and all(_is_free(tx, made.cls, realize(key, tx.state)) for key, _ in entries.values())):
        for key, value in list(entries.values()):
            storing.store_attr(tx, made, key.value, value)  # type: ignore[attr-defined]
        return
    namespace = realize(attributes.get_attr(tx, made, "__dict__"), tx.state)
    calls.call(tx, attributes.get_attr(tx, namespace, "update"), [state], {})


def _is_free(tx: Any, cls: type, key: VariableTracker) -> bool:
    """Whether no descriptor hides the attribute: then it may be set as an attribute as well."""
    if not isinstance(key, ConstantVariable) or type(key.value) is not str:
        return False
    on_class = lookup.mro_lookup(tx, cls, key.value)
    return on_class is MISSING or not lookup.is_data(tx, type(on_class))


@handles(copy.copy)
def handle_copy(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    obj = args[0]
    return obj if isinstance(obj, TupleVariable) else duplicate(tx, obj, None)
