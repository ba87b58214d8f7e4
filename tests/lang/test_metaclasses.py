"""Metaclasses: what they answer for their classes, and what calls of these are."""

import abc
import typing

import torch
from torch.fx import ProxyableClassMeta

from .differential import differential


@differential()
def test_metaclass_and_class_getitem(x):
    class Meta(type):
        def __call__(cls, *args):
            obj = super().__call__(*args)
            obj.tagged = cls.__name__
            return obj

        def __len__(cls):
            return 3

    class A(metaclass=Meta):
        def __class_getitem__(cls, item):
            return (cls.__name__, item)

    return A().tagged, len(A), A[int], x + len(A)


class Row(typing.TypedDict):
    a: int
    b: torch.Tensor


class CallsStatic(type):
    __call__ = staticmethod(lambda *args, **kwargs: ("static", args, kwargs))


class CallsItsClass(type):
    @classmethod
    def __call__(cls, *args):
        return cls.__name__, args


class Static(metaclass=CallsStatic):
    pass


class Classwise(metaclass=CallsItsClass):
    pass


@differential(graphs=1)
def test_calls_of_classes_that_their_metaclass_answers(x):
    row = Row(a=1, b=x)
    row["b"] = row["b"] + row["a"]
    return row, type(row), Static(1, k=x), Classwise(2), Row([("a", 1)], b=2)


class Noted(type):
    def __getattribute__(cls, name):
        if name == "gone":
            raise AttributeError(name)
        if not name.startswith("_"):
            type.__getattribute__(cls, "_asked").append(name)
        return super().__getattribute__(name)

    def __getattr__(cls, name):
        return f"no {name}"


@differential(lambda: (torch.ones(2),))
def test_a_metaclass_answers_for_its_classes(x):
    class Base(metaclass=Noted):
        _asked = []
        k = 3

        def __init__(self):
            self.q = x + 1

        @classmethod
        def make(cls):
            return cls()

        @staticmethod
        def four():
            return 4

    class Derived(Base):
        def __new__(cls, *args):
            return super().__new__(cls)

    def ask():
        return [Base.k, Base.make().q, Base.four(), Base.gone, Base.nothing, Derived.k, Derived().q, Derived().k, hasattr(Derived, "zz")]

    return ask(), Base._asked, ask(), len(Base._asked)


@differential(lambda: (torch.ones(2), type.__call__(Noted, "Out", (), {"_asked": [], "k": 1})))
def test_a_metaclass_answers_for_a_class_from_outside(x, cls):
    return x + cls.k, cls.gone, cls.nothing, list(cls._asked)


class Proxyable(abc.ABCMeta, ProxyableClassMeta):
    pass


class Ragged(metaclass=Proxyable):
    """As torchrec makes its classes."""

    def __init__(self, values, factor=2):
        self.values, self.factor = values, factor

    def scaled(self):
        return Ragged(self.values * self.factor, factor=self.factor + 1)


@differential(graphs=1)
def test_a_class_whose_calls_torch_fx_may_record(x):
    ragged = Ragged(x + 1).scaled()
    return ragged.values.sum(), ragged.factor, type(ragged) is Ragged, ragged.scaled().values
