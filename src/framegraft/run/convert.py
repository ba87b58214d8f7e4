"""Converting a frame: trace, graph, backend, transformed code, guards, cache entry. The way of a miss."""

from __future__ import annotations

import threading
import types
import warnings
from typing import Any

import torch

from .. import _native, config, log
from ..bytecode.code import qualified_name
from ..emit.resume import raising_code
from ..errors import (
    BackendCompilerFailed,
    FramegraftError,
    GraphBreak,
    InternalError,
    NotYet,
    Place,
    RecompileLimitExceeded,
    Unsupported,
    UserRaise,
)
from ..interp import branches, building, matching, rules, unwind  # noqa: F401 - the rules register themselves
from ..interp import frame as frames
from ..interp.frame import origin_of
from ..native.calibrate import ensure_calibrated
from ..semantics import (  # noqa: F401 - handlers register themselves
    cached,
    calls,
    catching,
    class_checks,
    constructors,
    copies,
    deques,
    dict_methods,
    drawing,
    formatting,
    functions,
    heaps,
    inlining,
    lazy,
    library,
    locks,
    loggers,
    mappings,
    methods,
    named_tuples,
    object_methods,
    own_keys,
    patterns,
    protocols,
    randoms,
    set_methods,
    sorting,
    warned,
    weak,
    wrappers,
)
from ..tensor import (  # noqa: F401 - handlers register themselves
    annotations,
    autograd,
    checkpoint,
    checks,
    classes,
    control_flow,
    copying,
    devices,
    distributions,
    drawn,
    floats,
    forward_ad,
    hooks,
    inference,
    literal,
    module_hooks,
    modules,
    numpy,
    optim,
    overrides,
    rebound,
    saved,
    stateless,
    torchops,
    transforms,
    values,
)
from ..tensor.modes import no_saved_tensor_hooks
from . import recompiles, records
from .conversion import Conversion

_lock = threading.RLock()


def convert(ctx: Any, fn: types.FunctionType, args: tuple) -> Any:
    """A new cache entry for calling ``fn`` with its flat parameters ``args``, None to run ``fn`` as it is."""
    if torch._C._get_tracing_state() is not None:
        return None  # torch.jit.trace writes down each operation, those of a capture too, and sizes are tensors to it
    if not _lock.acquire(blocking=False):
        _lock.acquire()
        found = _made_meanwhile(ctx, fn, args)
        if found is not None:
            _lock.release()
            return found
    try:
        with no_saved_tensor_hooks():
            return _convert(ctx, fn, args)
    finally:
        _lock.release()


def raising(ctx: Any, fn: types.FunctionType, error: BaseException) -> Any:
    """An entry, for one call, that raises ``error`` where the rest of a frame would go on; None where ``fn`` is a whole function."""
    code = raising_code(fn.__code__, error)
    return None if code is None else _native.Entry(_native.GuardProgram([]), code, fn.__globals__, ctx, unhooked=True)


def _made_meanwhile(ctx: Any, fn: types.FunctionType, args: tuple) -> Any:
    """The entry that another thread made while this one waited for it."""
    for entry in _native.cache_entries(fn.__code__):
        if entry.ctx is ctx and entry.globals is fn.__globals__ and entry.program.check(args, fn):
            return entry
    return None


def _convert(ctx: Any, fn: types.FunctionType, args: tuple) -> Any:
    code = fn.__code__
    if code.co_flags & (frames.CO_GENERATOR | frames.CO_COROUTINE | frames.CO_ASYNC_GENERATOR):
        _native.set_skip(code, True)
        kind = "coroutine" if code.co_flags & frames.CO_COROUTINE else "generator"
        return _left_alone(ctx, fn, args, GraphBreak("skipped_frame", f"a {kind} function: its frame lives on between calls"))
    entries = [e for e in _native.cache_entries(code) if e.ctx is ctx]
    if entries:
        if config.error_on_recompile:
            why = "\n".join(recompiles.reasons(fn, entries, args))
            raise RecompileLimitExceeded(f"{code.co_name}: recompiled while config.error_on_recompile is set\n{why}")
    if len(entries) >= config.cache_size_limit:
        return _over_limit(ctx, fn, args, entries, len(entries), "cache_size_limit")
    if len(entries) >= config.graphless_cache_size_limit and not ctx.fullgraph and not _has_graphs(code, set()):
        _native.set_skip(code, True)
        return _left_alone(ctx, fn, args, GraphBreak("skipped_frame", f"{len(entries)} entries, none with a tensor operation"), entries)
    if records.CONVERSIONS[code] >= config.accumulated_cache_size_limit:
        return _over_limit(ctx, fn, args, entries, records.CONVERSIONS[code], "accumulated_cache_size_limit")
    capture = records.begin(code, entries, args, fn)
    try:
        ensure_calibrated()
        with log.compile_id(capture.frame, capture.index):
            return _recorded(ctx, fn, args, capture)
    finally:
        records.end(capture)


