"""What forward and backward of a torch.autograd.Function read of the program, which may change from call to call."""

import pytest
import torch

import framegraft

from .differential import differential


def with_grad():
    return torch.arange(1.0, 4.0, requires_grad=True), torch.ones(3, requires_grad=True)


GAIN, GAINS = 2.0, [2.0]


class Gain:
    factor = 2.0


GAIN_OBJECT = Gain()


class LooksBack(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        ctx.set_materialize_grads(False)
        return x * y, x.argmax()

    @staticmethod
    def backward(ctx, grad, _):
        x, y = ctx.saved_tensors
        first, second = ctx.needs_input_grad
        gain = GAIN + GAINS[0] + GAIN_OBJECT.factor
        return grad * y * gain if first else None, grad * x if second else None


class PrintsBack(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        print("backward")
        return grad * 3


@differential(with_grad, graphs=1)
def test_backward_that_looks_around(x, w):
    return LooksBack.apply(x, w)[0] * LooksBack.apply(x, w.detach())[0]


@differential(with_grad)
def test_side_effects_of_backward(x, w):
    return PrintsBack.apply(x) * w


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_what_backward_looks_at_changes_between_calls(backend, monkeypatch):
    def f(x, w):
        return LooksBack.apply(x, w)[0] * 1

    def run(fn):
        for gain in (2.0, 3.0, 4.0, 5.0):
            monkeypatch.setitem(globals(), "GAIN", gain)
            monkeypatch.setitem(globals(), "GAINS", [gain * 2 if gain > 3 else 1.0])
            monkeypatch.setattr(GAIN_OBJECT, "factor", 1.0 if gain < 5 else 9.0)
            x, w = with_grad()
            yield [g.tolist() for g in torch.autograd.grad(fn(x, w).sum(), (x, w))]

    assert list(run(framegraft.compile(f, backend=backend))) == list(run(f))


class Closing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, function):
        ctx.function = function
        ctx.save_for_backward(x)
        return function(x) + GAINS[0]

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return grad * ctx.function(x) * GAINS[0], None


class Stepping(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor * GAIN_OBJECT.factor, None


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_numbers_that_the_caller_has_read_too(backend, monkeypatch):
    def f(x):
        gain = GAINS[0]
        factor = GAIN_OBJECT.factor
        return Closing.apply(x, lambda v: v * gain) * factor + Stepping.apply(x, gain)

    def run(fn):
        for gain in (2.0, 3.0, 4.0, 5.0):
            monkeypatch.setitem(globals(), "GAINS", [gain])
            monkeypatch.setattr(GAIN_OBJECT, "factor", gain + 1)
            x, _ = with_grad()
            y = fn(x)
            y.sum().backward()
            yield y.tolist(), x.grad.tolist()

    assert list(run(framegraft.compile(f, backend=backend))) == list(run(f))
