"""functools.singledispatch: the implementation is found without the cache, by the classes that are registered."""

import collections.abc
import functools
import weakref

import pytest
import torch

import framegraft

from .differential import differential


@functools.singledispatch
def double(value, times=2):
    return "anything", times


@double.register
def _(value: int, times=2):
    return value * times


@double.register(torch.Tensor)
def _(value, times=2):
    return value * times


@double.register(list)
def _(value, times=2):
    return [double(item, times) for item in value]


@double.register(collections.abc.Sized)
def _(value, times=2):
    return len(value) * times


@double.register(collections.abc.Mapping)
def _(value, times=2):
    return {key: double(item, times) for key, item in value.items()}


class Three:
    def __len__(self):
        return 3


class Layer(torch.nn.Module):
    @functools.singledispatchmethod
    def run(self, value):
        return "base", value

    @run.register
    def _(self, value: torch.Tensor):
        return value + 1

    @run.register
    def _(self, value: int):
        return value + 2

    def forward(self, value):
        return self.run(value)


@differential(lambda: (torch.ones(2), Three()), graphs=1)
def test_the_nearest_class_decides(x, three):
    seen = double(x), double(3, times=4), double(True), double(2.0, 5), double([1, x, {"a": x, "b": (1, 2)}]), double(three), double("abc")
    return seen, double.dispatch(bool) is double.registry[int]


@differential(lambda: (Layer(), torch.ones(2)), graphs=1)
def test_methods(layer, x):
    return layer(x), layer(3), layer("a")


@functools.singledispatch
def unsure(value):
    return 0


unsure.register(collections.abc.Sized, lambda value: 1)
unsure.register(collections.abc.Container, lambda value: 2)


class Bag(Three):
    def __contains__(self, value):
        return True


@differential(lambda: (torch.ones(2), Bag()))
def test_two_classes_that_are_equally_near(x, bag):
    return x + 1, unsure(bag)


class Counting(dict):
    def __getitem__(self, key):
        self.asked = getattr(self, "asked", 0) + 1
        return super().__getitem__(key)


with pytest.MonkeyPatch.context() as patched:
    patched.setattr(weakref, "WeakKeyDictionary", Counting)
    watched = functools.singledispatch(lambda value: 1)
CACHE = next(c.cell_contents for c in watched.dispatch.__closure__ if isinstance(c.cell_contents, Counting))


def test_a_cache_of_the_programs_own_is_asked():
    compiled = framegraft.compile(lambda x: x + watched(2), backend="eager")
    for n in (1, 2):
        assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 2.0)) and CACHE.asked == n


def test_what_is_registered_later_is_seen():
    @functools.singledispatch
    def of(value):
        return 1

    @of.register(collections.abc.Hashable)
    def _(value):
        return 2

    class Plain:
        __hash__ = None

    def run(x, value):
        return x + of(value)

    compiled = framegraft.compile(run, backend="eager", fullgraph=True)
    x, value = torch.ones(2), Plain()
    assert torch.equal(compiled(x, value), x + 1)
    collections.abc.Hashable.register(Plain)
    assert torch.equal(compiled(x, value), x + 2)
    of.register(Plain, lambda value: 3)
    assert torch.equal(compiled(x, value), x + 3)
