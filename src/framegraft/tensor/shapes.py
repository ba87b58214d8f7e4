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
from torch.utils._mode_utils import no_dispatch

from ..native.private import is_dense
from . import factories, kernels, layouts, networks, reductions
from .formats import broadcast, is_canonical, iterated, same
from .twin import META, fresh, twin

aten = torch.ops.aten
_PLAIN = (bool, int, float)
_DEFAULT = prims.ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT
_Rule = Callable[[Any, tuple, dict], Any]


def infer(mode: Any, func: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    """The fake result of ``func``, or NotImplemented where torch must say."""
    rule = RULES.get(func)
    if rule is not None and (known := rule(mode, args, kwargs)) is not NotImplemented:
        if func in MADE:
            kernels.check(func, args, kwargs)
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


def _fresh(mode: Any, tensors: list[FakeTensor], dtype: torch.dtype, numbers: bool = False) -> Any:
    """A result of ``dtype`` with the broadcast shape of ``tensors`` and the strides that TensorIterator gives it.

    Args:
        numbers: there are Python numbers among the operands, which TensorIterator takes for tensors without dimensions.
    """
    device = _device(tensors)
    if device is None:
        return NotImplemented
    shape = tensors[0].shape
    symbolic = any(t._has_symbolic_sizes_strides for t in tensors)
    with no_dispatch():
        if any(not same(t.shape, shape) for t in tensors):
            shape = _broadcast(tensors, symbolic)
            if shape is None:
                return NotImplemented  # torch words the error
        # Contiguous operands, broadcast or not, never ask TensorIterator to swap dimensions of more than one element.
        if symbolic:
            if 1 in shape or not all(t.is_contiguous() for t in tensors):
                return NotImplemented
            meta = torch.empty(shape, dtype=dtype, device=META)
        else:
            meta = torch.empty_strided(shape, iterated(shape, tensors, numbers), dtype=dtype, device=META)
        return twin(mode, meta, device)


def _broadcast(tensors: list[FakeTensor], symbolic: bool) -> Any:
    """The shape that operands have together; None where they have none."""
    if not symbolic:
        return broadcast(*(t.shape for t in tensors))
    try:
        return torch.broadcast_shapes(*(t.shape for t in tensors))
    except RuntimeError:
        return None


def _plain_alpha(kwargs: dict) -> bool:
    """Whether the keyword arguments are no more than an ``alpha`` that any dtype takes."""
    alpha = kwargs.get("alpha")
    return len(kwargs) == 1 and type(alpha) is int and alpha in (1, -1)


def _arithmetic(kind: str) -> _Rule:
    def rule(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
        tensors = _tensors(mode, args)
        if tensors is None or kwargs and not _plain_alpha(kwargs):
            return NotImplemented
        dtype, numbers = _common_dtype(args, tensors), kind != "power" and len(tensors) < len(args)
        if kind == "bool":
            return NotImplemented if dtype.is_complex else _fresh(mode, tensors, torch.bool, numbers)
        if kind == "bits":
            return NotImplemented if dtype.is_complex or dtype.is_floating_point else _fresh(mode, tensors, dtype, numbers)
        if kind == "difference" and any(type(a) is bool or getattr(a, "dtype", None) is torch.bool for a in args):
            return NotImplemented  # an error
        if dtype.is_floating_point:
            return _fresh(mode, tensors, dtype, numbers)
        if kind == "quotient" and not dtype.is_complex:
            return _fresh(mode, tensors, torch.get_default_dtype(), numbers)
        if kind in ("any", "difference") and not dtype.is_complex and dtype is not torch.bool:
            return _fresh(mode, tensors, dtype, numbers)
        return NotImplemented

    return rule


def _rounded(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    """Division with a rounding mode, which leaves ints ints."""
    if kwargs and kwargs not in ({"rounding_mode": "floor"}, {"rounding_mode": "trunc"}):
        return NotImplemented
    return _arithmetic("any")(mode, args, {})


def _activation(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    """One tensor of floats, and numbers that change nothing of the result's metadata."""
    tensors = _tensors(mode, args[:1])
    if tensors is None or not tensors[0].dtype.is_floating_point:
        return NotImplemented
    if any(type(a) not in (*_PLAIN, str, type(None)) for a in (*args[1:], *kwargs.values())):
        return NotImplemented
    return _fresh(mode, tensors, tensors[0].dtype)


def _hardtanh(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    """Its result is made by empty_like()."""
    canonical = type(args[0]) is FakeTensor and (args[0]._has_symbolic_sizes_strides or is_canonical(args[0]))
    return _activation(mode, args, kwargs) if canonical else NotImplemented


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
    if not target.dtype.is_floating_point or any(t.dtype is not target.dtype for t in tensors):
        return NotImplemented
    if any(t._has_symbolic_sizes_strides for t in tensors):
        return target if is_dense(target) and all(same(t.shape, target.shape) for t in tensors) else NotImplemented
    return target if all(factories.broadcasts(t, target) for t in tensors) else NotImplemented


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


def _masked_fill(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    """A contiguous clone of the first tensor is filled, broadcast to the mask (TensorAdvancedIndexing.cpp)."""
    tensors = _tensors(mode, args)
    if tensors is None or type(args[1]) is not FakeTensor or args[1].dtype is not torch.bool or kwargs or _device(tensors) is None:
        return NotImplemented
    target, mask, value = args
    if type(value) is FakeTensor:
        if value.dim() or value.dtype is not target.dtype:
            return NotImplemented
    elif not factories.holds(target.dtype, value):
        return NotImplemented
    if target._has_symbolic_sizes_strides or mask._has_symbolic_sizes_strides:
        plain = target.is_contiguous() and mask.dim() <= target.dim()
        if not plain or any(m not in (1, n) for m, n in zip(reversed(mask.shape), reversed(target.shape), strict=False)):
            return NotImplemented
        return _fresh(mode, [target], target.dtype)
    shape = broadcast(target.shape, mask.shape)
    return NotImplemented if shape is None else fresh(mode, shape, target.dtype, target.fake_device)


def _stack(mode: Any, args: tuple[Any, ...], kwargs: dict) -> Any:
    tensors, dim = _joined(mode, args, kwargs)
    if not tensors:
        return NotImplemented
    first, device = tensors[0], _device(tensors)
    rank = first.dim() + 1
    alike = all(same(t.shape, first.shape) and t.dtype is first.dtype and t.is_contiguous() for t in tensors)
    if device is None or not alike or not -rank <= dim < rank:
        return NotImplemented
    dim %= rank
    return fresh(mode, (*first.shape[:dim], len(tensors), *first.shape[dim:]), first.dtype, device)


def _table() -> dict[Any, _Rule]:
    table: dict[Any, _Rule] = {aten.where.self: _where}
    any_, floats, truths, bits = (_arithmetic(kind) for kind in ("any", "float", "bool", "bits"))
    table[aten.add.Tensor] = table[aten.mul.Tensor] = any_
    table[aten.sub.Tensor] = _arithmetic("difference")
    for packet in (aten.maximum, aten.minimum):
        table[packet.default] = any_
    table[aten.pow.Tensor_Scalar] = _arithmetic("power")
    table[aten.div.Tensor] = _arithmetic("quotient")
    for op in (aten.remainder.Tensor, aten.remainder.Scalar, aten.fmod.Tensor, aten.fmod.Scalar, aten.fmax.default, aten.fmin.default):
        table[op] = any_
    for op in (aten.pow.Tensor_Tensor, aten.atan2.default):
        table[op] = floats
    for packet in (aten.eq, aten.ne, aten.lt, aten.le, aten.gt, aten.ge):
        table[packet.Tensor] = table[packet.Scalar] = truths
    for packet in (aten.logical_and, aten.logical_or, aten.logical_xor, aten.logical_not):
        table[packet.default] = truths
    table[aten.bitwise_not.default] = bits
    table[aten.div.Tensor_mode] = table[aten.floor_divide.default] = _rounded
    for packet in (aten.bitwise_and, aten.bitwise_or, aten.bitwise_xor):
        table[packet.Tensor] = table[packet.Scalar] = bits
    names = ("relu sigmoid tanh silu gelu hardswish hardsigmoid leaky_relu elu celu selu mish softplus threshold "
             "clamp_min clamp_max neg abs sign floor ceil round trunc frac exp exp2 expm1 log log2 log10 log1p sqrt rsqrt "
             "reciprocal sin cos tan sinh cosh asin acos atan erf erfc erfinv square")
    for name in names.split():
        table[getattr(aten, name).default] = _activation
    table[aten.clamp.default] = _clamp
    table[aten.hardtanh.default] = _hardtanh
    table[aten.masked_fill.Scalar] = table[aten.masked_fill.Tensor] = _masked_fill
    table[aten.stack.default] = _stack
    for packet in (aten.add_, aten.sub_, aten.mul_, aten.div_):
        table[packet.Tensor] = _in_place
    for name in ("relu_", "sigmoid_", "tanh_", "exp_", "neg_", "sqrt_", "abs_", "silu_", "hardswish_", "rsqrt_", "sin_", "cos_", "log_"):
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
MADE: dict[Any, _Rule] = factories.rules() | reductions.rules() | networks.rules()  # whose kernels refuse some dtypes
RULES = _table() | layouts.rules() | MADE
