"""hash() of what hashes by its address, and unions of classes compared."""

import torch

import framegraft

from .differential import differential


class Plain:
    pass


class Holder:
    def __init__(self):
        self.part = Plain()
        self.union = int | None


HELD = Holder()


def told(*objects):
    return [hash(o) for o in objects]


@differential(graphs=1)
def test_of_classes_and_functions(x):
    return x + 1, hash(Plain), hash(int), hash(told), hash(len), told(Plain, Holder)


@differential(graphs=1)
def test_of_objects_that_others_hold(x):
    return x * 2, hash(HELD.part) == hash(HELD.part), hash(HELD.part) == object.__hash__(HELD)


@differential()
def test_of_objects_made_inside(x):
    made = Plain()
    return x * 2, hash(made) == hash(made)


def test_of_other_objects_later():
    def f(x, holder):
        return x + 1, hash(holder.part)

    compiled, x = framegraft.compile(f, backend="eager"), torch.ones(2)
    holders = [Holder() for _ in range(3)]
    for holder in [*holders, *holders]:
        assert compiled(x, holder)[1] == hash(holder.part)
        holder.part = Plain()
        assert compiled(x, holder)[1] == hash(holder.part)


@differential(lambda: (torch.ones(2), Holder(), int | str), graphs=1)
def test_unions_compared(x, holder, union):
    said = union == (int | str), union == str | int, union != (int | float), holder.union == (None | int), union == int
    other = union == "int | str", "int | str" != union, union == 3, union == None, union != torch.ones  # noqa: E711
    assert not any(other[:1])
    return x * 2, said, other, union in (int | None, str | int)
