"""Deques: what each method does to iterators, those of the trace and those from outside; comparisons that change the deque."""

import collections

import pytest
import torch

import framegraft

from .differential import differential

METHODS = {
    "append": lambda d: d.append(1),
    "extend": lambda d: d.extend([8]),
    "extend by nothing": lambda d: d.extend([]),
    "extendleft": lambda d: d.extendleft([8]),
    "extendleft by nothing": lambda d: d.extendleft(()),
    "+= nothing": lambda d: d.__iadd__([]),
    "clear": lambda d: d.clear(),
    "reverse": lambda d: d.reverse(),
    "rotate": lambda d: d.rotate(),
    "rotate by 0": lambda d: d.rotate(0),
    "rotate by all": lambda d: d.rotate(len(d)),
    "insert": lambda d: d.insert(1, 5),
    "set": lambda d: d.__setitem__(2, 77),
    "set the last": lambda d: d.__setitem__(-1, 77),
    "del": lambda d: d.__delitem__(3),
    "remove": lambda d: d.remove(3),
    "remove what is not there": lambda d: d.remove("no"),
    "pop": lambda d: d.pop(),
    "popleft": lambda d: d.popleft(),
    "append and pop": lambda d: (d.append(1), d.pop()),
    "set twice": lambda d: (d.__setitem__(0, 7), d.__setitem__(-1, 8), d.__setitem__(0, 9)),
}


def told(f, *args):
    try:
        return f(*args)
    except (RuntimeError, IndexError, ValueError) as error:
        return repr(error)


def inside(change, maxlen, x):
    d = collections.deque([1, 2, 3, 4], maxlen)
    forwards, backwards = iter(d), reversed(d)
    seen = [next(forwards, 0), next(backwards, 0), told(change, d)]
    for iterator in (forwards, backwards):
        seen += [told(list, iterator), told(list, iterator)]
    return x + 1, seen, d


def looped(change, d, x):
    seen = []
    for i, item in enumerate(d):
        seen.append(item)
        if i == 1:
            change(d)
        if i > 9:
            break
    return x + 1, seen


def outside(change, d, x):
    return x + 1, told(change, d), len(d)


@pytest.mark.parametrize("maxlen", [None, 4, 1, 0])
@pytest.mark.parametrize("name", METHODS)
def test_what_iterators_survive(name, maxlen):
    def run(f, new):
        d = collections.deque([1, 2, 3, 4], maxlen)
        forwards, backwards = iter(d), reversed(d)
        next(forwards, 0)
        seen = [told(f, METHODS[name], d if new else maxlen, torch.ones(2)) for _ in range(2)]
        return repr((seen, d, told(list, forwards), told(list, backwards)))

    for f, new in ((inside, False), (looped, True), (outside, True)):
        framegraft.reset()
        assert run(framegraft.compile(f, backend="eager"), new) == run(f, new)


class Clears:
    """Equal to nothing; who asks finds an empty deque."""

    def __init__(self, d):
        self.d = d

    def __eq__(self, other):
        self.d.clear()
        return False

    def __repr__(self):
        return "Clears"


def cleared():
    d = collections.deque([1])
    d.extend((Clears(d), Clears(d), 4))
    return (torch.ones(2), d)


@differential(cleared)
def test_contains_while_the_deque_changes(x, d):
    return x + 1, told(lambda: 3 in d), 3 in d


@differential(cleared)
def test_count_while_the_deque_changes(x, d):
    return x + 1, told(d.count, 3), d.count(3)


@differential(cleared)
def test_remove_while_the_deque_changes(x, d):
    return x + 1, told(d.remove, 3), told(d.remove, 3)


@differential(cleared)
def test_an_item_that_is_found_at_once(x, d):
    return x + 1, 1 in d, told(d.remove, 1), len(d)


@differential(lambda: (torch.ones(2), collections.deque([1, 2, 3])), calls=2)
def test_iterator_made_behind_a_change(x, d):
    d.append(9)
    iterator = iter(d)
    first = next(iterator)
    return x + first, list(iterator)


@differential(lambda: (torch.ones(2), collections.deque([1, 2, 3])), calls=2)
def test_items_set_in_front_of_an_iterator(x, d):
    iterator = iter(d)
    first = next(iterator)
    d[1] = x * 2
    d.reverse()
    return x + first, list(iterator), d


@differential(lambda: (torch.ones(2), collections.deque([1, 2, 3, 2])))
def test_index(x, outside):
    told = []
    for items in (collections.deque(), collections.deque([1, 2, 3, 2], 9), outside):
        for given in ((2,), (9,), (2, 2), (2, -1), (1, 1), (2, 0, 1), (2, -9, 9), (2.0, 1, -1), (None,), (1, 0, 0)):
            try:
                told.append(items.index(*given))
            except ValueError as error:
                told.append(str(error))
    return x + 1, told


@differential(lambda: (torch.ones(2),))
def test_index_of_a_deque_that_changes(x):
    class Changes:
        def __init__(self, equal):
            self.equal = equal

        def __eq__(self, other):
            items.append(0)
            return self.equal

    told = []
    for equal in (True, False):
        items = collections.deque([Changes(equal), 1])
        try:
            told.append(items.index(5))
        except RuntimeError as error:
            told.append(str(error))
    return x + 1, told
