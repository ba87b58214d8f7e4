"""Truth, length and identity."""

from __future__ import annotations

import enum
import sys
import types
from typing import Any

from .._native import type_name
from ..errors import GraphBreak, UserRaise
from ..interp.state import realize, user_error
from ..model.dispatch import TENSOR, specialised
from ..model.value import (
    BuiltinMethodVariable,
    CellVariable,
    ConstantVariable,
    DequeVariable,
    DictVariable,
    ExceptionVariable,
    FunctionVariable,
    ListVariable,
    MethodVariable,
    ObjectVariable,
    SetVariable,
    SliceVariable,
    SymbolicVariable,
    TensorVariable,
    TracebackVariable,
    TupleVariable,
    VariableTracker,
    constant,
)
from . import attributes, calls, containers, hashed, iteration, lookup, members
from .folding import fold
from .hashed import is_nan, payload_of, pin_nan
from .wrapping import NUMBERS_AND_TEXTS


def identical(tx: Any, a: VariableTracker, b: VariableTracker) -> bool:
    if a is b:
        return True
    if type(a) is TupleVariable and type(b) is TupleVariable and not a.items and not b.items:
        return True  # there is one empty tuple
    symbolic = SymbolicVariable in (type(a), type(b))
    if a.python_type() is b.python_type():
        a, b = specialised(a), specialised(b)
    if isinstance(a, ConstantVariable) and isinstance(b, ConstantVariable):
        if type(a.value) is not type(b.value):
            return False
        if is_nan(a.value) and is_nan(b.value):
            return same_nan(tx, a, b)
        if a.value is None or isinstance(a.value, (bool, type(...), type(NotImplemented))):
            return a.value is b.value
        if symbolic and a.value == b.value:
            raise GraphBreak("introspection", "identity of equal numbers")  # of a symbol only the value is known
        if a.source is not None and b.source is not None and type(a.value) in NUMBERS_AND_TEXTS and a.value == b.value:
            same = a.value is b.value
            if a.source != b.source:
                tx.state.guards.add(a.source, "ALIAS" if same else "NOALIAS", (a.source, b.source))
            return same
        if a.source is None and b.source is None and type(a.value) in NUMBERS_AND_TEXTS:
            return a.value is b.value  # made by the trace as the program makes them
        if type(a.value) in NUMBERS_AND_TEXTS and a.value != b.value:
            return False
        if TENSOR.is_constant_type(type(a.value)) and (a.value != b.value or TENSOR.is_singleton_type(type(a.value))):
            return a.value is b.value
        raise GraphBreak("introspection", "identity of equal constants")
    if isinstance(a, ConstantVariable) or isinstance(b, ConstantVariable):
        return False
    if isinstance(a, ObjectVariable) and isinstance(b, ObjectVariable) and not hashed.is_missing(a.value):
        if a.value is b.value:
            return True
        if a.cls is not b.cls or issubclass(type(a.value), hashed.PINNED) or issubclass(type(b.value), hashed.PINNED):
            return False  # guards on classes, or on the very objects, tell them apart in any case
    if isinstance(a, (MethodVariable, BuiltinMethodVariable)) or isinstance(b, (MethodVariable, BuiltinMethodVariable)):
        return False
    if a.source is not None and b.source is not None and a.source != b.source:
        tx.state.guards.add(a.source, "NOALIAS", (a.source, b.source))
    return False


def same_nan(tx: Any, a: ConstantVariable, b: ConstantVariable) -> bool:
    """Whether two constants that are not numbers are one object; guards on their values say nothing of it."""
    if a.source is None or b.source is None:
        for one in (a, b):
            pin_nan(tx, one)
    elif a.source != b.source:
        tx.state.guards.add(a.source, "ALIAS" if a.value is b.value else "NOALIAS", (a.source, b.source))
    return a.value is b.value


def is_(tx: Any, a: VariableTracker, b: VariableTracker) -> VariableTracker:
    return constant(identical(tx, a, b))


def is_not(tx: Any, a: VariableTracker, b: VariableTracker) -> VariableTracker:
    return constant(not identical(tx, a, b))


def not_(tx: Any, a: VariableTracker) -> VariableTracker:
    if isinstance(a, TensorVariable):
        raise GraphBreak("data_dependent_branch", "not of a tensor")
    return constant(not truth(tx, a))


