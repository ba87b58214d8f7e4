"""Lists, tuples, dicts and sets: reading, writing, hashing."""

from __future__ import annotations

import collections
import operator
import sys
import types
from collections.abc import Iterator
from typing import Any

from .._native import type_name
from ..errors import GraphBreak, UserRaise
from ..interp.state import realize, user_error
from ..model.dispatch import specialised
from ..model.value import (
    MISSING,
    ConstantVariable,
    DictVariable,
    IteratorVariable,
    ListVariable,
    ObjectVariable,
    SizeVariable,
    SliceVariable,
    TensorVariable,
    TupleVariable,
    VariableTracker,
)
from . import attributes, calls, lookup, members
from .hashed import changing, complete, dict_delete, dict_get, dict_set, payload_of
from .wrapping import SPECIAL_FORM, need_constant_deep, wrap_constant, wrap_pinned


def sequence_items(tx: Any, tracker: VariableTracker) -> list[VariableTracker]:
    tracker = payload_of(tracker)
    if isinstance(tracker, (ListVariable, TupleVariable)):
        return tracker.items
    if isinstance(tracker, ConstantVariable) and isinstance(tracker.value, tuple):
        return [wrap_constant(v) for v in tracker.value]
    raise GraphBreak("unsupported_iterator", f"the items of a {tracker.python_type().__name__}")


# -- dicts


def mapping_items(tx: Any, tracker: VariableTracker) -> Iterator[tuple[VariableTracker, VariableTracker]]:
    """Keys and values as dict_merge takes them: a subclass of dict with its own ``__iter__`` is asked by its methods.

    It asks for all keys first, and for each value when the entry before has been stored.
    """
    inner = payload_of(tracker)
    if isinstance(inner, DictVariable) and not _tells_items(tx, tracker):
        yield from list(complete(tx, inner).values())
        return
    method = attributes.special_method(tx, tracker, "keys")
    if method is None:
        raise UserRaise(user_error(TypeError, f"'{type_name(tracker.python_type())}' object is not a mapping"))
    keys = [realize(k, tx.state) for k in ITERATE[0](tx, realize(calls.call(tx, method, [], {}), tx.state))]
    for key in keys:
        yield key, get_item(tx, tracker, key)


def _tells_items(tx: Any, tracker: VariableTracker) -> bool:
    """Whether a dict's class has methods of its own that dict_merge, or mutablemapping_update, asks for its items."""
    asked = ("__iter__", "keys", "__getitem__") if issubclass(tracker.python_type(), collections.OrderedDict) else ("__iter__",)
    return isinstance(tracker, ObjectVariable) and any(lookup.is_python(tx, tracker.cls, name) for name in asked)


_OWN_CLASS = (collections.OrderedDict, collections.defaultdict)


def like(tx: Any, obj: VariableTracker, payload: DictVariable) -> VariableTracker:
    """A dict with the class of ``obj``, as ``copy`` and ``|`` make it (CPython: odict_copy, defdict_copy, dict_or)."""
    if not isinstance(obj, ObjectVariable) or not issubclass(obj.cls, _OWN_CLASS):
        return payload  # dict's own methods make plain dicts, whatever class they are called on
    if obj.cls not in _OWN_CLASS:
        raise GraphBreak("unsupported_builtin_method", f"copying a {obj.cls.__name__}")
    made = ObjectVariable(MISSING, obj.cls)
    made.payload = payload
    if obj.cls is collections.defaultdict:
        made.attrs["default_factory"] = attributes.get_attr(tx, obj, "default_factory")
    tx.state.dirty += 1
    return made


_ASKED = {
    **dict.fromkeys(("__init__", "update", "__ior__"), ("__setitem__",)),
    **dict.fromkeys(("pop", "popitem"), ("__contains__", "__getitem__", "__delitem__")),
    **dict.fromkeys(("copy", "__or__", "__ror__"), ("__getitem__", "__setitem__")),
    "setdefault": ("__contains__", "__getitem__", "__setitem__"),
}


def check_own_items(tx: Any, obj: VariableTracker, name: str, given: bool = True) -> None:
    """OrderedDict's functions in C go by the item methods that the class of an instance has of its own; ``given``: with arguments."""
    if not isinstance(obj, ObjectVariable) or name not in _ASKED or not issubclass(obj.cls, collections.OrderedDict):
        return
    if not given and name in ("__init__", "update"):
        return
    own = [method for method in _ASKED[name] if lookup.is_python(tx, obj.cls, method)]
    if own:
        raise GraphBreak("unsupported_builtin_method", f"OrderedDict.{name} of a {obj.cls.__name__}, which asks its {', '.join(own)}")


