"""Functions and classes as arguments of torch.autograd.Function.apply."""

import pytest
import torch

import framegraft

from .differential import differential


def with_grad():
    return torch.arange(1.0, 4.0, requires_grad=True), torch.ones(3, requires_grad=True)


class Calls(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, fn, *more):
        ctx.count = len(more)
        return fn(x)

    @staticmethod
    def backward(ctx, grad):
        return (grad * 2, *[None] * (ctx.count + 1))


class Compares(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, one, other):
        return one(x) * (2 if one is other else 3) + (5 if one.__name__ == "<lambda>" else 7)

    @staticmethod
    def backward(ctx, grad):
        return grad, None, None


def made_by(k, w):
    return lambda v: v * k + w


@differential(with_grad, graphs=1)
def test_functions_with_variables_around_them(x, w):
    k, shift = 3, w.detach() * 2

    def named(v):
        return v * k + shift

    def factorial(v, n=3):
        return v

    def twice(v):
        return named(named(v)) * up(1)

    def up(n):
        return n * 2

    return Calls.apply(x, named) + Calls.apply(w, lambda v: twice(v) - k) * Calls.apply(x, made_by(2, x.detach())), named(x)


@differential(lambda: (*with_grad(), lambda v: v * 4, made_by(3, torch.ones(3))), graphs=1)
def test_functions_that_are_parameters(x, w, fn, made):
    return Calls.apply(x, fn) + Calls.apply(w, made) + Calls.apply(x, torch.sin) * Calls.apply(w, float.__mul__ and torch.neg)


@differential(with_grad, graphs=1)
def test_identity_of_functions(x, w):
    one, other = (lambda v: v * 2), (lambda v: v * 2)
    return Compares.apply(x, one, one), Compares.apply(w, one, other)


class Casts(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, cls):
        ctx.cls = cls
        return x * cls(2.7)

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.cls(3.5), None


@differential(with_grad, graphs=1)
def test_classes_as_arguments(x, w):
    return Casts.apply(x, int) + Casts.apply(w, float)


@differential(with_grad, graphs=1)
def test_functions_that_are_kept(x, w):
    k, shift = 3, w.detach() * 2

    def back(grad, v):
        return grad * k + v * shift

    return CallsBack.apply(x, lambda v: v * k, back)


@differential(with_grad)
def test_variables_of_functions_that_are_kept(x, w):
    k, seen = 3, [1]
    y = CallsBack.apply(x, lambda v: v * k, lambda grad, v: grad * k)
    k = 5
    z = CallsBack.apply(x, lambda v: v * k, lambda grad, v: grad * len(seen))
    seen.append(2)
    for n in range(2):
        z = CallsBack.apply(z, lambda v: v * n, lambda grad, v: grad * (n + 1))
    return y, z


@differential(with_grad)
def test_functions_that_are_kept_and_returned(x, w):
    def back(grad, v):
        return grad * 2

    y = CallsBack.apply(x, lambda v: v * 3, back)
    back.note = 1
    return y, back


@differential(with_grad)
def test_variables_that_functions_store(x, w):
    n = 0

    def count(v):
        nonlocal n
        n += 1
        return v * n

    y = Calls.apply(x, count) + Calls.apply(w, count)
    return y, n


def test_parameters_that_differ():
    def f(x, fn):
        return Calls.apply(x, fn) + 1

    compiled, x = framegraft.compile(f, backend="eager"), torch.ones(3)
    marked = made_by(2, x)
    marked.__name__ = "marked"
    functions = [made_by(2, x), made_by(3, x + 1), lambda v: v * 5, lambda v, k=3: v * k, marked, torch.cos, made_by(4, 1), made_by(4, 2)]
    for fn in functions:
        assert torch.equal(compiled(x, fn), f(x, fn))
