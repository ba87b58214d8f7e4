"""Operators: constants are folded by the real function, user types go through CPython's slot algorithm."""

from __future__ import annotations

import builtins
import collections
import enum
import operator
import sys
import types
from typing import Any

from .._native import type_name
from ..bytecode import ops
from ..errors import GraphBreak, UserRaise
from ..interp.state import realize, user_error
from ..model.dispatch import TENSOR, specialised
from ..model.value import (
    FALSE,
    TRUE,
    BuiltinMethodVariable,
    CellVariable,
    ConstantVariable,
    DictVariable,
    ExceptionVariable,
    FunctionVariable,
    ListVariable,
    MethodVariable,
    ObjectVariable,
    SetVariable,
    SizeVariable,
    SliceVariable,
    SymbolicVariable,
    TensorVariable,
    TracebackVariable,
    TupleVariable,
    VariableTracker,
    constant,
)
from . import attributes, calls, containers, instances, iteration, lookup
from .containers import payload_of, sequence_items
from .wrapping import NUMBERS_AND_TEXTS, need_constant_deep, wrap_constant, wrap_pinned

_BINARY = {
    operator.add: ("__add__", "__radd__", "+"),
    operator.sub: ("__sub__", "__rsub__", "-"),
    operator.mul: ("__mul__", "__rmul__", "*"),
    operator.truediv: ("__truediv__", "__rtruediv__", "/"),
    operator.floordiv: ("__floordiv__", "__rfloordiv__", "//"),
    operator.mod: ("__mod__", "__rmod__", "%"),
    operator.pow: ("__pow__", "__rpow__", "** or pow()"),
    operator.matmul: ("__matmul__", "__rmatmul__", "@"),
    operator.and_: ("__and__", "__rand__", "&"),
    operator.or_: ("__or__", "__ror__", "|"),
    operator.xor: ("__xor__", "__rxor__", "^"),
    operator.lshift: ("__lshift__", "__rlshift__", "<<"),
    operator.rshift: ("__rshift__", "__rrshift__", ">>"),
    divmod: ("__divmod__", "__rdivmod__", "divmod()"),
}
_INPLACE = {
    operator.iadd: ("__iadd__", operator.add),
    operator.isub: ("__isub__", operator.sub),
    operator.imul: ("__imul__", operator.mul),
    operator.itruediv: ("__itruediv__", operator.truediv),
    operator.ifloordiv: ("__ifloordiv__", operator.floordiv),
    operator.imod: ("__imod__", operator.mod),
    operator.ipow: ("__ipow__", operator.pow),
    operator.imatmul: ("__imatmul__", operator.matmul),
    operator.iand: ("__iand__", operator.and_),
    operator.ior: ("__ior__", operator.or_),
    operator.ixor: ("__ixor__", operator.xor),
    operator.ilshift: ("__ilshift__", operator.lshift),
    operator.irshift: ("__irshift__", operator.rshift),
}
_COMPARE = {
    operator.lt: ("__lt__", "__gt__", "<"),
    operator.le: ("__le__", "__ge__", "<="),
    operator.gt: ("__gt__", "__lt__", ">"),
    operator.ge: ("__ge__", "__le__", ">="),
    operator.eq: ("__eq__", "__eq__", "=="),
    operator.ne: ("__ne__", "__ne__", "!="),
}
_COMPARE_NAMES = {name: fn for fn, (name, _, _) in _COMPARE.items()}
_SET_UPDATES = {operator.ior: "update", operator.iand: "intersection_update", operator.isub: "difference_update",
                operator.ixor: "symmetric_difference_update"}
_UNARY = {operator.neg: "__neg__", operator.pos: "__pos__", operator.invert: "__invert__"}
_NOT_IMPLEMENTED = NotImplemented
_NUMBERS = (ConstantVariable, SymbolicVariable)


