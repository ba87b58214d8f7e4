"""Locks are held while their block runs, and only then; a block costs one break, where the lock is taken."""

import threading

import pytest
import torch

import framegraft

from .differential import differential


class Of:
    lock = threading.Lock()
    rlock = threading.RLock()
    condition = threading.Condition()


@differential()
def test_with_lock(x):
    with Of.lock:
        y = x + 1
        inside = Of.lock.locked()
    return y * 2, inside, Of.lock.locked()


@differential()
def test_with_rlock_twice(x):
    with Of.rlock:
        x = x + 1
        with Of.rlock:
            x = x * 2
        x = x - 3
    return x, Of.rlock._is_owned()


@differential()
def test_with_condition(x):
    with Of.condition:
        x = x + 1
    return x, Of.condition._is_owned()


@differential()
def test_one_after_the_other(x):
    with Of.lock:
        x = x + 1
    with Of.lock:
        x = x * 2
    return x, Of.lock.locked()


@differential()
def test_error_in_the_body(x):
    try:
        with Of.lock:
            y = x + 1
            raise ValueError("no")
    except ValueError as error:
        y = x + len(str(error))
    return y, Of.lock.locked()


@differential()
def test_error_leaves(x):
    with Of.lock:
        y = x + 1
        raise ValueError(Of.lock.locked())
    return y


@differential()
def test_operation_fails_in_the_body(x):
    try:
        with Of.lock:
            y = x[torch.tensor([7])]
    except IndexError:
        y = x
    return y, Of.lock.locked()


@differential()
def test_return_and_break_from_the_body(x):
    def find(x):
        for i in range(4):
            with Of.lock:
                if i == 2:
                    break
                if i == 1 and x.ndim == 2:
                    return x
                x = x + i
        with Of.lock:
            return x * 2

    return find(x), Of.lock.locked()


@differential()
def test_released_by_hand(x):
    Of.lock.acquire()
    x = x + 1
    Of.lock.release()
    try:
        Of.lock.release()
    except RuntimeError as error:
        return x, str(error)
    return x


@differential(lambda: (torch.zeros(3), []))
def test_what_is_protected_is_there(x, log):
    with Of.lock:
        log.append(x + 1)
        x.add_(2)
    log.append(Of.lock.locked())
    return x * 2


def counted(fn, *args):
    framegraft.reset()
    counter = framegraft.testing.CompileCounter()
    framegraft.compile(fn, backend=counter)(*args)
    return len(framegraft.break_reasons())


@pytest.mark.parametrize("lock", [Of.lock, Of.rlock, Of.condition], ids=["lock", "rlock", "condition"])
def test_one_break(lock):
    def f(x):
        with lock:
            y = x + 1
        return y * 2

    assert counted(f, torch.ones(2)) == 1


def failing(error):
    def backend(gm, inputs):
        def run(*args):
            if failing.on:
                raise error
            return gm.forward(*args)

        return run

    return backend


@pytest.mark.own_code  # wants graphs behind a break
@pytest.mark.parametrize("error", [RuntimeError("graph"), KeyboardInterrupt()], ids=["error", "interrupt"])
@pytest.mark.parametrize("writes", [False, True])
def test_a_graph_that_fails_leaves_no_lock_held(error, writes):
    def f(x):
        with Of.lock:
            y = x + 1
        if writes:
            x.mul_(2)
        return y * x

    failing.on = False
    compiled = framegraft.compile(f, backend=failing(error))
    compiled(torch.ones(2))
    failing.on = True
    with pytest.raises(type(error)):
        compiled(torch.ones(2))
    assert not Of.lock.locked()
