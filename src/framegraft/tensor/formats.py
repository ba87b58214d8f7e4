"""Strides of results, as ATen's kernels lay them out. Sizes and strides are plain ints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

Ints = Sequence[int]


def contiguous(shape: Ints) -> tuple[int, ...]:
    """c10/util/strides.h: contiguous_strides"""
    strides, count = [], 1
    for size in reversed(shape):
        strides.append(count)
        count *= max(size, 1)
    return tuple(reversed(strides))


def same(a: Any, b: Any) -> bool:
    """Whether two shapes are the same. Sequences are compared item by item before their lengths, which asks too much of symbols."""
    return len(a) == len(b) and all(m is n or m == n for m, n in zip(a, b, strict=True))


def broadcast(*shapes: Ints) -> tuple[int, ...] | None:
    """torch.broadcast_shapes(), which loads what symbolic sizes need; None where it raises"""
    rank = max(map(len, shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for i, size in enumerate(shape, rank - len(shape)):
            if size != 1:
                if result[i] not in (1, size):
                    return None
                result[i] = size
    return tuple(result)


def is_canonical(t: torch.Tensor) -> bool:
    """Contiguous, and no dimension of size 1 has another stride than ``contiguous`` gives it: nothing takes it for channels-last."""
    return t.is_contiguous() and t.stride() == contiguous(t.shape)


def dense(shape: Ints, strides: Ints) -> bool:
    """c10/core/TensorImpl.h: is_non_overlapping_and_dense"""
    expected = 1
    for stride, size in sorted((s, n) for s, n in zip(strides, shape, strict=True) if n > 1):
        if stride != expected:
            return False
        expected *= size
    return True


def preserved(shape: Ints, strides: Ints) -> Ints:
    """Strides of what is made like a tensor: its own, or in their order without gaps (ExpandUtils.cpp: infer_dense_strides)."""
    return strides if dense(shape, strides) else _permuted(shape, [strides])


def suggests_contiguous(t: torch.Tensor) -> bool:
    """Whether ``suggest_memory_format()`` of a tensor gives ``torch.contiguous_format``."""
    if t.dim() not in (4, 5) or is_canonical(t):
        return True
    return not _is_channels_last(t.shape, t.stride())


def _is_channels_last(shape: Ints, strides: Ints) -> bool:
    """c10/core/MemoryFormat.h: is_channels_last_strides_2d and _3d"""
    least = 0
    if strides[1] == 0:
        return False
    for d in (1, *range(len(shape) - 1, 1, -1), 0):
        if shape[d] == 0 or strides[d] < least:
            return False
        if d == 0 and least == strides[1]:
            return False
        least = strides[d] * shape[d]
    return True


def iterated(shape: Ints, tensors: Sequence[Any], numbers: bool) -> tuple[int, ...]:
    """Strides of the result of an element-wise operation (aten/src/ATen/TensorIterator.cpp).

    Args:
        shape: what the operands broadcast to.
        tensors: the operands, in their order, on which methods do not dispatch.
        numbers: whether a number is among the operands: TensorIterator takes it for a tensor without dimensions.
    """
    alike = all(t.shape == shape for t in tensors)
    if alike and (not numbers or 1 not in shape) and all(t.is_contiguous() for t in tensors):
        return contiguous(shape)
    if alike and not numbers:
        if len(shape) == 4 and all(t.is_contiguous(memory_format=torch.channels_last) for t in tensors):
            _, c, h, w = shape
            return (h * w * c, 1, w * c, c)
        strides = tensors[0].stride()
        if all(dense(shape, t.stride()) for t in tensors) and all(t.stride() == strides for t in tensors):
            return strides
    return _permuted(shape, [_broadcast(t, shape) for t in tensors])


def _broadcast(t: Any, shape: Ints) -> list[int]:
    """compute_strides(), in bytes"""
    left, size = len(shape) - t.dim(), t.element_size()
    own = [0 if n == 1 and m != 1 else s * size for n, m, s in zip(t.shape, shape[left:], t.stride(), strict=True)]
    return [0] * left + own


def _permuted(shape: Ints, operands: list[Ints]) -> tuple[int, ...]:
    """reorder_dimensions(), and contiguous strides for the dimensions in that order"""

    def compared(a: int, b: int) -> int:
        for strides in operands:
            one, other = strides[a], strides[b]
            if one == 0 or other == 0:
                continue
            if one != other:
                return -1 if one < other else 1
            if shape[a] > shape[b]:
                return 1
        return 0

    order = list(reversed(range(len(shape))))
    for i in range(1, len(order)):
        at = i
        for before in range(i - 1, -1, -1):
            comparison = compared(order[before], order[at])
            if comparison > 0:
                order[before], order[at] = order[at], order[before]
                at = before
            elif comparison < 0:
                break
    strides, count = [0] * len(shape), 1
    for d in order:
        strides[d] = count
        count *= max(shape[d], 1)
    return tuple(strides)
