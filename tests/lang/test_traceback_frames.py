"""Tracebacks name each of the program's frames, though a break has interrupted some of them."""

import contextlib
import gc
import traceback
import weakref

import pytest
import torch

import framegraft
from framegraft import config
from framegraft.bytecode.versions import VERSION

seen: list = []


def frames_of(error):
    """(function, line) of this file's frames, outermost first."""
    entries = traceback.extract_tb(error.__traceback__)
    return [(entry.name, entry.lineno) for entry in entries if entry.filename == __file__ and entry.name != "ending"]


def fails(x):
    y = x + 1
    framegraft.graph_break()
    raise ValueError(y.sum())


def middle(x, how):
    y = x * 2
    how(y)
    return y + 1


def plain(x):
    return middle(x, fails)


def finally_(x):
    try:
        z = middle(x, fails)
    finally:
        seen.append("finally")
    return z


def reraises(x):
    try:
        return middle(x, fails) + 1
    except ValueError as error:
        seen.append(frames_of(error))
        raise


def raises_another(x):
    try:
        return middle(x, fails) + 1
    except ValueError as error:
        raise TypeError from error


def not_mine(x):
    try:
        return middle(x, lambda y: middle(y, fails))
    except KeyError:
        return x


def raises_it_again(x):
    try:
        return middle(x, fails) + 1
    except ValueError as error:
        raise error


def later(x):
    middle(x, lambda y: framegraft.graph_break())
    return fails(x)


def handled(x):
    try:
        return not_mine(x)
    except ValueError as error:
        seen.append(frames_of(error))
        return x + 1


def raised_twice(x):
    for _ in range(2):
        try:
            plain(x)
        except ValueError as error:
            seen.append(frames_of(error))
    return reraises(x)


def main(x, how):
    y = x + 1
    z = how(y)
    return z + 1


def ending(call, how):
    seen.clear()
    try:
        call(torch.ones(2), how)
    except Exception as error:  # noqa: BLE001 - what is compared
        return frames_of(error), frames_of(error.__cause__) if error.__cause__ else None, list(seen)
    return None, None, list(seen)


@pytest.mark.own_code  # lines in decompiled code are its own
@pytest.mark.parametrize("how", [plain, finally_, reraises, raises_it_again, raises_another, not_mine, later, handled, raised_twice])
@pytest.mark.parametrize("force", [None, *range(0, 40, 5)])
def test_every_frame_is_named(how, force):
    expected = ending(main, how)
    assert expected[0] or expected[2]
    with config.patch(force_break_at=force):
        compiled = framegraft.compile(main, backend="eager")
        assert [ending(compiled, how) for _ in range(3)] == [expected] * 3


@contextlib.contextmanager
def noted(x):
    try:
        yield x + 1
    finally:
        seen.append("left")


def through_a_manager(x):
    with noted(x) as y:
        seen.append(y.shape)
        raise ValueError("through")


def through_two_managers(x):
    with noted(x) as y:
        with noted(y) as z:
            raise ValueError(z.shape)


def again(error):
    raise error


def raised_in_between(x):
    try:
        raise ValueError("one")
    except ValueError as error:
        try:
            again(error)
        except ValueError:
            seen.append(x.shape)
        raise


def throws_what_it_handles(x):
    try:
        raise ValueError("one")
    except ValueError:
        with contextlib.suppress(KeyError):
            through_a_manager(x)
        raise


def handles(x):
    try:
        yield x
    except ValueError:
        yield x + 1
        raise


def a_generator_that_handles(x):
    waiting = handles(x)
    next(waiting)
    try:
        try:
            raise ValueError("into")
        except ValueError as error:
            x = waiting.throw(error)
            again(error)
    except ValueError as error:
        seen.append(frames_of(error))
    x = x * 2
    next(waiting)


def links(trace):
    found = []
    while trace is not None:
        found.append((trace.tb_frame.f_code.co_name, trace.tb_lineno))
        trace = trace.tb_next
    return found


def keeps_a_traceback(x):
    try:
        raise ValueError("one")
    except ValueError as error:
        kept = [error.__traceback__]
        try:
            again(error)
        except ValueError as other:
            kept.append(other.__traceback__)
            other.__traceback__ = kept[0]
            kept.append(other.__traceback__)
    x = x + 1
    seen.extend(map(links, kept))
    return x


@pytest.mark.own_code
@pytest.mark.parametrize("how", [through_a_manager, through_two_managers, raised_in_between, throws_what_it_handles,
                                 a_generator_that_handles, keeps_a_traceback])
def test_a_traceback_that_has_grown(how):
    expected = ending(main, how)
    for force in [None, *range(75)]:
        framegraft.reset()
        with config.patch(force_break_at=force):
            compiled = framegraft.compile(main, backend="eager")
            assert [(force, ending(compiled, how)) for _ in range(2)] == [(force, expected)] * 2


class Held:
    """Something that a frame holds."""


def fails_in_a_call(x, held):
    y = middle(x, fails)
    return y, held


def test_frames_of_an_error_do_not_wait_for_the_garbage_collector():
    def end(fn, x):
        held = Held()
        gone = weakref.ref(held)
        with contextlib.suppress(ValueError):
            fn(x, held)
            raise AssertionError
        del held
        return gone() is None

    gc.disable()
    try:
        assert end(fails_in_a_call, torch.ones(3))
        compiled = framegraft.compile(fails_in_a_call, backend="eager")
        assert [end(compiled, torch.ones(3)) for _ in range(3)] == [True] * 3
    finally:
        gc.enable()


def test_modules_are_named():
    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(3, 3)
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            return self.inner(x) + 1

    def run(module):
        with pytest.raises(RuntimeError) as caught:
            call(module, torch.ones(3, dtype=torch.float64))
        return [entry.name for entry in traceback.extract_tb(caught.value.__traceback__)], module.calls

    def call(module, x):
        return module(x)

    expected = run(Outer())
    call = framegraft.compile(call, backend="eager")
    assert run(Outer()) == expected


def divides(x):
    y = x + 1
    return y, 1 // 0


def calls_what_divides(x):
    return divides(x * 2)


@pytest.mark.skipif(VERSION.name == "3.10", reason="frames of functions that were traced into stand at their first line")
def test_frames_of_calls_that_were_traced_into_stand_at_their_lines():
    with pytest.raises(ZeroDivisionError) as caught:
        framegraft.compile(calls_what_divides, backend="eager")(torch.ones(2))
    trace, lines = caught.value.__traceback__, []
    while trace is not None:
        frame = trace.tb_frame
        if frame.f_code.co_name == "divides":
            lines.append((frame.f_lineno - frame.f_code.co_firstlineno, trace.tb_lineno - frame.f_code.co_firstlineno))
        trace = trace.tb_next
    assert lines == [(2, 2)]
