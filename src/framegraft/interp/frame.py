"""InstructionTranslator: one frame of the traced program, executed on trackers instead of objects.

Each canonical instruction has one rule in ``RULES``; the loop is a table look-up. A rule may raise UserRaise (the traced
program raises: the frame's handlers are searched as CPython's exception table would be) or GraphBreak.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from types import CodeType
from typing import Any

from ..bytecode.decode import decode
from ..bytecode.ir import Instruction
from ..errors import GraphBreak, Place, UserRaise
from ..model.value import (
    MISSING,
    BuiltinMethodVariable,
    CellVariable,
    ConstantVariable,
    ExceptionVariable,
    LazyVariable,
    MethodVariable,
    TensorVariable,
    VariableTracker,
    constant,
    looked_at,
)
from .letting_go import let_go, used_up
from .state import GlobalScope, TraceState, realize, set_context

RULES: dict[str, Any] = {}
_DECODED: dict[int, tuple[Any, list[Instruction]]] = {}  # id(code) -> the code, or a weak reference to it; its instructions

ORIGIN: dict[int, CodeType] = {}  # id(code of a resume function) -> the function's own code

CO_VARARGS, CO_VARKEYWORDS, CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR = 4, 8, 32, 128, 512


def origin_of(code: CodeType) -> CodeType:
    """The code that was written: a resume function's is the function's own."""
    return ORIGIN.get(id(code), code)


def rule(*ops: str) -> Any:
    def register(fn: Any) -> Any:
        for op in ops:
            RULES[op] = fn
        return fn

    return register


def instructions_of(code: CodeType) -> list[Instruction]:
    """Decoded instructions of ``code``, decoded once per code object and forgotten with it."""
    found = _DECODED.get(id(code))
    if found is None:
        key, forget = id(code), _DECODED.pop
        found = _DECODED[key] = (weakref.ref(code, lambda _: forget(key, None)), decode(code))
        for inst in found[1]:
            inst.run = RULES.get(inst.op, _unsupported)
    return found[1]


def _unsupported(tx: InstructionTranslator, inst: Instruction) -> None:
    raise GraphBreak("unsupported_opcode", inst.op)


class InstructionTranslator:
    """Symbolic execution of one code object."""

    def __init__(
        self, state: TraceState, code: CodeType, scope: GlobalScope, instructions: list[Instruction] | None = None
    ) -> None:
        self.state = state
        self.code = code
        self.scope = scope
        self.instructions = instructions if instructions is not None else instructions_of(code)
        self.ip = 0
        self.inst: Instruction = self.instructions[0]
        self.stack: list[VariableTracker] = []
        self.locals: dict[str, VariableTracker] = {}
        self.cells: dict[str, CellVariable] = {}
        self.fn: Any = None  # the real function being executed, where there is one
        self.first_arg: Any = None  # for zero-argument super()
        self.result: Any = None
        self.names: dict[str, VariableTracker] | None = None  # class bodies
        self.at = 0  # the trace's step that executes ``inst``
        self.begun = state.steps
        # Whether a break may interrupt the frame here: each caller only waits for the value of a call.
        self.breakable = False
        self.operands: list[VariableTracker] = []  # of the last CALL
        self.marks: tuple = ()  # what the trace had done when that began
        self.asked: Any = None  # the object of which the current instruction asks a method by itself (``__setitem__``)
        self.drops = False  # what the function returns that it waits for is not what the instruction leaves
        self.has_caught = False  # an exception, whose traceback may hold the frame as long as anybody holds the exception
        self.told: tuple[Instruction, str, str] | None = None  # state.stack_lines: for this instruction, below these lines

    def line(self) -> int:
        positions = self.inst.positions
        return (positions[0] if positions else None) or self.code.co_firstlineno

    def place(self) -> Place:
        """The current instruction's place in the user's source."""
        positions = self.inst.positions
        return Place((self.code.co_filename, self.line(), self.code.co_name), positions[1:] if positions else None)

    # -- the stack

    def push(self, tracker: VariableTracker) -> None:
        self.stack.append(tracker)

    def pop(self) -> VariableTracker:
        """Pop a value that the rule will look at."""
        tracker = self.stack.pop()
        return realize(tracker, self.state) if type(tracker) is LazyVariable else tracker

    def popn(self, n: int) -> list[VariableTracker]:
        """Pop ``n`` values that are only passed on."""
        if not n:
            return []
        items = self.stack[-n:]
        del self.stack[-n:]
        return items

    def takes_back(self) -> bool:
        """Whether the current instruction is a call that was refused before anything was done or observed, of what cannot change, with such
        arguments. They are on the stack again then."""
        if self.inst.op != "CALL" or self.inst.place < 0 or self.marks != self.state.marks():
            return False
        fn, *args = self.operands
        given = [fn.obj, *args] if isinstance(fn, (MethodVariable, BuiltinMethodVariable)) else args
        if not all(isinstance(looked_at(value), (TensorVariable, ConstantVariable)) for value in given):
            return False
        self.stack += self.operands
        return True

    # -- the loop

    def run(self) -> tuple[str, VariableTracker]:
        """Execute until the frame returns ("return", value) or yields ("yield", value)."""
        state = self.state
        state.frames.append(self)
        step = self.step_hook if state.lines is None and state.watch is None else self.noted_step
        if id(self.code) in ORIGIN:
            step = functools.partial(self.rest_step, step)
        try:
            while True:
                inst = self.instructions[self.ip]
                self.inst = inst
                self.ip += 1
                try:
                    step(inst)
                    try:
                        signal = inst.run(self, inst)
                    except UserRaise as raised:
                        if self.handled(raised):
                            continue
                        raise
                except GraphBreak as broken:
                    broken.user_stack = broken.user_stack or state.user_stack()
                    broken.frames = broken.frames or list(state.frames)
                    raise
                if signal is not None:
                    return signal
        finally:
            state.frames.pop()

    def step_hook(self, inst: Instruction) -> None:
        state = self.state
        self.at = steps = state.steps = state.steps + 1
        if steps > state.next_check:
            state.over_limit()
        if self.breakable and inst.op not in UNBREAKABLE and inst.place != PROLOGUE:
            planned = state.stop_at.get(steps)
            if planned is not None:
                raise planned
            if state.force_break_at == len(state.points):
                raise GraphBreak("forced_break", f"before {inst.op}")
            state.points.append(steps)

    def noted_step(self, inst: Instruction) -> None:
        self.step_hook(inst)
        if inst.positions and inst.positions[0] and self.state.lines is not None:
            self.state.lines.add((self.code, inst.positions[0]))
        if self.state.watch is not None:
            self.state.watch(self, inst)

    def rest_step(self, step: Callable[[Instruction], None], inst: Instruction) -> None:
        step(inst)
        if self.state.telling:
            used_up(self, inst)

    def handled(self, raised: UserRaise) -> bool:
        """Go on in the handler that covers the current instruction; False where none does (CPython: exception_unwind)."""
        inst = self.inst
        handler = inst.handler
        value = raised.value
        if isinstance(value, ExceptionVariable):
            if not value.raised:
                set_context(self.state, value)
                value.raised = True
            if inst.op not in ("RERAISE", "CLEANUP_THROW") and not (inst.op == "RAISE_VARARGS" and inst.arg == 0):
                value.trace.append((self.code, self.line()))
        if handler is None:
            return False
        self.has_caught = True
        for item in self.stack[handler.depth :]:
            let_go(self, item)
        del self.stack[handler.depth :]
        if handler.lasti:
            self.stack.append(constant(0))  # lasti: where RERAISE says the exception came from
        self.stack.append(value)
        self.jump(handler.target)
        return True

    def jump(self, target: Instruction | None) -> None:
        assert target is not None
        self.ip = target.index


PROLOGUE = -2  # the place of an instruction that belongs to no program: it restores the state of a frame that goes on
CALLS_REST = -3  # of one that calls the rest of a callee; where the frame waits for no value, a POP_TOP is behind it
UNBREAKABLE = frozenset(("RETURN_GENERATOR", "YIELD_VALUE", "SEND", "JUMP"))


def load_cell(tx: InstructionTranslator, name: str) -> CellVariable:
    return tx.cells[name]


def missing(value: Any) -> bool:
    return value is MISSING
