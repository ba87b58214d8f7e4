"""Values that Python or torch refuse, or take otherwise than it seems: what is raised, and what is left behind."""

from collections import OrderedDict, deque

import torch

import framegraft

from .differential import differential


def tried(f, *args, **kwargs):
    try:
        return f(*args, **kwargs)
    except (KeyError, TypeError, ValueError) as error:
        return type(error), error.args


class NotIterable:
    def __iter__(self):
        raise TypeError("mine")


@differential()
def test_texts_of_what_is_no_iterable(x):
    items = [1, 2, 3]

    def whole():
        items[0:1] = 3

    def stepped():
        items[::2] = NotIterable()

    def own():
        items[:1] = NotIterable()

    joined = [tried(text.join, value) for text in ("", b"") for value in (3, None, NotIterable())]
    return tried(whole), tried(stepped), tried(own), joined, items, x + 1


def listed(*args):
    return args


@differential()
def test_arguments_that_calls_refuse(x):
    return tried(lambda: listed(*3)), tried(lambda: listed(1, *[2], *x.shape)), x + 1


@differential(lambda: ({}, {1: 2}, torch.ones(2)))
def test_unhashable_key_of_a_dict_from_outside(empty, full, x):
    return tried(empty.pop, []), tried(empty.pop, [], 1), tried(full.pop, []), tried(empty.get, []), tried(OrderedDict().pop, []), x + len(empty)


@differential(lambda: ({}, torch.ones(2)))
def test_empty_dict_from_outside_has_something_later(table, x):
    popped = table.pop("a", 1)
    table["a"] = x
    return popped, table.pop("a")


class Odd(Exception):
    def __new__(cls):
        return 5


@differential()
def test_exception_class_that_makes_no_exception(x):
    def raises():
        raise Odd

    def raises_from():
        raise ValueError from Odd

    return tried(raises), tried(raises_from), x + 1


@differential()
def test_iterators_of_an_ordered_dict_are_of_one_class(x):
    table = OrderedDict(a=1)
    made = [iter(table), iter(table.keys()), iter(table.values()), iter(table.items()), reversed(table), reversed(table.items())]
    return [type(m) for m in made], [next(m) for m in made], x + 1


class Index:
    def __index__(self):
        return 2


@differential()
def test_length_of_a_deque(x):
    return [tried(deque, [1, 2, 3], limit) for limit in ("a", 1.5, True, Index(), None, -1, [])], x + 1


class Buffered(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(2))
        self.register_buffer("nothing", None)

    def forward(self, x):
        return x + self.total


@differential(lambda: (Buffered(), torch.ones(2)))
def test_buffer_that_is_to_be_something_else(module, x):
    seen = [tried(setattr, module, "total", value) for value in (3, [1], "a")]
    module.nothing = x
    y = module(x)
    module.total = None
    return seen, y, list(module._buffers), module.nothing


class Extended(torch.nn.Module):
    def __init__(self, persistent):
        super().__init__()
        self.table = torch.nn.Buffer(torch.ones(2), persistent=persistent)

    def forward(self, x, other):
        self.table = other if x.shape[0] > 2 else self.table
        return x.sum() + self.table


@differential(lambda: (Extended(True), Extended(False), torch.nn.Buffer(torch.zeros(2)), torch.ones(2), torch.ones(3)))
def test_buffer_that_takes_the_place_of_a_buffer(kept, left_out, buffer, x, y):
    results = [m(value, buffer) for m in (kept, left_out) for value in (x, y)]
    return results, [list(m.state_dict()) for m in (kept, left_out)], [m.table is buffer for m in (kept, left_out)]


class Registered(Buffered):
    def register_buffer(self, name, tensor, persistent=True):
        self.__dict__.setdefault("registered", []).append(name)
        super().register_buffer(name, tensor, persistent)


@differential(lambda: (Registered(), torch.ones(2)))
def test_buffer_of_a_module_with_its_own_register_buffer(module, x):
    module.total = x
    return module(x), module.registered


@differential(lambda: (Buffered(), torch.nn.Buffer(torch.ones(2)), torch.ones(2)))
def test_new_buffer_is_set_on_a_module(module, buffer, x):
    module.fresh = buffer
    return list(module._buffers), "fresh" in module.__dict__, module(x)


def with_keywords(**keywords):
    return sorted(keywords.items())


def broken(value):
    framegraft.graph_break()
    return value


@differential()
def test_keywords_given_twice_behind_a_break(x):
    told = []
    for more in ({"b": 2}, {"a": 2}, {3: 4}):
        try:
            framegraft.graph_break()
            told.append(with_keywords(a=1, **more))
        except TypeError as error:
            told.append(str(error).rpartition(".")[2])
        try:
            told.append(with_keywords(a=broken(1), **more, **broken({"c": 3})))
        except TypeError as error:
            told.append(str(error).rpartition(".")[2])
        try:
            told.append((with_keywords if x.sum() > 0 else print)(*broken(()), a=1, **more))
        except TypeError as error:
            told.append(str(error).rpartition(".")[2])
    return told, x + 1
