"""Behind a break: the rests of the frames that it has interrupted, as resume functions, and the ways on which an error takes to them.

Where the frames are those of a function and of what the trace had entered from there, the instruction that broke the graph runs in
a function of its own, and the rests of all frames are one function to the next capture: each calls that of its callee.
"""

from __future__ import annotations

from typing import Any

from ..bytecode.flow import stack_effect
from ..bytecode.ir import ExceptionHandler, Instruction
from ..interp.frame import CALLS_REST
from ..model.source import instr
from ..model.value import BuiltinMethodVariable, TensorVariable, VariableTracker, looked_at
from .output import Segment
from .resume import CELL, REST, Callee, ResumePoint, in_order, resume_code
from .step import Caller, Step, is_step
from .tracebacks import Caught


class Part:
    """One of the frames that a break interrupts, outermost first, and where its values are in the transformed frame.

    The stacks of all parts lie on top of each other there, as they did in the interpreter; the locals of inner frames have
    a prefix.
    """

    def __init__(self, frame: Any, level: int, base: int) -> None:
        self.frame = frame
        self.level = level
        self.base = base
        self.prefix = f"___{level}_" if level else ""  # where the root is the rest of frames, its parameters have these names
        self.bound: set[str] = set()
        self.ending: list[str] = []  # of these, that of which the program is told when it dies
        self.kept: list[str] = []  # of these, what no resume function has been given

    def bind(self, found: dict[str, VariableTracker]) -> dict[str, VariableTracker]:
        """Adds locals with their values; gives these by their names in the transformed frame."""
        self.bound |= found.keys()
        return {self.prefix + n: v for n, v in found.items()}


