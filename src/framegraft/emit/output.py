"""From a finished or broken trace to transformed bytecode: graph call, live values, side effects, the break, resume calls."""

from __future__ import annotations

from collections.abc import Container, Iterable
from functools import cached_property
from typing import Any

from .. import _native
from ..bytecode.ir import ExceptionHandler, Instruction
from ..errors import GraphBreak, UserRaise
from ..interp.unwind import PreviousException
from ..model.source import Source, instr
from ..model.value import (
    ExceptionVariable,
    GeneratorVariable,
    LazyVariable,
    ObjectVariable,
    SymbolicVariable,
    TensorVariable,
    VariableTracker,
    looked_at,
)
from ..semantics import generators
from ..tensor import devices, seeds
from . import containers, iterators, lifetimes, objects, rescue  # noqa: F401 - the builders
from . import effects as fx
from .codegen import Codegen, Unreconstructible, children
from .loads import LOAD_SOURCES
from .resume import REST
from .tracebacks import Caught, Function, Passages


class Segment:
    """Emission of one trace: of the frames from the root on that it ends in."""

    def __init__(self, state: Any, frames: list, names: Any, fresh: Any, makers: Any) -> None:
        self.state = state
        self.root = frames[0]
        self.frames = frames
        self.cg = Codegen(state, names)
        if REST in state.parameters:
            self._note_frame()
        self.fresh = fresh  # (prefix) -> a name that is not in the root's globals
        # (code, offset, globals, level of its frame) -> name of the resume function in the root's globals;
        # (code, offset, globals, its caller's globals) -> the rest of a frame that another one waits for, and its name in the latter;
        # (step, globals) -> the name of the function that runs it in the root's globals
        self.make_resume, self.make_rest, self.make_step = makers
        self.graph_call: Instruction | None = None
        self.graph_name = ""
        self.module: Any = None
        self.loads = (0, 0)  # where in the code the graph's inputs are loaded
        self.forwards = False  # the code only returns the graph's only result
        self.breaks = False
        self.runs_anew = False  # where the graph fails, the frame may run in eager mode from its start
        self.rescue: tuple[Any, Any] | None = None  # what is done when the graph fails: (callable, plan)
        self.caught: list[Caught] = []  # handlers
        self.unseen: list[Instruction] = []  # calls of resume functions that are the rest of this very frame
        self.resumed: dict[str, int] = {}  # name of each resume function -> level of its frame
        self.between: set[str] = set()  # names of functions through which some of them are called, for the frames between

    def is_held(self, frame: Any) -> bool:
        """Whether the traceback of an exception that the frame has caught may hold it, and the program's variables with it."""
        return frame is self.root and (frame.has_caught or REST in self.state.parameters)

    def _note_frame(self) -> None:
        """The frame is the rest of one that a traceback may hold, which is to hold this one, too."""
        cg = self.cg
        cg.load_object(_native.note_frame)
        cg.op("LOAD_FAST", REST)
        cg.call(1)
        cg.op("POP_TOP")
        cg.op("DELETE_FAST", REST)  # so that there is no cycle

    # -- a finished trace

    def finish_return(self, value: VariableTracker) -> None:
        quick = self._state([value], {}, fx.collect(self.state))
        self.forwards = quick and self.cg.out[-1].op == "UNPACK_SEQUENCE" and self.cg.out[-1].arg == 1
        if self.runs_anew and self.state.graph.mode.random or self.state.graph.leaving or self.state.draws:
            self.forwards = False  # it keeps the generator's state, too, or has blocks to leave, or draws random numbers itself
        if self.is_held(self.root):
            self.forwards = False
            bound = lifetimes.slots(self.cg.out, self.state.parameters)
            self._delete([n for n in bound if n not in self.root.locals])  # one of them may be the exception: a cycle
        self.cg.op("RETURN_VALUE")
        self._rescue()

    @cached_property
    def passages(self) -> Passages:
        """Where errors come from, for their tracebacks."""
        callers = [(Function.of(frame.code), frame.line()) for frame in self.frames[1:]]
        plan = self.rescue[1] if self.rescue is not None else None
        anew = plan.code if isinstance(plan, rescue.Plan) else None
        made = Passages(Function.of(self.root.code), self.graph_name, self.resumed, self.between, callers, anew)
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
        loaded = self.cg.out[start:end]
        together = any(inst.op == LOAD_SOURCES for inst in loaded)
        if all(source.access == "ARG" for source in sources) if together else len(loaded) <= len(sources):
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

    # -- the state at the end of the trace

    def _state(self, stack: list[VariableTracker], local_values: dict[str, VariableTracker], effects: list[fx.Effect]) -> bool:
        """Whether the graph's outputs are all there is."""
        state, cg = self.state, self.cg
        if state.graph.levels:
            raise Unreconstructible("a level of forward mode that is open")
        if state.overrides_off != state.overrides_before or state.function_modes:
            raise Unreconstructible("__torch_function__ switched off, or a mode that is shown to it")
        if state.graph.annotations:
            raise Unreconstructible("an annotation of nodes that is in force")
        changed = {n: v for n, v in local_values.items() if not _unchanged(n, v)}
        uses: list[VariableTracker] = [*changed.values(), *reversed(stack)]
        for effect in effects:
            uses.extend(effect.values)
        outputs, cg.shared = _graph_values(uses, state.graph.symbols)
        if any(isinstance(t, TensorVariable) and state.graph.is_late(t.fake) for t in outputs):
            raise Unreconstructible("a view whose base was written to with a gradient since")
        if any(isinstance(t, TensorVariable) and state.graph.is_of_rebound(t.fake) for t in outputs):
            raise Unreconstructible("a view of a tensor whose data was set before")
        self._draw()
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
            if name in state.parameters:  # others may still be loaded from it
                saved.append((name, cg.temp()))
                name = saved[-1][1]
            cg.op("STORE_FAST", name)
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
            waits = generator.started and not generator.finished and (
                _is_in_try(generator.frame.inst) or isinstance(generators.awaited(self.root, generator), ObjectVariable))
            if waits and id(generator) not in self.cg.temps and not self._closes_quietly(generator):
                raise Unreconstructible("a generator that dies inside of a try or with statement and does something then")

    def _closes_quietly(self, generator: Any) -> bool:
        """Whether closing the generator changes nothing, so that the time does not matter."""
        state = self.state
        nodes, stores = state.graph.call_count, [len(s.stores) for s in state.scopes.values()]
        dirty, inner = state.dirty + 1, generators.awaited(self.root, generator)  # resume() itself counts as one change
        while type(inner) is GeneratorVariable and inner.started and not inner.finished:
            dirty, inner = dirty + 1, generators.awaited(self.root, inner)
        try:
            generators.close(self.root, generator)
        except UserRaise as raised:
            quiet = raised.value.python_type() is GeneratorExit
        except GraphBreak:
            quiet = False
        else:
            quiet = generator.finished
        return quiet and (dirty, nodes, stores) == (state.dirty, state.graph.call_count, [len(s.stores) for s in state.scopes.values()])

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

    def _draw(self) -> None:
        """The random numbers that the program has drawn."""
        state, cg = self.state, self.cg
        if state.draws and self._may_fail():
            cg.load_object(rescue.generators)
            cg.load_many([draw.generator for draw in state.draws])
            cg.call(len(state.draws))
            cg.op("STORE_FAST", "__generators")
        for draw in state.draws:
            cg.load_object(draw.method)
            cg.load_many([draw.generator, *draw.args, *draw.kwargs.values()])
            cg.op("CALL", (1 + len(draw.args), tuple(draw.kwargs)))
            cg.op("STORE_FAST", draw.name)

    def _may_fail(self) -> bool:
        state = self.state
        return bool(state.graph.may_raise or state.caught or state.graph.switches or state.released)

    def _call_graph(self, outputs: list[Any]) -> None:
        cg, graph = self.cg, self.state.graph
        self.module = graph.finish(outputs)
        self.runs_anew = graph.repeatable() or self.state.rescued and graph.may_run_anew()
        self.graph_name = self.fresh("__compiled_fn")
        if self.runs_anew and graph.mode.random:
            cg.load_object(seeds.states)
            cg.load_object(graph.random_devices())
            cg.call(1)
            cg.op("STORE_FAST", "__random")
        cg.op("LOAD_GLOBAL", self.graph_name)
        start = len(cg.out)
        cg.load_sources(self.inputs())
        self.loads = (start, len(cg.out))
        cg.call(len(graph.inputs))
        self.graph_call = cg.out[-1]
        if outputs:
            cg.op("UNPACK_SEQUENCE", len(outputs))
        else:
            cg.op("POP_TOP")

    def _rescue(self) -> None:
        """Where the graph fails and nothing has happened yet, the frame runs anew as it was written.

        So an operation's error comes from the user's line, meets the user's handlers and finds the side effects before it.
        Where the graph cannot run twice, its error is told the line that it comes from, and torch's switches are set to what they
        are once the frame has left its ``with`` blocks; of those that were entered before a break the exits are called.
        """
        state, cg, root = self.state, self.cg, self.root
        if self.graph_call is None or not self._may_fail():
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
            unwound = state.graph.unwound or state.graph.outer
            unwound.level, unwound.touched = state.graph.modes.level, state.graph.modes.touched
            locks = [id(lock.value) for lock in state.released]
            leaving = [leave for leave in state.graph.leaving or () if id(getattr(leave.value, "__self__", None)) not in locks]
            self.rescue = (rescue.leave_and_raise if leaving else rescue.raise_on, unwound)
            cg.load_object(self.rescue[0])
            self._hand_over_failure()
            cg.load_object(unwound)
            for leave in leaving:
                cg.load_source(leave.source)
            cg.call(2 + len(leaving))
            cg.op("RETURN_VALUE")
            return
        if state.draws:
            cg.load_object(rescue.put_back)
            cg.op("LOAD_FAST", "__generators")
            cg.call(1)
            cg.op("POP_TOP")
        random = state.graph.mode.random
        cg.load_object(rescue.run_eager_with if random else rescue.run_eager)
        if random:
            cg.op("LOAD_FAST", "__random")
        self._hand_over_failure()
        plan = rescue.Plan(root.code, root.scope.real, state.caught, state.graph.modes)
        self.rescue = (rescue.run_eager, plan)
        cg.load_object(plan)
        for name in root.code.co_freevars:
            cg.op("LOAD_CLOSURE", name)
        cg.op("BUILD_TUPLE", len(root.code.co_freevars))
        for name in state.parameters:
            cg.op("BUILD_LIST", 0) if name == REST else cg.op("LOAD_FAST", name)
        cg.call(3 + random + len(state.parameters))
        cg.op("RETURN_VALUE")

    def _hand_over_failure(self) -> None:
        """Its traceback holds this frame, which must not hold it in turn."""
        self.cg.op("LOAD_FAST", "__failure")
        self.cg.op("DELETE_FAST", "__failure")

    def _quick(self, outputs: list, stack: list, changed: dict, effects: list) -> bool:
        """Graph outputs straight into locals and onto the stack, where nothing else has to be rebuilt."""
        if effects or self.state.graph.switches or devices.steps(self.state):
            return False
        if self.state.graph.nesting or len(outputs) != len(changed) + len(stack):
            return False
        wanted = [*changed.values(), *reversed(stack)]
        if any(looked_at(v) is not o or getattr(o, "attrs", None)
               or getattr(o, "made_as", None) is not None for v, o in zip(wanted, outputs, strict=True)):
            return False
        self._none_left_open()
        self._call_graph(outputs)
        for name in changed:
            self.cg.op("STORE_FAST", name)
        return True


