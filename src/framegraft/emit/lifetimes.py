"""What a frame holds where a graph breaks, so that behind the break objects die when they do in eager mode.

In eager mode a variable keeps its object until it is stored anew, deleted, or its frame ends. A break spreads one frame of the program
over two: the one that is interrupted, and the resume function's. What the rest reads goes over to the latter, and so does what it
may store anew without reading it. The interrupted frame, which lasts until the other returns, keeps the rest and nothing else.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from typing import Any

import torch

from ..bytecode.ir import Instruction
from ..interp.letting_go import TELL_NOBODY, tells
from ..model.value import MISSING, LazyVariable, VariableTracker
from .codegen import children

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
        return not issubclass(kind, _PLAIN) and id(tracker) in reached()
    if source.access == "ARG":
        return source.key[1] == name or not issubclass(kind, _PLAIN)
    return not issubclass(kind, _KEPT_ELSEWHERE) and source.access != "CELL" and source.root().access not in ("STATE", "NONE", "FN")


def tells_its_end(tracker: VariableTracker) -> bool:
    """Whether the program is told when the object dies, or may be: then the frame that ends last holds it."""
    value = getattr(tracker, "value", MISSING)
    if value is MISSING:
        return issubclass(tracker.python_type(), types.GeneratorType)
    return type(value) not in TELL_NOBODY and tells(value)


def reachable(uses: Iterable[VariableTracker]) -> set[int]:
    """Ids of the trackers whose objects are made where those of ``uses`` are."""
    seen: set[int] = set()
    stack = list(uses)
    while stack:
        tracker = stack.pop()
        if id(tracker) not in seen:
            seen.add(id(tracker))
            stack += children(tracker)
    return seen


def slots(instructions: list[Instruction], parameters: Iterable[str]) -> list[str]:
    """Locals that are bound at the end of instructions without jumps."""
    found = dict.fromkeys(parameters)
    for inst in instructions:
        if inst.op == "STORE_FAST":
            found[inst.arg] = None
        elif inst.op == "DELETE_FAST":
            found.pop(inst.arg, None)
    return list(found)
