"""with: torch's own contexts, user classes, contextlib."""

import contextlib
import traceback
import types

import pytest
import torch

import framegraft

from .differential import differential

LOG = []


def leaf():
    return (torch.arange(1.0, 4.0, requires_grad=True),)


class Recorder:
    def __init__(self, log, swallow=()):
        self.log, self.swallow = log, swallow

    def __enter__(self):
        self.log.append("enter")
        return self

    def __exit__(self, kind, error, trace):
        self.log.append(("exit", kind.__name__ if kind else None, error.args if error else None))
        return kind is not None and issubclass(kind, self.swallow)


@contextlib.contextmanager
def scaled(log, by):
    log.append(("in", by))
    try:
        yield by * 2
    except ValueError as error:
        log.append(("caught", error.args))
    finally:
        log.append(("out", by))


@contextlib.contextmanager
def grad_off():
    with torch.no_grad():
        yield


@differential(leaf)
def test_no_grad(x):
    with torch.no_grad():
        y = x * 2
        inside = torch.is_grad_enabled()
    z = x * y
    return y, z, inside, torch.is_grad_enabled()


@differential(leaf)
def test_enable_grad_inside_no_grad(x):
    with torch.no_grad():
        a = x + 1
        with torch.enable_grad():
            b = x + 2
        c = x + 3
        with torch.set_grad_enabled(True):
            d = x * a
    return a, b, c, d


@differential(leaf)
def test_print_inside_no_grad(x):
    with torch.no_grad():
        y = x * 2
        print("inside", torch.is_grad_enabled())
        z = y + x
    return y, z, x * z


@differential(leaf)
def test_return_inside_with(x):
    with torch.no_grad():
        return x * 2


@differential(leaf)
def test_grad_mode_call(x):
    old = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    y = x * 2
    torch.set_grad_enabled(old)
    return y, x * 3


@differential()
def test_user_class(x):
    log = []
    with Recorder(log) as r:
        y = x + len(r.log)
    return y, log


@differential()
def test_user_class_swallows(x):
    log = []
    with Recorder(log, (KeyError,)):
        x = x + 1
        raise KeyError("k")
    return x, log


@differential()
def test_user_class_lets_through(x):
    LOG.append(x + 1)
    with Recorder(LOG, (KeyError,)):
        raise ValueError("v")


@differential()
def test_several_managers(x):
    log = []
    with Recorder(log) as a, Recorder(log, (ValueError,)) as b, scaled(log, 3) as six:
        x = x * six
        log.append(a is b)
    return x, log


@differential()
def test_contextmanager(x):
    log = []
    with scaled(log, 2) as four:
        x = x * four
    with scaled(log, 5):
        raise ValueError("inside")
    return x, log


@differential(leaf)
def test_contextmanager_over_no_grad(x):
    with grad_off():
        y = x * 2
    return y, x * 2


@differential()
def test_exit_stack(x):
    log = []
    with contextlib.ExitStack() as stack:
        stack.enter_context(Recorder(log))
        stack.callback(log.append, "callback")
        n = stack.enter_context(scaled(log, 1))
        x = x + n
    return x, log


@differential()
def test_suppress_and_nullcontext(x):
    with contextlib.suppress(ZeroDivisionError):
        x = x + 1
        x = x / (1 // 0)
    with contextlib.nullcontext(3) as n:
        x = x * n
    return x


@differential(lambda: (torch.tensor([1.0, -5.0]),))
def test_tensor_branch_inside_with(x):
    log = []
    with Recorder(log), torch.no_grad():
        if x.sum() < 0:
            y = x * -1
        else:
            y = x
        y = y + 1
    return y, log


@differential()
def test_exit_order_on_return_in_loop(x):
    log = []
    for i in range(3):
        with Recorder(log):
            if i == 1:
                return x * i, log
            x = x + 1
    return None


@differential()
def test_missing_protocol(x):
    with x.sum:
        pass


@differential(leaf)
def test_no_grad_decorator(x):
    @torch.no_grad()
    def g(v):
        return v * 2

    return g(x), x + g(x)


@differential(leaf)
def test_autocast(x):
    a = x.reshape(1, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        b = a @ a.t()
    return b, (a @ a.t()).dtype, b.dtype


@differential()
def test_operation_fails_in_a_with_inside_of_a_try(x):
    try:
        with torch.no_grad():
            y = x[torch.tensor([7])]
    except IndexError:
        y = x
    return y, torch.is_grad_enabled()


def names(error):
    return [entry.name for entry in traceback.extract_tb(error.__traceback__)]


@contextlib.contextmanager
def passing():
    yield


def leaves_passing(x):
    with passing():
        if x.dim():
            raise KeyError(x.dim())


def test_traceback_of_what_was_thrown_into_a_manager():
    """Its generator is no part of it: 3.11 and later say so in contextlib, 3.10 keeps tracebacks beside exceptions."""
    told = []
    for fn in (leaves_passing, framegraft.compile(leaves_passing, backend="eager")):
        with pytest.raises(KeyError) as caught:
            fn(torch.ones(2))
        told.append([name for name in names(caught.value) if name in ("leaves_passing", "passing", "__exit__")])
    assert told[0] == told[1] == ["leaves_passing"]


@contextlib.contextmanager
def heard(x, log):
    log.append("in")
    try:
        yield x + 1
    finally:
        log.append("out")


@differential(lambda: (torch.ones(2), True, True), graphs=1)
def test_exit_stack(x, raises, swallows):
    log = []
    try:
        with contextlib.ExitStack() as stack:
            y = stack.enter_context(heard(x, log)) * 2
            stack.callback(log.append, 5)
            stack.push(lambda kind, error, trace: log.append((kind, error.args)) or swallows)
            if raises:
                raise ValueError("raised")
            log.append("not raised")
    except ValueError as error:
        log.append(str(error))
    return y + x, log


@differential(lambda: (torch.ones(2), 3))
def test_methods_made_of_functions(x, n):
    def f(self, k):
        return self + k

    bound = types.MethodType(f, x)
    return bound(n), bound.__self__ is x, bound.__func__ is f, types.MethodType(heard, x).__func__ is heard
