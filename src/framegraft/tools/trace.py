"""FRAMEGRAFT_TRACE=file: every event as a line of JSON. ``docs/trace.md`` tells what the lines hold."""

from __future__ import annotations

import atexit
import json
import os
import pathlib
import threading
import time
from typing import Any, TextIO

from .. import events
from ..run import records
from .details import Break


class TraceFile(events.Listener):
    """``with TraceFile("trace.jsonl"): ...`` appends a line for each event inside, written out at once."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = pathlib.Path(path).resolve()
        self._file: TextIO | None = None
        self._start = 0.0
        self._lock = threading.Lock()

    def __enter__(self) -> TraceFile:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self.path.open("a", encoding="utf-8")
        self._start = time.perf_counter()
        self._write({"event": "trace_started", "time": 0.0, "pid": os.getpid(), "epoch": time.time()})
        return events.subscribe(self)

    def __exit__(self, *exc_info: Any) -> None:
        events.unsubscribe(self)
        if self._file is not None:
            self._file.close()
            self._file = None

    def on(self, event: events.Event) -> None:
        c = event.capture
        found = {"event": event.kind, "time": time.perf_counter() - self._start, "thread": threading.get_ident(),
                 "capture": c.number, "frame": c.frame, "index": c.index}
        self._write(found | _MORE[type(event)](event))

    def _write(self, line: dict[str, Any]) -> None:
        with self._lock:
            if self._file is not None:
                self._file.write(json.dumps(line) + "\n")
                self._file.flush()


def _started(event: Any) -> dict[str, Any]:
    c = event.capture
    return {"function": c.name, "filename": c.filename, "line": c.line, "resume": c.resume}


def _recompiled(event: Any) -> dict[str, Any]:
    why = event.capture.recompile
    if why is None:
        return {"parent": None, "guard": None, "cause": None, "found": None}
    return {"parent": why.parent, "guard": why.guard, "cause": why.cause, "found": why.found}


def _phase(event: Any) -> dict[str, Any]:
    return {"phase": event.phase, "seconds": event.seconds}


def _broken(event: Any) -> dict[str, Any]:
    shown = Break.of(event.broken)
    return {"reason": shown.reason, "detail": shown.detail, "stack": [list(entry) for entry in shown.stack]}


def _operations(module: Any) -> int:
    return sum(node.op.startswith("call_") for node in module.graph.nodes)


def _traced(event: Any) -> dict[str, Any]:
    return {"graph": event.name, "operations": _operations(event.module)}


def _compiled(event: Any) -> dict[str, Any]:
    return {"graph": event.name, "operations": _operations(event.module), "inputs": [records.describe(v) for v in event.inputs]}


def _entry(event: Any) -> dict[str, Any]:
    return {"guards": len(event.guards)}


def _failed(event: Any) -> dict[str, Any]:
    graph = event.graph[0] if event.graph is not None else None
    return {"error": type(event.error).__name__, "text": str(event.error), "suppressed": event.suppressed, "graph": graph,
            "notes": list(event.notes)}


def _ended(event: Any) -> dict[str, Any]:
    c = event.capture
    return {"outcome": c.outcome, "seconds": sum(c.phases.values()), "phases": dict(c.phases), "attempts": c.attempts,
            "graph": c.graph or None, "operations": c.op_count, "guards": c.guard_count}


_MORE = {
    events.CaptureStarted: _started, events.Recompiled: _recompiled, events.PhaseEnded: _phase, events.GraphBroken: _broken,
    events.GraphTraced: _traced, events.GraphCompiled: _compiled, events.EntryMade: _entry, events.CaptureFailed: _failed,
    events.CaptureEnded: _ended,
}


def start_from_environment(path: str) -> None:
    """Trace the whole process. ``%p`` in the path is the process's number."""
    trace = TraceFile(path.replace("%p", str(os.getpid())))
    trace.__enter__()
    atexit.register(trace.__exit__)
