"""What autocast keeps of the tensors that it has cast: nothing, once the program is outside of all its regions."""

import pytest
import torch

import framegraft

from .differential import differential


def leaves():
    return torch.ones(1, 2), torch.tensor([[0.5, 1.0], [-1.5, 2.0]], requires_grad=True)


def casting():
    return torch.autocast("cpu", dtype=torch.bfloat16)


@differential(leaves)
def test_a_break_in_a_region(x, w):
    with casting():
        y = x @ w
        print("here")
    with torch.no_grad():
        w.mul_(3)
    with casting():
        return y, x @ w


@differential(leaves)
def test_an_exception_behind_a_break(x, w):
    try:
        with casting():
            y = x @ w
            print("here")
            raise KeyError(y.dtype)
    except KeyError as error:
        with torch.no_grad():
            w.mul_(3)
        with casting():
            return error.args, x @ w


@differential(leaves)
def test_a_region_in_a_region(x, w):
    with casting():
        with casting():
            y = x @ w
            print("here")
        with torch.no_grad():
            w.mul_(3)
        z = x @ w  # as it was cast
    with casting():
        return y, z, x @ w


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_what_the_program_cast_outside_is_forgotten(backend):
    def step(x, w):
        with casting():
            print((x @ w).sum().item())
            y = x * 2
        return y

    def result(step):
        x, w = leaves()
        found = []
        for factor in (1, 2, 3):
            with torch.no_grad():
                w.mul_(factor)
            found.append(step(x, w))
            with casting():
                found.append(x @ w)
            with torch.no_grad():
                w.mul_(0.5)
            with casting():
                found.append(x @ w)
        return found

    for found, expected in zip(result(framegraft.compile(step, backend=backend)), result(step), strict=True):
        assert torch.equal(found, expected)


def test_a_graph_that_fails_in_a_region_and_cannot_run_again():
    def step(x, w, count, index):
        count.add_(1)
        with casting():
            return (x @ w).gather(1, index)

    compiled = framegraft.compile(step, backend="eager")
    x, w = leaves()
    count, index = torch.zeros(1), torch.tensor([[0]])
    compiled(x, w, count, index)
    with pytest.raises(RuntimeError):
        compiled(x, w, count, index + 7)
    with torch.no_grad():
        w.mul_(3)
    assert torch.equal(compiled(x, w, count, index), step(x, w, count, index))


@pytest.mark.parametrize("device", ["cpu", "cuda", "xpu", "mps"])
def test_the_dtype_of_each_kind_of_device_is_guarded(device):
    def f(x):
        return x.to(torch.get_autocast_dtype(device))

    compiled = framegraft.compile(f, fullgraph=True, backend="eager")
    before = torch.get_autocast_dtype(device)
    try:
        for dtype in (torch.float16, torch.bfloat16, torch.float16):
            torch.set_autocast_dtype(device, dtype)
            assert compiled(torch.ones(2)).dtype is dtype
    finally:
        torch.set_autocast_dtype(device, before)
