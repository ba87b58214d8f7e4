"""Errors that leave captured code have the traceback that they have in eager mode: the program's frames, each with its line."""

from __future__ import annotations

import typing

import pytest
import torch

import framegraft


def of_program(error):
    found, trace = [], error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == __file__ and code.co_name not in ("places", "check"):
            found.append((code.co_name, trace.tb_lineno))
        trace = trace.tb_next
    return type(error), str(error).splitlines()[0], found, getattr(error, "__notes__", [])


def places(fn, args):
    try:
        fn(*args)
    except Exception as error:
        return of_program(error)
    raise AssertionError("no error")


def check(fn, *args, backend="eager"):
    def fresh():
        return [a.clone() if isinstance(a, torch.Tensor) else a for a in args]

    want = places(fn, fresh())
    compiled = framegraft.optimize(backend)(fn)
    assert places(compiled, fresh()) == want
    assert places(compiled, fresh()) == want


def not_for_integers(x):
    y = x * 2
    z = y + 1
    return torch.nn.functional.softplus(z) + 1


def behind_a_write(x, at):
    x.add_(1)
    y = x * 2
    return y.index_select(0, at)


def in_a_block_behind_a_write(x, at):
    x.add_(1)
    with torch.no_grad():
        y = x * 2
        return y.index_select(0, at)


def selected(x, at):
    return (x * 2).index_select(0, at)


def selected_below(x, at):
    y = x + 1
    return selected(y, at) + 1


def deep_behind_a_write(x, at):
    x.mul_(2)
    y = selected_below(x, at)
    return y + selected_below(y, at)


def behind_a_break(x, at):
    y = x + 1
    framegraft.graph_break()
    y = y * 2
    return selected(y, at)


def breaks_and_fails(x):
    y = x + 1
    framegraft.graph_break()
    return y["no"]


def hands_on(x):
    return breaks_and_fails(x)


def hands_on_twice(x):
    y = x * 2
    return hands_on(y) + 1


def fails_behind_a_call_that_breaks(x):
    y = around_a_break(x)
    return y["no"]


def around_a_break(x):
    framegraft.graph_break()
    return x + 1


def calls_what_fails_behind_a_break(x):
    y = x + 1
    y = fails_behind_a_call_that_breaks(y)
    return y + 1


def again_and_again(x, n):
    framegraft.graph_break()
    if n == 0:
        raise KeyError("end")
    return again_and_again(x + 1, n - 1) * 2


def again_by_a_builtin(x, n):
    y = x + 1
    if n == 0:
        eval("1 / 0")
    return eval("again_by_a_builtin(y, n - 1)", globals(), {"y": y, "n": n}) * 2


def raised_in_a_loop(xs):
    total = 0
    for x in xs:
        total = total + x
        print(end="")
        if len(xs) == 2:
            raise LookupError("two")
    return total


def raised_again(x):
    try:
        framegraft.graph_break()
        return x["no"]
    except TypeError as error:
        raise LookupError("none") from error


class Pair(typing.NamedTuple):
    left: typing.Any
    right: typing.Any


def fails_behind_a_pattern(x):
    match Pair(x, framegraft.graph_break()):
        case Pair(left, None):
            return left["no"]


class Block(torch.nn.Module):
    def forward(self, x, at):
        return self.pick(x, at).relu()

    def pick(self, x, at):
        return (x + 1).index_select(0, at)


class Stack(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block() for _ in range(3)])

    def forward(self, x, first, second):
        x = self.blocks[0](x, first)
        x.add_(1)
        return self.blocks[1](
            x, second)


OUT = torch.tensor([9])


@pytest.mark.own_code  # lines in decompiled code are its own
@pytest.mark.parametrize("fn, args", [
    (not_for_integers, (torch.tensor([1]),)),
    (behind_a_write, (torch.ones(3), OUT)),
    (in_a_block_behind_a_write, (torch.ones(3), OUT)),
    (selected_below, (torch.ones(3), OUT)),
    (deep_behind_a_write, (torch.ones(3), OUT)),
    (behind_a_break, (torch.ones(3), OUT)),
    (breaks_and_fails, (torch.ones(3),)),
    (hands_on_twice, (torch.ones(3),)),
    (calls_what_fails_behind_a_break, (torch.ones(3),)),
    (again_and_again, (torch.ones(3), 3)),
    (again_by_a_builtin, (torch.ones(3), 3)),
    (raised_in_a_loop, ([torch.ones(2), torch.ones(2)],)),
    (raised_again, (torch.ones(3),)),
    (fails_behind_a_pattern, (torch.ones(3),)),
], ids=lambda value: getattr(value, "__name__", ""))
def test_traceback_is_eager_modes(fn, args):
    check(fn, *args)


def test_traceback_through_repeated_modules():
    model = Stack()
    check(model, torch.ones(3), torch.tensor([0]), OUT)


@pytest.mark.parametrize("fn", [deep_behind_a_write, selected_below])
def test_traceback_behind_aotautograd(fn):
    check(fn, torch.ones(3), OUT, backend="aot_eager")


def test_error_of_a_compiler_has_the_frame_that_called_its_code():
    def backend(gm, example_inputs):
        def run(*args):
            raise OSError("lost")

        return run

    compiled = framegraft.optimize(backend)(not_for_integers)
    with pytest.raises(OSError, match="lost") as caught:
        compiled(torch.ones(3))
    names = [entry.name for entry in caught.traceback]
    assert names[-2:] == ["not_for_integers", "run"]


class Counted:
    dead: list = []

    def __del__(self):
        Counted.dead.append(self)


def counting(stop):
    try:
        yield from range(stop)
    finally:
        Counted.dead.append("generator")


class Left:
    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        return False


def holds_a_generator(x):
    with Left():
        g = counting(3)
        for i in g:
            if i == 1:
                break
        x *= 2
    return i


def holds_an_object(x):
    thing = Counted()
    try:
        print("break")
        x *= 2
    finally:
        print("break")
    return thing


def holds_in_a_callee(x):
    return holds_a_generator(x)


@pytest.mark.own_code
@pytest.mark.parametrize("fn", [holds_a_generator, holds_an_object, holds_in_a_callee])
def test_traceback_keeps_what_the_frame_held(fn):
    def seen(call):
        x = torch.ones(3, requires_grad=True)
        Counted.dead.clear()
        try:
            call(x)
        except RuntimeError as error:
            dead, trace = len(Counted.dead), error.__traceback__
            while trace.tb_next is not None and trace.tb_next.tb_frame.f_code.co_filename == __file__:
                trace = trace.tb_next
            held = [name for name in ("g", "i", "thing", "x") if name in trace.tb_frame.f_locals]
            line = trace.tb_lineno
            trace = None
        return dead, len(Counted.dead), held, line

    want = seen(fn)
    compiled = framegraft.optimize("eager")(fn)
    assert seen(compiled)[::3] == want[::3]
    assert seen(compiled)[:2] == want[:2]
