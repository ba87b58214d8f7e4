"""Symbolic numbers in the traced program: arithmetic on them, and what asks for their value."""

from __future__ import annotations

import builtins
import math
import operator
from typing import Any

import torch

from ..errors import GraphBreak
from ..model.value import (
    ConstantVariable,
    SizeVariable,
    SymbolicVariable,
    VariableTracker,
    constant,
)
from ..semantics.wrapping import wrap_constant

CLASSES: dict[type, type] = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}
_INPLACE = {operator.iadd: operator.add, operator.isub: operator.sub, operator.imul: operator.mul,
            operator.itruediv: operator.truediv, operator.ifloordiv: operator.floordiv, operator.imod: operator.mod,
            operator.ipow: operator.pow}
_DIVISIONS = frozenset((operator.truediv, operator.floordiv, operator.mod))
_COMPARISONS = frozenset((operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne))
# what the program calls -> what gives the same of numbers and of symbols
_FUNCTIONS: dict[Any, Any] = {
    **{fn: fn for fn in (operator.add, operator.sub, operator.mul, operator.neg, operator.pos, operator.pow, builtins.abs,
                         math.floor, math.ceil, math.trunc, *_DIVISIONS, *_COMPARISONS)},
    builtins.int: torch.sym_int, builtins.float: torch.sym_float, math.sqrt: torch._sym_sqrt,  # type: ignore[attr-defined]
    builtins.min: torch.sym_min, builtins.max: torch.sym_max, builtins.pow: operator.pow,
}


def wrap_value(value: Any) -> VariableTracker:
    """Tracker of a number, truth value or size that may be symbolic."""
    cls = CLASSES.get(type(value))
    if cls is not None:
        return SymbolicVariable(value, cls)
    if isinstance(value, tuple) and any(type(v) in CLASSES for v in value):
        items = [wrap_value(v) for v in value]
        return SizeVariable(items, type(value))
    return wrap_constant(value)


def wrap_number(tx: Any, node: Any, value: Any) -> VariableTracker:
    """What an operation of the graph gave as a number: its node stays only where it alone can tell."""
    tracker = SymbolicVariable(value, CLASSES[type(value)])
    symbols = tx.state.graph.symbols
    if symbols.is_unbacked(value):
        node.meta["example_value"] = value
        tracker.node = node
    else:
        tx.state.graph.graph.erase_node(node)
        tx.state.graph.call_count -= 1
    return tracker


def compute(fn: Any, args: list) -> VariableTracker | None:
    """``fn`` of numbers, without looking at the symbolic ones' values where that can be; None where it cannot."""
    fn = _INPLACE.get(fn, fn)
    if fn in (operator.eq, operator.ne) and not all(_is_number(a) for a in args):
        if all(isinstance(a, (SymbolicVariable, ConstantVariable)) for a in args):
            return constant(fn is operator.ne)
        return None
    target = _FUNCTIONS.get(fn)
    if target is None or not all(_is_number(a) for a in args):
        return None
    values = [int(a.value) if type(a.value) is bool else a.value for a in args]
    if any(type(v) is torch.SymBool for v in values):
        return None
    floats = any(type(v) in (float, torch.SymFloat) for v in values)
    try:
        if fn in _DIVISIONS and not bool(values[1] != 0) or fn is operator.pow and not _plain_power(values):
            return None
        if fn in (builtins.min, builtins.max):
            return None if floats or len(values) < 2 else _result(_reduce(target, values), None)
        result = target(*values)
    except _data_dependent() as error:
        raise GraphBreak("tensor_item", f"{getattr(fn, '__name__', fn)} of a number that the data decides: {error}") from None
    except (TypeError, ValueError, ZeroDivisionError, OverflowError, NotImplementedError, AttributeError):
        return None  # in words of the numbers themselves
    plain = [a if type(a.value) is not bool else constant(int(a.value)) for a in args]
    return _result(result, (target, plain))


def _reduce(fn: Any, values: list) -> Any:
    best = values[0]
    for value in values[1:]:
        best = fn(best, value)
    return best


def _result(value: Any, recipe: Any) -> VariableTracker:
    cls = CLASSES.get(type(value))
    if cls is None:
        return constant(value)
    return SymbolicVariable(value, cls, None, None if cls is int and _only_ints(value) else recipe)


def _only_ints(value: torch.SymInt) -> bool:
    """Whether the expression of a SymInt is made of ints all the way, so that it says exactly what the program computes."""
    expr = value.node.expr
    return all(s.is_integer for s in expr.free_symbols) and not expr.has(*_inexact())


def _inexact() -> tuple:
    functions: Any = torch.utils._sympy.functions
    return (functions.FloatTrueDiv, functions.IntTrueDiv, functions.ToFloat, functions.TruncToInt, functions.FloorToInt,
            functions.CeilToInt, functions.FloatPow)


def _plain_power(values: list) -> bool:
    base, exponent = values
    return type(exponent) is int and 0 <= exponent <= 64 and type(base) is torch.SymInt


def _is_number(tracker: VariableTracker) -> bool:
    if isinstance(tracker, SymbolicVariable):
        return True
    return isinstance(tracker, ConstantVariable) and type(tracker.value) in (int, float, bool)


def _data_dependent() -> type[Exception]:
    return torch.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode  # loaded: there is a symbol


def truth(tracker: SymbolicVariable) -> bool:
    try:
        return bool(tracker.value)
    except _data_dependent() as error:
        raise GraphBreak("data_dependent_branch", f"a branch on a number that the data decides: {error}") from None


def specialise(tracker: SymbolicVariable) -> VariableTracker:
    try:
        return ConstantVariable(tracker.cls(tracker.value), tracker.source)
    except _data_dependent() as error:
        raise GraphBreak("tensor_item", f"the value of a number that the data decides is needed: {error}") from None
