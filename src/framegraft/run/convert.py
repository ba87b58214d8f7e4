"""Converting a frame: trace, graph, backend, transformed code, guards, cache entry. The way of a miss."""

from __future__ import annotations

import contextlib
import dis
import io
import itertools
import sys
import threading
import types
import warnings
from typing import Any

import torch

from .. import _native, config, log
from ..backends.aliasing import compile_changing
from ..backends.registry import call_backend
from ..backends.tracing import wants_fixed_floats
from ..bytecode.encode import encode
from ..bytecode.ir import Instruction
from ..emit.output import Segment
from ..emit.resume import origin_of
from ..errors import (
    BackendCompilerFailed,
    FramegraftError,
    GraphBreak,
    InternalError,
    RecompileLimitExceeded,
    Unsupported,
    UserRaise,
)
from ..interp import frame as frames
from ..interp import rules, unwind  # noqa: F401 - the rules register themselves
from ..interp.state import TraceState
from ..model.guards import ProgramBuilder
from ..model.source import BUILTINS, GLOBALS, Source, closure_cell, local
from ..model.value import MISSING, CellVariable, LazyVariable
from ..native.calibrate import ensure_calibrated, tensor_spec
from ..semantics import calls, functions, methods  # noqa: F401 - handlers register themselves
from ..semantics.wrapping import VariableBuilder
from ..tensor import autograd, modules, torchops  # noqa: F401
from ..tensor.graph import OutputGraph
from ..tensor.modes import Modes
from ..tensor.policy import Policy
from . import records, skip
from .checks import CheckFunction, EntryInfo
from .names import InstalledName

calls.SKIP.append(skip.inline_reason)
_counter = itertools.count()
_pins = itertools.count(1)
_lock = threading.RLock()
MAX_ATTEMPTS = 40


def reset_counter() -> None:
    """Numbers in names start at zero again. A name that running code still uses is left out."""
    global _counter
    _counter = itertools.count()


def convert(ctx: Any, fn: types.FunctionType, args: tuple) -> Any:
    """A new cache entry for calling ``fn`` with its flat parameters ``args``, None to run ``fn`` as it is."""
    if not _lock.acquire(blocking=False):
        _lock.acquire()
        found = _made_meanwhile(ctx, fn, args)
        if found is not None:
            _lock.release()
            return found
    try:
        return _convert(ctx, fn, args)
    finally:
        _lock.release()


def _made_meanwhile(ctx: Any, fn: types.FunctionType, args: tuple) -> Any:
    """The entry that another thread made while this one waited for it."""
    for entry in _native.cache_entries(fn.__code__):
        if entry.ctx is ctx and entry.globals is fn.__globals__ and entry.program.check(args, fn):
            return entry
    return None


def _convert(ctx: Any, fn: types.FunctionType, args: tuple) -> Any:
    code = fn.__code__
    if code.co_flags & (frames.CO_GENERATOR | frames.CO_COROUTINE | frames.CO_ASYNC_GENERATOR):
        _native.set_skip(code, None, True)
        return None
    entries = [e for e in _native.cache_entries(code) if e.ctx is ctx]
    if entries:
        _log_recompile(code, entries, args, fn)
        if config.error_on_recompile:
            raise RecompileLimitExceeded(f"{code.co_name}: recompiled while config.error_on_recompile is set")
    if len(entries) >= config.cache_size_limit:
        return _over_limit(ctx, code, len(entries))
    looks = _looks_at_frame(origin_of(code))
    if looks:
        broken = GraphBreak("introspection", f"a function that may look at its own frame: {', '.join(looks)}")
        broken.user_stack = [(code.co_filename, code.co_firstlineno, code.co_name)]
        if ctx.fullgraph:
            raise Unsupported.from_break(broken)
        records.note_break(broken, code)
        _native.set_skip(code, None, True)
        return None
    ensure_calibrated()
    try:
        return Conversion(ctx, fn, args).run()
    except GraphBreak as broken:
        if ctx.fullgraph:
            raise Unsupported.from_break(broken) from None
        records.note_break(broken, code)
        _native.set_skip(code, None, True)
        return None
    except FramegraftError as error:
        if isinstance(error, BackendCompilerFailed) and config.suppress_errors:
            warnings.warn(f"{error}; the frame runs in eager mode", stacklevel=3)
            _native.set_skip(code, None, True)
            return None
        raise
    except UserRaise as raised:
        raise InternalError(f"an exception of the traced program escaped: {raised.value.python_type()}") from raised
    except Exception as error:
        if config.raise_internal_errors or ctx.fullgraph:
            raise InternalError(f"{type(error).__name__}: {error} (while capturing {code.co_qualname})") from error
        warnings.warn(
            f"framegraft: internal error while capturing {code.co_qualname}: {type(error).__name__}: {error}; the function "
            "runs in eager mode. Please report this.",
            stacklevel=3,
        )
        _native.set_skip(code, None, True)
        return None


