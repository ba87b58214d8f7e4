"""From a code object to canonical instructions."""

from __future__ import annotations

import bisect
from types import CodeType

from .ir import ExceptionHandler, Instruction
from .versions import VERSION


def decode(code: CodeType) -> list[Instruction]:
    """Fresh canonical instructions of ``code``; jumps and handlers point at instructions, ``index`` is filled in."""
    raw = VERSION.read(code)
    states = VERSION.null_states(code, raw)
    at: dict[int, Instruction] = {}  # raw offset -> first canonical instruction at or after it
    out: list[Instruction] = []
    waiting: list[int] = []
    sources: list[tuple[Instruction, int]] = []
    sinking = False  # SWAPs that only move a NULL below its callable
    for item in raw:
        sinking = item.op == "PUSH_NULL" or sinking and item.op == "SWAP"
        made = [] if sinking else VERSION.canonical(code, item, states.get(item.offset))
        if out and out[-1].op == "RETURN_GENERATOR" and item.op == "POP_TOP":
            made = []  # the None of the first send(): canonical generators start with an empty stack
        waiting.append(item.offset)
        for inst, jump in made:
            inst.offset, inst.positions = item.offset, item.positions
            inst.index = len(out)
            if jump is not None:
                sources.append((inst, jump))
            for offset in waiting:
                at[offset] = inst
            waiting = []
            out.append(inst)
    # The second part of a split instruction (JUMP_IF_FALSE_OR_POP) is found by the offset of the first only.
    firsts: dict[int, Instruction] = {}
    for inst in reversed(out):
        firsts[inst.offset] = inst
    at.update(firsts)
    for inst, jump in sources:
        inst.target = at[jump]
    _attach_handlers(code, out, at, states)
    return out


def _attach_handlers(code: CodeType, out: list[Instruction], at: dict[int, Instruction], states: dict) -> None:
    table = VERSION.exception_table(code)
    if not table:
        return
    offsets = sorted(states)
    made: dict[tuple, ExceptionHandler] = {}
    for start, end, target, depth, lasti in table:
        if target not in at:
            continue
        first = bisect.bisect_left(offsets, start)
        nulls = sum(states[offsets[first]][:depth]) if first < len(offsets) and offsets[first] < end else 0
        key = (target, depth - nulls, lasti)
        handler = made.get(key)
        if handler is None:
            handler = made[key] = ExceptionHandler(at[target], depth - nulls, lasti)
        low = bisect.bisect_left(out, start, key=_offset)
        while low < len(out) and out[low].offset < end:
            out[low].handler = handler
            low += 1


def _offset(inst: Instruction) -> int:
    return inst.offset
