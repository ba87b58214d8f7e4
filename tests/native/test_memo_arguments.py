"""Lists, tuples and dicts as arguments, whose contents the quick run knows as long as they are the same."""

import gc
import random

import pytest
import torch

from framegraft.native.calibrate import ensure_calibrated, tensor_spec

from .build import holds, node, program

ensure_calibrated()
COUNT = 12


class Table(dict):
    pass


def of(kind):
    """A program over a list, tuple or dict of tensors, numbers, texts and pairs, and what makes such an argument."""
    access, keys = ("KEY", [f"k{i}" for i in range(COUNT)]) if kind is dict else ("ITEM", list(range(COUNT)))
    checks = [[("TENSOR", tensor_spec(torch.ones(2)))], [("EQ", 3.5)], [("EQ", "text")], [("TYPE", tuple), ("LEN", 2)]]
    whole = ("KEYS", tuple(keys)) if kind is dict else ("LEN", COUNT)
    tensors = [i + 1 for i in range(0, COUNT, 4)]
    made = program(node("ARG", 0, ("TYPE", kind), whole), *[node(access, key, *checks[i % 4], parent=0) for i, key in enumerate(keys)],
                   node("ARG", 1, ("TENSOR", tensor_spec(torch.ones(3)))), node("NONE", None, ("NOALIAS", [*tensors, COUNT + 1])))

    def values():
        return [(torch.ones(2), 3.5, "text", (1, 2))[i % 4] for i in range(COUNT)]

    return made, lambda: dict(zip(keys, values(), strict=True)) if kind is dict else kind(values()), keys


X = torch.ones(3)
KINDS = (list, tuple, dict)
ELSE = [(0, torch.ones(3)), (0, X), (0, None), (1, 4.5), (1, 3), (2, "other"), (3, (1, 2, 3)), (3, [1, 2]), (4, torch.ones(2, requires_grad=True))]


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_one_again_and_a_new_one_each_time(kind):
    made, make, _ = of(kind)
    held = make()
    for _ in range(20):
        assert holds(made, held, X)
    for _ in range(20):
        assert holds(made, make(), X)
    for _ in range(20):
        assert holds(made, held, X)
    assert not holds(made, held)
    assert not holds(made, held, torch.ones(2))


@pytest.mark.parametrize("kind", (list, dict))
@pytest.mark.parametrize("at,value", ELSE)
def test_an_item_is_replaced(kind, at, value):
    made, make, keys = of(kind)
    for often in range(8):
        held = make()
        for _ in range(often):
            assert holds(made, held, X)
        old, held[keys[at]] = held[keys[at]], value
        assert not holds(made, held, X)
        held[keys[at]] = old
        assert holds(made, held, X)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("at,value", ELSE)
def test_another_one_in_its_place(kind, at, value):
    """It may lie where the first one lay."""
    made, make, keys = of(kind)
    for _ in range(30):
        held = make()
        assert holds(made, held, X)
        items = dict(held) if kind is dict else list(held)
        items[keys[at]] = value
        del held
        assert not holds(made, kind(items), X)


@pytest.mark.parametrize("kind", (list, dict))
def test_items_that_are_others_each_time(kind):
    """That is found out once, not for each item."""
    made, make, keys = of(kind)
    held = make()
    for i in range(200):
        held[keys[4 * (i % 3)]] = torch.ones(2)
        assert holds(made, held, X)
        if i % 10 == 0:
            held[keys[0]] = torch.ones(3)
            assert not holds(made, held, X)
            held[keys[0]] = torch.ones(2)


@pytest.mark.parametrize("kind", (list, dict))
@pytest.mark.parametrize("seed", range(8))
def test_any_sequence_of_changes(kind, seed):
    made, make, keys = of(kind)
    pick = random.Random(seed)
    held, good = make(), make()

    def grown():
        held["more" if kind is dict else slice(COUNT, None)] = [1]

    def shrunk():
        del held[keys[-1]]

    def emptied():
        held.clear()

    def filled(items):
        held.update(items) if kind is dict else held.extend(items)

    def moved():
        items = held.copy()
        held.clear()
        filler = [[None] * COUNT for _ in range(4)]
        filled(items)
        return filler

    def mended():
        held.clear()
        filled(good)

    def replaced():
        at, value = pick.choice(ELSE)
        held[keys[at]] = value

    def resized():
        held[keys[8]].resize_(pick.choice((2, 3)))

    for _ in range(80):
        if len(held) != COUNT:
            mended()
        pick.choice((grown, shrunk, emptied, moved, mended, replaced, resized, mended, gc.collect))()
        expected = made.explain((held, X), holds) is None
        assert holds(made, held, X) is expected
        if pick.random() < 0.3:
            mended()
            good[keys[8]].resize_(2)
            assert holds(made, held, X)


def test_a_subclass_in_the_place_of_a_dict():
    made, make, _ = of(dict)
    for _ in range(8):
        held = make()
        assert holds(made, held, X)
        items = dict(held)
        del held
        assert not holds(made, Table(items), X)


def test_arguments_are_not_held():
    """The quick run knows them by their addresses only."""
    made, make, keys = of(dict)
    held = make()
    for _ in range(4):
        assert holds(made, held, X)
    freed = []

    class Told:
        def __del__(self):
            freed.append(True)

    held["last"] = Told()
    del held
    gc.collect()
    assert freed == [True]
    assert holds(made, make(), X)
