"""Tensors from outside that are written to with a gradient, and require one from then on."""

import pytest
import torch

import framegraft

from .differential import differential


def plain_and_leaf():
    return torch.ones(3, 3), torch.arange(1.0, 4.0, requires_grad=True)


@differential(plain_and_leaf, graphs=1)
def test_an_item(x, w):
    x[0] = w
    return x * 2, x.requires_grad


@differential(plain_and_leaf, graphs=1)
def test_rows_in_a_loop(x, w):
    for i in range(x.shape[0]):
        x[i] = x[i] * w + i
    return x.sum()


@differential(plain_and_leaf, graphs=1)
def test_in_place(x, w):
    before = x.sin()
    x += w
    x.mul_(w)
    return before * x, x[0], x.view(-1), x.detach()


@differential(plain_and_leaf, graphs=1)
def test_a_view_made_inside(x, w):
    x.diagonal().copy_(w)
    return x @ x


@differential(lambda: ({"a": torch.zeros(3)}, torch.ones(3, requires_grad=True)), graphs=1)
def test_in_a_dict(d, w):
    d["a"][:2] = w[:2]
    d["b"] = d["a"] + 1
    return d["a"].sum()


@differential(lambda: ([torch.ones(3), torch.ones(3)], torch.ones(3, requires_grad=True)), graphs=1)
def test_in_a_list(xs, w):
    for i, x in enumerate(xs):
        x.add_(w * i)
        xs[i] = x * 2
    return xs


def base_and_view():
    x = torch.ones(3, 3)
    return x, x[0], torch.arange(1.0, 4.0, requires_grad=True)


@differential(base_and_view)
def test_a_base_whose_view_is_an_argument(x, v, w):
    x.add_(w)
    return x * 2, v * 3, v.requires_grad


@differential(base_and_view, graphs=1)
def test_a_base_whose_view_was_used_before(x, v, w):
    before = v.sum()
    x.add_(w)
    return x * 2, v * 3, v.requires_grad, before


@differential(base_and_view)
def test_a_view_whose_base_is_an_argument(x, v, w):
    v.mul_(w)
    return x * 2, v * 3, x.requires_grad


def complex_and_numbers():
    x = torch.ones(3, dtype=torch.complex64)
    return x, torch.view_as_real(x), torch.arange(1.0, 4.0, requires_grad=True)


@differential(complex_and_numbers)
def test_a_view_of_another_dtype(x, v, w):
    before = v.sum()
    x.mul_(w)
    return v * 2, v.requires_grad, before


@differential(complex_and_numbers)
def test_a_base_of_another_dtype(x, v, w):
    v[:, 0].mul_(w)
    return x * 2, x.requires_grad


@differential(plain_and_leaf)
def test_a_detached_tensor_of_the_same_memory(x, w):
    y = x.detach()
    x.add_(w)
    return y * 2, y.requires_grad, x * y


@differential(plain_and_leaf)
def test_told_behind_the_write(x, w):
    x.add_(w)
    return x.is_leaf, x.grad_fn is None


@differential(plain_and_leaf)
def test_a_handler_sees_the_write(x, w):
    x.add_(w)
    try:
        return x[torch.tensor([7])]
    except IndexError:
        return x.requires_grad


def behind_a_compiler(f):
    def run(f):
        x, w = torch.ones(3, 3), torch.arange(1.0, 4.0, requires_grad=True)
        result = f(x, w)
        (result.sum() + (x * 3).sum()).backward()
        return result, x, x.requires_grad, w.grad

    compiled = framegraft.compile(f, backend="aot_eager")
    for _ in range(2):
        for mine, other in zip(run(f), run(compiled), strict=True):
            assert torch.equal(mine, other) if isinstance(mine, torch.Tensor) else mine == other


def write(x, w):
    x[0] = w
    x[1:].mul_(w)
    return x * w


def overwrite(x, w):
    y = x.sin() + w
    x.copy_(y)
    return y.sin()


def hook(x, w):
    x.add_(w)
    x.register_hook(lambda grad: grad * 2)
    return x * 3


def hooks_among_writes(x, w):
    x.add_(w)
    x.register_hook(lambda grad: grad * 2)
    x.mul_(w)
    x.register_hook(lambda grad: grad + 1)
    return x * 3


@pytest.mark.parametrize("f", [write, overwrite, hook, hooks_among_writes])
def test_behind_a_compiler(f):
    behind_a_compiler(f)


def test_a_buffer_of_a_module():
    class Memory(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = torch.nn.Linear(3, 3)
            self.register_buffer("memory", torch.zeros(2, 3))

        def forward(self, x):
            self.memory = self.memory.detach().clone()
            self.memory[0] = self.fc(x)
            return self.memory * 2

    def run(wrap):
        torch.manual_seed(0)
        module = Memory()
        compiled = wrap(module)
        for _ in range(3):
            compiled(torch.ones(3)).sum().backward()
        return [module.memory, *(p.grad for p in module.parameters())]

    for backend in ("eager", "aot_eager"):
        framegraft.reset()
        for mine, other in zip(run(lambda m: m), run(lambda m, b=backend: framegraft.compile(m, backend=b)), strict=True):
            torch.testing.assert_close(mine, other, rtol=0, atol=0)


@differential(plain_and_leaf, graphs=1)
def test_what_requires_one_already_is_told_to(x, w):
    y = x * w
    row = y[0].requires_grad_(True)
    return y.requires_grad_() * 2, y is y.requires_grad_(), y.is_leaf, row.detach_(), y.detach().requires_grad_(False)


@differential(plain_and_leaf)
def test_only_leaves_are_told_to_require_none(x, w):
    return (x * w).requires_grad_(False)


@differential(plain_and_leaf, graphs=1)
def test_no_gradient_where_there_is_none(x, w):
    y, z = x * 2, x * w
    y.grad = z.grad = None
    return y.grad, y + z