def apply(tx: Any, fn: Any, args: list[VariableTracker]) -> VariableTracker:
    """The value of an operator or of one of the functions that instructions call (iter, len, getitem ...)."""
    special = _SPECIAL.get(fn)
    if special is not None:
        return special(tx, *args)
    if all(type(a) is ConstantVariable for a in args):
        return fold(fn, args)
    if any(isinstance(a, TensorVariable) for a in args):
        return TENSOR.call(tx, fn, args, {})
    if any(type(a) is SymbolicVariable for a in args) and all(type(a) in _NUMBERS for a in args):
        result = TENSOR.symbolic(tx, fn, args)
        return result if result is not None else apply(tx, fn, [specialised(a) for a in args])
    if any(type(a) is ConstantVariable and isinstance(a.value, tuple) for a in args):
        folded = _fold_tuples(tx, fn, args)  # torch.Size with a tuple
        if folded is not None:
            return folded
    if fn in _COMPARE:
        return compare(tx, fn, *args)
    if fn in _INPLACE:
        return inplace(tx, fn, *args)
    if fn in _BINARY:
        return binary(tx, fn, args[0], args[1])
    if fn in _UNARY:
        method = attributes.special_method(tx, args[0], _UNARY[fn])
        if method is None:
            raise GraphBreak("raised_exception", f"{fn.__name__} of a {args[0].python_type().__name__}")
        return calls.call(tx, method, [], {})
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


def fold(fn: Any, args: list[VariableTracker], kwargs: dict | None = None) -> VariableTracker:
    """Call the real, pure function on constants; what it raises, the traced program raises."""
    try:
        value = fn(*(a.value for a in args), **(kwargs or {}))  # type: ignore[attr-defined]
    except Exception as error:
        raise UserRaise(user_error(type(error), *error.args)) from None
    return fresh(value)


def fresh(value: Any) -> VariableTracker:
    """Tracker of an object that this very call made: nobody else has it."""
    if type(value) is list:
        return ListVariable([fresh(v) for v in value])
    if type(value) is tuple:
        return TupleVariable([fresh(v) for v in value])
    if type(value) in (dict, set, bytearray) or type(value).__name__ == "ndarray":
        raise GraphBreak("untraceable_call", f"a builtin that gives a new {type(value).__name__}")
    return wrap_constant(value)


def _is(tx: Any, a: VariableTracker, b: VariableTracker) -> bool:
    if a is b:
        return True
    if type(a) is TupleVariable and type(b) is TupleVariable and not a.items and not b.items:
        return True  # there is one empty tuple
    if a.python_type() is b.python_type():
        a, b = specialised(a), specialised(b)
    if isinstance(a, ConstantVariable) and isinstance(b, ConstantVariable):
        if type(a.value) is not type(b.value):
            return False
        if a.value is None or isinstance(a.value, (bool, type(...), type(NotImplemented))):
            return a.value is b.value
        if a.source is not None and b.source is not None and type(a.value) in NUMBERS_AND_TEXTS and a.value == b.value:
            same = a.value is b.value
            if a.source != b.source:
                tx.state.guards.add(a.source, "ALIAS" if same else "NOALIAS", (a.source, b.source))
            return same
        if a.source is None and b.source is None and type(a.value) in NUMBERS_AND_TEXTS:
            return a.value is b.value  # made by the trace as the program makes them
        if type(a.value) in NUMBERS_AND_TEXTS and a.value != b.value:
            return False
        if TENSOR.is_constant_type(type(a.value)) and a.value != b.value:
            return False
        raise GraphBreak("introspection", "identity of equal constants")
    if isinstance(a, ConstantVariable) or isinstance(b, ConstantVariable):
        return False
    if isinstance(a, ObjectVariable) and isinstance(b, ObjectVariable) and not containers._is_missing(a.value):
        if a.value is b.value:
            return True
        if a.cls is not b.cls or issubclass(type(a.value), containers.PINNED) or issubclass(type(b.value), containers.PINNED):
            return False  # guards on classes, or on the very objects, tell them apart in any case
    if isinstance(a, (MethodVariable, BuiltinMethodVariable)) or isinstance(b, (MethodVariable, BuiltinMethodVariable)):
        return False
    if a.source is not None and b.source is not None and a.source != b.source:
        tx.state.guards.add(a.source, "NOALIAS", (a.source, b.source))
    return False


def is_(tx: Any, a: VariableTracker, b: VariableTracker) -> VariableTracker:
    return constant(_is(tx, a, b))


