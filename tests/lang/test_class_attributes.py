"""Attributes of classes that the captured function sets, deletes and reads again."""

import array
import collections
import enum
import re
import types

import pytest
import torch

import framegraft

from .differential import differential

ONE = (lambda: (torch.arange(1.0, 4.0),))


@differential(build=True, calls=1, graphs=1)
def test_counter():
    class Counter:
        count = 3

    def fn(x):
        Counter.count += 1
        y = x * Counter.count
        Counter.count += 1
        return y, Counter.count, Counter().count

    fn.kept = Counter
    return fn


@differential(build=True, graphs=1)
def test_set_back():
    class State:
        mode = "a"
        depth = 0

    class Deeper:
        def __enter__(self):
            self.before = State.mode
            State.mode = "b"
            return self

        def __exit__(self, *error):
            State.mode = self.before

    def fn(x):
        seen = [State.mode]
        with Deeper():
            y = x * 2 if State.mode == "b" else x
            seen.append(State().mode)
        seen.append(State.mode)
        return y, seen

    return fn


@differential(build=True)
def test_inherited():
    class Base:
        n = 5
        m = 1

    class Derived(Base):
        m = 2

    def fn(x):
        obj = Derived()
        a = obj.n, Derived.n
        Base.n = 7
        b = obj.n, Derived.n
        Derived.n = 8
        c = obj.n, Derived.n, Base.n
        obj.n = 9
        Base.m = 10
        d = obj.n, Derived.n, obj.m, Base.m
        del Derived.n
        e = Derived.n, Derived().n
        del Derived.m
        f = Derived.m
        Derived.m = 2
        Base.n, Base.m = 5, 1
        return x + f, a, b, c, d, e, f

    return fn


@differential(build=True)
def test_deleted_in_front_of_an_object():
    class Base:
        items = [1]

    class Derived(Base):
        items = [2]

    def fn(x):
        kept = Derived.items
        del Derived.items
        found = Derived.items
        Derived.items = kept
        return x, list(found), found is Base.items

    return fn


@differential(build=True, graphs=1)
def test_tensors_and_lists():
    class Box:
        last = None
        seen = []

    def fn(x):
        Box.last = x * 2
        Box.seen = [Box.last, 1]
        Box.seen.append(x)
        return Box.last + 1, Box.seen, Box().last is Box.last

    return fn


@differential(build=True, graphs=1)
def test_methods():
    class Box:
        def scale(self, x):
            return x + 1

    def other(self, x):
        return x * 10

    def fn(x):
        box = Box()
        old = Box.scale
        a = box.scale(x)
        Box.scale = other
        b = box.scale(x)
        Box.scale = lambda self, x: x - 1
        c = Box().scale(x)
        Box.scale = old
        return a, b, c, box.scale(x), Box.scale is old

    return fn


@differential(build=True)
def test_no_plain_values():
    class Box:
        def __init__(self):
            self.__dict__["v"] = 3

        def __len__(self):
            return 2

    def fn(x):
        box = Box()
        Box.v = property(lambda self: 10)
        a = box.v
        del Box.v
        Box.__len__ = lambda self: 5
        b = len(box)
        Box.w = staticmethod(lambda y: y + 1)
        return x, a, b, box.v, Box.w(1), box.w(2)

    return fn


@differential(build=True)
def test_metaclass():
    class Meta(type):
        def __setattr__(cls, name, value):
            super().__setattr__(name, value * 2)

        @property
        def size(cls):
            return cls._size

        @size.setter
        def size(cls, value):
            type.__setattr__(cls, "_size", value + 1)

    class Box(metaclass=Meta):
        n = 1
        _size = 0

    def fn(x):
        Box.n = 5
        Box.size = 3
        return x, Box.n, Box.size, Box._size

    return fn


