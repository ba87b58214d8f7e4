"""Instances of subclasses of int, float, str and bytes: they have their value in C, which cannot change.

Enums' members are guarded by their identity, others by their class and value.
"""

from __future__ import annotations

import enum
import types
from typing import Any

from ..model.value import MISSING, ConstantVariable, ObjectVariable, VariableTracker
from . import lookup
from .wrapping import PLAIN_VALUES

_PLAIN = PLAIN_VALUES
_IN_C = (types.MethodDescriptorType, types.WrapperDescriptorType)


def is_member(tracker: VariableTracker) -> bool:
    return isinstance(tracker, ObjectVariable) and issubclass(type(tracker.value), (enum.Enum, *_PLAIN))


def plain_value(tracker: VariableTracker) -> ConstantVariable | None:
    """The number or text that C code takes the member for; None for other objects."""
    if not is_member(tracker):
        return None
    value: Any = tracker.value  # type: ignore[attr-defined]
    base = next((base for base in type(value).__mro__ if base in _PLAIN), None)
    return None if base is None else ConstantVariable(_PLAIN[base](value))


def leaves_to_tensors(tx: Any, tracker: VariableTracker, name: str) -> bool:
    """Whether a tensor operation takes the object for a number or text, and it has no operator of its own for one of this name."""
    name = name.strip("_")
    names = [f"__{n}__" for n in (name, "r" + name, name[1:], "r" + name[1:])]
    return not hasattr(tracker.python_type(), "__torch_function__") and has_in_c(tx, tracker, *names)


def has_in_c(tx: Any, tracker: VariableTracker, *names: str) -> bool:
    """Whether it is such a member, and its methods of these names, as far as there are any, are those of int, float or str."""
    if plain_value(tracker) is None:
        return False
    found = (lookup.mro_lookup(tx, tracker.python_type(), name) for name in names)
    return all(
        isinstance(method, _IN_C) and (method.__objclass__ in _PLAIN or method.__objclass__ is object)
        for method in found if method is not MISSING)
