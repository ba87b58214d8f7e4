"""A broken trace: the interrupted instruction runs for real, then the rests of the frames, the innermost first."""

from __future__ import annotations

from typing import Any

from ..bytecode.flow import stack_effect
from ..bytecode.ir import ExceptionHandler, Instruction
from ..errors import GraphBreak
from ..interp.frame import origin_of
from ..interp.words import unbound_error
from ..model.source import instr
from ..model.value import MISSING, VariableTracker
from ..semantics import core
from . import effects as fx
from . import lifetimes
from .output import Segment
from .resume import CELL, REST, ResumePoint, body_of, in_order, live_at, resume_code
from .tracebacks import Caught, in_the_end

TERMINATORS = frozenset(("RETURN_VALUE", "RAISE_VARARGS", "RERAISE"))
CANNOT_RUN = frozenset(("YIELD_VALUE", "SEND", "RETURN_GENERATOR", "JUMP"))


def raise_unbound(name: str, free: bool) -> None:
    """Called by transformed code, which keeps cells in locals: what LOAD_DEREF does with an empty cell."""
    raise unbound_error(name, free)


class Part:
    """One of the frames that a break interrupts, outermost first, and where its values are in the transformed frame.

    The stacks of all parts lie on top of each other there, as they did in the interpreter; the locals of inner frames have
    a prefix.
    """

    def __init__(self, frame: Any, level: int, base: int) -> None:
        self.frame = frame
        self.level = level
        self.base = base
        self.prefix = f"__frame{level}_" if level else ""
        self.bound: set[str] = set()
        self.ending: list[str] = []  # of these, that of which the program is told when it dies
        self.kept: list[str] = []  # of these, what no resume function has been given

    def bind(self, found: dict[str, VariableTracker]) -> dict[str, VariableTracker]:
        """Adds locals with their values; gives these by their names in the transformed frame."""
        self.bound |= found.keys()
        return {self.prefix + n: v for n, v in found.items()}


