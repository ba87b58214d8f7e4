"""Iterators over lists, dicts and sets, and over instances of their subclasses, that go on while the container changes."""

import collections

import pytest
import torch

import framegraft

from .differential import differential


class Numbers(list):
    def __iter__(self):
        return super().__iter__()

    def __len__(self):
        return 0


class Table(dict):
    pass


LISTS = {
    "append": lambda c: c.append(9),
    "insert": lambda c: c.insert(0, 7),
    "pop": lambda c: c.pop(),
    "pop the first": lambda c: c.pop(0),
    "clear": lambda c: c.clear(),
    "reverse": lambda c: c.reverse(),
    "sort": lambda c: c.sort(reverse=True),
    "set": lambda c: c.__setitem__(2, 77),
    "del": lambda c: c.__delitem__(1),
    "set a slice": lambda c: c.__setitem__(slice(1, 3), [5, 5, 5, 5]),
    "delete a slice": lambda c: c.__delitem__(slice(0, 2)),
    "set all": lambda c: c.__setitem__(slice(None), [4, 3]),
}
DICTS = {
    "set": lambda c: c.__setitem__(2, 77),
    "set a new one": lambda c: c.__setitem__(9, 9),
    "pop": lambda c: c.pop(3),
    "popitem": lambda c: c.popitem(),
    "clear": lambda c: c.clear(),
    "clear and fill": lambda c: (c.clear(), [c.__setitem__(n, n) for n in (5, 6, 7, 8)])[0],
    "pop and set": lambda c: (c.pop(4), c.__setitem__(4, 1))[0],
    "pop and set another": lambda c: (c.popitem(), c.__setitem__(50, 1))[0],
}
ORDERED = {**DICTS, "move the first": lambda c: c.move_to_end(1), "move the last": lambda c: c.move_to_end(4)}
NUMBERS = {1: 1, 2: 2, 3: 3, 4: 4}
CONTAINERS = {
    "list": (lambda: [1, 2, 3, 4], LISTS),
    "subclass of list": (lambda: Numbers([1, 2, 3, 4]), LISTS),
    "dict": (lambda: dict(NUMBERS), DICTS),
    "subclass of dict": (lambda: Table(NUMBERS), DICTS),
    "defaultdict": (lambda: collections.defaultdict(int, NUMBERS), DICTS),
    "Counter": (lambda: collections.Counter(NUMBERS), DICTS),
    "OrderedDict": (lambda: collections.OrderedDict(NUMBERS), ORDERED),
}


def told(f, *args):
    try:
        return f(*args)
    except (RuntimeError, KeyError, IndexError) as error:
        return repr(error)


def iterators(c):
    found = [iter(c), reversed(c)]
    if isinstance(c, dict):
        found += [iter(c.items()), iter(c.values()), reversed(c.items())]
    return found


def inside(make, change, x):
    c = make()
    its = iterators(c)
    seen = [next(it, 0) for it in its]
    seen.append(told(change, c))
    for it in its:
        seen += [told(list, it), told(list, it)]
    return x + 1, seen, c


def looped(c, change, x, breaks=False):
    seen = []
    try:
        for i, item in enumerate(c):
            seen.append(item)
            if i == 1:
                if breaks:
                    framegraft.graph_break()
                change(c)
            if i > 9:
                break
    except (RuntimeError, KeyError, IndexError) as error:
        seen.append(repr(error))
    return x + 1, seen


def outside(c, change, x):
    return x + 1, repr(told(change, c)), repr(c)


@pytest.mark.parametrize("kind,name", [(kind, name) for kind, (_, changes) in CONTAINERS.items() for name in changes])
def test_what_iterators_see(kind, name):
    make, changes = CONTAINERS[kind]

    def run(f, new, *more):
        c = make()
        its = iterators(c)
        for it in its:
            next(it)
        seen = [told(f, make if new else c, changes[name], torch.ones(2), *more) for _ in range(2)]
        return repr((seen, list.__repr__(c) if isinstance(c, list) else c, [told(list, it) for it in its]))

    for f, *more in ((inside, True), (looped, False), (looped, False, True), (outside, False)):
        framegraft.reset()
        assert run(framegraft.compile(f, backend="eager"), *more) == run(f, *more)


