"""Shape propagation of reductions and scans. As in ``shapes``: plain cases, everything else is left to torch (``NotImplemented``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .formats import is_canonical
from .layouts import FLOATS, INTEGERS, fresh_like, is_plain, is_sized
from .twin import fresh

aten = torch.ops.aten
_WHOLE = INTEGERS | {torch.bool}
_Dtype = Callable[[torch.dtype], torch.dtype | None]


def _over(source: Any, dims: Any, keep: Any) -> list[int] | None:
    """The shape that is left; None for what is not plain"""
    rank = source.dim()
    dims = (dims,) if type(dims) is int else dims or range(rank)
    if not rank or not source.numel() or any(type(d) is not int or not -rank <= d < rank for d in dims):
        return None
    gone = {d % rank for d in dims}
    if len(gone) != len(dims):
        return None
    return [1 if i in gone else n for i, n in enumerate(source.shape) if keep or i not in gone]


def _reduction(result: _Dtype) -> Any:
    """ReduceOps.cpp: resize_reduction() makes the result contiguous, whatever the source is."""

    def rule(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
        source = args[0]
        if not is_sized(mode, source) or set(kwargs) - {"dtype"} or len(args) > 3:
            return NotImplemented
        if source._has_symbolic_sizes_strides and not source.is_contiguous():
            return NotImplemented
        dtype = result(source.dtype)
        if dtype is None or kwargs.get("dtype") not in (None, dtype):
            return NotImplemented
        dims, keep = (*args[1:], None, False)[:2] if len(args) < 3 else args[1:3]
        shape = _over(source, dims, keep)
        return NotImplemented if shape is None else fresh(mode, shape, dtype, source.fake_device)

    return rule


def _logsumexp(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    return _reduction(_floats)(mode, args, kwargs) if len(args) > 1 and args[1] else NotImplemented


def _summed(dtype: torch.dtype) -> torch.dtype | None:
    return dtype if dtype in FLOATS else torch.int64 if dtype in _WHOLE else None


def _floats(dtype: torch.dtype) -> torch.dtype | None:
    return dtype if dtype in FLOATS else None


def _own(dtype: torch.dtype) -> torch.dtype | None:
    return dtype if dtype in FLOATS or dtype in _WHOLE else None


def _truth(dtype: torch.dtype) -> torch.dtype | None:
    return torch.bool if dtype is not torch.uint8 and _own(dtype) else None


def _position(dtype: torch.dtype) -> torch.dtype | None:
    return torch.int64 if dtype is not torch.bool and _own(dtype) else None


def _scan(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    """cumsum, cumprod: contiguous, whatever the source is"""
    source = args[0]
    if len(args) != 2 or not is_plain(mode, source) or set(kwargs) - {"dtype"}:
        return NotImplemented
    dtype, rank = _summed(source.dtype), source.dim()
    if dtype is None or kwargs.get("dtype") not in (None, dtype) or type(args[1]) is not int or not -rank <= args[1] < rank:
        return NotImplemented
    return fresh(mode, source.shape, dtype, source.fake_device)


def _with_positions(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    """max.dim, min.dim: (values, indices)"""
    source = args[0]
    if kwargs or len(args) not in (2, 3) or not is_plain(mode, source) or not _own(source.dtype):
        return NotImplemented
    shape = _over(source, *(*args[1:], False)[:2])
    if shape is None:
        return NotImplemented
    return fresh_like(mode, shape, source), fresh(mode, shape, torch.int64, source.fake_device)


def _spread(parts: int) -> Any:
    """var, std (1 part), var_mean, std_mean (2) of contiguous floats"""

    def rule(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
        source = args[0]
        if len(args) > 2 or set(kwargs) - {"correction", "keepdim"} or not is_plain(mode, source) or source.dtype not in FLOATS:
            return NotImplemented
        shape = _over(source, (*args[1:], None)[0], kwargs.get("keepdim", False)) if is_canonical(source) else None
        if shape is None:
            return NotImplemented
        made = tuple(fresh_like(mode, shape, source) for _ in range(parts))
        return made if parts > 1 else made[0]

    return rule


def rules() -> dict[Any, Any]:
    table: dict[Any, Any] = {}
    table |= dict.fromkeys((aten.sum.default, aten.sum.dim_IntList), _reduction(_summed))
    table |= dict.fromkeys((aten.mean.default, aten.mean.dim), _reduction(_floats))
    table[aten.logsumexp.default] = _logsumexp
    table |= dict.fromkeys((aten.amax.default, aten.amin.default, aten.max.default, aten.min.default), _reduction(_own))
    table |= dict.fromkeys((aten.any.default, aten.any.dim, aten.all.default, aten.all.dim), _reduction(_truth))
    table |= dict.fromkeys((aten.argmax.default, aten.argmin.default), _reduction(_position))
    table |= dict.fromkeys((aten.cumsum.default, aten.cumprod.default), _scan)
    table |= dict.fromkeys((aten.max.dim, aten.min.dim), _with_positions)
    table |= dict.fromkeys((aten.var.correction, aten.std.correction), _spread(1))
    return table | dict.fromkeys((aten.var_mean.correction, aten.std_mean.correction), _spread(2))
