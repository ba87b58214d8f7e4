"""torch.autograd.forward_ad inside of the function."""

import pytest
import torch
import torch.autograd.forward_ad as fwAD
import torch.nn.functional as F

import framegraft

from .differential import differential


def two():
    return torch.arange(1.0, 4.0), torch.tensor([1.0, -1.0, 2.0])


@differential(two, graphs=1)
def test_products(x, v):
    x = x + 1
    with fwAD.dual_level():
        dual = fwAD.make_dual(x, v)
        y = dual.sin() * dual
        primal, tangent = fwAD.unpack_dual(y)
        plain = fwAD.unpack_dual(x * 2)
    return primal + tangent, tangent * 2, plain.tangent, plain.primal, y


@differential(lambda: (torch.ones(2, 3), torch.ones(2, 3) * 2, torch.arange(12.0).reshape(4, 3), torch.ones(4)), graphs=1)
def test_layers(x, v, weight, bias):
    x = x * 2
    with fwAD.dual_level():
        y = F.linear(fwAD.make_dual(x, v), weight, bias)
        y = F.layer_norm(torch.relu(y), (4,))
        found = fwAD.unpack_dual(F.softmax(y, dim=-1))
        weighed = fwAD.unpack_dual(F.linear(x, fwAD.make_dual(weight, weight.cos())))
    return found.tangent, found[0], weighed.tangent, y.sum()


@differential(lambda: (torch.arange(1.0, 4.0).requires_grad_(), torch.ones(3)), graphs=1)
def test_gradients_of_tangents(x, v):
    with fwAD.dual_level():
        dual = fwAD.make_dual(x, v)
        tangent = fwAD.unpack_dual(dual.sin() * dual).tangent
    return tangent.square()


@differential(two, graphs=1)
def test_writes(x, v):
    z = x * 1
    with fwAD.dual_level():
        dual = fwAD.make_dual(z, v)
        dual.mul_(3)
        z.add_(fwAD.make_dual(v, v))
        tangents = fwAD.unpack_dual(dual).tangent, fwAD.unpack_dual(z).tangent
    return z, dual, tangents


@differential(two)
def test_break_inside(x, v):
    x = x + 1
    with fwAD.dual_level():
        dual = fwAD.make_dual(x, v)
        print("half-way")
        y = dual.sin()
        tangent = fwAD.unpack_dual(y).tangent
    return tangent * 2, y


@differential(two)
def test_return_inside(x, v):
    x = x + 1
    with fwAD.dual_level():
        return fwAD.unpack_dual(fwAD.make_dual(x, v) * 3).tangent


@differential(two)
def test_errors(x, v):
    x = x + 1
    found = []
    try:
        with fwAD.dual_level():
            y = fwAD.make_dual(x, v) * 2
            found.append(y.sum())
            with fwAD.dual_level():
                pass
    except RuntimeError as error:
        found.append(str(error)[:30])
    try:
        fwAD.make_dual(x, v)
    except RuntimeError as error:
        found.append(str(error)[:30])
    return found, fwAD.unpack_dual(x), x * 2


@differential(two)
def test_levels_by_hand(x, v):
    x = x + 1
    fwAD.enter_dual_level()
    y = fwAD.unpack_dual(fwAD.make_dual(x, v) * 2).tangent
    fwAD.exit_dual_level()
    return y * 2


@differential(lambda: (torch.ones(3), torch.ones(3), torch.tensor([0, 7])))
def test_failure_inside(x, v, index):
    x = x + 1
    with fwAD.dual_level():
        return fwAD.unpack_dual(fwAD.make_dual(x, v)[index]).tangent


def test_level_from_outside():
    def f(x):
        y = x.sin()
        return y, fwAD.unpack_dual(y).tangent

    def g(x, v):
        with fwAD.dual_level():
            return fwAD.unpack_dual(fwAD.make_dual(x, v).sin()).tangent

    x, v = torch.ones(3), torch.arange(3.0)
    compiled = framegraft.compile(f, backend="eager")
    inner = framegraft.compile(g, backend="eager")
    assert torch.equal(inner(x, v), g(x, v))
    compiled(x)
    with fwAD.dual_level():
        dual = fwAD.make_dual(x, v)
        assert torch.equal(compiled(dual)[1], f(dual)[1])
        with pytest.raises(RuntimeError) as wanted:
            g(x, v)
        with pytest.raises(RuntimeError) as got:
            inner(x, v)
        assert str(got.value) == str(wanted.value)
    assert torch.equal(inner(x, v), g(x, v))
    assert fwAD._current_level == -1


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x):
        return torch.relu(self.linear(x))


torch.manual_seed(0)
LAYERS = torch.nn.ModuleList(Layer() for _ in range(3)).requires_grad_(False)


@differential(lambda: (torch.ones(2, 3), torch.ones(2, 3)), graphs=1)
def test_layers_that_repeat(x, v):
    for layer in LAYERS:
        x = layer(x)
    with fwAD.dual_level():
        dual = fwAD.make_dual(x, v)
        for layer in LAYERS:
            dual = layer(dual)
        found = fwAD.unpack_dual(dual)
    for layer in LAYERS:
        x = layer(x)
    return found.primal, found.tangent, x


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=[pytest.mark.slow, pytest.mark.inductor])])
def test_compilers(backend):
    def f(x, v):
        with fwAD.dual_level():
            y = F.linear(fwAD.make_dual(x, v), v.outer(v)).sin()
            found = fwAD.unpack_dual(y)
        return found.primal, found.tangent, y * 2

    x, v = torch.arange(3.0), torch.ones(3)
    compiled = framegraft.compile(f, backend=backend)
    for _ in range(2):
        for got, wanted in zip(compiled(x, v), f(x, v), strict=True):
            torch.testing.assert_close(got, wanted)
    weight = torch.ones(3, requires_grad=True)
    grads = [torch.autograd.grad(fn(weight, v)[1].sum(), weight)[0] for fn in (f, compiled)]
    torch.testing.assert_close(*grads)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", pytest.param("inductor", marks=[pytest.mark.slow, pytest.mark.inductor])])
def test_under_a_level(backend):
    def f(d):
        return d.sin() * 2

    x, v = torch.ones(3), torch.arange(3.0)
    compiled = framegraft.compile(f, backend=backend)
    plain = compiled(x)
    with fwAD.dual_level():
        for leaf in (x, x.clone().requires_grad_()):
            dual = fwAD.make_dual(leaf, v)
            got, wanted = fwAD.unpack_dual(compiled(dual)), fwAD.unpack_dual(f(dual))
            assert torch.equal(got.tangent, wanted.tangent)
    assert torch.equal(compiled(x), plain)
