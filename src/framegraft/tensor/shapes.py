"""Shape propagation of element-wise operations, which are most of what programs do.

torch runs these on fake tensors through reference implementations in Python: ten times slower, and the first of them imports
torch._dynamo. The rules here cover plain cases and leave the others to torch: they answer ``NotImplemented``. What they answer
is what TensorIterator does (aten/src/ATen/TensorIterator.cpp) and what torch's type promotion says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch._prims_common as prims
from torch._subclasses.fake_tensor import FakeTensor
from torch.autograd.graph import increment_version
from torch.utils._mode_utils import no_dispatch

from ..native.private import is_dense
from . import layouts
from .twin import fresh, twin

aten = torch.ops.aten
_PLAIN = (bool, int, float)
_DEFAULT = prims.ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT
_Rule = Callable[[Any, tuple, dict], Any]


def infer(mode: Any, func: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    """The fake result of ``func``, or NotImplemented where torch must say."""
    rule = RULES.get(func)
    if rule is not None and (known := rule(mode, args, kwargs)) is not NotImplemented:
        return known
    check = CHECKS.get(func)
    if check is not None:
        check(*args, **kwargs)
    return NotImplemented


def _tensors(mode: Any, args: tuple[Any, ...]) -> list[FakeTensor] | None:
    """The tensors among the arguments, None unless each argument is a plain fake tensor or a real number."""
    found = []
    for arg in args:
        if type(arg) is FakeTensor:
            if arg.fake_mode is not mode or arg.constant is not None or arg.layout is not torch.strided:
                return None
            found.append(arg)
        elif type(arg) not in _PLAIN:
            return None
    return found or None


def _same(a: Any, b: Any) -> bool:
    """Whether two shapes are the same. Sequences are compared item by item before their lengths, which asks too much of symbols."""
    return len(a) == len(b) and all(m is n or m == n for m, n in zip(a, b, strict=True))


def _common_dtype(args: tuple, tensors: list[FakeTensor]) -> torch.dtype:
    dtype = tensors[0].dtype
    if all(t.dtype is dtype for t in tensors):
        numbers = [type(a) for a in args if type(a) is not FakeTensor]
        if dtype.is_floating_point or not numbers:
            return dtype
        if dtype is torch.bool:
            if all(n is bool for n in numbers):
                return dtype
        elif not dtype.is_complex and float not in numbers:
            return dtype
    return prims.elementwise_dtypes(*args, type_promotion_kind=_DEFAULT)[1]


def _device(tensors: list[FakeTensor]) -> torch.device | None:
    """Where the result is; None where it depends on more than equality."""
    device = tensors[0].fake_device
    return device if all(t.fake_device == device for t in tensors) else None


def _fresh(mode: Any, tensors: list[FakeTensor], dtype: torch.dtype) -> Any:
    """A result of ``dtype`` with the broadcast shape of ``tensors`` and the strides that TensorIterator gives it."""
    device = _device(tensors)
    if device is None or any(1 in t.shape and t.stride() != prims.make_contiguous_strides_for(t.shape) for t in tensors):
        return NotImplemented  # strides of dimensions of size 1 mean nothing, and kernels differ in what they make of them
    shape = tensors[0].shape
    with no_dispatch():
        if any(not _same(t.shape, shape) for t in tensors):
            try:
                shape = torch.broadcast_shapes(*(t.shape for t in tensors))
            except RuntimeError:
                return NotImplemented  # torch words the error
        symbolic = any(type(n) is not int for n in shape)
        if symbolic and (1 in shape or not all(t.is_contiguous() for t in tensors)):
            return NotImplemented
        # Contiguous operands, broadcast or not, never ask TensorIterator to swap dimensions of more than one element.
        if symbolic or all(_same(t.shape, shape) and t.is_contiguous() for t in tensors):
            meta = torch.empty(shape, dtype=dtype, device="meta")
        else:
            stand_ins = [torch.empty_strided(t.shape, t.stride(), device="meta").expand(shape) for t in tensors if t.dim()]
            meta = torch.empty_strided(shape, prims.compute_elementwise_output_strides(*stand_ins), dtype=dtype, device="meta")
        return twin(mode, meta, device)


def _plain_alpha(kwargs: dict) -> bool:
    """Whether the keyword arguments are no more than an ``alpha`` that any dtype takes."""
    alpha = kwargs.get("alpha")
    return len(kwargs) == 1 and type(alpha) is int and alpha in (1, -1)


def _arithmetic(kind: str) -> _Rule:
    def rule(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
        tensors = _tensors(mode, args)
        if tensors is None or kwargs and not _plain_alpha(kwargs):
            return NotImplemented
        dtype = _common_dtype(args, tensors)
        if kind == "bool":
            return NotImplemented if dtype.is_complex else _fresh(mode, tensors, torch.bool)
        if kind == "bits":
            return NotImplemented if dtype.is_complex or dtype.is_floating_point else _fresh(mode, tensors, dtype)
        if kind == "difference" and any(type(a) is bool or getattr(a, "dtype", None) is torch.bool for a in args):
            return NotImplemented  # an error
        if dtype.is_floating_point:
            return _fresh(mode, tensors, dtype)
        if kind != "float" and not dtype.is_complex and dtype is not torch.bool:
            return _fresh(mode, tensors, dtype)
        return NotImplemented

    return rule


def _activation(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    """One tensor of floats, and numbers that change nothing of the result's metadata."""
    tensors = _tensors(mode, args[:1])
    if tensors is None or not tensors[0].dtype.is_floating_point:
        return NotImplemented
    if any(type(a) not in (*_PLAIN, str, type(None)) for a in (*args[1:], *kwargs.values())):
        return NotImplemented
    return _fresh(mode, tensors, tensors[0].dtype)


