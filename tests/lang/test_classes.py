"""Classes: methods, properties, descriptors, operators, inheritance, attribute access."""

import abc
import array
import collections
import datetime
import decimal
import enum
import functools
import types
import typing

import numpy
import torch

import framegraft

from .differential import differential


class Vec:
    count = 0

    def __init__(self, x, y=None):
        self.x = x
        self.y = x if y is None else y
        type(self).count += 1

    def __add__(self, other):
        if not isinstance(other, Vec):
            return NotImplemented
        return Vec(self.x + other.x, self.y + other.y)

    def __radd__(self, other):
        return Vec(other + self.x, other + self.y)

    def __mul__(self, k):
        return Vec(self.x * k, self.y * k)

    def __imul__(self, k):
        self.x = self.x * k
        return self

    def __eq__(self, other):
        return isinstance(other, Vec) and bool((self.x == other.x).all())

    def __hash__(self):
        return 7

    def __getitem__(self, key):
        return (self.x, self.y)[key]

    def __len__(self):
        return 2

    def __contains__(self, value):
        return value == "x"

    def __call__(self, k):
        return self.x * k

    def __bool__(self):
        return False

    def __iter__(self):
        return iter([self.x, self.y])

    def __neg__(self):
        return Vec(-self.x, -self.y)


class Base:
    kind = "base"

    def __init__(self, k):
        self.k = k

    def scale(self, x):
        return x * self.k

    @property
    def double(self):
        return self.k * 2

    @double.setter
    def double(self, value):
        self.k = value // 2

    @classmethod
    def make(cls, k):
        return cls(k + 1)

    @staticmethod
    def add(a, b):
        return a + b


class Left(Base):
    kind = "left"

    def scale(self, x):
        return super().scale(x) + 1


class Right(Base):
    def scale(self, x):
        return super().scale(x) * 10


class Both(Left, Right):
    def __init__(self, k):
        super().__init__(k)
        self.extra = [k]


class Positive:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, obj, owner=None):
        return self if obj is None else getattr(obj, self.name) + 1

    def __set__(self, obj, value):
        if value < 0:
            raise ValueError(self.name, value)
        setattr(obj, self.name, value)


class Checked:
    level = Positive()

    def __init__(self, level):
        self.level = level


class Lazy:
    def __init__(self):
        self.asked = []

    def __getattr__(self, name):
        if name.startswith("no"):
            raise AttributeError(name)
        self.asked.append(name)
        return len(name)


class Spy:
    def __init__(self):
        object.__setattr__(self, "log", [])
        self.a = 1

    def __setattr__(self, name, value):
        self.log.append(("set", name))
        object.__setattr__(self, name, value)

    def __delattr__(self, name):
        self.log.append(("del", name))
        object.__delattr__(self, name)

    def __getattribute__(self, name):
        if name == "secret":
            return 42
        return object.__getattribute__(self, name)


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a


class Ordered(
    functools.total_ordering(type("O", (), {"__lt__": lambda s, o: s.n < o.n, "__eq__": lambda s, o: s.n == o.n}))
):
    def __init__(self, n):
        self.n = n


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self, x): ...


class Square(Shape):
    def area(self, x):
        return x * x


@differential()
def test_operators(x):
    a, b = Vec(x), Vec(x * 2)
    c = a + b
    d = 1 + c
    c *= 3
    return c.x, d.y, (a * 2).y, a == Vec(x), a != b, -a, a[0], len(a), "x" in a, a(3), bool(a), [v + 1 for v in a]


@differential()
def test_unsupported_operand(x):
    try:
        return Vec(x) - 1
    except TypeError as error:
        return str(error)


@differential()
def test_methods_and_properties(x):
    b = Base(3)
    a = b.scale(x)
    b.double = 10
    method = b.scale
    c = Left.make(4)
    return a, b.k, b.double, method(x), c.scale(x), c.kind, Base.add(x, 1), c.add(1, 2), Base.scale(b, x)


