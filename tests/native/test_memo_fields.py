"""The quick run over what functions, cells, methods, classes, slots and mappingproxies keep: it agrees with the full run.

``holds`` compares the two. Changes are made so that new objects are likely to lie where old ones lay.
"""

import collections
import gc
import random
import types

import pytest

from .build import holds, node, program


class Box:
    __slots__ = ("name", "table", "proxy", "call")

    def __init__(self):
        self.name, self.table, self.proxy = "n", {"k": 1}, types.MappingProxyType({"p": 2})
        self.call = None


class Base:
    shared = {"s": 1}

    def method(self):
        return 1


class World:
    """A function with everything on it, made anew for each test."""

    def __init__(self):
        self.cls = type("Made", (Base,), {"limit": 3, "box": Box()})
        self.box = self.cls.__dict__["box"]
        self.inner = self.make_inner(7)
        self.fn = self.make()
        self.box.call = self.cls().method

    def make_inner(self, number):
        def inner(a=number):
            return number

        return inner

    def make(self):
        inner, cls = self.inner, self.cls

        def fn(x, y=(1, 2), *, z=5):
            return inner, cls

        fn.mark = {"m": 1}
        return fn

    def program(self):
        fn, cls = self.fn, self.cls
        return program(
            node("CONST", fn), node("FCODE", None, ("ID", fn.__code__), parent=0), node("FDEFAULTS", None, parent=0),
            node("ITEM", 0, ("TYPE", tuple), ("EQ", (1, 2)), parent=2), node("FKWDEFAULTS", None, ("TYPE", dict), parent=0),
            node("KEY", "z", ("EQ", 5), parent=4), node("FCLOSURE", None, parent=0),
            node("ITEM", 1, parent=6), node("CELLVAL", None, ("TYPE", types.FunctionType), parent=7),
            node("FCODE", None, ("ID", self.inner.__code__), parent=8), node("FDEFAULTS", None, ("EQ", (7,)), parent=8),
            node("FCLOSURE", None, parent=8), node("ITEM", 0, parent=11), node("CELLVAL", None, ("EQ", 7), parent=12),
            node("FDICT", None, ("TYPE", dict), parent=0), node("KEY", "mark", ("TYPE", dict), parent=14),
            node("KEY", "m", ("EQ", 1), parent=15), node("FGLOBALS", None, parent=0), node("KEY", "Box", ("ID", Box), parent=17),
            node("CONST", cls, ("MRO", cls.__mro__)), node("TYPEATTR", "limit", ("EQ", 3), parent=19),
            node("TYPEATTR", "shared", ("TYPE", dict), ("KEYS", ("s",)), parent=19), node("KEY", "s", ("EQ", 1), parent=21),
            node("TYPEATTR", "nothing", ("ABSENT", None), parent=19),
            node("TYPEATTR", "box", ("TYPE", Box), parent=19), node("ATTR", "name", ("EQ", "n"), parent=24),
            node("ATTR", "table", ("TYPE", dict), parent=24), node("KEY", "k", ("EQ", 1), parent=26),
            node("ATTR", "proxy", ("TYPE", types.MappingProxyType), parent=24), node("PROXIED", None, ("TYPE", dict), ("KEYS", ("p",)), parent=28),
            node("KEY", "p", ("EQ", 2), parent=29), node("ATTR", "call", ("TYPE", types.MethodType), parent=24),
            node("MFUNC", None, ("ID", Base.method), parent=31), node("MSELF", None, ("TYPE", cls), parent=31),
            node("NONE", None, ("ALIAS", (19, 19))), node("NONE", None, ("ALIAS", (21, 21))))


def _cell(world, index):
    return world.fn.__closure__[index]


def _defaults(world, value):
    world.fn.__defaults__ = None
    world.fn.__defaults__ = value


def _code(world):
    old = world.fn.__code__
    world.fn.__code__ = old.replace(co_name="other")
    del old


def _inner(world, number):
    _cell(world, 1).cell_contents = None
    _cell(world, 1).cell_contents = world.make_inner(number)


def _same_inner(world):
    made = types.FunctionType(world.inner.__code__, globals(), "inner", (7,), world.inner.__closure__)
    _cell(world, 1).cell_contents = made


