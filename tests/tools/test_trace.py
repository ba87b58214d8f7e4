"""Events: what listeners hear, in which order, and the lines of FRAMEGRAFT_TRACE."""

import dataclasses
import json
import pathlib
import re
import subprocess
import sys

import pytest
import torch

import framegraft
from framegraft import events
from framegraft.run import records
from framegraft.tools import trace

DOCS = pathlib.Path(__file__).parents[2] / "docs" / "trace.md"


def breaking(x):
    y = x + 1
    print("between")
    return y * 2


def failing_backend(gm, inputs):
    raise RuntimeError("no")


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_order_of_events():
    class All(events.Listener):
        def __init__(self):
            self.seen = []

        def on(self, event):
            self.seen.append((event.capture.number, event.kind))

    with events.listening(All()) as heard:
        framegraft.compile(breaking, backend="eager")(torch.ones(2))
    first = [kind for number, kind in heard.seen if number == 0]
    assert first[0] == "capture_started" and first[-1] == "capture_ended"
    rest = [kind for kind in first if kind != "phase_ended"]
    assert rest == ["capture_started", "graph_traced", "graph_compiled", "graph_broken", "entry_made", "capture_ended"]
    assert {kind for _, kind in heard.seen} <= set(events.KINDS)
    assert not events.listeners()


def test_a_listener_may_put_another_callable_in_place():
    class Twice(events.Listener):
        def graph_compiled(self, event):
            compiled = event.compiled
            event.compiled = lambda *args: [2 * out for out in compiled(*args)]

    with events.listening(Twice()):
        compiled = framegraft.compile(lambda x: x + 1, backend="eager")
        assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 4.0))


def test_lines_tell_what_the_records_do(tmp_path):
    with trace.TraceFile(tmp_path / "a" / "t.jsonl") as file:
        compiled = framegraft.compile(breaking, backend="eager")
        for n in (2, 3):
            compiled(torch.ones(n))
    found = lines(file.path)
    assert found[0]["event"] == "trace_started"
    times = [line["time"] for line in found]
    assert times == sorted(times)
    for capture in records.CAPTURES:
        mine = [line for line in found if line.get("capture") == capture.number]
        (ended,) = [line for line in mine if line["event"] == "capture_ended"]
        assert ended["phases"] == capture.phases and ended["outcome"] == capture.outcome and ended["guards"] == capture.guard_count
        for phase in records.PHASES:
            spent = [line["seconds"] for line in mine if line["event"] == "phase_ended" and line["phase"] == phase]
            assert sum(spent) == pytest.approx(capture.phases[phase])
        assert (capture.recompile is not None) == ("recompiled" in [line["event"] for line in mine])
        broken = [line["reason"] for line in mine if line["event"] == "graph_broken"]
        assert broken == ([capture.broken.reason] if capture.broken else [])


def test_failures(tmp_path):
    with trace.TraceFile(tmp_path / "t.jsonl") as file:
        with pytest.raises(framegraft.exc.BackendCompilerFailed):
            framegraft.compile(lambda x: x + 1, backend=failing_backend)(torch.ones(2))
    (failed,) = [line for line in lines(file.path) if line["event"] == "capture_failed"]
    assert failed["error"] == "BackendCompilerFailed" and not failed["suppressed"] and failed["graph"].startswith("__compiled_fn")


def test_the_documented_fields_are_the_real_ones(tmp_path):
    with trace.TraceFile(tmp_path / "t.jsonl") as file:
        compiled = framegraft.compile(breaking, backend="eager")
        for n in (2, 3):
            compiled(torch.ones(n))
        with pytest.raises(framegraft.exc.BackendCompilerFailed):
            framegraft.compile(lambda x: x + 1, backend=failing_backend)(torch.ones(2))
    common = {"event", "time", "thread", "capture", "frame", "index"}
    documented = {}
    for row in DOCS.read_text().splitlines():
        if row.startswith("| `"):
            kind, _, fields = (cell.strip() for cell in row.strip("| ").split(" | "))
            documented[kind.strip("`")] = set(re.findall(r"`(\w+)`", re.sub(r"\([^)]*\)", "", fields)))
    assert set(documented) == set(events.KINDS)
    for line in lines(file.path)[1:]:
        assert set(line) == common | documented[line["event"]], line["event"]


def test_every_event_says_what_it_is():
    for kind, cls in events.KINDS.items():
        assert dataclasses.is_dataclass(cls) and cls.__doc__ and cls.kind == kind
        assert re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower() == kind


def test_environment_variable(tmp_path):
    code = "import torch, framegraft; framegraft.compile(lambda x: x + 1, backend='eager')(torch.ones(2))"
    env = {**__import__("os").environ, "FRAMEGRAFT_TRACE": str(tmp_path / "%p.jsonl")}
    subprocess.run([sys.executable, "-c", code], env=env, check=True)
    (path,) = tmp_path.iterdir()
    assert lines(path)[-1]["event"] == "capture_ended" and lines(path)[0]["pid"] == int(path.stem)


def test_logs_of_what_is_traced(capsys):
    framegraft.set_logs("trace_source,trace_bytecode,graph_sizes")
    framegraft.compile(breaking, backend="eager")(torch.ones(2))
    err = capsys.readouterr().err
    assert "TRACE LOAD_CONST 1" in err and "y = x + 1" in err and "(2,)" in err
