"""Things of classes that a capture may have looked at without noticing: names, annotations, hooks, descriptors, tables."""

import abc
import collections
import contextvars
import copy
import dataclasses
import enum
import functools
import gc
import inspect
import itertools
import locale
import logging
import operator
import os
import random
import sys
import threading
import types
import typing
import warnings
import weakref

import torch

from .harness import X, defer, module, outcome, patch, probe


def cls(**names):
    return type("K", (), names)


@probe
def test_name_of_a_class(C):
    K = cls()
    f = C(lambda x: (x + 1, K.__name__, K.__qualname__, K.__module__))
    seen = [f(X())]
    K.__name__ = "L"
    seen.append(f(X()))
    K.__qualname__ = "M"
    seen.append(f(X()))
    K.__module__ = "n"
    return seen, f(X())


@probe
def test_name_of_the_class_of_an_object(C):
    K = cls()
    f = C(lambda x, o: (x + 1, type(o).__name__, repr(type(o)), f"{o.__class__.__qualname__}"))
    seen = [f(X(), K())]
    K.__name__ = K.__qualname__ = "L"
    return seen, f(X(), K())


@probe
def test_doc_of_a_class(C):
    K = cls(__doc__="one")
    f = C(lambda x: (x + 1, K.__doc__, K().__doc__))
    seen = [f(X())]
    K.__doc__ = "two"
    return seen, f(X())


@probe
def test_annotations_of_a_class(C):
    K = cls(__annotations__={"a": int})
    f = C(lambda x: (x + len(K.__annotations__), list(K.__annotations__)))
    seen = [f(X())]
    K.__annotations__["b"] = str
    return seen, f(X())


@probe
def test_dict_of_a_class(C):
    K = cls(a=1)
    f = C(lambda x: (x + 1, "a" in K.__dict__, [n for n in vars(K) if not n.startswith("__")]))
    seen = [f(X())]
    K.b = 2
    seen.append(f(X()))
    del K.a
    return seen, f(X())


@probe
def test_subclasses_of_a_class(C):
    K = cls()
    f = C(lambda x: (x + len(K.__subclasses__()), [k.__name__ for k in K.__subclasses__()]))
    seen = [f(X())]
    L = type("L", (K,), {})
    return seen, f(X()), L.__name__


@probe
def test_abstract_methods(C):
    class A(abc.ABC):
        @abc.abstractmethod
        def m(self): ...

    class B(A):
        def m(self):
            return 1

    def g(x):
        try:
            return x + B().m()
        except TypeError:
            return x - 1

    f = C(g)
    seen = [f(X())]
    B.__abstractmethods__ = frozenset(["m"])
    return seen, f(X())


@probe
def test_init_subclass(C):
    log = []

    class K:
        def __init_subclass__(cls, **kwargs):
            log.append(kwargs)

    def g(x):
        class L(K, a=1):
            pass

        return x + len(log)

    f = C(g)
    seen = [f(X()), f(X())]
    K.__init_subclass__ = classmethod(lambda cls, **kwargs: log.extend([1, 2]))
    return seen, f(X()), len(log)


@probe
def test_set_name(C):
    log = []

    class D:
        def __set_name__(self, owner, name):
            log.append(name)

    def g(x):
        class L:
            field = D()

        return x + len(log)

    f = C(g)
    seen = [f(X())]
    D.__set_name__ = lambda self, owner, name: log.extend([name, name])
    return seen, f(X()), log


@probe
def test_class_getitem(C):
    class K:
        def __class_getitem__(cls, key):
            return key * 2

    f = C(lambda x: x + K[2])
    seen = [f(X())]
    K.__class_getitem__ = classmethod(lambda cls, key: key * 3)
    return seen, f(X())


@probe
def test_metaclass_assigned(C):
    class Meta(type):
        pass

    class K(metaclass=Meta):
        k = 1

        def __init__(self):
            self.v = 3

        def __class_getitem__(cls, key):
            return 0

    def set_on_class(x):
        K.z = 3
        return x + K.z

    asked = {
        "__getitem__": (lambda x: x + K[2], lambda cls, key: 7),
        "__instancecheck__": (lambda x: (x, isinstance(x, K)), lambda cls, obj: True),
        "__subclasscheck__": (lambda x: (x, issubclass(int, K)), lambda cls, sub: True),
        "__call__": (lambda x: x + K().v, lambda cls: K.__new__(cls)),
        "__getattribute__": (lambda x: x + K.k, lambda cls, name: 9),
        "k": (lambda x: x + K.k, property(lambda cls: 9)),
        "z": (set_on_class, property(lambda cls: 4, lambda cls, value: None)),
    }
    seen = []
    for name, (look, hook) in asked.items():
        f = C(look)
        for meta in (Meta, type("Other", (Meta,), {name: hook}), Meta):
            K.__class__ = meta
            seen.append(outcome(lambda f=f: f(X()))[:2])
    return seen


