"""Attributes of classes and of ``super()``: CPython's type.__getattribute__ and super_getattro."""

from __future__ import annotations

import types
from typing import Any

from .._native import type_name
from ..errors import GraphBreak, UserRaise
from ..interp.state import realize, user_error
from ..model.dispatch import HANDLERS
from ..model.source import pinned
from ..model.value import (
    MISSING,
    NONE,
    BuiltinMethodVariable,
    LazyVariable,
    MethodVariable,
    ObjectVariable,
    SuperVariable,
    VariableTracker,
    constant,
)
from . import calls, class_writes, instances, lookup
from .wrapping import CONSTANT_TYPES, wrap_class, wrap_constant, wrap_pinned

_OF_CLASS = (types.MemberDescriptorType, types.GetSetDescriptorType)


def class_attr(tx: Any, obj: ObjectVariable, cls: type, name: str) -> VariableTracker:
    meta = lookup.metaclass(tx, cls)
    getattribute = lookup.mro_lookup(tx, meta, "__getattribute__") if meta is not type else MISSING
    if isinstance(getattribute, types.FunctionType):
        return instances.or_fallback(
            tx, obj, name, lambda: calls.call(tx, MethodVariable(wrap_pinned(tx, getattribute), obj), [constant(name)], {}))
    return generic_class_attr(tx, obj, cls, name)


def generic_class_attr(tx: Any, obj: ObjectVariable, cls: type, name: str, fallback: bool = True) -> VariableTracker:
    """type.__getattribute__, then the metaclass's ``__getattr__``."""
    meta = lookup.metaclass(tx, cls)
    if name in ("__name__", "__qualname__", "__module__"):
        return constant(lookup.told_name(tx, cls, name))
    if name == "__class__":
        return wrap_class(tx, meta)
    if name in ("__mro__", "__bases__"):
        if name == "__mro__":
            lookup.guard_mro(tx, cls)
        else:
            tx.state.guards.add(pinned(cls).child("ATTR", name), "PY", lookup.Same(cls.__bases__))
        return wrap_constant(getattr(cls, name))
    if name == "__dict__" and (meta is type or lookup.mro_lookup(tx, meta, name) is _DICT):
        return _namespace(tx, cls)
    if meta is not type:
        on_meta = lookup.mro_lookup(tx, meta, name)
        if on_meta is not MISSING:
            lookup.guard_kind(tx, meta, name, on_meta)
        if on_meta is not MISSING and lookup.is_data(tx, type(on_meta)):
            return instances.bind(tx, on_meta, obj, meta, name)
    else:
        on_meta = MISSING
    stored = class_writes.written(tx, cls, name)
    if stored is MISSING:
        stored = class_writes.number(tx, cls, name)
    if stored is not MISSING:
        return stored
    found = class_writes.found(tx, cls, name)
    if found is MISSING:
        if meta is type and lookup.defines(type, name):
            return _type_member(tx, obj, cls, name)
        if on_meta is not MISSING:
            return instances.bind(tx, on_meta, obj, meta, name)
        if fallback and lookup.mro_lookup(tx, meta, "__getattr__") is not MISSING:
            return calls.call(tx, instances.bind(tx, lookup.mro_lookup(tx, meta, "__getattr__"), obj, meta, name), [constant(name)], {})
        text = f"type object '{type_name(cls)}' has no attribute '{name}'"
        raise UserRaise(user_error(AttributeError, text))
    lookup.guard_kind(tx, cls, name, found)
    in_c = isinstance(found, _OF_CLASS)
    if in_c and meta is type and lookup.defines(type, name):
        return _type_member(tx, obj, cls, name)  # ``types.SimpleNamespace.__dict__``: type's data descriptors come first
    if lookup.is_plain(tx, found, staticmethod):
        return wrap_pinned(tx, lookup.wrapped(found))
    if lookup.is_plain(tx, found, classmethod):
        return class_method(tx, found, obj, name)
    if lookup.has_own_get(tx, found):
        return instances.bind(tx, found, NONE, cls, name, owner=obj)
    if isinstance(found, types.ClassMethodDescriptorType) and id(found) in HANDLERS:
        return MethodVariable(wrap_pinned(tx, found), obj)
    if in_c or isinstance(found, (types.FunctionType, property)) or callable(found):
        if in_c or not hasattr(type(found), "__get__") or isinstance(found, (types.FunctionType, property)):
            return class_value(tx, cls, name, found)
        try:
            value = getattr(cls, name)
        except AttributeError:
            raise lookup.attribute_error(obj, name) from None
        return wrap_pinned(tx, value) if value is found or _is_stable(value) else _unbound(tx, cls, name, value)
    if lookup.is_descriptor(tx, type(found)):
        return instances.bind(tx, found, NONE, cls, name, owner=obj)
    return class_value(tx, cls, name, found)


