"""Guards of one object, copied by the native core for others: the same answers, numbers and values as guards that are spelled out."""

import abc
import gc
import sys

import pytest
import torch

from framegraft import _native

from .build import Thing, frame, growth, holds


class Shape(abc.ABC):  # noqa: B024 - asked for its subclasses only
    pass


def checks(first):
    """What is checked below an object: (parent, accessor, argument, checks), the object itself being node 0."""
    return [
        (0, "DICT", None, [("LEN", 4, first)]),
        (1, "KEY", "n", [("TYPE", int, first + 1), ("EQ", 1, first + 2)]),
        (1, "KEY", "inner", [("TYPE", Thing, first + 3)]),
        (3, "TYPE", None, [("MRO", Thing.__mro__, first + 4), ("TYPEVER", (("__init__", Thing.__init__),), first + 5)]),
        (1, "KEY", "table", [("KEYS", ("a", torch.float32), first + 6), ("NOKEY", "z", first + 7)]),
        (5, "KEY", "a", [("RANGE", (0, 5), first + 8)]),
        (1, "KEY", "base", [("SUBCLASS", (dict, False), first + 9)]),
    ]


def template():
    return _native.GuardProgram([(-1, "ARG", 0, []), *checks(0)])


def thing():
    return Thing(n=1, inner=Thing(), table={"a": 3, torch.float32: 1}, base=Shape)


def spelled():
    """The guards of two arguments, spelled out."""
    nodes = [(-1, "ARG", 0, []), (-1, "ARG", 1, [("TYPE", Thing, 0)])]
    for top, first in (0, 1), (1, 11):
        above = len(nodes) - 1
        nodes += ((top if parent == 0 else above + parent, *rest) for parent, *rest in checks(first))
    return _native.GuardProgram(nodes)


def repeated():
    made = template()
    return _native.GuardProgram([(-1, "ARG", 0, []), (-1, "ARG", 1, [("TYPE", Thing, 0)]), (0, made, 1), (1, made, 11)])


def change_inner(one):
    one.inner = Thing


def change_base(one):
    one.base = type("Mine", (abc.ABC,), {})
    one.base.register(dict)


CHANGES = [
    lambda one: setattr(one, "n", 2), lambda one: setattr(one, "n", True), lambda one: setattr(one, "more", 1), change_inner,
    lambda one: one.table.update(b=1), lambda one: one.table.update(a=6), change_base, lambda one: delattr(one, "table"),
]


@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("met", [False, True])
def test_the_same_answers(at, change, met):
    made, expected = repeated(), spelled()
    assert len(made) == len(expected) == 21
    given = thing(), thing()
    assert made.values(given, frame) == expected.values(given, frame)
    for _ in range(3 * met):
        assert made.check(given, frame) and expected.check(given, frame)
    change(given[at])
    assert made.explain(given, frame) == expected.explain(given, frame) is not None
    assert not holds(made, *given)
    assert holds(made, *(thing() for _ in range(2)))


def test_guards_on_several_objects():
    made = template()
    both = _native.GuardProgram([(-1, "ARG", 0, []), (-1, "ARG", 1, []), (0, made, 0), (1, made, 10),
                                 (-1, "NONE", None, [("NOALIAS", [4, 11], 20)]), (-1, "NONE", None, [("ALIAS", (8, 15), 21)])])
    one, other = thing(), thing()
    assert holds(both, one, other)
    other.inner = one.inner
    assert both.explain((one, other), frame)[0] == 20
    other.inner, other.base = Thing(), type("Other", (abc.ABC,), {})
    assert both.explain((one, other), frame)[0] == 21


def test_inputs_are_handed_out():
    made = _native.GuardProgram([(-1, "ARG", 0, []), (-1, "ARG", 1, []), (0, template(), 0), (1, template(), 10)], (3, 15))
    assert holds(made, thing(), thing())
    with pytest.raises(ValueError, match="no node 16"):
        _native.GuardProgram([(-1, "ARG", 0, []), (-1, "ARG", 1, []), (0, template(), 0), (1, template(), 10)], (16,))


def test_of_repeats():
    """A template that is made of others."""
    leaf = _native.GuardProgram([(-1, "ARG", 0, []), (0, "DICT", None, []), (1, "KEY", "n", [("EQ", 1, 0)])])
    pair = _native.GuardProgram([(-1, "ARG", 0, []), (0, "DICT", None, []), (1, "KEY", "left", []), (1, "KEY", "right", []),
                                 (2, leaf, 0), (3, leaf, 1)])
    made = _native.GuardProgram([(-1, "ARG", 0, []), (-1, "ARG", 1, []), (0, pair, 0), (1, pair, 2)])
    given = [Thing(left=Thing(n=1), right=Thing(n=1)) for _ in range(2)]
    assert holds(made, *given)
    given[1].right.n = 5
    assert made.explain(tuple(given), frame) == (3, 5)


def test_it_outlives_its_template():
    name = "".join(["name ", str(len(sys.argv))])
    leaf = _native.GuardProgram([(-1, "ARG", 0, []), (0, "DICT", None, []), (1, "KEY", name, [("EQ", name * 2, 0)])])
    made = _native.GuardProgram([(-1, "ARG", 0, []), (0, leaf, 0)])
    given = Thing(**{name: name * 2})
    del leaf, name
    gc.collect()
    assert holds(made, given)


def test_nothing_is_kept():
    assert abs(growth(repeated, 300)) < 50


MALFORMED = {
    "negative number": (0, template(), -1),
    "node that comes later": (1, template(), 0),
    "no node": (-1, template(), 0),
    "no program": (0, 5, 0),
    "no nodes in it": (0, _native.GuardProgram([]), 0),
    "checks of its root": (0, _native.GuardProgram([(-1, "ARG", 0, [("EQ", 1, 0)])]), 0),
    "an object": (0, _native.GuardProgram([(-1, "CONST", Thing, [])]), 0),
    "two arguments": (0, _native.GuardProgram([(-1, "ARG", 0, []), (-1, "ARG", 1, [])]), 0),
    "several objects": (0, _native.GuardProgram([(-1, "ARG", 0, []), (0, "DICT", None, [("NOALIAS", [0], 0)])]), 0),
    "node that is a text": ("0", template(), 0),
    "number that is a text": (0, template(), "0"),
    "short": (0, template()),
    "long": (0, template(), 0, 0),
}


@pytest.mark.parametrize("item", MALFORMED)
def test_malformed_repeats_are_refused(item):
    with pytest.raises((TypeError, ValueError)):
        _native.GuardProgram([(-1, "ARG", 0, []), MALFORMED[item]])
