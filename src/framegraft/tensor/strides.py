"""Strides that the program asks for, where torch's fake kernels may give others than its real ones.

A stride of a dimension with fewer than two elements says nothing of where elements lie, and kernels are free in it. Where the program
asks for one, it is either shown to follow from known strides, or the real kernels are asked: the nodes that lead to the tensor are run
on zeros of known strides.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import Node
from torch.utils._mode_utils import no_dispatch

from ..errors import GraphBreak
from ..model.value import TensorVariable
from . import symbolic

# Their strides follow from those of what they look at, by the same code for fake and for real tensors. (Not so: reshape, flatten,
# unflatten, where all other dimensions have one element.)
_VIEWS = frozenset(
    "as_strided chunk detach diagonal expand expand_as movedim moveaxis narrow permute select split squeeze swapaxes swapdims t "
    "tensor_split transpose unbind unfold unsqueeze view view_as".split())
# Kernels whose results have strides that depend on nothing but sizes, strides and dtypes of their arguments; beside these, all that
# torch tags as pointwise.
_KERNELS = _VIEWS | frozenset(
    "reshape flatten unflatten ravel contiguous clone to type type_as float double half bfloat16 int long bool "
    "new_zeros new_ones new_full zeros ones full arange zeros_like ones_like full_like "
    "cat concat stack pad constant_pad_nd repeat tile roll flip tril triu cumsum cumprod "
    "sum mean amax amin max min argmax argmin any all prod var std "
    "softmax log_softmax layer_norm linear matmul mm bmm addmm baddbmm embedding getitem".split())
_MOST_NODES, _MOST_ELEMENTS = 200, 1 << 23  # of what is run for an answer


def tensor_of_strides(obj: TensorVariable, dims: list) -> torch.Tensor:
    """The tensor, fake or real, that has the strides which eager mode's has.

    dims: those of the dimensions that are asked for; none: all. GraphBreak where only eager mode's kernels could tell.
    """
    sizes = obj.fake.shape
    asked = sizes
    if dims and not any(map(_may_be_empty, sizes)):
        asked = [sizes[d] for d in dims if type(d) is int and -len(sizes) <= d < len(sizes)]
    if not _has_small(asked) or all(type(size) is int for size in asked) and _follows(obj.node):
        return obj.fake
    try:
        with no_dispatch(), torch._C.DisableTorchFunction(), torch.no_grad():
            real = _Replay().value(obj.node)
    except (LookupError, RuntimeError, TypeError, ValueError, ArithmeticError):
        real = None
    if not isinstance(real, torch.Tensor) or real.shape != sizes:
        raise GraphBreak("fake_tensor_failure", "stride() of a dimension with fewer than two elements, which only the real tensor tells")
    return real


def _has_small(sizes: Any) -> bool:
    return any(size < 2 if type(size) is int else not symbolic.holds(size > 1) for size in sizes)


def _may_be_empty(size: Any) -> bool:
    return size == 0 if type(size) is int else not symbolic.holds(size > 0)


def _follows(node: Any) -> bool:
    """Whether the strides follow from sizes and from strides that are known: of inputs, and of tensors without such dimensions."""
    while not _is_known(node):
        name = _name(node)
        is_view = _is_basic(node.args[1]) if node.target is operator.getitem else name in _VIEWS
        if not is_view or not node.args or not isinstance(node.args[0], Node):
            return False
        node = node.args[0]
    return True


def _is_known(node: Node) -> bool:
    if node.op == "placeholder":
        return True
    value = node.meta.get("example_value")
    return isinstance(value, torch.Tensor) and (not _has_small(value.shape) or _constant(value) is not None)


def _constant(fake: Any) -> torch.Tensor | None:
    """The value of a fake tensor that was computed from numbers of the program alone."""
    return fake.constant if type(fake) is FakeTensor else None


def _name(node: Node) -> str:
    return node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")


def _is_basic(key: Any) -> bool:
    """Whether indexing with ``key`` gives a view: numpy's basic indexing."""
    if isinstance(key, tuple):
        return all(map(_is_basic, key))
    return key is None or key is Ellipsis or type(key) is int or isinstance(key, slice)


class _Replay:
    """Runs nodes with torch's own kernels, from zeros with the sizes and strides of tensors that are known, and from constants.

    Raises LookupError for what it does not run, and what the kernels raise.
    """

    def __init__(self) -> None:
        self.made: dict[Node, Any] = {}
        self.elements = 0

    def value(self, node: Node) -> Any:
        if node not in self.made:
            if len(self.made) >= _MOST_NODES:
                raise LookupError
            self._count(node.meta.get("example_value"))
            self.made[node] = self._start(node) if _is_known(node) else self._run(node)
        return self.made[node]

    def _count(self, fake: Any) -> None:
        for t in fake if isinstance(fake, (tuple, list)) else [fake]:
            if type(t) is not FakeTensor or t.fake_device.type != "cpu" or t.layout is not torch.strided or t._has_symbolic_sizes_strides:
                raise LookupError
            self.elements += t.numel()
        if self.elements > _MOST_ELEMENTS:
            raise LookupError

    def _start(self, node: Node) -> torch.Tensor:
        fake = node.meta["example_value"]
        known = _constant(fake)
        if known is not None:
            return known.clone()
        return torch.empty_strided(tuple(fake.shape), tuple(fake.stride()), dtype=fake.dtype).zero_()

    def _run(self, node: Node) -> Any:
        if not _is_kernel(node):
            raise LookupError
        args = torch.fx.map_arg(node.args, self.value)
        kwargs = torch.fx.map_arg(node.kwargs, self.value)
        return getattr(args[0], node.target)(*args[1:], **kwargs) if node.op == "call_method" else node.target(*args, **kwargs)  # type: ignore[operator]


def _is_kernel(node: Node) -> bool:
    name = _name(node)
    if node.op not in ("call_method", "call_function"):
        return False
    homes = (torch, torch.nn.functional, torch._C._nn, operator)  # type: ignore[attr-defined]
    if node.op == "call_function" and all(getattr(home, name, None) is not node.target for home in homes):
        return False
    if name in _KERNELS:
        return True
    name = {"truediv": "div", "floordiv": "floor_divide", "mod": "remainder", "and_": "bitwise_and", "or_": "bitwise_or",
            "invert": "bitwise_not", "not_": "logical_not"}.get(name, name)
    packet = getattr(torch.ops.aten, name, None)
    tags = [getattr(packet, overload).tags for overload in packet.overloads()] if packet is not None else []
    return any(torch.Tag.pointwise in t for t in tags) and not any(torch.Tag.nondeterministic_seeded in t for t in tags)
