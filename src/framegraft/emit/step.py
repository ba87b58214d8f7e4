"""The instruction that broke a graph in the middle of a function that was traced into, as a function of its own.

Its operands and the frame's variables are parameters; it returns what the instruction leaves on the stack. The code has the name, the
file and the line of the program's function, so that what it calls, and a traceback, sees the frame that is there in eager mode.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable
from types import CodeType

from .. import _native
from ..bytecode.flow import stack_use
from ..bytecode.ir import Instruction
from ..interp.frame import origin_of
from ..model.source import instr
from .resume import CELL, STACK, body_of, encode_rest, in_order, live_at, moved, restore_cells

# What takes its operands from the top of the stack and leaves one value or none; BEFORE_WITH leaves two.
_OPS = frozenset(("CALL", "CALL_EX", "APPLY", "LOAD_ATTR", "STORE_ATTR", "DELETE_ATTR", "STORE_SUBSCR", "DELETE_SUBSCR", "FORMAT_VALUE",
                  "POP_JUMP_IF", "IMPORT_NAME", "BEFORE_WITH"))

_CODES: weakref.WeakValueDictionary[tuple, CodeType] = weakref.WeakValueDictionary()  # while an entry uses them


def is_step(code: CodeType, inst: Instruction) -> bool:
    """Whether the instruction can run on its own. Where a handler of its frame covers it, the frame goes on with it instead."""
    if inst.op not in _OPS or inst.op == "POP_JUMP_IF" and inst.arg not in ("true", "false"):
        return False
    return body_of(origin_of(code))[inst.place].op == inst.op  # ``super()`` is more than one there


def _kept(key: tuple, build: Callable[[], CodeType]) -> CodeType:
    """The code under ``key`` while somebody uses it."""
    found = _CODES.get(key)
    if found is None:
        found = _CODES[key] = build()
        _native.set_skip(found, True)
    return found


class Caller:
    """The code of a frame between: it calls its first argument with the others, at the line where the frame had called the next one.

    Who walks the stack from there sees the frame, with its name, file, line and globals.
    """

    prefix = "__through_"

    def __init__(self, code: CodeType, inst: Instruction, count: int) -> None:
        """``count``: of the arguments."""
        self.code = origin_of(code)
        self.inst = inst
        self.offset = inst.offset
        self.count = count

    def build(self) -> CodeType:
        return _kept((id(self.code), self.inst.positions, self.count), self._build)

    def _build(self) -> CodeType:
        names = [f"{STACK}{i}" for i in range(self.count)]
        run = [*(inst for name in names for inst in moved(name)), instr("CALL", (self.count - 1, ())), instr("RETURN_VALUE")]
        for inst in run:
            inst.positions = self.inst.positions
        made = encode_rest(self.code, [], run, self.inst, f"<call in {self.code.co_name}>", names, [])[0]
        return made.replace(co_consts=(*made.co_consts, self.code))


class Step:
    """The code for one instruction, with the variables of its frame that are ``bound``."""

    prefix = "__step_at_"

    def __init__(self, code: CodeType, inst: Instruction, bound: set[str], cells: list[str]) -> None:
        self.code = origin_of(code)
        self.inst = inst
        self.offset = inst.offset
        self.cells = cells
        self.decides = inst.op == "POP_JUMP_IF"
        self.takes, left = stack_use(inst, False)
        self.gives = 1 if self.decides else left
        self.names = [CELL + name for name in cells] + in_order(live_at(code, inst) & bound, self.code)

    def build(self) -> CodeType:
        return _kept((id(self.code), self.inst.place, tuple(self.names)), self._build)

    def _build(self) -> CodeType:
        operands = [f"{STACK}{i}" for i in range(self.takes)]
        prologue = restore_cells(self.cells)
        for name in operands:
            prologue += moved(name)
        # What decides a branch gives its truth.
        run = [instr("APPLY", (operator.not_, 1)) for _ in range(2)] if self.decides else [instr(self.inst.op, self.inst.arg)]
        for inst in run:
            inst.positions = self.inst.positions
        end = [instr("RETURN_VALUE")]
        if not self.gives:
            end.insert(0, instr("LOAD_CONST", None))
        elif self.gives > 1:  # in the order in which UNPACK_SEQUENCE puts them back
            end = [instr("SWAP", 2), instr("BUILD_TUPLE", 2), *end]
        for inst in end:
            inst.positions = self.inst.positions
        names = [*operands, *self.names]
        made = encode_rest(self.code, prologue, [*run, *end], self.inst, f"<step in {self.code.co_name}>", names, self.cells)[0]
        return made.replace(co_consts=(*made.co_consts, self.code))  # by whose address it is found
