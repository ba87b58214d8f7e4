"""Tracers, profilers and tools of sys.monitoring, at work while code is captured and while captured code runs."""

import bdb
import sys
import threading

import pytest
import torch

import framegraft
from framegraft import _native


def program(x, n):
    out = []
    for i in range(n):
        y = x * i + sum([j * 2 for j in range(i)])
        print(end="")  # a break in a loop
        try:
            if i == 2:
                raise KeyError(i)
            out.append(y.sin())
        except KeyError as error:
            out.append(y - error.args[0])
        finally:
            out.append(inner(y))

    def gen():
        yield from (t + 1 for t in out)

    return torch.stack(list(gen())).sum(0)


def inner(y):
    with torch.no_grad():
        print(end="")
        return y.cos()


X = torch.arange(4.0)


def look(frame):
    """All that a debugger asks a frame for."""
    return dict(frame.f_locals), frame.f_lineno, frame.f_code.co_name, frame.f_back, list(frame.f_code.co_lines())


class Tracer:
    """``sys.settrace``, with lines, and single instructions too."""

    def __init__(self):
        self.events = []

    def __call__(self, frame, event, arg):
        self.events.append((event, frame.f_code.co_name))
        if frame.f_code.co_name in ("program", "inner") or "resume" in frame.f_code.co_name:
            frame.f_trace_opcodes = True
            look(frame)
        return self

    def __enter__(self):
        sys.settrace(self)
        return self

    def __exit__(self, *exc):
        sys.settrace(None)


class Profiler(Tracer):
    def __call__(self, frame, event, arg):
        self.events.append((event, frame.f_code.co_name))
        if frame.f_code.co_name == "program":
            look(frame)

    def __enter__(self):
        sys.setprofile(self)
        return self

    def __exit__(self, *exc):
        sys.setprofile(None)


class Stepper(bdb.Bdb):
    """A debugger that steps through every line."""

    def __init__(self):
        super().__init__(skip=["torch.*", "framegraft.*", "sympy*"])
        self.events = []

    def user_line(self, frame):
        self.events.append(("line", frame.f_code.co_name))
        look(frame)
        self.set_step()

    def __enter__(self):
        self.reset()
        sys.settrace(self.trace_dispatch)
        return self

    def __exit__(self, *exc):
        sys.settrace(None)


class Monitor:
    """A tool of sys.monitoring that wants every event there is."""

    def __init__(self):
        self.events = []

    def __enter__(self):
        monitoring = sys.monitoring
        monitoring.use_tool_id(monitoring.DEBUGGER_ID, "test")
        events = monitoring.events
        wanted = [name for name in dir(events) if name.isupper() and name not in ("NO_EVENTS", "C_RAISE", "C_RETURN")]
        total = 0
        for name in wanted:
            event = getattr(events, name)
            total |= event
            monitoring.register_callback(monitoring.DEBUGGER_ID, event, self.seen(name))
        monitoring.set_events(monitoring.DEBUGGER_ID, total)
        return self

    def seen(self, name):
        def callback(code, *args):
            self.events.append((name, code.co_name))

        return callback

    def __exit__(self, *exc):
        monitoring = sys.monitoring
        monitoring.set_events(monitoring.DEBUGGER_ID, 0)
        monitoring.free_tool_id(monitoring.DEBUGGER_ID)


class Local(Monitor):
    """Breakpoints: events of single code objects only, as debuggers set them."""

    def __enter__(self):
        monitoring = sys.monitoring
        monitoring.use_tool_id(monitoring.DEBUGGER_ID, "test")
        monitoring.register_callback(monitoring.DEBUGGER_ID, monitoring.events.LINE, self.seen("LINE"))
        for code in (program.__code__, inner.__code__):
            monitoring.set_local_events(monitoring.DEBUGGER_ID, code, monitoring.events.LINE)
        return self

    def __exit__(self, *exc):
        for code in (program.__code__, inner.__code__):
            sys.monitoring.set_local_events(sys.monitoring.DEBUGGER_ID, code, 0)
        super().__exit__()


TOOLS = [Tracer, Profiler, Stepper, *([Monitor, Local] if hasattr(sys, "monitoring") else [])]


def eager():
    return program(X, 4)


def captured(fn):
    return framegraft.compile(fn, backend="eager")


@pytest.mark.parametrize("tool", TOOLS)
def test_captured_before(tool):
    expected, made = eager(), captured(program)
    made(X, 4)
    for _ in range(2):
        with tool() as used:
            assert torch.equal(made(X, 4), expected)
        assert torch.equal(made(X, 4), expected)
    assert used.events or tool is Local  # what runs has other code objects, but for what was broken out of


@pytest.mark.parametrize("tool", TOOLS)
def test_captured_meanwhile(tool):
    expected = eager()
    made = captured(program)
    with tool():
        assert torch.equal(made(X, 4), expected)
    for _ in range(2):
        assert torch.equal(made(X, 4), expected)
    with tool():
        assert torch.equal(made(X, 3), program(X, 3))


@pytest.mark.parametrize("tool", TOOLS)
def test_under_the_hook(tool):
    expected = eager()
    framegraft.reset()
    with framegraft.optimize("eager"), tool():
        assert torch.equal(program(X, 4), expected)
        assert torch.equal(program(X, 4), expected)
    own = [getattr(tool, name).__code__ for name in ("__call__", "user_line") if hasattr(tool, name) and name in vars(tool)]
    assert not any(_native.cache_entries(code) for code in own)  # what the tool runs is not captured


@pytest.mark.parametrize("tool", TOOLS)
def test_switched_on_by_the_program(tool):
    """A breakpoint: the tool begins its work in the middle of a captured call, and stays for a while."""
    used = tool()

    def stopped(x):
        y = x * 2
        used.__enter__()
        y = y + 1
        z = [t * 2 for t in (y, y)]
        used.__exit__()
        return y + z[0]

    made = captured(stopped)
    for _ in range(3):
        assert torch.equal(made(X), (X * 2 + 1) * 3)


@pytest.mark.parametrize("tool", TOOLS)
def test_errors_pass_through(tool):
    def fails(x, n):
        try:
            print(end="")
            return (x * 2)[n]
        finally:
            x.add_(1)

    made = captured(fails)
    for _ in range(2):
        x = torch.zeros(3)
        with tool(), pytest.raises(IndexError, match="out of bounds"):
            made(x, 5)
        assert torch.equal(x, torch.ones(3))


def test_a_tracer_that_raises():
    def tracer(frame, event, arg):
        if frame.f_code.co_name == "inner":
            raise LookupError("tracer")
        return tracer

    made = captured(program)
    made(X, 2)
    sys.settrace(tracer)
    try:
        with pytest.raises(LookupError, match="tracer"):
            program(X, 2)
    finally:
        sys.settrace(None)
    assert torch.equal(made(X, 2), program(X, 2))


def test_profilers_of_threads():
    made, seen, results = captured(program), [], []
    threading.setprofile(lambda frame, event, arg: seen.append(event))
    try:
        threads = [threading.Thread(target=lambda: results.append(made(X, 4))) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        threading.setprofile(None)
    assert seen and len(results) == 2 and all(torch.equal(r, eager()) for r in results)
