"""Functions of torch that take plain numbers in eager mode and symbols in captures: they say of a trace's numbers what they say in eager mode."""

import pytest
import torch
from torch._prims_common import make_contiguous_strides_for
from torch.fx.experimental import symbolic_shapes

import framegraft


def _extremes(x, n, f):
    rows, columns = x.shape
    return torch.sym_max(rows, columns), torch.sym_min(rows, 3), torch.sym_max(n, 2.0), torch.sym_max(f, 3), torch.sym_sum([rows, 1]), torch.sym_sum((n, f))


def _conversions(x, n, f):
    rows = x.shape[0]
    return (torch.sym_int(f), torch.sym_int(rows), torch.sym_float(rows), torch.sym_float(f), torch.sym_sqrt(rows), torch.sym_not(rows > 3),
            torch.sym_ite(rows > 2, x.shape[1], 2))


def _questions(x, n, f):
    rows = x.shape[0]
    return (symbolic_shapes.statically_known_true(rows > 3), symbolic_shapes.guard_or_false(rows == 4), symbolic_shapes.guard_or_true(rows == 5),
            symbolic_shapes.has_static_value(rows), symbolic_shapes.is_nested_int(rows), symbolic_shapes.is_concrete_int(n),
            symbolic_shapes.guard_int(rows), symbolic_shapes.guard_scalar(f), symbolic_shapes.sym_eq(x.shape, (4, 8)),
            symbolic_shapes.sym_and(rows > 3, n == 3), symbolic_shapes.sym_or(rows > 9, n == 9))


def _strides(x, n, f):
    return make_contiguous_strides_for(x.shape)


@pytest.mark.parametrize("fn", [_extremes, _conversions, _questions, _strides])
@pytest.mark.parametrize("dynamic", [None, True, False])
def test_as_in_eager_mode(fn, dynamic):
    compiled = framegraft.compile(lambda *args: (args[0] + 1, fn(*args)), backend="eager", fullgraph=True, dynamic=dynamic)
    for rows, n, f in ((4, 3, 2.5), (5, 4, -1.5), (2, 3, 7.0), (4, 9, 2.5)):
        x = torch.ones(rows, 8)
        result, told = compiled(x, n, f)
        assert torch.equal(result, x + 1)
        assert repr(told) == repr(fn(x, n, f))


def test_a_size_stays_a_symbol():
    counter = framegraft.testing.CompileCounter()
    compiled = framegraft.compile(lambda x: x * torch.sym_max(x.shape[0], 2) + torch.sym_float(x.shape[0]), backend=counter, fullgraph=True, dynamic=True)
    for rows in (4, 5, 9):
        assert torch.equal(compiled(torch.ones(rows)), torch.ones(rows) * rows + float(rows))
    assert counter.frame_count == 1