def _type_member(tx: Any, obj: ObjectVariable, cls: type, name: str) -> VariableTracker:
    """What ``type`` itself gives to classes."""
    found = lookup.mro_lookup(tx, type, name)
    if isinstance(found, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        return BuiltinMethodVariable(name, obj)
    if name == "__base__":
        lookup.guard_mro(tx, cls)
        return wrap_constant(cls.__base__)
    raise GraphBreak("unsupported_attribute", f"{cls.__name__}.{name}")


_DICT: Any = type.__dict__["__dict__"]


def _namespace(tx: Any, cls: type) -> VariableTracker:
    """A new mappingproxy of what a class has itself."""
    proxy = cls.__dict__
    tx.state.keep_alive.append(proxy)  # which tells later that the trace has looked at what it must not set
    made = ObjectVariable(MISSING, types.MappingProxyType)
    made.payload = tx.state.builder.proxied(proxy, pinned(cls).child("ATTR", "__dict__"))
    return made


def _is_stable(value: Any) -> bool:
    return issubclass(type(value), (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType))


def _unbound(tx: Any, cls: type, name: str, value: Any) -> VariableTracker:
    if issubclass(type(value), types.BuiltinFunctionType):
        return wrap_pinned(tx, value)
    raise GraphBreak("unsupported_attribute", f"{cls.__name__}.{name}")


def class_value(tx: Any, cls: type, name: str, found: Any) -> VariableTracker:
    """The identity of a value found on a class is guarded already; its contents are reached through it."""
    known = tx.state.by_id.get(id(found))
    if known is not None:
        return known
    if type(found) in CONSTANT_TYPES:
        return constant(found)
    if isinstance(found, (types.FunctionType, type)) or callable(found):
        return wrap_pinned(tx, found)
    raw = type(cls) is not type or name in vars(type) or lookup.is_descriptor(tx, type(found))  # ``cls.__name__`` is something else
    return LazyVariable(found, pinned(cls).child("RAWTYPEATTR" if raw else "TYPEATTR", name))


# CPython 3.9 to 3.12 bind what a class method wraps, if that is a descriptor; the others make a method of it.
_BINDS_WRAPPED = classmethod(property(lambda cls: 1)).__get__(None, object) == 1  # type: ignore[arg-type]


def class_method(tx: Any, found: classmethod, owner: Any, name: str) -> VariableTracker:
    """cm_descr_get: what is wrapped is bound in its turn, to the class."""
    inner = lookup.wrapped(found)
    if not _BINDS_WRAPPED and type(inner) is not types.FunctionType:
        raise GraphBreak("unsupported_attribute", f"a class method of a {type(inner).__name__}")
    if type(inner) is types.FunctionType or not lookup.is_descriptor(tx, type(inner)):
        return MethodVariable(wrap_pinned(tx, inner), owner)
    wrap_pinned(tx, inner)  # what the class has under the name is the class method around it
    tx.state.guards.add(pinned(inner), "TYPE", type(inner))
    return instances.bind(tx, inner, owner, owner.value, name, owner=owner)


def super_attr(tx: Any, obj: SuperVariable, name: str) -> VariableTracker:
    target = realize(obj.obj, tx.state)
    is_class = isinstance(target, ObjectVariable) and issubclass(type(target.value), type) and issubclass(target.value, obj.start)
    cls = target.value if is_class else target.python_type()  # type: ignore[attr-defined]
    lookup.guard_mro(tx, cls)
    mro = cls.__mro__
    if not lookup.inherits(cls, obj.start):
        raise GraphBreak("unsupported_attribute", f"super().{name} of an object whose __class__ names another class than type()")
    start = next(place for place, base in enumerate(mro) if base is obj.start)
    for base in mro[start + 1 :]:
        if name in base.__dict__:
            found = lookup.mro_lookup(tx, base, name)
            lookup.guard_kind(tx, base, name, found)
            if is_class:
                if isinstance(found, types.FunctionType):
                    return wrap_pinned(tx, found)
                if lookup.is_plain(tx, found, classmethod):
                    return class_method(tx, found, target, name)
                if name == "__new__":
                    return wrap_pinned(tx, getattr(base, name))
                if lookup.is_plain(tx, found, property):
                    return wrap_pinned(tx, found)
                if isinstance(found, types.ClassMethodDescriptorType):
                    return BuiltinMethodVariable(name, target, found)
                if not isinstance(found, (types.WrapperDescriptorType, types.MethodDescriptorType)):
                    return instances.bind(tx, found, NONE, base, name, owner=target)
            if isinstance(found, types.ClassMethodDescriptorType):
                raise GraphBreak("unsupported_attribute", f"super().{name}, a class method written in C")
            if isinstance(found, (types.WrapperDescriptorType, types.MethodDescriptorType)):
                return MethodVariable(wrap_pinned(tx, found), target)
            return instances.bind(tx, found, target, base, name, owner=wrap_class(tx, cls))
        lookup.mro_lookup(tx, base, name)
    raise UserRaise(user_error(AttributeError, f"'super' object has no attribute '{name}'"))
