"""str.format and its relatives on objects, tables of characters, and keys that compare by a function."""

import collections
import functools

import pytest
import torch

import framegraft

from .differential import differential


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __format__(self, spec):
        return f"<{self.x},{self.y}:{spec}>"

    def __repr__(self):
        return f"Point({self.x})"


@differential(graphs=1)
def test_format(x):
    p = Point(1, [2, 3])
    texts = [
        "{} {!r} {:abc}".format(p, p, p),
        "{0} {1[0]} {0.y[1]:>5} {2[key]!s:{w}}".format(p, [7], {"key": "v"}, w=4),
        "{{}} {p:{width}.{prec}}".format(p=p, width=3, prec=1),
        "{a}-{b:03d}".format_map({"a": "z", "b": 5}),
        "{0.x}{0.x}".format(p),
    ]
    return x + 1, texts


@differential()
def test_format_errors(x):
    told = []
    for text, args in (("{} {0}", ([1],)), ("{2}", ([1],)), ("{nope}", ([1],)), ("{", ([1],)), ("{0.nope}", ([1],)), ("{0[5]}", ([1],))):
        try:
            told.append(text.format(*args))
        except (ValueError, IndexError, KeyError, AttributeError) as error:
            told.append((type(error).__name__, str(error)))
    return x, told


@differential(graphs=1)
def test_tables(x):
    table = str.maketrans("abc", "xyz", "q")
    other = str.maketrans({"a": "long", "b": None})
    return x + 1, "aqbc".translate(table), "abc".translate(other), "aX".translate({97: "bb", 88: None}), table


@differential(graphs=1)
def test_cmp_to_key(x):
    def compare(a, b):
        return (a[0] > b[0]) - (a[0] < b[0])

    items = [(3, x), (1, x + 1), (2, x * 2), (1, x * 3)]
    items.sort(key=functools.cmp_to_key(compare), reverse=True)
    key = functools.cmp_to_key(lambda a, b: b - a)
    return [t for _, t in items], max([1, 5, 3], key=key), min([1, 5, 3], key=key), sorted([2, 9, 4], key=key), key(1) < key(2)


@differential()
def test_keys_that_leave(x):
    key = functools.cmp_to_key(lambda a, b: a - b)
    kept = key(1)
    return x + 1, kept < key(2), type(kept).__name__, kept.obj, type(key).__name__


class Version:
    def __init__(self, n):
        self.n = n

    def __lt__(self, other):
        if self.n == other.n == 0:
            raise ValueError("zeros")
        return self.n < other.n


@differential()
def test_sorted_objects(x):
    found = [v.n for v in sorted([Version(3), Version(1), Version(2)])]
    try:
        sorted([Version(0), Version(1), Version(0)], key=lambda v: v)
    except ValueError as error:
        found.append(str(error))
    return x * 2, found


@pytest.mark.parametrize("fullgraph", [False, True])
def test_lazy_modules_are_captured_in_their_second_call(fullgraph):
    graphs = []

    def backend(gm, inputs):
        graphs.append(gm)
        return gm.forward

    def make():
        torch.manual_seed(1)
        return torch.nn.Sequential(torch.nn.LazyLinear(4), torch.nn.Dropout(), torch.nn.LazyLinear(2))

    plain, model = make(), make()
    compiled = framegraft.compile(model, backend=backend, fullgraph=fullgraph)
    seen = []
    for _ in range(3):
        results = []
        for one in (plain, compiled):
            torch.manual_seed(2)
            results.append(one(torch.ones(2, 3)))
        assert torch.equal(*results)
        seen.append(len(graphs))
    assert seen == [0, 1, 1]


def test_a_module_that_stays_lazy():
    lazy = torch.nn.LazyLinear(4)

    def fn(x):
        return x * 2, isinstance(lazy.weight, torch.nn.UninitializedParameter)

    counter = framegraft.testing.CompileCounter()
    compiled = framegraft.compile(fn, backend=counter)
    for _ in range(3):
        assert compiled(torch.ones(1))[1] is True
    assert counter.frame_count == 1


@differential(lambda: (torch.ones(2), {"a": 1}))
def test_format_map_takes_one_argument(x, table):
    told = []
    for give in (lambda: "{a}".format_map(table, 7), lambda: "{a}".format_map(), lambda: "{a}".format_map(mapping=table),
                 lambda: "{a}".format_map(table)):
        try:
            told.append(give())
        except TypeError as error:
            told.append(str(error))
    return x + 1, told


Pair = collections.namedtuple("Pair", "x y")


class Named(dict):
    def __repr__(self):
        return f"Named of {len(self)}"


@differential(lambda: ({3, "a"}, collections.deque([1, "b"], maxlen=3), collections.OrderedDict(a=[1]), Pair(1, "c"), torch.ones(2)), graphs=1)
def test_texts_of_containers(found, queue, ordered, point, x):
    counted = collections.defaultdict(list, {"k": [Pair(2, None)]})
    made = [set(), {1}, frozenset(), frozenset([2]), collections.deque(), collections.OrderedDict(), collections.defaultdict(None), Named(a=1)]
    views = {1: x.shape}.keys(), {1: "v"}.values(), {1: (2,)}.items(), ordered.items(), slice(1, None, x.shape[0])
    queue.append(point)
    found.add(4.5)
    nested = {"all": (found, [queue, {"in": ordered}], counted)}
    return (x + 1, repr(found), str(queue), f"{ordered} {ordered!r:>40}", repr(point), str(counted), repr(made), repr(views), str(nested),
            "%s" % ordered["a"][0])


@differential()
def test_texts_of_containers_that_hold_themselves(x):
    queue = collections.deque()
    queue.append([queue])
    ordered = collections.OrderedDict(a=1)
    ordered["own"] = ordered
    return x + 1, repr(queue), str(ordered)


@differential()
def test_texts_of_containers_of_tensors(x):
    return str({"a": {1, 2}, "b": collections.OrderedDict(t=x * 2)}), repr(Pair(x, 1))