def is_not(tx: Any, a: VariableTracker, b: VariableTracker) -> VariableTracker:
    return constant(not _is(tx, a, b))


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
    if isinstance(value, (ListVariable, TupleVariable, SetVariable)):
        return bool(value.items)
    if isinstance(value, DictVariable):
        return length(tx, value).value != 0  # type: ignore[attr-defined]
    if isinstance(value, ExceptionVariable):
        for name in ("__bool__", "__len__"):
            if isinstance(lookup.mro_lookup(tx, value.cls, name), types.FunctionType):
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
    if isinstance(inner, (ListVariable, TupleVariable, SetVariable)):
        return constant(len(inner.items))
    if isinstance(inner, DictVariable):
        if not inner.complete and inner.source is not None and not inner.items and not inner.value:
            tx.state.guards.add(inner.source, "LEN", 0)
            return constant(0)
        return constant(len(containers.complete(tx, inner)))
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
        raise GraphBreak("raised_exception", f"a {item.python_type().__name__} looked for in a {inner.python_type().__name__}")
    if isinstance(inner, DictVariable):
        return constant(containers.dict_get(tx, inner, item) is not None)
    if isinstance(inner, SetVariable):
        return constant(containers.hash_key(tx, item) in inner.items)
    if isinstance(inner, TensorVariable):
        raise GraphBreak("data_dependent_branch", "in of a tensor")
    iterator = iteration.get_iter(tx, inner if isinstance(inner, (ListVariable, TupleVariable)) else container)
    while (candidate := iteration.next_item(tx, iterator)) is not None:
        candidate = realize(candidate, tx.state)
        if same_object(candidate, item):
            return TRUE
        if truth(tx, apply(tx, operator.eq, [candidate, item])):
            return TRUE
    return FALSE


def not_contains(tx: Any, item: VariableTracker, container: VariableTracker) -> VariableTracker:
    return not_(tx, contains(tx, item, container))


def compare(tx: Any, fn: Any, a: VariableTracker, b: VariableTracker) -> VariableTracker:
    x, y = _contents(tx, a), _contents(tx, b)
    name, mirrored, sign = _COMPARE[fn]
    members = _members(tx, a, b, name, mirrored)
    if members is not None:
        return fold(fn, members)
    user_defined = (isinstance(a, ObjectVariable) and x is a) or (isinstance(b, ObjectVariable) and y is b)
    if not user_defined and not _overrides(tx, a, name) and not _overrides(tx, b, mirrored):
        if isinstance(x, (ListVariable, TupleVariable)) and isinstance(x, ListVariable) == isinstance(y, ListVariable) and (
                isinstance(y, (ListVariable, TupleVariable))):
            return _compare_sequences(tx, fn, x.items, y.items)  # type: ignore[attr-defined]
        if isinstance(x, DictVariable) and isinstance(y, DictVariable) and fn in (operator.eq, operator.ne):
            return constant(equal_dicts(tx, a, b) == (fn is operator.eq))
        if isinstance(x, SetVariable) and isinstance(y, SetVariable):
            return constant(fn(set(x.items), set(y.items)))
    if fn in (operator.eq, operator.ne):
        if isinstance(a, SliceVariable) and isinstance(b, SliceVariable):
            return _compare_sequences(tx, fn, a.items, b.items)
        if type(a) is type(b) and isinstance(a, (MethodVariable, BuiltinMethodVariable)):
            return constant(_same_methods(tx, a, b) == (fn is operator.eq))
    swap = b.python_type() is not a.python_type() and lookup.inherits(b.python_type(), a.python_type())
    for left, right, method in ((b, a, mirrored), (a, b, name)) if swap else ((a, b, name), (b, a, mirrored)):
        result = _slot(tx, left, method, right)
        if result is not None:
            return result
    if isinstance(a, CellVariable) and isinstance(b, CellVariable):
        raise GraphBreak("introspection", "cells of closures compared")
    if fn in (operator.eq, operator.ne):
        return constant(_is(tx, a, b) == (fn is operator.eq))
    text = f"'{sign}' not supported between instances of '{type_name(a.python_type())}' and '{type_name(b.python_type())}'"
    raise UserRaise(user_error(TypeError, text))


