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
    """An index of a tensor with numbers for tensors of one whole number, which torch reads (applySelect).

    As it is where it has other tensors, too.
    """
    key = realize(key, tx.state)
    items = [realize(item, tx.state) for item in key.items] if type(key) is TupleVariable else [key]
    tensors = [item for item in items if isinstance(item, TensorVariable)]
    if not tensors or any(t.fake.dim() or t.fake.dtype not in _INTEGERS for t in tensors):
        return key
    items = [symbolic.read_number(tx, i, "item") or i if isinstance(i, TensorVariable) else i for i in items]
    return TupleVariable(items) if type(key) is TupleVariable else items[0]


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
    """What an index of a tensor with ``rank`` dimensions selects by symbols: (key, [(dimension, symbol), ...]).

    The key has whole dimensions where symbols were, which are selected afterwards, in the order of the list: dimensions of
    size 1 that the key adds get their strides before. None for the key where there is nothing to do but selecting; None for
    all where the index has no symbol, or is none of numbers, slices, ``None`` and ``...`` alone (torch's "basic" indexing,
    torch/csrc/autograd/python_variable_indexing.cpp).
    """
    items = [look(item) for item in (key.items if isinstance(key, TupleVariable) else [key])]
    if not any(map(_is_symbol, items)) or not all(_is_symbol(i) or _is_plain(i) for i in items):
        return None
    taken = sum(not _is_constant(i, None) and not _is_constant(i, ...) for i in items)
    if taken > rank or sum(_is_constant(i, ...) for i in items) > 1:
        return None
    found, at = [], 0
    for item in items:
        if _is_symbol(item):
            found.append((at, item))
        at += rank - taken if _is_constant(item, ...) else not isinstance(item, ConstantVariable) or item.value is None
    whole = SliceVariable([NONE, NONE, NONE])
    left = TupleVariable([whole if _is_symbol(item) else item for item in items])
    idle = all(_is_symbol(item) or _is_constant(item, ...) or _is_whole(item) for item in items)
    return None if idle else left, found[::-1]


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
