"""Resume functions: the rest of a function from one instruction on, with the live stack and locals as parameters.

The code is the original function's, behind a prologue that restores cells and stack and jumps to the instruction.
"""

from __future__ import annotations

from types import CodeType
from typing import Any

from ..bytecode.encode import encode
from ..bytecode.flow import live_locals, remove_unreachable
from ..bytecode.ir import ExceptionHandler, Instruction
from ..interp.frame import _DECODED, RULES, _unsupported, instructions_of
from ..model.source import instr

_ORIGIN: dict[int, CodeType] = {}  # id(resume code) -> the function's own code
_KEEP: list[CodeType] = []
_REWRITTEN: dict[int, list[Instruction]] = {}
_LIVE: dict[int, list[frozenset[str]]] = {}

STACK, CELL = "___stack", "___cell_"


def origin_of(code: CodeType) -> CodeType:
    return _ORIGIN.get(id(code), code)


def _clone(instructions: list[Instruction]) -> list[Instruction]:
    copies = []
    for inst in instructions:
        new = Instruction(inst.op, inst.arg)
        new.offset, new.positions, new.run, new.index = inst.offset, inst.positions, inst.run, inst.index
        new.place = inst.place
        copies.append(new)
    for inst, new in zip(instructions, copies, strict=True):
        if inst.target is not None:
            new.target = copies[inst.target.index]
        if inst.handler is not None:
            handler = inst.handler
            new.handler = ExceptionHandler(copies[handler.target.index], handler.depth, handler.lasti)
    return copies


def body_of(code: CodeType) -> list[Instruction]:
    """The function's instructions as resume functions have them: ``super()`` gets its arguments spelt out."""
    found = _REWRITTEN.get(id(code))
    if found is None:
        original = instructions_of(code)
        found = _clone(original)
        if "__class__" in code.co_freevars and code.co_argcount:
            found = _explicit_super(found, code)
        _REWRITTEN[id(code)] = found
        _KEEP.append(code)
        _LIVE[id(code)] = live_locals(found)
        for place, inst in enumerate(found):
            inst.place = place
        rest = iter(found)
        for inst in original:
            match = next(rest)
            inst.place = match.place
            while match.op != inst.op:  # what was put in front of it belongs to it
                match = next(rest)
    return found


def _explicit_super(instructions: list[Instruction], code: CodeType) -> list[Instruction]:
    first = code.co_varnames[0]
    out: list[Instruction] = []
    for before, inst in zip([None, *instructions], instructions, strict=False):
        if before is not None and before.op == "LOAD_GLOBAL" and before.arg == "super" and inst.op == "CALL" and inst.arg[0] == 0:
            load = "LOAD_DEREF" if first in code.co_cellvars else "LOAD_FAST"
            for op, arg in (("LOAD_DEREF", "__class__"), (load, first)):
                extra = Instruction(op, arg)
                extra.offset, extra.positions, extra.handler, extra.run = -1, inst.positions, inst.handler, RULES[op]
                out.append(extra)
            inst.arg = (2, ())
        out.append(inst)
    for index, inst in enumerate(out):
        inst.index = index
    return out


class ResumePoint:
    """Where to go on: the original function's code, the instruction's offset, and what is passed."""

    def __init__(self, code: CodeType, target: Instruction, depth: int, bound: set[str], cells: list[str]) -> None:
        self.code = origin_of(code)
        body = body_of(self.code)
        self.index = target.place
        self.offset = target.offset
        self.depth = depth
        live = _LIVE[id(self.code)][self.index]
        self.names = sorted(live & bound)
        self.cells = cells
        self.arguments = [f"{STACK}{i}" for i in range(depth)] + [CELL + c for c in cells] + self.names
        self.key = (id(self.code), self.index, tuple(self.arguments))
        self.body = body


_CODES: dict[tuple, CodeType] = {}


def resume_code(point: ResumePoint) -> CodeType:
    found = _CODES.get(point.key)
    if found is None:
        found = _CODES[point.key] = _build(point)
    return found


def _build(point: ResumePoint) -> CodeType:
    code = point.code
    body = _clone(point.body)
    target = body[point.index]
    prologue = []
    for name in point.cells:
        prologue += [instr("LOAD_FAST", CELL + name), instr("STORE_CELL", name)]
    prologue += [instr("LOAD_FAST", f"{STACK}{i}") for i in range(point.depth)]
    prologue.append(instr("JUMP", None, target))
    for inst in prologue:
        inst.positions = target.positions
        inst.run = RULES.get(inst.op, _unsupported)
    instructions = remove_unreachable(prologue + body)
    for index, inst in enumerate(instructions):
        inst.index = index
    name = f"<resume in {code.co_name}>"
    made = encode(
        instructions, code, name=name, qualname=name, argnames=point.arguments, cellvars=tuple(point.cells), freevars=(),
        no_make_cell=set(point.cells), flags=code.co_flags & ~(4 | 8 | 16),
    )
    _DECODED[id(made)] = (made, instructions)
    _ORIGIN[id(made)] = code
    _KEEP.append(made)
    return made


def live_at(code: CodeType, inst: Instruction) -> frozenset[str]:
    """Live locals of the original function before an instruction."""
    origin = origin_of(code)
    body_of(origin)
    return _LIVE[id(origin)][inst.place]


def arguments_loader(point: ResumePoint, cg: Any, load_cell: Any) -> None:
    for name in point.cells:
        load_cell(name)
    for name in point.names:
        cg.op("LOAD_FAST", name)
