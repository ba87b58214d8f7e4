"""From a finished or broken trace to transformed bytecode: graph call, live values, side effects, the break, resume calls."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import torch

from .. import _native
from ..bytecode.flow import stack_effect
from ..bytecode.ir import ExceptionHandler, Instruction
from ..errors import GraphBreak, UserRaise
from ..interp.frame import origin_of
from ..interp.unwind import PreviousException
from ..interp.words import unbound_error
from ..model.source import Source, instr
from ..model.value import MISSING, NONE, ExceptionVariable, LazyVariable, SymbolicVariable, TensorVariable, VariableTracker
from ..semantics import core, iteration
from ..tensor import devices
from ..tensor.modes import Modes
from . import containers, iterators, lifetimes, objects, rescue  # noqa: F401 - the builders
from . import effects as fx
from .codegen import Codegen, Unreconstructible, children
from .resume import CELL, ResumePoint, body_of, in_order, live_at, resume_code
from .tracebacks import Caught, Function, Passages, in_the_end

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


class Segment:
    """Emission of one trace: of the frames from the root on that it ends in."""

    def __init__(self, state: Any, frames: list, names: Any, fresh: Any, make_resume: Any) -> None:
        self.state = state
        self.root = frames[0]
        self.frames = frames
        self.cg = Codegen(state, names)
        self.fresh = fresh  # (prefix) -> a name that is not in the root's globals
        self.make_resume = make_resume  # (code, offset, globals) -> name of the resume function in the root's globals
        self.graph_call: Instruction | None = None
        self.graph_name = ""
        self.module: Any = None
        self.loads = (0, 0)  # where in the code the graph's inputs are loaded
        self.forwards = False  # the code only returns the graph's only result
        self.breaks = False
        self.runs_anew = False  # where the graph fails, the frame may run in eager mode from its start
        self.rescue: tuple[Any, Any] | None = None  # what is done when the graph fails: (callable, plan)
        self.caught: list[Caught] = []  # handlers
        self.unseen: tuple[Instruction, Instruction] | None = None  # what runs while the rest of this very frame does, first to last
        self.resumed: list[tuple[str, int]] = []  # resume functions, in the order of their calls: (name, level of their frame)

    # -- a finished trace

    def finish_return(self, value: VariableTracker) -> None:
        quick = self._state([value], {}, fx.collect(self.state))
        self.forwards = quick and self.cg.out[-1].op == "UNPACK_SEQUENCE" and self.cg.out[-1].arg == 1
        if self.runs_anew and self.state.graph.mode.random:
            self.forwards = False  # it keeps the generator's state, too
        self.cg.op("RETURN_VALUE")
        self._rescue(Modes())  # a frame that returns has left its `with` blocks, as one that raises has

    def passages(self) -> Passages:
        """Where errors come from, for their tracebacks."""
        names, levels = zip(*self.resumed, strict=True) if self.resumed else ((), ())
        callers = [(Function.of(frame.code), frame.line()) for frame in self.frames[1:]]
        plan = self.rescue[1] if self.rescue is not None else None
        anew = plan.code if isinstance(plan, rescue.Plan) else None
        made = Passages(Function.of(self.root.code), self.graph_name, names, list(levels), callers, anew)
        for caught in self.caught:
            caught.passages = made
        return made

    def seal(self, compile_graph: Any) -> list[Instruction]:
        """The instructions. The graph is compiled only here, when everything else is known to work.

        compile_graph: called with the name in the globals, the graph module and the OutputGraph.
        """
        graph = self.state.graph
        if self.module is not None:
            compile_graph(self.graph_name, self.module, graph)
        return self.cg.out

    def inputs(self) -> list[Source]:
        """Where the graph's inputs come from."""
        return [tracker.source for tracker in self.state.graph.inputs]

    def with_inputs(self, met: Container[Source]) -> tuple[list[Instruction], list[Source], list[str]]:
        """The code for a caller that has the graph's inputs at hand: the guards have just met them.

        Returns the instructions, the inputs that they take, and the names of the parameters for these. No inputs: loading
        them costs no more than passing them.
        """
        start, end = self.loads
        sources = self.inputs()
        if end - start <= len(sources):
            return self.cg.out, [], []
        loads, passed = [], []
        for source in sources:
            if source.access == "ARG":
                loads.append(instr("LOAD_FAST", source.key[1]))
                continue
            if source not in met:  # a size, or a float that goes into the graph as a tensor
                loads.extend(source.emit(self.cg.load_pinned))
                continue
            loads.append(instr("LOAD_FAST", f"__graph_in_{len(passed)}"))
            passed.append(source)
        if self.breaks:
            loads += [instr("DELETE_FAST", f"__graph_in_{i}") for i in range(len(passed))]
        return self.cg.out[:start] + loads + self.cg.out[end:], passed, [f"__graph_in_{i}" for i in range(len(passed))]

    # -- a broken trace

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
        begin = self._run_instruction(parts[0], inst) if len(parts) == 1 else self._run_frames(parts)
        if any(level == 0 for _, level in self.resumed):
            self.unseen = (self.cg.out[begin], self.cg.out[-1])
        self._rescue(self.state.graph.modes)

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

    def _run_instruction(self, part: Part, inst: Instruction) -> int:
        """The root frame runs the instruction that broke the graph itself. Returns where in the code its rest begins."""
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
        begin = len(cg.out)
        if inst.op not in TERMINATORS:
            after = _successors(self.root, inst)[0]
            self._resume(part, after, depth + _effect(inst, False))
            cg.op("RETURN_VALUE")
            if inst.target is not None:
                mark = len(cg.out)
                self._resume(part, inst.target, depth + _effect(inst, True))
                cg.op("RETURN_VALUE")
                copy.target = cg.out[mark]
        if inst.handler is not None:
            mark = len(cg.out)
            self._handle(part, inst.handler)
            cg.op("RETURN_VALUE")
            for part_of_it in covered:
                part_of_it.handler = ExceptionHandler(cg.out[mark], inst.handler.depth, inst.handler.lasti)
        return begin

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

    def _run_frames(self, parts: list[Part]) -> int:
        """The innermost frame goes on at the instruction that broke the graph; each caller behind its call, with the value.

        Returns where in the code the rest of the root frame begins.

        So the instruction runs in code of its own function: with its globals, and its line in tracebacks.
        """
        cg, inner = self.cg, parts[-1]
        calls = [self._resume(inner, inner.frame.inst, len(inner.frame.stack), again=True)]
        left = self._leave(inner)
        leaving: list[tuple[Instruction, int]] = []
        begin = 0
        for part in reversed(parts[:-1]):
            inst, begin = part.frame.inst, len(cg.out)
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
        return begin

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
        return self._resume(part, handler.target, handler.depth + handler.lasti + 1, handler.depth if handler.lasti else None)

    def _resume(self, part: Part, target: Instruction, depth: int, lasti: int | None = None, again: bool = False) -> Instruction | None:
        """Replace the part's ``depth`` stack values by what the rest of its frame returns. Gives the call, where there is one.

        ``again``: the rest starts with the instruction that broke the graph.
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
        point = ResumePoint(frame.code, target, depth, part.bound, ending, cells, again)
        for name in reversed(stack_names):
            cg.op("STORE_FAST", name)
        resume = self.make_resume(resume_code(point), point.offset, frame.scope.real)
        self.resumed.append((resume, part.level))
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
        cg.call(len(point.arguments))
        return cg.out[-1]

    # -- the state at the end of the trace

    def _state(self, stack: list[VariableTracker], local_values: dict[str, VariableTracker], effects: list[fx.Effect]) -> bool:
        """Whether the graph's outputs are all there is."""
        state, cg = self.state, self.cg
        changed = {n: v for n, v in local_values.items() if not _unchanged(n, v)}
        uses: list[VariableTracker] = [*changed.values(), *reversed(stack)]
        for effect in effects:
            uses.extend(effect.values)
        outputs = _graph_values(uses, state.graph.symbols)
        if state.graph.call_count or outputs:
            if self._quick(outputs, stack, changed, effects):
                return True
            self._call_graph(outputs)
            for index, tracker in enumerate(outputs):
                name = f"__graph_out_{index}"
                cg.op("STORE_FAST", name)
                cg.graph_outputs[id(tracker)] = name
        prepared: list[tuple[fx.Effect, list[str]]] = []
        for effect in effects:
            names = []
            for value in effect.values:
                cg.load_source(value.source) if isinstance(value, fx.Owner) else cg.load(value)
                names.append(cg.temp())
                cg.op("STORE_FAST", names[-1])
            prepared.append((effect, names))
        saved: list[tuple[str, str]] = []
        for name, value in changed.items():
            cg.load(value)
            saved.append((name, cg.temp()))
            cg.op("STORE_FAST", saved[-1][1])
        self._push_stack(stack)
        for effect, names in prepared:
            effect.store(cg, names)
        self._none_left_open()
        fx.restore_modes(cg, state)
        for name, temp in saved:
            cg.op("LOAD_FAST", temp)
            cg.op("STORE_FAST", name)
        return False

    def _delete(self, names: Iterable[str]) -> None:
        for name in names:
            self.cg.op("DELETE_FAST", name)

    def _none_left_open(self) -> None:
        """A generator that waits inside of a ``try`` or ``with`` runs its handlers when it dies, at a time that the trace does not know."""
        for generator in list(self.state.generators):
            waits = generator.started and not generator.finished and generator.frame.inst.handler is not None
            if waits and id(generator) not in self.cg.temps and not self._closes_quietly(generator):
                raise Unreconstructible("a generator that dies inside of a try or with statement and does something then")

    def _closes_quietly(self, generator: Any) -> bool:
        """Whether closing the generator changes nothing, so that the time does not matter."""
        state = self.state
        dirty, nodes, stores = state.dirty, state.graph.call_count, [len(s.stores) for s in state.scopes.values()]
        try:
            iteration.resume(self.root, generator, NONE, ExceptionVariable(GeneratorExit, []))
        except UserRaise as raised:
            quiet = raised.value.python_type() is GeneratorExit
        except GraphBreak:
            quiet = False
        else:
            quiet = generator.finished
        # resume() itself counts as one change
        return quiet and (dirty + 1, nodes, stores) == (state.dirty, state.graph.call_count, [len(s.stores) for s in state.scopes.values()])

    def _push_stack(self, stack: list[VariableTracker]) -> None:
        cg = self.cg
        index = 0
        places: dict[int, int] = {}
        if any(isinstance(item, PreviousException) and item.active for item in stack):
            for item in stack:  # built while the caller's exception is still the one that is handled
                value = item.current if isinstance(item, PreviousException) else item
                if isinstance(value, ExceptionVariable) and value.source is None:
                    cg.load(value)
                    cg.op("POP_TOP")
        while index < len(stack):
            item = stack[index]
            if isinstance(item, PreviousException) and not item.active:
                cg.op("LOAD_CONST", None)  # restored already; nothing looks at it any more
            elif isinstance(item, PreviousException) and id(item) in places:
                cg.op("COPY", index - places[id(item)])
            elif isinstance(item, PreviousException):
                places[id(item)] = index
                # Handling the exception for real, so that sys.exc_info() and POP_EXCEPT agree.
                cg.load(item.current)
                cg.op("PUSH_EXC_INFO")
                earlier = item.earlier_traceback()
                if earlier is not None:
                    cg.load_object(_native.set_handled_traceback)
                    cg.load(earlier)
                    cg.call(1)
                    cg.op("POP_TOP")
                follows = stack[index + 1] if index + 1 < len(stack) else None
                if follows is item.current:
                    index += 1
                else:
                    cg.op("POP_TOP")
            else:
                cg.load(item)
            index += 1

    def _call_graph(self, outputs: list[Any]) -> None:
        cg, graph = self.cg, self.state.graph
        self.runs_anew = graph.repeatable() or self.state.rescued and graph.may_run_anew()
        self.module = graph.finish(outputs)
        self.graph_name = self.fresh("__compiled_fn")
        if self.runs_anew and graph.mode.random:
            cg.load_object(torch.get_rng_state)
            cg.call(0)
            cg.op("STORE_FAST", "__random")
        cg.op("LOAD_GLOBAL", self.graph_name)
        start = len(cg.out)
        for tracker in graph.inputs:
            cg.load_source(tracker.source)
        self.loads = (start, len(cg.out))
        cg.call(len(graph.inputs))
        self.graph_call = cg.out[-1]
        if outputs:
            cg.op("UNPACK_SEQUENCE", len(outputs))
        else:
            cg.op("POP_TOP")

    def _rescue(self, unwound: Modes) -> None:
        """Where the graph fails and nothing has happened yet, the frame runs anew as it was written.

        So an operation's error comes from the user's line, meets the user's handlers and finds the side effects before it.
        Where the graph cannot run twice, its error is told the line that it comes from, and torch's switches are set to
        ``unwound``.
        """
        state, cg, root = self.state, self.cg, self.root
        if self.graph_call is None or not (state.graph.may_raise or state.caught or state.graph.switches or state.released):
            return
        mark = len(cg.out)
        cg.op("STORE_FAST", "__failure")
        self.graph_call.handler = ExceptionHandler(cg.out[mark], 0, False)
        if state.released:
            cg.load_object(rescue.release)
            cg.load_object(self.runs_anew)
            cg.op("LOAD_FAST", "__failure")
            for lock in state.released:
                cg.load_source(lock.source)
            cg.call(2 + len(state.released))
            cg.op("POP_TOP")
        if not self.runs_anew:
            self.rescue = (rescue.raise_on, unwound)
            cg.load_object(rescue.raise_on)
            cg.op("LOAD_FAST", "__failure")
            cg.load_object(unwound)
            cg.call(2)
            cg.op("RETURN_VALUE")
            return
        random = state.graph.mode.random
        cg.load_object(rescue.run_eager_with if random else rescue.run_eager)
        if random:
            cg.op("LOAD_FAST", "__random")
        cg.op("LOAD_FAST", "__failure")
        plan = rescue.Plan(root.code, root.scope.real, state.caught, state.graph.modes)
        self.rescue = (rescue.run_eager, plan)
        cg.load_object(plan)
        for name in root.code.co_freevars:
            cg.op("LOAD_CLOSURE", name)
        cg.op("BUILD_TUPLE", len(root.code.co_freevars))
        for name in state.parameters:
            cg.op("LOAD_FAST", name)
        cg.call(3 + random + len(state.parameters))
        cg.op("RETURN_VALUE")

    def _quick(self, outputs: list, stack: list, changed: dict, effects: list) -> bool:
        """Graph outputs straight into locals and onto the stack, where nothing else has to be rebuilt."""
        if effects or self.state.graph.switches or devices.steps(self.state):
            return False
        if self.state.graph.nesting or len(outputs) != len(changed) + len(stack):
            return False
        wanted = [*changed.values(), *reversed(stack)]
        if any(_inner(v) is not o or getattr(o, "attrs", None) for v, o in zip(wanted, outputs, strict=True)):
            return False
        self._none_left_open()
        self._call_graph(outputs)
        for name in changed:
            self.cg.op("STORE_FAST", name)
        return True


