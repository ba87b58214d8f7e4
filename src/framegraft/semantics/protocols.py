"""isinstance() with a ``typing.Protocol`` that is checkable at run time (CPython: Lib/typing.py, _ProtocolMeta)."""

from __future__ import annotations

import typing
from typing import Any

from ..bytecode import VERSION
from ..errors import GraphBreak, UserRaise
from ..interp.state import constant_value, realize
from ..model.source import pinned
from ..model.value import MISSING, ConstantVariable, ObjectVariable, VariableTracker
from . import attributes, class_checks, instances, lookup

_META: Any = type(typing.Protocol)


class _Members:
    """Guard accessor: what a protocol asks for, as (is a protocol, is checkable, ((name, is a method), ...))."""

    __name__ = "protocol_members"

    def __call__(self, target: Any) -> tuple:
        names = typing._get_protocol_attrs(target) if VERSION.asks_protocol_members else target.__protocol_attrs__  # type: ignore[attr-defined]
        data = getattr(target, "__non_callable_proto_members__", None)  # CPython 3.13 on
        members = tuple((name, callable(getattr(target, name, None)) if data is None else name not in data) for name in names)
        return (getattr(target, "_is_protocol", False), getattr(target, "_is_runtime_protocol", False), members)


_MEMBERS = _Members()


def _check(tx: Any, obj: VariableTracker, cls: type, target: Any, hook: str) -> bool:
    if target is typing.Protocol or type(target) is not _META or instances.tells_own_class(tx, obj):
        raise GraphBreak("untraceable_call", f"isinstance() of a {cls.__name__} and {target.__name__}")
    if "__protocol_attrs__" not in target.__dict__ and not VERSION.asks_protocol_members and getattr(target, "_is_protocol", False):
        raise GraphBreak("untraceable_call", f"isinstance() with {target.__name__}, whose members are not known")
    if not getattr(target, "_is_protocol", False):
        return class_checks.is_subclass(tx, cls, target)
    told = _MEMBERS(target)
    tx.state.guards.add(pinned(target).child("PYCALL", _MEMBERS), "EQ", told)
    _, checkable, members = told
    if not checkable:
        raise GraphBreak("raised_exception", f"isinstance() with {target.__name__}, which is not checkable at run time")
    if VERSION.asks_protocol_members and not all(is_method for _, is_method in members):
        return _has_all(tx, obj, cls, members) or class_checks.is_subclass(tx, cls, target)
    return class_checks.is_subclass(tx, cls, target) or _has_all(tx, obj, cls, members)


def _has_all(tx: Any, obj: VariableTracker, cls: type, members: tuple) -> bool:
    look = _asked if VERSION.asks_protocol_members else _static
    for name, is_method in members:
        found = look(tx, obj, cls, name)
        if is_method and found is not MISSING:
            found = look(tx, obj, cls, name)  # hasattr(), then getattr()
        if found is MISSING or is_method and constant_value(found) is None:  # a method is blocked by None
            return False
    return True


def _asked(tx: Any, obj: VariableTracker, cls: type, name: str) -> Any:
    """getattr(), MISSING where hasattr() is False."""
    try:
        return realize(attributes.get_attr(tx, obj, name), tx.state)
    except UserRaise as raised:
        if issubclass(raised.value.python_type(), AttributeError):
            return MISSING
        raise


def _static(tx: Any, obj: VariableTracker, cls: type, name: str) -> Any:
    """inspect.getattr_static()"""
    on_class = lookup.mro_lookup(tx, cls, name)
    if on_class is not MISSING and lookup.is_data(tx, type(on_class)) or not isinstance(obj, ObjectVariable):
        if not isinstance(obj, (ObjectVariable, ConstantVariable)):
            raise GraphBreak("untraceable_call", f"isinstance() of a {cls.__name__} and a protocol")
    elif class_checks.is_class(obj):
        raise GraphBreak("untraceable_call", "isinstance() of a class and a protocol")
    else:
        own = instances.instance_dict_attr(tx, obj, name)
        if own is not MISSING:
            return realize(own, tx.state)
    return MISSING if on_class is MISSING else ConstantVariable(None if on_class is None else True)


class_checks.INSTANCE_CHECKS[_META.__dict__["__instancecheck__"]] = _check
