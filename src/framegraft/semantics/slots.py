"""Which operands the slots in C of builtin classes answer for, so that the trace knows where CPython asks the other operand."""

from __future__ import annotations

import collections
import operator
import types
from typing import Any

from ..model.value import MISSING, ExceptionVariable, ObjectVariable, VariableTracker
from . import lookup

SEQUENCES = (list, tuple, str, bytes, collections.deque)
#: class -> the classes whose instances its slots of numbers take; they give NotImplemented for all others
_OPERANDS: dict[type, tuple[type, ...]] = {
    int: (int,), bool: (int,), float: (int, float), complex: (int, float, complex), set: (set, frozenset), frozenset: (set, frozenset),
    dict: (dict,), collections.OrderedDict: (dict,), collections.defaultdict: (dict,),
}
#: class -> the classes whose instances its tp_richcompare takes
_COMPARED: dict[type, tuple[type, ...]] = {
    **_OPERANDS, object: (), list: (list,), tuple: (tuple,), str: (str,), bytes: (bytes,), collections.deque: (collections.deque,),
    range: (range,), slice: (slice,), types.CodeType: (types.CodeType,), types.MethodType: (types.MethodType,),
    types.CellType: (types.CellType,), types.BuiltinFunctionType: (types.BuiltinFunctionType,), type: (type,),
    types.MethodWrapperType: (types.MethodWrapperType,),
}
_COMPARED[types.UnionType] = (types.UnionType,)  # type: ignore[index]  # a class where it is none of typing's forms
_NO_BUFFER = frozenset((*_OPERANDS, type(None), list, tuple, str, collections.deque, range, slice, type, types.FunctionType))
NO_SEQUENCE = frozenset((int, bool, float, complex, type(None)))  # without tp_as_sequence
_FORMATTED = (str, bytes)  # their % takes whatever is on the right

PYTHON = object()  # the slot that calls the methods of a class (CPython: slot_nb_add and the like)


def number_slot(tx: Any, operand: VariableTracker, name: str, mirrored: str) -> Any:
    """The slot of a binary operator: PYTHON, the class in C that it comes from, or None where there is none.

    ``+`` and ``*`` of sequences are slots of other kinds, which come later.
    """
    found = [lookup.mro_lookup(tx, operand.python_type(), method) for method in (name, mirrored)]
    if any(method is not MISSING and not is_wrapper(method) for method in found):
        return PYTHON
    owner = next((method.__objclass__ for method in found if method is not MISSING), None)
    if name == "__add__" and owner in SEQUENCES or name == "__mul__" and owner is not None and issubclass(owner, SEQUENCES):
        return None
    return owner


def is_wrapper(method: Any) -> bool:
    return isinstance(method, types.WrapperDescriptorType)


def in_python(tx: Any, operand: VariableTracker, name: str) -> bool:
    """Whether a method of the class, not code in C, answers; other objects than those the trace knows by contents count, too."""
    if isinstance(operand, ExceptionVariable):
        return True
    if isinstance(operand, ObjectVariable):
        return operand.payload is None or not is_wrapper(lookup.mro_lookup(tx, operand.cls, name))
    return False


def declines(method: Any, name: str, other: VariableTracker) -> bool:
    """Whether a method in C is known to give NotImplemented for an operand of that class."""
    if method.__objclass__ in _FORMATTED:
        return name == "__rmod__" and not issubclass(other.python_type(), method.__objclass__)
    taken = _OPERANDS.get(method.__objclass__)
    return taken is not None and not issubclass(other.python_type(), taken)


def is_known(method: Any) -> bool:
    """Whether the trace knows what the slot does with operands that it takes."""
    owner = method.__objclass__
    return owner in _OPERANDS or owner in SEQUENCES or owner is types.MappingProxyType


def refuses(tx: Any, fn: Any, whole: VariableTracker, other: VariableTracker) -> bool:
    """Whether a sequence's ``+`` or ``*`` raises a TypeError because of the other operand's class."""
    cls = other.python_type()
    if fn is operator.mul:
        return lookup.mro_lookup(tx, cls, "__index__") is MISSING
    kind = next(kind for kind in SEQUENCES if issubclass(whole.python_type(), kind))
    return cls in _NO_BUFFER if kind is bytes else not issubclass(cls, kind)


def declines_comparison(tx: Any, operand: VariableTracker, name: str, other: VariableTracker) -> bool:
    """The same for a comparison."""
    method = lookup.mro_lookup(tx, operand.python_type(), name)
    taken = _COMPARED.get(method.__objclass__) if is_wrapper(method) else None
    return taken is not None and not issubclass(other.python_type(), taken)
