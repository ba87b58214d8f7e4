"""Changes that take another way than plain assignment: through aliases, metaclasses, descriptors, namespaces, caches."""

import abc
import enum
import functools
import gc
import operator
import sys
import types
import weakref
from collections import ChainMap, OrderedDict, UserDict, defaultdict, deque

import pytest
import torch

import framegraft


class World:
    """A fresh set of everything that the probes change."""

    def __init__(self):
        class Meta(type):
            scale = 2

            @property
            def factor(cls):
                return cls.__dict__.get("own_factor", 3)

        class Base(metaclass=Meta):
            k = 1

            def method(self, x):
                return x + self.k

        class Child(Base):
            pass

        class Slots:
            __slots__ = ("a", "__dict__")

        class Descriptor:
            value = 5

            def __get__(self, obj, owner=None):
                return self.value

            def __set__(self, obj, value):
                type(self).value = value

        class Holder:
            field = Descriptor()

        class Color(enum.Enum):
            RED = 1
            BLUE = 2

        class Shape(abc.ABC):
            pass

        class Loose:
            pass

        def default(x, items=[], *, table={"a": 1}):  # noqa: B006 - that is the point
            return x + len(items) + table["a"]

        def annotated(x: int = 3):
            return x

        @functools.lru_cache(None)
        def cached(n):
            return self.cache_answer * n

        @functools.singledispatch
        def dispatched(value):
            return 1

        def counter():
            n = 0
            while True:
                n += 1
                yield n

        self.Meta, self.Base, self.Child, self.Holder, self.Color, self.Shape, self.Loose = Meta, Base, Child, Holder, Color, Shape, Loose
        self.Descriptor = Descriptor
        self.child, self.base, self.holder, self.loose, self.slots = Child(), Base(), Holder(), Loose(), Slots()
        self.slots.a = 1
        self.default, self.cached, self.dispatched, self.annotated = default, cached, dispatched, annotated
        self.cache_answer = 1
        self.generator = counter()
        self.items, self.table = [1, 2], {"a": 1, "b": 2}
        self.alias, self.nested = self.items, {"in": [self.items]}
        self.module = types.ModuleType("probe_module")
        self.module.value = 1
        sys.modules["probe_module"] = self.module
        self.ref = weakref.ref(self.loose)
        self.proxy = types.MappingProxyType(self.table)
        self.chain, self.user = ChainMap({}, self.table), UserDict(a=1)
        self.ordered, self.missing, self.queue = OrderedDict(a=1, b=2), defaultdict(int, a=1), deque([1, 2])
        self.partial = functools.partial(operator.add, 1)
        self.bound = self.child.method
        self.frozen = frozenset({1, 2})
        self.space = types.SimpleNamespace(a=1)
        self.linear = torch.nn.Linear(2, 2)
        self.number = 1


def kill(world):
    world.loose = None
    gc.collect()


