"""Copies of short exits, brought together again.

Where a jump leads to a few instructions that leave the function, the compiler writes a copy of them in its place
(``inline_small_exit_blocks``). Copies have the positions of what they are copied from, and are told by that.
"""

from __future__ import annotations

from typing import Any

from ..bytecode.flow import NO_FALLTHROUGH, remove_unreachable, stack_depths
from ..bytecode.ir import Instruction

EXITS = frozenset(("RETURN_VALUE", "RAISE_VARARGS", "RERAISE"))
_LEAVING = frozenset(("POP_TOP", "POP_EXCEPT", "SWAP", "RERAISE", "RETURN_VALUE"))
SHORT = 6  # canonical instructions of four raw ones. What is longer and the same is code that leaves a block, as in each ``return``,
LONG = 40  # or on CPython 3.10 a copy, too (``duplicate_exits_without_lines``)


def without_copies(insts: list[Instruction], longest: int) -> list[Instruction]:
    """``insts`` with a jump to the last copy instead of every other one, of those that have at most ``longest`` instructions.

    Instructions are changed in place.
    """
    groups: dict[Any, list[int]] = {}
    for i, inst in enumerate(insts):
        if inst.op in EXITS and inst.positions is not None and inst.positions[0] is not None:
            groups.setdefault((inst.op, inst.arg, inst.positions), []).append(i)
    if all(len(ends) < 2 for ends in groups.values()):
        return insts
    depths = stack_depths(insts)
    warm = _without_exceptions(insts)
    found = False
    for ends in groups.values():
        if len(ends) > 1:
            ends.sort(key=lambda i: (warm[i], i), reverse=True)  # handlers come behind what is not handling
            found = _join(insts, ends, depths, longest) or found
    return remove_unreachable(insts) if found else insts


def _join(insts: list[Instruction], ends: list[int], depths: list[int | None], longest: int) -> bool:
    """Lets the exits that end at ``ends`` lead to the first of them, as far as they are the same; whether any do."""
    known: dict[Any, int] = {}
    found = False
    for end in ends:
        key: Any = ()
        same: list[tuple[int, int]] = []
        for at in range(end, max(end - longest - 1, -1), -1):
            inst = insts[at]
            if at != end and (inst.target is not None or inst.op in NO_FALLTHROUGH):
                break
            cover = inst.handler and (id(inst.handler.target), inst.handler.depth, inst.handler.lasti)
            key = (inst.op, hashable(inst.arg), inst.positions, depths[at], cover, key)
            first = known.setdefault(key, at)
            if first != at:
                same.append((at, first))
        if len(same) > longest:
            continue
        while same and (count := _leaving(insts, same[-1][0])):
            del same[-count:]
        for at, first in same:
            inst = insts[at]
            inst.op, inst.arg, inst.target, inst.handler = "JUMP", None, insts[first], None
        found = found or bool(same)
    return found


def _leaving(insts: list[Instruction], i: int) -> int:
    """How many instructions from ``i`` on are no copy, but code that leaves a block and is alike wherever it is left."""
    if insts[i].op in _LEAVING:
        return 1
    ops = [inst.op[:6] for inst in insts[i : i + 3]]
    return 3 if ops == ["LOAD_C", "STORE_", "DELETE"] else 0  # the name of an exception is unbound


def _without_exceptions(insts: list[Instruction]) -> bytearray:
    """Whether each instruction is reached without an exception."""
    seen = bytearray(len(insts))
    todo = [0]
    while todo:
        i = todo.pop()
        while i < len(insts) and not seen[i]:
            seen[i] = 1
            target = insts[i].target
            if target is not None:
                todo.append(target.index)
            if insts[i].op in NO_FALLTHROUGH:
                break
            i += 1
    return seen


def hashable(arg: Any) -> Any:
    """What an argument is told by."""
    try:
        hash(arg)
    except TypeError:
        return id(arg)
    return type(arg), arg
