"""Small programs that once differed from eager mode: what the fuzzer found, shrunk."""

import contextlib
import itertools
import operator

import torch

from .differential import differential


@contextlib.contextmanager
def managing(tensor):
    yield tensor + 1


class Point:
    def __init__(self, a):
        self.a = a


class NoText:
    def __repr__(self):
        return None


def leaving(n, notes):
    try:
        yield n
        yield n + 1
    finally:
        notes.append("closed")


def starts(n, notes):
    started = leaving(n, notes)
    next(started)


@differential(lambda: (torch.ones(3), []))
def test_generator_closed_when_it_dies(x, notes):
    starts(2, notes)
    notes.append("after")
    return x + 1


@differential(lambda: (Point(torch.ones(3)),))
def test_positional_pattern_without_match_args(point):
    match point:
        case Point(a):
            return a


@differential(lambda: (torch.ones(3),))
def test_error_through_a_with_block(x):
    with managing(x) as y:
        if y.dim() == 1:
            raise AssertionError("message")


@differential(lambda: (torch.ones(3), 3))
def test_error_in_two_with_blocks(x, n):
    with managing(x), contextlib.suppress(KeyError):
        del n
        assert isinstance([x], torch.Tensor), f"{x.dim()}"
    return x


@differential(lambda: (torch.ones(3),))
def test_traceback_of_caught_error_is_no_attribute(x):
    try:
        with managing(x):
            raise AssertionError
    finally:
        x = x + 1


@differential(lambda: (NoText(), 1))
def test_repr_that_gives_no_string(value, n):
    raise ValueError(repr(value))


@differential(lambda: ((1, 2), [3]))
def test_words_of_operand_errors(pair, items):
    texts = []
    for fn, a, b in ((operator.add, pair, items), (operator.mul, items, 1.5), (operator.add, items, pair), (operator.iadd, pair, items),
                     (operator.or_, {1}, items), (operator.ior, {1}, items), (operator.isub, {}, {}), (operator.add, None, items)):
        try:
            fn(a, b)
        except TypeError as error:
            texts.append(str(error))
    return texts


@differential(lambda: ([1, 2, 3],))
def test_chain_that_leaves(items):
    return itertools.chain(items, [4]), itertools.count(2), itertools.islice(items, 2), itertools.cycle(items)


@differential(lambda: ([1, 2, 3], []))
def test_itertools_draw_when_asked(items, notes):
    def noting():
        for item in items:
            notes.append(item)
            yield item

    chained = itertools.chain(noting(), noting())
    first = next(chained)
    notes.append("first")
    sums = list(itertools.islice(itertools.accumulate(noting()), 2))
    notes.append("sums")
    taken = list(itertools.takewhile(lambda v: v < 2, noting()))
    rest = list(itertools.dropwhile(lambda v: v < 2, noting()))
    pairs = list(itertools.pairwise(noting()))
    return first, sums, taken, rest, pairs, list(zip(itertools.cycle([7, 8]), range(5), strict=False)), list(chained)


@differential(lambda: (2,))
def test_value_sent_to_a_new_generator(n):
    def numbers():
        yield n

    numbers().send(3)


@differential(lambda: (torch.ones(3),))
def test_issubclass_of_no_class(x):
    issubclass(int, 3)


class Peculiar(ValueError):
    @property
    def text(self):
        return f"<{self.args}>"

    def __getattr__(self, name):
        return name * 2

    def __setattr__(self, name, value):
        super().__setattr__(name, [value])


@differential(lambda: (torch.ones(3),))
def test_attributes_of_exceptions(x):
    error = Peculiar(1, 2)
    error.extra = 4
    seen = [error.text, error.ab, error.extra, error.__cause__, error.__suppress_context__, error.__context__]
    try:
        raise error from KeyError("k")
    except ValueError as caught:
        seen += [caught is error, caught.__cause__, caught.__suppress_context__, caught.__traceback__ is None]
    return seen, error


@differential(lambda: (torch.ones(3),))
def test_stop_iteration_keeps_its_value(x):
    return StopIteration(5), OSError(2, "no"), KeyError("k")


@differential(lambda: ({1, 2, 3}, {2, 5}))
def test_sets_changed_in_place(a, b):
    a ^= b
    b &= {5, 7}
    a.difference_update([1])
    frozen = frozenset({1})
    frozen |= b
    return sorted(a), sorted(b), sorted(frozen)
