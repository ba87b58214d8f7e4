"""Gradients of gradients: as in eager mode, whatever compiles the graph; an error with a hint where that cannot be."""

import gc
import weakref

import pytest
import torch
import torch.nn as nn

import framegraft

BACKENDS = ["eager", "aot_eager", pytest.param("inductor", marks=[pytest.mark.slow, pytest.mark.inductor])]


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


def penalty(model, x):
    x = x.clone().requires_grad_()
    out = model(x)
    (grad,) = torch.autograd.grad(out.sum(), x, create_graph=True)
    return out.square().mean() + (grad.norm(2, dim=1) - 1).square().mean()


def hessian_vector_product(model, x):
    params = list(model.parameters())
    grads = torch.autograd.grad(model(x).square().mean(), params, create_graph=True)
    return torch.autograd.grad(sum(g.sum() for g in grads), params, allow_unused=True)


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradient_penalty_trains(backend):
    def train(wrap):
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loss_of, losses = wrap(penalty), []
        torch.manual_seed(1)
        for _ in range(4):
            optimizer.zero_grad()
            loss = loss_of(model, torch.randn(5, 3))
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        return losses, [p.grad for p in model.parameters()]

    torch.testing.assert_close(train(lambda f: framegraft.compile(f, backend=backend)), train(lambda f: f), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_unused_is_said_of_unused_ones_only(backend):
    model, x = net(), torch.randn(4, 3)
    compiled = framegraft.compile(hessian_vector_product, backend=backend)
    got, expected = compiled(model, x), hessian_vector_product(model, x)
    torch.testing.assert_close([g for g in got if g is not None], [g for g in expected if g is not None], rtol=1e-4, atol=1e-5)
    assert [g is None for g in got] == [g is None for g in expected]


@pytest.mark.parametrize("backend", ["aot_eager"])
def test_the_whole_function_differentiated_from_outside(backend):
    def f(w, x):
        return (w * x).sin().sum()

    w, x = torch.randn(4, requires_grad=True), torch.randn(4)
    results = []
    for fn in (f, framegraft.compile(f, backend=backend)):
        (first,) = torch.autograd.grad(fn(w, x), w, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), w, create_graph=True)
        results.append((first.detach(), second.detach(), *torch.autograd.grad(second.sum(), w)))
    torch.testing.assert_close(*results)


def test_what_cannot_run_again_is_an_error():
    def f(w, x):
        return torch.dropout(w * x, 0.5, True).sin().sum()

    w, x = torch.randn(16, requires_grad=True), torch.randn(16)
    (first,) = torch.autograd.grad(framegraft.compile(f, backend="aot_eager")(w, x), w, create_graph=True)
    assert first.requires_grad
    with pytest.raises(framegraft.exc.DoubleBackwardError, match="random numbers.*\n.*backend=\"eager\""):
        torch.autograd.grad(first.sum(), w)


def test_inputs_that_have_changed_since_are_an_error():
    w, x = torch.randn(4, requires_grad=True), torch.randn(4)
    out = framegraft.compile(lambda w, x: (w * w * x).sum(), backend="aot_eager")(w, x)
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation|inputs have changed"):
        (first,) = torch.autograd.grad(out, w, create_graph=True)
        torch.autograd.grad(first.sum(), w)


def test_nothing_is_kept_after_a_step():
    """Neither by graphs that can run again nor by those that change an input."""
    w = torch.randn(4, requires_grad=True)
    grows = framegraft.compile(lambda x: x.mul_(2).sin().sum(), backend="aot_eager")
    plain = framegraft.compile(lambda x: (x * 2).sin().sum(), backend="aot_eager")
    for fn in (plain, grows, grows):
        x = w * 1
        gone = weakref.ref(x)
        loss = fn(x)
        if fn is plain:
            loss.backward()
            del x
            assert gone() is None
        del loss
        x = None
        gc.collect()
        assert gone() is None


@pytest.mark.parametrize("backend", BACKENDS)
def test_backward_twice_over_one_graph(backend):
    model, x = net(), torch.randn(4, 3)
    compiled = framegraft.compile(model, backend=backend)
    grads = []
    for fn in (model, compiled, compiled):
        model.zero_grad()
        loss = fn(x).square().mean()
        loss.backward(retain_graph=fn is compiled and bool(grads[1:]) or fn is model)
        if fn is model or grads[1:]:
            loss.backward()
        else:
            fn(x).square().mean().backward()
        grads.append([p.grad.clone() for p in model.parameters()])
    torch.testing.assert_close(grads[1], grads[0])
    torch.testing.assert_close(grads[2], grads[0])


def test_hooks_of_inputs_run_once():
    def run(fn):
        seen = []
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        x.register_hook(lambda g: seen.append("leaf") or g * 3)
        z = x * 2
        z.register_hook(lambda g: seen.append("inner") or g * 5)
        first, = torch.autograd.grad(fn(z, x).sum(), x, create_graph=True)
        first.sum().backward()
        return first.tolist(), x.grad.tolist(), seen

    def f(z, x):
        return z * z * x

    assert run(framegraft.compile(f, backend="aot_eager")) == run(f)


@pytest.mark.parametrize("backend", BACKENDS)
def test_views_of_what_another_graph_made(backend):
    """The view's autograd graph leads to the node of the graph that made the input: that node is the other graph's."""

    def made(x):
        return x.sin() * 2

    def viewed(y):
        return y.t()

    def run(made, viewed):
        x = torch.arange(9.0).reshape(3, 3).requires_grad_()
        found = []
        for given in (made(x), x.exp() + 1, made(x)):
            first, = torch.autograd.grad(viewed(given).square().sum(), x, create_graph=True)
            second, = torch.autograd.grad(first.square().sum(), x)
            found += [first.detach(), second]
        return found

    compiled = [framegraft.compile(fn, backend=backend) for fn in (made, viewed)]
    torch.testing.assert_close(run(*compiled), run(made, viewed))
