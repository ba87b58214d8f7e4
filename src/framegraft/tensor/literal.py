"""Tensors from lists that tensors are in, and torch's older classes of tensors (``torch.LongTensor``), as newer operations."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from ..errors import GraphBreak
from ..interp.state import realize
from ..model.dispatch import CLASSES, specialised
from ..model.value import (
    ConstantVariable,
    ListVariable,
    ObjectVariable,
    SizeVariable,
    SymbolicVariable,
    TensorVariable,
    TupleVariable,
    VariableTracker,
    constant,
)
from . import torchops
from .running import run_node

_CPU = torch.device("cpu")
_NUMBERS = {bool: torch.bool, int: torch.int64}


def of_list(tx: Any, fn: Any, args: list, kwargs: dict) -> VariableTracker:
    """``torch.tensor([t, 2.0])``: new memory with the numbers in it (internal_new_from_data)."""
    named = {key: realize(value, tx.state) for key, value in kwargs.items()}
    leaves: list[Any] = []
    if len(args) != 1 or not _are_options(named) or not _collect(tx, realize(args[0], tx.state), leaves):
        raise GraphBreak("untraceable_call", f"torch.{fn.__name__} of tensors")
    wanted = _option(named, "dtype") or functools.reduce(torch.promote_types, map(_dtype_of, leaves))
    fits = all(torch.can_cast(_dtype_of(leaf), wanted) for leaf in leaves)  # a number too large for an integer is an error
    if not fits or wanted.is_complex:
        raise GraphBreak("untraceable_call", f"torch.{fn.__name__} of tensors")
    return torchops.moved(tx, _stacked(tx, realize(args[0], tx.state), wanted), _option(named, "device"))


def of_numbers(tx: Any, fn: Any, args: list, kwargs: dict) -> VariableTracker | None:
    """``torch.tensor([h, w])`` of numbers that differ from call to call; None where torch has to read them."""
    named = {key: realize(value, tx.state) for key, value in kwargs.items()}
    data, leaves = realize(args[0], tx.state), []
    if len(args) != 1 or not _are_options(named):
        return None
    if not _collect(tx, data, leaves) or len(leaves) > _MOST_NUMBERS or _shape_of(tx, data) is None:
        return None
    if not any(isinstance(leaf, SymbolicVariable) for leaf in leaves) or any(isinstance(leaf, TensorVariable) for leaf in leaves):
        return None
    wanted = _option(named, "dtype") or functools.reduce(torch.promote_types, map(_dtype_of, leaves))
    if wanted not in (torch.int64, torch.float32, torch.float64) or not all(torch.can_cast(_dtype_of(leaf), wanted) for leaf in leaves):
        return None
    return torchops.moved(tx, _stacked(tx, data, wanted), _option(named, "device"))


def _are_options(named: dict[str, VariableTracker]) -> bool:
    return not named.keys() - {"dtype", "device"} and all(isinstance(value, ConstantVariable) for value in named.values())


def _option(named: dict[str, Any], name: str) -> Any:
    return named[name].value if name in named else None


_MOST_NUMBERS = 32  # each is an operation of the graph


def _shape_of(tx: Any, tracker: Any) -> tuple | None:
    """The shape of lists in lists; None where they differ in length."""
    if not isinstance(tracker, (ListVariable, TupleVariable)):
        return ()
    shapes = {_shape_of(tx, realize(item, tx.state)) for item in tracker.items}
    first = shapes.pop()
    return None if shapes or first is None else (len(tracker.items), *first)


def _collect(tx: Any, tracker: VariableTracker, leaves: list[Any]) -> bool:
    """Whether there are only numbers and tensors of one number each in the lists, which are put down."""
    if isinstance(tracker, (ListVariable, TupleVariable)) and tracker.items:
        return all(_collect(tx, realize(item, tx.state), leaves) for item in tracker.items)
    leaves.append(tracker)
    if isinstance(tracker, TensorVariable):
        fake = tracker.fake
        if fake.requires_grad:
            return False  # torch warns where it reads the number out
        return type(fake) is FakeTensor and not fake.dim() and fake.device.type != "meta" and fake.layout is torch.strided
    if isinstance(tracker, SymbolicVariable):
        return True
    return isinstance(tracker, ConstantVariable) and type(tracker.value) in (bool, int, float)


def _dtype_of(leaf: Any) -> torch.dtype:
    return leaf.fake.dtype if isinstance(leaf, TensorVariable) else _NUMBERS.get(leaf.python_type()) or torch.get_default_dtype()


def _stacked(tx: Any, tracker: Any, dtype: torch.dtype) -> VariableTracker:
    """On the CPU, which is where torch writes the numbers in any case."""
    like = {"dtype": constant(dtype), **({"device": constant(_CPU)} if tx.state.graph.watches_devices else {})}
    if isinstance(tracker, SymbolicVariable) and tracker.cls is not bool:
        return torchops.call_torch(tx, torch.tensor, [tracker], like)
    tracker = specialised(tracker)
    if isinstance(tracker, TensorVariable):
        where = [] if tracker.fake.device == _CPU else [constant(_CPU)]
        return run_node(tx, "call_method", "to", [tracker, *where, constant(dtype)], {})
    if isinstance(tracker, ConstantVariable):
        return run_node(tx, "call_function", torch.tensor, [tracker], like)
    parts = [_stacked(tx, realize(item, tx.state), dtype) for item in tracker.items]
    return run_node(tx, "call_function", torch.stack, [ListVariable(parts)], {})


# -- older classes

_OLDER = {f"{cls.__module__}.{cls.__name__}": cls for cls in (getattr(torch, f"{kind}Tensor") for kind in (
    "Float", "Double", "Half", "BFloat16", "Byte", "Char", "Short", "Int", "Long", "Bool"))}


def make(tx: Any, cls: Any, args: list, kwargs: dict) -> VariableTracker:
    """legacy_tensor_ctor: of a list of numbers, or of sizes. ``torch.Tensor`` has the default dtype."""
    dtype = constant(torch.get_default_dtype() if cls is torch.Tensor else cls.dtype)
    like = {"dtype": dtype, "device": constant(_CPU)}
    items = [realize(a, tx.state) for a in args]
    if len(items) == 1 and isinstance(items[0], (ListVariable, TupleVariable)) and not isinstance(items[0], SizeVariable) and not kwargs:
        leaves: list[Any] = []
        if not items[0].items or _collect(tx, items[0], leaves) and not any(isinstance(leaf, TensorVariable) for leaf in leaves):
            return torchops.call_torch(tx, torch.tensor, items, like)
        return of_list(tx, torch.tensor, items, {"dtype": dtype})
    elif not kwargs and all(isinstance(i, ConstantVariable) and type(i.value) is int for i in items):
        return torchops.call_torch(tx, torch.empty, [TupleVariable(items or [constant(0)])], like)
    raise GraphBreak("untraceable_call", f"torch.{cls.__name__} of something other than numbers or sizes")


def _as_type(tx: Any, obj: TensorVariable, args: list, kwargs: dict) -> VariableTracker | None:
    """``t.type(torch.LongTensor)``; None for other arguments."""
    kind = realize(args[0], tx.state) if len(args) == 1 and not kwargs else None
    name = next((n for n, cls in _OLDER.items() if cls is getattr(kind, "value", None)), None)
    return run_node(tx, "call_method", "type", [obj, constant(name)], {}) if name is not None and isinstance(kind, ObjectVariable) else None


CLASSES.update((cls, make) for cls in _OLDER.values())
torchops.OF_LIST.append(of_list)
torchops.OF_NUMBERS.append(of_numbers)
torchops.AS_TYPE.append(_as_type)