@probe
def test_missing_hook(C):
    class D(dict):
        def __missing__(self, key):
            return 1

    d = D()
    f = C(lambda x: x + d["a"])
    seen = [f(X())]
    D.__missing__ = lambda self, key: 2
    seen.append(f(X()))
    d["a"] = 5
    seen.append(f(X()))
    del d["a"], D.__missing__
    return seen, outcome(lambda: f(X()))


@probe
def test_index_and_float_hooks(C):
    K = cls(__index__=lambda self: 1, __float__=lambda self: 2.0)
    k = K()
    f = C(lambda x: (x * float(k), [10, 20, 30][k], range(5)[k:]))
    seen = [f(X())]
    K.__index__ = lambda self: 2
    K.__float__ = lambda self: 3.0
    return seen, f(X())


@probe
def test_format_hook(C):
    K = cls(__format__=lambda self, spec: f"<{spec}>", __str__=lambda self: "s")
    k = K()
    f = C(lambda x: (x + 1, f"{k:a}", f"{k!s}", str(k)))
    seen = [f(X())]
    K.__format__ = lambda self, spec: f"[{spec}]"
    K.__str__ = lambda self: "t"
    return seen, f(X())


@probe
def test_descriptor_becomes_data(C):
    class D:
        def __get__(self, obj, owner):
            return 10

    class K:
        a = D()

    k = K()
    k.__dict__["a"] = 1
    f = C(lambda x: x + k.a)
    seen = [f(X())]
    D.__set__ = lambda self, obj, value: None
    seen.append(f(X()))
    del D.__set__
    return seen, f(X())


@probe
def test_descriptor_changes_class(C):
    class D:
        def __get__(self, obj, owner):
            return 10

    class E(D):
        def __get__(self, obj, owner):
            return 20

    class K:
        a = D()

    f = C(lambda x: x + K().a)
    seen = [f(X())]
    K.__dict__["a"].__class__ = E
    return seen, f(X())


@probe
def test_class_assigned(C):
    class A:
        n = 1

        def m(self):
            return self.n

    class B:
        n = 2

        def m(self):
            return self.n + 10

    a = A()
    f = C(lambda x: x + a.m())
    seen = [f(X())]
    a.__class__ = B
    return seen, f(X())


@probe
def test_class_of_a_module_assigned(C):
    m = module("a = 1")

    class M(types.ModuleType):
        @property
        def b(self):
            return 5

    f = C(lambda x: x + getattr(m, "b", 2))
    seen = [f(X())]
    m.__class__ = M
    return seen, f(X())


@probe
def test_namespace_replaced_while_held(C):
    K = cls()
    k = K()
    k.a = 1
    held = k.__dict__
    f = C(lambda x: (x + k.a, held["a"]))
    seen = [f(X())]
    k.__dict__ = {"a": 2}
    seen.append(f(X()))
    held["a"] = 7
    return seen, f(X())


@probe
def test_enum_extended(C):
    class E(enum.Enum):
        A = 1

    def g(x, v):
        try:
            return x + 1, E(v).name
        except ValueError:
            return x - 1, [m.name for m in E], len(E), v in E._value2member_map_

    f = C(g)
    seen = [f(X(), 2)]
    made = object.__new__(E)
    made._value_, made._name_ = 2, "B"
    E._member_map_["B"] = made
    E._value2member_map_[2] = made
    E._member_names_.append("B")
    return seen, f(X(), 2)


@probe
def test_enum_member_changed(C):
    class E(enum.Enum):
        A = 1

    f = C(lambda x, e: (x + e.value, e.name, e.extra if hasattr(e, "extra") else None))
    seen = [f(X(), E.A)]
    E.A._value_ = 5
    E.A.extra = 2
    return seen, f(X(), E.A)


