"""Functions and modules given to ``torch.compile``, before a capture or inside of one: captures take them as what they are."""

import pytest
import torch
import torch.nn as nn

import framegraft

from .differential import differential


@torch.compile(backend="eager")
def wave(x):
    return x.sin() + 1


def doubled(x, factor=2):
    return x * factor


DOUBLED = torch.compile(doubled, backend="eager", dynamic=True)


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))

    def forward(self, x):
        return x * self.weight


class Parts(nn.Module):
    def __init__(self):
        super().__init__()
        self.own = Scaled()
        self.own.compile(backend="eager")
        self.inner = torch.compile(Scaled(), backend="eager")
        self.linear = torch.compile(nn.Linear(3, 3), backend="eager")

    @torch.compile(backend="eager")
    def method(self, x):
        return self.own(x) + 1

    def forward(self, x):
        return self.method(x) + self.inner(x) + self.linear(x)


def check(fn, make, graphs, calls=2, change=lambda: None):
    """As eager mode with the functions as they are; torch.compile itself would leave globals behind in this module."""
    framegraft.reset()
    counter = framegraft.testing.CompileCounter()
    with framegraft.config.patch(raise_internal_errors=True):
        compiled = framegraft.compile(fn, backend=counter)
        for _ in range(calls):
            args = make()
            assert framegraft.testing.same(compiled(*args), fn(*args), exact=False)
            change()
    assert counter.frame_count == graphs, framegraft.break_reasons()


def inputs():
    return (torch.tensor([0.5, -1.0, 2.0]),)


def test_functions_from_outside():
    check(lambda x: wave(x) * DOUBLED(x, factor=3) + DOUBLED(x), inputs, 1)


def test_modules_from_outside():
    parts = Parts()
    check(parts, inputs, 1)

    def other_weight():
        parts.inner._orig_mod.weight.data.add_(1)
        parts.own.weight = nn.Parameter(parts.own.weight * 2)

    check(parts, inputs, 1, calls=3, change=other_weight)


def test_hooks_of_a_compiled_module():
    module = torch.compile(Scaled(), backend="eager")
    handle = module.register_forward_hook(lambda module, args, out: out + 1)
    check(lambda x: module(x), inputs, 1)
    handle.remove()
    check(lambda x: module(x), inputs, 1)


def broken(x):
    y = x + 1
    print(end="")
    return y * 2


def test_break_in_a_compiled_function():
    compiled = torch.compile(broken, backend="eager")
    check(lambda x: compiled(x * 2) + 1, inputs, 2)


@differential(inputs, graphs=1)
def test_compiled_inside(x):
    def local(x, factor=None):
        return x * (factor or 2)

    f = framegraft.compile(local, backend="eager")
    return f(x), f(x, 3), framegraft.compile(doubled, backend="eager", dynamic=True)(x=x)


@pytest.mark.parametrize("compiler", [torch.compile, framegraft.compile])
def test_compiled_and_called(compiler):
    check(lambda x: compiler(doubled, backend="eager")(x) + 1, inputs, 1)


@differential(inputs)
def test_compiled_functions_behind_breaks(x):
    f = framegraft.compile(doubled, backend="eager")
    y = f(x)
    print(end="")
    return f(y), type(f).__name__


@differential(inputs)
def test_unknown_backends(x):
    try:
        return torch.compile(doubled, backend="nobody's")(x)
    except Exception as error:
        return type(error).__name__


def test_a_backend_of_the_program_sees_its_graphs():
    seen = []

    def backend(gm, inputs):
        seen.append(gm)
        return gm.forward

    compiled = torch.compile(doubled, backend=backend)
    check(lambda x: compiled(x.sin()) + 1, inputs, 2)
    assert len(seen) == 1
