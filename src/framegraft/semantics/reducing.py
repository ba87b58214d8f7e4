"""What an object is made anew of: object.__reduce_ex__ and what it calls, on trackers (CPython: Objects/typeobject.c, Lib/copyreg.py).

Everything that the program can answer for (``__reduce__``, ``__getstate__``, slots) is asked as CPython asks it, in its order.
"""

from __future__ import annotations

import copyreg
import types
from typing import Any

from ..errors import GraphBreak, UserRaise
from ..interp.state import constant_value, realize
from ..model.dispatch import handles, method
from ..model.value import MISSING, NONE, DictVariable, ObjectVariable, TupleVariable, VariableTracker, constant
from . import attributes, calls, class_attributes, hashed, instances, lookup
from .wrapping import wrap_class, wrap_pinned

_ASKED_OF_CLASSES = ("__getattribute__", "__getattr__", "__setattr__", "__hash__", "__eq__")
_TOLD_BY_OBJECT = ("__reduce_ex__", "__reduce__", "__getstate__")
_HAS_GETSTATE = lookup.defines(object, "__getstate__")
_POINTER = object.__basicsize__ // 2


def look_up(tx: Any, obj: VariableTracker, name: str) -> VariableTracker | None:
    """An attribute that may be missing: None where the look-up raises AttributeError (CPython: _PyObject_LookupAttr)."""
    try:
        return realize(attributes.get_attr(tx, obj, name), tx.state)
    except UserRaise as raised:
        if not issubclass(raised.value.python_type(), AttributeError):
            raise
        return None


def asks_program(tx: Any, cls: type) -> bool:
    """Whether code of the program may run where an attribute of an instance is looked for, and is not there."""
    return (lookup.mro_lookup(tx, cls, "__getattribute__") is not object.__getattribute__
            or lookup.mro_lookup(tx, cls, "__getattr__") is not MISSING)


def shows_own_dict(tx: Any, cls: type) -> bool:
    """Whether ``__dict__`` of an instance is what it keeps its attributes in, and nobody is told that it is taken."""
    return isinstance(lookup.mro_lookup(tx, cls, "__dict__"), types.GetSetDescriptorType) and not asks_program(tx, cls)


def check_class(tx: Any, cls: type) -> None:
    """A class is looked up in tables, and asked for methods and slots: its own class must leave that to ``type``."""
    meta = type(cls)
    if meta is not type and any(lookup.mro_lookup(tx, meta, name) is not lookup.peek(type, name) for name in _ASKED_OF_CLASSES):
        raise GraphBreak("untraceable_call", f"a copy of a {cls.__name__}, whose class is a {meta.__name__}")


def _is_made_in_python(tx: Any, cls: type) -> bool:
    """Whether instances hold nothing but a ``__dict__`` and slots (CPython: object_getstate_default, ``required``)."""
    if not cls.__flags__ & lookup.HEAP_TYPE or next(b for b in cls.__mro__ if not b.__flags__ & lookup.HEAP_TYPE) is not object:
        return False
    size = object.__basicsize__ + _POINTER * ((cls.__dictoffset__ > 0) + (cls.__weakrefoffset__ > 0) + len(_slot_names(tx, cls)))
    return cls.__basicsize__ <= size and not any(_is_told_in_c(base) for base in cls.__mro__[:-1])


def _is_told_in_c(cls: type) -> bool:
    return any(name in cls.__dict__ and not isinstance(cls.__dict__[name], types.FunctionType) for name in _TOLD_BY_OBJECT)


