"""An object and its ``__dict__``, which the program has got from somewhere else than the object."""

import functools
import types

import torch

from .differential import differential


class Thing:
    kind = "thing"

    def __init__(self):
        self.size = 2

    @functools.cached_property
    def double(self):
        return self.size * 2


def plain():
    thing = Thing()
    return thing, vars(thing), torch.ones(2)


@differential(plain)
def test_the_dict_is_changed_before_the_object_is_asked(thing, names, x):
    names["size"] = 5
    names["kind"] = "other"
    return x * thing.size, thing.kind, thing.double


@differential(plain)
def test_the_object_is_asked_first(thing, names, x):
    first = thing.size
    names["size"] = 5
    second = thing.size
    del names["size"]
    return x * first, second, hasattr(thing, "size")


@differential(plain)
def test_the_object_is_changed_before_the_dict_is_asked(thing, names, x):
    thing.size = 5
    thing.more = x
    return x * names["size"], list(names), len(names), names.get("more")


@differential(plain)
def test_the_dict_is_found_to_be_the_objects(thing, names, x):
    names["size"] += 1
    return x * thing.size, thing.__dict__ is names, thing.__dict__


@differential(plain)
def test_the_dict_is_read_and_the_object_too(thing, names, x):
    return x * names["size"] + thing.size, list(names)


@differential(build=True)
def test_the_dict_waits_behind_a_break():
    thing = Thing()

    def fn(x):
        names = thing.__dict__
        first = thing.double
        print("break")
        names["size"] = 5
        del names["double"]
        return x * thing.double, first

    return fn


def of_a_function():
    def fn():
        return 1

    fn.size = 2
    return fn, fn.__dict__, torch.ones(2)


def of_a_module():
    module = types.ModuleType("module")
    module.size = 2
    return module, vars(module), torch.ones(2)


def of_a_layer():
    layer = torch.nn.Dropout(0.5)
    layer.size = 2
    return layer, vars(layer), torch.ones(2)


def of_a_tensor():
    tensor = torch.ones(2)
    tensor.size_of_it = tensor.size = 2
    return tensor, tensor.__dict__, torch.ones(2)


def of_an_error():
    error = ValueError("no")
    error.size = 2
    return error, error.__dict__, torch.ones(2)


@differential(lambda: ([of_a_function(), of_a_module(), of_a_layer(), of_a_tensor(), of_an_error()], torch.ones(2)))
def test_objects_of_other_kinds_whose_dict_is_changed(kinds, x):
    for owner, names, _ in kinds:
        names["size"] = 7
        x = x * owner.size
    return x


@differential(lambda: ([of_a_function(), of_a_module(), of_a_layer(), of_a_tensor(), of_an_error()], torch.ones(2)))
def test_objects_of_other_kinds_that_are_changed(kinds, x):
    for owner, names, _ in kinds:
        owner.size = 7
        x = x * names["size"]
    return x


@differential(build=True)
def test_a_class_that_is_changed():
    class Own(Thing):
        size_of_all = 2

    names = Own.__dict__

    def fn(x):
        Own.size_of_all = 7
        return x * names["size_of_all"]

    return fn


@differential(lambda: ({"size": 1}, torch.ones(2), Thing()), graphs=1)
def test_other_dicts_are_changed(names, x, thing):
    names["size"] = 3
    thing.size += names["size"]
    return x * thing.size
