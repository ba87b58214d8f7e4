"""One frame on its way to an entry of the cache: traced, as often as it takes, and emitted."""

from __future__ import annotations

import contextlib
import itertools
import sys
import types
from collections.abc import Callable
from typing import Any

import torch
import torch.autograd.forward_ad as forward_ad
from torch._guards import CompileContext, CompileId, compile_context

from .. import _native, config, events
from ..backends.aliasing import compile_changing
from ..backends.registry import TRACING, backend_name, call_backend
from ..backends.tracing import has_float_symbols, is_operator_of_program, refused_floats
from ..bytecode.code import RESUME
from ..bytecode.ir import Instruction
from ..collector import Waiting
from ..emit.effects import changed_objects
from ..emit.interrupted import Interrupted
from ..emit.output import Segment
from ..emit.resume import breaks_again
from ..emit.step import Caller, Step
from ..errors import BackendCompilerFailed, Covered, FrameChanged, GraphBreak, NotYet, Restart, Unsupported, UserRaise, causes
from ..interp import frame as frames
from ..interp.state import TraceState, recursion_room
from ..interp.unwind import is_covered
from ..model.program import ProgramBuilder
from ..model.source import BUILTINS, GLOBALS, Source, closure_cell, local
from ..model.value import MISSING, CellVariable, LazyVariable
from ..native.calibrate import tensor_spec
from ..semantics import inlining
from ..semantics.wrapping import VariableBuilder
from ..tensor import arrays, control_flow, devices, distributed_tensors, leaves, modules, seeds, subclasses
from ..tensor.blocks import Blocks
from ..tensor.graph import OutputGraph
from ..tensor.modes import Modes, autocast_nesting, leave_autocast, leave_levels
from ..tensor.policy import FIXED_FLOATS, TENSOR_FLOATS, Policy
from ..tensor.symbolic import plain_number
from . import logs, records
from .checks import CheckFunction, EntryInfo
from .later import LaterCode
from .names import InstalledName, Numbering
from .search import Search

_pins = itertools.count(1)
_FORWARD_AD = Source("CONST", forward_ad)
_LEVEL = _FORWARD_AD.child("DICT").child("KEY", "_current_level")  # of forward mode; none, or nothing is captured
MAX_ATTEMPTS = 40


