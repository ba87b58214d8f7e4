"""NumPy's scalars as constants, and its dtypes: what arithmetic and plain functions of them give is known while capturing."""

from __future__ import annotations

import operator
import sys
import types
import warnings
from typing import Any

from ..errors import GraphBreak
from ..interp.state import realize
from ..model.dispatch import CLASSES, HANDLERS, METHODS, TENSOR, unknown
from ..model.source import pinned
from ..model.value import (
    ChangingVariable,
    ConstantVariable,
    ListVariable,
    ObjectVariable,
    SymbolicVariable,
    TupleVariable,
    VariableTracker,
    constant,
)
from ..semantics.folding import CAREFULLY
from ..semantics.wrapping import wrap_pinned

_KINDS = ("bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")
# Functions of numbers that give a number, always the same, as all ufuncs of NumPy's do. Others have state, or make arrays.
_FUNCTIONS = ("prod", "sum", "min", "max", "mean", "round", "clip")
# Functions of dtypes, and of what stands for one, that give a dtype or a truth.
_OF_DTYPES = ("issubdtype", "can_cast", "promote_types", "result_type")
SCALARS: set[type] = set()
KNOWN: dict[int, Any] = {}  # id -> the function
WRAPPERS: dict[type, Any] = {}  # class -> (state, value, source) -> tracker; filled by arrays.py, which builds on this file


class DtypeVariable(ObjectVariable):
    """One of NumPy's own dtypes, of which there is one object each."""

    __slots__ = ()


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
        CAREFULLY[cls] = _operator
        CLASSES[cls] = _make
    for fn in (*(getattr(numpy, name) for name in _FUNCTIONS), *(f for f in vars(numpy).values() if type(f) is numpy.ufunc)):
        KNOWN[id(fn)] = fn
        HANDLERS[id(fn)] = _folded(fn)
    for fn in (getattr(numpy, name) for name in _OF_DTYPES):
        KNOWN[id(fn)] = fn
        HANDLERS[id(fn)] = _folded(fn, _fold_dtypes)
    WRAPPERS.update((type(numpy.dtype(cls)), _wrap_dtype) for cls in SCALARS)
    CLASSES[numpy.dtype] = _fold_dtypes
    CLASSES[numpy.finfo] = CLASSES[numpy.iinfo] = _limits


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


def _wrap_dtype(state: Any, value: Any, source: Any) -> VariableTracker:
    state.guards.pin(source, value)  # of another byte order, or with metadata, it is another object
    return DtypeVariable(value, type(value), source)


def wrap_dtype(tx: Any, value: Any) -> VariableTracker:
    """A dtype that the trace has come by."""
    if WRAPPERS.get(type(value)) is not _wrap_dtype:
        return wrap_pinned(tx, value)
    state = tx.state
    found = state.by_id.get(id(value))
    if not isinstance(found, DtypeVariable):
        found = state.by_id[id(value)] = DtypeVariable(value, type(value), pinned(value))
        state.keep_alive.append(value)
    return found


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
    # torch takes numpy.bool_ for a float, or for nothing that it knows: which one its releases and NumPy's decide.
    if cls.__name__.startswith("bool") or cls.__name__.startswith("float") and name.strip("_") not in _ARITHMETIC or name in _BY_DTYPE:
        raise GraphBreak("numpy_call", f"a {cls.__name__} as an argument of {name}")


_ARITHMETIC = frozenset(("add", "sub", "mul", "truediv", "div", "pow", "iadd", "isub", "imul", "itruediv", "radd", "rsub", "rmul",
                         "rtruediv", "lt", "le", "gt", "ge", "eq", "ne"))
_BY_DTYPE = frozenset(("tensor", "as_tensor", "asarray", "scalar_tensor", "full", "full_like", "new_tensor", "new_full"))