@method(ObjectVariable, "__reduce_ex__")
def object_reduce_ex(tx: Any, obj: ObjectVariable, args: list, kwargs: dict) -> VariableTracker | None:
    protocol = constant_value(args[0]) if args else None
    if type(obj) is not ObjectVariable or obj.payload is not None or type(protocol) is not int or protocol < 2:
        return None
    cls = obj.cls
    check_class(tx, cls)
    if not _is_made_in_python(tx, cls):
        return None
    reduce = look_up(tx, obj, "__reduce__")
    if reduce is not None:
        on_class = realize(class_attributes.class_attr(tx, wrap_class(tx, cls), cls, "__reduce__"), tx.state)  # type: ignore[arg-type]
        if not isinstance(on_class, ObjectVariable) or on_class.value is not object.__reduce__:
            return calls.call(tx, reduce, [], {})
    for name in ("__getnewargs_ex__", "__getnewargs__"):
        if lookup.mro_lookup(tx, cls, name) is not MISSING:
            raise GraphBreak("untraceable_call", f"a copy of a {cls.__name__}, which has its own {name}")
    if _HAS_GETSTATE:
        state = realize(calls.call(tx, attributes.get_attr(tx, obj, "__getstate__"), [], {}), tx.state)
    else:
        getstate = look_up(tx, obj, "__getstate__")
        state = _default_state(tx, obj) if getstate is None else realize(calls.call(tx, getstate, [], {}), tx.state)
    return TupleVariable([wrap_pinned(tx, _NEWOBJ), TupleVariable([wrap_class(tx, cls)]), state, NONE, NONE])


@method(ObjectVariable, "__getstate__")
def object_getstate(tx: Any, obj: ObjectVariable, args: list, kwargs: dict) -> VariableTracker | None:
    if not _HAS_GETSTATE or type(obj) is not ObjectVariable or obj.payload is not None or not _is_made_in_python(tx, obj.cls):
        return None
    return _default_state(tx, obj)


def _default_state(tx: Any, obj: ObjectVariable) -> VariableTracker:
    """The ``__dict__`` itself, None for an empty one, or a pair of that and of a dict of the slots that are set."""
    cls = obj.cls
    state: VariableTracker = NONE
    if cls.__dictoffset__:
        if not isinstance(lookup.mro_lookup(tx, cls, "__dict__"), types.GetSetDescriptorType):
            raise GraphBreak("untraceable_call", f"a copy of a {cls.__name__}, which has its own __dict__")
        namespace: Any = realize(instances.instance_dict(tx, obj), tx.state)
        if hashed.complete(tx, namespace):
            state = namespace
        elif not _HAS_GETSTATE and (asks_program(tx, cls) or lookup.mro_lookup(tx, cls, "__setstate__") is not MISSING):
            # None, or the empty dict if it has been made, which nothing tells without making it
            raise GraphBreak("untraceable_call", f"a copy of a {cls.__name__} without attributes")
    slots = DictVariable({})
    for name in _slot_names(tx, cls):
        value = look_up(tx, obj, name)
        if value is not None:
            hashed.dict_set(tx, slots, constant(name), value)
    return TupleVariable([state, slots]) if slots.items else state


def _slot_names(tx: Any, cls: type) -> list[str]:
    """copyreg._slotnames, which keeps its answer in the class."""
    names: list[str] = []
    if lookup.mro_lookup(tx, cls, "__slots__") is not MISSING:
        for base in cls.__mro__:
            lookup.record(tx, base, "__slots__")
            slots = base.__dict__.get("__slots__", ())
            slots = (slots,) if type(slots) is str else slots
            if type(slots) not in (tuple, list) or not all(type(name) is str for name in slots):
                raise GraphBreak("untraceable_call", f"a copy of a {cls.__name__}, whose slots are named by a {type(slots).__name__}")
            names += [_mangled(tx, base, name) for name in slots if name not in ("__dict__", "__weakref__")]
    if cls.__dict__.get("__slotnames__", names) != names:
        raise GraphBreak("untraceable_call", f"a copy of a {cls.__name__}, which has its own __slotnames__")
    return names


def _mangled(tx: Any, cls: type, name: str) -> str:
    private = name.startswith("__") and not name.endswith("__")
    prefix = lookup.told_name(tx, cls).lstrip("_") if private else ""
    return f"_{prefix}{name}" if prefix else name


_NEWOBJ: Any = copyreg.__newobj__  # type: ignore[attr-defined]


@handles(_NEWOBJ)
def handle_newobj(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    return calls.call(tx, attributes.get_attr(tx, args[0], "__new__"), args, kwargs)