CHANGES = {
    "code": _code,
    "defaults": lambda w: _defaults(w, ((1, 3),)),
    "equal defaults": lambda w: _defaults(w, (tuple([1, 2]),)),
    "no defaults": lambda w: setattr(w.fn, "__defaults__", None),
    "kwdefaults": lambda w: setattr(w.fn, "__kwdefaults__", {"z": 6}),
    "equal kwdefaults": lambda w: setattr(w.fn, "__kwdefaults__", {"z": 5}),
    "kwdefault": lambda w: w.fn.__kwdefaults__.update(z=6),
    "no kwdefaults": lambda w: setattr(w.fn, "__kwdefaults__", None),
    "another inner": lambda w: _inner(w, 8),
    "equal inner": _same_inner,
    "inner again": lambda w: _inner(w, 7),
    "no inner": lambda w: setattr(_cell(w, 1), "cell_contents", 5),
    "number": lambda w: setattr(w.inner.__closure__[0], "cell_contents", 8),
    "empty cell": lambda w: delattr(_cell(w, 1), "cell_contents"),
    "dict": lambda w: w.fn.__dict__.update(mark={"m": 2}),
    "dict value": lambda w: w.fn.mark.update(m=2),
    "new dict": lambda w: setattr(w.fn, "__dict__", {"mark": {"m": 1}}),
    "other dict": lambda w: setattr(w.fn, "__dict__", {"mark": {"m": 3}}),
    "limit": lambda w: setattr(w.cls, "limit", 4),
    "equal limit": lambda w: (setattr(w.cls, "limit", 0), setattr(w.cls, "limit", 3)),
    "no limit": lambda w: delattr(w.cls, "limit"),
    "class": lambda w: setattr(w.cls, "unrelated", object()),
    "something": lambda w: setattr(w.cls, "nothing", 1),
    "something on the base": lambda w: setattr(Base, "nothing", 1),
    "shared": lambda w: setattr(w.cls, "shared", {"s": 1}),
    "shared value": lambda w: setattr(w.cls, "shared", {"s": 2}),
    "shared item": lambda w: Base.shared.update(s=2),
    "bases": lambda w: setattr(w.cls, "__bases__", (type("Between", (Base,), {}),)),
    "name": lambda w: setattr(w.box, "name", "m"),
    "equal name": lambda w: setattr(w.box, "name", "".join(["n"])),
    "no name": lambda w: delattr(w.box, "name"),
    "table": lambda w: (setattr(w.box, "table", None), setattr(w.box, "table", {"k": 1})),
    "table value": lambda w: (setattr(w.box, "table", None), setattr(w.box, "table", {"k": 2})),
    "table of another class": lambda w: setattr(w.box, "table", collections.OrderedDict(k=1)),
    "proxy": lambda w: (setattr(w.box, "proxy", None), setattr(w.box, "proxy", types.MappingProxyType({"p": 2}))),
    "proxy value": lambda w: (setattr(w.box, "proxy", None), setattr(w.box, "proxy", types.MappingProxyType({"p": 3}))),
    "proxy of something else": lambda w: setattr(w.box, "proxy", types.MappingProxyType(collections.ChainMap())),
    "method": lambda w: (setattr(w.box, "call", None), setattr(w.box, "call", types.MethodType(Base.method, w.cls()))),
    "other method": lambda w: (setattr(w.box, "call", None), setattr(w.box, "call", types.MethodType(World.make, w.cls()))),
    "other self": lambda w: (setattr(w.box, "call", None), setattr(w.box, "call", types.MethodType(Base.method, Base()))),
    "no method": lambda w: setattr(w.box, "call", len),
    "another box": lambda w: setattr(w.cls, "box", Box()),
    "box class": lambda w: setattr(Box, "unrelated", 1),
    "box descriptor": lambda w: setattr(Box, "name", property(lambda self: "n")),
    "box getattribute": lambda w: setattr(Box, "__getattribute__", lambda self, name: object.__getattribute__(self, name)),
}


NAME = Box.__dict__["name"]


def restore():
    Box.name = NAME
    for cls, name in ((Box, "unrelated"), (Box, "__getattribute__"), (Base, "nothing")):
        if name in cls.__dict__:
            delattr(cls, name)
    Base.shared = {"s": 1}


@pytest.fixture(autouse=True)
def as_before():
    yield
    restore()


