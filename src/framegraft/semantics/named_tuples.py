"""``collections.namedtuple`` called in the trace.

Each call of the program makes a class of its own. The trace makes one and works with it as long as neither the class nor an object of
it leaves the trace; where one does, the trace ends before the class is made.
"""

from __future__ import annotations

import collections
import types
from typing import Any

from ..errors import GraphBreak
from ..interp.state import realize
from ..model.dispatch import handles
from ..model.value import ListVariable, VariableTracker
from .wrapping import need_constant_deep, wrap_pinned

_NAMEDTUPLE: Any = collections.namedtuple  # type checkers take its calls for declarations


@handles(_NAMEDTUPLE)
def make_class(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    plain = [_constant(tx, a) for a in args]
    named = {key: _constant(tx, value) for key, value in kwargs.items()}
    if named.setdefault("module", None) is None:
        named["module"] = tx.scope.real.get("__name__", "__main__")  # of the frame that calls it
    if type(named["module"]) is not str:
        raise GraphBreak("introspection", "namedtuple() in a module without a name")
    try:
        cls = _NAMEDTUPLE(*plain, **named)
    except (TypeError, ValueError) as error:
        raise GraphBreak("raised_exception", f"namedtuple(): {error}") from None
    stand_ins = tx.state.stand_ins
    stand_ins[id(cls)] = cls
    for part in vars(cls).values():
        part = getattr(part, "__func__", part)
        if type(part) is types.FunctionType or type(part).__module__ == "collections":
            stand_ins[id(part)] = part
    return wrap_pinned(tx, cls)


def _constant(tx: Any, tracker: VariableTracker) -> Any:
    tracker = realize(tracker, tx.state)
    if isinstance(tracker, ListVariable) and tracker.pytype is list:
        return [_constant(tx, item) for item in tracker.items]
    return need_constant_deep(tracker)
