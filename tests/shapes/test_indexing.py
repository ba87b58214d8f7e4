"""Positions that change from call to call: one more capture for all of them, with eager mode's values, writes and errors."""

import pytest
import torch

import framegraft

from .test_automatic import entries, run

TABLE = torch.arange(60.0).reshape(3, 4, 5)
X = torch.tensor([0.5, -1.0])


def write(x, i):
    y = torch.zeros(6, 4)
    y[i] = x.sum()
    y[i, 1] = 5
    y[:, i - 2] += 1
    y[..., 0] = i
    y[i, :2] = x
    y[i, ..., -i] -= x[0]
    return y


READS = {
    "plain": lambda x, i: x * TABLE[0, 0][i],
    "first": lambda x, i: TABLE.transpose(0, 2)[i],
    "last": lambda x, i: TABLE[..., i],
    "between": lambda x, i: TABLE[1, :, i] + TABLE[1, ..., i],
    "twice": lambda x, i: TABLE[i - 2, ..., i],
    "with slices": lambda x, i: TABLE[i - 2, 1:3, None, i],
    "from the end": lambda x, i: TABLE[0, -i, -i - 1],
    "mixed with tensors": lambda x, i: TABLE[0, i - 2, torch.tensor([0, 1])],
    "written": write,
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", READS)
def test_positions(name, backend):
    # the first capture knows the number, the second a symbol for it
    counts = run(READS[name], [(X, i) for i in (4, 3, 2, 3, 4)], backend=backend)
    assert counts[2] == 2


@pytest.mark.parametrize("program", [lambda x, i: x[i] + 1, lambda x, i: x[None, i] + 1, lambda x, i: x.fill_(0)[i].add_(1)])
def test_positions_out_of_range(program):
    compiled = framegraft.compile(program, backend="eager")
    for i in (1, 0, -1, 1, -2):
        assert torch.equal(compiled(X.clone(), i), program(X.clone(), i))
    for i in (2, -3, 7):
        with pytest.raises(IndexError) as expected:
            program(X.clone(), i)
        with pytest.raises(IndexError) as got:
            compiled(X.clone(), i)
        assert str(got.value) == str(expected.value)


def test_what_is_read_is_a_view():
    def program(x, i):
        x[i].mul_(2)
        return x[i]

    compiled = framegraft.compile(program, backend="eager")
    for i in (3, 2, 1):
        got, expected = torch.ones(5, 2), torch.ones(5, 2)
        view = compiled(got, i)
        program(expected, i)
        assert torch.equal(got, expected) and view.storage_offset() == 2 * i and view._base is got
    assert len(entries(program)) == 2


def test_gradients():
    weight = torch.randn(6, 3, requires_grad=True)

    def program(x, i):
        return (weight[i] * x).sum() + weight[..., i % 3].sum()

    compiled = framegraft.compile(program, backend="aot_eager")
    for i in (5, 4, 3, 2):
        x = torch.randn(3)
        (got,) = torch.autograd.grad(compiled(x, i), weight)
        (expected,) = torch.autograd.grad(program(x, i), weight)
        torch.testing.assert_close(got, expected)
