"""What the process has captured so far: conversions, breaks, graphs, hooks.

Only numbers and text are kept here, never objects of the program. Listeners of ``events`` see more while they are switched on.
"""

from __future__ import annotations

import itertools
import time
import types
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from .. import events
from ..bytecode.code import qualified_name
from ..errors import GraphBreak
from ..interp.frame import origin_of
from ..model.guards import spelled
from ..native.calibrate import tensor_spec
from .codes import CodeTable

BREAKS: list[GraphBreak] = []
CAPTURES: list[Capture] = []
STATS: dict[str, int] = {"graphs": 0, "graph_ops": 0, "graph_breaks": 0}
WARNED = CodeTable()
CONVERSIONS = CodeTable()  # entries made, dead ones too
_HOOKS: list[Callable[[types.CodeType, types.CodeType], types.CodeType | None]] = []
Lines = set[tuple[types.CodeType, int]]
_frames, _numbers = itertools.count(), itertools.count()

PHASES = ("trace", "emit", "backend", "guards")  # in the order in which they happen


class Recompile(NamedTuple):
    """Why a call fitted no entry: the guard that failed of the entry used last. ``found`` is what was there instead."""

    parent: int  # number of the capture that made that entry
    guard: str
    cause: str
    found: str


class Capture:
    """One conversion of one frame: how it went and what it cost.

    Attributes:
        number: place in the order of the process, from 0; ``frame`` numbers functions, ``index`` their captures.
        name, filename, line: of the function; for a resume function those of the function that it belongs to.
        resume: the line at which a resume function goes on, else 0.
        started: ``time.perf_counter()``; ``phases`` maps a name of ``PHASES`` to seconds.
        attempts: how often the frame was traced; each break traces it once more.
        outcome: ``"entry"``, ``"eager"`` (the frame runs as it is from now on) or ``"error"``.
        broken: the break that ended the graph, or that left the whole frame in eager mode.
        info: weak reference to the ``EntryInfo``; None as long as there is no entry.
    """

    __slots__ = ("number", "frame", "index", "name", "filename", "line", "resume", "started", "phases", "attempts", "outcome", "broken",
                 "graph", "op_count", "guard_count", "recompile", "info", "code", "_at", "__weakref__")

    def __init__(self, code: types.CodeType, frame: int, index: int, shown: types.CodeType | None = None) -> None:
        origin = shown or origin_of(code)
        self.number = next(_numbers)
        self.frame, self.index = frame, index
        self.name, self.filename, self.line = qualified_name(origin), origin.co_filename, origin.co_firstlineno
        self.resume = 0 if shown or origin is code else _first_line(code)
        self.phases: dict[str, float] = dict.fromkeys(PHASES, 0.0)
        self.attempts = 0
        self.outcome = "error"
        self.broken: GraphBreak | None = None
        self.graph = ""  # name of the compiled function, "" if there is no graph
        self.op_count = self.guard_count = 0
        self.recompile: Recompile | None = None
        self.info: Any = lambda: None
        self.code = weakref.ref(code)
        self.started = self._at = time.perf_counter()

    def spent(self, phase: str) -> None:
        """All time since the last call belongs to ``phase``."""
        now = time.perf_counter()
        spent = now - self._at
        self.phases[phase] += spent
        self._at = now
        events.publish(events.PhaseEnded(self, phase, spent))

    def entered(self, info: Any, guard_count: int) -> None:
        """An entry was made: the conversion has come to its end."""
        self.spent("guards")
        self.outcome = "entry"
        self.info = weakref.ref(info)
        self.guard_count = guard_count


def _first_line(code: types.CodeType) -> int:
    """Where a resume function goes on. Its first instruction, RESUME, has the line of the ``def``."""
    return next((line for _, _, line in code.co_lines() if line and line != code.co_firstlineno), code.co_firstlineno)


def begin(code: types.CodeType, entries: list, args: tuple, fn: Any) -> Capture:
    """A new record for a conversion of ``code``, which has ``entries`` that do not fit the call."""
    known = entries[0].info.capture if entries else None
    shows = fn.__dict__.get("_framegraft_shows")
    shown = shows(*args) if shows is not None else None  # the function of the user that this one only calls
    code_shown = shown.__code__ if type(shown) is types.FunctionType else None
    capture = Capture(code, next(_frames) if known is None else known.frame, len(entries), code_shown)
    if entries:
        capture.recompile = _why_again(entries[0], args, fn)
    CAPTURES.append(capture)
    events.publish(events.CaptureStarted(capture, fn, args))
    if entries:
        events.publish(events.Recompiled(capture, fn, args, entries))
    return capture


