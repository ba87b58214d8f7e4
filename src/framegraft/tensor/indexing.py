"""Positions in tensors that are symbols, or numbers in tensors: torch's indexing would read each as the number that it is in this call."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch

from ..interp.state import realize
from ..model.dispatch import TENSOR
from ..model.value import (
    NONE,
    ConstantVariable,
    SliceVariable,
    SymbolicVariable,
    TensorVariable,
    TupleVariable,
    VariableTracker,
)
from . import symbolic

BY_KEY = frozenset((operator.getitem, operator.setitem))
_INTEGERS = frozenset((torch.int8, torch.int16, torch.int32, torch.int64))  # uint8 is a mask


def with_numbers(tx: Any, key: VariableTracker) -> VariableTracker:
    """An index of a tensor with numbers for tensors of one whole number, which torch reads (applySelect, THPUtils_unpackSlice)."""
    key = realize(key, tx.state)
    if type(key) in (TupleVariable, SliceVariable):
        items = [with_numbers(tx, item) for item in key.items]  # type: ignore[attr-defined]
        return key if all(map(operator.is_, items, key.items)) else type(key)(items)  # type: ignore[attr-defined, call-arg]
    if isinstance(key, TensorVariable) and not key.fake.dim() and key.fake.dtype in _INTEGERS:
        return symbolic.read_number(tx, key, "item") or key
    return key


def from_start(tx: Any, index: SymbolicVariable, size: Any) -> VariableTracker:
    """A position that the data decides, counted from the start; the graph checks that there is one of that number."""
    symbols = tx.state.graph.symbols
    if not symbols.is_unbacked(index.value) or symbols.is_unbacked(size):
        return index
    first, after = symbolic.wrap_value(-size), symbolic.wrap_value(size)
    for compare, bound in ((operator.ge, first), (operator.lt, after)):
        exists = symbolic.compute(symbols, compare, [index, bound])
        if exists is None or not TENSOR.assume(tx, exists, True):
            return index  # the operation itself raises
    return symbolic.compute(symbols, operator.mod, [index, after]) or index


def selections(rank: int, key: VariableTracker, look: Callable[[VariableTracker], VariableTracker]) -> Any:
    """What an index of a tensor with ``rank`` dimensions selects by symbols: (key, [(dimension, symbol), ...], rest).

    The key has whole dimensions where symbols were, which are selected afterwards, in the order of the list: dimensions of
    size 1 that the key adds get their strides before. ``rest`` is what is left to index then. None for the one and the other where
    there is nothing to do but selecting; None for all where the index has no symbol, or something else than numbers, slices, ``None``,
    ``...`` and tensors (torch/csrc/autograd/python_variable_indexing.cpp).
    """
    items = [look(item) for item in (key.items if isinstance(key, TupleVariable) else [key])]
    if not any(map(_is_symbol, items)) or sum(_is_constant(i, ...) for i in items) > 1:
        return None
    if any(isinstance(i, TensorVariable) for i in items):
        return _selections_among_tensors(rank, items)
    if not all(_is_symbol(i) or _is_plain(i) for i in items):
        return None
    taken = sum(not _is_constant(i, None) and not _is_constant(i, ...) for i in items)
    if taken > rank:
        return None
    found, at = [], 0
    for item in items:
        if _is_symbol(item):
            found.append((at, item))
        at += rank - taken if _is_constant(item, ...) else not isinstance(item, ConstantVariable) or item.value is None
    whole = SliceVariable([NONE, NONE, NONE])
    left = TupleVariable([whole if _is_symbol(item) else item for item in items])
    idle = all(_is_symbol(item) or _is_constant(item, ...) or _is_whole(item) for item in items)
    return None if idle else left, found[::-1], None


def _selections_among_tensors(rank: int, items: list[VariableTracker]) -> Any:
    """``selections`` of an index with tensors, which index what is left: torch selects first (applySlicing)."""
    if not all(_is_symbol(i) or _is_plain(i) or isinstance(i, TensorVariable) for i in items):
        return None
    sizes = [_dimensions(item) for item in items]
    if sum(sizes) > rank:
        return None
    found, at = [], 0
    for item, size in zip(items, sizes, strict=True):
        if _is_symbol(item):
            found.append((at, item))
        at += rank - sum(sizes) if _is_constant(item, ...) else size
    return None, found[::-1], TupleVariable([item for item in items if not _is_symbol(item)])


def _dimensions(item: VariableTracker) -> int:
    """How many dimensions of the tensor an item of an index stands for."""
    if isinstance(item, TensorVariable):
        return item.fake.dim() if item.fake.dtype in (torch.bool, torch.uint8) else 1
    return not _is_constant(item, None) and not _is_constant(item, ...)


def _is_constant(item: VariableTracker, value: Any) -> bool:
    return isinstance(item, ConstantVariable) and item.value is value


def _is_whole(item: VariableTracker) -> bool:
    return isinstance(item, SliceVariable) and all(_is_constant(bound, None) for bound in item.items)


def _is_symbol(item: VariableTracker) -> bool:
    return isinstance(item, SymbolicVariable) and item.cls is int


def _is_plain(item: VariableTracker) -> bool:
    if isinstance(item, ConstantVariable):
        return item.value is None or item.value is ... or type(item.value) is int
    return isinstance(item, SliceVariable)