def _clamp(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    has_bound = any(a is not None for a in (*args[1:], *kwargs.values()))
    return _activation(mode, args, kwargs) if has_bound else NotImplemented


def _in_place(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    """The first argument itself, where shape and dtype of the result are its own."""
    tensors = _tensors(mode, args)
    target = args[0]
    if tensors is None or kwargs and not _plain_alpha(kwargs) or _device(tensors) is None:
        return NotImplemented
    if any(type(a) is bool for a in args):
        return NotImplemented
    if not target.dtype.is_floating_point or any(t.dtype is not target.dtype or not _same(t.shape, target.shape) for t in tensors):
        return NotImplemented
    return target if is_dense(target) else NotImplemented


def _where(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    tensors = _tensors(mode, args)
    if tensors is None or len(tensors) != 3 or kwargs or args[0].dtype is not torch.bool or args[1].dtype is not args[2].dtype:
        return NotImplemented
    return _fresh(mode, tensors, args[1].dtype)


def _joined(mode: Any, args: tuple[Any, ...], kwargs: dict) -> tuple[Any, int]:
    """The tensors that ``cat`` or ``stack`` joins, and along which dimension; no tensors where that is not plain."""
    parts = tuple(args[0])
    tensors = _tensors(mode, parts)
    dim = args[1] if len(args) > 1 else kwargs.get("dim", 0)
    if tensors is None or len(tensors) != len(parts) or type(dim) is not int or set(kwargs) - {"dim"}:
        return (), 0
    return tensors, dim


def _cat(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    tensors, dim = _joined(mode, args, kwargs)
    if not tensors:
        return NotImplemented
    first, device = tensors[0], _device(tensors)
    rank = first.dim()
    if device is None or not rank or not -rank <= dim < rank or not all(t.is_contiguous() for t in tensors):
        return NotImplemented
    dim %= rank
    around = (first.shape[:dim], first.shape[dim + 1 :], first.dtype)
    if any(t.dim() != rank or (t.shape[:dim], t.shape[dim + 1 :], t.dtype) != around for t in tensors):
        return NotImplemented
    shape = (*first.shape[:dim], sum(t.shape[dim] for t in tensors), *first.shape[dim + 1 :])
    return fresh(mode, shape, first.dtype, device)


def _masked_fill(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    tensors = _tensors(mode, args)
    if tensors is None or len(tensors) != 2 or type(args[1]) is not FakeTensor or args[1].dtype is not torch.bool or kwargs:
        return NotImplemented
    shape = args[0].shape
    if not args[0].dtype.is_floating_point or not args[0].is_contiguous() or args[1].dim() > len(shape):
        return NotImplemented
    if any(m not in (1, n) for m, n in zip(reversed(args[1].shape), reversed(shape), strict=False)):
        return NotImplemented
    return _fresh(mode, tensors[:1], args[0].dtype)


def _stack(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    tensors, dim = _joined(mode, args, kwargs)
    if not tensors:
        return NotImplemented
    first, device = tensors[0], _device(tensors)
    rank = first.dim() + 1
    alike = all(_same(t.shape, first.shape) and t.dtype is first.dtype and t.is_contiguous() for t in tensors)
    if device is None or not alike or not -rank <= dim < rank:
        return NotImplemented
    dim %= rank
    return fresh(mode, (*first.shape[:dim], len(tensors), *first.shape[dim:]), first.dtype, device)


def _normalized(mode: Any, args: tuple[Any, ...], shape: Any) -> Any:
    """(output, mean, rstd) of float32 or float64 tensors: the statistics have ``shape``."""
    given = [a for a in args if a is not None]
    tensors = _tensors(mode, tuple(given))
    if tensors is None or len(tensors) != len(given):
        return NotImplemented
    source, device = tensors[0], _device(tensors)
    wide = source.dtype in (torch.float32, torch.float64) and all(t.dtype is source.dtype for t in tensors)
    if not wide or device is None or device.type != "cpu" or not source.is_contiguous() or not source.numel():
        return NotImplemented
    return tuple(fresh(mode, sizes, source.dtype, device) for sizes in (source.shape, shape, shape))


def _layer_norm(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    if kwargs or len(args) != 5 or type(args[0]) is not FakeTensor:
        return NotImplemented
    source, inner = args[0], tuple(args[1])
    outer = source.dim() - len(inner)
    if not inner or outer < 0 or source.shape[outer:] != inner or any(t is not None and not _same(t.shape, inner) for t in args[2:4]):
        return NotImplemented
    return _normalized(mode, (source, *args[2:4]), (*source.shape[:outer], *(1 for _ in inner)))


def _batch_norm(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    if kwargs or len(args) != 8 or type(args[0]) is not FakeTensor or args[0].dim() < 2:
        return NotImplemented
    for running in args[3:5]:  # written by the kernel, though the schema does not say so
        if args[5] and type(running) is FakeTensor and not running.is_inference():
            increment_version(running)
            mode.uncounted[id(running)] = mode.uncounted.get(id(running), 0) + 1
    channels = args[0].shape[1]
    if any(t is not None and tuple(t.shape) != (channels,) for t in args[1:5]):
        return NotImplemented
    return _normalized(mode, args[:5], (channels,) if args[5] else (0,))


def _reduction(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    """sum, mean, amax, amin of a contiguous tensor of floats over some of its dimensions."""
    tensors = _tensors(mode, args[:1])
    if tensors is None or set(kwargs) - {"dtype"} or kwargs.get("dtype") not in (None, args[0].dtype):
        return NotImplemented
    source = tensors[0]
    rank, device = source.dim(), _device(tensors)
    dims, keep = (*args[1:], None, False)[:2] if len(args) < 3 else args[1:3]
    dims = (dims,) if type(dims) is int else dims or range(rank)
    plain = source.dtype.is_floating_point and source.is_contiguous() and source.numel() and rank
    if not plain or device is None or any(not -rank <= d < rank for d in dims):
        return NotImplemented
    gone = {d % rank for d in dims}
    if len(gone) != len(dims):
        return NotImplemented
    shape = [1 if i in gone else n for i, n in enumerate(source.shape) if keep or i not in gone]
    return fresh(mode, shape, source.dtype, device)


def _table() -> dict[Any, _Rule]:
    table: dict[Any, _Rule] = {aten.where.self: _where, aten.cat.default: _cat}
    any_, floats, truths, bits = (_arithmetic(kind) for kind in ("any", "float", "bool", "bits"))
    table[aten.add.Tensor] = table[aten.mul.Tensor] = any_
    table[aten.sub.Tensor] = _arithmetic("difference")
    for packet in (aten.maximum, aten.minimum):
        table[packet.default] = any_
    for op in (aten.div.Tensor, aten.pow.Tensor_Tensor, aten.pow.Tensor_Scalar, aten.atan2.default, aten.remainder.Tensor,
               aten.remainder.Scalar, aten.fmod.Tensor, aten.fmod.Scalar, aten.fmax.default, aten.fmin.default):
        table[op] = floats
    for packet in (aten.eq, aten.ne, aten.lt, aten.le, aten.gt, aten.ge):
        table[packet.Tensor] = table[packet.Scalar] = truths
    for packet in (aten.logical_and, aten.logical_or, aten.logical_xor, aten.logical_not):
        table[packet.default] = truths
    for packet in (aten.bitwise_and, aten.bitwise_or, aten.bitwise_xor):
        table[packet.Tensor] = table[packet.Scalar] = bits
    names = ("relu sigmoid tanh silu gelu hardtanh hardswish hardsigmoid leaky_relu elu celu selu mish softplus threshold "
             "clamp_min clamp_max neg abs sign floor ceil round trunc frac exp exp2 expm1 log log2 log10 log1p sqrt rsqrt "
             "reciprocal sin cos tan sinh cosh asin acos atan erf erfc erfinv square")
    for name in names.split():
        table[getattr(aten, name).default] = _activation
    table[aten.clamp.default] = _clamp
    table[aten.masked_fill.Scalar] = _masked_fill
    table[aten.stack.default] = _stack
    table[aten.native_layer_norm.default] = _layer_norm
    table[aten.native_batch_norm.default] = _batch_norm
    for op in (aten.sum.default, aten.sum.dim_IntList, aten.mean.default, aten.mean.dim, aten.amax.default, aten.amin.default):
        table[op] = _reduction
    for packet in (aten.add_, aten.sub_, aten.mul_, aten.div_):
        table[packet.Tensor] = _in_place
    for name in ("relu_", "sigmoid_", "tanh_", "exp_", "neg_", "sqrt_", "abs_"):
        table[getattr(aten, name).default] = _in_place
    return table


# Errors that eager kernels raise and torch's shape propagation overlooks. The operation runs for real then, which words them.


def _check_cast(target: Any, *others: Any, **kwargs: Any) -> None:
    """TensorIterator: the common dtype of an in-place operation must be one that casts to its target's."""
    dtype = torch.result_type(target, others[0])
    if not torch.can_cast(dtype, target.dtype):
        raise RuntimeError(f"result type {dtype} can't be cast to {target.dtype}")


def _check_alpha(a: Any, b: Any, alpha: Any = 1) -> None:
    """native::alpha_check"""
    if type(alpha) is bool and torch.result_type(a, b) is not torch.bool:
        raise RuntimeError("a truth value as alpha")


def _check_difference(a: Any, b: Any, alpha: Any = 1) -> None:
    """native::sub_check"""
    if any(type(n) is bool or getattr(n, "dtype", None) is torch.bool for n in (a, b)):
        raise RuntimeError("subtraction of truth values")
    _check_alpha(a, b, alpha)


def _check_mask(target: Any, mask: Any, *value: Any) -> None:
    if mask.dtype is not torch.bool:
        raise RuntimeError("a mask that does not consist of truth values")


def _checks() -> dict[Any, Any]:
    table: dict[Any, Any] = {aten.mul_.Tensor: _check_cast, aten.mul_.Scalar: _check_cast}
    for packet in (aten.add, aten.add_):
        table[packet.Tensor] = table[packet.Scalar] = _check_alpha
    for packet in (aten.sub, aten.sub_, aten.rsub):
        table[packet.Tensor] = table[packet.Scalar] = _check_difference
    for packet in (aten.masked_fill, aten.masked_fill_):
        table[packet.Tensor] = table[packet.Scalar] = _check_mask
    return table


CHECKS = _checks()
RULES = _table() | layouts.rules()