def _over_limit(ctx: Any, code: types.CodeType, count: int) -> None:
    if ctx.fullgraph:
        raise RecompileLimitExceeded(f"{code.co_qualname} has {count} entries (config.cache_size_limit)")
    if code not in records.WARNED:
        records.WARNED.add(code)
        text = (f"framegraft: {code.co_qualname} ({code.co_filename}:{code.co_firstlineno}) hit cache_size_limit "
                f"({config.cache_size_limit}); further calls that fit no entry run in eager mode")
        warnings.warn(text, stacklevel=4)
    return None


def _log_recompile(code: types.CodeType, entries: list, args: tuple, fn: Any) -> None:
    if not log.enabled("recompiles"):
        return
    logger = log.artifact("recompiles")
    for entry in entries:
        failed = entry.program.explain(args, fn)
        if failed is not None:
            logger.debug("Recompiling function %s in %s:%s; failed guard: %s", code.co_name, code.co_filename,
                         code.co_firstlineno, entry.info.describe(failed[0]))


class Conversion:
    """One frame on its way to an entry."""

    def __init__(self, ctx: Any, fn: types.FunctionType, args: tuple) -> None:
        self.ctx = ctx
        self.fn = fn
        self.args = args
        self.code = fn.__code__
        self.installed: list[InstalledName] = []
        self.planned: dict[int, GraphBreak] = {}
        self.leaving: list[GraphBreak] = []  # breaks that only let an exception of the program out
        self.graph_module: Any = None
        self.modes = Modes()
        self.rescue = True
        self.fixed_floats = False
        self.earlier = [e.info.seen for e in _native.cache_entries(self.code) if e.ctx is ctx]

    def run(self) -> Any:
        for _attempt in range(MAX_ATTEMPTS):
            try:
                again = self._attempt()
            except BackendCompilerFailed as failed:
                if self.fixed_floats or not wants_fixed_floats(failed.__cause__):
                    raise
                self.fixed_floats = True
                continue
            if again is not AGAIN:
                return again
        raise GraphBreak("skipped_frame", f"no end after {MAX_ATTEMPTS} attempts")

    # -- one attempt

    def _attempt(self) -> Any:
        recursion = sys.getrecursionlimit()
        rng = torch.get_rng_state()
        sys.setrecursionlimit(max(recursion, 20_000))
        state, root = self._start()
        try:
            try:
                kind, value = root.run()
            except GraphBreak as broken:
                return self._broken(state, root, broken)
            except UserRaise as raised:
                leaving = GraphBreak("raised_exception", f"{raised.value.python_type().__name__} leaves the frame")
                self.leaving.append(leaving)
                return self._plan(root, leaving)
            assert kind == "return"
            if self._unsafe(state):
                return AGAIN
            segment = self._segment(state, root)
            state.frames.append(root)
            try:
                instructions = segment.finish_return(value)
            except GraphBreak as broken:
                return self._broken(state, root, broken, at_end=True)
            return self._entry(state, root, instructions, None)
        finally:
            nesting = state.graph.nesting
            state.release()
            self.modes.restore()
            for _ in range(abs(nesting)):
                (torch.autocast_decrement_nesting if nesting > 0 else torch.autocast_increment_nesting)()
            torch.set_rng_state(rng)
            sys.setrecursionlimit(recursion)

    def _start(self) -> tuple[TraceState, frames.RootTranslator]:
        policy = Policy(self.ctx.dynamic, self.earlier, config)
        if self.fixed_floats:
            policy.fix_floats()
        state = TraceState(OutputGraph(policy, config), config)
        state.graph.where = state.where
        state.tensor_spec = tensor_spec  # type: ignore[attr-defined]
        state.builder = VariableBuilder(state)
        code, fn = self.code, self.fn
        scope = state.scope(fn.__globals__, GLOBALS, BUILTINS)
        root = frames.RootTranslator(state, code, scope, frames.instructions_of(code))
        root.stop_at = self.planned
        state.root = root
        count = len(self.args)
        state.parameters = list(code.co_varnames[:count])
        state.rescue = self.rescue
        bound: dict[str, Any] = {
            name: LazyVariable(value, local(index, name))
            for index, (name, value) in enumerate(zip(code.co_varnames[:count], self.args, strict=True))
        }
        closure = [self._free_cell(state, i, name, cell)
                   for i, (name, cell) in enumerate(zip(code.co_freevars, fn.__closure__ or (), strict=True))]
        calls.start_frame(root, code, bound, closure)
        state.guards.add(Source("STATE"), "STATE", _native.global_state())
        return state, root

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

    def _plan(self, root: frames.RootTranslator, broken: GraphBreak, step: int | None = None) -> Any:
        """Trace again, and break before the instruction that the root frame is at."""
        at = root.steps - 1 if step is None else step
        if at in self.planned or at < 0:
            raise broken
        broken.user_stack = broken.user_stack or self._where(root.state, root)
        broken.__traceback__ = broken.__context__ = None
        self.planned = {**self.planned, at: broken}
        return AGAIN

    def _unsafe(self, state: TraceState) -> bool:
        """Whether the trace counted on running again where the graph cannot be: the next attempt does not."""
        if not state.rescued or not self.rescue or state.graph.repeatable():
            return False
        self.rescue = False
        self.planned = {}
        return True

    def _broken(self, state: TraceState, root: frames.RootTranslator, broken: GraphBreak, at_end: bool = False) -> Any:
        planned = broken in self.planned.values()
        if not broken.user_stack:
            broken.user_stack = self._where(state, root)
        if self.ctx.fullgraph and broken.reason != "unreconstructible_value" and broken not in self.leaving:
            raise Unsupported.from_break(broken) from None
        if at_end:
            # A value that cannot be rebuilt is alive: stop earlier, before the call that made it.
            return self._earlier(root, broken)
        at_clean_instruction = planned or broken.reason == "forced_break"
        inst = root.inst
        if not at_clean_instruction:
            return self._plan(root, broken)
        if self._unsafe(state):
            return AGAIN
        segment = self._segment(state, root)
        state.frames.append(root)
        try:
            instructions = segment.finish_break(inst)
        except GraphBreak as worse:
            if worse.reason == "unreconstructible_value":
                return self._earlier(root, worse)
            raise worse from None
        records.note_break(broken, self.code)
        _log_break(broken)
        return self._entry(state, root, instructions, broken)

    def _earlier(self, root: frames.RootTranslator, broken: GraphBreak) -> Any:
        """Break one root instruction earlier than at the last attempt."""
        latest = min(self.planned) if self.planned else root.steps
        step = latest - 1
        while step >= 0 and step in self.planned:
            step -= 1
        if step < 0:
            raise broken
        self.planned = {step: broken}
        return AGAIN

    def _where(self, state: TraceState, root: frames.RootTranslator) -> list:
        return [(root.code.co_filename, root.line(), root.code.co_name)]

    # -- emission

    def _segment(self, state: TraceState, root: frames.RootTranslator) -> Segment:
        return Segment(state, root, self._install, self._compile_graph, self._make_resume)

    def _install(self, hint: str, obj: Any) -> str:
        """A name of ``obj`` in the function's globals, never used for another object: an old entry's code may still run."""
        name = f"__fg{hint}_{next(_pins)}"
        self.installed.append(InstalledName(self.fn.__globals__, name, obj))
        return name

    def _compile_graph(self, module: Any, inputs: list, changed: list[bool], symbols: Any) -> str:
        name = self._fresh("__compiled_fn")
        module.__class__.__name__ = name
        self.graph_module = module
        if log.enabled("graph"):
            log.artifact("graph").debug("%s\n%s", name, log.graph_table(module.graph))
        if log.enabled("graph_code"):
            log.artifact("graph_code").debug("%s\n%s", name, module.code)
        modes = Modes()
        self.modes.restore()
        try:
            values = [t.value for t in inputs]
            with symbols.only_inputs() if symbols is not None else contextlib.nullcontext():
                if any(changed):
                    compiled = compile_changing(self.ctx.compiler, module, values, changed)
                else:
                    compiled = call_backend(self.ctx.compiler, module, values)
        finally:
            modes.restore()
        records.note_graph(module)
        self.installed.append(InstalledName(self.fn.__globals__, name, _shielded(compiled)))
        return name

    def _fresh(self, prefix: str) -> str:
        while (name := f"{prefix}_{next(_counter)}") in self.fn.__globals__:
            pass
        return name

    def _make_resume(self, code: types.CodeType, offset: int) -> str:
        key = (code, id(self.fn.__globals__))
        known = self.ctx.resumes.get(key)
        if known is not None and known.scope is self.fn.__globals__:
            self.installed.append(known)
            return known.name
        name = self._fresh(f"__resume_at_{offset}")
        function = types.FunctionType(code, self.fn.__globals__, code.co_name)
        function.__module__ = self.fn.__module__
        resume = InstalledName(self.fn.__globals__, name, _native.CompiledFunction(function, self.ctx, self.ctx.miss))
        self.ctx.resumes[key] = resume
        self.installed.append(resume)
        return name

    def _entry(self, state: TraceState, root: Any, instructions: list[Instruction], broken: GraphBreak | None) -> Any:
        code = self.code
        argnames = list(code.co_varnames[: len(self.args)])
        line = root.line() if broken is not None else code.co_firstlineno
        for inst in instructions:
            if inst.positions is None or inst.positions[0] is None:
                inst.positions = (line, None, None, None)  # a frame without a line breaks those who print tracebacks
        new_code = encode(instructions, code, argnames=argnames, cellvars=(),
                          flags=code.co_flags & ~(frames.CO_VARARGS | frames.CO_VARKEYWORDS))
        new_code = records.apply_bytecode_hooks(code, new_code)
        guards = state.guards
        _guard_aliases(state)
        if len(guards.tensors) > 1:
            guards.add(Source("NONE"), "NOALIAS", tuple(guards.tensors))
        if state.graph.symbols is not None:
            for expression, cause in state.graph.symbols.guards():
                guards.add(Source("NONE"), "SHAPE", expression, cause)
            state.graph.symbols.env.freeze()  # a backward compiled later must not assume more
        found = guards.finish()
        program = _native.GuardProgram(ProgramBuilder(found).build())
        info = EntryInfo(self.graph_module, broken, state.graph.policy.seen)
        new_code = new_code.replace(co_consts=(*new_code.co_consts, *self.installed))
        _native.set_skip(new_code, None, True)
        entry = _native.Entry(program, new_code, self.fn.__globals__, self.ctx, info, needs_hook=broken is not None)
        info.check_fn = CheckFunction(program, found, argnames, self.fn)
        _log_code(self.code, new_code, found)
        if config.verify_guards_on_creation:
            self.modes.restore()  # the trace may have left the program's own mode behind
            failed = program.explain(self.args, self.fn)
            if failed is not None:
                raise InternalError(f"a guard fails on the frame that made it: {info.describe(failed[0])}, found {failed[1]!r:.200}")
        _native.add_entry(code, entry)
        return entry