class Interrupted(Segment):
    """Emission of a trace that ends in front of an instruction which no graph can hold."""

    def finish_break(self) -> None:
        parts: list[Part] = []
        stack: list[VariableTracker] = []
        bound: dict[str, VariableTracker] = {}
        for level, frame in enumerate(self.frames):
            body_of(origin_of(frame.code))
            part = Part(frame, level, len(stack))
            parts.append(part)
            wanted = self._wanted(frame)
            bound |= part.bind({n: v for n, v in frame.locals.items() if n in wanted})
            bound |= part.bind({CELL + n: v for n, v in frame.cells.items()})
            stack += frame.stack
        inst = self.frames[-1].inst
        if inst.op in CANNOT_RUN or any(f.inst.place < 0 for f in self.frames):
            raise GraphBreak("skipped_frame", f"a break at {inst.op}")
        self.breaks = True
        effects = fx.collect(self.state)
        bound |= self._held(parts, stack, bound, effects)
        self._state(stack, bound, effects)
        self._delete(set(lifetimes.slots(self.cg.out, self.state.parameters)) - bound.keys())
        if len(parts) == 1:
            self._run_instruction(parts[0], inst)
        else:
            self._run_frames(parts)
        self._rescue()

    def _wanted(self, frame: Any) -> set[str]:
        """Locals that the rest of the frame may look at."""
        inst = frame.inst
        wanted: set[str] = set()
        for target in [inst, *_successors(frame, inst)] if frame is not self.root else _successors(frame, inst):
            wanted |= live_at(frame.code, target)
        if inst.handler is not None:
            wanted |= live_at(frame.code, inst.handler.target)
        if inst.op in ("LOAD_FAST", "DELETE_FAST"):
            wanted.add(inst.arg)
        return wanted

    def _held(self, parts: list[Part], stack: list, bound: dict, effects: list[fx.Effect]) -> dict[str, VariableTracker]:
        """Locals that are not read again, and keep something alive."""
        seen: set[int] = set()

        def reached() -> set[int]:
            if not seen:
                seen.update(lifetimes.reachable([*stack, *bound.values(), *(v for effect in effects for v in effect.values)]))
            return seen

        found: dict[str, VariableTracker] = {}
        for part in parts:
            found |= part.bind(lifetimes.held(part.frame, part.bound, reached))
            variables = part.frame.locals
            kept = in_order(part.bound & variables.keys(), part.frame.code)
            part.ending = [n for n in kept if lifetimes.tells_its_end(variables[n])]
        return found

    def _run_instruction(self, part: Part, inst: Instruction) -> None:
        """The root frame runs the instruction that broke the graph itself."""
        cg, depth, bound = self.cg, len(part.frame.stack), part.bound
        first = len(cg.out)
        copy = self._executable(inst)
        copy.positions = inst.positions
        if inst.op == "RERAISE" and inst.handler is None and bound:
            self._with_error(in_the_end)
        cg.emit(copy)
        covered = cg.out[first:]
        if inst.op == "STORE_FAST":
            bound.add(inst.arg)
            if inst.arg not in part.ending and lifetimes.tells_its_end(part.frame.stack[-1]):
                part.ending.append(inst.arg)
        elif inst.op == "DELETE_FAST":
            bound.discard(inst.arg)
        if inst.op not in TERMINATORS:
            after = _successors(self.root, inst)[0]
            self._resume(part, after, depth + stack_effect(inst, False))
            cg.op("RETURN_VALUE")
            if inst.target is not None:
                mark = len(cg.out)
                self._resume(part, inst.target, depth + stack_effect(inst, True))
                cg.op("RETURN_VALUE")
                copy.target = cg.out[mark]
        if inst.handler is not None:
            mark = len(cg.out)
            self._handle(part, inst.handler)
            cg.op("RETURN_VALUE")
            for part_of_it in covered:
                part_of_it.handler = ExceptionHandler(cg.out[mark], inst.handler.depth, inst.handler.lasti)

    def _executable(self, inst: Instruction) -> Instruction:
        """The instruction as the transformed frame can run it: cells are plain locals there."""
        cg = self.cg
        copy = instr(inst.op, inst.arg)
        if inst.op in ("LOAD_DEREF", "STORE_DEREF", "DELETE_DEREF", "LOAD_CLOSURE") and inst.arg not in self.root.code.co_freevars:
            # With a guard: neither operation on the attribute does what the instruction does to an empty cell.
            if inst.op in ("LOAD_DEREF", "DELETE_DEREF") and core.cell_contents(self.root, self.root.cells[inst.arg]) is MISSING:
                cg.load_object(raise_unbound)
                cg.op("LOAD_CONST", inst.arg)
                cg.op("LOAD_CONST", inst.arg in origin_of(self.root.code).co_freevars)
                if inst.op == "DELETE_DEREF":
                    cg.call(2)
                    return instr("POP_TOP")
                return instr("CALL", (2, ()))
            cg.op("LOAD_FAST", CELL + inst.arg)
            attr = "cell_contents"
            if inst.op == "LOAD_CLOSURE":
                cg.out.pop()
                return instr("LOAD_FAST", CELL + inst.arg)
            return instr({"L": "LOAD_ATTR", "S": "STORE_ATTR", "D": "DELETE_ATTR"}[inst.op[0]], attr)
        return copy

    def _run_frames(self, parts: list[Part]) -> None:
        """The innermost frame goes on at the instruction that broke the graph; each caller behind its call, with the value.

        So the instruction runs in code of its own function: with its globals, and its line in tracebacks.
        """
        cg, inner = self.cg, parts[-1]
        calls = [self._resume(inner, inner.frame.inst, len(inner.frame.stack), again=True)]
        left = self._leave(inner)
        leaving: list[tuple[Instruction, int]] = []
        for part in reversed(parts[:-1]):
            inst = part.frame.inst
            after, handler = part.frame.instructions[inst.index + 1], inst.handler
            mine = [self._resume(part, after, len(part.frame.stack) + 1)]
            kept = self._leave(part)
            if handler is None:
                calls += mine
                left += kept
                continue
            leave = instr("JUMP")
            cg.emit(leave)
            mark = len(cg.out)
            for name in left:  # some are gone already, depending on which call has failed
                cg.op("LOAD_CONST", None)
                cg.op("STORE_FAST", name)
            self._mend(part)
            mine.append(self._handle(part, handler))
            for call in calls:
                if call is not None:
                    call.handler = ExceptionHandler(cg.out[mark], part.base + handler.depth, handler.lasti)
            left = kept + self._leave(part)
            leaving.append((leave, len(cg.out)))
            calls = mine
        cg.op("RETURN_VALUE")
        for leave, to in leaving:
            leave.target = cg.out[to]

    def _mend(self, part: Part) -> None:
        """A handler of the part's frame sees the traceback that the frame would see."""
        self.caught.append(Caught(part.level))
        self._with_error(self.caught[-1])

    def _with_error(self, function: Any) -> None:
        """What ``function`` makes of the error that is on the top of the stack takes its place."""
        cg = self.cg
        cg.op("STORE_FAST", "__failure")
        cg.load_object(function)
        cg.op("LOAD_FAST", "__failure")
        cg.op("DELETE_FAST", "__failure")
        cg.call(1)

    def _leave(self, part: Part) -> list[str]:
        """The rest of an inner frame has returned: deletes what it kept until then, and gives the names."""
        names = [part.prefix + name for name in part.kept] if part.prefix else []
        self._delete(names)
        return names

    def _handle(self, part: Part, handler: ExceptionHandler) -> Instruction | None:
        # lasti counts in this code: in the resume function's it would name no line
        return self._resume(part, handler.target, handler.depth + handler.lasti + 1, catching=handler)

    def _resume(self, part: Part, target: Instruction, depth: int, again: bool = False,
                catching: ExceptionHandler | None = None) -> Instruction | None:
        """Replace the part's ``depth`` stack values by what the rest of its frame returns. Gives the call, where there is one.

        ``again``: the rest starts with the instruction that broke the graph; ``catching``: with this handler of it.
        """
        cg, frame = self.cg, part.frame
        stack_names = [f"__pushed_{i}" for i in range(depth)]
        part.kept = sorted(part.bound)
        if target.op == "RETURN_VALUE":
            if depth > 1:
                cg.op("STORE_FAST", stack_names[0])
                for _ in range(depth - 1):
                    cg.op("POP_TOP")
                cg.op("LOAD_FAST", stack_names[0])
            return None
        cells = [n for n in frame.cells if CELL + n in part.bound]
        ending = [name for name in part.ending if name in part.bound]  # what has just been deleted is not
        is_held = self.is_held(frame) or catching is not None and part.level == 0
        point = ResumePoint(frame.code, target, depth, part.bound, ending, cells, frame.inst.handler, again, is_held)
        lasti = catching.depth if catching is not None and catching.lasti else None
        for name in reversed(stack_names):
            cg.op("STORE_FAST", name)
        resume = self.make_resume(resume_code(point), point.offset, frame.scope.real, part.level)
        self.resumed[resume] = part.level
        cg.op("LOAD_GLOBAL", resume)
        passed = [*stack_names, *(part.prefix + CELL + n for n in cells)]
        for index, name in enumerate(passed):
            cg.op("LOAD_CONST", 0) if index == lasti else cg.op("LOAD_FAST", name)
        for name in point.names:
            if name in part.bound:
                passed.append(part.prefix + name)
                cg.op("LOAD_FAST", passed[-1])
            else:
                cg.op("LOAD_CONST", None)
        part.kept = sorted(part.bound.difference(point.names, (CELL + n for n in cells)))
        self._delete(passed)
        if is_held:
            for op, arg in (("BUILD_LIST", 0), ("STORE_FAST", REST), ("LOAD_FAST", REST)):
                cg.op(op, arg)
        cg.call(len(point.arguments))
        if part.level == 0:
            self.unseen.append(cg.out[-1])
        return cg.out[-1]


def _successors(root: Any, inst: Instruction) -> list[Instruction]:
    if inst.op in TERMINATORS:
        return []
    targets = [root.instructions[inst.index + 1]]
    if inst.target is not None:
        targets.append(inst.target)
    return targets
