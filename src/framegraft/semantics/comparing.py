"""Comparisons, and the slots of classes that binary operators share with them."""

from __future__ import annotations

import collections
import operator
import types
from typing import Any

from .._native import type_name
from ..errors import GraphBreak, UserRaise
from ..interp.state import realize, user_error
from ..model.dispatch import METHODS, specialised
from ..model.value import (
    BuiltinMethodVariable,
    CellVariable,
    ConstantVariable,
    DequeVariable,
    DictVariable,
    ExceptionVariable,
    ListVariable,
    MethodVariable,
    ObjectVariable,
    SetVariable,
    SizeVariable,
    SliceVariable,
    TupleVariable,
    VariableTracker,
    constant,
)
from . import attributes, calls, hashed, instances, lookup, operators, slots
from .containers import sequence_items
from .folding import fold
from .hashed import is_nan, payload_of
from .members import is_member
from .truth import identical, not_, same_nan, truth

COMPARE = {
    operator.lt: ("__lt__", "__gt__", "<"),
    operator.le: ("__le__", "__ge__", "<="),
    operator.gt: ("__gt__", "__lt__", ">"),
    operator.ge: ("__ge__", "__le__", ">="),
    operator.eq: ("__eq__", "__eq__", "=="),
    operator.ne: ("__ne__", "__ne__", "!="),
}
_COMPARE_NAMES = {name: fn for fn, (name, _, _) in COMPARE.items()}
_NOT_IMPLEMENTED = NotImplemented


def compare(tx: Any, fn: Any, a: VariableTracker, b: VariableTracker) -> VariableTracker:
    x, y = _contents(tx, a), _contents(tx, b)
    name, mirrored, sign = COMPARE[fn]
    members = folded_members(tx, a, b, name, mirrored)
    if members is not None:
        return fold(fn, members)
    user_defined = (isinstance(a, ObjectVariable) and x is a) or (isinstance(b, ObjectVariable) and y is b)
    if not user_defined and not overrides(tx, a, name) and not overrides(tx, b, mirrored):
        if isinstance(x, (ListVariable, TupleVariable)) and isinstance(x, ListVariable) == isinstance(y, ListVariable) and (
                isinstance(y, (ListVariable, TupleVariable))):
            return _compare_sequences(tx, fn, x.items, y.items)  # type: ignore[attr-defined]
        if isinstance(x, DequeVariable) and isinstance(y, DequeVariable):
            return _compare_sequences(tx, fn, x.items, y.items)
        if isinstance(x, DictVariable) and isinstance(y, DictVariable) and fn in (operator.eq, operator.ne):
            return constant(equal_dicts(tx, a, b) == (fn is operator.eq))
        if isinstance(x, SetVariable) and isinstance(y, SetVariable):
            return constant(fn(set(x.items), set(y.items)))
    if fn in (operator.eq, operator.ne):
        if isinstance(a, SliceVariable) and isinstance(b, SliceVariable):
            return _compare_sequences(tx, fn, a.items, b.items)
        wrappers = hashed.slot_wrapper(a), hashed.slot_wrapper(b)
        if None not in wrappers:
            return constant(fn(*wrappers))
        if type(a) is type(b) and isinstance(a, (MethodVariable, BuiltinMethodVariable)):
            return constant(_same_methods(tx, a, b) == (fn is operator.eq))
    swap = b.python_type() is not a.python_type() and lookup.inherits(b.python_type(), a.python_type())
    for left, right, method in ((b, a, mirrored), (a, b, name)) if swap else ((a, b, name), (b, a, mirrored)):
        result = slot_result(tx, left, method, right)
        if result is not None:
            return result
        if not slots.in_python(tx, left, method) and not slots.declines_comparison(tx, left, method, right):
            raise GraphBreak("untraceable_call", f"{left.python_type().__name__}.{method} of a {right.python_type().__name__}")
    if isinstance(a, CellVariable) and isinstance(b, CellVariable):
        raise GraphBreak("introspection", "cells of closures compared")
    if fn in (operator.eq, operator.ne):
        return constant(identical(tx, a, b) == (fn is operator.eq))
    text = f"'{sign}' not supported between instances of '{type_name(a.python_type())}' and '{type_name(b.python_type())}'"
    raise UserRaise(user_error(TypeError, text))


def _is_union(tracker: VariableTracker) -> bool:
    """A union of classes that compare by identity, ``int | None``."""
    value = getattr(tracker, "value", None)
    return type(value) is types.UnionType and all(type(part) is type for part in value.__args__)


