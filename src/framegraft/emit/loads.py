"""Loads of a graph's inputs. Most transformed code is never run, the native core passes what its guards have met: so one instruction
stands for all loads until the code is encoded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..bytecode.ir import Instruction
from ..model.source import Source

#: Pushes the objects at the places that are its argument.
LOAD_SOURCES = "LOAD_SOURCES"

_STEPS = frozenset(("KEY", "DICT", "ITEM", "ATTR"))
_KEYS = (str, int, type(None))


def need_no_pins(sources: Iterable[Source]) -> bool:
    """Whether the code for these paths uses no object but the frame's arguments."""
    known: dict[Source, bool] = {}
    return all(_needs_none(source, known) for source in sources)


def _needs_none(source: Source, known: dict[Source, bool]) -> bool:
    answer = known.get(source)
    if answer is None:
        base = source.base
        if base is None:
            answer = source.access == "ARG"
        else:
            answer = source.access in _STEPS and type(source.key) in _KEYS and _needs_none(base, known)
        known[source] = answer
    return answer


def expanded(instructions: list[Instruction]) -> list[Instruction]:
    """The instructions, each LOAD_SOURCES as what it stands for. It is no jump's target."""
    found: list[Instruction] = []
    for inst in instructions:
        if inst.op != LOAD_SOURCES:
            found.append(inst)
            continue
        for source in inst.arg:
            loads = source.emit(_pinned)
            for load in loads:
                load.handler, load.positions = inst.handler, inst.positions
            found += loads
    return found


def _pinned(obj: Any) -> list[Instruction]:
    raise AssertionError(f"{type(obj).__name__}: a path that needs no pins is without objects")