def copied(tx: Any, obj: VariableTracker) -> DictVariable:
    """PyDict_Copy: of a subclass with its own ``__iter__``, what its methods tell."""
    if not _tells_items(tx, obj):
        return DictVariable(dict(complete(tx, payload_of(obj))))  # type: ignore[arg-type]
    made = DictVariable({})
    for key, value in mapping_items(tx, obj):
        dict_set(tx, made, key, value)
    return made


def merge(tx: Any, left: VariableTracker, right: VariableTracker, answering: VariableTracker | None) -> VariableTracker:
    """``left | right`` of two dicts, by the slot of one of them; a mappingproxy leaves it to what it shows."""
    for operand in (left, right):
        check_own_items(tx, operand, "__or__")
    merged, more = copied(tx, left), copied(tx, right)
    for key, (k, v) in more.items.items():
        merged.items[key] = (merged.items[key][0] if key in merged.items else k, v)
    if answering is None or answering.python_type() is types.MappingProxyType:
        answering = left if isinstance(left, ObjectVariable) and issubclass(left.cls, _OWN_CLASS) else right
    return like(tx, answering, merged)


# -- sets


# -- subscripts


def get_item(tx: Any, obj: VariableTracker, key: VariableTracker) -> VariableTracker:
    inner = payload_of(obj)
    if inner is not obj:
        assert isinstance(obj, ObjectVariable)
        method = lookup.mro_lookup(tx, obj.cls, "__getitem__")
        if isinstance(method, types.FunctionType):
            return calls.ask(tx, obj, attributes.special_method(tx, obj, "__getitem__"), [key])  # type: ignore[arg-type]
    if isinstance(inner, (ListVariable, TupleVariable)):
        return sequence_get(tx, inner, key, inner is obj)
    if isinstance(inner, DictVariable):
        return dict_subscript(tx, obj, key)
    if isinstance(inner, ConstantVariable):
        try:
            return wrap_constant(inner.value[_bound(tx, key) if not isinstance(key, SliceVariable) else real_slice(tx, key)])
        except (IndexError, TypeError, KeyError, ValueError) as error:
            raise UserRaise(user_error(type(error), *error.args)) from None
    if isinstance(obj, ObjectVariable) and issubclass(type(obj.value), type):
        return _class_item(tx, obj, key)
    if isinstance(obj, ObjectVariable) and obj.value is not MISSING and type(obj.value).__module__ == "typing":
        return wrap_pinned(tx, _parametrised(obj.value, _type_parameters(tx, key)))
    method = attributes.special_method(tx, obj, "__getitem__")
    if method is None:
        raise UserRaise(user_error(TypeError, f"'{type_name(obj.python_type())}' object is not subscriptable"))
    return calls.ask(tx, obj, method, [key])


def dict_subscript(tx: Any, obj: VariableTracker, key: VariableTracker) -> VariableTracker:
    """dict_subscript: a subclass may have a ``__missing__``, which is asked however the subscript was reached."""
    inner = payload_of(obj)
    assert isinstance(inner, DictVariable)
    found = dict_get(tx, inner, key)
    if found is not None:
        return found
    missing = attributes.special_method(tx, obj, "__missing__") if inner is not obj else None
    if missing is None:
        raise UserRaise(key_error(key))
    return calls.call(tx, missing, [key], {})


def _class_item(tx: Any, obj: ObjectVariable, key: VariableTracker) -> VariableTracker:
    """``cls[key]``: what its metaclass does, an enum's for one, or what ``__class_getitem__`` does (CPython: PyObject_GetItem)."""
    cls: Any = obj.value
    if any(cls is generic for generic in _GENERIC):  # its metaclass may have an ``__eq__`` of its own
        return wrap_pinned(tx, types.GenericAlias(cls, _type_parameters(tx, key)))
    on_meta = lookup.mro_lookup(tx, lookup.metaclass(tx, cls), "__getitem__")
    if isinstance(on_meta, types.FunctionType):
        return calls.call(tx, wrap_pinned(tx, on_meta), [obj, key], {})
    own = lookup.mro_lookup(tx, cls, "__class_getitem__")
    if on_meta is MISSING and own is not MISSING and lookup.is_plain(tx, own, classmethod):
        if getattr(lookup.wrapped(own), "__module__", None) == "typing":
            return wrap_pinned(tx, _parametrised(cls, _type_parameters(tx, key)))
        return calls.call(tx, attributes.get_attr(tx, obj, "__class_getitem__"), [key], {})
    if on_meta is MISSING and own is MISSING:
        raise UserRaise(user_error(TypeError, f"type '{type_name(cls)}' is not subscriptable"))
    raise GraphBreak("unsupported_builtin_method", f"{cls.__name__}[...]")


