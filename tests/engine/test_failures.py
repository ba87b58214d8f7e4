"""Graphs that fail on their data when they have written to their inputs: torch's state and the inputs are as in eager mode then."""

import threading

import pytest
import torch

import framegraft
from framegraft.tensor.modes import autocast_nesting

LOCK = threading.Lock()


def mode_set_before(x, i):
    torch.set_grad_enabled(False)
    x.add_(1)
    y = x[i]
    torch.set_grad_enabled(True)
    return y


def mode_set_behind(x, i):
    y = x[i]
    torch.set_grad_enabled(False)
    x.add_(1)
    return y


def mode_set_between(x, i):
    x.add_(1)
    y = x[i]
    torch.set_grad_enabled(False)
    return y + x[i]


def block_and_random(x, i):
    with torch.no_grad():
        x.add_(torch.rand(3))
        y = x[i]
    torch.rand(3)
    return y


def block_of_a_call(x, i):
    with torch.set_grad_enabled(False):
        x.mul_(2)
        y = x[i]
    return y + x[i]


def deterministic(x, i):
    torch.use_deterministic_algorithms(True)
    x.add_(1)
    y = x[i]
    torch.use_deterministic_algorithms(False)
    return y


def block_in_a_callee(x, i):
    x.mul_(torch.rand(3))
    torch.set_grad_enabled(False)

    def inner():
        with torch.enable_grad():
            return x[i]

    return inner()


def autocast(x, i):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        x.add_(1)
        y = x[i]
    torch.set_grad_enabled(False)
    return y


def seeded(x, i):
    torch.manual_seed(7)
    x.add_(torch.rand(3))
    y = x[i]
    torch.rand(3)
    return y


def own_generator(x, i):
    x.add_(torch.rand(3, generator=torch.Generator().manual_seed(1)))
    return x[i]


def write_before_and_behind(x, i):
    x[0] = 5
    y = x[i]
    x[1] = 7
    return y


def write_to_a_view(x, i):
    w = x.view(3, 1)
    w.add_(1)
    return x[i]


def block_left_behind_a_break(x, i):
    with torch.no_grad():
        print(end="")
        x.add_(1)
    x.mul_(2)
    return x[i]


def block_entered_before_a_break(x, i):
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        framegraft.graph_break()
        x.add_(1)
        y = x[i]
        x.mul_(2)
        z = x[i]
    return y + z


def blocks_left_one_by_one(x, i):
    with torch.no_grad():
        with torch.enable_grad():
            framegraft.graph_break()
            x.add_(1)
            y = x[i]
        x.mul_(2)
        z = x[i]
    return y + z


def blocks_of_caller_and_callee(x, i):
    def inner(x):
        with torch.enable_grad():
            framegraft.graph_break()
            x.add_(1)
            return x[i] * 2

    with torch.no_grad():
        return inner(x) + 1


def block_around_a_loop(x, i):
    with torch.no_grad():
        for n in range(3):
            if n == 1:
                framegraft.graph_break()
            x.add_(1)
            y = x[i]
    return y


def lock_held_at_a_break(x, i):
    with LOCK:
        framegraft.graph_break()
        x.add_(1)
        y = x[i]
    return y


BODIES = [block_entered_before_a_break, blocks_left_one_by_one, blocks_of_caller_and_callee, block_around_a_loop, lock_held_at_a_break,
          mode_set_before, mode_set_behind, mode_set_between, block_and_random, block_of_a_call, deterministic, block_in_a_callee,
          autocast, seeded, own_generator, write_before_and_behind, write_to_a_view, block_left_behind_a_break]


def state():
    return (torch.is_grad_enabled(), torch.is_autocast_enabled("cpu"), torch.are_deterministic_algorithms_enabled(),
            LOCK.locked(), torch.rand(1).item())


@pytest.fixture(autouse=True)
def modes():
    yield
    torch.set_grad_enabled(True)
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("body", BODIES)
def test_as_in_eager_mode(body, backend):
    def run(fn):
        found = []
        for index in (1, 9, 0, 9):
            torch.manual_seed(0)
            torch.set_grad_enabled(True)
            torch.use_deterministic_algorithms(False)
            x = torch.arange(3.0)
            try:
                found.append(fn(x, torch.tensor([index])).tolist())
            except IndexError as error:
                found.append((str(error), error.__context__))
            found.append((x.tolist(), x._version if index == 9 else 0, *state()))
        return found

    expected = run(body)
    assert run(framegraft.compile(body, backend=backend)) == expected


@pytest.mark.parametrize("body", [block_and_random, block_of_a_call, write_before_and_behind, write_to_a_view])
def test_blocks_cost_no_break(body):
    compiled = framegraft.compile(body, backend="eager", fullgraph=True)
    compiled(torch.arange(3.0), torch.tensor([1]))


@pytest.mark.parametrize("body", [block_entered_before_a_break, block_around_a_loop, block_left_behind_a_break])
def test_blocks_entered_before_a_break_cost_no_further_one(body):
    compiled = framegraft.compile(body, backend="eager")
    compiled(torch.arange(3.0), torch.tensor([1]))
    assert len(framegraft.break_reasons()) == 1


SEEN: list[int] = []


@pytest.mark.parametrize("times", [1, 10])
def test_what_was_seen_changes_during_the_capture(times):
    """By another thread, for which the compiler stands: it is captured anew, once."""
    framegraft.reset()
    left = [times]

    def backend(gm, inputs):
        if left[0]:
            left[0] -= 1
            SEEN.append(1)
        return gm.forward

    def fn(x):
        return x * len(SEEN)

    SEEN[:] = [1]
    compiled = framegraft.compile(fn, backend=backend)
    if times == 1:
        assert compiled(torch.ones(2)).tolist() == [2.0, 2.0]
        assert compiled(torch.ones(2)).tolist() == [2.0, 2.0]
    else:
        with framegraft.config.patch(raise_internal_errors=False):
            assert compiled(torch.ones(2)).tolist() == [3.0, 3.0]
        assert "changes while it is captured" in str(framegraft.break_reasons()[-1])
    assert left[0] == max(0, times - 2)


def test_compiler_that_fails_inside_of_autocast():
    def backend(gm, inputs):
        torch.autocast_increment_nesting()
        raise ValueError("inside the compiler")

    framegraft.reset()
    with torch.autocast("cpu", torch.bfloat16):
        inside = autocast_nesting()
        with pytest.raises(framegraft.exc.BackendCompilerFailed):
            framegraft.compile(lambda x: x @ x, backend=backend)(torch.ones(2, 2))
        assert autocast_nesting() == inside
    assert autocast_nesting() == 0
