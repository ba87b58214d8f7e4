"""Shape propagation of views, copies, matrix products and convolutions.

As in ``shapes``: plain cases, everything else is left to torch (``NotImplemented``). A view of a fake CPU tensor is made by
torch's own kernel: it computes sizes and strides, and touches no data. Products have fresh, contiguous results
(aten/src/ATen/native/LinearAlgebra.cpp); so have convolutions of contiguous tensors (ConvUtils.h).
"""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._mode_utils import no_dispatch

from .formats import is_canonical, preserved
from .twin import META, fresh, twin

aten = torch.ops.aten
_NUMBERS = frozenset((int, bool, float, type(None)))
FLOATS = frozenset((torch.float32, torch.float64, torch.float16, torch.bfloat16))
INTEGERS = frozenset((torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8))


def is_sized(mode: Any, value: Any) -> bool:
    """A strided fake of a CPU tensor, of unknown contents; its sizes may be symbols."""
    return (type(value) is FakeTensor and value.fake_mode is mode and value.constant is None and value.fake_device.type == "cpu"
            and value.layout is torch.strided)


def is_plain(mode: Any, value: Any) -> bool:
    """One of known sizes."""
    return is_sized(mode, value) and not value._has_symbolic_sizes_strides


def _is_number(value: Any) -> bool:
    return type(value) in _NUMBERS or type(value) in (list, tuple) and all(type(v) in _NUMBERS for v in value)


