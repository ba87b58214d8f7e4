"""Which object is which: captured for distinct objects, called with one in two places, and the other way round."""

import pytest
import torch

import framegraft


class Thing:
    pass


def make():
    def made():
        pass

    return made


A, B = Thing(), Thing()
F, G = make(), make()
M, N = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)
S, T = torch.ones(1), torch.ones(1)


def same(x, a, b):
    return x + (a is b)


def not_same(x, a, b):
    return x + (a is not b)


def equal(x, a, b):
    return x + (a == b)


def unequal(x, a, b):
    return x + (a != b)


def pairs(x, a, b):
    return x + ((a, 1) == (b, 1))


def in_a_set(x, a, b):
    return x + len({a, b})


def as_keys(x, a, b):
    d = {a: 1.0, b: 2.0}
    return x + d[a]


def item(x, d, key):
    return x + d[key]


def get(x, d, key):
    return x + d.get(key, 5.0)


def contained(x, container, a):
    return x + (a in container)


def position(x, items, a):
    return x + items.index(a)


def count(x, items, a):
    return x + items.count(a)


def distinct(x, items):
    return x + len(set(items))


OBJECTS = {"objects": (A, B), "functions": (F, G), "modules": (M, N), "tensors": (S, T)}
PROGRAMS = (same, not_same, in_a_set, as_keys)


def check(fn, *calls):
    compiled = framegraft.compile(fn, backend="eager")
    x = torch.zeros(2)
    for args in (*calls, *calls[::-1]):
        torch.testing.assert_close(compiled(x, *args), fn(x, *args))


@pytest.mark.parametrize("kind", OBJECTS)
@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda f: f.__name__)
def test_pairs(fn, kind):
    a, b = OBJECTS[kind]
    check(fn, (a, b), (a, a), (b, b), (b, a))
    framegraft.reset()
    check(fn, (a, a), (a, b))


@pytest.mark.parametrize("fn", [equal, unequal, pairs], ids=lambda f: f.__name__)
@pytest.mark.parametrize("kind", ["objects", "functions", "modules"])
def test_comparisons(fn, kind):
    a, b = OBJECTS[kind]
    check(fn, (a, b), (a, a), (b, b), (b, a))


@pytest.mark.parametrize("kind", OBJECTS)
def test_keys_of_a_dict_from_outside(kind):
    a, b = OBJECTS[kind]
    both = {a: 1.0, b: 2.0}
    check(item, (both, a), (both, b))
    check(get, ({a: 1.0}, a), ({a: 1.0}, b), ({b: 2.0}, a), ({b: 2.0}, b))
    check(contained, ({a: 1}, a), ({a: 1}, b), ({b: 1}, b), ({b: 1}, a))
    if kind != "tensors":
        check(item, ({(a, 1): 1.0, (b, 1): 2.0}, (a, 1)), ({(a, 1): 1.0, (b, 1): 2.0}, (b, 1)))


@pytest.mark.parametrize("kind", ["objects", "functions", "modules"])
def test_in_a_list(kind):
    a, b = OBJECTS[kind]
    check(position, ([a, b], a), ([a, b], b), ([b, a], a))
    check(contained, ([a], a), ([a], b), ([b], b))
    check(count, ([a, a], a), ([a, b], a), ([b, b], b), ([b, b], a))
    check(distinct, ([a, b],), ([a, a],))


def test_attributes_that_become_one_object():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = Thing(), Thing()

        def forward(self, x):
            return x + (self.first is self.second)

    model, x = Model(), torch.zeros(2)
    compiled = framegraft.compile(model, backend="eager")
    assert torch.equal(compiled(x), x)
    kept, model.second = model.second, model.first
    assert torch.equal(compiled(x), x + 1)
    model.second = kept
    assert torch.equal(compiled(x), x)
