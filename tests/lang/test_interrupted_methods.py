"""A break inside of a method that an instruction asks by itself (``__init__``, ``__setitem__``, a setter, ``__enter__``): two graphs."""

import collections
import dataclasses
import gc
import weakref

import torch

from .differential import differential
from .test_interrupted_callees import graph_break, names, outside, unseen


class Kept:
    def __init__(self, x, more=0):
        self.before = x + 1
        graph_break()
        self.x = self.before * 2 + more


class Derived(Kept):
    def __init__(self, x):
        super().__init__(x.sin(), more=1)
        self.x = self.x - x

    def __getitem__(self, index):
        y = self.x[index] + 1
        graph_break()
        return y * 2

    def __setitem__(self, index, value):
        y = value + index
        graph_break()
        self.x = y * 2

    def __delitem__(self, index):
        y = self.x * 3
        graph_break()
        self.x = y + index


@differential(lambda: (torch.ones(3),), graphs=2)
def test_init(x):
    return Kept(x * 2).x + 1


@differential(lambda: (torch.ones(3),), graphs=2)
def test_init_of_a_derived_class(x):
    made = Derived(x * 2)
    return made.x + 1, made, vars(made)


def makes(x):
    return Kept(x + 1)


@differential(lambda: (torch.ones(3),), graphs=2)
def test_what_is_returned_is_the_object(x):
    return makes(x).x * 2, [makes, outside(1)]


@differential(lambda: (torch.ones(3), Kept(torch.ones(3))), graphs=4)
def test_several(x, old):
    made = [Kept(x * i) for i in range(3)]
    old.others = made
    return sum(m.x for m in made) + 1


@differential(lambda: (Derived(torch.ones(3)), torch.ones(1)), graphs=2)
def test_getitem(obj, x):
    return obj[1] * x + 1


@differential(lambda: (Derived(torch.ones(3)), torch.ones(1)), graphs=2)
def test_setitem(obj, x):
    obj[1] = x * 2
    return obj.x * 3


@differential(lambda: (Derived(torch.ones(3)), torch.ones(1)), graphs=2)
def test_delitem(obj, x):
    del obj[1]
    return obj.x * x


class Table(collections.OrderedDict):
    def __getitem__(self, key):
        found = super().__getitem__(key) + 1
        graph_break()
        return found * 2

    def __setitem__(self, key, value):
        value = value + 1
        graph_break()
        super().__setitem__(key, value * 2)


@differential(lambda: (Table(), torch.ones(3)))
def test_items_of_a_dict(table, x):
    table["a"] = x * 3
    y = table["a"] + 1
    return y, table


class Descriptor:
    def __set__(self, obj, value):
        value = value + 1
        graph_break()
        vars(obj)["held"] = value * 2


class Noting:
    def __setattr__(self, name, value):
        if name == "noted":
            value = value + 1
            graph_break()
            value = value * 2
        super().__setattr__(name, value)


class Attributes:
    described = Descriptor()

    def __init__(self):
        self.last = None

    @property
    def computed(self):
        return self.last

    @computed.setter
    def computed(self, value):
        value = value - 1
        graph_break()
        self.last = value * 2


@differential(lambda: (Noting(), torch.ones(3)), graphs=2)
def test_setattr(obj, x):
    obj.noted = x * 2
    return obj.noted + 1


@differential(lambda: (Attributes(), torch.ones(3)), graphs=2)
def test_a_setter(obj, x):
    obj.computed = x * 2
    return obj.last + 1


@differential(lambda: (Attributes(), torch.ones(3)), graphs=2)
def test_a_descriptor(obj, x):
    obj.described = x * 2
    return obj.held + 1


class Manager:
    def __init__(self, notes):
        self.notes = notes

    def __enter__(self):
        self.notes.append("enter")
        graph_break()
        return len(self.notes)

    def __exit__(self, kind, error, trace):
        self.notes.append(kind and kind.__name__)
        return kind is KeyError


