"""Compiled functions, methods and modules called in compiled code: a part of its graph."""

import torch

import framegraft


@framegraft.compile(backend="eager")
def inner(x, scale=2):
    return x * scale


class Holder:
    @framegraft.compile(backend="eager")
    def method(self, x):
        return inner(x, scale=3)


HOLDER = Holder()
MODULE = framegraft.compile(torch.nn.Linear(2, 2), backend="eager")


def test_one_graph():
    counter = framegraft.testing.CompileCounter()

    @framegraft.compile(backend=counter)
    def outer(x):
        return inner(x) + HOLDER.method(x), MODULE(x), MODULE.weight.sum(), MODULE.training, torch.vmap(inner)(x)

    x = torch.ones(2, 2)
    first, second, weight, training, mapped = outer(x)
    assert counter.frame_count == 1 and not framegraft.break_reasons()
    assert first.tolist() == [[5, 5]] * 2 and mapped.tolist() == [[2, 2]] * 2 and training
    assert torch.equal(second, MODULE._orig_mod(x)) and torch.equal(weight, MODULE._orig_mod.weight.sum())


def test_changes_are_seen():
    global inner

    @framegraft.compile(backend="eager")
    def outer(x):
        return inner(x), MODULE(x)

    x, kept, module = torch.ones(2), inner, MODULE._orig_mod
    outer(x)
    try:
        inner = framegraft.compile(lambda x: x * 7, backend="eager")
        assert outer(x)[0].tolist() == [7, 7]
        with torch.no_grad():
            module.bias.add_(1)
        assert torch.equal(outer(x)[1], module(x))
        MODULE._orig_mod = torch.nn.Identity()
        assert torch.equal(outer(x)[1], x)
    finally:
        inner = kept
        MODULE._orig_mod = module


def test_breaks_inside():
    @framegraft.compile(backend="eager")
    def broken(x):
        y = x + 1
        framegraft.graph_break()
        return y * 2

    @framegraft.compile(backend="eager")
    def outer(x):
        return broken(x) - 1

    assert outer(torch.ones(2)).tolist() == [3, 3]