class Rests(Segment):
    """What comes behind the instruction that broke the graph."""

    def run_frames(self, parts: list[Part]) -> None:
        """The instruction that broke the graph runs, then the rests of all frames, which are one function to the next capture.

        It runs in code of its own function: with its globals, and its line in tracebacks. Where that is no code of its own it is the
        rest of the innermost frame; its callers' rests are handed the value.
        """
        inner, inst = parts[-1], parts[-1].frame.inst
        waiting = list(parts)
        if inst.place == CALLS_REST:
            failing = self._call_rest(inner, inst)
            target, depth = following(inner.frame, inst), len(inner.frame.stack) - inst.arg[0] - self._drop(inner)
        elif is_step(inner.frame.code, inst):
            failing = self._step(inner, inst)
            target, depth = following(inner.frame, inst), len(inner.frame.stack) + stack_effect(inst, False)
            if inst.op == "POP_JUMP_IF":  # of which the rest begins with the decision
                target, depth = inst, len(inner.frame.stack)
        else:
            failing = self.resume(inner, inst, len(inner.frame.stack), again=True)
            self._leave(inner)
            waiting.pop()
            self._drop(waiting[-1])
            target, depth = self._behind_call(waiting[-1])
        self._rest(waiting, target, depth)
        self._failed(waiting, failing, parts)

    def _behind_call(self, part: Part) -> tuple[Instruction, int]:
        return following(part.frame, part.frame.inst), len(part.frame.stack) + (not drops(part.frame))

    def _drop(self, part: Part) -> bool:
        """Drop what the part's frame has waited for, where it does."""
        if drops(part.frame):
            self.cg.op("POP_TOP")
        return drops(part.frame)

    def _call_rest(self, part: Part, inst: Instruction) -> Instruction:
        """The frame waits for the rest of a callee, which is a function of its own to the next capture, too."""
        cg, count = self.cg, inst.arg[0]
        rest: Any = part.frame.stack[-1 - count]
        passed = [f"__pushed_{i}" for i in range(count)]
        self._take(passed)
        cg.op("POP_TOP")
        name = self.make_resume(rest.code, inst.offset, rest.globals_of.real, part.level + 1)
        self.resumed[name] = part.level + 1
        between = self._load_callers(part.level + 1, count)
        cg.op("LOAD_GLOBAL", name)
        for given in passed:
            cg.op("LOAD_FAST", given)
        self._delete(passed)
        cg.call(between + count)
        return cg.out[-1]

    def _load_callers(self, level: int, count: int) -> int:
        """In front of a function that runs as the frame ``level`` calls below this one: what calls it with its ``count`` arguments, by way
        of frames that stand for those between. Gives the number of these."""
        frames = self.frames[1:level]
        names = [self.make_step(Caller(frame.code, frame.inst, len(frames) - i + count), frame.scope.real)
                 for i, frame in enumerate(frames)]
        self.between.update(names)
        for name in names:
            self.cg.op("LOAD_GLOBAL", name)
        return len(names)

    def _take(self, names: list[str]) -> None:
        """The top of the stack into variables, of which the last gets what lies uppermost."""
        for name in reversed(names):
            self.cg.op("STORE_FAST", name)

    def _does_more(self, part: Part) -> bool:
        """Whether the frame does more with its callee than to return what that gives."""
        return part.frame.inst.handler is not None or drops(part.frame) or self._behind_call(part)[0].op != "RETURN_VALUE"

    def _step(self, part: Part, inst: Instruction) -> Instruction:
        """The instruction runs in a function of its own, which sees the frame's variables. Its operands give way to what it leaves."""
        cg, frame = self.cg, part.frame
        step = Step(frame.code, inst, part.bound, list(frame.cells))
        operands = [f"__pushed_{i}" for i in range(step.takes)]
        self._take(operands)
        name = self.make_step(step, frame.scope.real)
        self.resumed[name] = part.level
        between = 0 if _sees_no_frames(frame, inst) else self._load_callers(part.level, step.takes + len(step.names))
        cg.op("LOAD_GLOBAL", name)
        for operand in operands:
            cg.op("LOAD_FAST", operand)
        self._delete(operands)
        for local in step.names:
            cg.op("LOAD_FAST", part.prefix + local)
        cg.call(between + step.takes + len(step.names))
        call = cg.out[-1]
        if not step.gives:
            cg.op("POP_TOP")
        elif step.gives > 1:
            cg.op("UNPACK_SEQUENCE", step.gives)
        return call

    def _rest(self, parts: list[Part], target: Instruction, depth: int) -> None:
        """Calls what is left of these frames, of which the innermost goes on at ``target`` with a stack of ``depth``, and returns."""
        cg = self.cg
        stacks = [[f"__pushed_{part.level}_{i}" for i in range(len(part.frame.stack))] for part in parts[:-1]]
        stacks.append([f"__pushed_{parts[-1].level}_{i}" for i in range(depth)])
        self._take([name for stack in stacks for name in stack])
        while target.op == "RETURN_VALUE":  # such a frame needs no more than its value
            value = stacks.pop()[-1]
            parts, left = parts[:-1], parts[-1]
            self._delete(left.prefix + name for name in in_order(left.bound, left.frame.code) if left.prefix)
            if not parts:
                cg.op("LOAD_FAST", value)
                cg.op("RETURN_VALUE")
                return
            if drops(parts[-1].frame):
                self._delete([value])
            else:
                stacks[-1].append(value)
            target, _ = self._behind_call(parts[-1])
        first = next(i for i, part in enumerate(parts) if part is parts[-1] or self._does_more(part))
        self._call_chain(parts[first:], stacks[first:], target)

    def _call_chain(self, parts: list[Part], stacks: list[list[str]], target: Instruction) -> None:
        points: list[ResumePoint] = []  # innermost first
        callee = None
        for part, stack in reversed(list(zip(parts, stacks, strict=True))):
            frame = part.frame
            if callee is not None:
                target, _ = self._behind_call(part)
            ending = [name for name in part.ending if name in part.bound]
            points.append(ResumePoint(
                frame.code, target, len(stack) + (callee is not None), part.bound, ending, list(frame.cells), frame.inst.handler,
                is_held=self.is_held(frame), callee=callee, keeps=part.level > 0))
            if part is not parts[0]:
                waits = self.frames[part.level - 1]
                installed = self.make_rest(resume_code(points[-1]), points[-1].offset, frame.scope.real, waits.scope.real)
                callee = Callee(installed, points[-1].arguments, waits.inst, drops(waits))
        self._load_resume(parts[0], points[-1])
        passed: list[str] = []
        for part, stack, point in zip(parts, stacks, reversed(points), strict=True):
            passed += self._load_passed(part, point, stack)
        self._call_resume(parts[0], points[-1], passed)
        self.cg.op("RETURN_VALUE")

    def _failed(self, waiting: list[Part], call: Instruction | None, parts: list[Part]) -> None:
        """Where the call that ran the instruction has failed: the handlers of the frames that wait for it, and what is behind these."""
        if call is None:
            return
        cg, calls, value = self.cg, [call], False
        left = [part.prefix + name for part in parts[len(waiting) :] for name in part.bound]
        leaving: list[tuple[Instruction, int]] = []
        for part in reversed(waiting):
            handler = part.frame.inst.handler
            mine: list[Instruction | None] = []
            if value:
                self._drop(part)
                mine.append(self.resume(part, *self._behind_call(part)))
                self._leave(part)
            if handler is not None:
                leave = None
                if value:
                    leave = instr("JUMP")
                    cg.emit(leave)
                mark = len(cg.out)
                for name in left:  # some are gone already, depending on which call has failed
                    cg.op("LOAD_CONST", None)
                    cg.op("STORE_FAST", name)
                self._mend(part)
                mine.append(self.handle(part, handler))
                self._leave(part)
                for failing in calls:
                    failing.handler = ExceptionHandler(cg.out[mark], part.base + handler.depth, handler.lasti)
                if leave is not None:
                    leaving.append((leave, len(cg.out)))
                calls = []
                value = True
            calls += [made for made in mine if made is not None]
            left += [part.prefix + name for name in part.bound] if part.level else []
        if value:
            cg.op("RETURN_VALUE")
        for leave, to in leaving:
            leave.target = cg.out[to]

    def _mend(self, part: Part) -> None:
        """A handler of the part's frame sees the traceback that the frame would see."""
        self.caught.append(Caught(part.level))
        self.with_error(self.caught[-1])

    def with_error(self, function: Any) -> None:
        """What ``function`` makes of the error that is on the top of the stack takes its place."""
        cg = self.cg
        cg.op("STORE_FAST", "__failure")
        cg.load_object(function)
        cg.op("LOAD_FAST", "__failure")
        cg.op("DELETE_FAST", "__failure")
        cg.call(1)

    def _leave(self, part: Part) -> None:
        """The rest of an inner frame has returned: deletes what it kept until then."""
        self._delete([part.prefix + name for name in part.kept] if part.prefix else [])

    def handle(self, part: Part, handler: ExceptionHandler) -> Instruction | None:
        # lasti counts in this code: in the resume function's it would name no line
        return self.resume(part, handler.target, handler.depth + handler.lasti + 1, catching=handler)

    def resume(self, part: Part, target: Instruction, depth: int, again: bool = False,
                catching: ExceptionHandler | None = None) -> Instruction | None:
        """Replace the part's ``depth`` stack values by what the rest of its frame returns. Gives the call, where there is one.

        ``again``: the rest starts with the instruction that broke the graph; ``catching``: with this handler of it.
        """
        cg, frame = self.cg, part.frame
        stack_names = [f"__pushed_{i}" for i in range(depth)]
        part.kept = in_order(part.bound, frame.code)
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
        self._take(stack_names)
        self._load_resume(part, point)
        passed = self._load_passed(part, point, stack_names, lasti=catching.depth if catching is not None and catching.lasti else None)
        part.kept = in_order(part.bound.difference(point.names, (CELL + n for n in cells)), frame.code)
        return self._call_resume(part, point, passed)

    def _load_resume(self, part: Part, point: ResumePoint) -> None:
        name = self.make_resume(resume_code(point), point.offset, part.frame.scope.real, part.level)
        self.resumed[name] = part.level
        self._load_callers(part.level, len(point.arguments))
        self.cg.op("LOAD_GLOBAL", name)

    def _load_passed(self, part: Part, point: ResumePoint, stack: list[str], lasti: int | None = None) -> list[str]:
        """Loads what the rest of the part's frame takes. Gives the variables that this is in. ``lasti``: the place of that on the stack."""
        cg = self.cg
        passed = [*stack, *(part.prefix + CELL + n for n in point.cells)]
        for index, name in enumerate(passed):
            cg.op("LOAD_CONST", 0) if index == lasti else cg.op("LOAD_FAST", name)
        for name in point.names:
            if name in part.bound:
                passed.append(part.prefix + name)
                cg.op("LOAD_FAST", passed[-1])
            else:
                cg.op("LOAD_CONST", None)
        return passed

    def _call_resume(self, part: Part, point: ResumePoint, passed: list[str]) -> Instruction:
        cg = self.cg
        self._delete(passed)
        if point.is_held:
            for op, arg in (("BUILD_LIST", 0), ("STORE_FAST", REST), ("LOAD_FAST", REST)):
                cg.op(op, arg)
        cg.call(max(part.level - 1, 0) + len(point.arguments))
        if part.level == 0:
            self.unseen.append(cg.out[-1])
        return cg.out[-1]


def _sees_no_frames(frame: Any, inst: Instruction) -> bool:
    """Whether the instruction calls a method of a tensor, which runs no code of Python."""
    fn = looked_at(frame.stack[-1 - inst.arg[0] - len(inst.arg[1])]) if inst.op == "CALL" else None
    return isinstance(fn, BuiltinMethodVariable) and isinstance(looked_at(fn.obj), TensorVariable)


def following(frame: Any, inst: Instruction) -> Instruction:
    """What the frame goes on with behind the instruction."""
    if inst.place != CALLS_REST:
        return frame.instructions[inst.index + 1]
    return frame.instructions[inst.index + 1 + drops(frame)].target


def drops(frame: Any) -> bool:
    """Whether what the function returns that the frame waits for is not what its instruction leaves."""
    return frame.instructions[frame.inst.index + 1].op == "POP_TOP" if frame.inst.place == CALLS_REST else frame.drops
