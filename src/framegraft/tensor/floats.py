"""Floats that change, for compilers that take none in some operations: there the graph uses the tensor that carries the float.

``x.add_(y, alpha=lr)`` becomes ``x.add_(y * lr)``. Kernels of eager mode multiply and add with one rounding there, so this is only
done for a compiler that could not have the graph otherwise than with the float as a constant, a capture for each value.
"""

from __future__ import annotations

import operator
from typing import Any

import torch

from ..model.value import ConstantVariable, ListVariable, SymbolicVariable, TensorVariable, VariableTracker
from . import running
from .running import run_node

_C: Any = torch  # its operators have no stubs
_OPERATORS = (operator.add, operator.sub, operator.mul, operator.truediv, operator.neg, operator.pow)


def rewrite(tx: Any, target: Any, args: list, kwargs: dict) -> VariableTracker | None:
    """The value of an operation that has a changing float where compilers want a constant; None for one that can stay."""
    name = target if isinstance(target, str) else getattr(target, "__name__", "")
    plain = name.rstrip("_")
    rule = _RULES.get(plain)
    if rule is None:
        return None
    asked = any(_is_float(v) for v in (*args, *kwargs.values())) or isinstance(kwargs.get("alpha"), TensorVariable)
    if not asked and not plain.startswith("_foreach_addc"):
        return None
    return rule(tx, target, name, args, kwargs)


def _is_float(tracker: VariableTracker) -> bool:
    return type(tracker) is SymbolicVariable and tracker.cls is float


def _tensor(tx: Any, number: Any) -> Any:
    """The float, or number, as a 0-dimensional float64 tensor of the graph; None where that cannot be computed there."""
    if isinstance(number, ConstantVariable) or isinstance(number, TensorVariable) and not (number.fake.dim() or number.fake.requires_grad):
        return number
    if not isinstance(number, SymbolicVariable):
        return None
    symbols = tx.state.graph.symbols
    number = symbols.derived.get(number.value.node.expr, number)
    if number.recipe is None:
        node: Any = symbols.node(number)
        carrier: Any = node.args[0] if isinstance(node, torch.fx.Node) and node.target == "item" else None
        if carrier is None:
            return number if number.cls is int else None
        return TensorVariable(carrier, carrier.meta["example_value"], torch.Tensor)
    fn, _, args = number.recipe
    parts = [_tensor(tx, a) for a in args]
    if fn not in _OPERATORS or None in parts or not any(isinstance(p, TensorVariable) for p in parts):
        return None
    return run_node(tx, "call_function", fn, parts, {})


def _keyword(key: str, scale: Any) -> Any:
    """A rule for an operation whose factor is a keyword; ``scale(tx, name, args, factor)`` gives a method and its arguments."""

    def rule(tx: Any, target: Any, name: str, args: list, kwargs: dict) -> VariableTracker | None:
        factor = _tensor(tx, kwargs[key]) if len(kwargs) == 1 and key in kwargs else None
        if factor is None or not isinstance(args[0], TensorVariable) or not args[0].fake.is_floating_point():
            return None
        other, operand = scale(tx, name, args, factor)
        return run_node(tx, "call_method", other, [args[0], operand], {})

    return rule


def _scaled(tx: Any, name: str, args: list, factor: Any) -> tuple:
    return name, run_node(tx, "call_function", torch.mul, [args[1], factor], {})


def _scaled_product(tx: Any, name: str, args: list, factor: Any) -> tuple:
    scaled = run_node(tx, "call_function", torch.mul, [args[1], factor], {})
    combine = torch.div if "div" in name else torch.mul
    return ("add_" if name.endswith("_") else "add"), run_node(tx, "call_function", combine, [scaled, args[2]], {})