@differential(graphs=1)
def test_super_and_mro(x):
    b = Both(2)
    return b.scale(x), [c.__name__ for c in type(b).__mro__], isinstance(b, Right), issubclass(Both, Base), b.extra


@differential(lambda: (torch.ones(2), Both(3)))
def test_instance_argument_is_mutated(x, obj):
    obj.k += 1
    obj.new = x * obj.k
    obj.extra.append(obj.new)
    del obj.__dict__["new"]
    return obj.scale(x), hasattr(obj, "new"), getattr(obj, "zz", None), vars(obj)


@differential()
def test_descriptors(x):
    c = Checked(4)
    c.level = c.level * 2
    out = []
    try:
        c.level = -1
    except ValueError as error:
        out.append(error.args)
    return x * c.level, out, vars(c), type(Checked.level).__name__


@differential()
def test_getattr(x):
    lazy = Lazy()
    n = lazy.abc + lazy.abcd
    try:
        lazy.nothing
    except AttributeError as error:
        return x * n, lazy.asked, str(error), getattr(lazy, "none", 3), hasattr(lazy, "noo"), hasattr(lazy, "yes")


@differential()
def test_setattr_delattr_getattribute(x):
    s = Spy()
    s.b = x
    s.a += 1
    del s.b
    return x * s.a, s.log, s.secret, hasattr(s, "b")


@differential()
def test_slots(x):
    s = Slotted(x)
    s.b = s.a + 1
    try:
        s.c = 1
    except AttributeError as error:
        message = str(error)
    s.a = None
    return s, s.b, message, hasattr(Slotted(1), "b")


@differential()
def test_missing_attribute(x):
    y = x + 1
    return y, Base(1).nothing


@differential()
def test_comparison(x):
    items = [Ordered(3), Ordered(1), Ordered(2)]
    return [o.n for o in sorted(items)], Ordered(1) <= Ordered(1), max(items).n, x + 1


@differential()
def test_class_defined_inside(x):
    k = 5

    class Local(Base):
        factor = k * 2

        def scale(self, v):
            return super().scale(v) * self.factor

    return Local(2).scale(x), Local.__name__, Local.__qualname__


@differential()
def test_abstract(x):
    try:
        Shape()
    except TypeError as error:
        return Square().area(x), str(error), isinstance(Square(), Shape)


@differential()
def test_isinstance_forms(x):
    b = Both(1)
    return (
        isinstance(b, (int, Left)),
        isinstance(x, torch.Tensor),
        isinstance(1, int | str),
        isinstance(True, int),
        type(b) is Both,
        type(b) == Left,
        callable(b),
        callable(Vec(x)),
        type(x) is torch.Tensor,
        b.__class__.__name__,
    )


@differential(build=True)
def test_class_attribute_write():
    class Counter:
        n = 0

    def f(x):
        Counter.n += 1
        Counter.last = x
        return x * Counter.n, Counter.n

    return f


@differential(lambda: (torch.ones(2),))
def test_new_and_init(x):
    class Single:
        made = None

        def __new__(cls, v):
            if cls.made is None:
                cls.made = super().__new__(cls)
            return cls.made

        def __init__(self, v):
            self.v = v

    a, b = Single(x), Single(x * 2)
    return a is b, a.v


@differential()
def test_container_subclass(x):
    class Bag(list):
        def total(self):
            return sum(self) + len(self)

    class Defaults(dict):
        def __missing__(self, key):
            return key * 2

    b, d = Bag([1, 2]), Defaults(a=1)
    b.append(3)
    b.tag = "t"
    return x * b.total(), b[1:], d["a"], d["zz"], "zz" in d, isinstance(b, list), b


class Level(enum.IntEnum):
    NONE = 0
    SOME = 1


class Count(int):
    pass


