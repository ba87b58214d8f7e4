"""The differential decorator: one plain function, run eager, captured, and captured with a break forced everywhere.

    @differential(lambda: (torch.ones(3), [1, 2]))
    def test_name(x, items):
        ...

makes two pytest cases. `captured` runs the function under `framegraft.compile(..., backend=CompileCounter())`; `breaks`
runs it once more for each n with `config.patch(force_break_at=n)`, until a run reports no forced break. Each run makes two
calls on fresh equal arguments, so the second comes from the cache. Compared with eager: results, exact types, exceptions
(type, args, notes, cause, context), arguments, globals and closure cells after the calls, aliasing, printed output,
gradients, the random stream and torch's global state.

Environment: FRAMEGRAFT_FULL=1 forces a break at every n (else at a sample of them); FRAMEGRAFT_TEST_PEER=identity runs the
tests against eager itself, which proves the tests and not the engine.
"""

import contextlib
import copy
import dis
import io
import os
import random
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from .snapshot import Snapshot, first_difference, global_state

FULL = os.environ.get("FRAMEGRAFT_FULL") == "1"
IDENTITY = os.environ.get("FRAMEGRAFT_TEST_PEER") == "identity"
MAX_BREAKS = 600
COUNT_GRAPHS = True
SAMPLE = 7

if not IDENTITY:
    import framegraft


class Case:
    """One function under test with all that tells how to run it."""

    def __init__(self, fn: Callable, make_inputs: Callable[[], tuple], *, build: bool, calls: int, graphs: int | None):
        self.fn, self.make_inputs, self.build, self.calls, self.graphs = fn, make_inputs, build, calls, graphs

    def target(self) -> Callable:
        return self.fn() if self.build else self.fn

    def globals_used(self, target: Callable) -> dict[str, Any]:
        """The globals that the function's code (nested code too) names and whose values a run could change."""
        code = getattr(target, "__code__", None) or getattr(type(target), "__call__", target).__code__
        names, todo = set(), [code, self.fn.__code__]
        while todo:
            code = todo.pop()
            names.update(code.co_names)
            todo += [c for c in code.co_consts if isinstance(c, types.CodeType)]
        fixed = (types.ModuleType, types.FunctionType, type)
        home = self.fn.__globals__
        return {n: home[n] for n in sorted(names) if n in home and not isinstance(home[n], fixed)}


@contextlib.contextmanager
def restored(case: Case, target: Callable) -> Iterator[None]:
    """Puts the used globals back after a run, so that each run starts from equal state."""
    home = case.fn.__globals__
    before, keys = case.globals_used(target), set(home)
    for name, value in before.items():
        home[name] = copy.deepcopy(value)
    try:
        yield
    finally:
        for name in set(home) - keys:
            del home[name]
        home.update(before)


