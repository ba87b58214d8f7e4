"""Functions given to torch (torch.func, torch.cond and its kin) in graphs whose sizes and numbers are symbols."""

import types

import pytest
import torch
from torch._higher_order_ops import while_loop
from torch._higher_order_ops.map import map as torch_map
from torch._higher_order_ops.scan import scan
from torch.func import functional_call, grad, jacfwd, jacrev, jvp, vjp, vmap
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.utils import _pytree as pytree

import framegraft

ROWS = (4, 5, 7, 4, 6)
LINEAR = torch.nn.Linear(3, 3)
WEIGHT = torch.ones(3, requires_grad=True)


def rows(n, negative=False):
    torch.manual_seed(n)
    x = torch.randn(n, 3) + (-2 if negative else 2)
    return x.requires_grad_(), x.detach().clone().requires_grad_()


def same(got, expected):
    got, expected = pytree.tree_leaves(got), pytree.tree_leaves(expected)
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        torch.testing.assert_close(one, other, check_stride=True)
        assert one is None or one.requires_grad == other.requires_grad


def graphs(fn, numbers=ROWS, *, backend="eager", gradients=True, **settings):
    """The graphs that calls with these numbers of rows make, in one capture each; results and gradients are those of eager mode."""
    counter = framegraft.testing.CompileCounterWithBackend(backend)
    compiled = framegraft.compile(fn, backend=counter, fullgraph=True, **settings)
    for index, n in enumerate(numbers):
        one, other = rows(n, negative=bool(index % 2))
        got, expected = compiled(one), fn(other)
        same(got, expected)
        for results, leaf in ((got, one), (expected, other)) if gradients else ():
            losses = [t.sum() for t in pytree.tree_leaves(results) if t.requires_grad]
            if losses:
                torch.autograd.backward(losses, inputs=[leaf])
        same(one.grad, other.grad)
    return counter.frame_count


def branches(x):
    return torch.cond(x.sum() > 1, lambda v: v.reshape(v.shape[0], -1) * x.shape[1], lambda v: v - x.shape[0], (x,))


def nested_branches(x):
    def inner(v):
        return torch.cond(v.max() > 0, lambda w: w * x.shape[0] + x, lambda w: w - v, (v,))

    return torch.cond(x.sum() > 1, inner, lambda v: v + 1, (x,))


def each_row(x):
    return vmap(lambda v: (v * x.shape[0] + v.shape[0], torch.ones(v.shape[0])))(x)


def each_column(x):
    return vmap(lambda v: v * torch.ones(v.shape[0]), in_dims=1, out_dims=1)(x)


def gradients(x):
    return grad(lambda v: (v ** 2 * WEIGHT).sum() / v.shape[0])(x), vjp(lambda v: v.sin() * v.shape[0], x)[0]


def per_sample(x):
    def loss(parameters, v):
        return functional_call(LINEAR, parameters, (v,)).sum()

    return vmap(grad(loss), in_dims=(None, 0))(dict(LINEAR.named_parameters()), x)


def jacobians(x):
    return jacrev(lambda v: v.sin().sum(0), chunk_size=2)(x), jacfwd(lambda v: v.sum(1))(x), jvp(torch.sin, (x,), (torch.ones_like(x),))


def scanned(x):
    return scan(lambda c, v: (c + v, c * v + x.shape[0]), x[0] * 0, x), scan(lambda c, v: (c + v, c * v), x[:, 0] * 0, x, dim=1, reverse=True)


def mapped(x):
    return torch_map(lambda v: v * 2 + v.shape[0], x)


PROGRAMS = (branches, nested_branches, each_row, each_column, gradients, per_sample, jacobians, scanned, mapped)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_second_size_costs_one_capture_a_third_none(program, backend):
    assert graphs(program, backend=backend) == 2
    framegraft.reset()
    assert graphs(program, backend=backend, dynamic=True) == 1