class Conversion:
    """One frame on its way to an entry."""

    def __init__(self, ctx: Any, fn: types.FunctionType, args: tuple, capture: records.Capture) -> None:
        self.ctx = ctx
        self.capture = capture
        self.fn = fn
        self.args = args
        self.code = fn.__code__
        self.installed: list[InstalledName] = []
        self.planned: dict[int, GraphBreak] = {}  # the step before which the next attempt ends
        self.search: Search | None = None
        self.leaving: list[GraphBreak] = []  # breaks that only let an exception of the program out
        self.graph_module: Any = None
        self.compiling: tuple[str, Any, list[Any]] | None = None  # what the backend works on
        self.modes = Modes()
        self.devices = devices.here()
        self.global_state = _native.global_state()
        self.collector = Waiting()
        self.rescue = True
        self.floats: list[str] = []  # what to do about floats that the compiler cannot have, the last resort last
        self.makes_parameters = True
        self.reads_numbers = True  # those in tensors that torch reads, not the program: x[t]
        self.fixed_floats: set[Source] = set()
        self.fixed_ints = False  # a guard's whole numbers do not fit 64 bits: ints are constants of this capture
        self.changed = ""  # what an attempt had seen, and something changed
        self.repeats = True  # calls of modules that do what an earlier one did are not traced
        self.earlier = [e.info.seen for e in _native.cache_entries(self.code) if e.ctx is ctx]

    def failed(self, error: Exception, suppressed: bool) -> list[str]:
        """Tells of an error; what listeners have to add to it."""
        failed = events.CaptureFailed(self.capture, error, suppressed, self.fn, self.args, self.compiling, self.ctx.compiler, [])
        events.publish(failed)
        return failed.notes

    def run(self) -> Any:
        """The new entry; GraphBreak where the frame is better run as it is."""
        first = Numbering.next
        for _attempt in range(MAX_ATTEMPTS):
            try:
                with recursion_room(), self.collector, devices.taken_away() as self.own_devices:
                    made = self._attempt()
            except FloatsRefused as refused:
                self._spare_compiler(refused)
                made = AGAIN
            except ParametersRefused:
                self.makes_parameters = False
                made = AGAIN
            except NumbersRefused:
                self.reads_numbers = False
                made = AGAIN
            except FrameChanged as changed:
                self._note_change(changed)
                made = AGAIN
            if made is not AGAIN:
                self._let_go()
                return made
            self.installed.clear()
            Numbering.next = first
        raise GraphBreak("skipped_frame", f"no end after {MAX_ATTEMPTS} attempts")

    def _note_change(self, changed: FrameChanged) -> None:
        """By another thread, or by the compiler: they are not likely to do so twice. What fails in the same way is the tracer's error."""
        if changed.of_sizes and not self.fixed_ints:
            self.fixed_ints = True
            return
        if self.changed == str(changed) or self.changed and config.raise_internal_errors:
            raise changed
        if self.changed:
            raise GraphBreak("skipped_frame", f"what it reads changes while it is captured: {changed}")
        self.changed = str(changed)

    def _let_go(self) -> None:
        """Breaks that were raised hold frames, and these the frame's arguments, whose time to die may come before the collector's."""
        for broken in (*self.planned.values(), *self.leaving, *([self.search.broken] if self.search is not None else [])):
            broken.settle()
        self.args = ()

    # -- one attempt

    def _attempt(self) -> Any:
        random = seeds.states_in_use()
        self.capture.attempts += 1
        for planned in self.planned.values():
            planned.settle()  # a compiler may have ended the attempt before
        state, root = self._start()
        met: list[GraphBreak] = []  # handled behind the clause: it is no context of what the compiler raises
        try:
            kind = value = None
            try:
                kind, value = root.run()
            except GraphBreak as broken:
                met.append(broken)
            except Restart:
                return AGAIN
            except UserRaise as raised:
                leaving = GraphBreak("raised_exception", f"{raised.value.python_type().__name__} leaves the frame")
                self.leaving.append(leaving)
                return self._plan([root], leaving)
            if met:
                return self._broken(state, root, met[0])
            assert kind == "return"
            return self._unsafe(state) or self._emit(state, [root], None, lambda segment: segment.finish_return(value))
        finally:
            for broken in met:
                broken.settle()
            self.capture.spent("trace")
            subclasses.end(state)
            nesting = state.graph.nesting
            state.graph.mode.forget()
            if state.graph.levels:
                leave_levels(-1)
            state.release()
            self.modes.restore()
            for _ in range(nesting):
                torch.autocast_decrement_nesting()
            for _ in range(-nesting):
                torch.autocast_increment_nesting()
            seeds.put_back(random)

    def _start(self) -> tuple[TraceState, frames.InstructionTranslator]:
        modules.answer_late()
        control_flow.register_late()
        distributed_tensors.register_late()
        arrays.learn()
        policy = Policy(self.ctx.dynamic, self.earlier, config)
        for how in self.floats:
            policy.spare_compiler(how)
        policy.fix(self.fixed_floats)
        policy.specialize_int |= self.fixed_ints
        state = TraceState(OutputGraph(policy, config), config)
        state.graph.whole = self.ctx.fullgraph
        state.graph.makes_parameters = self.makes_parameters
        state.graph.refuses_numbers = backend_name(self.ctx.compiler) in TRACING
        state.graph.data_numbers = config.capture_scalar_outputs or self.ctx.fullgraph
        state.graph.reads_numbers = self.reads_numbers or state.graph.data_numbers
        state.graph.data_shapes = config.capture_dynamic_output_shape_ops or self.ctx.fullgraph
        state.graph.where = state.where
        state.tensor_spec = tensor_spec  # type: ignore[attr-defined]
        if self.repeats and config.force_break_at is None:
            state.blocks = Blocks(state, self._trace_all)
        state.builder = VariableBuilder(state)
        code, fn = self.code, self.fn
        scope = state.scope(fn.__globals__, GLOBALS, BUILTINS)
        root = frames.InstructionTranslator(state, code, scope, frames.instructions_of(code))
        root.breakable = True
        state.stop_at = self.planned
        state.root = root
        state.lines = set() if events.lines_wanted() else None
        state.watch = logs.watch()
        count = len(self.args)
        state.parameters = list(code.co_varnames[:count])
        state.rescue = self.rescue
        state.overrides_off = state.overrides_before = int(not torch._C._is_torch_function_enabled())
        if self.ctx.fullgraph:
            state.max_idle = state.max_steps
            state.over_limit()
        bound: dict[str, Any] = {
            name: LazyVariable(value, local(index, name))
            for index, (name, value) in enumerate(zip(code.co_varnames[:count], self.args, strict=True))
        }
        state.arguments = list(bound.values())
        closure = [self._free_cell(state, i, name, cell)
                   for i, (name, cell) in enumerate(zip(code.co_freevars, fn.__closure__ or (), strict=True))]
        inlining.start_frame(root, code, bound, closure)
        state.guards.add(Source("STATE"), "STATE", self.global_state)
        state.guards.add(_FORWARD_AD, "TYPE", type(forward_ad))
        state.guards.add(_LEVEL, "ID", forward_ad._current_level)
        devices.begin(state, self.devices, self.own_devices)
        return state, root

    def _trace_all(self) -> None:
        self.repeats = False

    def _free_cell(self, state: TraceState, index: int, name: str, cell: Any) -> CellVariable:
        source = closure_cell(index, name)
        known = state.by_id.get(id(cell))
        if known is not None:
            return known  # type: ignore[return-value]
        inside = source.child("CELLVAL")
        try:
            contents: Any = LazyVariable(cell.cell_contents, inside)
        except ValueError:
            state.guards.add(inside, "ABSENT")
            contents = MISSING
        tracker = CellVariable(contents, source)
        state.by_id[id(cell)] = tracker
        return tracker

    # -- breaks

    def _plan(self, interrupted: list, broken: GraphBreak) -> Any:
        """Trace again, and end before the instruction that the innermost of these frames is at."""
        at = broken.at or interrupted[-1].at
        if at in self.planned:
            raise broken
        broken.user_stack = broken.user_stack or [frame.place() for frame in interrupted]
        broken.settle()
        self.planned = {**self.planned, at: broken}
        return AGAIN

    def _unsafe(self, state: TraceState) -> Any:
        """AGAIN if the trace counted on running anew where the graph cannot be repeated: the next attempt does not."""
        if not state.rescued or not self.rescue or state.graph.may_run_anew():
            return None
        self.rescue = False
        self.planned = {}
        self.search = None
        return AGAIN

    def _broken(self, state: TraceState, root: frames.InstructionTranslator, broken: GraphBreak) -> Any:
        if isinstance(broken, NotYet):
            raise broken
        traced = broken.frames or [root]
        broken.frames = []  # it may be raised again, by another attempt
        interrupted = list(itertools.takewhile(lambda frame: frame.breakable, traced))
        broken.user_stack = broken.user_stack or [frame.place() for frame in traced]
        if self.ctx.fullgraph and broken not in self.leaving:
            raise Unsupported.from_break(broken) from None
        if broken.reason == "skipped_frame":
            raise broken
        if broken not in self.planned.values() and broken.reason != "forced_break" and not self._refused(state, traced[-1], broken):
            return self._plan(self._outside(interrupted) if isinstance(broken, Covered) else interrupted, broken)
        return self._unsafe(state) or self._emit(state, interrupted, broken, Interrupted.finish_break)

    def _refused(self, state: TraceState, frame: frames.InstructionTranslator, broken: GraphBreak) -> bool:
        """Whether the trace ends where it would end if it had known of the break."""
        if broken.at or isinstance(broken, Covered) or self.search is not None or state.graph.symbols is not None:
            return False
        if not frame.breakable or not frame.takes_back():
            return False
        self.planned = {**self.planned, frame.at: broken}
        return True

    def _outside(self, interrupted: list) -> list:
        """The frames, without those that the innermost of them to wait for a rest inside of a block waits for: what fails there reaches
        the block as an error of the call. All of them where they are in a block of their own."""
        for level in reversed(range(len(interrupted))):
            frame = interrupted[level]
            if frame.inst.place == frames.CALLS_REST and frame.inst.handler is not None:
                return interrupted[: level + 1]
            if is_covered(frame):
                break
        return interrupted

    def _emit(self, state: TraceState, interrupted: list, broken: GraphBreak | None, finish: Callable[[Any], None]) -> Any:
        root = interrupted[0]
        self.capture.spent("trace")
        kind = Segment if broken is None else Interrupted
        segment = kind(state, interrupted, self._install, self._fresh, (self._make_resume, self._make_rest, self._make_step))
        state.frames[:] = interrupted
        try:
            finish(segment)
        except GraphBreak as worse:
            if worse.reason != "unreconstructible_value":
                raise worse from None
            if self.ctx.fullgraph:
                worse.user_stack = [root.place()]
                raise Unsupported.from_break(worse) from None
            if broken is not None:
                worse.user_stack = broken.user_stack
                if broken.reason != "unreconstructible_value":
                    worse.detail += f", alive at a break ({broken})"
            else:
                worse.user_stack = [root.place()]
            if self.search is None:
                self.search = Search(state.points)
            self.search.failed(interrupted[-1].at if broken is not None else sys.maxsize, worse)
            return self._probe()
        if self.search is not None and self.search.could_be_later(interrupted[-1].at):
            return self._probe()
        subclasses.finish(state)
        _guard_aliases(state)
        state.traced()
        instructions = segment.seal(self._compile_graph)
        if broken is not None:
            broken.settle()
        known = interrupted[-1].inst.place == frames.CALLS_REST or len(interrupted) == 1 and breaks_again(root.code, root.inst)
        if broken is not None and not known:
            records.note_break(broken, self.capture)
        return self._entry(state, root, segment, instructions, broken)

    def _probe(self) -> Any:
        assert self.search is not None
        step, broken = self.search.next()
        broken.settle()
        self.planned = {step: broken}
        return AGAIN

    # -- emission

    def _install(self, hint: str, obj: Any) -> str:
        """A name of ``obj`` in the function's globals, never used for another object: an old entry's code may still run."""
        name = f"__fg{hint}_{next(_pins)}"
        self.installed.append(InstalledName(self.fn.__globals__, name, obj))
        return name

    def _compile_graph(self, name: str, module: Any, graph: OutputGraph) -> None:
        module.__class__.__name__ = name
        self.graph_module = module
        events.publish(events.GraphTraced(self.capture, name, module))
        modes, nesting = Modes(), autocast_nesting()
        self.modes.restore()
        self.capture.spent("emit")
        try:
            values = [subclasses.as_plain(t.value) for t in graph.inputs]
            self.compiling = (name, module, [plain_number(v) for v in values])
            changed = graph.changed_inputs()
            module.meta["unrepeatable"] = graph.unrepeatable()
            if graph.symbols is not None:
                graph.symbols.settle_inputs([n for n in module.graph.nodes if n.op == "placeholder"])
            known = graph.symbols.guard_count() if graph.symbols is not None else 0
            only_inputs = graph.symbols.only_inputs() if graph.symbols is not None else contextlib.nullcontext()
            frame, index = self.capture.frame, self.capture.index
            compiling = compile_context(CompileContext(CompileId(frame_id=frame, frame_compile_id=index)))
            with compiling, only_inputs, self.collector.interrupted(), subclasses.shield(graph.mode.shielded):
                if any(changed):
                    compiled = compile_changing(self.ctx.compiler, module, values, changed)
                else:
                    compiled = call_backend(self.ctx.compiler, module, values)
            self._note_fixed_floats(graph, known)
        except BackendCompilerFailed as failed:
            if self.makes_parameters and any(isinstance(error, leaves.Traced) for error in causes(failed)):
                raise ParametersRefused from failed
            if graph.reads_numbers and graph.mode.has_unbacked and not graph.data_numbers and not graph.data_shapes:
                raise NumbersRefused from failed
            if graph.takes_numbers and not graph.policy.tensor_floats:
                raise FloatsRefused(set(), failed) from failed
            if graph.symbols is None or not has_float_symbols(module):
                raise
            raise FloatsRefused(graph.symbols.inputs_of(refused_floats(failed.__cause__)), failed) from failed
        finally:
            leave_autocast(nesting)
            modes.restore()
            self.capture.spent("backend")
        records.note_graph(module, self.capture, name)
        made = events.GraphCompiled(self.capture, *self.compiling, compiled)
        self.compiling = None
        events.publish(made)
        called = subclasses.taking_plain(made.compiled, graph.inputs, graph.mode.shielded)
        self.installed.append(InstalledName(self.fn.__globals__, name, _shielded(called)))

    def _note_fixed_floats(self, graph: OutputGraph, known: int) -> None:
        """Floats that the compiler, in guards after the first ``known``, has taken for constants are tried as tensors; after that
        they are constants of each capture.
        """
        fixed = graph.symbols.fixed_floats(known) if graph.symbols is not None else set()
        if fixed and not graph.policy.tensor_floats:
            raise FloatsRefused(fixed)
        graph.policy.fix(fixed)

    def _spare_compiler(self, refused: FloatsRefused) -> None:
        """The next attempt gives the compiler less of what it refuses; raises its error where there is nothing less."""
        if TENSOR_FLOATS not in self.floats:
            self.floats.append(TENSOR_FLOATS)
        elif refused.sources - self.fixed_floats:
            self.fixed_floats |= refused.sources
        elif FIXED_FLOATS not in self.floats and refused.failed is not None:
            self.floats.append(FIXED_FLOATS)
        else:
            raise refused.failed or refused

    def _fresh(self, prefix: str, scope: dict[str, Any] | None = None) -> str:
        """A name in the globals that nobody has. A zero keeps resume functions' from torch.compile's, which looks at none."""
        zero = "0" if prefix.startswith(RESUME) else ""
        while True:
            name = f"{prefix}_{zero}{Numbering.next}"
            Numbering.next += 1
            if name not in (self.fn.__globals__ if scope is None else scope):
                return name

    def _make_resume(self, code: types.CodeType, offset: int, scope: dict[str, Any], level: int) -> str:
        return self._used(self._named(f"{RESUME}{offset}", code, scope, self.fn.__globals__, level))  # the name tells the level, too

    def _make_rest(self, code: types.CodeType, offset: int, scope: dict[str, Any], around: dict[str, Any]) -> InstalledName:
        return self._named(f"{RESUME}{offset}", code, scope, around)

    def _make_step(self, step: Step | Caller, scope: dict[str, Any]) -> str:
        return self._used(self._named(f"{step.prefix}{step.offset}", step.build(), scope, self.fn.__globals__))

    def _used(self, installed: InstalledName) -> str:
        self.installed.append(installed)
        return installed.name

    def _named(
        self, prefix: str, code: types.CodeType, scope: dict[str, Any], around: dict[str, Any], level: int | None = None
    ) -> InstalledName:
        """A function of what comes behind a break, with a name in the globals of who calls it; the same one while it is in use."""
        key = (code, id(scope), id(around), level)
        known = self.ctx.resumes.get(key)
        if known is None:
            function: Any = types.FunctionType(code, scope, code.co_name)
            if prefix.startswith(RESUME):
                function = _native.CompiledFunction(function, self.ctx, self.ctx.miss, True)
            known = self.ctx.resumes[key] = InstalledName(around, self._fresh(prefix, around), function)
        return known

    def _code(self, segment: Segment, instructions: list[Instruction], argnames: list[str], line: int) -> LaterCode:
        return LaterCode(instructions, self.code, argnames, line, tuple(self.installed), segment.unseen)

    def _short_cut(
        self, segment: Segment, argnames: list[str], line: int, met: dict[Source, int]
    ) -> tuple[list[Source], dict[str, Any]]:
        """How the native core runs the entry with what the guards have met, and the places of that."""
        if segment.forwards and all(source in met for source in segment.inputs()):
            return segment.inputs(), {"graph": self.fn.__globals__[segment.graph_name], "rescue": segment.rescue}
        instructions, given, names = segment.with_inputs(met)
        if not given:
            return [], {}
        return given, {"quick": self._code(segment, instructions, [*argnames, *names], line)()}

    def _entry(self, state: TraceState, root: Any, segment: Segment, instructions: list[Instruction],
               broken: GraphBreak | None) -> Any:
        code = self.code
        argnames = list(code.co_varnames[: len(self.args)])
        line = root.line() if broken is not None else code.co_firstlineno
        later = self._code(segment, instructions, argnames, line)
        runs: Any = later
        unchanged = True
        if records.has_bytecode_hooks():
            shown = later.shown()
            replaced = records.apply_bytecode_hooks(code, shown)
            unchanged = replaced is shown
            if not unchanged:
                runs = later.replaced(replaced, segment.passages.rests)
        self.capture.spent("emit")
        guards = state.guards
        for keys in guards.keys.values():
            if len(keys) > 1:
                guards.add(Source("NONE"), "NOALIAS", tuple(keys))
        if len(guards.tensors) > 1:
            guards.add(Source("NONE"), "NOALIAS", tuple(guards.tensors))
        for source, tensor in state.graph.changed_with_gradient():
            guards.add(source.child("ATTR", "is_leaf"), "EQ", tensor.is_leaf)
            if tensor._base is None:
                guards.add(source.child("ATTR", "_base"), "EQ", None)
            else:
                guards.add(source.child("ATTR", "_base").child("ATTR", "is_leaf"), "EQ", tensor._base.is_leaf)
                guards.add(source, "PY", leaves.MadeAs(tensor))
        if state.graph.symbols is not None:
            for expression, cause in state.graph.symbols.guards():
                guards.add(Source("NONE"), "SHAPE", expression, cause)
            state.graph.symbols.close()
        found = guards.finish(segment.cg.pins if segment is not None else ())
        builder = ProgramBuilder(found)
        nodes = builder.build()
        given, how = self._short_cut(segment, argnames, line, builder.position) if unchanged else ([], {})
        program = _native.GuardProgram(nodes, tuple(builder.position[source] for source in given))
        info = EntryInfo(self.graph_module, broken, self.capture, state.graph.policy.seen, changed_objects(state), segment.passages,
                         [name.obj.fn.__code__ for name in self.installed if name.name.startswith(RESUME)])
        entry = _native.Entry(program, runs, self.fn.__globals__, self.ctx, info, needs_hook=broken is not None, **how)
        info.check_fn = CheckFunction(program, found, argnames, self.fn)
        if config.verify_guards_on_creation:
            self.modes.restore()  # the trace may have left the program's own mode behind
            with self.own_devices():
                failed = program.explain(self.args, self.fn)
            if failed is not None:
                what = f"a guard fails on the frame that made it: {info.describe(failed[0])}, found {failed[1]!r:.200}"
                raise FrameChanged(what, found[failed[0]].check == "SHAPE")
        _native.add_entry(code, entry)
        records.CONVERSIONS[code] += 1
        self.capture.entered(info, len(found))
        events.publish(events.EntryMade(self.capture, entry, found, state.lines or set(), self.fn, self.args))
        return entry


