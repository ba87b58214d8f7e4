"""What the tests of compilers that fail on the rest of a function have in common."""

import re
import sys

import pytest
import torch

import framegraft
from framegraft.errors import BackendCompilerFailed

LOG = []


class Manager:
    def __init__(self, name, swallows=False):
        self.name, self.swallows = name, swallows

    def __enter__(self):
        LOG.append(f"enter {self.name}")
        return self

    def __exit__(self, kind, error, trace):
        LOG.append(f"exit {self.name} {kind and kind.__name__}")
        return self.swallows


def stop():
    framegraft.graph_break()


class Failing:
    """A backend that raises ``error`` at the calls whose numbers it is given."""

    def __init__(self, *at, error=ValueError):
        self.at, self.error, self.calls = at, error, 0

    def __call__(self, gm, inputs):
        self.calls += 1
        if self.calls in self.at:
            raise self.error("no")
        return gm.forward


def outcome(fn, x):
    LOG.clear()
    try:
        result = fn(x)
    except BaseException as error:
        result = type(error)
    state = torch.is_grad_enabled(), torch.is_autocast_enabled("cpu"), sys.exc_info()[1]
    return result, LOG[:], state


AT = [pytest.param((2,), id="once"), pytest.param(range(2, 20), id="from_then_on")]


def check_ends(fn, error, at):
    """The compiler raises ``error`` at these calls: what is entered is left, with the error, and the next call is as in eager mode."""
    x = torch.ones(2, 2, requires_grad=True)
    expected, steps, state = outcome(fn, x)
    backend = Failing(*at, error=error)
    compiled = framegraft.compile(fn, backend=backend)
    failed, seen, now = outcome(compiled, x)
    assert failed is (BackendCompilerFailed if error is ValueError else error)
    name = failed.__name__
    assert seen == [re.sub(" (None|KeyError)$", f" {name}", s) if s.startswith("exit") else s for s in steps]
    assert now == state == (True, False, None)
    backend.at = ()
    result, seen, now = outcome(compiled, x)  # the next call compiles it
    if isinstance(expected, type):
        assert result is expected
    else:
        torch.testing.assert_close(result, expected)
    assert seen == steps and now == state
    assert backend.calls >= 3
