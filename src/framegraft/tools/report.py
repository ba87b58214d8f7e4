"""Reports: everything that was captured as one page, or as data. ``docs/report.md`` tells what the data mean."""

from __future__ import annotations

import atexit
import datetime
import json
import os
import pathlib
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.resources import files
from typing import Any

import torch

from .. import _native, events
from ..bytecode.code import qualified_name
from ..run import records, skip
from . import sources
from .details import Break, Collector, Detail, from_text, meaning, recompilation

VERSION = 1
_MOST_RUNS = 20_000  # calls of graphs in the timeline; all are counted


class Recorder(Collector):
    """``with Recorder() as r: ...; r.write("page.html")``: what is captured inside, with the time that graphs take."""

    def __init__(self, arguments: Sequence[str] = ()) -> None:
        super().__init__()
        self.arguments = list(arguments)
        self.began = datetime.datetime.now(datetime.timezone.utc)
        self.start = time.perf_counter()
        self.stop: float | None = None
        self.runs: list[tuple[int, float, float]] = []  # (capture, begin, seconds)
        self.counts: dict[int, tuple[int, float]] = {}
        self.eager: dict[int, set[int]] = {}

    def __enter__(self) -> Recorder:
        super().__enter__()
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self.stop = time.perf_counter()
        super().__exit__(*exc_info)

    def graph_compiled(self, event: events.GraphCompiled) -> None:
        super().graph_compiled(event)
        event.compiled = self._timed(event.capture.number, event.compiled)

    def _timed(self, number: int, compiled: Callable[..., Any]) -> Callable[..., Any]:
        runs, counts, clock = self.runs, self.counts, time.perf_counter

        def run_timed(*args: Any) -> Any:
            begin = clock()
            try:
                return compiled(*args)
            finally:
                spent = clock() - begin
                count, total = counts.get(number, (0, 0.0))
                counts[number] = (count + 1, total + spent)
                if len(runs) < _MOST_RUNS:
                    runs.append((number, begin, spent))

        return run_timed

    def capture_ended(self, event: events.CaptureEnded) -> None:
        self.left_alone(event.capture)

    def left_alone(self, capture: records.Capture) -> None:
        """Notes the lines of a frame that runs in eager mode."""
        code = capture.code()
        if capture.outcome != "entry" and code is not None:
            self.eager[capture.number] = {line for _, _, line in code.co_lines() if line}

    def data(self) -> dict[str, Any]:
        """Everything the page shows; plain JSON."""
        return _Data(self).build()

    def write(self, path: str | os.PathLike[str], data: dict[str, Any] | None = None) -> pathlib.Path:
        """Write the page, of ``data`` if that has been made; folders are made. Returns its absolute path."""
        target = pathlib.Path(path).resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page(self.data() if data is None else data), encoding="utf-8")
        return target


def page(data: dict[str, Any]) -> str:
    """The self-contained page of a report's data."""
    folder = files("framegraft.tools") / "page"
    text = (folder / "page.html").read_text(encoding="utf-8")
    parts = {
        "/*STYLE*/": (folder / "page.css").read_text(encoding="utf-8"),
        "/*SCRIPT*/": "".join((folder / name).read_text(encoding="utf-8") for name in ("parts.js", "graph.js", "page.js")),
        "/*DATA*/": json.dumps(data, separators=(",", ":")).replace("</", "<\\/").replace("<!--", "<\\u0021--"),
    }
    for mark, part in parts.items():
        text = text.replace(mark, part)
    return text


