"""Classes that collections.namedtuple makes inside of the function."""

import collections

import torch

import framegraft

from .differential import differential


def one():
    return (torch.arange(3.0),)


@differential(one, graphs=1)
def test_used_inside(x):
    x = x + 1
    Pair = collections.namedtuple("Pair", "a b")
    pair = Pair(x, b=x * 2)
    a, b = pair
    other = pair._replace(a=3)
    c = Pair._make([1, 2])
    return a * b + pair[1] - other.a, c == (1, 2), len(pair), len(Pair._fields), isinstance(pair, Pair), c._asdict()


@differential(one, graphs=1)
def test_options(x):
    x = x + 1
    Three = collections.namedtuple("Three", ["a", "def", "c"], rename=True, defaults=(5, None))
    three = Three(x)
    return three.a * three._1, Three.__module__, Three.__name__, three.c, three._field_defaults["c"]


@differential(one, graphs=1)
def test_in_a_loop_and_a_callee(x):
    x = x + 1

    def make(n):
        return collections.namedtuple(f"T{n}", "value")

    total = x
    for n in range(3):
        total = total + make(n)(x * n).value
    return total, make(1) is make(1), make(1)(3) == make(2)(3), make(1) == make(1)


@differential(one)
def test_tables_of_the_class(x):
    x = x + 1
    Pair = collections.namedtuple("Pair", "a b", defaults=[3])
    return x * 2, Pair._fields, Pair._field_defaults, sorted([Pair(2), Pair(1)])[0].a


@differential(one)
def test_that_is_returned(x):
    x = x + 1
    Pair = collections.namedtuple("Pair", "a b")
    return tuple(Pair(x, 1)), repr(Pair(1, 2)), type(Pair(x, 1)).__name__, [Pair(1, 2) for _ in range(2)] == [(1, 2)] * 2


@differential(one)
def test_across_a_break(x):
    x = x + 1
    Pair = collections.namedtuple("Pair", "a b")
    pair = Pair(x, 1)
    print("half-way")
    return pair.a * 2, isinstance(pair, Pair), type(pair) is Pair


@differential(one)
def test_errors(x):
    x = x + 1
    try:
        collections.namedtuple("Pair", "a a")
    except ValueError as error:
        text = str(error)
    Pair = collections.namedtuple("Pair", "a b")
    try:
        Pair(x)
    except TypeError as error:
        return x * 2, text, str(error)


@differential(one)
def test_attributes_that_are_set(x):
    x = x + 1
    Pair = collections.namedtuple("Pair", "a b")
    before = getattr(Pair, "count", 0)
    Pair.count = before + 1
    Pair.__doc__ = "mine"
    return x * Pair.count, Pair(1, 2).count, Pair.__doc__


def test_each_call_has_its_own():
    kept = []

    def f(x, how):
        x = x + 1
        Pair = collections.namedtuple("Pair", "a b")
        if how == "class":
            return x, Pair
        if how == "object":
            return x, type(Pair(x, 1))
        if how == "method":
            return x, Pair(x, 1)._replace().__class__
        if how == "cell":
            return x, (lambda: Pair)()
        if how == "function":
            return x, Pair._asdict
        if how == "list":
            kept.append(Pair)
            return x, kept[-1]
        try:
            raise KeyError(Pair(1, 2))
        except KeyError as error:
            return x, type(error.args[0])

    compiled = framegraft.compile(f, backend="eager")
    for how in ("class", "object", "method", "cell", "function", "list", "error"):
        made = [compiled(torch.ones(1), how)[1] for _ in range(3)]
        assert len(set(map(id, made))) == 3, how


@differential(lambda: (torch.arange(4.0).reshape(2, 2),), graphs=1)
def test_results_of_torch_in_trees(x):
    tree = {"most": torch.max(x, 1), "parts": torch.return_types.qr((x * 2, None))}
    leaves, spec = torch.utils._pytree.tree_flatten(tree)
    return leaves, torch.utils._pytree.tree_unflatten(leaves, spec), torch.utils._pytree.tree_map(lambda leaf: leaf, tree)
