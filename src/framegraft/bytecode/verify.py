"""Consistency of canonical code: what decode promises and what encode needs."""

from __future__ import annotations

from .flow import NO_FALLTHROUGH, stack_effect, stack_use
from .ir import Instruction

JUMPS = frozenset(("JUMP", "POP_JUMP_IF", "FOR_ITER", "SEND"))
# Operations that reach an entry below those they touch: how far below, in excess of the argument.
REACH = {"LIST_APPEND": 1, "SET_ADD": 1, "MAP_ADD": 2, "LIST_EXTEND": 1, "SET_UPDATE": 1, "DICT_UPDATE": 1,
         "DICT_MERGE": 1}


def verify(instructions: list[Instruction]) -> None:
    """Raise ValueError where targets dangle, stack depths differ or underflow, or control runs off the end."""
    if not instructions:
        raise ValueError("no instructions")
    for index, inst in enumerate(instructions):
        if inst.index != index:
            raise ValueError(f"wrong index: {inst} stands at {index}")
    depths: list[int | None] = [None] * len(instructions)
    work: list[tuple[int, int, Instruction | None]] = [(0, 0, None)]
    while work:
        index, depth, before = work.pop()
        while True:
            if index >= len(instructions):
                raise ValueError(f"control runs off the end after {before}")
            inst = instructions[index]
            if depths[index] is not None:
                if depths[index] != depth:
                    raise ValueError(f"stack depth {depth} from {before} but {depths[index]} at {inst}")
                break
            depths[index] = depth
            work += _edges(instructions, inst, depth)
            if inst.op in NO_FALLTHROUGH:
                break
            depth += stack_effect(inst, False)
            before, index = inst, index + 1


def _edges(instructions: list[Instruction], inst: Instruction, depth: int) -> list[tuple[int, int, Instruction]]:
    """Where control may go from ``inst`` other than to the next instruction, and with what depth."""
    touched = max(stack_use(inst, False)[0], (inst.arg or 0) + REACH[inst.op] if inst.op in REACH else 0)
    if touched > depth:
        raise ValueError(f"stack underflow: {inst} needs {touched} entries, there are {depth}")
    edges = []
    if (inst.target is not None) != (inst.op in JUMPS):
        raise ValueError(f"{'missing' if inst.target is None else 'unexpected'} target: {inst}")
    if inst.target is not None:
        edges.append((_placed(instructions, inst.target, inst), depth + stack_effect(inst, True), inst))
    if inst.handler is not None:
        handler = inst.handler
        if handler.depth > depth:
            raise ValueError(f"handler of {inst} keeps {handler.depth} entries, there are {depth}")
        edges.append((_placed(instructions, handler.target, inst), handler.depth + handler.lasti + 1, inst))
    return edges


def _placed(instructions: list[Instruction], target: Instruction, user: Instruction) -> int:
    index = target.index
    if not 0 <= index < len(instructions) or instructions[index] is not target:
        raise ValueError(f"dangling target {target} of {user}")
    return index