ZEROS = [Level.NONE, Level.SOME, datetime.timedelta(0), datetime.timedelta(1), decimal.Decimal(0), array.array("i"), Count(0), Count(2),
         numpy.int64(0), numpy.bool_(True), collections.deque()]


@differential(lambda: (torch.ones(2), list(ZEROS)))
def test_truth_told_by_c_code(x, values):
    out = []
    for value in values:
        out.append("yes" if value else "no")
        if not value:
            x = x + 1
    return out, x


class Announced:
    known: list = []

    def __init_subclass__(cls, tag="none", **kwargs):
        super().__init_subclass__(**kwargs)
        Announced.known.append(tag)


class FromKeys(dict):
    @classmethod
    def fromkeys(cls, keys, value=None):
        return super().fromkeys(keys, value + 1)


@differential(lambda: (torch.ones(2), "abc"))
def test_class_methods_in_c_found_by_super(x, tag):
    class Local(Announced, tag=tag):
        pass

    told = Announced.known[:]
    Announced.known.clear()
    return told, Local.__name__, FromKeys.fromkeys("ab", 1), x + 1


class Claims:
    """What it says of its class is not what type() says."""

    @property
    def __class__(self):
        return Both


class Plain:
    def me(self):
        return super()

    def text(self):
        return super().__repr__()[:5]


class AsksBelow(Both):
    def text(self):
        return super().__repr__()[:5]

    def size(self):
        return super().scale(2)


@differential(lambda: (torch.ones(2), 3, "s", lambda: 1, Claims()))
def test_super_of_an_object_that_is_none_of_the_class(x, *others):
    told = [Plain.text(Plain())]
    for other in others:
        for ask in (Plain.me, AsksBelow.text, AsksBelow.size, lambda o: super(AsksBelow, o)):
            try:
                ask(other)
            except (TypeError, AttributeError) as error:
                told.append(error.args)
    return x + 1, told


@differential(xfail_breaks="behind a break, the class of a module is asked for its __dict__")
def test_modules_that_answer_for_themselves(x):
    told = []

    def answering(self, name):
        told.append(("get", name))
        return types.ModuleType.__getattribute__(self, name)

    def setting(self, name, value):
        told.append(("set", name))
        types.ModuleType.__setattr__(self, name, value)

    module = type("Answering", (types.ModuleType,), {"__getattribute__": answering, "__setattr__": setting})("m")
    module.foo = 12
    y = x * module.foo
    try:
        module.bar
    except AttributeError as error:
        told.append(str(error))
    del module.foo
    return y, told


class Collected(list):
    def methods(self):
        append = super().append
        append(3)
        return append, super().__len__, super().__init__


@differential(lambda: (torch.ones(2),), graphs=1)
def test_methods_in_c_that_super_binds(x):
    kept = Collected([1])
    append, size, _ = kept.methods()
    append(4)
    return x + size(), kept.methods(), kept, type(append) is type([].append)


@differential(graphs=1)
def test_isinstance_of_forms_of_typing(x):
    values = ({}, [], (1,), 3, None, x, Vec, len, 2.5)
    forms = (typing.Mapping, typing.Sequence, typing.List, typing.Tuple, typing.Hashable, typing.Callable, typing.Union[int, str],  # noqa: UP006, UP007
             typing.Optional[torch.Tensor], (str, typing.Union[float, list]))  # noqa: UP007
    return x + 1, [[isinstance(v, form) for form in forms] for v in values], issubclass(bool, typing.Union[str, int])  # noqa: UP007


def test_forms_of_typing_are_guarded():
    held = types.SimpleNamespace(form=typing.Mapping)

    def f(x, value):
        return x + isinstance(value, held.form)

    compiled = framegraft.compile(f, backend="eager", fullgraph=True)
    for form in (typing.Mapping, typing.Sequence, typing.Union[int, dict]):  # noqa: UP007
        held.form = form
        for value in ({}, [], 3):
            assert torch.equal(compiled(torch.ones(1), value), f(torch.ones(1), value))
