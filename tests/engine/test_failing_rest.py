"""A compiler that fails on the rest of a function behind a break: the blocks around that place get their ends, as for any other error."""

import contextlib
import gc
import random
import traceback
import weakref

import numpy
import pytest
import torch

import framegraft
from framegraft import config
from framegraft.errors import BackendCompilerFailed, RecompileError, RecompileLimitExceeded

from .failing import AT, LOG, Failing, Manager, check_ends, outcome, stop


@contextlib.contextmanager
def generated():
    LOG.append("enter generated")
    try:
        yield
    finally:
        LOG.append("exit generated")


def without_gradients(x):
    with torch.no_grad():
        y = x + 1
        stop()
        return y * 2


def two_managers(x):
    with Manager("outer"), Manager("inner"), generated():
        y = x + 1
        stop()
        y = y * 2
    return y


def finishing(x):
    y = x + 1
    try:
        stop()
        y = y * 2
    finally:
        LOG.append("finally")
    return y


def catching(x):
    y = x + 1
    try:
        stop()
        y = y * 2
    except Exception as error:
        LOG.append(type(error).__name__)
        return x - 1
    return y


def catching_others(x):
    y = x + 1
    try:
        stop()
        y = y * 2
    except ZeroDivisionError:
        LOG.append("wrong")
    else:
        y = y * 3
    return y


def handling(x):
    y = x + 1
    try:
        raise ZeroDivisionError
    except ZeroDivisionError:
        stop()
        y = y * 2
    return y


def in_a_loop(x):
    for i in range(3):
        with Manager(i):
            x = x + i
            stop()
            x = x * 2
    return x


def inner(x):
    with Manager("of the callee"):
        x = x + 1
        stop()
        return x * 2


def in_a_callee(x):
    with Manager("of the caller"):
        return inner(x) + 1


def swallowing(x):
    with Manager("swallows", swallows=True):
        x = x + 1
        stop()
        x = x * 2
    return x


def autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x + 1
        stop()
        return y @ y


BLOCKS = [without_gradients, two_managers, finishing, catching_others, handling, in_a_callee, autocast]
@pytest.mark.parametrize("fn", BLOCKS)
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("at", AT)
def test_blocks_get_their_ends(fn, error, at):
    check_ends(fn, error, at)


def test_the_program_catches_it():
    compiled = framegraft.compile(catching, backend=Failing(2))
    x = torch.ones(2)
    torch.testing.assert_close(compiled(x), x - 1)
    assert LOG[-1] == "BackendCompilerFailed"
    torch.testing.assert_close(compiled(x), (x + 1) * 2)


def test_a_manager_swallows_it():
    compiled = framegraft.compile(swallowing, backend=Failing(2))
    x = torch.ones(2)
    torch.testing.assert_close(compiled(x), x + 1)
    torch.testing.assert_close(compiled(x), (x + 1) * 2)


@pytest.mark.parametrize("at", [2, 3, 4])
def test_each_round_of_a_loop(at):
    compiled = framegraft.compile(in_a_loop, backend=Failing(at))
    x = torch.ones(2)
    failed, seen, _ = outcome(compiled, x)
    assert failed is BackendCompilerFailed
    assert len([s for s in seen if s.startswith("enter")]) == len([s for s in seen if s.startswith("exit")])
    result, seen, _ = outcome(compiled, x)
    torch.testing.assert_close(result, in_a_loop(x))


def test_the_error_tells_where_and_why():
    compiled = framegraft.compile(finishing, backend=Failing(2))
    with pytest.raises(BackendCompilerFailed) as raised:
        compiled(torch.ones(2))
    assert isinstance(raised.value.__cause__, ValueError)
    frames = [(f.name, f.lineno - finishing.__code__.co_firstlineno) for f in traceback.extract_tb(raised.value.__traceback__)]
    assert [f for f in frames if f[0] == "finishing"] == [("finishing", 3)]


def test_a_break_is_no_context_of_it():
    for at in 1, 2:
        with pytest.raises(BackendCompilerFailed) as raised:
            framegraft.compile(in_a_callee, backend=Failing(at))(torch.ones(2))
        assert raised.value.__context__ is raised.value.__cause__
        assert raised.value.__cause__.__context__ is None


def test_its_context_is_the_exception_that_is_handled():
    compiled = framegraft.compile(handling, backend=Failing(2))
    with pytest.raises(BackendCompilerFailed) as raised:
        compiled(torch.ones(2))
    assert isinstance(raised.value.__cause__, ValueError) and isinstance(raised.value.__context__, ZeroDivisionError | ValueError)


def test_a_recompile_that_is_not_allowed():
    def fn(x, n):
        with Manager("one"):
            y = x + 1
            stop()
            return y * n

    compiled = framegraft.compile(fn, backend="eager", dynamic=False)
    compiled(torch.ones(2), 2)
    LOG.clear()
    with config.patch(error_on_recompile=True), pytest.raises(RecompileLimitExceeded):
        compiled(torch.ones(2), 3)
    assert LOG == ["enter one", "exit one RecompileLimitExceeded"]


def test_a_stance_that_allows_no_recompile():
    def fn(x, n):
        with Manager("one"):
            y = x + 1
            stop()
            return y * n

    compiled = framegraft.compile(fn, backend="eager", dynamic=False)
    compiled(torch.ones(2), 2)
    LOG.clear()
    with framegraft.set_stance("fail_on_recompile"), pytest.raises(RecompileError):
        compiled(torch.ones(2), 3)
    assert LOG == ["enter one", "exit one RecompileError"]


def test_nothing_is_kept_of_an_error():
    class Weak(ValueError):
        pass

    backend = Failing(2, 3, 4, error=Weak)
    compiled = framegraft.compile(finishing, backend=backend)
    errors = []
    for _ in range(3):
        try:
            compiled(torch.ones(2))
        except BackendCompilerFailed as error:
            errors.append(weakref.ref(error.__cause__))
            backend.calls = 1
    gc.collect()
    assert [e() for e in errors] == [None] * 3


@pytest.mark.parametrize("fails", [True, False])
@pytest.mark.parametrize("threads", [1, 2])
def test_random_numbers_that_a_compiler_draws(fails, threads, monkeypatch):
    def backend(gm, inputs):
        drawn.append((random.random(), numpy.random.rand(), torch.rand(1).item()))
        if fails:
            raise ValueError
        return gm.forward

    drawn = []
    monkeypatch.setattr("threading.active_count", lambda: threads)  # others may draw, too, and not the same numbers twice
    random.seed(1)
    numpy.random.seed(1)
    torch.manual_seed(1)
    with contextlib.suppress(BackendCompilerFailed):
        framegraft.compile(lambda x: x + 1, backend=backend)(torch.ones(2))
    now = random.random(), numpy.random.rand(), torch.rand(1).item()
    assert [a == b for a, b in zip(now, drawn[0], strict=True)] == [threads == 1, threads == 1, True]


def test_nothing_else_is_captured_meanwhile():
    class Working:
        def __enter__(self):
            return self

        def __exit__(self, *error):
            LOG.append(torch.ones(2) + 1)

    def fn(x):
        with Working():
            x = x + 1
            stop()
            return x * 2

    backend = Failing(2, 3)
    compiled = framegraft.compile(fn, backend=backend)
    with pytest.raises(BackendCompilerFailed):
        compiled(torch.ones(2))
    assert backend.calls == 2
