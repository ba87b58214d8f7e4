"""Objects that hash and compare by methods of their own as keys of dicts and items of sets."""

import dataclasses

import torch

from .differential import differential


class Key:
    def __init__(self, n):
        self.n = n

    def __hash__(self):
        return hash(self.n)

    def __eq__(self, other):
        return isinstance(other, Key) and self.n == other.n

    def __repr__(self):
        return f"Key({self.n})"


@dataclasses.dataclass(frozen=True)
class Point:
    a: int
    b: str = "x"


@differential(graphs=1)
def test_dicts(x):
    groups = {}
    for i in range(4):
        groups.setdefault(Key(i % 2), []).append(x + i)
    first = Key(1)
    groups[first] = groups[Key(1)] + [x]
    found = [k.n for k in groups], Key(1) in groups, Key(5) in groups, first is list(groups)[1], groups.get(Key(7), "none")
    gone = groups.pop(Key(0))
    return groups, found, len(gone), len(groups)


@differential(graphs=1)
def test_sets(x):
    s = {Key(1), Key(2), Key(1)}
    s.add(Key(2))
    t = {Key(2), Key(3)}
    return x * len(s), Key(1) in s, Key(5) in s, len(s & t), len(s | t), s == {Key(2), Key(1)}, len(frozenset([Key(1), Key(1)]))


@differential(graphs=1)
def test_frozen_dataclasses(x):
    d = {Point(1): x, Point(2, "y"): x * 2}
    pairs = {(Point(1), 1): "a", (Point(2), 1): "b"}
    return d[Point(1)], d[Point(2, "y")], Point(3) in d, pairs[Point(1), 1], (Point(1), 2) in pairs, len({Point(1), Point(1), Point(2)})


class Like(Key):
    """Equal to numbers, too."""

    __hash__ = Key.__hash__

    def __eq__(self, other):
        return self.n == getattr(other, "n", other)


@differential()
def test_beside_other_kinds(x):
    d = {3: "three", Like(4): "four"}
    return x, d[Like(3)], d[4], Like(3) in d, 4 in d, len({3, Like(3), 4.0, Like(4)})


class Liar:
    def __init__(self, n):
        self.n = n

    def __hash__(self):
        return 1

    def __eq__(self, other):
        return abs(self.n - other.n) < 2


@differential()
def test_no_equivalence(x):
    d = {}
    for n in (1, 2, 3, 4, 6):
        d[Liar(n)] = n
    return x, list(d.values()), Liar(5) in d, d.get(Liar(2))


class Counting(Key):
    asked = 0

    def __hash__(self):
        Counting.asked += 1
        return 1

    def __eq__(self, other):
        self.compared = getattr(self, "compared", 0) + 1
        return self.n == other.n


@differential()
def test_methods_that_change_something(x):
    a, b = Counting(1), Counting(2)
    d = {a: 1, b: 2}
    found = d[Counting(2)]
    asked = Counting.asked
    Counting.asked = 0
    return x + found, asked, vars(a), vars(b)


@differential()
def test_changed_while_a_key(x):
    key = Key(1)
    d = {key: x}
    key.n = 2
    found = key in d, Key(1) in d, Key(2) in d
    key.n = 1
    return found, key in d, d[Key(1)]


class Broken:
    def __hash__(self):
        raise TypeError("no hash")

    def __eq__(self, other):
        return True


@differential()
def test_errors(x):
    try:
        {Broken(): 1}
    except TypeError as error:
        return x, str(error)


KEPT = {Key(1): torch.ones(3), Key(2): torch.zeros(3)}
HELD = {Key(1), Key(2)}


@differential()
def test_made_outside(x):
    y = x * KEPT[Key(1)]
    for key, value in KEPT.items():
        y = y * value + key.n
    return y, Key(3) in KEPT, Key(1) in HELD, sum(k.n for k in HELD), (Key(1), 1) in {(1, 2): 3}


class Halved:
    def __init__(self, v):
        self.v = v

    def __eq__(self, other):
        return self.v == other.v

    def __hash__(self):
        return hash(self.v)


@differential(lambda: (torch.ones(2), Halved(2)))
def test_a_key_that_was_changed_before(x, key):
    key.v //= 2
    table = {key: 1}
    return x + 1, table, table.get(Halved(1)), table.get(Halved(2))
