"""Methods that every object has, on trackers."""

from __future__ import annotations

import types
from typing import Any

from .._native import type_name
from ..errors import GraphBreak, UserRaise
from ..interp.state import realize, user_error
from ..model.dispatch import method
from ..model.value import (
    NONE,
    ConstantVariable,
    ExceptionVariable,
    FunctionVariable,
    ListVariable,
    MethodVariable,
    ObjectVariable,
    VariableTracker,
    constant,
)
from . import (
    attributes,
    calls,
    class_attributes,
    core,
    exception_attributes,
    folding,
    instances,
    lookup,
    storing,
)
from .class_checks import is_class
from .wrapping import wrap_pinned


def _first_in_c(cls: type, name: str) -> Any:
    """The slot that a method of that name written in Python, or several, come in front of."""
    return next(b.__dict__[name] for b in cls.__mro__ if isinstance(b.__dict__.get(name), types.WrapperDescriptorType))


def _builtin_base(cls: type) -> type:
    return next(b for b in cls.__mro__ if not b.__flags__ & lookup.HEAP_TYPE)


@method(VariableTracker, "__init__")
def object_init(tx: Any, obj: VariableTracker, args: list, kwargs: dict) -> VariableTracker:
    if isinstance(obj, ExceptionVariable):
        obj.args = list(args)
    elif isinstance(obj, ObjectVariable) and _builtin_base(obj.cls).__init__ is object.__init__ and not args and not kwargs:
        pass
    else:
        raise GraphBreak("unsupported_builtin_method", f"{obj.python_type().__name__}.__init__")
    return NONE


@method(VariableTracker, "__init_subclass__")
def object_init_subclass(tx: Any, obj: VariableTracker, args: list, kwargs: dict) -> VariableTracker:
    return NONE


@method(VariableTracker, "__subclasshook__")
def object_subclasshook(tx: Any, obj: VariableTracker, args: list, kwargs: dict) -> VariableTracker:
    return constant(NotImplemented)


@method(VariableTracker, "__setattr__")
def object_setattr(tx: Any, obj: VariableTracker, args: list, kwargs: dict) -> VariableTracker:
    name = core.attribute_name(args[0])
    if isinstance(obj, ExceptionVariable):
        exception_attributes.generic_set_exception_attr(tx, obj, name, args[1])
        return NONE
    if not isinstance(obj, ObjectVariable) or issubclass(type(obj.value), type):
        raise GraphBreak("unsupported_mutation", f"setting {obj.python_type().__name__}.{name}")
    storing.generic_set_attr(tx, obj, name, args[1])
    return NONE


@method(ObjectVariable, "__delattr__")
def object_delattr(tx: Any, obj: ObjectVariable, args: list, kwargs: dict) -> VariableTracker | None:
    if isinstance(obj, ExceptionVariable) or issubclass(type(obj.value), (type, types.ModuleType, types.FunctionType)):
        return None
    storing.generic_del_attr(tx, obj, core.attribute_name(args[0]))
    return NONE


@method(VariableTracker, "__getattribute__")
def object_getattribute(tx: Any, obj: VariableTracker, args: list, kwargs: dict) -> VariableTracker:
    name = core.attribute_name(args[0])
    if isinstance(obj, ObjectVariable) and not issubclass(type(obj.value), type):
        return instances.generic_get_attr(tx, obj, name, fallback=False)
    if isinstance(obj, ObjectVariable):
        return class_attributes.generic_class_attr(tx, obj, obj.value, name, fallback=False)
    return attributes.get_attr(tx, obj, name)


@method(VariableTracker, "__eq__")
def object_eq(tx: Any, obj: VariableTracker, args: list, kwargs: dict) -> VariableTracker:
    if isinstance(obj, ObjectVariable) and obj.payload is None and _first_in_c(obj.cls, "__eq__") is object.__eq__:
        return constant(True) if obj is args[0] else constant(NotImplemented)
    if isinstance(obj, ConstantVariable) and isinstance(args[0], ConstantVariable):
        return folding.fold(type(obj.value).__eq__, [obj, args[0]])
    raise GraphBreak("unsupported_builtin_method", f"{obj.python_type().__name__}.__eq__")


@method(VariableTracker, "__call__")
def object_call(tx: Any, obj: VariableTracker, args: list, kwargs: dict) -> VariableTracker:
    return calls.call(tx, obj, args, kwargs)


@method(VariableTracker, "__hash__")
def object_hash(tx: Any, obj: VariableTracker, args: list, kwargs: dict) -> VariableTracker:
    raise GraphBreak("introspection", "hash() of an object")


@method(VariableTracker, "mro")
def class_mro(tx: Any, obj: VariableTracker, args: list, kwargs: dict) -> VariableTracker:
    if not is_class(obj):
        raise GraphBreak("unsupported_builtin_method", "mro()")
    return ListVariable([wrap_pinned(tx, c) for c in obj.value.__mro__])  # type: ignore[attr-defined]


def _check_one(name: str, args: list) -> None:
    """Of these methods CPython does not tell how many arguments they take."""
    if len(args) != 1:
        raise UserRaise(user_error(TypeError, f"BaseException.{name}() takes exactly one argument ({len(args)} given)"))


@method(ExceptionVariable, "with_traceback")
def exception_with_traceback(tx: Any, obj: ExceptionVariable, args: list, kwargs: dict) -> VariableTracker:
    _check_one("with_traceback", args)
    exception_attributes.generic_set_exception_attr(tx, obj, "__traceback__", args[0])
    return obj


@method(ExceptionVariable, "add_note")
def exception_add_note(tx: Any, obj: ExceptionVariable, args: list, kwargs: dict) -> VariableTracker:
    """Objects/exceptions.c, BaseException_add_note."""
    _check_one("add_note", args)
    note = args[0]
    if not issubclass(note.python_type(), str):
        raise UserRaise(user_error(TypeError, f"note must be a str, not '{type_name(note.python_type())}'"))
    try:
        notes = realize(exception_attributes.exception_attr(tx, obj, "__notes__"), tx.state)
    except UserRaise as raised:
        if not issubclass(raised.value.python_type(), AttributeError):
            raise
        notes = ListVariable([])
        exception_attributes.set_exception_attr(tx, obj, "__notes__", notes)
    if not issubclass(notes.python_type(), list):
        raise UserRaise(user_error(TypeError, "Cannot add note: __notes__ is not a list"))
    calls.call_method(tx, notes, "append", [note], {})
    return NONE


@method(ObjectVariable, "__get__")
@method(FunctionVariable, "__get__")
def function_get(tx: Any, obj: VariableTracker, args: list, kwargs: dict) -> VariableTracker | None:
    """A Python function as a method of an object (Objects/funcobject.c, func_descr_get); a C getter asked for its attribute."""
    if isinstance(obj, ObjectVariable) and issubclass(obj.cls, (types.GetSetDescriptorType, types.MemberDescriptorType)):
        found = lookup.mro_lookup(tx, args[0].python_type(), obj.value.__name__) if args else None
        if found is obj.value and not (isinstance(args[0], ConstantVariable) and args[0].value is None):
            return attributes.get_attr(tx, args[0], obj.value.__name__)
        return None
    if obj.python_type() is not types.FunctionType or not args:
        return None
    if isinstance(args[0], ConstantVariable) and args[0].value is None:
        return obj if len(args) > 1 and is_class(args[1]) else None
    return MethodVariable(obj, args[0])
