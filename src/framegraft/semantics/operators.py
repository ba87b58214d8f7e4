"""Operators: constants are folded by the real function, user types go through CPython's slot algorithm."""

from __future__ import annotations

import builtins
import enum
import operator
from typing import Any

from .._native import type_name
from ..bytecode import ops
from ..errors import GraphBreak, UserRaise
from ..interp.state import realize, user_error
from ..model.dispatch import TENSOR, settled, specialised
from ..model.value import (
    FALSE,
    TRUE,
    ChangingVariable,
    ConstantVariable,
    DequeVariable,
    DictVariable,
    ExceptionVariable,
    ListVariable,
    ObjectVariable,
    SetVariable,
    SymbolicVariable,
    TensorVariable,
    TupleVariable,
    VariableTracker,
    constant,
)
from . import attributes, calls, containers, hashed, iteration, lookup, members
from .arithmetic import BINARY, INPLACE, binary, inplace
from .comparing import COMPARE, compare, equal_items
from .folding import fold
from .hashed import payload_of
from .truth import is_, is_not, length, not_, truth
from .wrapping import need_constant_deep, wrap_constant

_UNARY = {operator.neg: "__neg__", operator.pos: "__pos__", operator.invert: "__invert__"}
_NUMBERS = (ConstantVariable, SymbolicVariable)


def apply(tx: Any, fn: Any, args: list[VariableTracker]) -> VariableTracker:
    """The value of an operator or of one of the functions that instructions call (iter, len, getitem ...)."""
    special = _SPECIAL.get(fn)
    if special is not None:
        return special(tx, *args)
    if all(type(a) is ConstantVariable for a in args):
        return fold(fn, args)
    if any(isinstance(a, TensorVariable) for a in args):
        if fn in (operator.mod, operator.imod) and issubclass(args[0].python_type(), (str, bytes, bytearray)):
            raise GraphBreak("tensor_item", "formatting of a tensor with %")
        return TENSOR.call(tx, fn, args, {})
    if any(type(a) is ChangingVariable for a in args):
        return apply(tx, fn, [settled(a) for a in args])
    if any(type(a) is SymbolicVariable for a in args) and all(type(a) in _NUMBERS for a in args):
        result = TENSOR.symbolic(tx, fn, args)
        return result if result is not None else apply(tx, fn, [specialised(a) for a in args])
    if any(type(a) is ConstantVariable and isinstance(a.value, tuple) for a in args):
        folded = _fold_tuples(tx, fn, args)  # torch.Size with a tuple
        if folded is not None:
            return folded
    if fn in COMPARE:
        return compare(tx, fn, *args)
    if fn in INPLACE:
        return inplace(tx, fn, *args)
    if fn in BINARY:
        return binary(tx, fn, args[0], args[1])
    if fn in _UNARY:
        method = attributes.special_method(tx, args[0], _UNARY[fn])
        if method is None:
            raise GraphBreak("raised_exception", f"{fn.__name__} of a {args[0].python_type().__name__}")
        return calls.call(tx, method, [], {})
    if fn is operator.index:
        return constant(containers.index_of(tx, args[0]))
    raise GraphBreak("untraceable_call", f"{fn.__name__} of {', '.join(a.python_type().__name__ for a in args)}")


def _fold_tuples(tx: Any, fn: Any, args: list[VariableTracker]) -> VariableTracker | None:
    for arg in args:
        if isinstance(arg, TupleVariable):
            arg.items[:] = [realize(i, tx.state) for i in arg.items]
        elif not isinstance(arg, ConstantVariable):
            return None
    try:
        values = [ConstantVariable(need_constant_deep(a)) for a in args]
    except GraphBreak:
        return None
    return fold(fn, values)  # type: ignore[arg-type]


