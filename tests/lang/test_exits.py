"""Errors that only a graph's run shows, in ``with`` blocks whose exit ends them, notes them or raises another one."""

import contextlib
import unittest

import torch

import framegraft

from .differential import differential


class Outside(Exception):
    pass


Errors = RuntimeError


def inverse(x):
    if torch.min(x) <= -1:
        raise Outside
    return torch.atanh(x)


class Leaving:
    def __init__(self, log, answer):
        self.log, self.answer = log, answer

    def __enter__(self):
        self.log.append("in")
        return self

    def __exit__(self, cls, value, trace):
        self.log.append(cls and cls.__name__)
        return self.answer


class Translating(Leaving):
    def __exit__(self, cls, value, trace):
        if cls is not None:
            raise ValueError("translated") from value


class Silent(Leaving):
    def __exit__(self, cls, value, trace):
        self.log.append("left")


@contextlib.contextmanager
def ending(log):
    log.append("in")
    try:
        yield
    except (RuntimeError, IndexError) as error:
        log.append(type(error).__name__)


@contextlib.contextmanager
def finishing(log):
    log.append("in")
    try:
        yield
    finally:
        log.append("out")


@contextlib.contextmanager
def translating(log):
    try:
        yield
    except RuntimeError as error:
        raise KeyError("translated") from error


@contextlib.contextmanager
def passing(log):
    log.append("in")
    yield
    log.append("out")


def wrong():
    return torch.ones(3), torch.tensor([7]), []


@differential(wrong, graphs=1)
def test_a_class_that_ends_it(x, index, log):
    with Leaving(log, True):
        return x.gather(0, index)
    return log


@differential(wrong, graphs=1)
def test_a_class_that_does_not(x, index, log):
    with Leaving(log, 0), Silent(log, None):
        return x.gather(0, index)


@differential(wrong, graphs=1)
def test_a_class_without_an_answer(x, index, log):
    with Silent(log, True):
        return x.gather(0, index)


@differential(wrong, graphs=1)
def test_suppress(x, index, log):
    with contextlib.suppress(RuntimeError), torch.no_grad():
        return x.gather(0, index)
    return x + 1


@differential(wrong, graphs=1)
def test_an_exit_stack(x, index, log):
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.suppress(RuntimeError))
        stack.callback(log.append, "called")
        return x.gather(0, index)
    return log


@differential(wrong, graphs=1)
def test_a_generator_that_ends_it(x, index, log):
    with ending(log):
        return x.gather(0, index)
    return log


@differential(wrong, graphs=1)
def test_a_generator_that_does_not(x, index, log):
    with finishing(log):
        return x.gather(0, index)


@differential(wrong, graphs=1)
def test_in_a_callee(x, index, log):
    def inner():
        return x.gather(0, index) * 2

    with Leaving(log, True):
        return inner()
    return log


@differential(lambda: (torch.full((2,), -2.0), []), graphs=1)
def test_a_branch_that_only_raises(x, log):
    with Leaving(log, True):
        inverse(x)
    return log


@differential(lambda: (torch.full((2,), -2.0), []))
def test_entered_in_front_of_a_break(x, log):
    with Leaving(log, True):
        print("here")
        inverse(x)
    return log


class Case(unittest.TestCase):
    pass


@differential(lambda: (Case(), [-2.0, 0.5]))
def test_of_unittest(case, values):
    seen = []
    for value in values:
        with case.subTest(value=value):
            try:
                with case.assertRaises(Outside):
                    inverse(torch.full([2, 3], value))
                seen.append("raised")
            except AssertionError as error:
                seen.append(str(error))
    return seen


@differential(wrong)
def test_a_write_through_data(x, index, log):
    with contextlib.suppress(RuntimeError):
        x.data.add_(1)
        log.append(x.gather(0, index))
    return x * 1


@differential(wrong)
def test_writes_to_several_through_data(x, index, log):
    torch._foreach_add_([x.data, x.data], 1)
    return x.gather(0, index)


@differential(wrong)
def test_a_write_through_detach(x, index, log):
    x.detach()[1:].mul_(3)
    torch.add(x, x, out=x.data)
    return x.gather(0, index)


# Graphs that cannot run twice: what they have written to their inputs stays.


@differential(wrong)
def test_a_class_that_translates_behind_a_write(x, index, log):
    with Translating(log, None):
        x.add_(1)
        return x.gather(0, index)


@differential(wrong)
def test_a_class_that_notes_behind_a_write(x, index, log):
    with Silent(log, None):
        x.add_(1)
        return x.gather(0, index)


@differential(wrong)
def test_a_generator_that_translates_behind_a_write(x, index, log):
    with translating(log):
        x.add_(1)
        return x.gather(0, index)


@differential(wrong)
def test_a_generator_with_finally_behind_a_write(x, index, log):
    with finishing(log):
        x.add_(1)
        return x.gather(0, index)


@differential(wrong)
def test_blocks_entered_in_front_of_a_break_and_a_write(x, index, log):
    with translating(log), finishing(log), Silent(log, None), Translating(log, None):
        framegraft.graph_break()
        x.add_(1)
        return x.gather(0, index)


@differential(wrong)
def test_a_block_that_ends_it_in_front_of_a_break_and_a_write(x, index, log):
    with ending(log), Silent(log, None):
        framegraft.graph_break()
        x.add_(1)
        return x.gather(0, index)
    return log, x


@differential(wrong, graphs=1)
def test_clauses_for_other_exceptions_behind_a_write(x, index, log):
    x.add_(1)
    try:
        return x.gather(0, index)
    except NotImplementedError:
        return x - 1
    except TypeError as error:
        log.append(error)


@differential(wrong)
def test_a_clause_for_a_class_of_the_program_behind_a_write(x, index, log):
    x.add_(1)
    try:
        return x.gather(0, index)
    except TypeError:
        return x - 1
    except Errors as error:
        log.append(str(error))
    return x


@differential(wrong)
def test_in_the_handler_of_another_exception_behind_a_write(x, index, log):
    x.add_(1)
    try:
        raise Outside
    except Outside:
        return x.gather(0, index)


@differential(wrong, graphs=1)
def test_a_generator_without_handlers_behind_a_write(x, index, log):
    with passing([]), contextlib.nullcontext(), torch.no_grad():
        x.add_(1)
        return x.gather(0, index)