def end(capture: Capture) -> None:
    events.publish(events.CaptureEnded(capture))


def _why_again(entry: Any, args: tuple, fn: Any) -> Recompile | None:
    """What the entry that was used last has against the call."""
    failed = entry.program.explain(args, fn)
    if failed is None:
        return None
    text = entry.info.describe(failed[0])
    guard, _, cause = text.rpartition("  # ") if failed[0] >= 0 else (text, "", "")
    return Recompile(entry.info.capture.number, guard, cause, describe(failed[1]))


def describe(value: Any) -> str:
    """A few words about an object, without calling code of the program."""
    kind = type(value)
    if kind in (int, float, bool, str, bytes, type(None), complex):
        text = spelled(value)
        return text if len(text) <= 80 else text[:77] + "..."
    if issubclass(type(value), torch.Tensor):
        return repr(tensor_spec(value)) if kind in (torch.Tensor, torch.nn.Parameter) else f"a {kind.__qualname__}"
    if kind is torch.Size or kind in (torch.dtype, torch.device):
        return str(value)
    if kind in (list, tuple, dict, set, frozenset):
        return f"a {kind.__name__} of {len(value)}"
    if kind in (types.FunctionType, types.BuiltinFunctionType, types.MethodType):
        return f"function {value.__qualname__}"
    if kind is types.ModuleType:
        return f"module {value.__name__}"
    if issubclass(type(value), type):
        return f"class {type.__getattribute__(value, '__qualname__')}"
    return f"a {kind.__module__}.{kind.__qualname__} at {id(value):#x}"


def note_break(broken: GraphBreak, capture: Capture) -> None:
    broken.settle()
    BREAKS.append(broken)
    STATS["graph_breaks"] += 1
    capture.broken = broken
    events.publish(events.GraphBroken(capture, broken))


def note_graph(module: Any, capture: Capture, name: str) -> None:
    count = sum(n.op.startswith("call_") for n in module.graph.nodes)
    STATS["graphs"] += 1
    STATS["graph_ops"] += count
    capture.graph = name
    capture.op_count += count


def forget(captures: list[Capture]) -> None:
    """Take conversions that were made for a look out of the books."""
    gone = set(map(id, captures))
    broken = {id(c.broken) for c in captures if c.broken is not None}
    CAPTURES[:] = [c for c in CAPTURES if id(c) not in gone]
    BREAKS[:] = [b for b in BREAKS if id(b) not in broken]
    STATS["graphs"] -= sum(bool(c.graph) for c in captures)
    STATS["graph_ops"] -= sum(c.op_count for c in captures)
    STATS["graph_breaks"] -= len(broken)


def clear() -> None:
    global _frames, _numbers
    _frames, _numbers = itertools.count(), itertools.count()
    BREAKS.clear()
    CAPTURES.clear()
    WARNED.clear()
    CONVERSIONS.clear()
    for key in STATS:
        STATS[key] = 0


def register_bytecode_hook(hook: Callable[[types.CodeType, types.CodeType], types.CodeType | None]) -> Any:
    """Call ``hook(old_code, new_code)`` for each transformed code; a code object that it returns is used instead.

    Returns a handle with ``remove()``.
    """
    if not callable(hook):
        raise TypeError(f"hook must be callable (old_code, new_code) -> code | None, not {type(hook).__name__}")
    _HOOKS.append(hook)
    return _Handle(hook)


class _Handle:
    def __init__(self, hook: Any) -> None:
        self._hook = hook

    def remove(self) -> None:
        if self._hook in _HOOKS:
            _HOOKS.remove(self._hook)


def has_bytecode_hooks() -> bool:
    return bool(_HOOKS)


def apply_bytecode_hooks(old: types.CodeType, new: types.CodeType) -> types.CodeType:
    for hook in _HOOKS:
        replaced = hook(old, new)
        if replaced is not None:
            new = replaced
    return new
