"""Raw code of CPython 3.11 and later as lists, with what the stack holds before each operation."""

from __future__ import annotations

import bisect
import dis
from types import CodeType
from typing import Any

from .running import FEATURES
from .tables import (
    CACHES,
    CALL_INTRINSIC_1,
    CALLED_INTRINSICS,
    EFFECTS,
    EXPANSIONS,
    EXTENDED_ARG,
    JUMPS,
    LOAD_FAST_AND_CLEAR,
    MAKE_CELL,
    NO_FALLTHROUGH,
    STORE_FAST,
    SWAP,
    step,
)

_GENERATORS = 0x20 | 0x80 | 0x200  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR


class RawCode:
    """Raw instructions without caches and prefixes, as parallel lists, with the stack before each."""

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.ops: list[int] = []
        self.args: list[int] = []
        self.begins: list[int] = []  # byte offset, of the first prefix if there is one
        self.ends: list[int] = []  # byte offset of the operation itself: its position is told there
        self.goals: list[int] = []  # the index of where it jumps to, -1 for none
        self._read(code.co_code)
        self.handlers = self._covers()
        self.wrapper = self._unwrap() if FEATURES.generators_wrapped and code.co_flags & _GENERATORS else len(self.ops)
        self.depths = [-1] * len(self.ops)  # -1: unreachable
        self.nulls = [0] * len(self.ops)
        self._simulate()

    def _read(self, data: bytes) -> None:
        ops, args, begins, ends = self.ops, self.args, self.begins, self.ends
        jumps: list[tuple[int, int]] = []
        offset, begin, prefix, size = 0, 0, 0, len(data)
        while offset < size:
            op, arg = data[offset], data[offset + 1] | prefix
            if op == EXTENDED_ARG:
                prefix = arg << 8
                offset += 2
                continue
            after = offset + 2 + 2 * CACHES[op]
            if op in JUMPS:
                jumps.append((len(ops), after + 2 * arg * JUMPS[op]))
            if op in EXPANSIONS:
                parts = EXPANSIONS[op]
                ops += [part for part, _ in parts]
                args += [share(arg) for _, share in parts]
                begins += [begin] * len(parts)
                ends += [offset] * len(parts)
            else:
                ops.append(op)
                args.append(arg)
                begins.append(begin)
                ends.append(offset)
            prefix = 0
            offset = begin = after
        self.goals = [-1] * len(ops)
        for index, goal in jumps:
            self.goals[index] = bisect.bisect_left(begins, goal)

    def _covers(self) -> list[Any]:
        """The entry of the exception table that covers each instruction: (index of the target, depth, lasti)."""
        covers: list[Any] = [None] * len(self.ops)
        for entry in dis._parse_exception_table(self.code):  # type: ignore[attr-defined]
            low = bisect.bisect_left(self.begins, entry.start)
            high = bisect.bisect_left(self.begins, entry.end)
            target = bisect.bisect_left(self.begins, entry.target)
            covers[low:high] = [(target, entry.depth, entry.lasti)] * (high - low)
        return covers

    def _unwrap(self) -> int:
        """Forget the handler that is around every generator's body; canonical generators need none. Where it begins."""
        for index, (op, arg) in enumerate(zip(self.ops, self.args, strict=True)):
            if op == CALL_INTRINSIC_1 and CALLED_INTRINSICS[op, arg][1] == "stopiteration_error":
                self.handlers = [None if cover and cover[0] == index else cover for cover in self.handlers]
                return index
        return len(self.ops)

    def _simulate(self) -> None:
        ops, args, goals, depths, handlers = self.ops, self.args, self.goals, self.depths, self.handlers
        work = [(0, 0, 0)]
        cover = None
        while work:
            index, depth, nulls = work.pop()
            while depths[index] < 0:
                depths[index], self.nulls[index] = depth, nulls
                if handlers[index] is not cover:
                    cover = handlers[index]
                    if cover is not None:
                        target, kept, lasti = cover
                        work.append((target, kept + 1 + lasti, nulls & (1 << kept) - 1))
                op = ops[index]
                if goals[index] >= 0:
                    work.append((goals[index], *step(op, args[index], depth, nulls, True)))
                if op in NO_FALLTHROUGH:
                    break
                effect = EFFECTS[op]
                if nulls or effect is None:
                    depth, nulls = step(op, args[index], depth, nulls, False)
                else:
                    depth += effect
                index += 1


class Aside:
    """A local that an inlined comprehension has put aside, and the name that its own variable has meanwhile."""

    def __init__(self, slot: int, name: str, is_cell: bool) -> None:
        self.slot = slot
        self.name = name
        self.is_cell = is_cell


def asides(raw: RawCode, slots: list[str]) -> list[dict[int, Aside]]:
    """Before each instruction: raw stack entry -> what was put aside there. Empty for code without inlined comprehensions."""
    if LOAD_FAST_AND_CLEAR not in raw.ops:
        return []
    made: dict[int, Aside] = {}
    counts: dict[str, int] = {}
    for index, (op, arg) in enumerate(zip(raw.ops, raw.args, strict=True)):
        if op == LOAD_FAST_AND_CLEAR:
            name = slots[arg]
            counts[name] = counts.get(name, 0) + 1
            made[index] = Aside(arg, f"{name}.{counts[name]}", raw.ops[index + 1] == MAKE_CELL and raw.args[index + 1] == arg)
    held: list[Any] = [None] * len(raw.ops)
    work: list[tuple[int, dict[int, Aside]]] = [(0, {})]
    while work:
        index, now = work.pop()
        while held[index] is None:
            held[index] = now
            cover = raw.handlers[index]
            if cover is not None:
                work.append((cover[0], {at: aside for at, aside in now.items() if at < cover[1]}))
            if raw.goals[index] >= 0:
                work.append((raw.goals[index], now))
            if raw.ops[index] in NO_FALLTHROUGH:
                break
            now = _after(raw, index, now, made)
            index += 1
    return [now or {} for now in held]


def _after(raw: RawCode, index: int, now: dict[int, Aside], made: dict[int, Aside]) -> dict[int, Aside]:
    op, top = raw.ops[index], raw.depths[index] - 1
    if op == LOAD_FAST_AND_CLEAR:
        return {**now, top + 1: made[index]}
    if op == SWAP:
        other = top + 1 - raw.args[index]
        if top in now or other in now:
            moved = {top: other, other: top}
            return {moved.get(at, at): aside for at, aside in now.items()}
    elif op == STORE_FAST and top in now:
        return {at: aside for at, aside in now.items() if at != top}
    return now
