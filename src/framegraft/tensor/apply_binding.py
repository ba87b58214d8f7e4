"""Arguments of ``autograd.Function.apply`` by position, as torch puts them before it calls ``forward``."""

from __future__ import annotations

import inspect
import types
from typing import Any

from ..errors import GraphBreak
from ..interp.state import realize
from ..model.value import TupleVariable, VariableTracker, constant
from ..native.private import apply_takes_keywords
from ..semantics import attributes, functions


def bind(tx: Any, forward: VariableTracker, args: list, kwargs: dict, separate: bool) -> list:
    """``separate``: the class has a ``setup_context``, which is given defaults, too. Break where eager mode raises."""
    value = getattr(realize(forward, tx.state), "value", None)
    if type(value) is not types.FunctionType:
        if kwargs:
            raise GraphBreak("untraceable_call", "autograd.Function.apply with keywords, of a forward that is no plain function")
        return args
    code = value.__code__
    names = code.co_varnames[not separate : code.co_argcount]
    if not kwargs and (not separate or len(args) == len(names) and not code.co_kwonlyargcount):
        return args
    if kwargs and code.co_posonlyargcount or not separate and not apply_takes_keywords():
        raise GraphBreak("untraceable_call", "autograd.Function.apply with keywords that it may not take")
    if separate and (code.co_kwonlyargcount or any(_has(tx, forward, name) for name in ("__signature__", "__wrapped__"))):
        raise GraphBreak("untraceable_call", "autograd.Function.apply with a setup_context, and a forward of another signature")
    defaults = _defaults(tx, forward, names) if separate else {}
    bound, left = list(args), dict(kwargs)
    for name in names[len(args) :]:
        given = left.pop(name, None) or defaults.get(name)
        if given is None:
            break
        bound.append(given)
    spare = code.co_flags & inspect.CO_VARARGS
    if left or separate and (len(bound) < len(names) or len(bound) > len(names) and not spare):
        raise GraphBreak("raised_exception", "autograd.Function.apply with arguments that forward does not take")
    return bound


def _has(tx: Any, forward: VariableTracker, name: str) -> bool:
    told: Any = realize(functions.handle_hasattr(tx, [forward, constant(name)], {}), tx.state)
    return bool(told.value)


def _defaults(tx: Any, forward: VariableTracker, names: tuple[str, ...]) -> dict[str, VariableTracker]:
    values = realize(attributes.get_attr(tx, forward, "__defaults__"), tx.state)
    items = values.items if isinstance(values, TupleVariable) else []
    return dict(zip(reversed(names), reversed(items), strict=False))
