"""Long loops over plain Python: they run in eager mode, and what is around them is captured."""

import pytest
import torch

import framegraft
from framegraft.testing import CompileCounter

LIMIT = 3000


def total_of(n):
    total = 0
    for i in range(n):
        total += i % 7
    return total


def small(i):
    return i % 7


def at_the_root(x, n):
    x = x + 1
    total = 0
    for i in range(n):
        total += small(i)
    return x * total


def in_a_callee(x, n):
    y = x + 1
    total = total_of(n)
    return y * 2 + total


def with_operations(x, n):
    for i in range(n):
        x = x + total_of(20)
    return x


def nothing_before(x, n):
    log = [small(i) for i in range(n)]
    return x + len(log)


def caught(x, n):
    log = []
    try:
        x = x + 1
        for i in range(n):
            log.append(i)
        raise ValueError(len(log))
    except ValueError as error:
        return x * 2, error.args, log[-1]


@pytest.mark.parametrize("fn, graphs", [(at_the_root, 1), (in_a_callee, 2), (with_operations, 1), (nothing_before, 0), (caught, 1)])
def test_long_loop(fn, graphs):
    framegraft.reset()
    counter = CompileCounter()
    compiled = framegraft.compile(fn, backend=counter)
    with framegraft.config.patch(max_idle_steps=LIMIT, raise_internal_errors=True):
        for n in (1000, 1000, 1500):
            expected, got = fn(torch.ones(3), n), compiled(torch.ones(3), n)
            assert str(expected) == str(got)
    assert counter.frame_count >= graphs
    assert "without a tensor operation" in str(framegraft.break_reasons()) or fn is with_operations


def test_not_with_fullgraph():
    with framegraft.config.patch(max_idle_steps=LIMIT):
        compiled = framegraft.compile(at_the_root, backend="eager", fullgraph=True)
        assert str(compiled(torch.ones(3), 1000)) == str(at_the_root(torch.ones(3), 1000))


def test_the_callee_alone_runs_in_eager_mode():
    framegraft.reset()
    counter = CompileCounter()
    with framegraft.config.patch(max_idle_steps=LIMIT):
        framegraft.compile(in_a_callee, backend=counter)(torch.ones(3), 1000)
    assert counter.frame_count == 2 and len(framegraft.break_reasons()) == 2