AGAIN: Any = object()


class ParametersRefused(Exception):
    """A compiler cannot have parameters made in a graph."""


class NumbersRefused(Exception):
    """A compiler fails on a graph with numbers that operations read out of tensors."""


class FloatsRefused(Exception):
    """A compiler has taken changing floats, those at ``sources``, for constants, or has ``failed`` on them."""

    def __init__(self, sources: set[Source], failed: BackendCompilerFailed | None = None) -> None:
        super().__init__(sources)
        self.sources = sources
        self.failed = failed


def _shielded(compiled: Any) -> Any:
    """The compiled graph, out of reach of the evaluation hook, with what it calls of the program's (``autograd.Function.forward``)."""
    owner = getattr(compiled, "__self__", None)
    if isinstance(owner, torch.fx.GraphModule) and isinstance(compiled, types.MethodType) and not any(map(_is_programs, owner.graph.nodes)):
        _native.set_skip(compiled.__func__.__code__, True)
        return compiled

    return _native.Shielded(compiled)


def _is_programs(node: torch.fx.Node) -> bool:
    """Whether the node may run code of the program's."""
    if node.op != "call_function":
        return node.op == "call_module"
    target: Any = node.target
    if isinstance(target, (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)):
        return False
    if isinstance(target, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return is_operator_of_program(node)
    home = getattr(target, "__module__", None) or ""
    return not home.startswith("torch.") and home != "torch" or home.startswith(("torch.autograd", "torch._library"))


def _guard_aliases(state: TraceState) -> None:
    """Objects that the trace changed must not turn out to be the same as others that it took for distinct."""
    changed = {type(getattr(t, "value", None)) for t in state.mutated.values() if t.source is not None}
    groups: dict[type, list[Source]] = {}
    for tracker in state.by_id.values():
        value = getattr(tracker, "value", None)
        if tracker.source is not None and type(value) in changed and tracker.source.root().access != "CONST":
            groups.setdefault(type(value), []).append(tracker.source)
    for sources in groups.values():
        if len(sources) > 1:
            state.guards.add(Source("NONE"), "NOALIAS", tuple(sources))
