"""Attributes of exceptions that the trace has made, with what BaseException keeps in C."""

from __future__ import annotations

import types
from typing import Any

from ..errors import GraphBreak
from ..interp.state import realize
from ..model.value import (
    MISSING,
    NONE,
    BuiltinMethodVariable,
    ConstantVariable,
    ExceptionVariable,
    MethodVariable,
    TracebackVariable,
    TupleVariable,
    VariableTracker,
    constant,
)
from . import calls, instances, lookup
from .wrapping import wrap_pinned

_METHODS = ("with_traceback", "add_note")
NAMING = (AttributeError, NameError)  # exceptions that tell in C members which name was looked for


def exception_attr(tx: Any, obj: ExceptionVariable, name: str) -> VariableTracker:
    if lookup.is_python(tx, obj.cls, "__getattribute__"):
        raise GraphBreak("unsupported_attribute", f"{obj.cls.__name__} has its own __getattribute__")
    found = lookup.mro_lookup(tx, obj.cls, name)
    if isinstance(found, types.MemberDescriptorType) and found.__objclass__ in NAMING:
        return obj.attrs.get(name, NONE)
    if isinstance(found, types.GetSetDescriptorType | types.MemberDescriptorType):
        return _exception_member(obj, name)
    if isinstance(found, types.MethodDescriptorType):
        if name in _METHODS and name not in obj.attrs:
            return BuiltinMethodVariable(name, obj, found)
        raise GraphBreak("unsupported_attribute", f"{obj.cls.__name__}.{name}")
    if found is not MISSING and hasattr(type(found), "__set__"):
        return instances.bind(tx, found, obj, obj.cls, name)
    if name in obj.attrs:
        return obj.attrs[name]
    if found is not MISSING:
        return instances.bind(tx, found, obj, obj.cls, name)
    hook = lookup.mro_lookup(tx, obj.cls, "__getattr__")
    if isinstance(hook, types.FunctionType):
        return calls.call(tx, MethodVariable(wrap_pinned(tx, hook), obj), [constant(name)], {})
    raise lookup.attribute_error(obj, name)


def _exception_member(obj: ExceptionVariable, name: str) -> VariableTracker:
    """What BaseException keeps in C."""
    if name == "args":
        return TupleVariable(list(obj.args))
    if name == "__cause__":
        return NONE if obj.cause is MISSING else obj.cause
    if name == "__suppress_context__":
        return constant(obj.cause is not MISSING)
    if name == "__traceback__":
        return TracebackVariable(obj) if obj.trace else NONE
    if name == "__context__" and (obj.context is not None or not obj.raised):
        return NONE if obj.context is None else obj.context
    if name == "value" and issubclass(obj.cls, StopIteration):
        return obj.args[0] if obj.args else NONE
    raise GraphBreak("unsupported_attribute", f"{obj.cls.__name__}.{name}")


def set_exception_attr(tx: Any, obj: ExceptionVariable, name: str, value: VariableTracker) -> None:
    setter = lookup.mro_lookup(tx, obj.cls, "__setattr__")
    if isinstance(setter, types.FunctionType):
        calls.call(tx, MethodVariable(wrap_pinned(tx, setter), obj), [constant(name), value], {})
        return
    generic_set_exception_attr(tx, obj, name, value)


def generic_set_exception_attr(tx: Any, obj: ExceptionVariable, name: str, value: VariableTracker) -> None:
    """BaseException.__setattr__."""
    tx.state.changed(obj)
    found = lookup.mro_lookup(tx, obj.cls, name)
    if found is MISSING or not hasattr(type(found), "__set__"):
        obj.attrs[name] = value
        return
    value = realize(value, tx.state)
    if isinstance(found, types.MemberDescriptorType) and found.__objclass__ in NAMING:
        obj.attrs[name] = value
        return
    is_none = isinstance(value, ConstantVariable) and value.value is None
    if name == "__traceback__" and (is_none or isinstance(value, TracebackVariable)):
        obj.trace = [] if is_none else list(value.trace)  # type: ignore[attr-defined]
    elif name in ("__cause__", "__context__") and (is_none or issubclass(value.python_type(), BaseException)):
        if name == "__cause__":
            obj.cause = value
        else:
            obj.context = value
    elif lookup.is_plain(tx, found, property, "__set__") and (
            fset := lookup.accessor(found, "fset")) is not None:  # type: ignore[arg-type]
        calls.call(tx, wrap_pinned(tx, fset), [obj, value], {})
    else:
        raise GraphBreak("unsupported_mutation", f"setting {obj.cls.__name__}.{name}")