@pytest.mark.parametrize("name", CHANGES)
def test_each_change(name):
    world = World()
    made = world.program()
    assert holds(made, fn=world.fn) and holds(made, fn=world.fn)
    CHANGES[name](world)
    first = holds(made, fn=world.fn)
    assert holds(made, fn=world.fn) is first
    harmless = ("equal", "class", "table", "proxy", "inner again", "shared", "new dict", "box class", "box getattribute", "box descriptor",
                "method")
    if not name.startswith(harmless):
        assert not first


@pytest.mark.parametrize("seed", range(12))
def test_any_sequence(seed):
    rng = random.Random(seed)
    world = World()
    made = world.program()
    for _ in range(60):
        try:
            CHANGES[rng.choice(list(CHANGES))](world)
        except (AttributeError, TypeError, ValueError):
            pass  # there is nothing to change any more
        if rng.random() < 0.1:
            gc.collect()
        holds(made, fn=world.fn)
        if rng.random() < 0.1:
            restore()
            world = World()
            made = world.program()


def test_a_class_that_counts():
    """A class whose attribute changes all the time; the others are still seen."""
    world = World()
    made = world.program()
    for i in range(20):
        world.cls.calls = i
        assert holds(made, fn=world.fn)
    world.cls.limit = 4
    assert not holds(made, fn=world.fn)


def test_costs():
    world = World()
    made = world.program()
    assert [(phase, guard) for phase, _, guard, _ in made.costs((), world.fn, 10)] == [("words", -1)]
    assert all(ns >= 0 for *_, ns in made.costs((), world.fn, 1))
    assert made.costs((), world.fn, 0) == []
    counting = program(node("ARG", 0, ("EQ", 1)), node("ARG", 1, ("TYPE", dict)), node("KEY", "x", ("PY", bool), parent=1))
    assert [phase for phase, *_ in counting.costs((1, {"x": 2}), world.fn)] == ["first", "first", "first"]
    with pytest.raises(ValueError, match="do not hold"):
        counting.costs((2, {}), world.fn)
    with pytest.raises(TypeError):
        counting.costs(5)


def test_bases_die():
    import weakref

    made = program(node("CONST", (cls := type("A", (type("B", (), {}),), {})), ("MRO", cls.__mro__)))
    alive = weakref.ref(cls), weakref.ref(cls.__bases__[0])
    assert holds(made)
    del cls
    gc.collect()
    assert [r() for r in alive] == [None, None]
    assert not made.check((), World().fn)


def test_values_that_are_words():
    """Lists that grow, sets, tuples, weak references: each of them is compared as a word of memory."""

    class Thing:
        pass

    things = [Thing(), Thing()]
    items, numbers, pair = [things[0], things[1], 7], {1, 2}, (things, "text")
    made = program(
        node("ARG", 0, ("TYPE", dict)),
        node("KEY", "items", ("LEN", 3), parent=0),
        node("ITEM", 0, ("ID", things[0]), parent=1),
        node("ITEM", 1, ("ID", things[1]), parent=1),
        node("ITEM", 2, ("EQ", 7), parent=1),
        node("KEY", "numbers", ("LEN", 2), parent=0),
        node("KEY", "pair", ("LEN", 2), parent=0),
        node("ITEM", 1, ("EQ", "text"), parent=6),
    )
    world = {"items": items, "numbers": numbers, "pair": pair}

    def holds_twice():
        first = made.check((world,), test_values_that_are_words)
        assert made.check((world,), test_values_that_are_words) == first
        return first

    assert holds_twice()
    items.extend(range(1000))
    assert not holds_twice()
    del items[3:]  # what the list keeps its items in has moved
    assert holds_twice()
    items[2] = 7.0
    assert not holds_twice()
    items[2] = int("7")
    assert holds_twice()
    items[:2] = items[1::-1]
    assert not holds_twice()
    items[:2] = items[1::-1]
    numbers.add(3)
    assert not holds_twice()
    numbers.discard(3)
    assert holds_twice()
    world["pair"] = (things, "".join(["te", "xt"]))
    assert holds_twice()
    world["pair"] = (things, "text", None)
    assert not holds_twice()
    world["pair"] = pair
    assert holds_twice()
    items[1] = Thing()
    assert not holds_twice()
