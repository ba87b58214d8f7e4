"""Symbolic numbers in the traced program: arithmetic on them, and what asks for their value."""

from __future__ import annotations

import builtins
import functools
import math
import operator
import sys
from typing import Any

import torch

from ..errors import GraphBreak
from ..model.dispatch import TENSOR
from ..model.value import (
    NONE,
    ConstantVariable,
    ListVariable,
    SizeVariable,
    SymbolicVariable,
    TensorVariable,
    VariableTracker,
    constant,
)
from ..semantics.wrapping import wrap_constant
from .raising import run_check

CLASSES: dict[type, type] = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}
_INPLACE = {operator.iadd: operator.add, operator.isub: operator.sub, operator.imul: operator.mul,
            operator.itruediv: operator.truediv, operator.ifloordiv: operator.floordiv, operator.imod: operator.mod,
            operator.ipow: operator.pow, operator.ilshift: operator.lshift, operator.irshift: operator.rshift,
            operator.iand: operator.and_, operator.ior: operator.or_, operator.ixor: operator.xor}
_SHIFTS = frozenset((operator.lshift, operator.rshift))
_COMPARISONS = frozenset((operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne))
_BITS = _SHIFTS | {operator.and_, operator.or_, operator.xor}
_DIVISIONS = frozenset((operator.truediv, operator.floordiv, operator.mod))
_EXACT = 2.0 ** 53  # floats up to here are whole numbers that fit; nan and the infinities, which have none, lie outside
_PERIODIC = frozenset((math.sin, math.cos, math.tan))  # ValueError for infinities
_IDENTITIES = frozenset((operator.index, operator.pos, builtins.int, builtins.round, math.trunc, math.floor, math.ceil))  # of ints
_TO_INT = frozenset((builtins.int, builtins.round, math.floor, math.ceil, math.trunc))
_EXTREMES: dict[Any, Any] = {builtins.min: torch.sym_min, builtins.max: torch.sym_max}
# what the program calls -> what gives the same of symbols, in the graph
_FUNCTIONS: dict[Any, Any] = {
    **{fn: fn for fn in (operator.add, operator.sub, operator.mul, operator.neg, operator.pos, operator.pow, builtins.abs,
                         builtins.round, math.floor, math.ceil, math.trunc, *_DIVISIONS, *_BITS)},
    **{fn: fn for fn in _COMPARISONS},
    builtins.int: torch.sym_int, builtins.float: torch.sym_float, **_EXTREMES,
    **{getattr(math, name): getattr(torch, f"_sym_{name}") for name in ("sqrt", "cos", "sin", "tan", "atan", "tanh", "log2")},
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


def plain_number(value: Any) -> Any:
    """A symbolic number as it is in this call; 2 for one of which nothing is known. Anything else as it is."""
    cls = CLASSES.get(type(value))
    if cls is None:
        return value
    return cls(2 if value.node.hint is None else value.node.hint)


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


def compute(symbols: Any, fn: Any, args: list) -> VariableTracker | None:
    """``fn`` of numbers, without looking at the symbolic ones' values where that can be; None where it cannot.

    What floats have to do with gets a symbol of its own: sympy would compute in another order than the program.
    """
    fn = _INPLACE.get(fn, operator.pow if fn is builtins.pow else fn)
    if fn in (operator.eq, operator.ne) and not all(_is_number(a) for a in args):
        return constant(fn is operator.ne) if all(isinstance(a, (SymbolicVariable, ConstantVariable)) for a in args) else None
    if fn in _IDENTITIES and len(args) == 1 and args[0].python_type() is int and isinstance(args[0], SymbolicVariable):
        return args[0]
    target = _FUNCTIONS.get(fn)
    if target is None or not all(_is_number(a) for a in args):
        return None
    if fn in _JOINED and all(a.python_type() is bool for a in args):
        return _joined(symbols, fn, *args)
    if fn in _EXTREMES and any(type(a.value) is bool for a in args):
        return None  # which of equal ones it is tells whether it is a bool
    args = [_settled(a) if type(a.value) is not bool else constant(int(a.value)) for a in args]
    values = [a.value for a in args]
    if not any(type(v) in CLASSES for v in values):
        return None
    if any(type(v) is torch.SymBool for v in values):
        return None
    floats = any(type(v) in (float, torch.SymFloat) for v in values)
    try:
        if not _is_defined(fn, values):
            return None
        if fn in _EXTREMES:
            return None if floats or len(values) < 2 else _result(functools.reduce(target, values), None)
        result = target(*values)
        if fn in _COMPARISONS:
            symbols.compared(values, result)
        opaque = floats or type(result) is torch.SymFloat or fn in _BITS or fn is operator.pow and type(values[1]) is not int
        if opaque and CLASSES.get(type(result)) in (int, float):
            return symbols.derived_number(fn, target, args, result)
    except _data_dependent() as error:
        raise GraphBreak("tensor_item", f"{getattr(fn, '__name__', fn)} of a number that the data decides: {asked(error)}") from None
    except (TypeError, ValueError, ZeroDivisionError, OverflowError, NotImplementedError, AttributeError):
        return None  # eager words the error
    return _result(result, (fn, target, args))


_JOINED = {operator.and_: False, operator.or_: True}  # and which operand decides alone


def _joined(symbols: Any, fn: Any, left: Any, right: Any) -> VariableTracker | None:
    """Two truth values as one, where the data decides at least one of them; None where not."""
    if not any(isinstance(v, SymbolicVariable) and symbols.is_unbacked(v.value) for v in (left, right)):
        return None
    for operand, other in (left, right), (right, left):
        if isinstance(operand, ConstantVariable):
            return operand if operand.value is _JOINED[fn] else other
    return SymbolicVariable(fn(left.value, right.value), bool, None, (fn, fn, [left, right]))


def assume_whole(tx: Any, fn: Any, args: list) -> None:
    """A float that the data decides, and that is to become an int, is taken for one that has an int; the graph checks it."""
    if fn not in _TO_INT or not args or type(args[0]) is not SymbolicVariable or args[0].cls is not float:
        return
    symbols = tx.state.graph.symbols
    if not symbols.is_unbacked(args[0].value) or args[0].value.node.expr in symbols.whole:
        return
    for compare, bound in ((operator.gt, -_EXACT), (operator.lt, _EXACT)):
        fits = compute(symbols, compare, [args[0], constant(bound)])
        if fits is None or not TENSOR.assume(tx, fits, True):
            return
    tx.state.caught = True  # where a check fails, eager mode may go on
    symbols.whole.add(args[0].value.node.expr)


def _settled(tracker: VariableTracker) -> VariableTracker:
    """The number, where the guards have come to say which one a whole number is: torch computes with no more than 64 bits."""
    if type(tracker) is SymbolicVariable and type(tracker.value) is torch.SymInt and (expr := tracker.value.node.expr).is_Integer:
        return constant(int(expr))
    return tracker


def _is_defined(fn: Any, values: list) -> bool:
    """Whether ``fn`` is a number for such arguments; guarded."""
    if fn in _DIVISIONS:
        return bool(values[1] != 0)
    if fn is builtins.round and type(values[0]) is torch.SymInt:
        return type(values[1]) is int and values[1] >= 0  # torch's takes any to change nothing
    if fn is math.sqrt or fn is math.log2:
        return bool(values[0] >= 0 if fn is math.sqrt else values[0] > 0)
    if fn is operator.pow and len(values) == 2:
        base, exponent = values
        if type(base) is torch.SymInt:
            if type(exponent) is int:
                return 0 <= exponent <= 64
            return type(exponent) is float and abs(exponent) <= 16 and _within(base, 1, 1 << 53)
        if type(base) is int:  # whole numbers of 64 bits; FX would write (-2) ** n as -2 ** n
            return base > 1 and type(exponent) is torch.SymInt and _within(exponent, 0, int(63 / math.log2(base)))
        return type(base) in (float, torch.SymFloat) and all(
            bool(v) for v in (base > 1e-18, base < 1e18, exponent >= -16, exponent <= 16))  # no OverflowError
    if fn in _BITS and any(type(v) is float or type(v) is torch.SymFloat for v in values):
        return False  # an error
    if fn in _SHIFTS:
        return _within(values[1], 0, 31) and _within(values[0], -(1 << 32), 1 << 32)
    if fn in _TO_INT or fn in _PERIODIC:
        return type(values[0]) is not torch.SymFloat or bool(values[0] > -_EXACT) and bool(values[0] < _EXACT)
    return True


def _within(value: Any, first: int, after: int) -> bool:
    return bool(value >= first) and bool(value < after)


def _result(value: Any, recipe: Any) -> VariableTracker:
    cls = CLASSES.get(type(value))
    return constant(value) if cls is None else SymbolicVariable(value, cls, None, None if cls is int else recipe)


ITEM: list[Any] = []  # (tx, tensor) -> its only element; set by torchops, which builds on this file


def read_number(tx: Any, tensor: Any, method: str) -> VariableTracker | None:
    """``item()``, ``int()`` and ``float()`` of a tensor as a number that the data decides; None where it must break."""
    if not isinstance(tensor, TensorVariable) or tensor.fake.numel() != 1 or tensor.fake.dtype is torch.bool or tensor.fake.is_complex():
        return None
    if method == "item" or method == ("__float__" if tensor.fake.is_floating_point() else "__int__"):
        tx.state.graph.use_symbols()
        return ITEM[0](tx, tensor)
    return None


def read(tx: Any, tensor: TensorVariable, method: str) -> VariableTracker | None:
    """What a method without arguments makes of a tensor's values, as numbers that the data decides; None where it must break."""
    if method != "tolist":
        return read_number(tx, tensor, method)
    if tensor.fake.dim() == 0:
        return read_number(tx, tensor, "item")
    if any(type(n) is torch.SymInt and tx.state.graph.symbols.is_unbacked(n) for n in tensor.fake.shape):
        return None
    sizes = [int(n) for n in tensor.fake.shape]  # of which those that are symbols are guarded: a list has one length
    if math.prod(sizes) > _LONGEST_LIST:
        return None
    items = [read(tx, PART[0](tx, tensor, index), method) for index in range(sizes[0])]
    return None if None in items else ListVariable(items)


_LONGEST_LIST = 64  # each number is an operation of the graph
PART: list[Any] = []  # (tx, tensor, index) -> tensor[index]; set by torchops


def check(tx: Any, condition: VariableTracker, fail: Any = None) -> VariableTracker:
    """``torch._check``: what it says is assumed from here on, and checked in the graph.

    fail: raises what the program raises where the condition is known not to hold.
    """
    if isinstance(condition, SymbolicVariable) and tx.state.graph.symbols.is_unbacked(condition.value):
        symbols = tx.state.graph.symbols
        node = symbols.node(condition)
        known = symbols.assumed()
        torch._check(condition.value)
        symbols.checked |= dict.fromkeys([c for c in symbols.assumed() if c not in known], run_check(tx.state, node))
    elif isinstance(condition, TensorVariable) or not (
            truth(condition) if isinstance(condition, SymbolicVariable) else isinstance(condition, ConstantVariable) and condition.value):
        if fail is not None and condition.python_type() is bool:
            fail()
        raise GraphBreak("raised_exception", "torch._check of something that does not hold")
    return NONE


def _is_number(tracker: VariableTracker) -> bool:
    if isinstance(tracker, SymbolicVariable):
        return True
    return isinstance(tracker, ConstantVariable) and type(tracker.value) in (int, float, bool)


def _data_dependent() -> type[Exception]:
    return sys.modules["torch.fx.experimental.symbolic_shapes"].GuardOnDataDependentSymNode  # loaded: there is a symbol


def raw_expression(value: Any) -> Any:
    """The expression as it was made. What is known to be equal may be put in its place only where that is a number:
    anything else might be defined by this very expression.
    """
    expr = value.node.expr
    return expr if expr.is_number else value.node._expr


def holds(condition: Any) -> bool:
    """Whether a condition on symbols holds whatever the data is. Nothing is guarded."""
    return sys.modules["torch.fx.experimental.symbolic_shapes"].statically_known_true(condition)


def is_data_dependent(error: BaseException) -> bool:
    """Whether torch asked for the value of a number that the data decides."""
    return any(cls.__name__ == "GuardOnDataDependentSymNode" for cls in type(error).__mro__)


def asked(error: Any) -> str:
    """What torch could not decide, without its pages of advice."""
    condition = getattr(error, "cond", None)
    return str(error).splitlines()[0] if condition is None else str(condition)


def truth(tracker: SymbolicVariable) -> bool:
    try:
        return bool(tracker.value)
    except _data_dependent() as error:
        raise GraphBreak("data_dependent_branch", f"a branch on a number that the data decides: {asked(error)}") from None


def specialise(tracker: SymbolicVariable) -> VariableTracker:
    try:
        value = tracker.cls(tracker.value)
        if value == 0 and tracker.cls is float and tracker.recipe is not None:
            for part in tracker.recipe[2]:  # 0.0 equals -0.0: where it comes from tells which of them it is
                if isinstance(part, SymbolicVariable):
                    specialise(part)
        return ConstantVariable(value, tracker.source)
    except _data_dependent() as error:
        raise GraphBreak("tensor_item", f"the value of a number that the data decides is needed: {asked(error)}") from None
