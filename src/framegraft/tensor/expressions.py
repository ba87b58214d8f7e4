"""Guards on shapes: expressions over slots, as readable Python and as programs for the native core."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch.utils._sympy import functions as torch_functions
from torch.utils._sympy.printers import PythonPrinter

from .. import _native
from ..model.source import Source
from ..model.value import SymbolicVariable
from .symbolic import raw_expression

NUMBER, SIZE, STRIDE = 0, 1, 2  # as csrc/shape.c has them
_OPS = ("SLOT", "CONST", "ADD", "SUB", "MUL", "FLOORDIV", "MOD", "MIN", "MAX", "EQ", "NE", "LT", "LE", "AND", "OR", "NOT")
_CODE = {name: number for number, name in enumerate(_OPS)}
_BINARY: dict[Any, str] = {
    torch_functions.FloorDiv: "FLOORDIV", torch_functions.CleanDiv: "FLOORDIV", torch_functions.Mod: "MOD",
    torch_functions.PythonMod: "MOD", sympy.Eq: "EQ", sympy.Ne: "NE", sympy.Lt: "LT", sympy.Le: "LE",
    sympy.StrictLessThan: "LT", sympy.LessThan: "LE",
}
_MANY: dict[Any, str] = {
    sympy.Add: "ADD", sympy.Mul: "MUL", sympy.And: "AND", sympy.Or: "OR", torch_functions.Min: "MIN", torch_functions.Max: "MAX",
    sympy.Min: "MIN", sympy.Max: "MAX",
}
_SWAPPED: dict[Any, str] = {sympy.Gt: "LT", sympy.Ge: "LE", sympy.StrictGreaterThan: "LT", sympy.GreaterThan: "LE"}
_LARGEST = (1 << 63) - 1


class IsFinite(sympy.Function):
    """Whether a float is finite, which it may not be whatever sympy knows of real numbers."""


@dataclass(frozen=True)
class Slot:
    """A number that a guard reads: an int (or float) at ``source``, or a size or stride of the tensor there."""

    source: Source
    what: int
    dim: int

    def leaf(self) -> Source:
        """The source of the number itself."""
        return self.source if self.what == NUMBER else self.source.child("SIZE" if self.what == SIZE else "STRIDE", self.dim)


class _Unsayable(Exception):
    """The native core has no operation for a part of the expression."""


@dataclass(frozen=True)
class ShapeExpression:
    """A truth about slots. ``code`` is empty where only ``fn``, called with the slots' numbers, can tell."""

    text: str
    slots: tuple[Slot, ...]
    code: tuple[tuple[int, int], ...]
    fn: Callable[..., Any] | None

    @staticmethod
    def of(expr: Any, slots: dict[Any, Slot], derived: dict[Any, Any]) -> ShapeExpression:
        symbols = leaves(expr, derived)
        text = _Printer({s: slots[s].leaf().name for s in symbols}, derived).doprint(expr)
        used = tuple(slots[s] for s in symbols)
        try:
            code = tuple(_assemble(expr, {s: i for i, s in enumerate(symbols)}))
            return ShapeExpression(text, used, code, None)
        except _Unsayable:
            return ShapeExpression(text, used, (), python_function(expr, symbols, derived))

    def __repr__(self) -> str:
        return self.text


def leaves(expr: Any, derived: dict[Any, Any]) -> list:
    """The symbols of slots that an expression depends on."""
    found: set = set()
    stack = list(expr.free_symbols)
    while stack:
        symbol = stack.pop()
        if symbol in derived:
            for arg in derived[symbol].recipe[2]:
                if isinstance(arg, SymbolicVariable):
                    stack.extend(raw_expression(arg.value).free_symbols)
        else:
            found.add(symbol)
    return sorted(found, key=str)


_SIGNS = {operator.add: "+", operator.sub: "-", operator.mul: "*", operator.truediv: "/", operator.floordiv: "//",
          operator.mod: "%", operator.pow: "**", operator.lshift: "<<", operator.rshift: ">>", operator.and_: "&", operator.or_: "|",
          operator.xor: "^"}


class _Printer(PythonPrinter):
    def __init__(self, names: dict[Any, str], derived: dict[Any, Any]) -> None:
        super().__init__()
        self.names = names
        self.derived = derived

    def _print_Symbol(self, expr: Any) -> str:
        return self._recipe(*self.derived[expr].recipe) if expr in self.derived else self.names[expr]

    def _print_Float(self, expr: Any) -> str:
        return repr(float(expr))

    def _print_IsFinite(self, expr: Any) -> str:
        return f"math.isfinite({self.doprint(expr.args[0])})"

    def _recipe(self, fn: Any, target: Any, args: list) -> str:
        exprs = [raw_expression(a.value) if isinstance(a, SymbolicVariable) else a.value for a in args]
        texts = [repr(x) if isinstance(x, (int, float)) else self.doprint(x) if x.is_Atom else f"({self.doprint(x)})" for x in exprs]
        if fn in _SIGNS:
            return f"({texts[0]} {_SIGNS[fn]} {texts[1]})"
        if fn in (operator.neg, operator.pos):
            return f"({'-' if fn is operator.neg else '+'}({texts[0]}))"
        module = "math." if fn.__module__ == "math" else ""
        return f"{module}{fn.__name__}({', '.join(texts)})"


def python_function(expr: Any, symbols: list, derived: dict[Any, Any]) -> Callable[..., Any]:
    """The expression as a Python function of its slots' symbols."""
    names = {s: f"n{i}" for i, s in enumerate(symbols)}
    text = _Printer(names, derived).doprint(expr)
    code = compile(f"lambda {', '.join(names.values())}: {text}", "<shape expression>", "eval")
    function = eval(code, {"math": math, "torch": torch, "__builtins__": __builtins__})
    function.__name__ = function.__qualname__ = text
    _native.set_skip(function.__code__, True)
    return function


def _assemble(expr: Any, place: dict[Any, int]) -> list[tuple[int, int]]:
    kind = type(expr)
    if isinstance(expr, sympy.Symbol):
        if not expr.is_integer:
            raise _Unsayable
        if expr not in place:
            raise _Unsayable
        return [(_CODE["SLOT"], place[expr])]
    if isinstance(expr, sympy.Integer):
        if abs(int(expr)) > _LARGEST:
            raise _Unsayable
        return [(_CODE["CONST"], int(expr))]
    if expr in (sympy.true, sympy.false):
        return [(_CODE["CONST"], int(expr is sympy.true))]
    if kind in _BINARY or kind in _SWAPPED:
        left, right = expr.args if kind in _BINARY else reversed(expr.args)
        return [*_assemble(left, place), *_assemble(right, place), (_CODE[_BINARY.get(kind) or _SWAPPED[kind]], 0)]
    if kind in _MANY:
        return _fold(_MANY[kind], [_assemble(a, place) for a in expr.args])
    if kind is sympy.Not:
        return [*_assemble(expr.args[0], place), (_CODE["NOT"], 0)]
    if kind in (sympy.Pow, torch_functions.PowByNatural) and isinstance(expr.args[1], sympy.Integer) and 1 <= int(expr.args[1]) <= 8:
        return _fold("MUL", [_assemble(expr.args[0], place)] * int(expr.args[1]))
    raise _Unsayable


def _fold(op: str, parts: list) -> list[tuple[int, int]]:
    code = list(parts[0])
    for part in parts[1:]:
        code += [*part, (_CODE[op], 0)]
    return code