def contains(tx: Any, item: VariableTracker, container: VariableTracker) -> VariableTracker:
    inner = payload_of(container)
    if isinstance(container, ObjectVariable):
        if lookup.mro_lookup(tx, container.cls, "__contains__") is None:
            raise UserRaise(user_error(TypeError, f"'{type_name(container.cls)}' object is not a container"))
        method = attributes.special_method(tx, container, "__contains__")
        if method is not None and not calls.is_builtin_method(method):
            return constant(truth(tx, calls.call(tx, method, [item], {})))
    if isinstance(inner, ConstantVariable) and isinstance(item, ConstantVariable):
        return fold(operator.contains, [inner, item])
    if isinstance(inner, ConstantVariable) and isinstance(inner.value, (str, bytes)):
        plain = members.plain_value(item)
        if plain is not None and type(plain.value) is type(inner.value) is str:
            return fold(operator.contains, [inner, plain])
        raise GraphBreak("raised_exception", f"a {item.python_type().__name__} looked for in a {inner.python_type().__name__}")
    if isinstance(container, ObjectVariable) and inner is container and method is not None:
        return calls.call_method(tx, container, "__contains__", [item], {})
    if isinstance(inner, DictVariable):
        return constant(hashed.dict_get(tx, inner, item) is not None)
    if isinstance(inner, SetVariable):
        return constant(hashed.element_key(tx, item) in inner.items)
    if isinstance(inner, TensorVariable):
        raise GraphBreak("data_dependent_branch", "in of a tensor")
    if isinstance(inner, DequeVariable):
        return calls.call_method(tx, inner, "__contains__", [item], {})
    iterator = iteration.get_iter(tx, inner if isinstance(inner, (ListVariable, TupleVariable)) else container)
    while (candidate := iteration.next_item(tx, iterator)) is not None:
        candidate = realize(candidate, tx.state)
        if equal_items(tx, candidate, item):
            return TRUE
    return FALSE


def not_contains(tx: Any, item: VariableTracker, container: VariableTracker) -> VariableTracker:
    return not_(tx, contains(tx, item, container))


def format_value(tx: Any, value: VariableTracker, conversion: str, spec: VariableTracker) -> VariableTracker:
    """FORMAT_VALUE: conversion, then format()."""
    value = specialised(value)
    if conversion:
        value = realize(calls.call(tx, wrap_constant({"s": str, "r": repr, "a": ascii}[conversion]), [value], {}), tx.state)
    if isinstance(value, ConstantVariable) and isinstance(spec, ConstantVariable):
        return fold(format, [value, spec])
    method = attributes.special_method(tx, value, "__format__") if isinstance(value, ObjectVariable) else None
    if isinstance(value, ExceptionVariable) and lookup.is_python(tx, value.cls, "__format__"):
        method = attributes.get_attr(tx, value, "__format__")
    if method is not None and not calls.is_builtin_method(method):
        text = realize(calls.call(tx, method, [spec], {}), tx.state)
        if not issubclass(text.python_type(), str):
            raise UserRaise(user_error(TypeError, f"__format__ must return a str, not {type_name(text.python_type())}"))
        return text
    if isinstance(value, ObjectVariable) and lookup.mro_lookup(tx, value.cls, "__format__") is not object.__format__:
        known = issubclass(type(value.value), enum.Enum) or members.has_in_c(tx, value, "__format__", "__str__", "__repr__")
        if known and isinstance(spec, ConstantVariable):
            return fold(format, [ConstantVariable(value.value), spec])  # as the C type that the members are of does it
        raise GraphBreak("untraceable_call", f"format of a {value.python_type().__name__}")
    if isinstance(spec, ConstantVariable) and spec.value == "" and not isinstance(value, TensorVariable):
        return calls.call(tx, wrap_constant(str), [value], {})
    raise GraphBreak("untraceable_call", f"format of a {value.python_type().__name__}")


def iter_(tx: Any, obj: VariableTracker) -> VariableTracker:
    return iteration.get_iter(tx, obj)


def getitem(tx: Any, obj: VariableTracker, key: VariableTracker) -> VariableTracker:
    if isinstance(obj, TensorVariable):
        return TENSOR.call(tx, operator.getitem, [obj, key], {})
    return containers.get_item(tx, obj, key)


_SPECIAL = {
    operator.is_: is_,
    operator.is_not: is_not,
    operator.not_: not_,
    operator.getitem: getitem,
    builtins.iter: iter_,
    builtins.len: length,
    ops.contains: contains,
    ops.not_contains: not_contains,
}