@differential(lambda: (torch.ones(2),))
def test_iterators_of_instances_of_subclasses(x):
    c, table = Numbers([1, 2, 3]), Table({1: x, 2: x * 2})
    forwards, backwards, items = iter(c), reversed(c), iter(table.items())
    first = next(forwards) + next(backwards) + next(items)[0]
    c.append(9)
    c[0] = 8
    table[2] = x * 3
    return x * first, list(forwards), list(backwards), list(items)


@differential(lambda: (torch.ones(2),))
def test_iterator_and_instance_are_returned(x):
    c = Numbers([1, 2, 3])
    it = iter(c)
    pairs = zip(c, map(str, c))
    c.append(next(it))
    return x + 1, list(it), list(pairs), c


class ByNumber:
    def __init__(self, count, error=IndexError):
        self.count, self.error, self.asked = count, error, []

    def __getitem__(self, index):
        self.asked.append(index)
        if index >= self.count:
            raise self.error(index)
        return index * 2


@differential(lambda: (torch.ones(2), ByNumber(3)))
def test_objects_with_items_by_number(x, outside):
    made = ByNumber(2, StopIteration)
    told = [list(outside), [a for a in made], 4 in outside, 5 in outside, sum(made), tuple(zip(outside, made)), *outside]
    for item in outside:
        if item == 2:
            break
        x = x + item
    iterator = iter(made)
    told += [next(iterator), next(iterator), next(iterator, "end"), next(iterator, "end"), type(iterator).__name__, iter(iterator) is iterator]
    return x, told, outside.asked, made.asked


@differential(lambda: (torch.ones(2),))
def test_an_iterator_by_number_that_is_returned(x):
    made = ByNumber(2)
    return x + 1, iter(made), made


@differential(lambda: (torch.ones(2),))
def test_items_by_number_that_fail(x):
    told = []
    for error in (KeyError, StopIteration, IndexError):
        try:
            for item in ByNumber(1, error):
                told.append(item)
        except KeyError as failed:
            told.append(repr(failed))
    return x + 1, told


class Asked(list):
    def __getitem__(self, index):
        raise AssertionError("an iterator does not ask")


class Long(tuple):
    def __len__(self):
        return 99


VALUES = [1, 2.5, "a", None, (1, 2)]


def _changed(count, more):
    values = list(VALUES[:2])
    iterator = iter(values)
    next(iterator)
    next(iterator)
    values[count:] = more
    return iterator


OUTSIDE = {
    "list": lambda count: iter(VALUES[:count]),
    "subclass of list": lambda count: iter(Asked(VALUES[:count])),
    "subclass of tuple": lambda count: iter(Long(VALUES[:count])),
    "zip": lambda count: zip(VALUES[:count], iter(VALUES[:3]), strict=False),
    "strict zip": lambda count: zip(VALUES[:count], VALUES[:3], strict=True),
    "zip of a range": lambda count: zip(Asked(VALUES[:count]), range(4), strict=False),
    "zip of nothing": lambda count: zip(strict=False),
    "enumerate": lambda count: enumerate(VALUES[:count], count),
    "enumerate of zip": lambda count: enumerate(zip(VALUES[:count], Long(VALUES), strict=False), 1 << 80),
    "a list that has shrunk": lambda count: _changed(min(count, 1), []),
    "a list that has grown": lambda count: _changed(2, VALUES[:count]),
}


def _next(iterator):
    try:
        return next(iterator, "end")
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("name", OUTSIDE)
def test_iterators_from_outside(name):
    def f(x, iterator):
        found = []
        for i in range(2):
            try:
                found.append((x + i, next(iterator)))
            except (StopIteration, ValueError) as error:
                found.append(repr(error))
        return found

    compiled = framegraft.optimize("eager")(f)
    for count in (0, 1, 2, 5, 0, 3):
        real, given = OUTSIDE[name](count), OUTSIDE[name](count)
        assert repr(compiled(torch.ones(2), given)) == repr(f(torch.ones(2), real))
        assert [_next(given) for _ in range(5)] == [_next(real) for _ in range(5)]
