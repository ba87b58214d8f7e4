"""autograd.Functions that use tensors and objects of the program which are no tensors among their arguments."""

import dataclasses
from typing import Any

import pytest
import torch

import framegraft

from .differential import differential

FACTOR = torch.full((3,), 2.0)
WEIGHT = torch.full((3,), 3.0, requires_grad=True)


def leaf():
    return (torch.arange(1.0, 4.0, requires_grad=True),)


class OfGlobals(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x, WEIGHT)
        return x * FACTOR + WEIGHT

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad * FACTOR * weight + x


@differential(leaf, graphs=1)
def test_tensors_of_globals(x):
    return OfGlobals.apply(x) * 2


@differential(leaf)
def test_a_tensor_that_is_an_argument_and_a_global(x):
    return OfGlobals.apply(FACTOR * x), OfGlobals.apply(WEIGHT)


GIVEN = []


class Returning(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2, GIVEN[0]

    @staticmethod
    def backward(ctx, grad, _):
        return grad * 2


@differential(lambda: (*leaf(), torch.ones(3)))
def test_a_tensor_that_is_returned(x, given):
    GIVEN[:] = [given]
    return Returning.apply(x)


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((3,), 2.0))
        self.register_buffer("shift", torch.ones(3))
        self.count = 4
        self.options = Options(3.0)

    def forward(self, x):
        return x * self.weight


class OfModule(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, module):
        ctx.module = module
        return module(x) + module.shift * module.count

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.module.weight, None


@differential(lambda: (*leaf(), Layer()))
def test_a_module_as_an_argument(x, module):
    return OfModule.apply(x, module)


@dataclasses.dataclass
class Options:
    factor: float = 2.0
    tensor: Any = None
    names: Any = ()


@dataclasses.dataclass(frozen=True)
class Frozen:
    factor: float = 2.0


class Slotted:
    __slots__ = ("factor", "tensor")

    def __init__(self, factor):
        self.factor = factor
        self.tensor = torch.full((3,), factor)


class Kept(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, options):
        ctx.options = options
        return x * options.factor

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.options.factor, None


class Read(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, options):
        ctx.factor = options.factor
        return x * options.factor if options.tensor is None else x * options.tensor

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor, None


@differential(leaf, graphs=1)
def test_objects_made_inside(x):
    return Kept.apply(x, Options(3.0)), Kept.apply(x, Frozen()), Read.apply(x, Options(2.0, x * 2)), Read.apply(x, Slotted(2.0))


@differential(leaf)
def test_objects_that_change_later(x):
    options = Options(3.0, None, ["a"])
    y = Kept.apply(x, options)
    options.factor = 100.0
    return y


@differential(lambda: (*leaf(), Options(3.0)))
def test_objects_of_the_caller_that_change_later(x, options):
    y = Kept.apply(x, options)
    options.factor = 100.0
    return y


@differential(lambda: (*leaf(), Options(3.0, torch.ones(3)), Frozen(4.0)), graphs=1)
def test_objects_of_the_caller_that_are_read(x, options, frozen):
    return Read.apply(x, options)


@differential(lambda: (*leaf(), Layer()), graphs=1)
def test_objects_that_modules_hold(x, module):
    return Read.apply(x, module.options)


class Writing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, options):
        options.factor += 1
        return x * options.factor

    @staticmethod
    def backward(ctx, grad):
        return grad, None


@differential(lambda: (*leaf(), Options(3.0)))
def test_objects_that_forward_writes_to(x, options):
    return Writing.apply(x, options), options.factor


class Keyed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, options, tensors):
        ctx.factor = options["factor"]
        return x * options["factor"] + tensors[0] + options["more"]["tensor"]

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor, None, None


@differential(lambda: (*leaf(), {"factor": 2, "more": {"tensor": torch.ones(3)}}, [torch.ones(3)]), graphs=1)
def test_dicts_of_the_caller(x, options, tensors):
    return Keyed.apply(x, options, tensors)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_later_calls_see_what_the_program_has_then(backend, monkeypatch):
    def run(wrap):
        found = []
        fn = wrap(lambda x, m: OfGlobals.apply(x) + OfModule.apply(x, m) + Kept.apply(x, m.options))
        module = Layer()
        with monkeypatch.context() as patch:
            for step in range(6):
                if step == 1:
                    patch.setitem(globals(), "FACTOR", torch.full((3,), 5.0))
                if step == 2:
                    FACTOR.add_(1)
                if step == 3:
                    module.weight = torch.nn.Parameter(torch.full((3,), 7.0))
                if step == 4:
                    module.options = Options(11.0)
                if step == 5:
                    module = Layer()
                (x,) = leaf()
                y = fn(x, module)
                y.sum().backward()
                found += [y.detach(), x.grad, module.weight.grad]
        return found

    expected = run(lambda fn: fn)
    compiled = run(lambda fn: framegraft.compile(fn, backend=backend, fullgraph=True))
    for mine, other in zip(expected, compiled, strict=True):
        torch.testing.assert_close(other, mine, rtol=0, atol=0)


def test_modules_are_let_go():
    import gc
    import weakref

    compiled = framegraft.compile(OfModule.apply, backend="eager")
    module = Layer()
    compiled(*leaf(), module)
    held = weakref.ref(module)
    del module
    gc.collect()
    assert held() is None
