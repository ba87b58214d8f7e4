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
