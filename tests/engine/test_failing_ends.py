"""A compiler that fails where the rest of a function begins at the end of a block, or with a handler: the block gets its end, too."""

import traceback

import pytest
import torch

import framegraft
from framegraft.errors import BackendCompilerFailed

from .failing import AT, LOG, Failing, Manager, check_ends


def branch_at_an_end(x):
    with torch.no_grad(), Manager("one"):
        y = x + 1
        if y.sum() < 0:
            y = y * 2
    return y * 3


def branch_before_finally(x):
    y = x + 1
    try:
        if y.sum() < 0:
            y = y * 2
    finally:
        LOG.append("finally")
    return y * 3


def loop_at_an_end(x):
    with Manager("one"):
        y = x + 1
        while y.sum() < 10:
            y = y * 2
    return y * 3


def branch_in_a_handler(x):
    y = x + 1
    with Manager("one"):
        try:
            raise KeyError
        except KeyError as error:
            if y.sum() < 0:
                y = y * len(error.args)
        y = y * 3
    return y


@framegraft.disable
def same(x):
    return x


class Working(Manager):
    def __exit__(self, *error):
        self.seen = torch.ones(2) + 1
        return super().__exit__(*error)


def returning(x):
    with Manager("outer"), Working("inner"):
        return same(x + 1)


def returning_before_finally(x):
    y = x + 1
    try:
        return same(y)
    finally:
        LOG.append(f"finally {y.shape}")
        y = y * 2


@framegraft.disable
def refuse(x):
    raise KeyError("refused")


def refused(x):
    with Manager("outer"), Working("inner"):
        refuse(x + 1)


def refused_before_finally(x):
    y = x + 1
    try:
        refuse(y)
    finally:
        LOG.append(f"finally {(y * 2).shape}")


def refused_and_caught(x):
    y = x + 1
    with Manager("outer"):
        try:
            refuse(y)
        except KeyError:
            y = y * 2
    return y


def branching(x):
    with Manager("of the callee"):
        x = x + 1
        if x.sum() < 0:
            x = x * 2
    return x * 3


def returning_a_call(x):
    with Working("of the caller"):
        return branching(x)


ENDS = [branch_at_an_end, branch_before_finally, loop_at_an_end, branch_in_a_handler, returning, returning_before_finally, refused,
        refused_before_finally, refused_and_caught, returning_a_call]


@pytest.mark.parametrize("fn", ENDS)
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("at", AT)
def test_blocks_get_their_ends(fn, error, at):
    check_ends(fn, error, at)


def test_its_context_is_the_exception_that_led_to_the_handler():
    compiled = framegraft.compile(refused_before_finally, backend=Failing(2))
    with pytest.raises(BackendCompilerFailed) as raised:
        compiled(torch.ones(2))
    assert isinstance(raised.value.__context__, ValueError)
    assert repr(raised.value.__context__.__context__) == "KeyError('refused')"
    frames = [(f.name, f.lineno) for f in traceback.extract_tb(raised.value.__traceback__)]
    first = refused_before_finally.__code__.co_firstlineno
    assert [f for f in frames if f[0] == "refused_before_finally"] == [("refused_before_finally", first + 5)]


def test_a_handler_has_the_variables_of_its_frame():
    def fn(x, bound):
        kept = [1]
        y = x + 1
        if bound:
            other = 2
        try:
            return same(y)
        except Exception as error:
            name = type(error).__name__
        finally:
            y = y * 2
        try:
            return kept, name, other
        except UnboundLocalError:
            return kept, name

    compiled = framegraft.compile(fn, backend=Failing(2))
    assert compiled(torch.ones(2), False) == ([1], "BackendCompilerFailed")
    framegraft.reset()
    compiled = framegraft.compile(fn, backend=Failing(2))
    assert compiled(torch.ones(2), True) == ([1], "BackendCompilerFailed", 2)
    torch.testing.assert_close(compiled(torch.ones(2), True), torch.full((2,), 2.0))