def _recorded(ctx: Any, fn: types.FunctionType, args: tuple, capture: records.Capture) -> Any:
    code = fn.__code__
    conversion = Conversion(ctx, fn, args, capture)
    try:
        looks = _looks_at_frame(origin_of(code))
        if looks:
            broken = GraphBreak("introspection", f"a function that may look at its own frame: {', '.join(looks)}")
            broken.user_stack = [Place((code.co_filename, code.co_firstlineno, code.co_name))]
            raise broken
        return conversion.run()
    except NotYet as broken:
        broken.settle()
        capture.outcome = "eager"
        return None
    except GraphBreak as broken:
        if ctx.fullgraph:
            raise Unsupported.from_break(broken) from None
        records.note_break(broken, capture)
        capture.outcome = "eager"
        _native.set_skip(code, True)
        return None
    except InternalError as error:  # a guard that does not hold, for one: what an object from outside does changed while it was captured
        return _left_to_eager_mode(ctx, conversion, capture, code, error, error)
    except FramegraftError as error:
        suppressed = isinstance(error, BackendCompilerFailed) and config.suppress_errors
        notes = conversion.failed(error, suppressed)
        if isinstance(error, BackendCompilerFailed) and suppressed:
            warnings.warn("\n  ".join((str(error), "The frame runs in eager mode.", *notes)), stacklevel=4)
            capture.outcome = "eager"
            broken = GraphBreak("backend_failed", f"{error.backend_name}: {error.detail}")
            broken.user_stack = [Place((code.co_filename, code.co_firstlineno, code.co_name))]
            records.note_break(broken, capture)
            _native.set_skip(code, True)
            return None
        raise
    except UserRaise as raised:
        raise InternalError(f"an exception of the traced program escaped: {raised.value.python_type()}") from raised
    except Exception as error:
        raised = InternalError(f"{type(error).__name__}: {error} (while capturing {qualified_name(code)})")
        return _left_to_eager_mode(ctx, conversion, capture, code, error, raised)


def _left_to_eager_mode(ctx: Any, conversion: Conversion, capture: records.Capture, code: types.CodeType, error: Exception,
                        raised: InternalError) -> None:
    """A failure of Framegraft's own: the function runs in eager mode, with a warning. ``raised`` where it is to be seen."""
    suppressed = not config.raise_internal_errors and not ctx.fullgraph
    notes = conversion.failed(error, suppressed)
    if not suppressed:
        raise raised from (None if raised is error else error)
    text = (f"framegraft: internal error while capturing {qualified_name(code)}: {type(error).__name__}: {error}; the function "
            "runs in eager mode. Please report this.")
    warnings.warn("\n  ".join((text, *notes)), stacklevel=5)
    capture.outcome = "eager"
    _native.set_skip(code, True)


def _over_limit(ctx: Any, fn: types.FunctionType, args: tuple, entries: list, count: int, setting: str) -> None:
    code = fn.__code__
    if ctx.fullgraph:
        raise RecompileLimitExceeded(f"{qualified_name(code)} has {count} entries (config.{setting})")
    if code not in records.WARNED:
        records.WARNED[code] = 1
        text = (f"framegraft: {qualified_name(code)} ({code.co_filename}:{code.co_firstlineno}) hit {setting} "
                f"({getattr(config, setting)}); further calls that fit no entry run in eager mode. "
                "framegraft.set_logs(recompiles=True) tells why it was captured so often")
        warnings.warn(text, stacklevel=4)
        _left_alone(ctx, fn, args, GraphBreak("cache_limit", f"{count} entries"), entries)
    return None


def _has_graphs(code: types.CodeType, seen: set[types.CodeType]) -> bool:
    """Whether any entry of a code object, or of the resume functions behind its breaks, has a graph."""
    if code in seen:
        return False
    seen.add(code)
    found = [entry.info for entry in _native.cache_entries(code)]
    return any(info.capture.graph for info in found) or any(_has_graphs(resume, seen) for info in found for resume in info.resumes)


def _left_alone(ctx: Any, fn: types.FunctionType, args: tuple, why: GraphBreak, entries: list | None = None) -> None:
    """Put down that a frame runs in eager mode, and why."""
    code = fn.__code__
    why.user_stack = [Place((code.co_filename, code.co_firstlineno, code.co_name))]
    capture = records.begin(code, entries or [], args, fn)
    capture.outcome = "eager"
    records.note_break(why, capture)
    records.end(capture)


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


inlining.LOOKS_AT_FRAME.append(_looks_at_frame)


