"""NumPy's scalars as constants: what arithmetic and plain functions of them give is known while capturing."""

from __future__ import annotations

import sys
import types
import warnings
from typing import Any

from ..errors import GraphBreak
from ..interp.state import realize
from ..model.dispatch import CLASSES, HANDLERS, TENSOR, unknown
from ..model.value import (
    ChangingVariable,
    ConstantVariable,
    ObjectVariable,
    SizeVariable,
    SymbolicVariable,
    TupleVariable,
    VariableTracker,
    constant,
)

_KINDS = ("bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")
# Functions of numbers that give a number, always the same, as all ufuncs of NumPy's do. Others have state, or make arrays.
_FUNCTIONS = ("prod", "sum", "min", "max", "mean", "round", "clip")
SCALARS: set[type] = set()
KNOWN: dict[int, Any] = {}  # id -> the function
WRAPPERS: dict[type, Any] = {}  # class -> (state, value, source) -> tracker; filled by arrays.py, which builds on this file


class _Is:
    """Guard: the same scalar, bit for bit."""

    __name__ = "scalar_is"

    def __init__(self, value: Any) -> None:
        self.cls, self.bits = type(value), value.tobytes()

    def __call__(self, value: Any) -> bool:
        return type(value) is self.cls and value.tobytes() == self.bits


class _Item:
    """Accessor: the scalar as a Python number."""

    __name__ = "item"

    def __call__(self, value: Any) -> Any:
        return value.item()


_ITEM = _Item()


def learn() -> None:
    """Called before each capture: registers what is known of NumPy, once that is loaded."""
    numpy: Any = sys.modules.get("numpy")
    if SCALARS or numpy is None or not isinstance(getattr(numpy, "__version__", None), str):
        return
    for name in _KINDS:
        cls = getattr(numpy, name)
        SCALARS.add(cls)
        CLASSES[cls] = _make
    for fn in (*(getattr(numpy, name) for name in _FUNCTIONS), *(f for f in vars(numpy).values() if type(f) is numpy.ufunc)):
        KNOWN[id(fn)] = fn
        HANDLERS[id(fn)] = _folded(fn)


def wrap(state: Any, value: Any, source: Any) -> VariableTracker | None:
    """A scalar or a function of NumPy's from outside; None for anything else."""
    if type(value) in SCALARS:
        plain = value.item()
        number = TENSOR.number(state, plain, source.child("PYCALL", _ITEM)) if type(plain) in (int, float) else None
        if type(number) is SymbolicVariable:
            state.guards.add(source, "TYPE", type(value))
            return ChangingVariable(value, source, number, lambda: state.guards.add(source, "PY", _Is(value)))
        state.guards.add(source, "PY", _Is(value))
        return ConstantVariable(value, source)
    if id(value) in KNOWN:
        state.guards.pin(source, value)
        return ObjectVariable(value, type(value), source)
    wrapper = WRAPPERS.get(type(value))
    return None if wrapper is None else wrapper(state, value, source)


def number_of(value: Any, target: Any) -> Any:
    """The Python number that an operation takes a NumPy scalar for; GraphBreak where its dtype may matter."""
    _check_taken(type(value), target)
    number = value.item()
    if type(number) is int and number >= 1 << 63:  # the tensor refuses it, and the scalar takes the operation over
        raise GraphBreak("numpy_call", f"a {type(value).__name__} that is no int64")
    return number


def symbol_of(tracker: ChangingVariable, target: Any) -> SymbolicVariable:
    """The same for a scalar that changes."""
    _check_taken(tracker.python_type(), target)
    return tracker.number


def _check_taken(cls: type, target: Any) -> None:
    name = target if isinstance(target, str) else getattr(target, "__name__", "")
    if cls.__name__.startswith("float") and name.strip("_") not in _ARITHMETIC or name in _BY_DTYPE:
        raise GraphBreak("numpy_call", f"a {cls.__name__} as an argument of {name}")


_ARITHMETIC = frozenset(("add", "sub", "mul", "truediv", "div", "pow", "iadd", "isub", "imul", "itruediv", "radd", "rsub", "rmul",
                         "rtruediv", "lt", "le", "gt", "ge", "eq", "ne"))
_BY_DTYPE = frozenset(("tensor", "as_tensor", "asarray", "scalar_tensor", "full", "full_like", "new_tensor", "new_full"))


def _plain(tx: Any, tracker: VariableTracker) -> Any:
    tracker = realize(tracker, tx.state)
    if isinstance(tracker, ConstantVariable) and (type(tracker.value) in (int, float, bool, type(None)) or type(tracker.value) in SCALARS
                                                  or isinstance(tracker.value, tuple)):
        return tracker.value
    if isinstance(tracker, TupleVariable) and not isinstance(tracker, SizeVariable):
        return tuple(_plain(tx, item) for item in tracker.items)
    raise GraphBreak("numpy_call", f"a NumPy function of a {tracker.python_type().__name__}")


def _fold(tx: Any, fn: Any, args: list, kwargs: dict) -> VariableTracker:
    values, named = [_plain(tx, a) for a in args], {k: _plain(tx, v) for k, v in kwargs.items()}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            made = fn(*values, **named)
    except Exception as error:
        raise GraphBreak("numpy_call", f"{fn.__name__}() raised {type(error).__name__}") from None
    if type(made) not in SCALARS:
        raise unknown(f"numpy.{fn.__name__}", "numpy")
    return constant(made)


def _folded(fn: Any) -> types.FunctionType:
    def handler(tx: Any, args: list, kwargs: dict) -> VariableTracker:
        return _fold(tx, fn, args, kwargs)

    return handler


def _make(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    return _fold(tx, cls, args, kwargs)
