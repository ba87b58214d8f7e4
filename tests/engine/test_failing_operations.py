"""Operations that their rules let pass and that raise when the graph runs: what was done before them stays, as in eager mode."""

import pytest
import torch
import torch.nn.functional as F

import framegraft

OPERATIONS = {
    "quantile": lambda x: x.quantile(torch.tensor(3.0)),
    "nanquantile": lambda x: torch.nanquantile(x, x + 3),
    "fmod": lambda x: torch.fmod(x.long(), 0),
    "remainder_": lambda x: x.long().remainder_(0),
    "floor_divide_": lambda x: x.long().floor_divide_(0),
    "power of integers": lambda x: x.long() ** -1,
    "power in place": lambda x: x.long().pow_(-2),
    "put": lambda x: x.put(x, x),
    "celu": lambda x: F.celu(x, 0),
    "mvlgamma": lambda x: torch.mvlgamma(x, 0),
    "slice_scatter": lambda x: x.slice_scatter(torch.zeros(5)),
    "diagonal_scatter": lambda x: torch.diagonal_scatter(x.reshape(1, 3), torch.zeros(2)),
    "largest of nothing": lambda x: x[:0].max(),
    "sort of nothing": lambda x: x[:0].sort(1),
    "roll of nothing": lambda x: x[:0].roll((1, 1)),
}


class Box:
    value = None


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_what_was_done_before_stays(name, backend):
    operation = OPERATIONS[name]

    def f(x, log, box):
        y = x + 1
        log.append("before")
        box.value = 2
        z = operation(y)
        log.append("behind")
        return z

    def caught(x, log, box):
        try:
            return f(x, log, box)
        except (RuntimeError, IndexError):
            return x - 5, len(log)

    def outcome(fn):
        log, box = [], Box()
        try:
            result = fn(torch.ones(3), log, box)
        except (RuntimeError, IndexError) as error:
            result = type(error)
        return repr(result), log, box.value

    for fn in (f, caught):
        framegraft.reset()
        compiled = framegraft.compile(fn, backend=backend)
        for _ in range(2):
            assert outcome(compiled) == outcome(fn)
