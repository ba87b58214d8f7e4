"""``with warnings.catch_warnings()`` around operations, and the filters that are set in there (Lib/warnings.py).

What the program warns of inside is told behind the graph, in a block with the same filters. Of operations that warn in the graph the
filters there hold: so one that does so while it is captured, inside of such a block, breaks the graph.
"""

from __future__ import annotations

import functools
import re
import warnings
from typing import Any

from ..errors import GraphBreak
from ..model.dispatch import constructs, handles, specialised
from ..model.value import MISSING, NONE, ConstantVariable, ListVariable, ObjectVariable, VariableTracker
from . import warned

_ACTIONS = ("ignore", "always", "default", "module", "once")  # not "error": what warns in the graph would have to raise
_PLACES = {
    warnings.catch_warnings: ("action", "category", "lineno", "append"),
    warnings.simplefilter: ("action", "category", "lineno", "append"),
    warnings.filterwarnings: ("action", "message", "category", "module", "lineno", "append"),
}
_mutated: Any = warnings._filters_mutated  # type: ignore[attr-defined]


class CatchingVariable(ObjectVariable):
    """A ``catch_warnings`` made in the trace; ``edits``: what has been done to the filters in it; ``outer``: steps before it."""

    __slots__ = ("edits", "given", "outer")

    def __init__(self, given: dict[str, Any]) -> None:
        super().__init__(MISSING, warnings.catch_warnings)
        self.given = given
        self.edits: list[warned.Edit] = []
        self.outer: list[tuple] | None = None

    @property
    def records(self) -> bool:
        return bool(self.given.get("record"))


def told_inside(steps: tuple, given: dict[str, Any]) -> None:
    """Called by transformed code."""
    with warnings.catch_warnings(**given):
        for fn, *args in steps:
            fn(*args)


@constructs(warnings.catch_warnings)
def make(tx: Any, cls: Any, args: list, kwargs: dict) -> VariableTracker:
    given = _constants(cls, [], kwargs)
    given = {name: value for name, value in given.items() if (name, value) not in (("record", False), ("module", None))}
    if args or given.keys() - {"record", *_PLACES[cls]}:
        raise GraphBreak("untraceable_call", "warnings.catch_warnings of another module")
    return CatchingVariable(given)


@handles(warnings.catch_warnings.__enter__)
def enter(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    state, obj = tx.state, _made_here(args[0])
    if tx.inst.op != "BEFORE_WITH" or state.graph.body is not None or state.pure or obj.outer is not None:
        raise GraphBreak("unsupported_context", "warnings.catch_warnings entered by something other than a with statement, or twice")
    if id(warnings.filters) in state.by_id or not warned.are_as_told(state):
        raise GraphBreak("unsupported_context", "warnings.catch_warnings where the program looks at the filters itself")
    state.changed(None)
    obj.outer, state.warned = state.warned, []
    state.catching.append(obj)
    if obj.given.get("action") is not None:
        obj.edits.append(_edit(warnings.simplefilter, {k: v for k, v in obj.given.items() if k != "record"}))
    return ListVariable([]) if obj.records else NONE  # what would be recorded breaks the graph


@handles(warnings.catch_warnings.__exit__)
def leave(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    state, obj = tx.state, _made_here(args[0])
    if not state.catching or state.catching[-1] is not obj or obj.outer is None:
        raise GraphBreak("unsupported_context", "warnings.catch_warnings that is left out of order")
    state.changed(None)
    state.catching.pop()
    inside, state.warned = state.warned, obj.outer
    if any(step[0] in (warned.warn_again, told_inside) for step in inside):
        state.warned.append((told_inside, tuple(inside), obj.given))
    elif not state.warned or state.warned[-1] != (_mutated,):  # CPython forgets what it has told once, and no more
        state.warned.append((_mutated,))
    return NONE


def _made_here(obj: VariableTracker) -> CatchingVariable:
    if not isinstance(obj, CatchingVariable):
        raise GraphBreak("untraceable_call", "warnings.catch_warnings that was made outside of the trace")
    return obj


def _filter(fn: Any) -> None:
    @handles(fn)
    def change(tx: Any, args: list, kwargs: dict) -> VariableTracker:
        given = _constants(fn, args, kwargs)
        if not tx.state.catching:
            raise GraphBreak("untraceable_call", f"warnings.{fn.__name__} for good")
        edit = _edit(fn, given)
        tx.state.changed(None)
        tx.state.catching[-1].edits.append(edit)
        tx.state.warned.append((functools.partial(fn, **given),))
        return NONE


for _fn in (warnings.simplefilter, warnings.filterwarnings, warnings.resetwarnings):
    _filter(_fn)


def _constants(fn: Any, args: list, kwargs: dict) -> dict[str, Any]:
    """The arguments by name."""
    trackers = [specialised(tracker) for tracker in (*args, *kwargs.values())]
    plain = [t.value for t in trackers if isinstance(t, ConstantVariable) or isinstance(t, ObjectVariable) and isinstance(t.value, type)]
    places = _PLACES.get(fn, ())
    if len(plain) != len(trackers) or len(args) > len(places):
        raise GraphBreak("untraceable_call", f"warnings.{fn.__name__} of something other than constants")
    return dict(zip((*places[: len(args)], *kwargs), plain, strict=True))


def _edit(fn: Any, given: dict[str, Any]) -> warned.Edit:
    """What the call does to the list of filters."""
    if fn is warnings.resetwarnings:
        if given:
            raise GraphBreak("raised_exception", "warnings.resetwarnings() with arguments")
        return "clear", None
    action, message, category = given.get("action"), given.get("message", ""), given.get("category", Warning)
    module, line = given.get("module", "") if fn is warnings.filterwarnings else "", given.get("lineno", 0)
    kinds = type(message) is str and type(module) is str and isinstance(category, type) and issubclass(category, Warning)
    if action not in _ACTIONS or not kinds or type(line) is not int or line < 0 or given.keys() - set(_PLACES[fn]):
        raise GraphBreak("raised_exception", f"warnings.{fn.__name__}() with other arguments")
    item = (action, re.compile(message, re.I) if message else None, category, re.compile(module) if module else None, line)
    return "append" if given.get("append") else "insert", item