@differential(build=True)
def test_slots():
    class Box:
        __slots__ = ("a",)
        n = 1

    box = Box()

    def fn(x):
        box.a = x * 2
        Box.n = 4
        first = box.a, Box.n, box.n
        kept = Box.a
        Box.a = 3
        second = box.a, Box.a
        Box.a = kept
        Box.n = 1
        return first, second, box.a

    return fn


@differential(build=True)
def test_hasattr_and_errors():
    class Box:
        pass

    def fn(x):
        a = hasattr(Box, "k"), hasattr(Box(), "k")
        setattr(Box, "k", 3)
        b = hasattr(Box, "k"), getattr(Box(), "k"), Box.k
        delattr(Box, "k")
        c = hasattr(Box, "k"), getattr(Box, "k", 7)
        try:
            del Box.k
        except AttributeError as error:
            c += (str(error),)
        return x + 1, a, b, c

    return fn


@differential(build=True)
def test_seen_by_others():
    class Box:
        k = 1

    class Color(enum.Enum):
        RED = 1

    def fn(x):
        Box.k = 2
        a = Box.__dict__["k"], vars(Box)["k"], [n for n in dir(Box) if n == "k"]
        Box.fresh = 1
        b = "fresh" in Box.__dict__, super(Box, Box()).__getattribute__("fresh")
        del Box.fresh
        Box.k = 1
        try:
            Color.RED = 5
        except AttributeError as error:
            b += (str(error),)
        Color.extra = 3
        return x, a, b, Color.extra, Color.RED.value

    return fn


class Kept:
    n = 0
    text = "a"
    data = None


@pytest.fixture(autouse=True)
def kept():
    yield
    Kept.n, Kept.text, Kept.data = 0, "a", None
    for name in ("late", "m"):
        if name in Kept.__dict__:
            delattr(Kept, name)


def test_a_counter_is_a_number():
    graphs = []

    def backend(gm, inputs):
        graphs.append(gm)
        return gm.forward

    def fn(x):
        Kept.n += 1
        if Kept.n > 1000:
            return x
        return x * Kept.n

    compiled = framegraft.compile(fn, backend=backend, fullgraph=True)
    x = torch.ones(2)
    for n in range(1, 12):
        torch.testing.assert_close(compiled(x), x * n)
        assert Kept.n == n
    assert len(graphs) == 2
    Kept.n = 2000
    torch.testing.assert_close(compiled(x), x)
    assert Kept.n == 2001
    Kept.n = 0.5
    torch.testing.assert_close(compiled(x), x * 1.5)


def test_what_the_program_does_between_calls_is_seen():
    def fn(x, obj):
        Kept.text = Kept.text + "b"
        return x * len(obj.text), obj.text

    compiled = framegraft.compile(fn, backend="eager")
    x, obj = torch.ones(1), Kept()
    assert compiled(x, obj)[1] == "ab"
    assert compiled(x, obj)[1] == "abb"
    Kept.text = "x"
    assert compiled(x, obj)[1] == "xb"
    obj.text = "own"
    assert compiled(x, obj)[1] == "own" and Kept.text == "xbb"


def test_set_and_read_needs_no_capture_of_its_own():
    graphs = []

    def backend(gm, inputs):
        graphs.append(gm)
        return gm.forward

    def fn(x):
        Kept.data = x * 2
        Kept.late = "there"
        return Kept.data + len(Kept().late)

    compiled = framegraft.compile(fn, backend=backend, fullgraph=True)
    for n in range(4):
        x = torch.full((2,), float(n))
        torch.testing.assert_close(compiled(x), x * 2 + 5)
        torch.testing.assert_close(Kept.data, x * 2)
        Kept.data = n
    assert len(graphs) == 1


def test_a_base_in_between_is_seen():
    class Base:
        n = 1

    class Middle(Base):
        pass

    class Last(Middle):
        pass

    def fn(x):
        Base.n = 5
        return x * Last().n, Last.n

    compiled = framegraft.compile(fn, backend="eager")
    x = torch.ones(1)
    assert compiled(x)[1] == 5
    assert compiled(x)[1] == 5
    Middle.n = 7
    assert compiled(x)[1] == 7 and Base.n == 5
    del Middle.n
    Last.n = property(lambda self: 9)
    got = compiled(x)
    assert float(got[0]) == 9 and isinstance(got[1], property)