AGAIN: Any = object()


def _shielded(compiled: Any) -> Any:
    """The compiled graph, out of reach of the evaluation hook."""
    owner = getattr(compiled, "__self__", None)
    if isinstance(owner, torch.fx.GraphModule) and isinstance(compiled, types.MethodType):
        _native.set_skip(compiled.__func__.__code__, None, True)
        return compiled

    def run_compiled(*args: Any) -> Any:
        old = _native.set_mode(2, None, None)
        try:
            return compiled(*args)
        finally:
            _native.set_mode(*old)

    run_compiled.__wrapped__ = compiled  # type: ignore[attr-defined]
    _native.set_skip(run_compiled.__code__, None, True)
    return run_compiled


# Functions that see the calling frame, which transformed code cannot imitate: builtins, and those found in modules.
_FRAME_BUILTINS = frozenset(("locals", "globals", "eval", "exec", "vars", "dir"))
_FRAME_FUNCTIONS = frozenset(("_getframe", "currentframe"))


def _looks_at_frame(code: types.CodeType) -> list[str]:
    """Names by which the code may ask for its own frame. ``vars`` and ``dir`` do so only without arguments."""
    if (_FRAME_BUILTINS | _FRAME_FUNCTIONS).isdisjoint(code.co_names):
        return []
    found = set()
    instructions = frames.instructions_of(code)
    for inst, after in zip(instructions, [*instructions[1:], None], strict=True):
        if inst.op in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_ATTR", "IMPORT_FROM") and inst.arg in _FRAME_FUNCTIONS:
            found.add(inst.arg)
        elif inst.op in ("LOAD_GLOBAL", "LOAD_NAME") and inst.arg in _FRAME_BUILTINS:
            if inst.arg not in ("vars", "dir") or after is None or after.op == "CALL" and not after.arg[0]:
                found.add(inst.arg)
    return sorted(found)


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



def _log_break(broken: GraphBreak) -> None:
    if log.enabled("graph_breaks"):
        log.artifact("graph_breaks").debug("%s", Unsupported.from_break(broken))


def _log_code(code: types.CodeType, new_code: types.CodeType, guards: list) -> None:
    if log.enabled("bytecode"):
        for title, shown in (("ORIGINAL", code), ("MODIFIED", new_code)):
            text = io.StringIO()
            dis.dis(shown, file=text)
            log.artifact("bytecode").debug(
                "%s BYTECODE %s %s line %s\n%s", title, code.co_name, origin_of(code).co_filename, code.co_firstlineno,
                text.getvalue(),
            )
    if log.enabled("guards"):
        log.artifact("guards").debug("GUARDS:\n%s", "\n".join(g.code() for g in guards))