def _contents(tx: Any, tracker: VariableTracker) -> VariableTracker:
    """``payload_of``, with a torch.Size as the tuple that it is."""
    inner = payload_of(tracker)
    return TupleVariable(sequence_items(tx, inner)) if type(inner) is SizeVariable or _is_tuple(inner) else inner


def _members(tx: Any, a: VariableTracker, b: VariableTracker, *names: str) -> list | None:
    """Enums' members and constants, where C code alone says what an operator gives of them; None for other operands.

    Members are guarded by their identity.
    """
    if not _is_member(a) and not _is_member(b):
        return None
    values = []
    for operand in (specialised(a), specialised(b)):
        if _is_member(operand):
            if any(isinstance(lookup.mro_lookup(tx, operand.cls, name), types.FunctionType) for name in names):
                return None
        elif type(operand) is not ConstantVariable:
            return None
        values.append(ConstantVariable(operand.value))  # type: ignore[attr-defined]
    return values


def _same_methods(tx: Any, a: Any, b: Any) -> bool:
    """method_richcompare: the same function of the very same object."""
    if type(a) not in (MethodVariable, BuiltinMethodVariable):
        return a is b
    if not _is(tx, realize(a.obj, tx.state), realize(b.obj, tx.state)):
        return False
    if isinstance(a, BuiltinMethodVariable):
        return a.name == b.name
    return truth(tx, apply(tx, operator.eq, [realize(a.func, tx.state), realize(b.func, tx.state)]))


def _slot(tx: Any, left: VariableTracker, name: str, right: VariableTracker) -> VariableTracker | None:
    """Result of a Python-level operator method, None for NotImplemented or a builtin one that knows only identity."""
    if isinstance(left, ExceptionVariable):
        return _own_method(tx, left, name, right)
    if not isinstance(left, ObjectVariable):
        if not _is_member(right):
            return None
        slot = next((base.__dict__[name] for base in left.python_type().__mro__ if name in base.__dict__), None)
        return _slot_in_c(slot, left, right)
    found = lookup.mro_lookup(tx, left.cls, name)
    if containers._is_missing(found):
        return None
    if found is None:
        raise UserRaise(user_error(TypeError, "'NoneType' object is not callable"))
    if not isinstance(found, types.FunctionType):
        if left.payload is not None and isinstance(found, types.WrapperDescriptorType):
            return _payload_slot(tx, left, name, right)
        if name in ("__eq__", "__ne__") and getattr(object, name) is found:
            if name == "__ne__":
                inverse = _slot(tx, left, "__eq__", right)
                return None if inverse is None else not_(tx, inverse)
            return None
        if getattr(object, name, None) is found:
            return None
        if _is_member(left):
            return _slot_in_c(found, left, right)
        raise GraphBreak("untraceable_call", f"{left.cls.__name__}.{name}")
    return _implemented(tx, instances.bind(tx, found, left, left.cls, name), right)


def _own_method(tx: Any, left: ExceptionVariable, name: str, right: VariableTracker) -> VariableTracker | None:
    """An exception's operator method, which only Python classes have."""
    if not isinstance(lookup.mro_lookup(tx, left.cls, name), types.FunctionType):
        if name == "__ne__":
            inverse = _own_method(tx, left, "__eq__", right)
            return None if inverse is None else not_(tx, inverse)
        return None
    return _implemented(tx, attributes.get_attr(tx, left, name), right)


def _implemented(tx: Any, method: VariableTracker, operand: VariableTracker) -> VariableTracker | None:
    """What an operator method gives; None for NotImplemented."""
    result = realize(calls.call(tx, method, [operand], {}), tx.state)
    return None if isinstance(result, ConstantVariable) and result.value is _NOT_IMPLEMENTED else result


def _is_member(tracker: VariableTracker) -> bool:
    """Whether it is an enum's member: guarded by its identity."""
    return isinstance(tracker, ObjectVariable) and issubclass(type(tracker.value), enum.Enum)