@differential(lambda: (torch.ones(3), []), graphs=2)
def test_enter(x, notes):
    y = x + 1
    with Manager(notes) as n:
        z = y * n
    return z + 1


@differential(lambda: (torch.ones(3), []))
def test_enter_around_what_fails(x, notes):
    y = x + 1
    with Manager(notes) as n:
        z = y * n
        outside(-n)
    return y + z


class Failing:
    def __init__(self, x, how):
        self.x = x + 1
        outside(how)
        if how == 0:
            raise ValueError(how)
        self.x = self.x * 2

    def __setitem__(self, key, value):
        y = value + key
        outside(key)
        self.x = y / key


def tries(x, how, notes):
    try:
        made = Failing(x * 2, how)
        made[how - 1] = x
    except (KeyError, ZeroDivisionError) as error:
        notes.append(type(error).__name__)
        return x + 2
    finally:
        notes.append("left")
    return made.x * 3


def test_errors():
    import framegraft

    compiled = framegraft.optimize("eager")(tries)
    for how in (2, -1, 0, 1, 3, -1, 0):
        for fn in (tries, compiled):
            notes = []
            try:
                found = fn(torch.ones(3), how, notes).tolist()
            except ValueError as error:
                found = repr(error), [entry.tb_lineno for entry in _entries(error) if entry.tb_frame.f_code.co_filename == __file__][-1]
            if fn is tries:
                expected = found, notes
        assert (found, notes) == expected


def _entries(error):
    entry = error.__traceback__
    while entry is not None:
        yield entry
        entry = entry.tb_next


@differential(lambda: (torch.ones(3), -1, []))
def test_errors_everywhere(x, how, notes):
    return tries(x, how, notes), notes


class Odd:
    def __init__(self, x, odd):
        self.x = x + 1
        graph_break()
        if odd:
            return self.x.sum()  # noqa: PLE0101


@differential(lambda: (torch.ones(3), True))
def test_init_that_returns_something(x, odd):
    return Odd(x * 2, odd).x + 1


@differential(lambda: (torch.ones(3), False))
def test_init_that_may_return_something(x, odd):
    return Odd(x * 2, odd).x + 1


class Meta(type):
    def __call__(cls, x):
        made = super().__call__(x * 2)
        graph_break()
        made.x = made.x + 1
        return made


class OfMeta(metaclass=Meta):
    def __init__(self, x):
        self.x = x + 1


@differential(lambda: (torch.ones(3),), graphs=2)
def test_call_of_a_metaclass(x):
    return OfMeta(x + 1).x * 2


@dataclasses.dataclass
class Data:
    x: torch.Tensor
    y: object = None

    def __post_init__(self):
        self.y = self.x + 1
        graph_break()
        self.y = self.y * 2


@differential(lambda: (torch.ones(3),), graphs=2)
def test_post_init(x):
    return Data(x + 1).y * 2


class Seen:
    def __init__(self, x):
        self.x = x + 1
        self.names = names(3)

    def __setitem__(self, key, value):
        self.x = value + key
        self.names = names(3)


def sees(x):
    made = Seen(x)
    first = made.names
    made[1] = made.x
    return first, made.names, made.x * 2


@differential(lambda: (torch.ones(3),))
def test_frames(x):
    return sees(x * 2)


class Ends:
    def __init__(self, notes):
        self.notes = notes
        graph_break()

    def __setitem__(self, key, value):
        value = value + 1
        graph_break()
        self.notes.append(key)


@unseen
def dies_now(obj, notes):
    weakref.finalize(obj, notes.append, "gone")


def lets_go(x, notes):
    made = Ends(notes)
    dies_now(made, notes)
    made[1] = x
    del made
    notes.append("behind")
    return x + 1


def test_lifetimes():
    import framegraft

    compiled = framegraft.optimize("eager")(lets_go)
    for _ in range(2):
        gc.collect()
        notes, expected = [], []
        assert compiled(torch.ones(3), notes).equal(lets_go(torch.ones(3), expected))
        assert notes == expected == [1, "gone", "behind"]
