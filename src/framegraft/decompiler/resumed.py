"""Resume functions as a person would write them: the rest of a loop's round first, then the loop.

A resume function jumps into the middle of the original code with the values that lay on the stack there, iterators of
``for`` loops at the bottom. Here the code of the interrupted round is copied, and what lies at the bottom is pushed only
where the loop goes on. The result does the same, and the compiler could have made it.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType
from typing import Any

from ..bytecode.decode import decode
from ..bytecode.flow import NO_FALLTHROUGH, remove_unreachable, stack_depths, stack_use
from ..bytecode.ir import ExceptionHandler, Instruction
from ..errors import DecompileError


def untangled(code: CodeType) -> Iterator[list[Instruction]]:
    """Instructions that do the same as a resume function's, most promising first; none for other code."""
    insts = remove_unreachable(decode(code))
    if insts[0].op == "LOAD_FAST" and insts[1].op == "STORE_CELL":
        try:
            insts = _without_cells(insts)
        except DecompileError:
            return
        yield insts
    count = 0
    while insts[count].op == "LOAD_FAST" and insts[count].arg == f"___stack{count}":
        count += 1
    jump = insts[count]
    if jump.op != "JUMP" or jump.target is None:
        return
    for left_out in range(count, -1, -1):
        try:
            yield _Copier(insts, count, left_out).run()
        except DecompileError:
            continue


_CELL_OPS = {"LOAD_DEREF": "LOAD_ATTR", "STORE_DEREF": "STORE_ATTR", "DELETE_DEREF": "DELETE_ATTR"}


def _without_cells(insts: list[Instruction]) -> list[Instruction]:
    """The code with ``cell.cell_contents`` for the variables of which the cells are parameters."""
    cells: dict[str, str] = {}
    while insts[2 * len(cells)].op == "LOAD_FAST" and insts[2 * len(cells) + 1].op == "STORE_CELL":
        load, stored = insts[2 * len(cells) : 2 * len(cells) + 2]
        cells[stored.arg] = load.arg
    out: list[Instruction] = []
    for inst in insts[2 * len(cells) :]:
        if inst.arg in cells and inst.op == "LOAD_CLOSURE":
            raise DecompileError("a function is made with a given cell")
        if inst.op in _CELL_OPS and inst.arg in cells:
            after = Instruction(_CELL_OPS[inst.op], "cell_contents")
            after.offset, after.positions, after.handler = inst.offset, inst.positions, inst.handler
            inst.op, inst.arg = "LOAD_FAST", cells[inst.arg]
            out += (inst, after)
        else:
            out.append(inst)
    return remove_unreachable(out)


class _Copier:
    """Copies of instructions, by (index, entries left out at the bottom of the stack, whether in the interrupted round)."""

    def __init__(self, insts: list[Instruction], count: int, left_out: int) -> None:
        self.insts = insts
        self.depths: list[Any] = stack_depths(insts)
        self.count, self.left_out = count, left_out
        self.start: int = insts[count].target.index  # type: ignore[union-attr]
        self.low, self.high = self._loops()
        self.made: dict[tuple[int, int, bool], list[Instruction]] = {}
        self.todo: list[tuple[int, int, bool]] = []
        self.links: list[tuple[Instruction, tuple[int, int, bool]]] = []
        self.handlers: list[tuple[Instruction, tuple[int, int, bool], int, bool]] = []

    def _loops(self) -> tuple[int, int]:
        """The instructions of the loops around the start, as a range; an empty one for none."""
        last: dict[int, int] = {}
        for inst in self.insts:
            to = inst.target
            if to is not None and to.index <= inst.index and to.op != "SEND":
                last[to.index] = max(inst.index, last.get(to.index, 0))
        around = [(header, end) for header, end in last.items() if header <= self.start <= end]
        return min((a for a, _ in around), default=0), max((b for _, b in around), default=-1)

    def run(self) -> list[Instruction]:
        if self.high < 0:
            raise DecompileError("not in a loop")
        out: list[Instruction] = []
        for k in range(self.left_out, self.count):
            out.append(self.fresh("LOAD_FAST", f"___stack{k}"))
        out.append(self.fresh("JUMP", None))
        self.links.append((out[-1], self.want(self.start, self.left_out, True)))
        while self.todo:
            self.copy(self.todo.pop())
        for key in sorted(self.made, key=lambda key: (not key[2], -key[1], key[0])):
            out += self.made[key]
        for inst, key in self.links:
            inst.target = self.made[key][0]
        for inst, key, depth, lasti in self.handlers:
            inst.handler = ExceptionHandler(self.made[key][0], depth, lasti)
        return remove_unreachable(out)

    def fresh(self, op: str, arg: Any, like: Instruction | None = None) -> Instruction:
        like = like or self.insts[0]
        made = Instruction(op, arg)
        made.offset, made.positions = like.offset, like.positions
        return made

    def want(self, i: int, left_out: int, first_round: bool) -> tuple[int, int, bool]:
        key = (i, left_out, first_round and self.low <= i <= self.high)
        if key not in self.made:
            self.made[key] = []
            self.todo.append(key)
        return key

    def copy(self, key: tuple[int, int, bool]) -> None:
        i, left_out, first_round = key
        inst, out = self.insts[i], self.made[key]
        depth = self.depths[i]

        def go(to: int, left: int) -> None:
            """The way on, as a jump behind the copy."""
            out.append(self.fresh("JUMP", None, inst))
            self.links.append((out[-1], self.want(to, left, first_round and to > i)))

        if left_out and depth == left_out and inst.op == "FOR_ITER":
            out.append(self.fresh("LOAD_FAST", f"___stack{left_out - 1}", inst))
            out.append(self.fresh("APPLY", (iter, 1), inst))  # of an iterator, which gives itself
            out.append(self.fresh("JUMP", None, inst))
            self.links.append((out[-1], self.want(i, left_out - 1, False)))
            return
        if left_out and depth == left_out and inst.op == "POP_TOP":
            out.append(self.fresh("JUMP", None, inst))
            self.links.append((out[-1], self.want(i + 1, left_out - 1, first_round)))
            return
        if depth - stack_use(inst, False)[0] < left_out or inst.op in ("LIST_APPEND", "SET_ADD", "MAP_ADD"):
            raise DecompileError("what lies at the bottom of the stack is used")
        made = self.fresh(inst.op, inst.arg, inst)
        out.append(made)
        if inst.target is not None:
            to = inst.target.index
            self.links.append((made, self.want(to, left_out, first_round and to > i)))
        if inst.handler is not None:
            handler = inst.handler
            left = min(left_out, handler.depth)
            to = handler.target.index
            self.handlers.append((made, self.want(to, left, first_round), handler.depth - left, handler.lasti))
        if inst.op not in NO_FALLTHROUGH:
            go(i + 1, left_out)
