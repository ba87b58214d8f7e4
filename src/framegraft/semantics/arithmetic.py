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
    MISSING,
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
from . import attributes, calls, containers, hashed, lookup, slots
from .comparing import folded_members, is_tuple, overrides, slot_result
from .containers import sequence_items
from .folding import fold
from .hashed import payload_of
from .members import is_member
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
_IN_PLACE = {plain: fn for fn, (_, plain) in INPLACE.items()}
_SET_UPDATES = {operator.ior: "update", operator.iand: "intersection_update", operator.isub: "difference_update",
                operator.ixor: "symmetric_difference_update"}


def inplace(tx: Any, fn: Any, a: VariableTracker, b: VariableTracker) -> VariableTracker:
    """PyNumber_InPlaceAdd and its kin: the slot for it, those of the plain operator, then what a sequence does in place."""
    name, plain = INPLACE[fn]
    inner = payload_of(a)
    if inner is not a and not isinstance(inner, TupleVariable) and not overrides(tx, a, name):
        if a.python_type() is types.MappingProxyType:
            raise GraphBreak("raised_exception", "a mappingproxy changed in place")
        containers.check_own_items(tx, a, name)
    own = inner if inner is a or not overrides(tx, a, name) else None
    if isinstance(own, DictVariable) and fn is operator.ior:
        calls.call_method(tx, a, "update", [b], {}, dict)
        return a
    if isinstance(own, SetVariable) and own.cls is set and isinstance(payload_of(b), SetVariable) and fn in _SET_UPDATES:
        calls.call(tx, BuiltinMethodVariable(_SET_UPDATES[fn], own), [b], {})
        return a
    if isinstance(own, (ListVariable, DequeVariable)) and fn in (operator.iadd, operator.imul):
        # update_one_slot makes list.__iadd__, which fits there, the slot of numbers of a subclass, too: it comes first
        result = _number_slots(tx, plain, a, b) if own is a or fn is operator.imul else None
        return result if result is not None else _extended(tx, fn, a, own, b)
    result = slot_result(tx, a, name, b) if own is not inner or inner is a else None
    if result is not None:
        return result
    if type(a) is ConstantVariable and type(b) is ConstantVariable:
        return fold(fn, [a, b])
    return binary(tx, plain, a, b, inplace=True)


def _extended(tx: Any, fn: Any, a: VariableTracker, own: Any, b: VariableTracker) -> VariableTracker:
    """list_inplace_concat, list_inplace_repeat and those of deques."""
    if isinstance(own, DequeVariable):
        if fn is operator.imul:
            raise GraphBreak("unsupported_mutation", "a deque repeated in place")
        calls.call(tx, BuiltinMethodVariable("__iadd__", own), [b], {})
    elif fn is operator.iadd:
        calls.call(tx, BuiltinMethodVariable("extend", own), [b], {})
    else:
        own.items[:] = own.items * containers.index_of(tx, b, "repeat")
        hashed.changing(tx, own)
    return a


def binary(tx: Any, fn: Any, a: VariableTracker, b: VariableTracker, inplace: bool = False) -> VariableTracker:
    """PyNumber_Add and its kin: the slots of numbers of both operands, then those of sequences."""
    name, mirrored, sign = BINARY[fn]
    if fn is operator.or_ and (union := _union(tx, a, b)) is not None:
        return union
    members = folded_members(tx, a, b, name, mirrored)
    if members is not None:
        return fold(_IN_PLACE[fn] if inplace and fn in _IN_PLACE else fn, members)  # errors name the sign
    result = _number_slots(tx, fn, a, b)
    if result is None and fn in (operator.add, operator.mul):
        result = _sequence_slots(tx, fn, a, b, inplace)
    if result is not None:
        return result
    raise UserRaise(user_error(TypeError, _mismatch(fn, sign, a, b, inplace)))


def _number_slots(tx: Any, fn: Any, a: VariableTracker, b: VariableTracker) -> VariableTracker | None:
    """binary_op1, and the slot that calls methods (SLOT1BINFULL); None where all of them give NotImplemented."""
    name, mirrored, _ = BINARY[fn]
    slot, other = slots.number_slot(tx, a, name, mirrored), None
    if b.python_type() is not a.python_type():
        other = slots.number_slot(tx, b, name, mirrored)
    mine, others = [(a, name, b)] if slot is not None else [], [(b, mirrored, a)] if other is not None else []
    swap = bool(mine and others) and lookup.inherits(b.python_type(), a.python_type()) and (
        slot is not other or _is_overloaded(tx, a, b, mirrored))
    for operand, method, right in others + mine if swap else mine + others:
        result = _answer(tx, fn, (a, b), operand, method, right)
        if result is not None:
            return result
    return None


