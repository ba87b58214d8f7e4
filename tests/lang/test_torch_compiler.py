"""Programs that steer another tracer, torch's own: what torch.compiler's decorators say holds here, too."""

import torch
import torch._dynamo

import framegraft
from framegraft.testing import CompileCounter


def compiling(x):
    return x * 3 if torch.compiler.is_compiling() else x * 2


def test_disabled_functions_run_in_eager_mode_with_all_that_they_call():
    def outer(x):
        return compiling(x) + 1

    disabled = torch.compiler.disable(outer)
    counter = CompileCounter()

    @framegraft.compile(backend=counter)
    def fn(x):
        return disabled(x + 1) * 2

    for _ in range(2):
        assert torch.equal(fn(torch.ones(2)), torch.full((2,), 10.0))
    assert counter.frame_count == 2


def test_a_function_alone_is_disabled():
    @torch.compiler.disable(recursive=False)
    def alone(x):
        y = 1 if torch.compiler.is_compiling() else 2
        return compiling(x) * y

    counter = CompileCounter()
    fn = framegraft.compile(lambda x: alone(x + 1) + 1, backend=counter)
    for _ in range(2):
        assert torch.equal(fn(torch.ones(2)), torch.full((2,), 13.0))  # what it calls is captured


def test_functions_for_nonstrict_tracing_are_parts_of_the_graph():
    opaque = torch._dynamo.nonstrict_trace(lambda x: x + x.sum())
    counter = CompileCounter()
    fn = framegraft.compile(lambda x: opaque(x * 2) + 1, backend=counter, fullgraph=True)
    assert torch.equal(fn(torch.ones(2)), torch.full((2,), 7.0))
    assert counter.frame_count == 1


def test_what_torch_compile_is_told():
    import torch._dynamo as stock

    @stock.dont_skip_tracing
    def told(x):
        return x + 1

    def f(x):
        return told(x), stock.is_compiling()

    got, compiling = framegraft.compile(f, backend="eager", fullgraph=True)(torch.ones(2))
    assert got.tolist() == [2, 2] and compiling