def _slot_in_c(slot: Any, left: VariableTracker, right: VariableTracker) -> VariableTracker | None:
    """A slot of int, float or str with an enum's member, which has its value in C; containers know nothing of it."""
    left, right = specialised(left), specialised(right)
    if slot is str.__mod__ and type(right) is not ConstantVariable:
        raise GraphBreak("untraceable_call", "formatting of an object with %")
    if slot is None or not all(type(operand) is ConstantVariable or _is_member(operand) for operand in (left, right)):
        return None
    answer = fold(slot, [left, right])
    return None if isinstance(answer, ConstantVariable) and answer.value is _NOT_IMPLEMENTED else answer


def _overrides(tx: Any, operand: VariableTracker, name: str) -> bool:
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


def same_object(a: VariableTracker, b: VariableTracker) -> bool:
    """Whether containers take two items for equal without asking them (CPython: PyObject_RichCompareBool)."""
    return a is b or isinstance(a, ConstantVariable) and isinstance(b, ConstantVariable) and a.value is b.value


def _compare_sequences(tx: Any, fn: Any, a: list, b: list) -> VariableTracker:
    if fn in (operator.eq, operator.ne) and len(a) != len(b):
        return constant(fn is operator.ne)
    for index, (x, y) in enumerate(zip(a, b, strict=False)):
        x, y = realize(x, tx.state), realize(y, tx.state)
        if same_object(x, y):
            continue
        if not truth(tx, apply(tx, operator.eq, [x, y])):
            if index >= len(a) or index >= len(b):
                break  # asking has shortened them
            if fn in (operator.eq, operator.ne):
                return constant(fn is operator.ne)
            return apply(tx, fn, [x, y])
    return constant(fn(len(a), len(b)))


def equal_dicts(tx: Any, left: VariableTracker, right: VariableTracker) -> bool:
    """dict_equal, or odict_richcompare, which looks at the order where both are ordered."""
    a, b = payload_of(left), payload_of(right)
    x, y = containers.complete(tx, a), containers.complete(tx, b)  # type: ignore[arg-type]
    if x.keys() != y.keys():
        return False
    pairs = ((realize(v[1], tx.state), realize(y[k][1], tx.state)) for k, v in x.items())
    if not all(same_object(p, q) or truth(tx, apply(tx, operator.eq, [p, q])) for p, q in pairs):
        return False
    both_ordered = all(issubclass(d.python_type(), collections.OrderedDict) for d in (left, right))
    return not both_ordered or list(x) == list(y)


def inplace(tx: Any, fn: Any, a: VariableTracker, b: VariableTracker) -> VariableTracker:
    name, plain = _INPLACE[fn]
    inner = payload_of(a)
    if inner is not a and not isinstance(inner, TupleVariable) and not _overrides(tx, a, name):
        if a.python_type() is types.MappingProxyType:
            raise GraphBreak("raised_exception", "a mappingproxy changed in place")
        return a if inplace(tx, fn, inner, b) is inner else binary(tx, plain, a, b, inplace=True)
    if isinstance(a, ListVariable) and fn is operator.iadd:
        a.extend(iteration.unpack_iterable(tx, b))
        containers.changing(tx, a)
        return a
    if isinstance(a, ListVariable) and fn is operator.imul:
        a.items[:] = a.items * containers.index_of(tx, b, "repeat")
        containers.changing(tx, a)
        return a
    if isinstance(a, DictVariable) and fn is operator.ior:
        calls.call(tx, BuiltinMethodVariable("update", a), [b], {})
        return a
    if isinstance(a, SetVariable) and a.cls is set and isinstance(payload_of(b), SetVariable) and fn in _SET_UPDATES:
        calls.call(tx, BuiltinMethodVariable(_SET_UPDATES[fn], a), [b], {})
        return a
    result = _slot(tx, a, name, b)
    if result is not None:
        return result
    if type(a) is ConstantVariable and type(b) is ConstantVariable:
        return fold(fn, [a, b])
    return binary(tx, plain, a, b, inplace=True)


