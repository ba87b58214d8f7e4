"""A broken trace: the interrupted instruction runs for real, then the rests of the frames."""

from __future__ import annotations

from typing import Any

from ..bytecode.flow import stack_effect
from ..bytecode.ir import ExceptionHandler, Instruction
from ..errors import GraphBreak
from ..interp.frame import CALLS_REST, origin_of
from ..interp.words import unbound_error
from ..model.source import instr
from ..model.value import MISSING, NONE, VariableTracker
from ..semantics import core
from . import effects as fx
from . import lifetimes
from .rests import Part, Rests, following
from .resume import CELL, body_of, in_order, live_at
from .tracebacks import in_the_end

TERMINATORS = frozenset(("RETURN_VALUE", "RAISE_VARARGS", "RERAISE"))
CANNOT_RUN = frozenset(("YIELD_VALUE", "SEND", "RETURN_GENERATOR", "JUMP"))


def raise_unbound(name: str, free: bool) -> None:
    """Called by transformed code, which keeps cells in locals: what LOAD_DEREF does with an empty cell."""
    raise unbound_error(name, free)


class Interrupted(Rests):
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
        if inst.op in CANNOT_RUN or any(f.inst.place < 0 and f.inst.place != CALLS_REST for f in self.frames):
            raise GraphBreak("skipped_frame", f"a break at {inst.op}")
        if inst.place == CALLS_REST:
            stack[-1 - inst.arg[0]] = NONE  # the rest, which is found by its name
        self.breaks = True
        effects = fx.collect(self.state)
        bound |= self._held(parts, stack, bound, effects)
        self._state(stack, bound, effects)
        self._delete(name for name in lifetimes.slots(self.cg.out, self.state.parameters) if name not in bound)
        if len(parts) == 1 and inst.place != CALLS_REST:
            self._run_instruction(parts[0], inst)
        else:
            self.run_frames(parts)
        self._rescue()

    def _wanted(self, frame: Any) -> set[str]:
        """Locals that the rest of the frame may look at."""
        inst = frame.inst
        wanted: set[str] = set()
        runs_itself = frame is self.frames[-1] and frame is not self.root and inst.place != CALLS_REST
        for target in [inst, *_successors(frame, inst)] if runs_itself else _successors(frame, inst):
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
            self.with_error(in_the_end)
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
            self.resume(part, after, depth + stack_effect(inst, False))
            cg.op("RETURN_VALUE")
            if inst.target is not None:
                mark = len(cg.out)
                self.resume(part, inst.target, depth + stack_effect(inst, True))
                cg.op("RETURN_VALUE")
                copy.target = cg.out[mark]
        if inst.handler is not None:
            mark = len(cg.out)
            self.handle(part, inst.handler)
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


def _successors(frame: Any, inst: Instruction) -> list[Instruction]:
    if inst.op in TERMINATORS:
        return []
    targets = [following(frame, inst)]
    if inst.target is not None:
        targets.append(inst.target)
    return targets