class _Data:
    """From records to plain data."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.functions: dict[tuple[str, int, str], dict[str, Any]] = {}

    def build(self) -> dict[str, Any]:
        r = self.recorder
        captures = [self._capture(c) for c in r.captures]
        graphs = [self._graph(c, r.detail(c)) for c in r.captures if r.detail(c).module is not None]
        for capture in r.captures:
            self._lines(capture)
        for function in self.functions.values():
            _status(function)
        stop = r.stop if r.stop is not None else time.perf_counter()
        runs = [{"kind": "run", "capture": n, "start": begin - r.start, "seconds": spent} for n, begin, spent in r.runs]
        made = [{"kind": "capture", "capture": c["number"], "start": c["started"], "seconds": c["seconds"]} for c in captures]
        return {
            "version": VERSION,
            "program": {
                "arguments": r.arguments,
                "started": r.began.isoformat(timespec="seconds"),
                "seconds": stop - r.start,
                "python": platform.python_version(),
                "torch": torch.__version__,
                "platform": platform.platform(),
            },
            "totals": {
                "functions": len(self.functions),
                "captures": len(captures),
                "graphs": len(graphs),
                "operations": sum(c["operations"] for c in captures),
                "breaks": sum(c["break"] is not None for c in captures),
                "guards": sum(len(c["guards"]) for c in captures),
                "recompiles": sum(c["recompile"] is not None for c in captures),
                "eager": sum(c["outcome"] != "entry" for c in captures),
                "runs": sum(count for count, _ in r.counts.values()),
                "run_seconds": sum(total for _, total in r.counts.values()),
                "capture_seconds": sum(c["seconds"] for c in captures),
                "phases": {phase: sum(c["phases"][phase] for c in captures) for phase in records.PHASES},
            },
            "functions": sorted(self.functions.values(), key=lambda f: (f["inlined"], f["captures"] or [f["filename"], f["line"]])),
            "captures": captures,
            "graphs": graphs,
            "timeline": sorted(runs + made, key=lambda event: event["start"]),
        }

    def _function(self, filename: str, line: int, name: str) -> dict[str, Any]:
        key = (filename, line, name)
        found = self.functions.get(key)
        if found is None:
            text, first = sources.user_source(filename, line)
            found = self.functions[key] = {
                "id": len(self.functions), "name": name, "filename": filename, "line": first, "source": text.splitlines(),
                "captures": [], "lines": {}, "marks": [], "inlined": True,
            }
        return found

    def _capture(self, c: records.Capture) -> dict[str, Any]:
        detail, r = self.recorder.detail(c), self.recorder
        function = self._function(c.filename, c.line, c.name)
        function["captures"].append(c.number)
        function["inlined"] = False
        text, refused = sources.readable_code(detail.code) if detail.code is not None else ("", "")
        count, total = r.counts.get(c.number, (0, 0.0))
        again = recompilation(c, r)
        return {
            "number": c.number, "function": function["id"], "frame": c.frame, "index": c.index, "resume": c.resume,
            "outcome": c.outcome, "started": c.started - r.start, "seconds": sum(c.phases.values()), "phases": dict(c.phases),
            "attempts": c.attempts, "graph": c.graph or None, "operations": c.op_count,
            "guards": [asdict(g) | {"meaning": meaning(g)} for g in detail.guards],
            "guard_groups": [asdict(g) for g in detail.groups],
            "guard_nanoseconds": detail.nanoseconds,
            "break": asdict(Break.of(c.broken)) if c.broken is not None else None,
            "recompile": asdict(again) if again is not None else None,
            "transformed": text, "refused": refused,
            "runs": count, "run_seconds": total,
        }

    def _graph(self, c: records.Capture, detail: Detail) -> dict[str, Any]:
        return {"name": c.graph, "capture": c.number, "inputs": detail.inputs, "code": sources.graph_text(detail.module),
                "nodes": [_node(node) for node in detail.module.graph.nodes]}

    def _lines(self, c: records.Capture) -> None:
        """What this capture says of lines: traced, run in eager mode, or where it broke."""
        r = self.recorder
        for code, line in r.detail(c).lines:
            if not skip.is_library(code.co_filename):
                origin = records.origin_of(code)
                _note(self._function(origin.co_filename, origin.co_firstlineno, qualified_name(origin)), line, "captured")
        own = self._function(c.filename, c.line, c.name)
        for line in r.eager.get(c.number, ()):
            _note(own, line, "eager")
        if c.broken is None:
            return
        shown = Break.of(c.broken)
        for depth, (filename, line, name) in enumerate(shown.stack):
            if skip.is_library(filename) and len(shown.stack) > 1:
                continue
            function = self._holding(filename, line, name)
            if function is None:
                continue
            innermost = all(skip.is_library(f) for f, _, _ in shown.stack[depth + 1 :])
            if innermost:
                _note(function, line, "break")
            function["marks"].append({"line": line, "capture": c.number, "here": innermost, "reason": shown.reason,
                                      "detail": shown.detail, "why": shown.why, "hint": shown.hint})

    def _holding(self, filename: str, line: int, name: str) -> dict[str, Any] | None:
        around = [f for f in self.functions.values()
                  if f["filename"] == filename and f["line"] <= line < f["line"] + max(1, len(f["source"]))
                  and f["name"].rpartition(".")[2] == name.rpartition(".")[2]]
        return max(around, key=lambda f: f["line"], default=None)


def _note(function: dict[str, Any], line: int, what: str) -> None:
    function["lines"].setdefault(line, set()).add(what)


def _status(function: dict[str, Any]) -> None:
    """One word for each line: break before all, mixed for what was both captured and run in eager mode."""
    words = {}
    for line, found in sorted(function["lines"].items()):
        words[str(line)] = "break" if "break" in found else "mixed" if len(found) > 1 else next(iter(found))
    function["lines"] = words


def _node(node: Any) -> dict[str, Any]:
    target = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", str(node.target))
    trace = (node.meta.get("stack_trace") or "").strip().splitlines()
    where = [line.strip() for line in trace if line.strip().startswith("File ")]
    return {"name": node.name, "op": node.op, "target": target, "inputs": [n.name for n in node.all_input_nodes],
            "value": value_text(node.meta.get("example_value")), "where": where[-1] if where else "",
            "args": _short(node.args, node.kwargs) if node.op != "output" else ""}


def _short(args: Any, kwargs: Any) -> str:
    text = ", ".join([*(str(a) for a in args), *(f"{k}={v}" for k, v in kwargs.items())])
    return text if len(text) <= 120 else text[:117] + "..."


_KINDS = {torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16", torch.int64: "i64",
          torch.int32: "i32", torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8", torch.bool: "b8"}


def value_text(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        kind = _KINDS.get(value.dtype, str(value.dtype).removeprefix("torch."))
        return f"{kind}[{', '.join(map(str, value.shape))}]"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(value_text, value))})"
    return "" if value is None else str(value)


# --- for users -------------------------------------------------------------------------------------------------------


class recording:  # noqa: N801 - used as a function
    """``with framegraft.recording("page.html") as r: ...`` writes a report of what is captured inside."""

    def __init__(self, path: str | os.PathLike[str] = "framegraft_report.html") -> None:
        self.path = path
        self.recorder = Recorder(sys.argv)

    def __enter__(self) -> Recorder:
        sources.writable(self.path)
        return self.recorder.__enter__()

    def __exit__(self, *exc_info: Any) -> None:
        self.recorder.__exit__(*exc_info)
        self.recorder.write(self.path)


def report(path: str | os.PathLike[str] = "framegraft_report.html") -> pathlib.Path:
    """Write a page of all that the process has captured so far, as far as it is still in use. Returns its path.

    A report of a recording (``recording``, ``FRAMEGRAFT_REPORT``, ``framegraft run``) tells more: the cost of guards, times
    of graphs, and every line.
    """
    return snapshot().write(path)


def snapshot() -> Recorder:
    """A recorder filled from the caches of the process."""
    found = next((r for r in events.listeners() if isinstance(r, Recorder)), None)
    if found is not None:
        return found
    made = Recorder(sys.argv)
    made.captures = list(records.CAPTURES)
    if made.captures:
        made.start = made.captures[0].started
    for capture in made.captures:
        code, info = capture.code(), capture.info()
        made.left_alone(capture)
        if code is None or info is None:
            continue
        detail = made.detail(capture)
        detail.module = info.graph_module
        detail.guards = from_text(info.check_fn)
        detail.code = next((e.code for e in _native.cache_entries(code) if e.info is info), None)
    return made


def start_from_environment(folder: str) -> None:
    """FRAMEGRAFT_REPORT=folder: record the whole process and write a page and its data when it ends."""
    recorder = Recorder(sys.argv)
    sources.writable(pathlib.Path(folder) / f"python_{os.getpid()}.html")
    recorder.__enter__()

    def finish() -> None:
        recorder.__exit__()
        name = pathlib.Path(sys.argv[0] if sys.argv and sys.argv[0] else "python").stem or "python"
        data = recorder.data()
        path = recorder.write(pathlib.Path(folder) / f"{name}_{os.getpid()}.html", data)
        path.with_suffix(".json").write_text(json.dumps(data), encoding="utf-8")

    atexit.register(finish)