def binary(tx: Any, fn: Any, a: VariableTracker, b: VariableTracker, inplace: bool = False) -> VariableTracker:
    name, mirrored, sign = _BINARY[fn]
    if fn is operator.or_ and (union := _union(tx, a, b)) is not None:
        return union
    members = _members(tx, a, b, name, mirrored)
    if members is not None:
        return fold(fn, members)
    swap = b.python_type() is not a.python_type() and lookup.inherits(b.python_type(), a.python_type()) and (
        _is_overloaded(tx, a, b, mirrored))
    order = ((b, a, mirrored), (a, b, name)) if swap else ((a, b, name), (b, a, mirrored))
    for left, right, method in order[: 1 if a.python_type() is b.python_type() else 2]:
        if payload_of(left) is left or _overrides(tx, left, method):
            result = _slot(tx, left, method, right)
            if result is not None:
                return result
    if fn is operator.or_ and isinstance(payload_of(a), DictVariable) and isinstance(payload_of(b), DictVariable):
        return containers.merge(tx, a, b)
    x, y = payload_of(a), payload_of(b)
    result = _sequence_arithmetic(tx, fn, x, y, x is a and y is b)
    if result is not None:
        return result
    raise UserRaise(user_error(TypeError, _mismatch(fn, sign, a, b, inplace)))


def _union(tx: Any, a: VariableTracker, b: VariableTracker) -> VariableTracker | None:
    """``int | None``: classes whose metaclass leaves that to ``type``."""
    values = []
    for part in (a, b):
        if isinstance(part, ConstantVariable) and part.value is None:
            values.append(None)
        elif isinstance(part, ObjectVariable) and (part.cls is types.UnionType or issubclass(part.cls, type) and (
                lookup.mro_lookup(tx, part.cls, "__or__") is type.__or__)):
            values.append(part.value)
        else:
            return None
    if values == [None, None]:
        return None
    return wrap_pinned(tx, operator.or_(*values))


def _is_overloaded(tx: Any, a: VariableTracker, b: VariableTracker, name: str) -> bool:
    """typeobject.c's method_is_overloaded: of two user classes, the subclass goes first only with a method of its own."""
    if not (isinstance(a, ObjectVariable) and isinstance(b, ObjectVariable)):
        return True
    return lookup.mro_lookup(tx, b.cls, name) is not lookup.mro_lookup(tx, a.cls, name)


def _mismatch(fn: Any, sign: str, a: VariableTracker, b: VariableTracker, inplace: bool) -> str:
    """What binary_op and the sequence slots that come after it say of operands that don't fit."""
    left, right = a.python_type(), b.python_type()
    if fn is operator.add and hasattr(left, "__add__") and issubclass(left, (list, tuple, str, bytes)):
        kind = next(k for k in (list, tuple, str, bytes) if issubclass(left, k))
        if kind is bytes:
            return f"can't concat {type_name(right)} to bytes"
        return f'can only concatenate {kind.__name__} (not "{type_name(right)}") to {kind.__name__}'
    if fn is operator.mul:
        sequences = (list, tuple, str, bytes)
        if issubclass(left, sequences) or issubclass(right, sequences):
            other = right if issubclass(left, sequences) else left
            return f"can't multiply sequence by non-int of type '{type_name(other)}'"
    if inplace:
        sign = "**=" if fn is operator.pow else sign + "="
    return f"unsupported operand type(s) for {sign}: '{type_name(left)}' and '{type_name(right)}'"


def _has_index(tx: Any, value: VariableTracker) -> bool:
    return isinstance(value, ObjectVariable) and attributes.special_method(tx, value, "__index__") is not None