def _inner(tracker: VariableTracker) -> VariableTracker | None:
    return tracker.tracker if isinstance(tracker, LazyVariable) else tracker


def _unchanged(name: str, tracker: VariableTracker) -> bool:
    """Whether the frame's own local still holds this value: it does while the value came from that very parameter."""
    source = tracker.source
    return source is not None and source.access == "ARG" and source.key[1] == name


def _graph_values(uses: list[VariableTracker], symbols: Any) -> list[Any]:
    """Tensors and data-dependent numbers that must leave the graph, in the order of their first use."""
    outputs: list[Any] = []
    seen: set[int] = set()
    stack = list(reversed(uses))
    while stack:
        tracker = stack.pop()
        if id(tracker) in seen:
            continue
        seen.add(id(tracker))
        if isinstance(tracker, TensorVariable):
            if tracker.source is None:
                outputs.append(tracker)
                stack.extend(reversed(children(tracker)))
            continue
        if isinstance(tracker, SymbolicVariable):
            if tracker.source is None and symbols.is_unbacked(tracker.value):
                outputs.append(tracker)
            continue
        if tracker.source is not None and not isinstance(tracker, (LazyVariable, fx.Owner)):
            continue  # loaded from where it came from; its changes are effects of their own
        stack.extend(reversed(children(tracker)))
    return outputs


def _successors(root: Any, inst: Instruction) -> list[Instruction]:
    if inst.op in TERMINATORS:
        return []
    targets = [root.instructions[inst.index + 1]]
    if inst.target is not None:
        targets.append(inst.target)
    return targets


def _effect(inst: Instruction, jump: bool) -> int:
    return stack_effect(inst, jump)


__all__ = ["Segment"]
