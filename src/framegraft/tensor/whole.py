"""Shape propagation of whole functions of torch, which leaves torch's dispatcher out.

For what programs call most, and only where the dispatcher would do no more than propagate shapes and note that autograd records:
no cast, no transform and no symbolic size is at work, and what comes back is a new tensor. Everything else is ``NotImplemented``.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
import torch.autograd.forward_ad as forward_ad
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensor

from .layouts import FLOATS, fresh_like, is_plain, operands
from .shapes import RULES

aten = torch.ops.aten
_INT64 = range(-(1 << 63), 1 << 63)
_FUNCTORCH: Any = torch._C._functorch  # type: ignore[attr-defined]


def infer(mode: Any, target: Any, args: list[Any], kwargs: dict) -> Any:
    """The fake result of a function, or of the method that ``target`` names; NotImplemented where torch must say."""
    rule = _RULES.get(target)
    if rule is None or mode.shape_env is not None or torch.is_autocast_enabled("cpu") or _FUNCTORCH.maybe_current_level() is not None:
        return NotImplemented
    if forward_ad._current_level >= 0:  # torch makes the tangents
        return NotImplemented
    recorded = recorded_by(args)
    if recorded is not None and any(isinstance(a, torch.Tensor) and a.is_inference() for a in args):
        return NotImplemented  # autograd may refuse to save it
    made = rule(mode, args, kwargs)
    if recorded is None or made is NotImplemented:
        return made
    with mode:
        return mode.record(made, recorded)


def knows(target: Any) -> bool:
    """Whether the history of what the function gives may be a stand-in."""
    return target in _RULES


def recorded_by(args: list[Any]) -> Any:
    """An operand that makes autograd record the operation; None where nothing is recorded."""
    if not torch.is_grad_enabled():
        return None
    return next((a for a in args if isinstance(a, torch.Tensor) and a.requires_grad), None)


def _linear(mode: Any, args: list[Any], kwargs: dict) -> Any:
    """y = x A^T + b: torch takes four operations for it."""
    if kwargs or len(args) not in (2, 3) or type(args[1]) is not FakeTensor:
        return NotImplemented
    source, weight = args[:2]
    bias = args[2] if len(args) == 3 else None
    given = (weight, source) if bias is None else (bias, weight, source)
    dtype = weight.dtype
    if dtype not in FLOATS or not all(is_plain(mode, t) and t.dtype is dtype for t in given):
        return NotImplemented
    if weight.dim() != 2 or source.dim() < 2 or source.shape[-1] != weight.shape[1] or not source.is_contiguous() or not source.numel():
        return NotImplemented
    if bias is not None and tuple(bias.shape) != (weight.shape[0],):
        return NotImplemented
    return fresh_like(mode, (*source.shape[:-1], weight.shape[0]), source)


def _matmul(mode: Any, args: list[Any], kwargs: dict) -> Any:
    """Batches of matrices, of one batch shape."""
    if kwargs or len(args) != 2 or type(args[1]) is not FakeTensor or args[1].dim() < 3 or not operands(mode, tuple(args), args[1].dim()):
        return NotImplemented
    a, b = args
    if a.shape[-1] != b.shape[-2] or a.shape[:-2] != b.shape[:-2] or not a.numel() or not b.numel():
        return NotImplemented
    return fresh_like(mode, (*a.shape[:-1], b.shape[-1]), a)


def _pair(overload: Any, numbers: str = "second") -> Any:
    """An element-wise operation of two tensors, of which one may be a number: "any", the "second" or "none"."""
    rule = RULES[overload]

    def of_two(mode: Any, args: list[Any], kwargs: dict) -> Any:
        if kwargs or len(args) != 2 or any(type(a) is int and a not in _INT64 for a in args):
            return NotImplemented
        tensors = [type(a) is FakeTensor for a in args]
        if not all(tensors) and (numbers == "none" or numbers == "second" and not tensors[0]):
            return NotImplemented
        return rule(mode, tuple(args), kwargs)

    return of_two


def _single(overload: Any, *options: dict[str, Any]) -> Any:
    """An element-wise operation of a tensor of floats; ``options`` change nothing of its result's metadata."""
    rule = RULES[overload]

    def of_one(mode: Any, args: list[Any], kwargs: dict) -> Any:
        if len(args) != 1 or kwargs and kwargs not in options:
            return NotImplemented
        return rule(mode, tuple(args), {})

    return of_one


def _layer_norm(mode: Any, args: list[Any], kwargs: dict) -> Any:
    if kwargs or len(args) != 5 or type(args[1]) not in (tuple, list):
        return NotImplemented
    found = RULES[aten.native_layer_norm.default](mode, tuple(args), {})
    return found if found is NotImplemented else found[0]


def _softmax(mode: Any, args: list[Any], kwargs: dict) -> Any:
    named = {name: value for name, value in kwargs.items() if value is not None or name == "dim"}
    dim = args[1] if len(args) == 2 else named.pop("dim", None)
    if named or len(args) not in (1, 2) or type(dim) is not int:
        return NotImplemented
    return RULES[aten._softmax.default](mode, (args[0], dim, False), {})


def _table() -> dict[Any, Any]:
    table: dict[Any, Any] = {F.linear: _linear, torch.matmul: _matmul, operator.matmul: _matmul, F.layer_norm: _layer_norm,
                             F.softmax: _softmax, torch.softmax: _softmax, "softmax": _softmax,
                             operator.truediv: _pair(aten.div.Tensor, "any"), operator.neg: _single(aten.neg.default),
                             F.gelu: _single(aten.gelu.default, {"approximate": "none"}, {"approximate": "tanh"})}
    for name in ("add", "sub", "mul", "div", "pow", "eq", "ne", "lt", "le", "gt", "ge"):
        packet = getattr(aten, name)
        overload = packet.Tensor_Tensor if name == "pow" else packet.Tensor
        table[name] = table[getattr(torch, name)] = _pair(overload)
        if hasattr(operator, name):
            table[getattr(operator, name)] = _pair(overload, "any")
    for name in ("maximum", "minimum"):
        table[name] = table[getattr(torch, name)] = _pair(getattr(aten, name).default, "none")
    for name in ("relu", "sigmoid", "tanh", "exp", "log", "sqrt", "rsqrt", "neg", "abs", "cos", "sin", "square", "reciprocal", "erf"):
        table[name] = table[getattr(torch, name)] = _single(getattr(aten, name).default)
    for name in ("relu", "silu", "mish", "leaky_relu", "elu"):
        table[getattr(F, name)] = _single(getattr(aten, name).default, {"inplace": False})
    return table


_RULES = _table()
