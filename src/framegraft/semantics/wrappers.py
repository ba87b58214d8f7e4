"""``functools.update_wrapper`` (so ``functools.wraps``, decorators of context managers) on functions made in the trace."""

from __future__ import annotations

import functools
import types
from typing import Any

from ..interp.frame import CO_GENERATOR
from ..interp.state import realize
from ..model.dispatch import handles
from ..model.value import ConstantVariable, FunctionVariable, LazyVariable, MethodVariable, ObjectVariable, TupleVariable, VariableTracker
from . import attributes, calls
from .wrapping import wrap_pinned

_SPECIAL = ("__module__", "__doc__", "__annotations__")  # among ``FunctionVariable.attrs``: not in the function's __dict__


@handles(functools.update_wrapper)
def update_wrapper(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    """Where it is called in its usual form; in others as the plain Python that it is."""
    given = dict(zip(("wrapper", "wrapped", "assigned", "updated"), args, strict=False)) | kwargs
    wrapper, wrapped = given.get("wrapper"), given.get("wrapped")
    taken = _taken(tx, wrapper, wrapped) if _as_usual(tx, given) else None
    if taken is None:
        original = functools.update_wrapper
        return calls.inline_call(tx, wrap_pinned(tx, original), original, args, kwargs)  # type: ignore[arg-type]
    assert isinstance(wrapper, FunctionVariable)
    wrapper.name, wrapper.qualname = taken.pop("__name__"), taken.pop("__qualname__")
    wrapper.attrs.update(taken)
    tx.state.changed(wrapper)
    return wrapper


def _as_usual(tx: Any, given: dict) -> bool:
    usual = {"assigned": functools.WRAPPER_ASSIGNMENTS, "updated": functools.WRAPPER_UPDATES}
    return given.keys() <= {"wrapper", "wrapped", *usual} and all(_is(tx, given[k], v) for k, v in usual.items() if k in given)


def _is(tx: Any, tracker: VariableTracker, names: tuple[str, ...]) -> bool:
    tracker = realize(tracker, tx.state)
    if not isinstance(tracker, TupleVariable) or len(tracker.items) != len(names):
        return False
    items = [realize(i, tx.state) for i in tracker.items]
    return all(isinstance(i, ConstantVariable) and i.value == name for i, name in zip(items, names, strict=True))


def _taken(tx: Any, wrapper: Any, wrapped: Any) -> dict[str, Any] | None:
    """What the wrapper gets; None where the trace cannot tell."""
    if not isinstance(wrapper, FunctionVariable) or wrapper.code.co_flags & CO_GENERATOR:
        return None
    if type(wrapped) is MethodVariable:  # whose attributes are its function's
        of_function = _taken(tx, wrapper, realize(wrapped.func, tx.state))
        return None if of_function is None else of_function | {"__wrapped__": wrapped}
    if isinstance(wrapped, FunctionVariable):
        found: dict[str, Any] = {k: wrapped.attrs[k] for k in wrapped.attrs}
        found |= {k: attributes.get_attr(tx, wrapped, k) for k in _SPECIAL}
    elif isinstance(wrapped, ObjectVariable) and type(wrapped.value) is types.FunctionType and wrapped.source is not None:
        if wrapped.attrs:
            return None
        names = tuple(wrapped.value.__dict__)
        tx.state.guards.add(wrapped.source, "PY", _Names(names))
        found = {k: LazyVariable(wrapped.value.__dict__[k], wrapped.source.child("FDICT").child("KEY", k)) for k in names}
        found |= {k: attributes.get_attr(tx, wrapped, k) for k in _SPECIAL}
    else:
        return None
    for key in ("__name__", "__qualname__"):
        value = realize(attributes.get_attr(tx, wrapped, key), tx.state)
        if type(value) is not ConstantVariable:
            return None
        found[key] = value.value
    if hasattr(types.FunctionType, "__type_params__") and getattr(getattr(wrapped, "value", None), "__type_params__", ()):
        return None
    found["__wrapped__"] = wrapped
    return found


class _Names:
    """Guard: the function has these attributes and no others."""

    __name__ = "attribute_names"

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def __call__(self, fn: Any) -> bool:
        return tuple(fn.__dict__) == self.names
