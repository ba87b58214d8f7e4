"""Shape propagation of tensors that are made anew: filled, like another one, cast, joined, padded, selected from.

As in ``shapes``: plain cases on the CPU, everything else is left to torch (``NotImplemented``). Each rule names the function of
aten/src/ATen/native that lays the result out.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from .formats import broadcast, is_canonical, suggests_contiguous
from .layouts import FLOATS, INTEGERS, fresh_like, is_plain, made_like, with_defaults
from .twin import fresh

aten = torch.ops.aten
_CPU = torch.device("cpu")
_COMPLEX = (torch.complex64, torch.complex128)
_DTYPES = frozenset((*INTEGERS, *FLOATS, *_COMPLEX, torch.bool))
_EXACT = 1 << 31  # numbers up to this are what they are in all the types that ATen computes lengths with


def _is_ordinary(kwargs: dict, *more: str) -> bool:
    """Whether the options ask for a strided CPU tensor of a common dtype; ``more``: other names that are looked at elsewhere."""
    for name, value in kwargs.items():
        if name == "dtype":
            if value is not None and value not in _DTYPES:
                return False
        elif name == "device":
            if value is not None and (value.type != "cpu" or value.index is not None):
                return False
        elif name == "layout":
            if value not in (None, torch.strided):
                return False
        elif name == "pin_memory":
            if value:
                return False
        elif name not in more:
            return False
    return True


def _is_shape(sizes: Any) -> bool:
    return type(sizes) in (list, tuple, torch.Size) and all(type(n) is int and n >= 0 for n in sizes)


def holds(dtype: torch.dtype, value: Any) -> bool:
    """Whether a Python number can be stored in a tensor of ``dtype`` (c10::overflows)."""
    if type(value) not in (bool, int, float):
        return False
    if dtype is torch.bool or type(value) is bool:
        return True
    if dtype in INTEGERS:
        limits = torch.iinfo(dtype)
        return limits.min <= value <= limits.max and abs(value) <= _EXACT
    return dtype in FLOATS and (math.isinf(value) or math.isnan(value) or abs(value) <= torch.finfo(dtype).max)


def _dtype_of(value: Any) -> torch.dtype:
    return torch.bool if type(value) is bool else torch.int64 if type(value) is int else torch.get_default_dtype()


def _empty(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    """empty, zeros, ones"""
    if len(args) != 1 or not _is_shape(args[0]) or not _is_ordinary(kwargs, "memory_format"):
        return NotImplemented
    if kwargs.get("memory_format") not in (None, torch.contiguous_format):
        return NotImplemented
    return fresh(mode, args[0], kwargs.get("dtype") or torch.get_default_dtype(), _CPU)


def _full(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    if len(args) != 2 or not _is_shape(args[0]) or not _is_ordinary(kwargs):
        return NotImplemented
    dtype = kwargs.get("dtype") or _dtype_of(args[1])
    return fresh(mode, args[0], dtype, _CPU) if holds(dtype, args[1]) else NotImplemented


def _scalar_tensor(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    return _full(mode, ((), *args), kwargs) if kwargs.get("dtype") is not None else NotImplemented


def _arange(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    """RangeFactories.cpp: the length of a range of ints is exact."""
    if not 1 <= len(args) <= 3 or not _is_ordinary(kwargs) or any(type(n) is not int or abs(n) > _EXACT for n in args):
        return NotImplemented
    dtype = kwargs.get("dtype") or torch.int64
    start, end, step = (0, *args, 1)[:3] if len(args) == 1 else (*args, 1)[:3]
    if step == 0 or (end - start) * step < 0 or dtype in _COMPLEX or dtype is torch.bool:
        return NotImplemented
    return fresh(mode, (len(range(start, end, step)),), dtype, _CPU)


def _new(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    """new_empty, new_zeros, new_ones"""
    if len(args) != 2 or not is_plain(mode, args[0]) or not _is_shape(args[1]) or not _is_ordinary(kwargs):
        return NotImplemented
    return fresh(mode, args[1], kwargs.get("dtype") or args[0].dtype, _CPU)


def _new_full(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    found = NotImplemented if len(args) != 3 else _new(mode, args[:2], kwargs)
    return found if found is not NotImplemented and holds(found.dtype, args[2]) else NotImplemented


def _like(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    """empty_like(), on which the others build, and ``_to_copy``: a tensor without gaps keeps its strides."""
    source = args[0]
    if len(args) != 1 or not is_plain(mode, source) or not _is_ordinary(kwargs, "memory_format", "non_blocking"):
        return NotImplemented
    dtype = kwargs.get("dtype") or source.dtype
    if source.is_conj() or source.is_neg() or source.dtype.is_complex and not dtype.is_complex:
        return NotImplemented
    return made_like(mode, source, dtype, kwargs.get("memory_format"))


def _full_like(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    found = NotImplemented if len(args) != 2 else _like(mode, args[:1], kwargs)
    return found if found is not NotImplemented and holds(found.dtype, args[1]) else NotImplemented


def _copy(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    """copy_: the first tensor, to which the second one must broadcast."""
    if kwargs or len(args) not in (2, 3) or not all(is_plain(mode, t) for t in args[:2]):
        return NotImplemented
    target, source = args[:2]
    return target if broadcasts(source, target) and source.dtype.is_complex <= target.dtype.is_complex else NotImplemented


def broadcasts(source: Any, target: Any) -> bool:
    """Whether ``source`` can be written to ``target``, which has no elements in the same place."""
    if source.dim() > target.dim() or any(s == 0 and n > 1 for n, s in zip(target.shape, target.stride(), strict=True)):
        return False
    return all(m in (1, n) for m, n in zip(reversed(source.shape), reversed(target.shape), strict=False))


def _fill(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    """masked_fill_ with a number"""
    if kwargs or len(args) != 3 or not all(is_plain(mode, t) for t in args[:2]) or args[1].dtype is not torch.bool:
        return NotImplemented
    target = args[0]
    return target if broadcasts(args[1], target) and holds(target.dtype, args[2]) else NotImplemented


def _cat(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    """TensorShape.cpp: contiguous, unless all parts suggest channels-last; ``torch.tensor([])`` takes no part."""
    parts = list(args[0])
    dim = args[1] if len(args) > 1 else kwargs.get("dim", 0)
    if type(dim) is not int or set(kwargs) - {"dim"} or not parts or any(type(t) is not FakeTensor for t in parts):
        return NotImplemented
    if all(t.constant is not None for t in parts) or not all(t.constant is not None or is_plain(mode, t) for t in parts):
        return NotImplemented
    dtype = parts[0].dtype
    if any(t.dtype is not dtype for t in parts) or not all(suggests_contiguous(t) for t in parts):
        return NotImplemented
    joined = [t for t in parts if t.shape != (0,)]
    rank = joined[0].dim() if joined else 0
    if not rank or not -rank <= dim < rank:
        return NotImplemented
    dim %= rank
    shape = list(joined[0].shape)
    if any(t.dim() != rank or any(m != n for i, (m, n) in enumerate(zip(t.shape, shape, strict=True)) if i != dim) for t in joined):
        return NotImplemented
    shape[dim] = sum(t.shape[dim] for t in joined)
    return fresh(mode, shape, dtype, _CPU)


def _pad(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    """PadNd.cpp"""
    if kwargs or len(args) not in (2, 3) or not is_plain(mode, args[0]) or not suggests_contiguous(args[0]):
        return NotImplemented
    source, pads = args[:2]
    if len(pads) % 2 or len(pads) > 2 * source.dim() or any(type(n) is not int or n < 0 for n in pads):
        return NotImplemented
    if not any(pads):
        return made_like(mode, source, source.dtype)
    if len(args) == 3 and not holds(source.dtype, args[2]):
        return NotImplemented
    shape = list(source.shape)
    for i in range(len(pads) // 2):
        shape[-1 - i] += pads[2 * i] + pads[2 * i + 1]
    return fresh_like(mode, shape, source)


def _same_shape(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    """tril, triu: contiguous whatever the source is (TriangularOps.cpp)"""
    if kwargs or len(args) not in (1, 2) or not is_plain(mode, args[0]) or args[0].dim() < 2 or type((*args, 0)[1]) is not int:
        return NotImplemented
    return fresh_like(mode, args[0].shape, args[0])


def _preserved(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    """flip, roll: like a contiguous source (TensorTransformations.cpp)"""
    if kwargs or not is_plain(mode, args[0]) or not is_canonical(args[0]) or not args[0].numel():
        return NotImplemented
    rank = args[0].dim()
    dims = args[-1]
    if not all(type(n) is int and -rank <= n < rank for n in dims) or len({n % rank for n in dims}) != len(dims):
        return NotImplemented
    if len(args) == 3 and (len(args[1]) != len(dims) or not dims or any(type(n) is not int for n in args[1])):
        return NotImplemented
    return fresh_like(mode, args[0].shape, args[0])


def _repeat(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    if kwargs or len(args) != 2 or not is_plain(mode, args[0]) or not _is_shape(args[1]) or len(args[1]) < args[0].dim():
        return NotImplemented
    source, times = args
    padded = (*(1 for _ in range(len(times) - source.dim())), *source.shape)
    return fresh_like(mode, [m * n for m, n in zip(padded, times, strict=True)], source)


def _gather(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    """TensorAdvancedIndexing.cpp"""
    if kwargs or len(args) != 3 or not all(is_plain(mode, args[i]) for i in (0, 2)) or type(args[1]) is not int:
        return NotImplemented
    source, dim, index = args
    rank = source.dim()
    if index.dtype is not torch.int64 or not rank or index.dim() != rank or not -rank <= dim < rank:
        return NotImplemented
    if any(n > m for i, (n, m) in enumerate(zip(index.shape, source.shape, strict=True)) if i != dim % rank):
        return NotImplemented
    return fresh_like(mode, index.shape, source)


def _index_select(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    if kwargs or len(args) != 3 or not all(is_plain(mode, args[i]) for i in (0, 2)) or type(args[1]) is not int:
        return NotImplemented
    source, dim, index = args
    rank = source.dim()
    if index.dtype not in (torch.int64, torch.int32) or index.dim() != 1 or not -rank <= dim < rank:
        return NotImplemented
    if not source.numel() or not is_canonical(source):
        return NotImplemented
    shape = list(source.shape)
    shape[dim] = index.shape[0]
    return fresh_like(mode, shape, source)


def _index(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    """A contiguous source at positions that contiguous tensors of ints give."""
    if kwargs or len(args) != 2 or not is_plain(mode, args[0]) or not is_canonical(args[0]) or len(args[1]) > args[0].dim():
        return NotImplemented
    source, given = args[0], {d: t for d, t in enumerate(args[1]) if t is not None}
    for t in (*given.values(), source):
        if not is_plain(mode, t) or not t.numel() or t is not source and (t.dtype not in (torch.int64, torch.int32) or not is_canonical(t)):
            return NotImplemented
    shape = broadcast(*(t.shape for t in given.values()))
    if shape is None or not given or len({t.dtype for t in given.values()}) != 1:
        return NotImplemented
    first, last = min(given), max(given)
    at = first if last - first + 1 == len(given) else 0  # positions that are not side by side come first
    rest = [n for d, n in enumerate(source.shape) if d not in given]
    return fresh_like(mode, (*rest[:at], *shape, *rest[at:]), source)


def _top(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    """topk: (values, indices)"""
    if kwargs or len(args) not in (2, 3) or not is_plain(mode, args[0]) or any(type(n) is not int for n in args[1:]):
        return NotImplemented
    source, count, dim = with_defaults(args, None, -1)
    rank = source.dim()
    if not rank or not -rank <= dim < rank or not 0 <= count <= source.shape[dim]:
        return NotImplemented
    shape = list(source.shape)
    shape[dim] = count
    return fresh_like(mode, shape, source), fresh(mode, shape, torch.int64, _CPU)


def _sort(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    """(values, indices)"""
    source, dim, _ = with_defaults(args, -1, False)
    if kwargs or not is_plain(mode, source) or not is_canonical(source) or type(dim) is not int:
        return NotImplemented
    rank = source.dim()
    if not rank or not -rank <= dim < rank:
        return NotImplemented
    return fresh_like(mode, source.shape, source), fresh(mode, source.shape, torch.int64, _CPU)


def _random(rule: Any) -> Any:
    """What draws random numbers"""

    def drawn(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
        found = rule(mode, args, kwargs) if kwargs.get("generator") is None else NotImplemented
        if type(found) is FakeTensor and found.dtype not in FLOATS:
            return NotImplemented
        if found is not NotImplemented:
            mode.note_random()
        return found

    return drawn


def _dropout(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    """native_dropout: (output, mask)"""
    if kwargs or len(args) != 3 or type(args[1]) not in (int, float) or not 0 <= args[1] <= 1 or not is_plain(mode, args[0]):
        return NotImplemented
    if args[0].dtype not in FLOATS or not args[0].numel() or args[2] is False or not is_canonical(args[0]):
        return NotImplemented
    return made_like(mode, args[0], args[0].dtype), made_like(mode, args[0], torch.bool)


def _drawn_in_place(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    """bernoulli_ with a probability"""
    plain = len(args) == 2 and not set(kwargs) - {"generator"} and is_plain(mode, args[0]) and type(args[1]) is float and 0 <= args[1] <= 1
    return args[0] if plain and broadcasts(args[0], args[0]) and args[0].dtype not in _COMPLEX else NotImplemented


def rules() -> dict[Any, Any]:
    table: dict[Any, Any] = {
        aten.full.default: _full, aten.scalar_tensor.default: _scalar_tensor, aten.new_full.default: _new_full,
        aten.full_like.default: _full_like, aten._to_copy.default: _like, aten.copy_.default: _copy, aten.cat.default: _cat,
        aten.masked_fill_.Scalar: _fill, aten.constant_pad_nd.default: _pad, aten.repeat.default: _repeat,
        aten.gather.default: _gather, aten.index_select.default: _index_select, aten.index.Tensor: _index,
        aten.topk.default: _top, aten.sort.default: _sort, aten.empty.memory_format: _empty,
    }
    table |= dict.fromkeys((aten.rand.default, aten.randn.default), _random(_empty))
    table |= dict.fromkeys((aten.rand_like.default, aten.randn_like.default), _random(_like))
    table |= {aten.native_dropout.default: _random(_dropout), aten.bernoulli_.float: _random(_drawn_in_place)}
    table |= dict.fromkeys((aten.zeros.default, aten.ones.default), _empty)
    table |= dict.fromkeys((aten.arange.default, aten.arange.start, aten.arange.start_step), _arange)
    table |= dict.fromkeys((aten.new_empty.default, aten.new_zeros.default, aten.new_ones.default), _new)
    table |= dict.fromkeys((aten.empty_like.default, aten.zeros_like.default, aten.ones_like.default), _like)
    table |= dict.fromkeys((aten.tril.default, aten.triu.default), _same_shape)
    return table | dict.fromkeys((aten.flip.default, aten.roll.default), _preserved)