def _plain(tx: Any, tracker: VariableTracker) -> Any:
    tracker = realize(tracker, tx.state)
    if isinstance(tracker, ConstantVariable) and (type(tracker.value) in (int, float, bool, type(None)) or type(tracker.value) in SCALARS
                                                  or isinstance(tracker.value, tuple)):
        return tracker.value
    if isinstance(tracker, TupleVariable):
        return tuple(_plain(tx, item) for item in tracker.items)
    if isinstance(tracker, ListVariable) and tracker.pytype is list:
        return [_plain(tx, item) for item in tracker.items]
    if type(tracker) is SymbolicVariable:
        return tx.state.graph.symbols.fixed(tracker)
    raise GraphBreak("numpy_call", f"a NumPy function of a {tracker.python_type().__name__}")


def _strictly(fn: Any, values: list, named: dict) -> Any:
    """What does not warn here depends on no ``numpy.errstate``."""
    with warnings.catch_warnings(), sys.modules["numpy"].errstate(all="raise"):
        warnings.simplefilter("error")
        return fn(*values, **named)


def _operator(fn: Any, values: list, named: dict) -> Any:
    try:
        return _strictly(fn, values, named)
    except (FloatingPointError, Warning) as error:  # what becomes of it, the program's errstate and filters decide at each call
        raise GraphBreak("numpy_call", f"an operator of NumPy's scalars: {error}") from None


def _fold(tx: Any, fn: Any, args: list, kwargs: dict) -> VariableTracker:
    values, named = [_plain(tx, a) for a in args], {k: _plain(tx, v) for k, v in kwargs.items()}
    try:
        made = _strictly(fn, values, named)
    except Exception as error:
        raise GraphBreak("numpy_call", f"{fn.__name__}() raised {type(error).__name__}") from None
    if type(made) not in SCALARS:
        raise unknown(f"numpy.{fn.__name__}", "numpy")
    return constant(made)


def _folded(fn: Any, fold: Any = _fold) -> types.FunctionType:
    def handler(tx: Any, args: list, kwargs: dict) -> VariableTracker:
        return fold(tx, fn, args, kwargs)

    return handler


def _fold_dtypes(tx: Any, fn: Any, args: list, kwargs: dict) -> VariableTracker:
    if kwargs:
        raise GraphBreak("numpy_call", f"{fn.__name__}() with keywords")
    values = [dtype_like(realize(a, tx.state)) for a in args]
    try:
        made = fn(*values)
    except Exception as error:
        raise GraphBreak("numpy_call", f"{fn.__name__}() raised {type(error).__name__}") from None
    return constant(made) if type(made) is bool else wrap_dtype(tx, made)


def _limits(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    """``numpy.finfo`` and ``numpy.iinfo``: fresh objects, or the same for each dtype, that say the same whenever they are asked."""
    if kwargs or len(args) != 1:
        raise GraphBreak("numpy_call", f"numpy.{cls.__name__}() with other arguments than a dtype")
    try:
        made = cls(dtype_like(realize(args[0], tx.state)))
    except ValueError as error:
        raise GraphBreak("numpy_call", f"numpy.{cls.__name__}(): {error}") from None
    tx.state.guards.made[id(made)] = made
    return wrap_pinned(tx, made)


def dtype_like(tracker: VariableTracker) -> Any:
    """A dtype, or a class or name that stands for one."""
    if isinstance(tracker, DtypeVariable):
        return tracker.value
    if isinstance(tracker, ObjectVariable) and type(tracker.value) is type and (
            tracker.value in (bool, int, float, complex) or tracker.value.__module__ == "numpy"):
        return tracker.value
    if isinstance(tracker, ConstantVariable) and type(tracker.value) in (str, type(None)):
        return tracker.value
    raise GraphBreak("numpy_call", f"a {tracker.python_type().__name__} in the place of a dtype")


def _compared(fn: Any) -> types.FunctionType:
    def handler(tx: Any, obj: DtypeVariable, args: list, kwargs: dict) -> VariableTracker:
        return constant(fn(obj.value, dtype_like(realize(args[0], tx.state))))

    return handler


METHODS.update(((DtypeVariable, f"__{fn.__name__}__"), _compared(fn)) for fn in (operator.eq, operator.ne))


def _make(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    return _fold(tx, cls, args, kwargs)
