"""Hooks on the gradients of tensors that are given to the captured function: registered behind the graph, with their handles."""

import functools

import pytest
import torch
from torch import nn

import framegraft

from .differential import differential

SEEN = []


def leaves():
    return torch.arange(3.0, requires_grad=True), torch.tensor([1.0, 2.0, 3.0])


def results():
    return torch.arange(3.0, requires_grad=True) * 1, torch.tensor([1.0, 2.0, 3.0])


@differential(leaves, graphs=1)
def test_hook_with_values_from_around(x, y):
    late, count = y * 2, 3

    def hook(grad):
        nonlocal count
        count += 1
        return grad * late * count

    x.register_hook(hook)
    count = 5
    return x * y, lambda: count


@differential(results, graphs=1)
def test_hooks_on_what_is_no_leaf(x, y):
    x.register_hook(functools.partial(torch.mul, other=y))
    return x * y


@differential(results, graphs=1)
def test_hooks_on_what_was_written_to_before(x, y):
    x.mul_(3)
    x.register_hook(lambda grad: grad * y)
    return x * y


@differential(results)
def test_hooks_of_other_kinds_on_what_was_written_to_before(x, y):
    x.mul_(3)
    x.register_hook(functools.partial(torch.mul, other=y))
    return x * y


@differential(leaves, graphs=1)
def test_hooks_that_are_removed(x, y):
    handle = x.register_hook(lambda grad: grad * 2)
    z = x * y
    handle.remove()
    handle.remove()
    x.register_hook(lambda grad: grad * 3)
    return z


@differential(leaves, graphs=1)
def test_hooks_behind_the_accumulation(x, y):
    x.register_post_accumulate_grad_hook(lambda leaf: leaf.grad.mul_(2))
    return x * y


@differential(results)
def test_tensors_that_are_written_to_afterwards(x, y):
    x.register_hook(lambda grad: grad * 2)
    x.mul_(3)
    return x * y


@differential(leaves, graphs=1)
def test_several_hooks(x, y):
    x.register_hook(lambda grad: grad * 2)
    x.register_hook(lambda grad: grad + 1)
    return x * y


@differential(leaves, graphs=1)
def test_several_hooks_some_of_which_are_removed(x, y):
    first, second, _ = [x.register_hook(lambda grad, k=k: grad * k + k) for k in (3, 5, 7)]
    second.remove()
    x.register_hook(lambda grad: grad * grad)
    return x * y, first is second


@differential(leaves)
def test_hook_that_removes_itself(x, y):
    handle = x.register_hook(lambda grad: (handle.remove(), grad * 2)[1])
    return x * y


@differential(leaves)
def test_hook_that_removes_a_later_one(x, y):
    x.register_hook(lambda grad: (later.remove(), grad * 2)[1])
    later = x.register_hook(lambda grad: grad + 1)
    return x * y


@differential(leaves)
def test_tensors_that_take_no_hook(x, y):
    found = []
    for register in (y.register_hook, (x * 1).register_post_accumulate_grad_hook):
        try:
            register(lambda grad: grad)
        except RuntimeError as error:
            found.append(str(error))
    return x * y, found


class Scaling(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.handle = None

    def forward(self, x):
        if self.handle is None:
            self.handle = self.weight.register_hook(lambda grad: grad * 2)
        return x * self.weight


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_handles(backend):
    module = Scaling()
    compiled = framegraft.compile(module, backend=backend, fullgraph=True)
    for _ in range(2):
        module.weight.grad = None
        compiled(torch.ones(3)).sum().backward()
        assert module.weight.grad.tolist() == [2, 2, 2]
    assert isinstance(module.handle, torch.utils.hooks.RemovableHandle)
    module.handle.remove()
    module.weight.grad = None
    compiled(torch.ones(3)).sum().backward()
    assert module.weight.grad.tolist() == [1, 1, 1]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_handles_that_are_given_back(backend):
    def f(x):
        handle = x.register_hook(lambda grad: SEEN.append(len(SEEN)) or grad * 2)
        return x * 3, handle, [handle]

    SEEN.clear()
    x = torch.ones(2, requires_grad=True)
    out, handle, (same,) = framegraft.compile(f, backend=backend, fullgraph=True)(x)
    assert handle is same
    out.sum().backward(retain_graph=True)
    assert x.grad.tolist() == [6, 6] and SEEN == [0]
    handle.remove()
    out.sum().backward()
    assert x.grad.tolist() == [9, 9] and SEEN == [0]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_several_handles_in_another_order(backend):
    def f(x):
        handles = [x.register_hook(lambda grad, k=k: SEEN.append(k) or grad * k + k) for k in (2, 3, 4)]
        return x * 3, handles[::-1]

    SEEN.clear()
    x = torch.ones(2, requires_grad=True)
    out, handles = framegraft.compile(f, backend=backend, fullgraph=True)(x)
    out.sum().backward(retain_graph=True)
    assert SEEN == [2, 3, 4] and x.grad.tolist() == [((3 * 2 + 2) * 3 + 3) * 4 + 4] * 2
    handles[0].remove()
    handles[2].remove()
    x.grad = None
    out.sum().backward()
    assert SEEN == [2, 3, 4, 3] and x.grad.tolist() == [3 * 3 + 3] * 2