def _sequence_arithmetic(tx: Any, fn: Any, a: VariableTracker, b: VariableTracker, exact: bool) -> VariableTracker | None:
    """``exact``: neither is what an instance of a subclass holds."""
    a, b = specialised(a), specialised(b)  # how often a sequence is repeated
    kind = type(a)
    if kind is TupleVariable and exact and fn is operator.add and type(b) is kind and not (a.items and b.items):  # type: ignore[attr-defined]
        return a if a.items else b  # type: ignore[attr-defined]
    if fn is operator.add and kind in (ListVariable, TupleVariable) and type(b) is kind:
        return kind(a.items + b.items)  # type: ignore[attr-defined]
    if SizeVariable in (kind, type(b)):
        return _size_arithmetic(tx, fn, a, b)
    if fn is operator.mul:
        if not isinstance(a, (ListVariable, TupleVariable)) and not (isinstance(a, ConstantVariable) and isinstance(a.value, (str, bytes))):
            a, b = b, a
        if isinstance(a, (ListVariable, TupleVariable)) and (
                isinstance(b, ConstantVariable) and isinstance(b.value, int) or _has_index(tx, b)):
            count = containers.index_of(tx, b, "repeat")
            return a if type(a) is TupleVariable and exact and count == 1 else type(a)(a.items * count)
        if isinstance(a, ConstantVariable) and isinstance(a.value, (str, bytes)) and _has_index(tx, b):
            return fold(fn, [a, constant(containers.index_of(tx, b, "sequence"))])
    if isinstance(a, SetVariable) and isinstance(b, SetVariable) and fn in (operator.and_, operator.or_, operator.sub, operator.xor):
        if fn is operator.and_:
            return SetVariable(containers.common_items(a.items, b.items, True), cls=a.cls)
        keys = fn(a.items.keys(), b.items.keys())
        return SetVariable({k: a.items.get(k) or b.items[k] for k in [*a.items, *b.items] if k in keys}, cls=a.cls)
    if fn is operator.mod and isinstance(a, ConstantVariable) and isinstance(a.value, str):
        if isinstance(b, TupleVariable):
            values = [realize(i, tx.state) for i in b.items]
            if all(isinstance(v, ConstantVariable) for v in values):
                return fold(operator.mod, [a, ConstantVariable(tuple(v.value for v in values))])  # type: ignore[attr-defined]
        if isinstance(b, DictVariable) and exact:
            pairs = [(k, realize(v, tx.state)) for k, v in containers.complete(tx, b).values()]
            if all(isinstance(i, ConstantVariable) for pair in pairs for i in pair):
                return fold(operator.mod, [a, ConstantVariable({k.value: v.value for k, v in pairs})])  # type: ignore[attr-defined]
        raise GraphBreak("untraceable_call", "formatting of an object with %")
    return None


def _size_arithmetic(tx: Any, fn: Any, a: Any, b: Any) -> VariableTracker | None:
    """torch.Size with tuples and numbers: ``size + tuple``, ``tuple + size`` and ``size * n`` are sizes, too."""
    parts = [list(sequence_items(tx, x)) for x in (a, b) if isinstance(payload_of(x), TupleVariable) or _is_tuple(x)]
    cls = (a if type(a) is SizeVariable else b).cls
    if fn is operator.add and len(parts) == 2:
        return SizeVariable(parts[0] + parts[1], cls)
    if fn is operator.mul and len(parts) == 1:
        return SizeVariable(parts[0] * containers.index_of(tx, b if type(a) is SizeVariable else a, "repeat"), cls)
    return None


def _is_tuple(tracker: VariableTracker) -> bool:
    return isinstance(tracker, ConstantVariable) and isinstance(tracker.value, tuple)


def format_value(tx: Any, value: VariableTracker, conversion: str, spec: VariableTracker) -> VariableTracker:
    """FORMAT_VALUE: conversion, then format()."""
    value = specialised(value)
    if conversion:
        value = realize(calls.call(tx, wrap_constant({"s": str, "r": repr, "a": ascii}[conversion]), [value], {}), tx.state)
    if isinstance(value, ConstantVariable) and isinstance(spec, ConstantVariable):
        return fold(format, [value, spec])
    method = attributes.special_method(tx, value, "__format__") if isinstance(value, ObjectVariable) else None
    if isinstance(value, ExceptionVariable) and isinstance(lookup.mro_lookup(tx, value.cls, "__format__"), types.FunctionType):
        method = attributes.get_attr(tx, value, "__format__")
    if method is not None and not calls.is_builtin_method(method):
        text = realize(calls.call(tx, method, [spec], {}), tx.state)
        if not issubclass(text.python_type(), str):
            raise UserRaise(user_error(TypeError, f"__format__ must return a str, not {type_name(text.python_type())}"))
        return text
    if isinstance(value, ObjectVariable) and lookup.mro_lookup(tx, value.cls, "__format__") is not object.__format__:
        if issubclass(type(value.value), enum.Enum) and isinstance(spec, ConstantVariable):
            return constant(format(value.value, spec.value))  # as the C type that the members are of does it
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