@pytest.mark.parametrize("program", [branches, scanned, mapped])
def test_inductor(program):
    compiled = framegraft.compile(program, backend="inductor")
    for n in (4, 5, 7):
        x = rows(n)[0].detach()
        for got, expected in zip(pytree.tree_leaves(compiled(x)), pytree.tree_leaves(program(x)), strict=True):
            torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_flex_attention(backend):
    biases = torch.randn(2)

    def attention(query, mask):
        return flex_attention(query, query, query, score_mod=lambda score, b, h, i, j: score * biases[h] + (i - j), block_mask=mask)

    counter = framegraft.testing.CompileCounterWithBackend(backend)
    compiled = framegraft.compile(attention, backend=counter, fullgraph=True)
    for n in (128, 256, 384, 130):
        query = torch.randn(1, 2, n, 16)
        mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, n, n, device="cpu")
        torch.testing.assert_close(compiled(query, mask), attention(query, mask), rtol=1e-3, atol=1e-3)
    assert counter.frame_count <= 4


def test_numbers_in_flex_attention_are_refused():
    def attention(query):
        return flex_attention(query, query, query, score_mod=lambda score, b, h, i, j: score * query.shape[2])

    compiled = framegraft.compile(attention, backend="eager", fullgraph=True)
    compiled(torch.randn(1, 2, 8, 16))
    with pytest.raises(framegraft.exc.Unsupported, match="differs from call to call"):
        compiled(torch.randn(1, 2, 9, 16))


def test_while_loop():
    def doubled(x):
        return while_loop(lambda i, v: i < v.shape[0], lambda i, v: (i + 1, v * 2), (torch.tensor(0), x.detach()))

    assert graphs(doubled) == 2


def test_hook_that_looks_at_sizes():
    def hooked(x):
        y = x * 2
        y.register_hook(lambda g: g * y.shape[0] + g.shape[0])
        return y.sin()

    assert graphs(hooked) == graphs(hooked, backend="aot_eager") == 2


def test_branch_of_python_in_a_function_given_to_torch():
    def f(x):
        return vmap(lambda v: v * 2 if x.shape[0] > 5 else v + 1)(x)

    assert graphs(f) == 3  # static; up to 5; more


def test_size_decides_a_cond():
    def f(x):
        return torch.cond(x.shape[0] > 5, lambda v: v * 2, lambda v: v + 1, (x,))

    assert graphs(f) == 3


def test_numbers_in_functions_given_to_torch():
    settings = types.SimpleNamespace()

    def f(x):
        return (vmap(lambda v: v * settings.count)(x), vmap(lambda v, n: v * n, in_dims=(0, None))(x, len(x)),
                grad(lambda v: (v * settings.scale).sum())(x), torch.cond(x.sum() > 1, lambda v: v * settings.count, torch.neg, (x,)))

    counter = framegraft.testing.CompileCounter()
    compiled = framegraft.compile(f, backend=counter, fullgraph=True)
    for n in (4, 5, 6, 5):
        settings.count, settings.scale = n, n / 2
        one, other = rows(n)
        same(compiled(one), f(other))
    assert counter.frame_count == 3  # what is handed to vmap as a number, and floats, are constants


def test_numbers_and_sizes_that_the_data_decides():
    def outside(x):
        n = x.sum().int().item()
        positive = x.detach()[x > 0]
        return vmap(lambda v: v * n)(x), grad(lambda v: (v * n).sum())(positive), torch.cond(x.sum() > 1, lambda v: v * n, torch.neg, (x,))

    assert graphs(outside) == 2


@pytest.mark.parametrize("function", [
    lambda x: torch.cond(x.sum() > 1, lambda v: v * v.sum().int().item(), torch.neg, (x,)),
    lambda x: torch.cond(x.sum() > 1, lambda v: v[v > 0].sum(), lambda v: v.sum(), (x,)),
    lambda x: torch_map(lambda v: v + 1, x.nonzero()),
])
def test_what_the_data_decides_inside_is_refused(function):
    with pytest.raises(framegraft.exc.Unsupported, match="the data decides"):
        framegraft.compile(function, backend="eager", fullgraph=True)(rows(4)[0])


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_cond_gets_each_tensor_once(backend):
    def f(x):
        def inner(v):
            return torch.cond(v.sum() > 2, lambda w: w + x + v, torch.neg, (v,))

        return torch.cond(x.sum() > 1, lambda v, w: v * 2 + w + x, lambda v, w: v - x, (x, x)), torch.cond(x.sum() > 1, inner, torch.neg, (x,))

    assert graphs(f, (4, 4), backend=backend) == 1
