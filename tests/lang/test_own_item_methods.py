"""Instances of subclasses of containers whose classes have item methods of their own: which of CPython's functions ask these, and how often."""

import collections
import operator

import pytest
import torch

import framegraft

from .differential import differential

CALLS: list[str] = []  # that the program's methods have got


class Items(list):
    def __iter__(self):
        CALLS.append("iter")
        return iter([70, 80])

    def __getitem__(self, index):
        CALLS.append("get")
        return 5

    def __contains__(self, item):
        CALLS.append("in")
        return True


class Pair(tuple):
    def __iter__(self):
        CALLS.append("iter")
        return iter([70, 80])

    def __getitem__(self, index):
        CALLS.append("get")
        return 6


class Table(dict):
    def __iter__(self):
        CALLS.append("iter")
        return iter(["z"])

    def keys(self):
        CALLS.append("keys")
        return ["k1", "k2"]

    def items(self):
        CALLS.append("items")
        return [("a", 1)]

    def __getitem__(self, key):
        CALLS.append("get")
        return 42

    def __setitem__(self, key, value):
        CALLS.append("set")
        super().__setitem__(key, value)


class Bag(set):
    def __iter__(self):
        CALLS.append("iter")
        return iter([7])

    def __contains__(self, item):
        CALLS.append("in")
        return True

    def add(self, item):
        CALLS.append("add")
        super().add(item)


class Ordered(collections.OrderedDict):
    def __setitem__(self, key, value):
        CALLS.append("set")
        super().__setitem__(key, value * 2)

    def __delitem__(self, key):
        CALLS.append("del")
        super().__delitem__(key)

    def __getitem__(self, key):
        CALLS.append("get")
        return super().__getitem__(key)


class Queue(collections.deque):
    def __iter__(self):
        CALLS.append("iter")
        return iter([3])


MADE = {
    "list": lambda: Items([1, 2, 3]),
    "tuple": lambda: Pair([1, 2]),
    "dict": lambda: Table({"p": 1, "q": 2}),
    "set": lambda: Bag([1]),
    "OrderedDict": lambda: Ordered({"p": 1, "q": 2}),
    "deque": lambda: Queue([1, 2]),
}
DONE = {
    "set()": set,
    "frozenset()": frozenset,
    "set.union": lambda c: {1}.union(c),
    "set |": lambda c: {1} | c,
    "dict()": dict,
    "dict.update": lambda c: {}.update(c),
    "{**c}": lambda c: {**c},
    "dict |": lambda c: {} | c,
    "| dict": lambda c: c | {"n": 1},
    "|= dict": lambda c: operator.ior(c, {"w": 1}),
    "update": lambda c: (c.update({"n": 5}), c),
    "setdefault": lambda c: (c.setdefault("n", 3), c),
    "pop": lambda c: (c.pop("p"), c),
    "pop at 1": lambda c: (c.pop(1), c),
    "popitem": lambda c: (c.popitem(), c),
    "clear": lambda c: (c.clear(), c),
    "copy": lambda c: c.copy(),
    "in": lambda c: 2 in c,
    "sum": sum,
    "for": lambda c: [item for item in c],
    "zip": lambda c: list(zip(c, "ab")),
    "star": lambda c: max(*c),
}


def inside(make, done, x):
    c = make()
    return x + 1, done(c), c


def outside(c, done, x):
    return x + 1, done(c)


def shown(value):
    """Without a look at the program's methods."""
    if isinstance(value, dict):
        return type(value).__name__, [(k, dict.__getitem__(value, k)) for k in dict.__iter__(value)]
    for base in (list, tuple, collections.deque, set, frozenset):
        if isinstance(value, base):
            found = [shown(item) for item in base.__iter__(value)]
            return type(value).__name__, sorted(map(repr, found)) if base in (set, frozenset) else found
    return repr(value)


@pytest.mark.parametrize("name", DONE)
@pytest.mark.parametrize("kind", MADE)
def test_own_item_methods(kind, name):
    def run(f):
        c, seen = MADE[kind](), []
        for _ in range(2):
            CALLS.clear()
            try:
                result = shown(f(MADE[kind] if new else c, DONE[name], torch.ones(2)))
            except (TypeError, AttributeError, KeyError, ValueError) as error:
                result = type(error)
            seen.append((result, list(CALLS)))
        return seen, shown(c)

    for f, new in ((inside, True), (outside, False)):
        framegraft.reset()
        assert run(framegraft.compile(f, backend="eager")) == run(f)


class Aliases(list):
    """Methods of list under other names, of which some are those of other methods."""

    extend = list.append
    push = list.append

    def append(self, item):
        raise AssertionError("not this one")


class AliasesOfDict(dict):
    get = dict.__contains__
    put = dict.__setitem__

    def __setitem__(self, key, value):
        super().__setitem__(key, value + 1)


@differential(graphs=1)
def test_methods_of_c_under_other_names(x):
    items, entries = Aliases(), AliasesOfDict()
    items.extend([1, 2])
    items.push(3)
    bound = items.extend
    bound(x + 1)
    entries["a"] = 1
    entries.put("b", 1)
    return list(items), dict(entries), entries.get("a"), bound.__name__, bound


class Looked:
    """What it gives for an attribute, it tells first."""

    def __getattribute__(self, name):
        CALLS.append(name)
        return super().__getattribute__(name)


@differential()
def test_bound_methods_of_c_are_made_without_a_look_up(x):
    CALLS.clear()
    looked = Looked()
    found = looked.__eq__, looked.__reduce_ex__, looked.__str__
    y = x + 1
    print(len(CALLS))
    return found[0](looked), found[1].__self__ is looked, found[2].__name__, list(CALLS), y
