"""What a frame holds where a graph breaks, so that behind the break objects die when they do in eager mode.

In eager mode a variable keeps its object until it is stored anew, deleted, or its frame ends. A break spreads one frame of the program
over two: the one that is interrupted, and the resume function's. What the rest reads goes over to the latter, and so does what it
may store anew without reading it. The interrupted frame, which lasts until the other returns, keeps the rest and nothing else.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from .._native import namespace_of
from ..bytecode.ir import Instruction
from ..interp.letting_go import tells
from ..model.value import (
    MISSING,
    DequeVariable,
    DictVariable,
    GeneratorVariable,
    LazyVariable,
    ListVariable,
    ObjectVariable,
    SetVariable,
    VariableTracker,
)
from ..semantics import lookup
from .codegen import Unreconstructible, children

# Nobody can tell how long these live.
_PLAIN = (type(None), bool, int, float, complex, str, bytes)
# Where these are reached through something else that holds them, loading them would cost more than it is worth.
_KEPT_ELSEWHERE = (*_PLAIN, torch.Tensor, torch.nn.Module, torch.dtype, torch.device, types.ModuleType, types.FunctionType,
                   types.BuiltinFunctionType, type)


def held(frame: Any, wanted: set[str], reached: Callable[[], set[int]]) -> dict[str, VariableTracker]:
    """Locals that nothing reads any more, and that keep an object of the program alive.

    reached: gives the ids of the trackers that the transformed code makes objects of.
    """
    found = {}
    for name, tracker in frame.locals.items():
        if name not in wanted and _holds(name, tracker, reached):
            found[name] = tracker
    return found


def _holds(name: str, tracker: VariableTracker, reached: Callable[[], set[int]]) -> bool:
    source = tracker.source
    if isinstance(tracker, LazyVariable):
        kind = type(tracker.value)
        tracker = tracker.tracker or tracker
    else:
        kind = tracker.python_type()
    if source is None:
        return not issubclass(kind, _PLAIN) and (id(tracker) in reached() or _holds_parameters(tracker))
    if source.access == "ARG":
        return source.key[1] == name or not issubclass(kind, _PLAIN)
    return not issubclass(kind, _KEPT_ELSEWHERE) and source.access != "CELL" and source.root().access not in ("STATE", "NONE", "FN")


def _holds_parameters(tracker: VariableTracker) -> bool:
    """Whether an object that the trace has made holds one that a parameter brought, and that the frame may be the last to hold."""
    for part in _parts([tracker]):
        if part.source is not None and part.source.access == "ARG" and not issubclass(type(getattr(part, "value", None)), _KEPT_ELSEWHERE):
            return True
    return False


def _parts(trackers: Iterable[VariableTracker]) -> Iterator[VariableTracker]:
    """The trackers, and those that they hold, themselves or through others."""
    seen: set[int] = set()
    todo = list(trackers)
    while todo:
        tracker = todo.pop()
        if id(tracker) not in seen:
            seen.add(id(tracker))
            yield tracker
            todo += children(tracker)


def tells_its_end(tracker: VariableTracker) -> bool:
    """Whether the program is told when the object dies, or may be: then the frame that ends last holds it."""
    for part in _parts([tracker]):
        value = getattr(part, "value", MISSING)
        if type(part) is GeneratorVariable and value is MISSING or tells(value):
            return True
    return False


def none_dropped(state: Any) -> None:
    """The trace must not have taken an object out of one from outside where something happens when it dies: that would be later."""
    taken = [(old, new, "a change of the program's")
             for tracker in state.mutated.values() if tracker.source is not None for old, new in _taken_out(tracker)]
    taken += [(scope.real.get(name), new, f"a store to the global {name}")
              for scope in state.scopes.values() for name, new in scope.stores.items()]
    for old, new, change in taken:
        if tells(old) and getattr(new, "value", MISSING) is not old:
            raise Unreconstructible(f"{change} that lets go of a {type(old).__name__}, which tells when it dies")


def _taken_out(tracker: Any) -> list[tuple[Any, Any]]:
    """What the object held, with the tracker of what it holds there now, as far as that is another one."""
    value = getattr(tracker, "value", MISSING)
    if isinstance(tracker, ObjectVariable):
        held: Any = namespace_of(value) if value is not MISSING else None
        return [(held[name], new) for name, new in tracker.attrs.items() if name in held] if type(held) is dict else []
    if isinstance(tracker, DictVariable) and value is not None:
        changed = [*tracker.deleted, *(key for key, pair in tracker.items.items() if tracker.fetched.get(key) is not pair[1])]
        return [(dict.__getitem__(value, key), tracker.items.get(key, (None, None))[1])
                for key in changed if type(key) in (str, int) and dict.__contains__(value, key)]
    if isinstance(tracker, (ListVariable, DequeVariable, SetVariable)) and value is not None and not getattr(tracker, "unseen", False):
        kept = {id(getattr(new, "value", None)) for new in (tracker.items.values() if isinstance(tracker, SetVariable) else tracker.items)}
        return [(old, None) for old in lookup.container_type(value).__iter__(value) if id(old) not in kept]
    return []


def reachable(uses: Iterable[VariableTracker]) -> set[int]:
    """Ids of the trackers whose objects are made where those of ``uses`` are."""
    return set(map(id, _parts(uses)))


def slots(instructions: list[Instruction], parameters: Iterable[str]) -> list[str]:
    """Locals that are bound at the end of instructions without jumps."""
    found = dict.fromkeys(parameters)
    for inst in instructions:
        if inst.op == "STORE_FAST":
            found[inst.arg] = None
        elif inst.op == "DELETE_FAST":
            found.pop(inst.arg, None)
    return list(found)
