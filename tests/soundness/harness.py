"""Capture, change one thing that the capture relied on, call again, compare with eager on fresh equal state.

A probe is a scenario `def test_name(C)`, which makes its own state, captures with `C(fn)` and returns what it saw. The
decorator runs it with the identity as C, then with `framegraft.compile`, and compares strict snapshots. It also runs it with
a C that repeats the first result forever: a probe which cannot tell that from eager tests nothing, and fails.
"""

import copy
import os
import random
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from ..lang.snapshot import Snapshot, first_difference, global_state

IDENTITY = os.environ.get("FRAMEGRAFT_TEST_PEER") == "identity"

if not IDENTITY:
    import framegraft

_undo: list[Callable[[], Any]] = []
last_error: list[BaseException] = []


def X(n: int = 3) -> torch.Tensor:
    return torch.arange(1.0, n + 1)


def module(source: str, **names: Any) -> types.ModuleType:
    """A fresh module with its own globals."""
    made = types.ModuleType("probed")
    made.__dict__.update(torch=torch, nn=torch.nn, **names)
    exec(compile(source, "<probed>", "exec"), made.__dict__)
    return made


def patch(owner: Any, name: str, value: Any) -> None:
    """Sets an attribute until the scenario ends."""
    missing = object()
    old = vars(owner).get(name, missing)
    _undo.append(lambda: delattr(owner, name) if old is missing else setattr(owner, name, old))
    setattr(owner, name, value)


def defer(undo: Callable[[], Any]) -> None:
    _undo.append(undo)


def outcome(call: Callable[[], Any]) -> tuple:
    """What a call gave, an exception included."""
    try:
        return ("returned", call())
    except Exception as error:
        last_error[:] = [error]
        return ("raised", type(error), error.args)


@contextmanager
def clean() -> Iterator[None]:
    torch.manual_seed(0)
    random.seed(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        while _undo:
            _undo.pop()()
        torch.set_grad_enabled(True)
        torch.set_default_dtype(torch.float32)


def observe(scenario: Callable, capture: Callable) -> Any:
    with clean():
        seen = outcome(lambda: scenario(capture))
        return Snapshot()((seen,)), global_state()[:-1]


def freeze(fn: Callable) -> Callable:
    """A capture without guards."""
    first: list[Any] = []

    def frozen(*args: Any, **kwargs: Any) -> Any:
        if not first:
            first.append(fn(*args, **kwargs))
        return copy.copy(first[0])

    return frozen


def captured(fn: Callable) -> Callable:
    return framegraft.compile(fn, backend="eager")


def probe(scenario: Callable | None = None, *, xfail: str | None = None) -> Any:
    def decorate(scenario: Callable) -> Callable:
        def test() -> None:
            expected = observe(scenario, lambda f: f)
            assert expected[0] == observe(scenario, lambda f: f)[0], "the scenario itself is not repeatable"
            assert observe(scenario, freeze) != expected, "this probe cannot tell a capture without guards from eager"
            if not IDENTITY:
                framegraft.reset()
                with framegraft.config.patch(raise_internal_errors=True):
                    last_error.clear()
                    got = observe(scenario, captured)
                difference = first_difference(expected, got)
                trace = "".join(traceback.format_exception(last_error[0])[-12:]) if last_error else ""
                assert difference is None, f"{difference}\n{trace}"

        test.__name__, test.__qualname__, test.__doc__ = scenario.__name__, scenario.__qualname__, scenario.__doc__
        test.__module__ = scenario.__module__
        test.scenario = scenario  # type: ignore[attr-defined]
        return pytest.mark.xfail(reason=xfail, strict=True)(test) if xfail else test

    return decorate(scenario) if scenario else decorate
