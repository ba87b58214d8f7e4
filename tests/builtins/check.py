"""Runs a case eager and captured, and tells the verdict."""

import contextlib
import io
import random
import re
import signal
import types
import warnings
from collections.abc import Callable
from typing import Any

import torch

import framegraft
from framegraft.reasons import REASONS

from ..lang.snapshot import Snapshot, first_difference
from .cases import Case

UNKNOWN = frozenset(("unknown_c_function",))  # says only that nothing is known


def outcome(case: Case, inside: bool, capture: Callable[[Callable], Callable]) -> tuple:
    """Two calls on fresh arguments: what they gave or raised, and what became of the arguments."""
    random.seed(0)
    module = types.ModuleType("cases")
    seen = []
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        exec(compile(case.source(inside), "<case>", "exec"), module.__dict__)
        call = capture(module.f)
        for _ in range(2):
            try:
                args = module.make()
            except Exception as error:
                return ("unusable", repr(error))
            try:
                end: Any = ("returned", call(torch.ones(2), *args))
            except Exception as error:
                if isinstance(error, framegraft.errors.FramegraftError):
                    raise
                # How a bound method calls itself hangs on whether it was bound before it was called.
                end = ("raised", type(error).__name__, re.sub(r"^[\w.]+\(\)", "f()", str(error)))
            seen.append(Snapshot()((end, args)))
    return tuple(seen)


class TooLong(BaseException):
    pass


def _stop(*_: Any) -> None:
    raise TooLong


def difference(case: Case, inside: bool) -> tuple[str | None, str]:
    """(where capture differs from eager or None, the verdict: "captured", or the reason's id of the first break)."""
    signal.signal(signal.SIGALRM, _stop)
    signal.setitimer(signal.ITIMER_REAL, 0.5)  # endless iterators
    try:
        expected = outcome(case, inside, lambda f: f)
        if "at 0x" in str(expected) or expected != outcome(case, inside, lambda f: f):
            return None, "not repeatable"
    except TooLong:
        return None, "endless"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    framegraft.reset()
    try:
        with framegraft.config.patch(raise_internal_errors=True):
            got = outcome(case, inside, lambda f: framegraft.compile(f, backend="eager"))
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:300], "error"
    verdict = next((str(r).split(":")[0] for r in framegraft.break_reasons() if "raised_exception" not in str(r)), "captured")
    if verdict != "captured" and (verdict not in REASONS or verdict in UNKNOWN):
        return f"verdict {verdict}: {'; '.join(map(str, framegraft.break_reasons()))}", verdict
    return first_difference(expected, got), verdict
