"""Bytecode for symbolic numbers: computed again from the inputs, as the program computed them."""

from __future__ import annotations

import operator
from typing import Any

from ..model.source import instr
from ..model.value import ConstantVariable, SymbolicVariable
from ..tensor.symbolic import raw_expression

_OPERATORS = frozenset((operator.add, operator.sub, operator.mul, operator.floordiv, operator.truediv, operator.mod))


def load_number(cg: Any, tracker: SymbolicVariable) -> None:
    """Push the number that ``tracker`` stands for, and keep it: the same object wherever it is used."""
    output = cg.graph_outputs.get(id(tracker))
    if output is not None:
        cg.op("LOAD_FAST", output)
        return
    if tracker.recipe is not None:
        fn, _, args = tracker.recipe
        _load_call(cg, fn, args)
    else:
        _load_expression(cg, raw_expression(tracker.value))
    cg.store_temp(tracker)


def _load_call(cg: Any, fn: Any, args: list) -> None:
    if fn not in _OPERATORS:
        cg.load_object(fn)
    for arg in args:
        cg.op("LOAD_CONST", arg.value) if isinstance(arg, ConstantVariable) else cg.load(arg)
    if fn in _OPERATORS:
        cg.emit(instr("APPLY", (fn, 2)))
    else:
        cg.call(len(args))


def _is_plain(expr: Any, slots: Any) -> bool:
    """Sums and products of slots and integers."""
    return expr in slots or bool(expr.is_Integer) or (expr.is_Add or expr.is_Mul) and all(_is_plain(a, slots) for a in expr.args)


def _load_expression(cg: Any, expr: Any) -> None:
    """An expression of ints."""
    symbols = cg.state.graph.symbols
    if expr.is_number:
        cg.op("LOAD_CONST", int(expr))
    elif expr in symbols.slots:
        cg.load_source(symbols.slots[expr].leaf())
    elif expr in symbols.derived:
        cg.load(symbols.derived[expr])
    elif expr.is_Symbol:  # one that the data decides, and that the graph has found to be equal to something known
        _load_expression(cg, symbols.known(expr))
    elif _is_plain(expr, symbols.slots):
        terms = sorted(expr.args, key=lambda a: a.is_Integer)
        for index, term in enumerate(terms):
            _load_expression(cg, term)
            if index:
                cg.emit(instr("APPLY", (operator.add if expr.is_Add else operator.mul, 2)))
    else:
        fn, arguments = symbols.function(expr)
        cg.load_object(fn)
        for symbol in arguments:
            _load_expression(cg, symbol)
        cg.call(len(arguments))
