"""Runs one program eager and captured, and tells where the two differ."""

import contextlib
import io
import itertools
import random
import signal
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

import framegraft

from ..decompile.swap import swapping
from ..lang.snapshot import Snapshot, first_difference, global_state

# How a program is captured: compiled main, the hook on everything below it, breaks forced, another backend.
MODES = ("eager", "eager", "eager", "optimize", "aot_eager", "forced")
TIME_LIMIT = 40
EAGER_LIMIT = 0.5  # seconds; what takes long in eager mode would take a thousand times as long to capture


class TooLong(BaseException):
    """Not an Exception: the program's handlers must not catch it."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    ended: list[bool] = []

    def stop(_: int, frame: Any) -> None:
        ended.append(True)
        while frame is not None:
            if frame.f_code.co_filename.startswith("<frozen importlib"):
                return  # later: a module that is left half imported would fail for every program after this one
            frame = frame.f_back
        raise TooLong

    old = signal.signal(signal.SIGPROF, stop)  # seconds of the processor, which may be busy with other things
    signal.setitimer(signal.ITIMER_PROF, seconds, 1)  # again and again: the error of a program's own `finally` replaces TooLong
    try:
        yield
        if ended:
            raise TooLong
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, old)


def nothing() -> None:
    """``graph_break`` of the eager run."""


def load(text: str, name: str, graph_break: Callable[[], None]) -> types.ModuleType:
    module = types.ModuleType(name)
    module.__dict__["graph_break"] = graph_break
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(text, f"<{name}>", "exec"), module.__dict__)
    return module


def lines_of(error: BaseException, name: str) -> tuple:
    """The program's own lines in a traceback, outermost first."""
    found: list[tuple[str, int]] = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == f"<{name}>":
            found.append((code.co_name, trace.tb_lineno))
        trace = trace.tb_next
    if isinstance(error, UnboundLocalError) and found:
        found[-1] = (found[-1][0], 0)  # CPython 3.11 tells the line before, once it has joined two instructions
    return tuple(found)


def observe(text: str, capture: Callable[[Callable], Callable], graph_break: Callable[[], None], lines: bool = True) -> tuple:
    """All that can be seen of a program's calls: on equal arguments twice, after a change, and on what that left behind.

    ``lines``: with the lines that exceptions passed.
    """
    torch.manual_seed(0)
    random.seed(0)
    module = load(text, "fuzzed", graph_break)
    call = capture(module.main)
    seen = []
    try:
        for step in ("first", "second", "changed", "again"):
            if step != "again":
                args = module.make()
            if step == "changed":
                module.change(args)
            seen.append((step, one_call(module, call, args, lines)))
        module.make()
    finally:
        torch.set_grad_enabled(True)
        torch.set_default_dtype(torch.float32)
    return tuple(seen)


def one_call(module: types.ModuleType, call: Callable, args: list, lines: bool) -> Any:
    out, trace = io.StringIO(), ()
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            end: tuple[str, Any] = ("returned", call(*args))
        except Exception as error:
            end, trace = ("raised", error), lines_of(error, "fuzzed") if lines else ()
            if isinstance(error, framegraft.errors.FramegraftError):
                raise
    state = {k: v for k, v in vars(module).items() if k.startswith("G_")}
    classes = [vars(v) for k, v in vars(module).items() if k[0] == "C" and isinstance(v, type)]
    plain = [{k: v for k, v in c.items() if isinstance(v, (int, str, list)) and k != "__slotnames__"}
             for c in classes]  # copy.copy() puts those there
    snapshot = Snapshot()
    seen = snapshot((end, args, state, module.notes, plain))
    rest = snapshot(escaped([end[1], module.G_list]))
    del end, snapshot  # their tracebacks hold this frame: what the program's frames hold dies now, not when garbage is collected
    return seen, out.getvalue(), trace, global_state(), rest


def draws_numbers(seen: tuple) -> bool:
    """Whether an observed program advanced torch's random numbers."""
    torch.manual_seed(0)
    return any(_random_states(what[3]) != _random_states(global_state()) for _, what in seen)


def _random_states(state: tuple) -> list[Any]:
    return [value for name, value in state if name.startswith("random")]


def escaped(values: list[Any]) -> list[Any]:
    """What the generators that left the program among ``values`` give next."""
    found: list[Any] = []
    for value in values:
        for member in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(member, types.GeneratorType):
                try:
                    found += itertools.islice(member, 3)
                except Exception as error:
                    found.append(error)
    return found


def difference(text: str, mode: str, force: int = 0, decompiled: str | None = None) -> str | None:
    """Where capture differs from eager; None where it does not, or where eager itself is not repeatable or endless.

    ``decompiled``: a mode of ``tests.decompile.swap``; lines are not compared then.
    """
    sys.setrecursionlimit(1000)
    lines = decompiled is None
    try:
        with time_limit(EAGER_LIMIT):
            expected = observe(text, lambda f: f, nothing, lines)
    except (TooLong, Exception):  # noqa: BLE001 - endless, or no program: main's own errors are part of what is observed
        return None
    if mode == "aot_eager" and draws_numbers(expected):  # AOTAutograd drops random numbers that nothing uses
        mode = "eager"
    with time_limit(TIME_LIMIT):
        framegraft.reset()
        forced = {"force_break_at": force} if mode == "forced" else {}
        with framegraft.config.patch(raise_internal_errors=True, **forced), swapping(decompiled):
            try:
                got = observe(text, capturer(mode), framegraft.graph_break, lines)
            except framegraft.errors.BackendCompilerFailed as failed:
                # AOTAutograd refuses what fails in backward only, even where that is never called.
                if mode == "aot_eager" and "modified by an inplace operation" in str(failed):
                    return None
                raise
    found = first_difference(expected, got)
    return found if found is not None and expected == observe(text, lambda f: f, nothing, lines) else None


def capturer(mode: str) -> Callable[[Callable], Callable]:
    backend = "aot_eager" if mode == "aot_eager" else "eager"
    if mode != "optimize":
        return lambda fn: framegraft.compile(fn, backend=backend)

    def capture(fn: Callable) -> Callable:
        def call(*args: Any) -> Any:
            with framegraft.optimize(backend):
                return fn(*args)

        return call

    return capture


def mode_of(seed: int) -> tuple[str, int]:
    chooser = random.Random(seed)
    return chooser.choice(MODES), chooser.randrange(60)


def examine(text: str, seed: int, modes: tuple[str, ...] | None = None, decompiled: str | None = None) -> str | None:
    """The difference of a program in the mode that goes with its seed; errors of the engine are differences."""
    mode, force = mode_of(seed)
    if modes is not None:
        mode = modes[seed % len(modes)]
    try:
        found = difference(text, mode, force, decompiled)
    except TooLong:
        return f"[{mode}] no end after {TIME_LIMIT} s"
    except Exception as error:
        return f"[{mode}] {type(error).__name__}: {str(error)[:500]}"
    return None if found is None else f"[{mode}] {found}"
