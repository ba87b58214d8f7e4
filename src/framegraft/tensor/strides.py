"""Strides that the program asks for, where torch's fake kernels may give others than its real ones."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import Node

from ..errors import GraphBreak
from ..model.value import TensorVariable

# Their strides follow from those of what they look at, by the same code for fake and for real tensors. (Not so: reshape, flatten,
# unflatten, where all other dimensions have one element.)
_VIEWS = frozenset(
    "as_strided chunk detach diagonal expand expand_as movedim moveaxis narrow permute select split squeeze swapaxes swapdims t "
    "tensor_split transpose unbind unfold unsqueeze view view_as".split())


def need_strides(obj: TensorVariable, dims: list) -> None:
    """GraphBreak for strides of dimensions with one element or none that only the real tensor tells.

    Such strides say nothing of where elements lie, and kernels are free in them. dims: those that are asked for; none: all.
    """
    sizes = obj.fake.shape
    asked = [sizes[d] for d in dims if type(d) is int and -len(sizes) <= d < len(sizes)] if dims and 0 not in sizes else sizes
    if _has_small(asked) and not _follows(obj.node):
        raise GraphBreak("fake_tensor_failure", "stride() of a dimension with fewer than two elements, which only the real tensor tells")


def _has_small(sizes: Any) -> bool:
    return any(type(size) is int and size < 2 for size in sizes)


def _follows(node: Any) -> bool:
    """Whether the strides follow from sizes and from strides that are known: of inputs, and of tensors without such dimensions."""
    while node.op != "placeholder":
        value = node.meta.get("example_value")
        if isinstance(value, torch.Tensor) and not _has_small(value.shape):
            return True
        name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
        is_view = _is_basic(node.args[1]) if node.target is operator.getitem else name in _VIEWS
        if not is_view or not node.args or not isinstance(node.args[0], Node):
            return False
        node = node.args[0]
    return True


def _is_basic(key: Any) -> bool:
    """Whether indexing with ``key`` gives a view: numpy's basic indexing."""
    if isinstance(key, tuple):
        return all(map(_is_basic, key))
    return key is None or key is Ellipsis or type(key) is int or isinstance(key, slice)
