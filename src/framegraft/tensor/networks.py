"""Shape propagation of what neural networks are made of: normalizations, pooling, attention, losses.

As in ``shapes``: plain cases on the CPU, everything else is left to torch (``NotImplemented``).
"""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.autograd.graph import increment_version
from torch.utils._mode_utils import no_dispatch

from .formats import is_canonical, same
from .layouts import FLOATS, fresh_like, is_plain, is_sized, windows, with_defaults
from .twin import META, fresh, twin

aten = torch.ops.aten
_WIDE = (torch.float32, torch.float64)  # whose statistics have their own dtype


def _plain_floats(mode: Any, tensors: list[Any]) -> bool:
    return all(is_sized(mode, t) for t in tensors) and tensors[0].dtype in _WIDE and all(t.dtype is tensors[0].dtype for t in tensors)


def _normalized(mode: Any, given: tuple[Any, ...], statistics: Any) -> Any:
    """(output, mean, rstd): a contiguous output, statistics of that shape."""
    if not _plain_floats(mode, [t for t in given if t is not None]) or not given[0].numel():
        return NotImplemented
    return tuple(fresh_like(mode, shape, given[0]) for shape in (given[0].shape, statistics, statistics))


def _layer_norm(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    """layer_norm.cpp: contiguous whatever the source is"""
    if kwargs or len(args) != 5 or type(args[0]) is not FakeTensor:
        return NotImplemented
    if args[0]._has_symbolic_sizes_strides and not args[0].is_contiguous():
        return NotImplemented
    source, inner = args[0], tuple(args[1])
    outer = source.dim() - len(inner)
    if not inner or outer < 0 or source.shape[outer:] != inner or any(t is not None and not same(t.shape, inner) for t in args[2:4]):
        return NotImplemented
    return _normalized(mode, (source, *args[2:4]), (*source.shape[:outer], *(1 for _ in inner)))


def _batch_norm(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    """batch_norm_cpu (Normalization.cpp)"""
    if kwargs or len(args) != 8 or type(args[0]) is not FakeTensor or args[0].dim() < 2:
        return NotImplemented
    for running in args[3:5]:  # written by the kernel, though the schema does not say so
        if args[5] and type(running) is FakeTensor and not running.is_inference():
            increment_version(running)
            mode.uncounted[id(running)] = mode.uncounted.get(id(running), 0) + 1
    channels = args[0].shape[1]
    if any(t is not None and tuple(t.shape) != (channels,) for t in args[1:5]) or not args[0].is_contiguous():
        return NotImplemented
    return _normalized(mode, args[:5], (channels,) if args[5] else (0,))


def _group_norm(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    """group_norm.cpp"""
    if kwargs or len(args) != 8 or type(args[0]) is not FakeTensor or any(type(n) is not int for n in args[3:7]):
        return NotImplemented
    source, weight, bias, batch, channels, inner, groups = args[:7]
    if not is_plain(mode, source) or not is_canonical(source) or source.dim() < 2 or tuple(source.shape[:2]) != (batch, channels):
        return NotImplemented
    if source.numel() != batch * channels * inner or groups <= 0 or channels % groups:
        return NotImplemented
    if any(t is not None and tuple(t.shape) != (channels,) for t in (weight, bias)):
        return NotImplemented
    return _normalized(mode, (source, weight, bias), (batch, groups))


def _attention(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    """_flash_attention_cpu (transformers/attention.cpp): heads and positions are swapped in memory."""
    if len(args) < 3 or len(args) > 5 or set(kwargs) - {"attn_mask", "scale"}:
        return NotImplemented
    query, key, value = args[:3]
    mask = kwargs.get("attn_mask")
    given = [query, key, value, *([] if mask is None else [mask])]
    if not all(is_plain(mode, t) for t in given) or query.dtype not in FLOATS or any(t.dtype is not query.dtype for t in (key, value)):
        return NotImplemented
    if any(t.dim() != 4 for t in (query, key, value)) or (len(args) > 3 and args[3] != 0.0) or key.shape != value.shape:
        return NotImplemented
    batch, heads, length, width = query.shape
    if key.shape[:2] != (batch, heads) or key.shape[3] != width or not query.numel() or not key.numel():
        return NotImplemented
    if mask is not None and (mask.dim() not in (2, 4) or mask.dtype not in (query.dtype, torch.float32)):
        return NotImplemented
    wide = query.dtype if query.dtype in _WIDE else torch.float32
    row = heads * width
    with no_dispatch():
        output = torch.empty_strided(query.shape, (length * row, width, row, 1), dtype=query.dtype, device=META)
        sums = torch.empty_strided((batch, heads, length), (length * heads, 1, heads), dtype=wide, device=META)
        return twin(mode, output, query.fake_device), twin(mode, sums, query.fake_device)


def _nll_loss(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    """nll_loss_forward (LossNLL.cpp)"""
    if kwargs or len(args) != 5 or args[2] is not None or args[3] not in (0, 1, 2) or not all(is_plain(mode, t) for t in args[:2]):
        return NotImplemented
    scores, target = args[:2]
    if scores.dim() != 2 or target.shape != scores.shape[:1] or scores.dtype not in FLOATS or target.dtype is not torch.int64:
        return NotImplemented
    return fresh_like(mode, scores.shape[:1] if args[3] == 0 else (), scores), fresh_like(mode, (), scores)


def _pair(value: Any) -> list[int] | None:
    ints = list(value) if type(value) in (list, tuple) else [value]
    return ints * 2 if len(ints) == 1 and type(ints[0]) is int else ints if len(ints) == 2 and all(type(n) is int for n in ints) else None


def _pooled(source: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool) -> list[int] | None:
    """Pool.h: pooling_output_shape; None for what is not plain"""
    kernel, stride, padding, dilation = (_pair(v) for v in (kernel, stride or kernel, padding, dilation))
    if None in (kernel, stride, padding, dilation) or source.dim() != 4 or not source.numel() or not is_canonical(source):
        return None
    if min(*kernel, *stride, *dilation) <= 0 or any(p < 0 or 2 * p > k for p, k in zip(padding, kernel, strict=True)):
        return None
    sizes = []
    for n, k, s, p, d in zip(source.shape[2:], kernel, stride, padding, dilation, strict=True):
        size = windows(n, k, s, p, d, s - 1 if ceil else 0)
        sizes.append(size - (ceil and (size - 1) * s >= n + p))  # the last window starts inside
    return [*source.shape[:2], *sizes] if min(sizes) > 0 else None


def _max_pool(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    """DilatedMaxPool2d.cpp"""
    source, kernel, stride, padding, dilation, ceil = with_defaults(args, None, [], 0, 1, False)
    if kwargs or not is_plain(mode, source) or source.dtype not in FLOATS:
        return NotImplemented
    shape = _pooled(source, kernel, stride, padding, dilation, ceil)
    return NotImplemented if shape is None else (fresh_like(mode, shape, source), fresh(mode, shape, torch.int64, source.fake_device))


def _avg_pool(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    """AveragePool2d.cpp"""
    source, kernel, stride, padding, ceil, _, divisor = with_defaults(args, None, [], 0, False, True, None)
    if kwargs or divisor == 0 or not is_plain(mode, source) or source.dtype not in _WIDE:
        return NotImplemented
    shape = _pooled(source, kernel, stride, padding, 1, ceil)
    return NotImplemented if shape is None else fresh_like(mode, shape, source)


def _upsampled(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    """UpSample: the shape that the size says"""
    source, sizes = args[:2]
    if kwargs or not is_plain(mode, source) or source.dtype not in _WIDE or not is_canonical(source) or not source.numel():
        return NotImplemented
    if source.dim() != 4 or len(sizes) != 2 or any(type(n) is not int or n <= 0 for n in sizes):
        return NotImplemented
    return fresh_like(mode, (*source.shape[:2], *sizes), source)


def rules() -> dict[Any, Any]:
    return {
        aten.native_layer_norm.default: _layer_norm, aten.native_batch_norm.default: _batch_norm,
        aten.native_group_norm.default: _group_norm, aten._scaled_dot_product_flash_attention_for_cpu.default: _attention,
        aten.nll_loss_forward.default: _nll_loss, aten.max_pool2d_with_indices.default: _max_pool,
        aten.avg_pool2d.default: _avg_pool, aten.upsample_nearest2d.default: _upsampled,
        aten.upsample_bilinear2d.default: _upsampled, aten.upsample_bicubic2d.default: _upsampled,
    }
