"""Beside torch.compile: each captures its own functions, whoever calls whom, and neither captures the other's work."""

import logging
import subprocess
import sys

import pytest
import torch

import framegraft


def inner(v):
    return v * 2 + 1


def broken(v):
    w = inner(v)
    print(end="")
    return w.relu()


@pytest.fixture
def stock():
    torch.compiler.reset()
    yield lambda f: torch.compile(f, backend="eager")
    torch.compiler.reset()


def ours(f):
    return framegraft.compile(f, backend="eager")


X = torch.linspace(-1, 1, 6)


def check(fn, eager, times=3):
    for _ in range(times):
        assert torch.equal(fn(X), eager(X))


@pytest.mark.parametrize("leaf", [inner, broken])
def test_each_calls_the_other(stock, leaf):
    a = ours(leaf)
    b = stock(lambda v: a(v) + 1)
    c = ours(lambda v: b(v) + 1)
    d = stock(lambda v: c(v) + 1)
    check(d, lambda v: leaf(v) + 3)
    check(c, lambda v: leaf(v) + 2)
    check(a, leaf)


def test_stock_first_called_inside_of_ours(stock):
    b = stock(broken)
    check(ours(lambda v: b(v.sin()) + 1), lambda v: broken(v.sin()) + 1)


def test_optimize_around_stock(stock):
    b = stock(broken)
    counter = framegraft.testing.CompileCounter()
    with framegraft.optimize(counter):
        check(b, broken)
        before = counter.frame_count
        mine = inner(X.double())
        assert counter.frame_count == before + 1
    assert torch.equal(mine, inner(X.double()))
    check(b, broken)


def test_stock_counts_what_it_counted_alone(stock):
    seen = []

    def backend(gm, inputs):
        seen.append(gm)
        return gm.forward

    f = torch.compile(broken, backend=backend)
    check(f, broken)
    alone = len(seen)
    torch.compiler.reset()
    seen.clear()
    g = torch.compile(broken, backend=backend)
    a = ours(lambda v: g(v) + 1)
    check(a, lambda v: broken(v) + 1)
    assert len(seen) == alone


def test_after_all_the_hook_is_gone(stock):
    a = ours(broken)
    check(stock(lambda v: a(v) + 1), lambda v: broken(v) + 1)
    counter = framegraft.testing.CompileCounter()
    torch.compile(inner, backend=counter)(X)
    assert counter.frame_count == 1
    before = counter.frame_count
    broken(X)
    assert counter.frame_count == before


class Silent(logging.Handler):
    """A handler of the program's own, as test runners and services install them."""

    def __init__(self):
        super().__init__(logging.DEBUG)
        self.count = 0

    def emit(self, record):
        self.count += 1


def test_the_work_of_other_compilers_is_not_captured(stock, caplog):
    handler = Silent()
    logger = logging.getLogger("torch")
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        b = stock(broken)
        a = ours(lambda v: b(v) + 1)
        check(a, lambda v: broken(v) + 1)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
    assert not framegraft._debug_get_cache_entry_list(Silent.emit)
    assert not framegraft._debug_get_cache_entry_list(torch.nn.Module.__setattr__)


def test_modules_built_and_used_under_the_hook():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = torch.nn.Linear(3, 3)

        def forward(self, x):
            return self.lin(x).relu()

    counter = framegraft.testing.CompileCounter()
    with framegraft.optimize(counter):
        for _ in range(3):
            net = Net()
            net.eval()
            out = net(torch.ones(2, 3))
        assert torch.equal(out, torch.relu(torch.nn.functional.linear(torch.ones(2, 3), net.lin.weight, net.lin.bias)))
    assert counter.frame_count
    for fn in (torch.nn.Module.__setattr__, torch.nn.Module.__init__, torch.nn.Linear.__init__):
        assert not framegraft._debug_get_cache_entry_list(fn)


def sized(v):
    return (v + v.shape[0]).sin() if v.shape[0] > 2 else v


@pytest.mark.parametrize("before", [False, True], ids=["first call", "captured before"])
def test_torch_jit_trace_records_the_function(before):
    """Its trace is that of the function itself, to the last node."""
    compiled = ours(sized)
    if before:
        check(compiled, sized)
    expected = torch.jit.trace(sized, (X,))
    traced = torch.jit.trace(compiled, (X,))
    assert traced.code == expected.code
    assert torch.equal(traced(X[:4]), expected(X[:4]))
    check(compiled, sized)


def test_torch_jit_trace_of_a_module():
    layer = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.ReLU())
    compiled = ours(layer)
    check(compiled, layer)
    assert torch.equal(torch.jit.trace(compiled, (X,))(X), layer(X))


BOTH = """
import torch
import framegraft

SOURCE = '''def broken{n}(v):
    w = v + 1
    print(end="")
    return w.relu()
'''

for n in range(40):
    exec(SOURCE.format(n=n))
    for sign in "+-":  # other numbers: these take two
        framegraft.compile(eval(f"lambda v: v {sign} {n}"), backend="eager")(torch.ones(2))
    (framegraft.compile if n < 36 else torch.compile)(eval(f"broken{n}"), backend="eager")(torch.ones(2))
"""


def test_names_of_resume_functions_are_not_those_of_stock():
    """Which takes a name that is there already for its own fault."""
    done = subprocess.run([sys.executable, "-c", BOTH], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