def truth(tx: Any, value: VariableTracker) -> bool:
    """bool(value), for a branch."""
    value = realize(value, tx.state)
    if isinstance(value, ConstantVariable):
        return bool(value.value)
    if isinstance(value, (TensorVariable, SymbolicVariable)):
        return TENSOR.truth(tx, value)
    if isinstance(value, ObjectVariable):
        if issubclass(type(value.value), (types.FunctionType, types.ModuleType, types.BuiltinFunctionType)):
            return True
        if issubclass(type(value.value), type) and type(value.value) is type:
            return True
        for name in ("__bool__", "__len__"):
            method = attributes.special_method(tx, value, name)
            if method is not None and name == "__bool__" and calls.is_builtin_method(method):
                if issubclass(type(value.value), enum.Enum):  # guarded by identity
                    return type(value.value).__bool__(value.value)  # type: ignore[attr-defined]
                if members.has_in_c(tx, value, name):
                    return bool(members.plain_value(value).value)  # type: ignore[union-attr]
                raise GraphBreak("untraceable_call", f"the truth of a {value.cls.__name__}, which C code tells")
            if method is not None:
                result = realize(calls.call(tx, method, [], {}), tx.state)
                if name == "__bool__" and result.python_type() is not bool:
                    text = f"__bool__ should return bool, returned {type_name(result.python_type())}"
                    raise UserRaise(user_error(TypeError, text))
                if name == "__len__" and not (result.python_type() is int and (type(result) is not ConstantVariable or result.value >= 0)):
                    raise GraphBreak("raised_exception", f"__len__ gives a {result.python_type().__name__}")
                return truth(tx, result)
        return True
    if isinstance(value, (ListVariable, TupleVariable, SetVariable, DequeVariable)):
        return bool(value.items)
    if isinstance(value, DictVariable):
        return length(tx, value).value != 0  # type: ignore[attr-defined]
    if isinstance(value, ExceptionVariable):
        for name in ("__bool__", "__len__"):
            if lookup.is_python(tx, value.cls, name):
                return truth(tx, calls.call(tx, attributes.get_attr(tx, value, name), [], {}))
        return True
    if isinstance(value, (FunctionVariable, MethodVariable, BuiltinMethodVariable, CellVariable, TracebackVariable,
                          SliceVariable, *iteration.ITERATORS)):
        return True
    raise GraphBreak("untraceable_call", f"truth of a {value.python_type().__name__}")


def length(tx: Any, obj: VariableTracker) -> VariableTracker:
    inner = payload_of(obj)
    if inner is not obj:
        method = attributes.special_method(tx, obj, "__len__")
        if method is not None and not calls.is_builtin_method(method):
            return _asked_length(tx, method)
    if isinstance(inner, (ListVariable, TupleVariable, SetVariable, DequeVariable)):
        return constant(len(inner.items))
    if isinstance(inner, DictVariable):
        if not inner.complete and inner.source is not None and not inner.items and not inner.value:
            tx.state.guards.add(inner.source, "LEN", 0)
            return constant(0)
        return constant(len(hashed.complete(tx, inner)))
    if isinstance(inner, ConstantVariable):
        return fold(len, [inner])
    if isinstance(inner, TensorVariable):
        return TENSOR.call(tx, len, [inner], {})
    method = attributes.special_method(tx, obj, "__len__")
    if method is None:
        raise UserRaise(user_error(TypeError, f"object of type '{type_name(obj.python_type())}' has no len()"))
    return _asked_length(tx, method)


def _asked_length(tx: Any, method: VariableTracker) -> VariableTracker:
    """What ``__len__`` tells, checked (CPython: slot_sq_length)."""
    told = specialised(realize(calls.call(tx, method, [], {}), tx.state))
    if type(told) is ConstantVariable and type(told.value) in (int, bool):
        if told.value > sys.maxsize:
            raise GraphBreak("raised_exception", f"__len__ gives {told.value}")
        if told.value < 0:
            raise UserRaise(user_error(ValueError, "__len__() should return >= 0"))
        return constant(int(told.value))
    if attributes.special_method(tx, told, "__index__") is None:
        raise UserRaise(user_error(TypeError, f"'{type_name(told.python_type())}' object cannot be interpreted as an integer"))
    return constant(containers.index_of(tx, told))