def _answer(tx: Any, fn: Any, operands: tuple, operand: VariableTracker, name: str, other: VariableTracker) -> VariableTracker | None:
    """What an operand's method gives; None for NotImplemented."""
    if slots.in_python(tx, operand, name):
        return slot_result(tx, operand, name, other)
    method = lookup.mro_lookup(tx, operand.python_type(), name)
    if method is MISSING or slots.declines(method, name, other):
        return None
    if is_member(other) and payload_of(operand) is operand:
        return slot_result(tx, operand, name, other)
    known = slots.is_known(method) or isinstance(operand, SizeVariable)
    result = _by_contents(tx, fn, *operands, answering=operand) if known else None
    if result is None:
        raise GraphBreak("untraceable_call", f"{operand.python_type().__name__}.{name} of a {other.python_type().__name__}")
    return result


def _by_contents(
    tx: Any, fn: Any, a: VariableTracker, b: VariableTracker, answering: VariableTracker | None = None
) -> VariableTracker | None:
    """What the slots in C make of what the operands hold; None where the trace cannot tell. ``answering``: whose slot it is."""
    if fn is operator.or_ and isinstance(payload_of(a), DictVariable) and isinstance(payload_of(b), DictVariable):
        return containers.merge(tx, a, b, answering)
    x, y = payload_of(a), payload_of(b)
    return _sequence_arithmetic(tx, fn, x, y, x is a and y is b)


def _sequence_slots(tx: Any, fn: Any, a: VariableTracker, b: VariableTracker, inplace: bool) -> VariableTracker | None:
    """sq_concat of the left operand, or sq_repeat of either; None where there is none, or it refuses the other operand."""
    pairs = ((a, b),) if fn is operator.add else ((a, b), (b, a))
    found = next(((whole, other) for whole, other in pairs if issubclass(whole.python_type(), slots.SEQUENCES)), None)
    if found is None:
        return None
    whole, other = found
    if inplace and whole is not a and a.python_type() not in slots.NO_SEQUENCE:  # PyNumber_InPlaceMultiply does not ask the right one then
        raise GraphBreak("raised_exception", f"a {a.python_type().__name__} multiplied in place with a {whole.python_type().__name__}")
    name, mirrored, _ = BINARY[fn]
    if slots.number_slot(tx, whole, name, mirrored) is slots.PYTHON:  # which of the sequence's slots are left, fixup_slot_dispatchers knows
        raise GraphBreak("untraceable_call", f"{name} of a {whole.python_type().__name__}, a sequence with methods of its own")
    result = _by_contents(tx, fn, a, b)
    if result is None and not slots.refuses(tx, fn, whole, other):
        raise GraphBreak("untraceable_call", f"{name} of a {whole.python_type().__name__} and a {other.python_type().__name__}")
    return result


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
    if fn is operator.add and hasattr(left, "__add__") and issubclass(left, slots.SEQUENCES):
        kind = next(k for k in slots.SEQUENCES if issubclass(left, k))
        if kind is bytes:
            return f"can't concat {type_name(right)} to {type_name(left)}"
        return f'can only concatenate {kind.__name__} (not "{type_name(right)}") to {kind.__name__}'
    if fn is operator.mul:
        if issubclass(left, slots.SEQUENCES) or issubclass(right, slots.SEQUENCES):
            other = right if issubclass(left, slots.SEQUENCES) else left
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
            return None
        items, limit = a.items + b.items, a.maxlen
    elif fn is operator.mul and DequeVariable in (type(a), type(b)):
        whole, count = (a, b) if isinstance(a, DequeVariable) else (b, a)
        if lookup.mro_lookup(tx, count.python_type(), "__index__") is MISSING:
            return None
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
            values = [specialised(realize(i, tx.state)) for i in b.items]
            if all(isinstance(v, ConstantVariable) for v in values):
                return fold(operator.mod, [a, ConstantVariable(tuple(v.value for v in values))])  # type: ignore[attr-defined]
        if isinstance(b, DictVariable) and exact:
            pairs = [(k, specialised(realize(v, tx.state))) for k, v in hashed.complete(tx, b).values()]
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
