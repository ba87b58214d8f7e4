"""What programs use of other packages without need for a break: unions of classes, loggers that are silent, NumPy's scalars."""

import itertools
import logging

import numpy as np
import pytest
import torch

import framegraft
from framegraft.testing import CompileCounter

from .differential import differential

QUIET = logging.getLogger("framegraft.tests.quiet")
QUIET.setLevel(logging.ERROR)
COUNT = np.int64(3)


class Meta(type):
    def __or__(cls, other):
        return "own"


class Own(metaclass=Meta):
    pass


@differential(lambda: (torch.ones(3), 3), graphs=1)
def test_unions(x, value):
    kind = type(value)
    return x + 1, isinstance(value, int | str), isinstance(value, kind | None), isinstance(None, kind | None | str), Own | int, int | str


@differential(lambda: (torch.ones(3), int | str), graphs=1)
def test_union_from_outside(x, union):
    return x + 1, isinstance(3, union), isinstance(3.0, union), union.__args__, union == (str | int)


@differential(graphs=1)
def test_silent_loggers(x):
    QUIET.debug("x is %s", 3)
    QUIET.info("nothing", extra={"a": 1})
    if QUIET.isEnabledFor(logging.WARNING):
        x = x * 100
    QUIET.warning("nor this")
    return x + 1


@differential(build=True)
def test_levels_that_the_caller_has_changed():
    parent, child = logging.Logger("parent", logging.WARNING), logging.Logger("child")
    child.parent = parent

    def fn(x):
        seen = [parent.isEnabledFor(logging.INFO), child.isEnabledFor(logging.INFO)]
        parent.level = logging.DEBUG
        parent._cache.clear()
        child._cache.clear()
        seen += [parent.isEnabledFor(logging.INFO), child.isEnabledFor(logging.INFO)]
        parent.disabled = True
        return x + len(seen), seen, parent.isEnabledFor(logging.ERROR)

    return fn


@differential(lambda: (torch.ones(2, 3), np.float32(0.5), np.bool_(True)), graphs=1)
def test_numpy_scalars(x, factor, flag):
    size = np.prod(x.shape)
    y = x * COUNT + x.reshape(size)[0] - np.int64(2) * factor
    return y * factor, size, size + 1, np.sqrt(4.0), COUNT * 2, int(COUNT), COUNT == 3, [1, 2, 3, 4][COUNT], flag and y + 1, str(factor)


@differential(lambda: (torch.ones(3), np.float64(2.0)))
def test_numpy_scalars_where_their_dtype_counts(x, value):
    return torch.tensor(value).dtype, torch.full((2,), value).dtype, x * value, torch.tensor(np.int32(3)).dtype, value * x


@pytest.mark.parametrize("first, second", [(int | str, float | None), (np.int64(3), np.int64(4)), (np.int64(3), np.int32(3)),
                                           (np.float32(0.0), np.float32(-0.0)), (np.float64(1), 1.0)])
def test_what_is_relied_on_is_guarded(first, second):
    def fn(x, value):
        if isinstance(value, np.generic | float):
            return x * 2 * value, type(value), 1 / (value + 1e-30) > 0
        return x, isinstance(1, value), isinstance(1.0, value), isinstance(None, value)

    compiled = framegraft.compile(fn, backend="eager")
    for value in (first, second, first):
        assert str(compiled(torch.ones(2), value)) == str(fn(torch.ones(2), value))


@pytest.mark.own_code  # looks at the line
def test_logger_that_is_turned_on(caplog):
    def fn(x):
        QUIET.warning("x")
        return x + 1

    counter = CompileCounter()
    compiled = framegraft.compile(fn, backend=counter)
    compiled(torch.ones(3))
    assert not caplog.records and counter.frame_count == 1
    with caplog.at_level(logging.WARNING, QUIET.name):
        compiled(torch.ones(3))
    assert [r.lineno for r in caplog.records] == [fn.__code__.co_firstlineno + 1]
    compiled(torch.ones(3))
    logging.disable(logging.CRITICAL)
    try:
        compiled(torch.ones(3))
    finally:
        logging.disable(logging.NOTSET)
    assert len(caplog.records) == 1


@differential(lambda: (torch.ones(3),))
def test_random_numbers_of_numpy(x):
    np.random.seed(3)
    return x * np.random.rand(), np.random.randint(0, 5, 3).tolist(), np.random.randn(2).tolist()


def pairs_of(one, other):
    return lambda: (torch.ones(3), zip(one, other, strict=True))


def taken(x, pairs):
    found = []
    try:
        for a, b in pairs:
            found.append(x * a + b)
        return found
    except ValueError as error:
        return found, str(error)


@differential(pairs_of([1, 2], [3, 4]), graphs=1)
def test_strict_pairs(x, pairs):
    return taken(x, pairs)


@differential(pairs_of([1, 2], [3]))
def test_strict_pairs_of_which_the_second_ends(x, pairs):
    return taken(x, pairs)


@differential(pairs_of([1], [3, 5]))
def test_strict_pairs_of_which_the_first_ends(x, pairs):
    return taken(x, pairs)


def test_strict_pairs_that_differ_later():
    compiled = framegraft.compile(taken, backend="eager")
    cases = [([1, 2], [3, 4]), ([1, 2], [3, 4, 5]), ([1, 2, 3], [3, 4]), ([1], [3]), ([], [1])]
    for one, other in cases * 2:
        got, expected = (f(torch.ones(3), zip(one, other, strict=True)) for f in (compiled, taken))
        assert repr(got) == repr(expected)


@differential(lambda: (torch.ones(2), itertools.count(), itertools.count(5, -2), zip(itertools.count(), [4, 5, 6])), graphs=1)
def test_counts(x, up, down, pairs):
    return x * (next(up) + 1), next(up), list(zip([1, 2], down)), [n for n, _ in zip(down, "ab", strict=False)], next(pairs), list(pairs), up


@differential(lambda: (torch.ones(2), itertools.count(1.5), itertools.count(10**30)))
def test_counts_of_other_numbers(x, floats, large):
    return x * next(floats), next(large), next(floats)


def test_a_count_that_goes_on_needs_no_more_captures():
    numbers = itertools.count(3)
    counter = framegraft.testing.CompileCounter()
    compiled = framegraft.compile(lambda x: x * next(numbers), backend=counter, fullgraph=True)
    for i in range(3, 9):
        assert torch.equal(compiled(torch.ones(1)), torch.ones(1) * i)
    assert next(numbers) == 9
    assert counter.frame_count == 2


def test_counts_are_guarded():
    compiled = framegraft.compile(f := lambda x, numbers: (x * next(numbers), next(numbers)), backend="eager")
    for make in (lambda: itertools.count(3), lambda: itertools.count(3, 2), lambda: itertools.count(2.5), lambda: iter([1, 2, 3]), itertools.count):
        assert compiled(torch.ones(1), make()) == f(torch.ones(1), make())
