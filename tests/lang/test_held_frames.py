"""A frame that an exception's traceback holds keeps its variables as long, also where a break has made two frames of it."""

import gc

import pytest
import torch

import framegraft

told: list = []


class Noisy:
    def __init__(self, name):
        self.name = name

    def __del__(self):
        told.append(self.name)


def counting(n):
    try:
        yield from range(n)
    finally:
        told.append("closed")


def fails():
    framegraft.graph_break()
    raise KeyError(1)


def in_one_piece(x):
    numbers = counting(3)
    next(numbers)
    try:
        raise IndexError(1)
    except IndexError as error:
        return x + 1, error


def break_in_the_handler(x):
    numbers = counting(3)
    next(numbers)
    try:
        raise IndexError(1)
    except IndexError as error:
        framegraft.graph_break()
        return x + 1, error


def break_behind(x):
    try:
        raise IndexError(1)
    except IndexError as error:
        kept = error
    numbers = counting(3)
    next(numbers)
    framegraft.graph_break()
    return x + 1, kept


def made_behind(x):
    try:
        raise IndexError(1)
    except IndexError as error:
        kept = error
    framegraft.graph_break()
    numbers = counting(3)
    next(numbers)
    return x + 1, kept


def many_breaks(x):
    noisy = Noisy("first")
    try:
        raise IndexError(1)
    except IndexError as error:
        for i in range(3):
            framegraft.graph_break()
            x = x + i
            again = noisy
            noisy = Noisy(i)
            told.append(again.name)
        return x, error


def the_break_raises(x):
    noisy = Noisy("noisy")
    try:
        fails()
    except KeyError as error:
        y = x + 1
        told.append(noisy.name)
        return y, error


def replaced(x):
    noisy = Noisy("first")
    try:
        fails()
    except KeyError as error:
        kept = error
    framegraft.graph_break()
    noisy = Noisy("second")  # the first one dies
    framegraft.graph_break()
    told.append(noisy.name)
    return x + 1, kept


def nobody_holds_it(x):
    noisy = Noisy("noisy")
    try:
        fails()
    except KeyError:
        pass
    framegraft.graph_break()
    told.append(noisy.name)
    return x + 1, None


def a_cycle(x):
    noisy = Noisy("noisy")
    try:
        fails()
    except KeyError as error:
        kept = error
    framegraft.graph_break()
    told.append((noisy.name, kept.args))
    return x + 1, None


def the_graph_fails(x):
    noisy = Noisy("noisy")
    try:
        raise IndexError(1)
    except IndexError as error:
        kept = error
    framegraft.graph_break()
    told.append(noisy.name)
    try:
        x = x[torch.tensor([7])]
    except IndexError:
        x = x + 1
    return x, kept


PROGRAMS = [in_one_piece, break_in_the_handler, break_behind, made_behind, many_breaks, the_break_raises, replaced, nobody_holds_it,
            a_cycle, the_graph_fails]


def story(fn):
    """What was told until the function had returned, until its results had died, and by the garbage collector."""
    told.clear()
    result, error = fn(torch.ones(3))
    parts = [result.tolist(), told[:]]
    del error
    parts.append(told[:])
    gc.collect()
    return [*parts, told[:]]


@pytest.mark.parametrize("fn", PROGRAMS)
def test_the_program_is_told_when_eager_mode_tells_it(fn):
    gc.collect()
    expected = story(fn)
    compiled = framegraft.compile(fn, backend="eager")
    for _ in range(2):
        assert story(compiled) == expected


def test_variables_of_the_rest_are_found_from_the_traceback():
    _, error = framegraft.compile(break_behind, backend="eager")(torch.ones(3))
    held, frames = [error.__traceback__.tb_frame], []
    while held:
        frames.append(held.pop())
        held += frames[-1].f_locals.get("___rest", [])
    assert any("numbers" in frame.f_locals for frame in frames)
    del error, frames