def _is_in_try(inst: Instruction) -> bool:
    """Whether a handler of the program's is around; from 3.12 on each ``yield from`` has one of its own, which does nothing then."""
    handler = inst.handler
    while handler is not None and handler.target.op == "CLEANUP_THROW":
        handler = handler.target.handler
    return handler is not None


def _unchanged(name: str, tracker: VariableTracker) -> bool:
    """Whether the frame's own local still holds this value: it does while the value came from that very parameter."""
    source = tracker.source
    return source is not None and source.access == "ARG" and source.key[1] == name


def _graph_values(uses: list[VariableTracker], symbols: Any) -> tuple[list[Any], set[int]]:
    """Tensors and data-dependent numbers that must leave the graph, in the order of their first use; ids of what has several uses."""
    outputs: list[Any] = []
    seen: set[int] = set()
    shared: set[int] = set()
    stack = list(reversed(uses))
    while stack:
        tracker = stack.pop()
        if id(tracker) in seen:
            shared.add(id(tracker))
            continue
        seen.add(id(tracker))
        if isinstance(tracker, TensorVariable):
            if tracker.source is None:
                outputs.append(tracker)
                stack.extend(reversed(children(tracker)))
            continue
        if isinstance(tracker, SymbolicVariable):
            if tracker.source is None and symbols.is_of_graph(tracker.value):
                outputs.append(tracker)
            continue
        if tracker.source is not None and not isinstance(tracker, (LazyVariable, fx.Owner)):
            continue  # loaded from where it came from; its changes are effects of their own
        stack.extend(reversed(children(tracker)))
    return outputs, shared


__all__ = ["Segment"]
