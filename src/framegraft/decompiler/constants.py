"""Constants as expressions that compile back to them."""

from __future__ import annotations

import ast
import math
from typing import Any

PLACE = "__co_consts[{}]"  # what a constant without a literal is shown as


def constant(value: Any) -> ast.expr | None:
    """An expression that the compiler folds into ``value``, None where there is no such literal."""
    kind = type(value)
    if kind in (str, bytes, bool, type(None), type(...)):
        return ast.Constant(value)
    if kind is int:
        return ast.Constant(value) if value >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-value))
    if kind is float:
        if math.isnan(value):
            return None  # the very object counts: it is only equal to itself in containers
        return ast.Constant(value) if math.copysign(1, value) > 0 else ast.UnaryOp(ast.USub(), ast.Constant(-value))
    if kind is complex:
        if value != value:
            return None
        if value.real == 0 and math.copysign(1, value.real) > 0 and math.copysign(1, value.imag) > 0:
            return ast.Constant(value)
        if value.real == 0 and math.copysign(1, value.real) < 0 and math.copysign(1, value.imag) < 0:
            return ast.UnaryOp(ast.USub(), ast.Constant(-value))
        imag = ast.Constant(complex(0, abs(value.imag)))
        real = constant(value.real)
        return ast.BinOp(real, ast.Add() if math.copysign(1, value.imag) > 0 else ast.Sub(), imag)  # type: ignore[arg-type]
    if kind is tuple:
        parts = [constant(item) for item in value]
        return None if None in parts else ast.Tuple(parts, ast.Load())  # type: ignore[arg-type]
    return None


def set_display(value: frozenset) -> ast.expr | None:
    """A set display for a frozen set; only right behind ``in`` and ``for``, where the compiler freezes displays."""
    parts = [constant(item) for item in value]
    return None if None in parts or not parts else ast.Set(parts)  # type: ignore[arg-type]
