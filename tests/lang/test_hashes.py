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
