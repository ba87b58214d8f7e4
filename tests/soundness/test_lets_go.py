"""Capture leaves no cycle behind that would keep a program's objects alive until the garbage collector runs."""

import gc
import subprocess
import sys
import types
import weakref
from typing import NamedTuple

import numpy as np
import pytest
import torch

import framegraft


class Token:
    pass


class Record:
    a = 1


RECORD = Record()


def missing_attribute(x, token):
    framegraft.graph_break()
    return x + hasattr(RECORD, "nope")


def default_of_getattr(x, token):
    return x + getattr(RECORD, "nope", 3)


def caught_below(x, token):
    def fails(n):
        return {}[n]

    try:
        fails(3)
    except KeyError:
        x = x + 1
    framegraft.graph_break()
    return x * 2


def caught_here(x, token):
    try:
        raise ValueError(1)
    except ValueError:
        return x + 1


def leaves(x, token):
    return x + RECORD.nope


def unpacks(x, token):
    try:
        a, b = [1]
    except ValueError:
        a = 2
    return x + a


def drawn(x, token):
    values = (i for i in range(2))
    while next(values, None) is not None:
        x = x + 1
    framegraft.graph_break()
    return x


def wrong_type(x, token):
    try:
        1 + "a"
    except TypeError:
        pass
    try:
        int("x")
    except ValueError:
        pass
    return x + 1


def data_dependent(x, token):
    return x + 1 if x.sum() > 0 else x


def untraceable(x, token):
    print(end="")
    return x + 1


def arrays(x, token):
    a = x.numpy()
    return torch.from_numpy(np.sin(a) + a[:1])


def function_as_global(x, token):
    global LATEST
    LATEST = lambda: x  # noqa: E731
    value = LATEST()
    del LATEST
    return value + 1


class Asking:
    @classmethod
    def __torch_function__(cls, fn, types, args=(), kwargs=None):
        return args[1] + 1


def asking(x, token):
    return torch.add(Asking(), x)


class Called(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, function, pair):
        return function(x) * pair.count

    @staticmethod
    def backward(ctx, grad):
        return grad, None, None


class Counted(NamedTuple):
    count: int


def given_to_a_function(x, token):
    return Called.apply(x, lambda y: y + x, Counted(3))


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("function", [missing_attribute, default_of_getattr, caught_below, caught_here, leaves, unpacks, drawn,
                                      wrong_type, data_dependent, untraceable, arrays, function_as_global, asking,
                                      given_to_a_function])
def test_objects_die_with_the_call(function, dynamic):
    def call():
        try:
            compiled(x, token)
        except AttributeError:
            pass

    framegraft.compile(lambda x: x + 1, backend="eager", dynamic=dynamic)(torch.ones(3))  # what this loads leaves cycles behind
    compiled = framegraft.compile(function, backend="eager", dynamic=dynamic)
    gc.collect()
    gc.disable()
    try:
        for _ in range(2):
            token, x = Token(), torch.ones(3)
            refs = [weakref.ref(token), weakref.ref(x)]
            call()
            token = x = None
            assert [ref() for ref in refs] == [None, None]
    finally:
        gc.enable()


@pytest.mark.parametrize("repeats", [True, False])
def test_an_error_holds_nothing_longer_than_in_eager_mode(repeats):
    def program(x, index, thing):
        if not repeats:
            x.add_(1)  # the frame cannot run anew
        return x[index]

    captured = framegraft.compile(program, backend="eager")
    captured(torch.ones(3), torch.tensor([1]), Token())
    gc.collect()
    gc.disable()
    try:
        for fn in (program, captured):
            thing, x = Token(), torch.ones(3)
            refs = [weakref.ref(thing), weakref.ref(x)]
            with pytest.raises(IndexError):
                fn(x, torch.tensor([7]), thing)
            del thing, x
            assert [ref() for ref in refs] == [None, None]
    finally:
        gc.enable()


def collect():
    """Twice: what the entries of a code object hold is found to be garbage only when that has gone."""
    gc.collect()
    gc.collect()


class Breaks(torch.nn.Module):
    def forward(self, x):
        framegraft.graph_break()
        return x + 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("last", [torch.nn.ReLU, Breaks])
def test_graphs_go_with_the_compiled_module(backend, last):
    """A program that makes modules all the time: what was captured of one does not outlive it."""
    graphs = []

    def compiler(gm, inputs):
        graphs.append(weakref.ref(gm))
        return framegraft.backends.registry.make_backend(backend)(gm, inputs)

    for _ in range(3):
        module = torch.nn.Sequential(torch.nn.Linear(2, 2), last())
        framegraft.compile(module, backend=compiler)(torch.ones(2))
    del module
    collect()
    assert len(graphs) >= 3 and not any(ref() for ref in graphs)


def test_graphs_go_with_the_code():
    graphs = []

    def compiler(gm, inputs):
        graphs.append(weakref.ref(gm))
        return gm.forward

    def f(x, k):
        return x * k

    for k in range(3):
        fn = types.FunctionType(f.__code__.replace(), globals(), "fn")
        framegraft.compile(fn, backend=compiler)(torch.ones(2), k)
    del fn
    collect()
    assert len(graphs) == 3 and not any(ref() for ref in graphs)


def test_what_the_first_symbols_load_holds_nothing():
    program = """
import torch, framegraft, weakref
x = torch.ones(3)
died = weakref.ref(x)
framegraft.compile(lambda x: x + 1, backend="eager", dynamic=True)(x)
del x
print(died())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "None\n", done.stdout + done.stderr