@probe
def test_namedtuple_class_changed(C):
    class P(typing.NamedTuple):
        a: int
        b: int = 2

        def total(self):
            return self.a + self.b

    f = C(lambda x: (x + P(1).total(), P(1)._asdict(), P._fields, P._field_defaults))
    seen = [f(X())]
    P.__new__.__defaults__ = (9,)
    P.total = lambda self: self.a
    P._field_defaults["b"] = 3
    return seen, f(X())


@probe
def test_dataclass_machinery(C):
    @dataclasses.dataclass
    class D:
        a: int = 1
        b: list = dataclasses.field(default_factory=list)

    f = C(lambda x: (x + D().a, dataclasses.asdict(D()), [q.name for q in dataclasses.fields(D)], D() == D()))
    seen = [f(X())]
    D.__eq__ = lambda self, other: False
    D.__dataclass_fields__.pop("b")
    D.__init__.__defaults__ = (4, *D.__init__.__defaults__[1:])
    return seen, f(X())


@probe
def test_copy_hooks(C):
    K = cls(a=1)
    k = K()
    k.b = [1]
    f = C(lambda x: (x + 1, copy.copy(k).b is k.b, copy.deepcopy(k).b))
    seen = [f(X())]
    K.__copy__ = lambda self: types.SimpleNamespace(b=[2])
    K.__deepcopy__ = lambda self, memo: types.SimpleNamespace(b=[3])
    return seen, f(X())


@probe
def test_reduce_hooks(C):
    K = cls()
    k = K()
    k.b = 1
    f = C(lambda x: (x + 1, copy.copy(k).b))
    seen = [f(X())]
    K.__setstate__ = lambda self, state: setattr(self, "b", 8)
    return seen, f(X())


@probe
def test_mro_entries_and_prepare(C):
    class Base:
        k = 1

    class Proxy:
        def __mro_entries__(self, bases):
            return (Base,)

    proxy = Proxy()

    def g(x):
        class L(proxy):  # type: ignore[misc]
            pass

        return x + L.k

    f = C(g)
    seen = [f(X())]
    Proxy.__mro_entries__ = lambda self, bases: (type("Other", (), {"k": 5}),)
    return seen, f(X())


@probe
def test_hash_and_equality_of_keys_change(C):
    class K:
        def __init__(self, n):
            self.n = n

        def __hash__(self):
            return 1

        def __eq__(self, other):
            return self.n == other.n

    d = {K(1): 5}
    f = C(lambda x, k: x + d.get(k, 0))
    seen = [f(X(), K(1)), f(X(), K(2))]
    K.__eq__ = lambda self, other: True
    return seen, f(X(), K(2))


@probe
def test_length_hint_and_iteration_hooks(C):
    class K:
        def __getitem__(self, i):
            if i >= 2:
                raise IndexError
            return i

    k = K()
    f = C(lambda x: x + sum(i for i in k))
    seen = [f(X())]
    K.__iter__ = lambda self: iter([10])
    return seen, f(X())


@probe
def test_type_changed_by_the_call_itself(C):
    class A:
        n = 1

    class B:
        n = 2

    def g(x, o):
        first = o.n
        o.__class__ = B
        return x + first, o.n

    f = C(g)
    a = A()
    return f(X(), a), f(X(), a), f(X(), A())


@probe
def test_class_registered_with_a_part_of_a_union(C):
    class A(abc.ABC):  # noqa: B024 - nothing abstract is needed
        pass

    class K:
        pass

    f = C(lambda x: (x + isinstance(K(), int | A), issubclass(K, str | A)))
    seen = [f(X())]
    A.register(K)
    return seen, f(X())


@probe
def test_virtual_subclasses_are_no_subclasses(C):
    class A(abc.ABC):  # noqa: B024
        def __eq__(self, other):
            return "A"

        def __add__(self, other):
            return "A"

    class K:
        def __eq__(self, other):
            return "K"

        def __radd__(self, other):
            return "K"

    class E(Exception, metaclass=type("M", (type,), {"__subclasscheck__": lambda cls, other: True})):
        pass

    def g(x, n):
        try:
            raise ValueError(n)
        except E:
            caught = "E"
        except ValueError:
            caught = "ValueError"
        return x + n, A() == K(), A() + K(), caught

    f = C(g)
    seen = [f(X(), 1)]
    A.register(K)
    return seen, f(X(), 2)
