"""Compilers of the user's that hand the graph on to torch's own: these see the graph's symbols, as behind ``torch.compile``."""

import pytest
import torch
from torch._functorch._aot_autograd.utils import make_boxed_func
from torch._functorch.aot_autograd import aot_module_simplified
from torch._inductor.compile_fx import compile_fx

import framegraft


class Counted:
    def __init__(self, compiler):
        self.compiler, self.count, self.inputs = compiler, 0, []

    def __call__(self, gm, example_inputs):
        self.count += 1
        self.inputs += example_inputs
        return self.compiler(gm, example_inputs)


def by_aot(gm, example_inputs):
    return aot_module_simplified(gm, example_inputs, fw_compiler=lambda graph, _: make_boxed_func(graph.forward))


def by_inductor(gm, example_inputs):
    return compile_fx(gm, example_inputs)


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
@pytest.mark.parametrize("compiler", [by_aot, by_inductor])
def test_sizes_that_change(compiler, fn, dynamic):
    if compiler is by_inductor and (dynamic or fn is of_sizes):
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
    counted = Counted(by_aot)
    compiled = framegraft.compile(lambda x: (x * x.shape[0]).sin().sum(), backend=counted)
    for n in (3, 4, 5, 6):
        x = torch.arange(float(n), requires_grad=True)
        y = x.detach().clone().requires_grad_()
        compiled(x).backward()
        (y * n).sin().sum().backward()
        torch.testing.assert_close(x.grad, y.grad)
    assert counted.count == 2
