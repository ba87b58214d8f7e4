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
)
from . import attributes, calls, hashed, instances, lookup, making
from .wrapping import wrap_pinned


@handles(copy.deepcopy)
def handle_deepcopy(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    memo: dict = {}
    if len(args) == 2 and not kwargs and isinstance(args[1], MemoVariable):
        memo = args[1].memo
    elif len(args) != 1 or kwargs:
        raise GraphBreak("untraceable_call", "copy.deepcopy with a memo")
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
_DEFAULT_COPY = {"__deepcopy__": MISSING, "__copy__": MISSING, "__reduce_ex__": object.__reduce_ex__, "__reduce__": object.__reduce__,
                 "__setstate__": MISSING, "__getnewargs__": MISSING, "__getnewargs_ex__": MISSING, "__slots__": MISSING,
                 "__getstate__": getattr(object, "__getstate__", MISSING), "__new__": object.__new__,
                 "__getattribute__": object.__getattribute__, "__getattr__": MISSING}  # asked for __deepcopy__ and __setstate__


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
        made.items.extend(part(i) for i in obj.items)
        return made
    if isinstance(obj, DequeVariable):
        made = keep(DequeVariable([], obj.maxlen))
        made.items.extend(part(i) for i in obj.items)
        return made
    if isinstance(obj, TupleVariable):
        items = [part(i) for i in obj.items]
        if memo is not None and id(obj) in memo:  # it is among what its items refer to
            return memo[id(obj)][0]
        return obj if all(a is b for a, b in zip(items, obj.items, strict=True)) else keep(TupleVariable(items))
    if isinstance(obj, DictVariable):
        made = keep(DictVariable({}))
        for key, value in list(hashed.complete(tx, obj).values()):
            hashed.dict_set(tx, made, realize(part(key), tx.state), part(value))
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
        return _duplicate_object(tx, obj, memo, part, keep)
    raise GraphBreak("untraceable_call", f"a copy of a {obj.python_type().__name__}")


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


def _duplicate_object(tx: Any, obj: ObjectVariable, memo: dict | None, part: Any, keep: Any) -> VariableTracker:
    cls = obj.cls
    if cls in copyreg.dispatch_table:
        raise GraphBreak("untraceable_call", f"a copy of a {cls.__name__}, for which copyreg has a function")
    tx.state.guards.add(pinned(copyreg.dispatch_table), "NOKEY", cls)
    own = lookup.mro_lookup(tx, cls, "__copy__" if memo is None else "__deepcopy__")
    if isinstance(own, types.FunctionType):
        copied = calls.call(tx, wrap_pinned(tx, own), [obj] if memo is None else [obj, MemoVariable(memo)], {})
        return copied if copied is obj else keep(copied)
    for name, default in _DEFAULT_COPY.items():
        if lookup.mro_lookup(tx, cls, name) is not default:
            raise GraphBreak("untraceable_call", f"a copy of a {cls.__name__}, which has its own {name}")
    made = keep(making.new_object(tx, object, [wrap_pinned(tx, cls)], {}))
    namespace = instances.instance_dict(tx, obj)
    for key, value in list(hashed.complete(tx, realize(namespace, tx.state)).values()):  # type: ignore[arg-type]
        on_class = lookup.mro_lookup(tx, cls, key.value)  # type: ignore[attr-defined]
        if on_class is not MISSING and lookup.is_data(tx, type(on_class)):
            raise GraphBreak("untraceable_call", f"a copy of a {cls.__name__}, whose __dict__ has the name of a descriptor")
        made.attrs[key.value] = part(value)  # type: ignore[attr-defined]
    return made


@handles(copy.copy)
def handle_copy(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    obj = args[0]
    return obj if isinstance(obj, TupleVariable) else duplicate(tx, obj, None)
