"""What Python asks about the classes of tensors: ``isinstance`` of classes with a check of their own, ``__torch_function__``."""

from __future__ import annotations

from typing import Any

import torch

from ..interp.state import realize
from ..model.dispatch import handles
from ..model.value import (
    ConstantVariable,
    DictVariable,
    ListVariable,
    ObjectVariable,
    SymbolicVariable,
    TensorVariable,
    TupleVariable,
    VariableTracker,
    constant,
)
from ..semantics import lookup, truth
from ..semantics.class_checks import INSTANCE_CHECKS, refuse_own_class
from . import subclasses


def _marked_as(kind: type, mark: str) -> Any:
    """``isinstance(x, nn.Parameter)``: also true of other tensors that carry the mark."""

    def check(tx: Any, obj: VariableTracker, cls: type, target: type, hook: str) -> bool:
        if target is kind and isinstance(obj, TensorVariable) and not issubclass(cls, target):
            if mark in obj.attrs:
                tx.state.outside += 1
                return truth.truth(tx, obj.attrs[mark])
            if obj.value is not None and obj.source is not None:
                marked = getattr(obj.value, mark, None)
                if marked is not None:
                    tx.state.guards.add(obj.source.child("ATTR", mark), "EQ", bool(marked))
                    return bool(marked)
                tx.state.guards.add(obj.source.child("ATTR", mark), "ABSENT")
            return False
        refuse_own_class(tx, obj, target)
        lookup.guard_bases(tx, cls)
        return issubclass(cls, target)

    return check


def _is_of_type(tx: Any, obj: VariableTracker, cls: type, target: Any, hook: str) -> bool:
    """``isinstance(x, torch.FloatTensor)`` asks for dtype, layout and device."""
    if not isinstance(obj, TensorVariable):
        refuse_own_class(tx, obj, target)
        return False
    fake = obj.fake
    kind = torch.sparse_coo if target.is_sparse else torch.strided
    return fake.dtype is target.dtype and fake.layout is kind and fake.device.type == ("cuda" if target.is_cuda else "cpu")


INSTANCE_CHECKS[type(torch.nn.Parameter).__instancecheck__] = _marked_as(torch.nn.Parameter, "_is_param")
INSTANCE_CHECKS[type(torch.nn.Buffer).__instancecheck__] = _marked_as(torch.nn.Buffer, "_is_buffer")
INSTANCE_CHECKS[type(torch.FloatTensor).__dict__["__instancecheck__"]] = _is_of_type


_PLAIN = (ConstantVariable, SymbolicVariable)


def _answers_for_itself(tx: Any, tracker: VariableTracker) -> bool:
    """Whether an argument, or an item of one, has a ``__torch_function__`` of its own, which is asked."""
    tracker = realize(tracker, tx.state)
    if isinstance(tracker, TensorVariable):
        return not tx.state.overrides_off and subclasses.is_live(tracker.cls)
    if isinstance(tracker, _PLAIN):
        return False
    if isinstance(tracker, (ListVariable, TupleVariable)):
        return any(_answers_for_itself(tx, item) for item in tracker.items)
    if isinstance(tracker, DictVariable):
        return False  # torch does not look into it either
    if isinstance(tracker, ObjectVariable):
        found = lookup.mro_lookup(tx, tracker.cls, "__torch_function__")
        return isinstance(found, (classmethod, staticmethod)) or callable(found)
    return False


@handles(torch.overrides.has_torch_function, torch.overrides.has_torch_function_unary,
         torch.overrides.has_torch_function_variadic, torch._C._has_torch_function, torch._C._has_torch_function_unary,
         torch._C._has_torch_function_variadic)
def has_torch_function(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    return constant(bool(tx.state.function_modes) or any(_answers_for_itself(tx, a) for a in args))
