"""NumPy's numbers: constants like Python's own, with NumPy's functions of them computed while the program is traced.

Arrays are not captured. A function that would make one, or that warns, is left to the program.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

from ..errors import GraphBreak, UserRaise
from ..interp.state import realize, user_error
from ..model.dispatch import constructs
from ..model.value import ConstantVariable, ListVariable, ObjectVariable, TupleVariable, VariableTracker, constant

np: Any = sys.modules.get("numpy")  # torch has loaded it, where it is installed
_NUMBERS: tuple[type, ...] = () if np is None else (
    np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.float16, np.float32, np.float64,
    np.complex64, np.complex128)
_FUNCTIONS: tuple[type, ...] = () if np is None else (np.ufunc, type(np.prod))


def is_number(cls: type) -> bool:
    return cls in _NUMBERS


def is_function(fn: Any) -> bool:
    return isinstance(fn, _FUNCTIONS)


class _SameNumber:
    """Guard: a number of the same class with the same bits."""

    __name__ = "same_number"

    def __init__(self, value: Any) -> None:
        self.cls = type(value)
        self.bits = value.tobytes()

    def __call__(self, value: Any) -> bool:
        return type(value) is self.cls and value.tobytes() == self.bits


def wrap(state: Any, value: Any, source: Any) -> VariableTracker | None:
    """A number or function of NumPy's from outside; None for anything else."""
    if type(value) in _NUMBERS:
        state.guards.add(source, "PY", _SameNumber(value))
        return ConstantVariable(value, source)
    if is_function(value):
        state.guards.pin(source, value)
        return ObjectVariable(value, type(value), source)
    return None


def _plain(tx: Any, tracker: VariableTracker, what: str) -> Any:
    tracker = realize(tracker, tx.state)
    if isinstance(tracker, ConstantVariable):
        return tracker.value
    if isinstance(tracker, (ListVariable, TupleVariable)):
        return tuple(_plain(tx, i, what) for i in tracker.items)
    raise GraphBreak("numpy_call", f"numpy.{what} of something other than numbers")


def call(tx: Any, fn: Any, args: list, kwargs: dict) -> VariableTracker:
    name = fn.__name__
    values = [_plain(tx, a, name) for a in args]
    named = {k: _plain(tx, v, name) for k, v in kwargs.items()}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = fn(*values, **named)
    except Warning as warning:
        raise GraphBreak("numpy_call", f"numpy.{name} warns: {warning}") from None
    except Exception as error:
        raise UserRaise(user_error(type(error), *error.args)) from None
    if type(result) not in (*_NUMBERS, bool, int, float):
        raise GraphBreak("numpy_call", f"numpy.{name}, which gives a {type(result).__name__}")
    return constant(result)


@constructs(*_NUMBERS)
def make_number(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    return call(tx, cls, args, kwargs)