def _parametrised(generic: Any, parameters: Any) -> Any:
    """A generic type of ``typing`` with parameters: an object without state that anyone may make again."""
    try:
        return generic[parameters]
    except TypeError as error:
        raise UserRaise(user_error(TypeError, *error.args)) from None


_GENERIC = (list, dict, tuple, set, frozenset, type)


def _type_parameters(tx: Any, key: VariableTracker) -> Any:
    """What stands in the brackets of ``list[...]``: classes and constants."""
    if isinstance(key, TupleVariable):
        return tuple(_type_parameters(tx, realize(k, tx.state)) for k in key.items)
    if isinstance(key, ConstantVariable):
        return key.value
    if isinstance(key, ListVariable):  # of Callable[[int], str]
        return [_type_parameters(tx, realize(k, tx.state)) for k in key.items]
    value = key.value if isinstance(key, ObjectVariable) else None
    if issubclass(type(value), (type, types.GenericAlias, types.UnionType, SPECIAL_FORM)):
        return value
    if type(value).__module__ == "typing" and key.source is not None:
        tx.state.guards.pin(key.source, value)
        return value
    raise GraphBreak("unsupported_builtin_method", "a type with parameters that are no classes")


def key_error(key: VariableTracker) -> Any:
    error = user_error(KeyError)
    error.args = [key]
    return error


def _bound(tx: Any, key: VariableTracker) -> Any:
    """A constant, also one in an instance of a subclass of int."""
    if issubclass(key.python_type(), int) and members.has_in_c(tx, key, "__index__"):
        return int.__index__(key.value)  # type: ignore[attr-defined]
    return need_constant_deep(key)


def real_slice(tx: Any, key: SliceVariable) -> slice:
    parts = [_bound(tx, realize(i, tx.state)) for i in key.items]
    if not all(part is None or hasattr(type(part), "__index__") for part in parts):
        raise UserRaise(user_error(TypeError, "slice indices must be integers or None or have an __index__ method"))
    return slice(*parts)


_NO_INDEX = {"list": "list indices must be integers or slices, not {}", "tuple": "tuple indices must be integers or slices, not {}",
             "deque": "sequence index must be integer, not '{}'",
             "repeat": "can't multiply sequence by non-int of type '{}'", "": "'{}' object cannot be interpreted as an integer"}


def index_of(tx: Any, key: VariableTracker, what: str = "") -> int:
    """``key`` as an int; ``what`` needs one (a key of ``_NO_INDEX``, the errors for what is none)."""
    key = specialised(key)
    if isinstance(key, ConstantVariable) and hasattr(type(key.value), "__index__"):
        return operator.index(key.value)
    if isinstance(key, ConstantVariable):
        raise UserRaise(user_error(TypeError, _NO_INDEX[what].format(type_name(type(key.value)))))
    if issubclass(key.python_type(), int) and members.has_in_c(tx, key, "__index__"):
        return int.__index__(key.value)  # type: ignore[attr-defined]
    if issubclass(key.python_type(), int):
        raise GraphBreak("untraceable_call", "an instance of a subclass of int as an index")
    method = attributes.special_method(tx, key, "__index__")
    if method is None or isinstance(key, TensorVariable):
        raise GraphBreak("tensor_item" if isinstance(key, TensorVariable) else "untraceable_call", f"{what} index")
    told = specialised(realize(calls.call(tx, method, [], {}), tx.state))
    if not issubclass(told.python_type(), int):
        raise UserRaise(user_error(TypeError, f"__index__ returned non-int (type {type_name(told.python_type())})"))
    index = index_of(tx, told, what)
    if told.python_type() is not int or not -sys.maxsize <= index <= sys.maxsize:
        raise GraphBreak("raised_exception", f"__index__ gives {told.python_type().__name__} {index}")
    return index


def sequence_get(tx: Any, seq: Any, key: VariableTracker, exact: bool = True) -> VariableTracker:
    """``seq[key]``; ``exact``: it is no part of an instance of a subclass."""
    what = "list" if isinstance(seq, ListVariable) else "tuple"
    if isinstance(key, SliceVariable):
        part = real_slice(tx, key)
        try:
            items = seq.items[part]
        except ValueError as error:  # a step of zero
            raise UserRaise(user_error(ValueError, *error.args)) from None
        if type(seq) is TupleVariable and exact and part.indices(len(seq.items)) == (0, len(seq.items), 1):
            return seq
        if type(seq) is SizeVariable:
            return SizeVariable(items, seq.cls)
        return ListVariable(items) if what == "list" else TupleVariable(items)
    index = index_of(tx, key, what)
    try:
        return seq.items[index]
    except IndexError:
        raise UserRaise(user_error(IndexError, f"{what} index out of range")) from None


