"""Compilers of the program that hand graphs with symbols to AOTAutograd, inductor or make_fx: what these make serves other sizes, too."""

import pytest
import torch
from torch._functorch._aot_autograd.utils import make_boxed_func
from torch._functorch.aot_autograd import aot_module_simplified
from torch._inductor.compile_fx import compile_fx
from torch.fx.experimental.proxy_tensor import make_fx

import framegraft
from framegraft.backends import lookup_backend


def aot(gm, example_inputs):
    return aot_module_simplified(gm, example_inputs, fw_compiler=lambda graph, _: make_boxed_func(graph.forward))


def inductor(gm, example_inputs):
    return compile_fx(gm, example_inputs)


def builtin_behind(gm, example_inputs):
    return lookup_backend("aot_eager")(gm, example_inputs)


def fx(gm, example_inputs):
    return make_fx(gm, tracing_mode="symbolic")(*example_inputs)


def sizes(x, y):
    """Nothing here checks the sizes when it runs."""
    return torch.zeros_like(y) + 1, x.new_zeros(x.shape[0] * 2), torch.ones_like(x).sum() * y.shape[0]


def reshaped(x, y):
    return y.expand(2, -1).reshape(-1) * 2, (x * x.shape[0]).flip(0) + torch.arange(x.shape[0]).sum()


def in_place(x, y):
    z = y.unsqueeze(0).t_()
    x.add_(1)
    return x.sum() * z, x * z


@pytest.mark.parametrize("backend", [aot, inductor, builtin_behind, fx])
@pytest.mark.parametrize("fn", [sizes, reshaped, in_place])
def test_sizes_differ_from_call_to_call(fn, backend):
    if fn is in_place and backend is fx:
        pytest.skip("make_fx shows its compiler what the program must not change")
    counter = []

    def counting(gm, example_inputs):
        counter.append(gm)
        return backend(gm, example_inputs)

    compiled = framegraft.compile(fn, backend=counting, dynamic=True, fullgraph=True)
    for m, n in ((3, 3), (3, 5), (5, 3), (4, 7)):
        expected, got = ([torch.arange(float(m)), torch.arange(float(n))] for _ in range(2))
        torch.testing.assert_close([*compiled(*got), *got], [*fn(*expected), *expected], rtol=0, atol=0)
    assert len(counter) <= 2  # one for equal sizes, one for others


@pytest.mark.parametrize("backend", [aot, inductor])
def test_gradients(backend):
    def fn(x, w):
        return (x @ w).relu() * x.shape[0]

    compiled = framegraft.compile(fn, backend=backend, dynamic=True)
    for n in (3, 4, 7):
        found = []
        for call in (fn, compiled):
            x = torch.linspace(-1, 1, n * 2).reshape(n, 2).requires_grad_()
            w = torch.nn.Parameter(torch.ones(2, 5))
            out = call(x, w)
            out.sum().backward()
            found.append((out, x.grad, w.grad))
        torch.testing.assert_close(found[1], found[0])


class Counted:
    def __init__(self, compiler):
        self.compiler, self.count, self.inputs = compiler, 0, []

    def __call__(self, gm, example_inputs):
        self.count += 1
        self.inputs += example_inputs
        return self.compiler(gm, example_inputs)


def of_sizes(x, n):
    return x * x.shape[0] + torch.arange(x.shape[0]), x.sum(0)


def of_tensors(x, n):
    return torch.relu(x) * 2


def of_a_number(x, n):
    return torch.zeros((n, n), dtype=torch.complex64) * 2


def written(x, n):
    x.add_(n)
    return x[1:] * x[:-1]


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("fn", [of_sizes, of_tensors, of_a_number, written])
@pytest.mark.parametrize("compiler", [aot, inductor])
def test_sizes_that_change(compiler, fn, dynamic):
    if compiler is inductor and (dynamic or fn is of_sizes):
        pytest.skip("seconds for each")
    counted = Counted(compiler)
    compiled = framegraft.compile(fn, backend=counted, dynamic=dynamic)
    for n in (3, 4, 5, 6, 7):
        x = torch.arange(float(n))
        expected, got = (f(x.clone(), n) for f in (fn, compiled))
        torch.testing.assert_close(got, expected)
    assert counted.count == (1 if dynamic else 2)
    assert all(type(value) in (torch.Tensor, torch.SymInt) for value in counted.inputs)


def test_gradients_of_sizes_that_change():
    counted = Counted(aot)
    compiled = framegraft.compile(lambda x: (x * x.shape[0]).sin().sum(), backend=counted)
    for n in (3, 4, 5, 6):
        x = torch.arange(float(n), requires_grad=True)
        y = x.detach().clone().requires_grad_()
        compiled(x).backward()
        (y * n).sin().sum().backward()
        torch.testing.assert_close(x.grad, y.grad)
    assert counted.count == 2