def _contents(tx: Any, tracker: VariableTracker) -> VariableTracker:
    """``payload_of``, with a torch.Size as the tuple that it is."""
    inner = payload_of(tracker)
    return TupleVariable(sequence_items(tx, inner)) if type(inner) is SizeVariable or is_tuple(inner) else inner


def folded_members(tx: Any, a: VariableTracker, b: VariableTracker, *names: str) -> list | None:
    """Enums' members and constants, where C code alone says what an operator gives of them; None for other operands.

    Members are guarded by their identity.
    """
    if not is_member(a) and not is_member(b):
        return None
    values = []
    for operand in (specialised(a), specialised(b)):
        if is_member(operand):
            if any(lookup.is_python(tx, operand.cls, name) for name in names):
                return None
        elif type(operand) is not ConstantVariable:
            return None
        values.append(ConstantVariable(operand.value))  # type: ignore[attr-defined]
    return values


def _same_methods(tx: Any, a: Any, b: Any) -> bool:
    """method_richcompare: the same function of the very same object."""
    if type(a) not in (MethodVariable, BuiltinMethodVariable):
        return a is b
    if not identical(tx, realize(a.obj, tx.state), realize(b.obj, tx.state)):
        return False
    if isinstance(a, BuiltinMethodVariable):
        return a.name == b.name
    return truth(tx, operators.apply(tx, operator.eq, [realize(a.func, tx.state), realize(b.func, tx.state)]))


def slot_result(tx: Any, left: VariableTracker, name: str, right: VariableTracker) -> VariableTracker | None:
    """Result of a Python-level operator method, None for NotImplemented or a builtin one that knows only identity."""
    if isinstance(left, ExceptionVariable):
        return _own_method(tx, left, name, right)
    if not isinstance(left, ObjectVariable):
        if not is_member(right):
            return None
        slot = next((base.__dict__[name] for base in left.python_type().__mro__ if name in base.__dict__), None)
        return _slot_in_c(slot, left, right)
    found = lookup.mro_lookup(tx, left.cls, name)
    if hashed.is_missing(found):
        return None
    if found is None:
        raise UserRaise(user_error(TypeError, "'NoneType' object is not callable"))
    if not isinstance(found, types.FunctionType):
        if left.payload is not None and isinstance(found, types.WrapperDescriptorType):
            return _payload_slot(tx, left, name, right)
        if name in ("__eq__", "__ne__") and getattr(object, name) is found:
            if name == "__ne__":
                inverse = slot_result(tx, left, "__eq__", right)
                return None if inverse is None else not_(tx, inverse)
            return None
        if getattr(object, name, None) is found:
            return None
        if is_member(left):
            return _slot_in_c(found, left, right)
        if found is types.BuiltinFunctionType.__eq__ or found is types.BuiltinFunctionType.__ne__:  # meth_richcompare
            other = getattr(right, "value", None)
            return constant(found(left.value, other)) if issubclass(type(other), types.BuiltinFunctionType) else None
        if getattr(found, "__objclass__", None) is types.MethodWrapperType:
            return None  # two of them are compared before
        if getattr(found, "__objclass__", None) is types.UnionType:  # union_richcompare
            if not issubclass(right.python_type(), types.UnionType):
                return None
            if _is_union(left) and _is_union(right) and name in ("__eq__", "__ne__"):
                return constant(found(left.value, right.value))  # type: ignore[attr-defined]
        known = METHODS.get((type(left), name)) if slots.is_wrapper(found) else None  # of a dict's view
        if known is not None and (result := known(tx, left, [right], {})) is not None:
            return None if isinstance(result, ConstantVariable) and result.value is _NOT_IMPLEMENTED else result
        raise GraphBreak("untraceable_call", f"{left.cls.__name__}.{name}")
    return _implemented(tx, instances.bind(tx, found, left, left.cls, name), right)


def _own_method(tx: Any, left: ExceptionVariable, name: str, right: VariableTracker) -> VariableTracker | None:
    """An exception's operator method, which only Python classes have."""
    if not lookup.is_python(tx, left.cls, name):
        if name == "__ne__":
            inverse = _own_method(tx, left, "__eq__", right)
            return None if inverse is None else not_(tx, inverse)
        return None
    return _implemented(tx, attributes.get_attr(tx, left, name), right)


