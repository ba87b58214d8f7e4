"""Parts of a trace that may change nothing that was there before: what they run is thrown away, or runs in a place of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ..bytecode.flow import live_locals
from ..model.value import MISSING, VariableTracker
from .frame import InstructionTranslator


@contextlib.contextmanager
def pure(state: Any, what: str, replays: bool = False) -> Iterator[dict[int, VariableTracker]]:
    """A region in which a change of anything older than the region breaks the graph. ``what`` names it for the user.

    ``replays``: the region is run once for each time that it is traced, so that Python's objects may be changed. Gives what is older.
    """
    before = state.pure, state.older, state.replays
    state.pure, state.older, state.replays = what, known_trackers(state), replays and (state.replays or not state.pure)
    try:
        yield state.older
    finally:
        state.pure, state.older, state.replays = before


def known_trackers(state: Any) -> dict[int, VariableTracker]:
    """All trackers that the trace can reach, by id. Holding them keeps the ids their own."""
    roots: list[Any] = [*state.by_id.values(), *state.mutated.values(), *state.generators, *state.exceptions, *state.frames]
    return reachable([*roots, *(scope.stores for scope in state.scopes.values())], dict(state.older))


def left_behind(state: Any, older: dict[int, VariableTracker]) -> dict[int, VariableTracker]:
    """What can be reached from what was there before a region, and from the objects that it has found since."""
    return reachable([*older.values(), *state.by_id.values(), *(scope.stores for scope in state.scopes.values())])


def needed_trackers(state: Any) -> dict[int, VariableTracker]:
    """The same without what only variables hold that nothing will read any more."""
    changed = [t for t in state.mutated.values() if t.source is not None or getattr(t, "value", None) is not MISSING]  # not born here
    roots: list[Any] = [*state.by_id.values(), *changed, *state.generators, *state.exceptions]
    roots += [scope.stores for scope in state.scopes.values()]
    for frame in state.frames:
        live = _read_later(frame)
        roots += [frame.stack, frame.cells, [value for name, value in frame.locals.items() if name in live]]
    return reachable(roots, dict(state.older))


def _read_later(frame: Any) -> frozenset[str]:
    """Variables that the rest of a frame may read, which waits for a call."""
    live = live_locals(frame.instructions)
    handler = frame.inst.handler
    return live[frame.ip] | (live[handler.target.index] if handler is not None else frozenset())


def reachable(roots: list[Any], known: dict[int, VariableTracker] | None = None) -> dict[int, VariableTracker]:
    """The trackers among ``roots`` and all that these refer to, by id, put to those that are ``known``."""
    found = {} if known is None else known
    todo = list(roots)
    while todo:
        value = todo.pop()  # it may be one of the program's objects, of which nothing is asked
        if issubclass(type(value), VariableTracker):
            if id(value) not in found:
                found[id(value)] = value
                todo += [getattr(value, slot, None) for cls in type(value).__mro__ for slot in cls.__dict__.get("__slots__", ())]
        elif issubclass(type(value), list):
            todo += list.__iter__(value)
        elif issubclass(type(value), tuple):
            todo += tuple.__iter__(value)
        elif issubclass(type(value), dict):
            todo += dict.values(value)
        elif type(value) is InstructionTranslator:
            todo += [value.stack, value.locals, value.cells]
    return found
