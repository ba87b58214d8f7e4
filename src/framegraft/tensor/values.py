"""Values of torch's that are no tensors: sizes, devices, limits of dtypes."""

from __future__ import annotations

import operator
from typing import Any

import torch

from ..errors import GraphBreak
from ..interp.state import realize
from ..model.dispatch import constructs, method
from ..model.value import ConstantVariable, SizeVariable, SymbolicVariable, TupleVariable, VariableTracker, constant
from ..semantics import operators
from ..semantics.iteration import unpack_iterable
from ..semantics.wrapping import need_constant_deep


@constructs(torch.device, torch.Size)
def torch_value(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    if cls is torch.Size and len(args) == 1 and not kwargs:
        items = [realize(i, tx.state) for i in unpack_iterable(tx, args[0])]
        if any(isinstance(i, SymbolicVariable) for i in items):
            return SizeVariable(items, cls)
        args = [TupleVariable(items)]
    try:
        values = [need_constant_deep(a) for a in args]
        return constant(cls(*values, **{k: need_constant_deep(v) for k, v in kwargs.items()}))
    except (RuntimeError, TypeError) as error:
        raise GraphBreak("raised_exception", f"torch.{cls.__name__}(): {error}") from None


@method(SizeVariable, "numel")
def size_numel(tx: Any, obj: SizeVariable, args: list, kwargs: dict) -> VariableTracker:
    total: VariableTracker = constant(1)
    for item in obj.items:
        total = operators.apply(tx, operator.mul, [total, realize(item, tx.state)])
    return total


@constructs(torch.finfo, torch.iinfo)
def number_limits(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    if not all(isinstance(a, ConstantVariable) for a in args) or kwargs:
        raise GraphBreak("untraceable_call", f"torch.{cls.__name__} of something other than a dtype")
    try:
        return constant(cls(*(a.value for a in args)))
    except TypeError as error:
        raise GraphBreak("raised_exception", f"torch.{cls.__name__}(): {error}") from None
