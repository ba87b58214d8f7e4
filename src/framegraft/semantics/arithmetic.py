"""Binary operators and their in-place forms on what is no plain number."""

from __future__ import annotations

import operator
import types
from typing import Any

from .._native import type_name
from ..errors import GraphBreak, UserRaise
from ..interp.state import realize, user_error
from ..model.dispatch import specialised
from ..model.value import (
    BuiltinMethodVariable,
    ConstantVariable,
    DequeVariable,
    DictVariable,
    ListVariable,
    ObjectVariable,
    SetVariable,
    SizeVariable,
    TupleVariable,
    VariableTracker,
    constant,
)
from . import attributes, calls, containers, hashed, iteration, lookup
from .comparing import folded_members, is_tuple, overrides, slot_result
from .containers import sequence_items
from .folding import fold
from .hashed import payload_of
from .wrapping import wrap_pinned

BINARY = {
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
INPLACE = {
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
_SET_UPDATES = {operator.ior: "update", operator.iand: "intersection_update", operator.isub: "difference_update",
                operator.ixor: "symmetric_difference_update"}


def inplace(tx: Any, fn: Any, a: VariableTracker, b: VariableTracker) -> VariableTracker:
    name, plain = INPLACE[fn]
    inner = payload_of(a)
    if inner is not a and not isinstance(inner, TupleVariable) and not overrides(tx, a, name):
        if a.python_type() is types.MappingProxyType:
            raise GraphBreak("raised_exception", "a mappingproxy changed in place")
        containers.check_own_items(tx, a, name)
        return a if inplace(tx, fn, inner, b) is inner else binary(tx, plain, a, b, inplace=True)
    if isinstance(a, ListVariable) and fn is operator.iadd:
        a.extend(iteration.unpack_iterable(tx, b))
        hashed.changing(tx, a)
        return a
    if isinstance(a, ListVariable) and fn is operator.imul:
        a.items[:] = a.items * containers.index_of(tx, b, "repeat")
        hashed.changing(tx, a)
        return a
    if isinstance(a, DequeVariable) and fn is operator.iadd:
        return calls.call(tx, BuiltinMethodVariable("__iadd__", a), [b], {})
    if isinstance(a, DictVariable) and fn is operator.ior:
        calls.call(tx, BuiltinMethodVariable("update", a), [b], {})
        return a
    if isinstance(a, SetVariable) and a.cls is set and isinstance(payload_of(b), SetVariable) and fn in _SET_UPDATES:
        calls.call(tx, BuiltinMethodVariable(_SET_UPDATES[fn], a), [b], {})
        return a
    result = slot_result(tx, a, name, b)
    if result is not None:
        return result
    if type(a) is ConstantVariable and type(b) is ConstantVariable:
        return fold(fn, [a, b])
    return binary(tx, plain, a, b, inplace=True)


def binary(tx: Any, fn: Any, a: VariableTracker, b: VariableTracker, inplace: bool = False) -> VariableTracker:
    name, mirrored, sign = BINARY[fn]
    if fn is operator.or_ and (union := _union(tx, a, b)) is not None:
        return union
    members = folded_members(tx, a, b, name, mirrored)
    if members is not None:
        return fold(fn, members)
    swap = b.python_type() is not a.python_type() and lookup.inherits(b.python_type(), a.python_type()) and (
        _is_overloaded(tx, a, b, mirrored))
    order = ((b, a, mirrored), (a, b, name)) if swap else ((a, b, name), (b, a, mirrored))
    for left, right, method in order[: 1 if a.python_type() is b.python_type() else 2]:
        if payload_of(left) is left or overrides(tx, left, method):
            result = slot_result(tx, left, method, right)
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
        elif isinstance(part, ObjectVariable) and _is_type(tx, part):
            values.append(part.value)
        else:
            return None
    if values == [None, None]:
        return None
    for part in (a, b):
        if isinstance(part, ObjectVariable) and part.source is not None and part.cls is not types.UnionType:
            tx.state.guards.pin(part.source, part.value)
    return wrap_pinned(tx, operator.or_(*values))


def _is_type(tx: Any, part: ObjectVariable) -> bool:
    if hashed.is_missing(part.value):
        return False
    if part.cls in (types.UnionType, types.GenericAlias) or part.cls.__module__ == "typing":
        return True
    return issubclass(part.cls, type) and lookup.mro_lookup(tx, part.cls, "__or__") is type.__or__


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
    text = f"unsupported operand type(s) for {sign}: '{type_name(left)}' and '{type_name(right)}'"
    if sign == ">>" and isinstance(a, ObjectVariable) and a.value is print:
        text += '. Did you mean "print(<message>, file=<output_stream>)"?'
    return text


def _has_index(tx: Any, value: VariableTracker) -> bool:
    return isinstance(value, ObjectVariable) and attributes.special_method(tx, value, "__index__") is not None


def _deque_arithmetic(tx: Any, fn: Any, a: VariableTracker, b: VariableTracker) -> VariableTracker | None:
    """deque + deque, deque * int; what is more than ``maxlen`` falls out on the left."""
    if fn is operator.add and isinstance(a, DequeVariable):
        if not isinstance(b, DequeVariable):
            raise UserRaise(user_error(TypeError, f'can only concatenate deque (not "{type_name(b.python_type())}") to deque'))
        items, limit = a.items + b.items, a.maxlen
    elif fn is operator.mul and DequeVariable in (type(a), type(b)):
        whole, count = (a, b) if isinstance(a, DequeVariable) else (b, a)
        items, limit = whole.items * containers.index_of(tx, count, "repeat"), whole.maxlen  # type: ignore[attr-defined]
    else:
        return None
    return DequeVariable(items if limit is None else items[max(len(items) - limit, 0):], limit)


def _sequence_arithmetic(tx: Any, fn: Any, a: VariableTracker, b: VariableTracker, exact: bool) -> VariableTracker | None:
    """``exact``: neither is what an instance of a subclass holds."""
    a, b = specialised(a), specialised(b)  # how often a sequence is repeated
    kind = type(a)
    if DequeVariable in (kind, type(b)):
        return _deque_arithmetic(tx, fn, a, b)
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
        order = fn(a.order, b.order) if a.order is not None and b.order is not None else None
        if fn is operator.and_:
            return SetVariable(containers.common_items(a.items, b.items, True), cls=a.cls, order=order)
        keys = fn(a.items.keys(), b.items.keys())
        return SetVariable({k: a.items.get(k) or b.items[k] for k in [*a.items, *b.items] if k in keys}, cls=a.cls, order=order)
    if fn is operator.mod and isinstance(a, ConstantVariable) and isinstance(a.value, str):
        if isinstance(b, TupleVariable):
            values = [realize(i, tx.state) for i in b.items]
            if all(isinstance(v, ConstantVariable) for v in values):
                return fold(operator.mod, [a, ConstantVariable(tuple(v.value for v in values))])  # type: ignore[attr-defined]
        if isinstance(b, DictVariable) and exact:
            pairs = [(k, realize(v, tx.state)) for k, v in hashed.complete(tx, b).values()]
            if all(isinstance(i, ConstantVariable) for pair in pairs for i in pair):
                return fold(operator.mod, [a, ConstantVariable({k.value: v.value for k, v in pairs})])  # type: ignore[attr-defined]
        raise GraphBreak("untraceable_call", "formatting of an object with %")
    return None


def _size_arithmetic(tx: Any, fn: Any, a: Any, b: Any) -> VariableTracker | None:
    """torch.Size with tuples and numbers: ``size + tuple``, ``tuple + size`` and ``size * n`` are sizes, too."""
    parts = [list(sequence_items(tx, x)) for x in (a, b) if isinstance(payload_of(x), TupleVariable) or is_tuple(x)]
    cls = (a if type(a) is SizeVariable else b).cls
    if fn is operator.add and len(parts) == 2:
        return SizeVariable(parts[0] + parts[1], cls)
    if fn is operator.mul and len(parts) == 1:
        return SizeVariable(parts[0] * containers.index_of(tx, b if type(a) is SizeVariable else a, "repeat"), cls)
    return None