def one_call(call: Callable, args: tuple, kwargs: dict) -> tuple[str, Any, str]:
    """Calls and tells (how it ended, result or exception, what was printed)."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            return "returned", call(*args, **kwargs), out.getvalue()
        except Exception as error:
            return "raised", error, out.getvalue()


def split(inputs: Any) -> tuple[tuple, dict]:
    """make_inputs gives a tuple, whose last member may be `Kw(...)` with keyword arguments."""
    if inputs and isinstance(inputs[-1], Kw):
        return inputs[:-1], dict(inputs[-1])
    return inputs, {}


class Kw(dict):
    """Keyword arguments of a call, as the last member of what make_inputs returns."""


def backward(results: list) -> None:
    """Sends a gradient through every result that takes one, so that leaves of the arguments get theirs."""
    flat: list[torch.Tensor] = []
    todo = list(results)
    while todo:
        value = todo.pop()
        if isinstance(value, torch.Tensor) and value.requires_grad and value.grad_fn is not None:
            flat.append(value)
        elif isinstance(value, (list, tuple)):
            todo += list(value)
        elif isinstance(value, dict):
            todo += list(value.values())
    if flat:
        with contextlib.suppress(RuntimeError):
            torch.autograd.backward([t.sum() for t in flat if not t.is_complex()])


class Observation:
    """All that can be seen of one run, and how its calls ended."""

    def __init__(self, seen: tuple, ends: list):
        self.seen, self.ends = seen, ends

    def difference(self, got: "Observation") -> str | None:
        """Where another run differs from this one; with the traceback of an exception that this one did not have."""
        found = first_difference(self.seen, got.seen)
        if found is None:
            return None
        for mine, other in zip(self.ends, got.ends, strict=True):
            if other[0] == "raised" and (mine[0] != "raised" or type(mine[1]) is not type(other[1])):
                return found + "\n" + "".join(traceback.format_exception(other[1])[-12:])
        return found


def observe(case: Case, wrap: Callable[[Callable], Callable]) -> Observation:
    """Runs a case from fresh state and returns everything that can be seen of it."""
    torch.manual_seed(0)
    random.seed(0)
    target = case.target()
    with restored(case, target), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call = wrap(target)
        inputs = [split(case.make_inputs()) for _ in range(case.calls)]
        ends, first = [], None
        for args, kwargs in inputs:
            ends.append(one_call(call, args, kwargs))
            if first is None:
                first = Snapshot()((ends, args, kwargs))
        state = global_state()
        after = {n: case.fn.__globals__.get(n, "<deleted>") for n in case.globals_used(target)}
        cells = [c for c in getattr(target, "__closure__", None) or ()]
        snap = Snapshot()
        seen = (snap(ends), snap(inputs), snap(after), tuple(snap.cell(c) for c in cells), state)
        backward([end[1] for end in ends if end[0] == "returned"])
        return Observation((first, *seen, Snapshot()((ends, inputs))), ends)


def positions(case: Case) -> Iterator[int]:
    """At which instructions to force a break: all of them, or a sample that depends on the name only."""
    if FULL:
        yield from range(MAX_BREAKS)
        return
    size = len(list(dis.get_instructions(case.fn)))
    for const in case.fn.__code__.co_consts if case.build else ():
        if isinstance(const, types.CodeType):
            size = max(size, len(list(dis.get_instructions(const))))
    yield from sorted(random.Random(case.fn.__qualname__).sample(range(size + 4), min(SAMPLE, size + 4)))


def forced_break_happened() -> bool:
    return any("force" in str(reason).lower() for reason in framegraft.break_reasons())


def check_captured(case: Case, expected: Observation) -> None:
    framegraft.reset()
    counter = framegraft.testing.CompileCounter()
    graphs: list[int] = []

    def wrap(fn: Callable) -> Callable:
        compiled = framegraft.compile(fn, backend=counter)

        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return compiled(*args, **kwargs)
            finally:
                graphs.append(counter.frame_count)

        return call

    with framegraft.config.patch(raise_internal_errors=True):
        got = observe(case, wrap)
    assert (difference := expected.difference(got)) is None, difference
    if case.graphs is not None and COUNT_GRAPHS:
        reasons = [str(r) for r in framegraft.break_reasons()]
        assert graphs == [case.graphs] * case.calls, f"graphs after each call: {graphs}; breaks: {reasons}"


def check_breaks(case: Case, expected: Observation) -> None:
    wrong = []
    for n in positions(case):
        framegraft.reset()
        with framegraft.config.patch(raise_internal_errors=True, force_break_at=n):
            got = observe(case, lambda fn: framegraft.compile(fn, backend="eager"))
            happened = forced_break_happened()
        difference = expected.difference(got)
        if difference is not None:
            wrong.append((n, difference))
        if not happened:
            break
    framegraft.reset()
    assert not wrong, f"break at {[n for n, _ in wrong]}; first {wrong[0][1]}"


def differential(
    make_inputs: Callable[[], tuple] = lambda: (torch.arange(1.0, 4.0),),
    *,
    build: bool = False,
    calls: int = 2,
    graphs: int | None = None,
    xfail: str | None = None,
    xfail_breaks: str | None = None,
) -> Callable[[Callable], Callable]:
    """Makes pytest cases of a plain function.

    make_inputs: called for each call; gives the arguments (`Kw` last for keyword arguments).
    build: the function under test is what the decorated one returns (closures, classes made afresh for each run).
    calls: how many calls on fresh equal arguments.
    graphs: how many graphs capture must make, all of them in the first call; None where that is not the point.
    xfail, xfail_breaks: what is missing for the captured, or the forced-break, case.
    """

    def mark(mode: str, reason: str | None) -> Any:
        strict = FULL or mode == "captured"  # a sample of the breaks may leave out the one that fails
        return pytest.param(mode, marks=pytest.mark.xfail(reason=reason, strict=strict) if reason else (), id=mode)

    def decorate(fn: Callable) -> Callable:
        case = Case(fn, make_inputs, build=build, calls=calls, graphs=graphs)

        @pytest.mark.parametrize("mode", [mark("captured", xfail), mark("breaks", xfail_breaks)])
        def test(mode: str) -> None:
            expected = observe(case, lambda f: f)
            if IDENTITY:
                difference = expected.difference(observe(case, lambda f: f))
                assert difference is None, difference
            elif mode == "captured":
                check_captured(case, expected)
            else:
                check_breaks(case, expected)

        test.__name__, test.__qualname__, test.__doc__ = fn.__name__, fn.__qualname__, fn.__doc__
        test.__module__ = fn.__module__
        test.case = case  # type: ignore[attr-defined]
        return test

    return decorate
