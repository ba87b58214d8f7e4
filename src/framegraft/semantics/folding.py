"""Constants folded by the real function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import GraphBreak, UserRaise
from ..interp.state import user_error
from ..model.value import ListVariable, TupleVariable, VariableTracker
from .wrapping import wrap_constant

# Classes of constants whose operations may end as a switch of the process says: how to call a function with one.
CAREFULLY: dict[type, Callable[[Any, list, dict], Any]] = {}


def fold(fn: Any, args: list[VariableTracker], kwargs: dict | None = None) -> VariableTracker:
    """Call the real, pure function on constants; what it raises, the traced program raises."""
    values = [a.value for a in args]  # type: ignore[attr-defined]
    try:
        careful = next((CAREFULLY[type(v)] for v in (getattr(fn, "__self__", None), *values) if type(v) in CAREFULLY), None)
        value = fn(*values, **(kwargs or {})) if careful is None else careful(fn, values, kwargs or {})
    except GraphBreak:
        raise
    except Exception as error:
        if getattr(error, "__dict__", None):  # its arguments alone don't make it, as NumPy's UFuncTypeError
            raise GraphBreak("raised_exception", f"{getattr(fn, '__name__', fn)} raised {type(error).__name__}") from None
        raise UserRaise(user_error(type(error), *error.args)) from None
    return fresh(value)


def fresh(value: Any) -> VariableTracker:
    """Tracker of an object that this very call made: nobody else has it."""
    if type(value) is list:
        return ListVariable([fresh(v) for v in value])
    if type(value) is tuple:
        return TupleVariable([fresh(v) for v in value])
    if type(value) in _CHANGING or type(value).__name__ == "ndarray" or hasattr(type(value), "__next__"):
        raise GraphBreak("untraceable_call", f"a builtin that gives a new {type(value).__name__}")
    return wrap_constant(value)


_CHANGING = (dict, set, bytearray)