def _implemented(tx: Any, method: VariableTracker, operand: VariableTracker) -> VariableTracker | None:
    """What an operator method gives; None for NotImplemented."""
    result = realize(calls.call(tx, method, [operand], {}), tx.state)
    return None if isinstance(result, ConstantVariable) and result.value is _NOT_IMPLEMENTED else result


def _slot_in_c(slot: Any, left: VariableTracker, right: VariableTracker) -> VariableTracker | None:
    """A slot of int, float or str with an enum's member, which has its value in C; containers know nothing of it."""
    left, right = specialised(left), specialised(right)
    if slot in (str.__mod__, bytes.__mod__) and type(right) is not ConstantVariable:
        raise GraphBreak("untraceable_call", "formatting of an object with %")
    if slot is None or not all(type(operand) is ConstantVariable or is_member(operand) for operand in (left, right)):
        return None
    answer = fold(slot, [left, right])
    return None if isinstance(answer, ConstantVariable) and answer.value is _NOT_IMPLEMENTED else answer


def overrides(tx: Any, operand: VariableTracker, name: str) -> bool:
    """Whether a subclass of a builtin container has an operator method of its own."""
    if not isinstance(operand, ObjectVariable) or operand.payload is None:
        return False
    return not isinstance(lookup.mro_lookup(tx, operand.cls, name), types.WrapperDescriptorType)


def _payload_slot(tx: Any, left: ObjectVariable, name: str, right: VariableTracker) -> VariableTracker | None:
    """A builtin container's own operator; None where it knows nothing of the other operand."""
    other = _contents(tx, right)
    if type(other) is not type(payload_of(left)):
        return None
    if name not in _COMPARE_NAMES:
        raise GraphBreak("untraceable_call", f"{left.cls.__name__}.{name}")
    if isinstance(other, DictVariable) and name in ("__eq__", "__ne__"):
        return constant(equal_dicts(tx, left, right) == (name == "__eq__"))
    return compare(tx, _COMPARE_NAMES[name], payload_of(left), other)


def same_object(tx: Any, a: VariableTracker, b: VariableTracker) -> bool:
    """Whether containers take two items for equal without asking them (CPython: PyObject_RichCompareBool)."""
    if a is b:
        return True
    nan = next((c for c in (a, b) if isinstance(c, ConstantVariable) and is_nan(c.value)), None)
    if nan is not None and a.python_type() is b.python_type():
        a, b = specialised(a), specialised(b)
    if not isinstance(a, ConstantVariable) or not isinstance(b, ConstantVariable):
        return slots.in_python(tx, a, "__eq__") and identical(tx, a, b)  # which the guards must tell: no answer of __eq__ does
    return same_nan(tx, a, b) if is_nan(a.value) and is_nan(b.value) else a.value is b.value


def equal_items(tx: Any, a: VariableTracker, b: VariableTracker) -> bool:
    """PyObject_RichCompareBool with Py_EQ: the same object, or equal when asked."""
    return same_object(tx, a, b) or truth(tx, operators.apply(tx, operator.eq, [a, b]))


def _compare_sequences(tx: Any, fn: Any, a: list, b: list) -> VariableTracker:
    if fn in (operator.eq, operator.ne) and len(a) != len(b):
        return constant(fn is operator.ne)
    for index, (x, y) in enumerate(zip(a, b, strict=False)):
        x, y = realize(x, tx.state), realize(y, tx.state)
        if not equal_items(tx, x, y):
            if index >= len(a) or index >= len(b):
                break  # asking has shortened them
            if fn in (operator.eq, operator.ne):
                return constant(fn is operator.ne)
            return operators.apply(tx, fn, [x, y])
    return constant(fn(len(a), len(b)))


def equal_dicts(tx: Any, left: VariableTracker, right: VariableTracker) -> bool:
    """dict_equal, or odict_richcompare, which looks at the order where both are ordered."""
    a, b = payload_of(left), payload_of(right)
    x, y = hashed.complete(tx, a), hashed.complete(tx, b)  # type: ignore[arg-type]
    if x.keys() != y.keys():
        return False
    pairs = ((realize(v[1], tx.state), realize(y[k][1], tx.state)) for k, v in x.items())
    if not all(equal_items(tx, p, q) for p, q in pairs):
        return False
    both_ordered = all(issubclass(d.python_type(), collections.OrderedDict) for d in (left, right))
    return not both_ordered or list(x) == list(y)


def is_tuple(tracker: VariableTracker) -> bool:
    return isinstance(tracker, ConstantVariable) and isinstance(tracker.value, tuple)
