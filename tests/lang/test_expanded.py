"""Writes to tensors that have several elements in one place of memory: most kernels refuse them, some do not."""

from __future__ import annotations

import warnings

import pytest
import torch

import framegraft

WRITES = {
    "mul_": lambda x: x.mul_(2),
    "copy_": lambda x: x.copy_(torch.ones(3, 2)),
    "normal_": lambda x: x.normal_(),
    "out": lambda x: torch.add(torch.ones(3, 2), 1, out=x),
    "fill_": lambda x: x.fill_(2.0),
    "an item": lambda x: x.__setitem__(0, 5.0),
    "a part": lambda x: x[0].mul_(2),
    "masked_fill_": lambda x: x.masked_fill_(x > 0, 2.0),
}


def inside(write):
    def run(x):
        y = x.expand(3, 2)
        return write(y), y + 1

    return run


def outcome(fn, x):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return fn(x), x.tolist()
    except RuntimeError as error:
        return str(error), x.tolist()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("make", [lambda: torch.ones(1, 2), lambda: torch.ones(1, 2).expand(3, 2)], ids=["inside", "outside"])
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_write_to_an_expanded_tensor(write, make, backend):
    fn = inside(write) if make().shape[0] == 1 else write
    want, got = outcome(fn, make()), outcome(framegraft.compile(fn, backend=backend), make())
    assert str(got) == str(want)