def test_an_attribute_that_is_deleted_and_set_again_is_the_last_one():
    def fn(x, cls):
        before = cls.first
        del cls.first
        y = x * before
        cls.third = 3
        cls.first = before
        return y

    found = []
    for capture in (lambda f: f, lambda f: framegraft.compile(f, backend="eager")):
        class Options:
            first, second = 1, 2

        capture(fn)(torch.ones(2), Options)
        found.append([name for name in vars(Options) if not name.startswith("__")])
    assert found == [["second", "third", "first"]] * 2


IMMUTABLE = re.Match, re.Pattern, array.array, int, collections.deque, types.SimpleNamespace


@differential(ONE)
def test_classes_that_cannot_be_changed(x):
    told = []
    for cls in IMMUTABLE:
        try:
            cls.foo = 1
            told.append("set")
        except TypeError as error:
            told.append(str(error))
        try:
            del cls.foo
        except (TypeError, AttributeError) as error:
            told.append(str(error))
    return x + 1, told


@differential(ONE)
def test_dicts_of_classes_made_in_c(x):
    told = [(type(cls.__dict__).__name__, "foo" in getattr(cls, "__dict__", {})) for cls in (types.SimpleNamespace, types.ModuleType, int)]
    return x + 1, told


class Members:
    number = 3
    items = [1]  # noqa: RUF012

    def plain(self):
        return 4

    @classmethod
    def of_class(cls, x):
        return x * cls.number

    @staticmethod
    def static(x):
        return x + 1

    @property
    def asked(self):
        return 9


class Derived(Members):
    own = 5


@differential(graphs=1)
def test_namespaces_of_classes(x):
    names, inner = vars(Members), Members.__dict__
    return (x + 1, "plain" in inner, sorted(k for k in names if k[0] != "_"), names["number"], inner["items"] is Members.items,
            inner.get("no", 3), "number" in Derived.__dict__, vars(Derived)["own"], "__len__" in list.__dict__, type(inner).__name__,
            inner["of_class"].__func__(Members, x), inner["static"].__func__(x), inner["plain"](None), inner["asked"].fget(None),
            isinstance(inner["of_class"], classmethod), {k: v for c in Derived.__mro__ for k, v in vars(c).items() if isinstance(v, int)})


def test_namespaces_of_classes_are_guarded():
    class Changing:
        number = 1

    def f(x):
        return x + Changing.__dict__.get("number", 0), "late" in vars(Changing), [k for k in vars(Changing) if k[0] != "_"]

    compiled = framegraft.compile(f, backend="eager", fullgraph=True)
    x = torch.ones(1)
    assert compiled(x) == f(x)
    Changing.number = 5
    assert compiled(x) == f(x)
    Changing.late = 3
    assert compiled(x) == f(x)
    del Changing.number
    assert compiled(x) == f(x)


@differential(build=True)
def test_namespaces_of_classes_that_change():
    class Changing:
        number = 1

    def fn(x):
        before = Changing.__dict__["number"]
        Changing.number = before + 1
        Changing.late = 7
        return x + before, Changing.__dict__["number"], vars(Changing)["late"]

    fn.kept = Changing
    return fn


@differential(graphs=1)
def test_getters_in_c(x):
    code = types.FunctionType.__code__
    cause = Exception.__cause__
    try:
        raise ValueError(x.shape) from KeyError(2)
    except ValueError as error:
        told = type(cause.__get__(error)), Exception.args.__get__(error)
    return (x + int.real.__get__(3), int.imag, code.__name__, code.__get__(test_getters_in_c) is None, told, code is types.FunctionType.__code__,
            complex.real == complex.real, torch.Tensor.shape.__get__(x), torch.Tensor.T.__get__(x), torch.Tensor.is_leaf.__objclass__)
