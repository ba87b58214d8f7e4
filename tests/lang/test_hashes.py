"""hash() of what hashes by its address, and unions of classes compared."""

import dataclasses
import typing

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


class Linked(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))
        self.tied = self.weight

    def forward(self, x):
        known = {hash(self.weight): "weight"}
        return x * (2 if hash(self.tied) in known else 3), hash(self.weight) == id(self.weight)


def test_hashes_of_parameters():
    models = [Linked(), Linked()]
    compiled = framegraft.compile(models[1], backend="eager", fullgraph=True)
    for _ in range(2):
        for _ in range(2):
            expected, given = models[0](torch.ones(3)), compiled(torch.ones(3))
            assert torch.equal(given[0], expected[0]) and given[1] is expected[1]
        for model in models:
            model.weight = torch.nn.Parameter(torch.zeros(3))


@differential()
def test_hashes_of_other_tensors(x):
    y = x * 2
    return y, hash(y) == hash(y), hash(x) == hash(y)


class Pair(typing.NamedTuple):
    first: int
    second: object


class OfOneHash(tuple):
    __slots__ = ()

    def __hash__(self):
        return 7


@dataclasses.dataclass(frozen=True)
class Inner:
    number: float
    items: tuple = ()


@dataclasses.dataclass(frozen=True)
class Outer:
    inner: Inner
    number: int = 2


@differential(lambda: (Pair(1, 2), {Pair(1, 2): 3, (3, 4): 5}, torch.ones(2)), graphs=1)
def test_named_tuples_as_keys(pair, numbers, x):
    made = {pair: x, Pair(2, 3): 4}
    made[1, 2] = x + 1
    return (made, [type(k).__name__ for k in made], numbers.get(Pair(3, 4)), Pair(9, 9) in numbers, len({Pair(1, 2), (1, 2), Pair(2, 3)}),
            hash(pair) == hash((1, 2)), hash(Pair(1, Inner(1.0))) == hash((1, Inner(1.0))), hash(OfOneHash((1,))))


@differential(graphs=1)
def test_objects_whose_hash_is_that_of_others(x):
    made = {Outer(Inner(1.0)): x, Outer(Inner(1.0, (1, 2))): 3, (1, Inner(2.0)): 4}
    unhashable = []
    for value in ((1, [2]), Pair(1, []), Outer([])):
        try:
            hash(value)
        except TypeError as error:
            unhashable.append(str(error))
    return x + 1, made, made[Outer(Inner(1.0))], made[1, Inner(2.0)], Outer(Inner(1.0, (2,))) in made, hash((Inner(1.0), 3)), hash(frozenset([Inner(2.0)])), unhashable


def test_a_named_tuple_as_a_key_is_guarded():
    class Thing:
        pass

    known, other = Thing(), Thing()

    def f(x, pair, thing):
        return x + {Pair(1, 2): 5}.get(pair, 0) + {Pair(1, known): 7}.get(Pair(1, thing), 0)

    compiled = framegraft.compile(f, backend="eager", fullgraph=True)
    for pair, thing in ((Pair(1, 2), known), (Pair(1, 3), other), ((1, 2), known), (Pair(1, 2), other)):
        assert torch.equal(compiled(torch.ones(1), pair, thing), f(torch.ones(1), pair, thing))
