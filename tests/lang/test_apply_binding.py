"""How torch.autograd.Function.apply hands arguments to forward: by keyword, with defaults, and what autograd refuses later."""

import pytest
import torch

import framegraft

from .differential import differential
from .test_autograd_functions import Doubled


def leaf():
    return (torch.arange(1.0, 4.0, requires_grad=True),)


class Powers(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor=2, shift=1):
        ctx.factor = factor
        return x * factor + shift

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor * len(ctx.needs_input_grad), *[None] * (len(ctx.needs_input_grad) - 1)


class Apart(torch.autograd.Function):
    @staticmethod
    def forward(x, factor=2, shift=1):
        return x * factor + shift

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, ctx.factor, ctx.shift = inputs

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor + ctx.shift, None, None


def attempt(fn, *args, **kwargs):
    try:
        return fn(*args, **kwargs)
    except (TypeError, RuntimeError) as error:
        return type(error), str(error)


@differential(leaf, graphs=1)
def test_keywords(x):
    return Apart.apply(x, factor=5), Apart.apply(shift=x.detach(), x=x), Apart.apply(x, 3), Apart.apply(x)


@differential(leaf)
def test_keywords_without_setup_context(x):
    return attempt(Powers.apply, x, factor=5), attempt(Powers.apply, x, 3, shift=7), attempt(Powers.apply, x=x)


@differential(leaf)
def test_keywords_that_are_refused(x):
    return [attempt(f.apply, *args, **kwargs) for f in (Powers, Apart) for args, kwargs in (
        ((x,), {"other": 3}), ((x,), {"x": x}), ((), {"factor": 3}), ((x,), {"shift": 3}), ((x, 1, 2, 3), {}))]


class OnlyByName(torch.autograd.Function):
    @staticmethod
    def forward(x, *, factor=2):
        return x * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.count = len(inputs)

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.count


class Several(torch.autograd.Function):
    @staticmethod
    def forward(x, *others):
        return x + sum(others)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.count = len(inputs)

    @staticmethod
    def backward(ctx, grad):
        return tuple(grad * n for n in range(ctx.count))


@differential(leaf)
def test_parameters_of_other_kinds(x):
    return attempt(OnlyByName.apply, x), attempt(OnlyByName.apply, x, factor=3), Several.apply(x, x * 2, x * 3)


class Twofold(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x * 2
        return y, y, x + 1

    @staticmethod
    def backward(ctx, a, b, c):
        return a + 3 * b + c


@differential(leaf, graphs=1)
def test_a_result_that_is_given_twice(x):
    one, two, other = Twofold.apply(x)
    return one, two, one is two, one is other


class Given(torch.autograd.Function):
    """Gives gradients of its own choice."""

    @staticmethod
    def forward(ctx, x, gradients):
        ctx.gradients = gradients
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return ctx.gradients(grad)


GRADIENTS = {
    "too few": lambda g: g,
    "too many": lambda g: (g, None, g),
    "none more": lambda g: (g, None, None, None),
    "of another shape": lambda g: (g.expand(4, 2), None),
    "to be summed": lambda g: (g.expand(2, 3), None),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("kind", list(GRADIENTS))
@pytest.mark.parametrize("dynamic", [None, True])
def test_gradients_that_autograd_refuses(kind, backend, dynamic):
    def f(x):
        return Given.apply(x, GRADIENTS[kind]) + 1

    compiled = framegraft.compile(f, backend=backend, dynamic=dynamic)
    seen = []
    for fn in (f, compiled, compiled):
        x = torch.ones(3, requires_grad=True)
        y = fn(x)
        seen.append((y.tolist(), attempt(y.sum().backward), None if x.grad is None else x.grad.tolist()))
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_view_that_is_changed(backend):
    def f(x):
        y = x * 1
        z = Doubled.apply(y[0])
        return y, z

    for fn in (f, framegraft.compile(f, backend=backend)):
        x = torch.ones(2, 2, requires_grad=True)
        y, z = fn(x)
        y.sum().backward(retain_graph=True)
        assert x.grad.tolist() == [[2, 2], [1, 1]]
        z.sum().backward()
        assert x.grad.tolist() == [[4, 4], [1, 1]]


class Counted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, count):
        ctx.mark_dirty(count.add_(1))
        return x * count, count

    @staticmethod
    def backward(ctx, grad, other):
        return grad * 2 + other * 5, None


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("inside", [True, False])
def test_a_change_that_makes_a_tensor_require_a_gradient(inside, backend):
    def f(x, count):
        y, changed = Counted.apply(x, count * 1 if inside else count)
        return y, changed, changed is count

    for fn in (f, framegraft.compile(f, backend=backend)):
        x, count = torch.ones(3, requires_grad=True), torch.ones(3)
        y, changed, same = fn(x, count)
        (y.sum() + changed.sum()).backward()
        assert x.grad.tolist() == [7, 7, 7] and changed.requires_grad and same is not inside