def _viewing(func: Any) -> Any:
    def rule(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
        source = args[0]
        if not is_plain(mode, source) or not all(map(_is_number, args[1:])) or not all(map(_is_number, kwargs.values())):
            return NotImplemented
        device = source.fake_device
        try:
            with no_dispatch():
                made = func(*args, **kwargs)
                if isinstance(made, torch.Tensor):
                    return twin(mode, made, device)
                return [twin(mode, part, device) for part in made]
        except (RuntimeError, IndexError, ValueError):
            return NotImplemented  # torch words the error

    return rule


def _strided(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    """Of a real tensor, no part lies beyond its memory (ATen's checkInBoundsForStorage); the memory of fake ones grows."""
    source, sizes, strides, offset = with_defaults(args, (), (), None)
    known = all(type(n) is int or n.node.has_hint() for n in (*sizes, *strides))  # not sizes that the data decides
    if known and not kwargs and source.layout is torch.strided and len(sizes) == len(strides) and 0 not in sizes:
        first = source.storage_offset() if offset is None else offset
        last = first + sum((n - 1) * stride for n, stride in zip(sizes, strides, strict=True))
        memory = source.untyped_storage().nbytes()
        if memory < (last + 1) * source.itemsize and (memory or not source.numel()):  # else the program has freed it
            raise RuntimeError("as_strided beyond the end of the memory")
    return _as_strided(mode, args, kwargs)


_as_strided = _viewing(aten.as_strided.default)


def fresh_like(mode: Any, shape: Any, like: FakeTensor) -> FakeTensor:
    return fresh(mode, shape, like.dtype, like.fake_device)


def with_defaults(args: tuple[Any, ...], *defaults: Any) -> Any:
    """Positional arguments, the missing ones with the defaults of the schema, which all but the first have."""
    return (*args, *defaults[len(args) - 1 :])


def made_like(mode: Any, source: FakeTensor, dtype: torch.dtype, form: torch.memory_format | None = None) -> Any:
    """With the shape of ``source``, and its order of dimensions unless ``form`` says otherwise: empty_like (TensorFactories.cpp)."""
    if form is torch.contiguous_format:
        return fresh(mode, source.shape, dtype, source.fake_device)
    if form not in (None, torch.preserve_format):
        return NotImplemented
    with no_dispatch():
        strides = preserved(source.shape, source.stride())
        return twin(mode, torch.empty_strided(source.shape, strides, dtype=dtype, device=META), source.fake_device)


def operands(mode: Any, tensors: tuple[Any, ...], rank: int) -> bool:
    """Whether these are plain floats of one dtype, the last two with ``rank`` dimensions."""
    dtype = tensors[-1].dtype
    return dtype in FLOATS and all(is_plain(mode, t) and t.dtype is dtype for t in tensors) and all(t.dim() == rank for t in tensors[-2:])


def _product(rank: int) -> Any:
    """mm (rank 2) and bmm (rank 3)."""

    def rule(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
        if kwargs or len(args) != 2 or type(args[1]) is not FakeTensor or not operands(mode, args, rank):
            return NotImplemented
        a, b = args
        if a.shape[-1] != b.shape[-2] or a.shape[:-2] != b.shape[:-2]:
            return NotImplemented
        return fresh_like(mode, (*a.shape[:-1], b.shape[-1]), a)

    return rule


def _addmm(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    if kwargs or len(args) != 3 or type(args[2]) is not FakeTensor or not operands(mode, args, 2):
        return NotImplemented
    bias, a, b = args
    shape = (a.shape[0], b.shape[1])
    if a.shape[1] != b.shape[0] or tuple(bias.shape) not in (shape, shape[1:]):
        return NotImplemented
    return fresh_like(mode, shape, a)


def _clone(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    source = args[0]
    if len(args) != 1 or not is_plain(mode, source) or set(kwargs) - {"memory_format"} or source.is_conj() or source.is_neg():
        return NotImplemented
    return made_like(mode, source, source.dtype, kwargs.get("memory_format"))


def _softmax(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    if kwargs or len(args) != 3 or args[2] or not is_plain(mode, args[0]) or args[0].dtype not in FLOATS:
        return NotImplemented
    source, dim = args[0], args[1]
    if not source.is_contiguous() or not source.dim() or not -source.dim() <= dim < source.dim():
        return NotImplemented
    return fresh_like(mode, source.shape, source)


def _embedding(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    if len(args) < 2 or not is_plain(mode, args[0]) or not is_plain(mode, args[1]):
        return NotImplemented
    weight, indices = args[:2]
    if weight.dim() != 2 or indices.dtype not in (torch.int64, torch.int32):
        return NotImplemented
    return fresh_like(mode, (*indices.shape, weight.shape[1]), weight)


def windows(size: int, kernel: int, stride: int, padding: int, dilation: int, rest: int = 0) -> int:
    """How often a kernel fits; ``rest``: so many elements may be missing for the last one."""
    return (size + 2 * padding - dilation * (kernel - 1) - 1 + rest) // stride + 1


def _convolution(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    if kwargs or len(args) != 9 or type(args[1]) is not FakeTensor:
        return NotImplemented
    source, weight, bias, stride, padding, dilation, transposed, output_padding, groups = args
    rank = weight.dim()
    given = (source, weight) if bias is None else (bias, source, weight)
    if transposed or any(output_padding) or rank not in (3, 4, 5) or not operands(mode, given, rank):
        return NotImplemented
    spatial = rank - 2
    lists = (stride, padding, dilation)
    if any(len(v) not in (1, spatial) for v in lists) or any(v <= 0 for v in (*stride, *dilation)) or min(padding) < 0:
        return NotImplemented
    stride, padding, dilation = (list(v) * (spatial if len(v) == 1 else 1) for v in lists)
    if source.shape[1] != weight.shape[1] * groups or weight.shape[0] % groups or bias is not None and bias.shape != weight.shape[:1]:
        return NotImplemented
    if not is_canonical(source) or not is_canonical(weight) or not source.numel() or not weight.numel():
        return NotImplemented
    sizes = list(map(windows, source.shape[2:], weight.shape[2:], stride, padding, dilation))
    if min(sizes) <= 0:
        return NotImplemented
    return fresh_like(mode, (source.shape[0], weight.shape[0], *sizes), source)


def rules() -> dict[Any, Any]:
    table: dict[Any, Any] = {
        aten.mm.default: _product(2), aten.bmm.default: _product(3), aten.addmm.default: _addmm, aten.clone.default: _clone,
        aten._softmax.default: _softmax, aten._log_softmax.default: _softmax, aten.embedding.default: _embedding,
        aten.convolution.default: _convolution, aten.as_strided.default: _strided,
    }
    views = (aten.view.default, aten._unsafe_view.default, aten._reshape_alias.default, aten.t.default, aten.transpose.int,
             aten.permute.default, aten.expand.default, aten.slice.Tensor, aten.select.int, aten.unsqueeze.default,
             aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims, aten.alias.default,
             aten.detach.default, aten.split.Tensor, aten.split_with_sizes.default, aten.unbind.int, aten.diagonal.default,
             aten.unfold.default)
    return table | {func: _viewing(func) for func in views}