def _set_slice(items: list, part: slice, values: list) -> None:
    try:
        items[part] = values
    except ValueError as error:  # a step of zero, or another number of values than places
        raise UserRaise(user_error(ValueError, *error.args)) from None


def _text_of_refusal(step: int) -> str:
    try:
        [][::step] = None  # type: ignore[call-overload]
    except TypeError as error:
        return str(error)
    raise AssertionError


_NOT_ASSIGNED = {True: _text_of_refusal(1), False: _text_of_refusal(2)}  # list_ass_slice, list_ass_subscript


def set_item(tx: Any, obj: VariableTracker, key: VariableTracker, value: VariableTracker) -> None:
    inner = payload_of(obj)
    if inner is not obj:
        assert isinstance(obj, ObjectVariable)
        method = lookup.mro_lookup(tx, obj.cls, "__setitem__")
        if method is MISSING:
            raise UserRaise(user_error(TypeError, f"'{type_name(obj.cls)}' object does not support item assignment"))
        if not isinstance(method, types.WrapperDescriptorType):
            calls.ask(tx, obj, attributes.special_method(tx, obj, "__setitem__"), [key, value], answers=False)  # type: ignore[arg-type]
            return
    if isinstance(inner, DictVariable):
        dict_set(tx, inner, key, value)
        return
    if isinstance(inner, ListVariable):
        if isinstance(key, SliceVariable):
            part = real_slice(tx, key)
            _set_slice(inner.items, part, FAST_ITEMS[0](tx, realize(value, tx.state), _NOT_ASSIGNED[part.step in (None, 1)]))
        else:
            index = index_of(tx, key, "list")
            if not -len(inner.items) <= index < len(inner.items):
                raise UserRaise(user_error(IndexError, "list assignment index out of range"))
            inner.items[index] = value
        changing(tx, inner)
        return
    method = attributes.special_method(tx, obj, "__setitem__")
    if method is None:
        text = f"'{type_name(obj.python_type())}' object does not support item assignment"
        raise UserRaise(user_error(TypeError, text))
    calls.ask(tx, obj, method, [key, value], answers=False)


def iterate(tx: Any, tracker: VariableTracker) -> list[VariableTracker]:
    return list(ITERATE[0](tx, tracker))


ITERATE: list[Any] = []  # set by iteration.py, which builds on this file
FAST_ITEMS: list[Any] = []  # likewise


def del_item(tx: Any, obj: VariableTracker, key: VariableTracker) -> None:
    inner = payload_of(obj)
    own = lookup.mro_lookup(tx, obj.python_type(), "__delitem__")
    if own is MISSING:
        raise UserRaise(user_error(TypeError, _no_deletion(obj, key)))
    if inner is obj or isinstance(own, types.WrapperDescriptorType):
        if isinstance(inner, DictVariable):
            if dict_delete(tx, inner, key) is None:
                raise UserRaise(key_error(key))
            return
        if isinstance(inner, ListVariable):
            if isinstance(key, SliceVariable):
                del inner.items[real_slice(tx, key)]
            else:
                index = index_of(tx, key, "list")
                if not -len(inner.items) <= index < len(inner.items):
                    raise UserRaise(user_error(IndexError, "list assignment index out of range"))
                del inner.items[index]
            changing(tx, inner)
            return
    method = attributes.special_method(tx, obj, "__delitem__")
    if method is None:
        raise UserRaise(user_error(TypeError, _no_deletion(obj, key)))
    calls.ask(tx, obj, method, [key], answers=False)


def _no_deletion(obj: VariableTracker, key: VariableTracker) -> str:
    """What PyObject_DelItem and, for an index into what has sequence slots, PySequence_DelItem say."""
    cls = obj.python_type()
    sequence = hasattr(cls, "__contains__") or cls.__flags__ & lookup.HEAP_TYPE
    does_not = "doesn't" if sequence and key.python_type() is int else "does not"
    return f"'{type_name(cls)}' object {does_not} support item deletion"


def common_items(mine: dict, others: dict, is_set: bool) -> dict:
    """set_intersection: the items of the other one that are in this one, or the other way round where the other is a larger set."""
    if is_set and len(others) > len(mine):
        mine, others = others, mine
    return {key: item for key, item in others.items() if key in mine}


def iterator_over(items: list[VariableTracker]) -> IteratorVariable:
    return IteratorVariable(items)
