"""What a class has under a name, with the guards that make it stay so (CPython: _PyType_Lookup, tp_mro)."""

from __future__ import annotations

import collections
import types
from typing import Any

from .. import _native
from .._native import type_name
from ..errors import GraphBreak, UserRaise
from ..interp.state import user_error
from ..model.source import pinned
from ..model.value import MISSING, VariableTracker, constant

IMMUTABLE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE: a class of C that can not, though it may have been made like those that can
HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class that has its slots from a class statement and can change


def mro_lookup(tx: Any, cls: type, name: str) -> Any:
    """_PyType_Lookup, recorded as a guard when some class of the MRO can change. MISSING where nothing is found."""
    writes = tx.state.class_writes
    if writes and name in writes and not writes[name].keys().isdisjoint(cls.__mro__):
        raise GraphBreak("unsupported_attribute", f"{cls.__name__}.{name}, which the trace has changed")
    return record(tx, cls, name)


def metaclass(tx: Any, cls: type) -> type:
    """The class of a class, which may be given another one unless it is builtin."""
    meta: Any = type(cls)
    if meta.__flags__ & HEAP_TYPE:
        tx.state.guards.add(pinned(cls), "TYPE", meta)
    return meta


def is_python(tx: Any, cls: type, name: str) -> bool:
    """Whether a class has, or inherits, a method of that name that is written in Python."""
    return isinstance(mro_lookup(tx, cls, name), types.FunctionType)


def container_type(value: Any) -> Any:
    """The builtin container that a value is, or that its class is derived from; another value's own class.

    Its methods look into the value whatever methods the class has of its own.
    """
    return next((cls for cls in type(value).__mro__ if cls in _CONTAINERS), type(value))


_CONTAINERS = (list, tuple, dict, set, frozenset, collections.deque)


def peek(cls: type, name: str) -> Any:
    """_PyType_Lookup, of which nobody is told. MISSING where nothing is found."""
    for base in cls.__mro__:
        namespace = base.__dict__
        if name in namespace:
            return namespace[name]
    return MISSING


def record(tx: Any, cls: type, name: str) -> Any:
    """``mro_lookup`` in the classes as they were at frame entry."""
    found: Any = MISSING
    for base in cls.__mro__:
        namespace = base.__dict__
        if name in namespace:
            found = namespace[name]
            break
    if cls.__flags__ & HEAP_TYPE:
        tx.state.guards.class_lookup(cls, name, _native.MISSING if found is MISSING else found)
    return found


def attribute_error(obj: VariableTracker, name: str) -> UserRaise:
    text = f"'{type_name(obj.python_type())}' object has no attribute '{name}'"
    return UserRaise(user_error(AttributeError, text, name=constant(name), obj=obj))


class _Slotted:
    __slots__ = ("unset",)


def _names_in_full() -> bool:
    """Whether CPython tells the module of a class whose slot is not set: from 3.13 on (PyMember_GetOne)."""
    try:
        return bool(_Slotted().unset)
    except AttributeError as error:
        return __name__ in str(error)


_NAMES_IN_FULL = _names_in_full()


def unset_slot(tx: Any, obj: VariableTracker, name: str) -> UserRaise:
    """The error for a slot without a value."""
    cls = obj.python_type()
    if not _NAMES_IN_FULL:
        return attribute_error(obj, name)
    module, known = told_name(tx, cls, "__module__"), told_name(tx, cls, "__qualname__")
    full = f"{module}.{known}" if type(module) is str and module not in ("__main__", "builtins") else known
    return UserRaise(user_error(AttributeError, f"'{full}' object has no attribute '{name}'", name=constant(name), obj=obj))


def defines(cls: type, name: str) -> bool:
    """Whether instances of a builtin class have an attribute of that name from their class: hasattr() would ask ``type``, too."""
    return any(name in base.__dict__ for base in cls.__mro__)


def is_descriptor(tx: Any, kind: type) -> bool:
    return mro_lookup(tx, kind, "__get__") is not MISSING


def is_plain(tx: Any, found: Any, kind: type, slot: str = "__get__") -> bool:
    """Whether ``found`` is a descriptor of that builtin class, or of a subclass that has left this method of it as it is."""
    own = type(found)
    return own is kind or inherits(own, kind) and mro_lookup(tx, own, slot) is kind.__dict__[slot]


def wrapped(found: Any) -> Any:
    """What a staticmethod or classmethod wraps (CPython: sm_callable, cm_callable), whatever a subclass says of ``__func__``."""
    kind = staticmethod if inherits(type(found), staticmethod) else classmethod
    return kind.__dict__["__func__"].__get__(found)


def has_own_get(tx: Any, found: Any) -> bool:
    """Whether what a class has under a name is a descriptor whose ``__get__`` is the program's, not that of a class written in C."""
    getter = MISSING if type(found) is types.FunctionType else mro_lookup(tx, type(found), "__get__")
    return getter is not MISSING and type(getter) is not types.WrapperDescriptorType


def accessor(found: property, name: str) -> Any:
    """A property's ``fget``, ``fset`` or ``fdel`` (CPython: prop_get and the like), whatever a subclass says of that attribute."""
    return property.__dict__[name].__get__(found)


def is_data(tx: Any, kind: type) -> bool:
    """Whether a descriptor of this class goes before the instance's own attributes (CPython: PyDescr_IsData, tp_descr_get)."""
    if kind is types.FunctionType or not kind.__flags__ & HEAP_TYPE:
        return defines(kind, "__get__") and (defines(kind, "__set__") or defines(kind, "__delete__"))
    if mro_lookup(tx, kind, "__get__") is MISSING:
        return False
    return mro_lookup(tx, kind, "__set__") is not MISSING or mro_lookup(tx, kind, "__delete__") is not MISSING


def inherits(cls: type, base: type) -> bool:
    """PyType_IsSubtype: nobody is asked, as issubclass() and ``==`` ask a metaclass."""
    return type.__subclasscheck__(base, cls)


def guard_kind(tx: Any, cls: type, name: str, found: Any) -> None:
    """What ``cls`` has under a name stays of the class that it is of: its own class tells whether and how it is a descriptor."""
    kind = type(found)
    if kind.__flags__ & HEAP_TYPE and not issubclass(kind, type):
        tx.state.guards.add(pinned(cls).child("TYPEATTR", name), "TYPE", kind)


def guard_bases(tx: Any, cls: type) -> None:
    """The trace has asked what ``cls`` inherits from: its MRO must stay."""
    if cls.__flags__ & HEAP_TYPE and cls not in tx.state.known_bases:
        tx.state.known_bases.add(cls)
        guard_mro(tx, cls)


def guard_mro(tx: Any, cls: type) -> None:
    tx.state.guards.add(pinned(cls), "MRO", cls.__mro__)


def told_name(tx: Any, cls: type, name: str = "__name__") -> str:
    """The name of a class, which may be given another one."""
    told = getattr(cls, name)
    if cls.__flags__ & HEAP_TYPE:
        tx.state.guards.add(pinned(cls).child("ATTR", name), "EQ", told)
    return told


class Same:
    """Guard: a tuple of the very same objects."""

    __name__ = "same_items"

    def __init__(self, value: tuple) -> None:
        self.value = value

    def __call__(self, value: Any) -> bool:
        return len(value) == len(self.value) and all(a is b for a, b in zip(value, self.value, strict=True))