def _lerp(tx: Any, target: Any, name: str, args: list, kwargs: dict) -> VariableTracker | None:
    weight = _tensor(tx, args[2] if len(args) > 2 else kwargs["weight"])
    if not isinstance(weight, TensorVariable):
        return None
    weight = run_node(tx, "call_method", "to", [weight, ConstantVariable(args[0].fake.dtype)], {})
    return run_node(tx, "call_method", name, [args[0], args[1], weight], {})


def _each_scaled(tx: Any, target: Any, name: str, args: list, kwargs: dict) -> VariableTracker | None:
    """``_foreach_add_(xs, ys, alpha=t)``; ``_foreach_mul_(xs, t)``."""
    if len(args) == 2 and not kwargs:
        factor = _tensor(tx, args[1])
        if not isinstance(factor, TensorVariable):
            return None
        if "sub" in name:
            target, factor = getattr(_C, name.replace("sub", "add")), run_node(tx, "call_function", operator.neg, [factor], {})
        return run_node(tx, "call_function", target, [args[0], factor], {})
    factor = _tensor(tx, kwargs["alpha"]) if list(kwargs) == ["alpha"] and len(args) == 2 else None
    if not isinstance(factor, TensorVariable):
        return None
    return run_node(tx, "call_function", target, [args[0], run_node(tx, "call_function", _C._foreach_mul, [args[1], factor], {})], {})


def _each_product(tx: Any, target: Any, name: str, args: list, kwargs: dict) -> VariableTracker | None:
    """``_foreach_addcdiv_(xs, a, b, value)`` with one factor, or one for each."""
    given = args[3] if len(args) == 4 and not kwargs else kwargs.get("value") if len(args) == 3 else None
    combine = _C._foreach_div if "div" in name else _C._foreach_mul
    if isinstance(given, ListVariable) and any(_is_float(i) for i in given.items):
        factor: Any = ListVariable([_tensor(tx, i) for i in given.items])
        if not all(isinstance(i, TensorVariable) for i in factor.items):
            return None
    else:
        factor = _tensor(tx, given) if given is not None and _is_float(given) else None
        if not isinstance(factor, TensorVariable):
            return None
    scaled = run_node(tx, "call_function", _C._foreach_mul, [args[1], factor], {})
    scaled = run_node(tx, "call_function", combine, [scaled, args[2]], {})
    return run_node(tx, "call_function", _C._foreach_add_ if name.endswith("_") else _C._foreach_add, [args[0], scaled], {})


def _each_lerp(tx: Any, target: Any, name: str, args: list, kwargs: dict) -> VariableTracker | None:
    weight = _tensor(tx, args[2] if len(args) > 2 else kwargs["weight"])
    if not isinstance(weight, TensorVariable):
        return None
    way = run_node(tx, "call_function", _C._foreach_sub, [args[1], args[0]], {})
    way = run_node(tx, "call_function", _C._foreach_mul, [way, weight], {})
    return run_node(tx, "call_function", _C._foreach_add_ if name.endswith("_") else _C._foreach_add, [args[0], way], {})


def _power(tx: Any, target: Any, name: str, args: list, kwargs: dict) -> VariableTracker | None:
    """A float to the power of a counter that is a tensor."""
    base = _tensor(tx, args[0]) if _is_float(args[0]) else None
    if not isinstance(base, TensorVariable) or not isinstance(args[1], TensorVariable) or args[1].fake.dtype is not torch.float64:
        return None
    return run_node(tx, "call_function", target, [base, args[1]], {})


_RULES: dict[str, Any] = {
    "add": _keyword("alpha", _scaled), "sub": _keyword("alpha", _scaled),
    "addcmul": _keyword("value", _scaled_product), "addcdiv": _keyword("value", _scaled_product),
    "lerp": _lerp, "_foreach_lerp": _each_lerp, "pow": _power,
    **dict.fromkeys(("_foreach_add", "_foreach_sub", "_foreach_mul", "_foreach_div"), _each_scaled),
    **dict.fromkeys(("_foreach_addcmul", "_foreach_addcdiv"), _each_product),
}
running.FLOATS.append(rewrite)