PROBES = {
    "setattr on the metaclass": (lambda x, w: x + w.Base.scale, lambda w: setattr(w.Meta, "scale", 7)),
    "property of the metaclass": (lambda x, w: x + w.Child.factor, lambda w: setattr(w.Child, "own_factor", 9)),
    "metaclass of an instance's class": (lambda x, w: x + getattr(w.base, "scale", 1), lambda w: setattr(w.Base, "scale", 7)),
    "base's attribute": (lambda x, w: x + w.child.k, lambda w: setattr(w.Base, "k", 5)),
    "shadowed in the subclass": (lambda x, w: x + w.child.k, lambda w: setattr(w.Child, "k", 5)),
    "shadowed through __dict__": (lambda x, w: x + w.child.k, lambda w: w.child.__dict__.__setitem__("k", 5)),
    "shadowed through vars()": (lambda x, w: x + w.child.k, lambda w: vars(w.child).update(k=5)),
    "object.__setattr__": (lambda x, w: x + w.child.k, lambda w: object.__setattr__(w.child, "k", 5)),
    "type.__setattr__": (lambda x, w: x + w.child.k, lambda w: type.__setattr__(w.Base, "k", 5)),
    "new __dict__": (lambda x, w: x + w.child.k, lambda w: setattr(w.child, "__dict__", {"k": 5})),
    "method on the instance": (lambda x, w: w.child.method(x), lambda w: setattr(w.child, "method", lambda x: x * 9)),
    "__class__ of the instance": (lambda x, w: w.child.method(x), lambda w: setattr(w.child, "__class__", type("N", (w.Base,), {"k": 4}))),
    "__bases__": (lambda x, w: w.child.method(x), lambda w: setattr(w.Child, "__bases__", (type("B", (w.Base,), {"k": 4}),))),
    "code of a method": (lambda x, w: w.child.method(x), lambda w: setattr(w.Base.method, "__code__", (lambda self, x: x * 8).__code__)),
    "self of a bound method": (lambda x, w: w.bound(x), lambda w: setattr(w.child, "k", 6)),
    "another bound method": (lambda x, w: w.bound(x), lambda w: setattr(w, "bound", w.base.method)),
    "__getattr__ added": (lambda x, w: x + getattr(w.child, "nope", 0), lambda w: setattr(w.Base, "__getattr__", lambda s, n: 8)),
    "__getattribute__ added": (lambda x, w: x + w.child.k, lambda w: setattr(w.Base, "__getattribute__", lambda s, n: 8)),
    "__bool__ added": (lambda x, w: x + (1 if w.child else 2), lambda w: setattr(w.Base, "__bool__", lambda s: False)),
    "__len__ added": (lambda x, w: x + (1 if w.child else 2), lambda w: setattr(w.Base, "__len__", lambda s: 0)),
    "__eq__ added": (lambda x, w: x + (w.child == 3), lambda w: setattr(w.Base, "__eq__", lambda s, o: True)),
    "__add__ added": (lambda x, w: x + (w.child + 1 if hasattr(w.Base, "__add__") else 0), lambda w: setattr(w.Base, "__add__", lambda s, o: 4)),
    "descriptor's own class": (lambda x, w: x + w.holder.field, lambda w: setattr(w.Descriptor, "value", 6)),
    "descriptor's __set__": (lambda x, w: x + w.holder.field, lambda w: setattr(w.holder, "field", 6)),
    "descriptor loses __set__": (lambda x, w: x + w.holder.field, lambda w: (w.holder.__dict__.update(field=9), delattr(w.Descriptor, "__set__"))),
    "descriptor loses __get__": (lambda x, w: x + (w.holder.field if isinstance(w.holder.field, int) else 1), lambda w: delattr(w.Descriptor, "__get__")),
    "descriptor replaced": (lambda x, w: x + w.holder.field, lambda w: setattr(w.Holder, "field", 8)),
    "slot": (lambda x, w: x + w.slots.a, lambda w: type(w.slots).a.__set__(w.slots, 5)),
    "slot deleted": (lambda x, w: x + getattr(w.slots, "a", 9), lambda w: delattr(w.slots, "a")),
    "enum's value": (lambda x, w: x + w.Color.RED.value, lambda w: setattr(w.Color.RED, "_value_", 5)),
    "enum's look-up": (lambda x, w: x + w.Color(1).value, lambda w: w.Color._value2member_map_.__setitem__(1, w.Color.BLUE)),
    "enum's members": (lambda x, w: x + len(w.Color), lambda w: w.Color._member_names_.append("RED")),
    "enum's member by name": (lambda x, w: x + w.Color["RED"].value, lambda w: w.Color._member_map_.__setitem__("RED", w.Color.BLUE)),
    "ABC registers": (lambda x, w: x + isinstance(w.loose, w.Shape), lambda w: w.Shape.register(w.Loose)),
    "ABC's hook": (lambda x, w: x + isinstance(w.loose, w.Shape), lambda w: setattr(w.Shape, "__subclasshook__", classmethod(lambda c, o: True))),
    "__instancecheck__": (lambda x, w: x + isinstance(3, w.Base), lambda w: setattr(w.Meta, "__instancecheck__", lambda c, o: True)),
    "list through an alias": (lambda x, w: x + len(w.items), lambda w: w.alias.append(3)),
    "list through a nest": (lambda x, w: x + w.items[0], lambda w: operator.setitem(w.nested["in"][0], 0, 9)),
    "list is another": (lambda x, w: x + w.items[0], lambda w: setattr(w, "items", [8, 2])),
    "alias no more": (lambda x, w: x + (w.items is w.alias), lambda w: setattr(w, "alias", [1, 2])),
    "dict behind a proxy": (lambda x, w: x + w.proxy["a"], lambda w: w.table.update(a=7)),
    "dict behind a chain": (lambda x, w: x + w.chain["a"], lambda w: w.chain.maps[0].update(a=7)),
    "dict in a UserDict": (lambda x, w: x + w.user["a"], lambda w: w.user.data.update(a=7)),
    "order of an OrderedDict": (lambda x, w: x + list(w.ordered).index("a"), lambda w: w.ordered.move_to_end("a")),
    "order of a dict": (lambda x, w: x + list(w.table).index("a"), lambda w: w.table.update(a=w.table.pop("a"))),
    "factory of a defaultdict": (lambda x, w: x + w.missing.copy()["z"], lambda w: setattr(w.missing, "default_factory", lambda: 6)),
    "deque rotated": (lambda x, w: x + w.queue[0], lambda w: w.queue.rotate(1)),
    "type of an item": (lambda x, w: x + w.table["a"], lambda w: w.table.update(a=1.0)),
    "True for 1": (lambda x, w: torch.full((1,), w.table["a"]), lambda w: w.table.update(a=True)),
    "default's contents": (lambda x, w: w.default(x), lambda w: w.default.__defaults__[0].append(1)),
    "keyword default's contents": (lambda x, w: w.default(x), lambda w: w.default.__kwdefaults__["table"].update(a=4)),
    "defaults": (lambda x, w: w.default(x), lambda w: setattr(w.default, "__defaults__", ([1, 2, 3],))),
    "annotations": (lambda x, w: x + len(w.annotated.__annotations__), lambda w: w.annotated.__annotations__.update(y=int)),
    "closure's cell": (lambda x, w: x + w.cached.__wrapped__(1), lambda w: setattr(w, "cache_answer", 5)),
    "cache cleared": (lambda x, w: x + w.cached(2), lambda w: (setattr(w, "cache_answer", 5), w.cached.cache_clear())),
    "cache not cleared": (lambda x, w: x + w.cached(2), lambda w: setattr(w, "cache_answer", 5)),
    "singledispatch registers": (lambda x, w: x + w.dispatched(3), lambda w: w.dispatched.register(int, lambda v: 9)),
    "generator advanced": (lambda x, w: x + next(w.generator), lambda w: next(w.generator)),
    "sys.modules": (lambda x, w: x + sys.modules["probe_module"].value, lambda w: sys.modules.update(probe_module=types.SimpleNamespace(value=6))),
    "module's __dict__": (lambda x, w: x + w.module.value, lambda w: vars(w.module).update(value=6)),
    "module's __getattr__": (lambda x, w: x + getattr(w.module, "gone", 0), lambda w: setattr(w.module, "__getattr__", lambda n: 5)),
    "module's class": (lambda x, w: x + w.module.value, lambda w: setattr(w.module, "__class__", type("M", (types.ModuleType,), {"value": property(lambda s: 8)}))),
    "dead reference": (lambda x, w: x + (w.ref() is None), kill),
    "partial's arguments": (lambda x, w: x + w.partial(2), lambda w: w.partial.__setstate__((operator.mul, (5,), {}, {}))),
    "frozenset is another": (lambda x, w: x + (3 in w.frozen), lambda w: setattr(w, "frozen", w.frozen | {3})),
    "namespace": (lambda x, w: x + w.space.a, lambda w: w.space.__dict__.update(a=9)),
    "namespace's new name": (lambda x, w: x + len(vars(w.space)), lambda w: setattr(w.space, "b", 9)),
    "weight through .data": (lambda x, w: w.linear(x), lambda w: w.linear.weight.data.zero_()),
    "weight's data replaced": (lambda x, w: w.linear(x), lambda w: setattr(w.linear.weight, "data", torch.ones(2, 2, dtype=torch.float64).float() * 3)),
    "parameter table": (lambda x, w: w.linear(x), lambda w: w.linear._parameters.update(weight=torch.nn.Parameter(torch.ones(2, 2)))),
    "forward on the instance": (lambda x, w: w.linear(x), lambda w: setattr(w.linear, "forward", lambda x: x * 5)),
    "__call__ of the class": (lambda x, w: w.child(x) if callable(w.child) else x, lambda w: setattr(w.Base, "__call__", lambda s, x: x * 5)),
}


@pytest.fixture
def no_probe_left():
    yield
    del sys.modules["probe_module"]  # its __getattr__ would answer others who ask every module, as inspect does


@pytest.mark.usefixtures("no_probe_left")
@pytest.mark.parametrize("name", PROBES)
@pytest.mark.parametrize("warm", [1, 3])
def test_probe(name, warm):
    probe, change = PROBES[name]

    def fn(x, world):
        return probe(x, world)

    def run(call):
        torch.manual_seed(0)
        world, seen = World(), []
        for step in range(warm + 2):
            if step == warm:
                change(world)
            try:
                seen.append(call(torch.arange(2.0), world).tolist())
            except Exception as error:  # noqa: BLE001 - what eager mode raises, too
                seen.append((type(error), str(error)))
        return seen

    framegraft.reset()
    with framegraft.config.patch(raise_internal_errors=True):
        got = run(framegraft.compile(fn, backend="eager"))
    assert got == run(fn)
