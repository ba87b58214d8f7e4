"""Attributes of classes that the trace sets or deletes (CPython: type_setattro).

The real class stays as it is until the transformed code stores them. So whoever looks one of these names up in the real class
ends the trace (``lookup.mro_lookup``), but for those who ask here first: plain reads of attributes, on the class and its instances.
"""

from __future__ import annotations

import enum
import types
from typing import Any

from ..errors import GraphBreak
from ..interp.state import realize
from ..model.dispatch import TENSOR, handles
from ..model.source import pinned
from ..model.value import (
    MISSING,
    NONE,
    ConstantVariable,
    DequeVariable,
    DictVariable,
    FunctionVariable,
    ListVariable,
    MethodVariable,
    ObjectVariable,
    SetVariable,
    SymbolicVariable,
    TensorVariable,
    TupleVariable,
    VariableTracker,
)
from . import calls, lookup
from .wrapping import CONSTANT_TYPES, wrap_pinned

_PLAIN = (ConstantVariable, SymbolicVariable, TensorVariable, ListVariable, TupleVariable, DictVariable, SetVariable, DequeVariable)


def written(tx: Any, cls: type, name: str) -> Any:
    """What the trace has given ``cls``, or a base of it, under a name: a tracker; MISSING where the real classes tell."""
    writes = tx.state.class_writes.get(name)
    if writes is None:
        return MISSING
    for base in cls.__mro__:
        found = writes.get(base)
        if found is not None and found is not MISSING:
            if base is not cls:
                lookup.record(tx, cls, name)
            return found
        if found is None and name in base.__dict__:
            return MISSING  # mro_lookup() finds it, too, and refuses where a base before it was written to
    return MISSING


def found(tx: Any, cls: type, name: str) -> Any:
    """``lookup.mro_lookup`` for those who have asked ``written`` before."""
    writes = tx.state.class_writes.get(name)
    if writes and any(writes.get(base) is MISSING for base in cls.__mro__):  # deleted: what follows in the MRO is found
        lookup.record(tx, cls, name)
        left = next((base.__dict__[name] for base in cls.__mro__ if name in base.__dict__ and base not in writes), MISSING)
        if left is not MISSING and type(left) not in CONSTANT_TYPES:
            raise GraphBreak("unsupported_attribute", f"{cls.__name__}.{name}, which the trace has deleted from a class in front")
        return left
    return lookup.mro_lookup(tx, cls, name) if not writes else lookup.record(tx, cls, name)


def is_method(value: VariableTracker) -> bool:
    return isinstance(value, FunctionVariable) or isinstance(value, ObjectVariable) and issubclass(type(value.value), types.FunctionType)


def of_instance(value: VariableTracker, obj: VariableTracker) -> VariableTracker:
    """What an attribute of the class that was set in the trace gives for an instance."""
    return MethodVariable(value, obj) if is_method(value) else value


def number(tx: Any, cls: type, name: str) -> Any:
    """An int that a class keeps, as a symbol where it was seen to change from call to call; MISSING for all else."""
    if type(cls) is not type or not cls.__flags__ & lookup.HEAP_TYPE:
        return MISSING
    state = tx.state
    if not state.class_writes.get(name, {}).keys().isdisjoint(cls.__mro__):
        return MISSING  # the trace has deleted it: what the real class has is no answer any more
    known = state.class_numbers.get((cls, name))
    if known is None:
        value = lookup.peek(cls, name)
        known = TENSOR.number(state, value, pinned(cls).child("RAWTYPEATTR", name)) if type(value) is int else None
        known = state.class_numbers[cls, name] = MISSING if known is None else known
    return known


def _owner(tx: Any, obj: ObjectVariable, name: str) -> type:
    """The class whose attribute it is."""
    cls, meta = obj.value, lookup.metaclass(tx, obj.value)
    if not cls.__flags__ & lookup.HEAP_TYPE or cls.__flags__ & lookup.IMMUTABLE or name.startswith("__") and name.endswith("__"):
        raise GraphBreak("unsupported_mutation", f"setting {cls.__name__}.{name}")
    on_meta = lookup.mro_lookup(tx, meta, name)
    if on_meta is not MISSING and hasattr(type(on_meta), "__set__"):
        raise GraphBreak("unsupported_mutation", f"{cls.__name__}.{name}, a data descriptor of {meta.__name__}")
    if str(cls.__module__).partition(".")[0] in ("torch", "framegraft"):
        raise GraphBreak("unsupported_mutation", f"setting {cls.__name__}.{name} of torch")
    if isinstance(lookup.peek(cls, name), types.MemberDescriptorType) or issubclass(cls, (tuple, enum.Enum)) and name.startswith("_"):
        raise GraphBreak("unsupported_mutation", f"setting {cls.__name__}.{name}, which is kept in C")
    return cls


def set_class_attr(tx: Any, obj: ObjectVariable, name: str, value: VariableTracker) -> None:
    """type.__setattr__."""
    on_meta = lookup.mro_lookup(tx, obj.cls, name)
    if type(on_meta) is property and on_meta.fset is not None:
        calls.call(tx, wrap_pinned(tx, on_meta.fset), [obj, value], {})
        return
    cls = _owner(tx, obj, name)
    value = realize(value, tx.state)
    plain = isinstance(value, _PLAIN) or is_method(value) or isinstance(value, ObjectVariable) and (
        all(lookup.mro_lookup(tx, value.cls, name) is MISSING for name in ("__get__", "__set__", "__delete__")))
    if tx.state.class_writes.get(name, {}).get(cls) is MISSING:
        raise GraphBreak("unsupported_mutation", f"setting {cls.__name__}.{name}, which the trace has deleted: the last of the class's now")
    if not plain:
        raise GraphBreak("unsupported_mutation", f"setting {cls.__name__}.{name} to a {value.python_type().__name__}")
    _write(tx, cls, name, value)


def del_class_attr(tx: Any, obj: ObjectVariable, name: str) -> None:
    """type.__delattr__."""
    cls = _owner(tx, obj, name)
    lookup.record(tx, cls, name)
    before = tx.state.class_writes.get(name, {}).get(cls)
    real = name in cls.__dict__
    if before is MISSING or before is None and not real:
        raise GraphBreak("raised_exception", f"{cls.__name__}.{name} is not there to be deleted")
    if real:
        _write(tx, cls, name, MISSING)
        return
    tx.state.mark_mutated(wrap_pinned(tx, cls))
    del tx.state.class_writes[name][cls], wrap_pinned(tx, cls).attrs[name]  # type: ignore[attr-defined]


def _named(args: list) -> str:
    name = args[1].value if len(args) > 1 and isinstance(args[1], ConstantVariable) else None
    if type(name) is not str or not isinstance(args[0], ObjectVariable) or not issubclass(type(args[0].value), type):
        raise GraphBreak("raised_exception", "an attribute of a class, set on something else")
    return name


@handles(type.__setattr__)
def type_setattr(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    set_class_attr(tx, args[0], _named(args), args[2])
    return NONE


@handles(type.__delattr__)
def type_delattr(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    del_class_attr(tx, args[0], _named(args))
    return NONE


def _write(tx: Any, cls: type, name: str, value: Any) -> None:
    target = wrap_pinned(tx, cls)
    assert isinstance(target, ObjectVariable)
    tx.state.mark_mutated(target)
    tx.state.class_writes.setdefault(name, {})[cls] = value
    target.attrs[name] = value
