"""Classes: methods, bases, descriptors, metaclasses, instances, registrations."""

import abc
import dataclasses
import enum

from .harness import X, outcome, probe


def make():
    class Base:
        k = 2

        def go(self, x):
            return x * self.k

    class Child(Base):
        pass

    return Base, Child


@probe
def test_method_patched(C):
    Base, Child = make()
    obj = Child()
    c = C(lambda x: obj.go(x))
    a = c(X())
    Base.go = lambda self, x: x + 100
    return a, c(X())


@probe
def test_method_added_in_subclass(C):
    Base, Child = make()
    obj = Child()
    c = C(lambda x: obj.go(x))
    a = c(X())
    Child.go = lambda self, x: x - 1
    b = c(X())
    del Child.go
    return a, b, c(X())


@probe
def test_instance_shadows_method(C):
    Base, Child = make()
    obj = Child()
    c = C(lambda x: obj.go(x))
    a = c(X())
    obj.go = lambda x: x * 9
    return a, c(X())


@probe
def test_class_attribute_then_instance(C):
    Base, Child = make()
    obj = Child()
    c = C(lambda x: obj.go(x))
    out = [c(X())]
    Base.k = 3
    out.append(c(X()))
    Child.k = 4
    out.append(c(X()))
    obj.k = 5
    out.append(c(X()))
    return out


@probe
def test_bases_changed(C):
    Base, Child = make()

    class Other:
        k = 10

        def go(self, x):
            return x + self.k

    obj = Child()
    c = C(lambda x: obj.go(x))
    a = c(X())
    Child.__bases__ = (Other,)
    return a, c(X())


@probe
def test_class_of_instance(C):
    Base, Child = make()

    class Other(Base):
        def go(self, x):
            return x * 0

    obj = Child()
    c = C(lambda x: (obj.go(x), type(obj).__name__, isinstance(obj, Other)))
    a = c(X())
    obj.__class__ = Other
    return a, c(X())


@probe
def test_property_replaced(C):
    class A:
        @property
        def k(self):
            return 2

    obj = A()
    c = C(lambda x: x * obj.k)
    a = c(X())
    A.k = property(lambda self: 7)
    b = c(X())
    A.k = 9
    return a, b, c(X())


@probe
def test_data_descriptor_wins_later(C):
    class A:
        pass

    obj = A()
    obj.k = 2
    c = C(lambda x: x * obj.k)
    a = c(X())
    A.k = property(lambda self: 30)
    return a, c(X())


@probe
def test_descriptor_state(C):
    class D:
        value = 2

        def __get__(self, obj, owner):
            return self.value

    class A:
        k = D()

    obj = A()
    c = C(lambda x: x * obj.k)
    a = c(X())
    A.__dict__["k"].value = 5
    b = c(X())
    D.__get__ = lambda self, obj, owner: 11
    return a, b, c(X())


@probe
def test_getattr_added(C):
    class A:
        pass

    obj = A()
    c = C(lambda x: x * getattr(obj, "k", 2))
    a = c(X())
    A.__getattr__ = lambda self, name: 6
    return a, c(X())


@probe
def test_getattribute_added(C):
    class A:
        k = 2

    obj = A()
    c = C(lambda x: x * obj.k)
    a = c(X())
    A.__getattribute__ = lambda self, name: 8
    return a, c(X())


@probe
def test_setattr_added(C):
    class A:
        pass

    obj = A()
    log = []

    def f(x):
        obj.k = x
        return x + 1

    c = C(f)
    c(X())
    A.__setattr__ = lambda self, name, value: log.append(name)
    return c(X()), log


@probe
def test_init_patched(C):
    class A:
        def __init__(self, x):
            self.x = x

    c = C(lambda x: A(x).x + 1)
    a = c(X())

    def init(self, x):
        self.x = x * 50

    A.__init__ = init
    return a, c(X())


@probe
def test_new_added(C):
    class A:
        k = 1

    c = C(lambda x: x * A().k)
    a = c(X())

    def new(cls):
        obj = object.__new__(cls)
        obj.k = 5
        return obj

    A.__new__ = staticmethod(new)
    return a, c(X())


@probe
def test_metaclass_call(C):
    class Meta(type):
        pass

    class A(metaclass=Meta):
        k = 2

    c = C(lambda x: x * A().k)
    a = c(X())
    Meta.__call__ = lambda cls: type("Other", (), {"k": 9})()
    return a, c(X())


@probe
def test_abc_registers(C):
    class Shape(abc.ABC):
        pass

    class Square:
        pass

    obj = Square()
    c = C(lambda x: x * 2 if isinstance(obj, Shape) else x)
    a = c(X())
    Shape.register(Square)
    return a, c(X())


@probe
def test_super_target_patched(C):
    class A:
        def go(self, x):
            return x + 1

    class B(A):
        def go(self, x):
            return super().go(x) * 2

    obj = B()
    c = C(lambda x: obj.go(x))
    a = c(X())
    A.go = lambda self, x: x * 30
    return a, c(X())


@probe
def test_slot_value(C):
    class A:
        __slots__ = ("k",)

    obj = A()
    obj.k = 2
    c = C(lambda x: x * obj.k)
    a = c(X())
    obj.k = 3
    b = c(X())
    del obj.k
    return a, b, outcome(lambda: c(X()))


@probe
def test_instance_dict_replaced(C):
    class A:
        pass

    obj = A()
    obj.k = 2
    c = C(lambda x: x * obj.k)
    a = c(X())
    obj.__dict__ = {"k": 5}
    b = c(X())
    vars(obj)["k"] = 6
    return a, b, c(X())


@probe
def test_attribute_appears_and_goes(C):
    class A:
        pass

    obj = A()
    c = C(lambda x: x * 2 if hasattr(obj, "flag") else x)
    out = [c(X())]
    obj.flag = 1
    out.append(c(X()))
    del obj.flag
    out.append(c(X()))
    A.flag = 0
    out.append(c(X()))
    return out


@probe
def test_classmethod_and_staticmethod(C):
    class A:
        k = 2

        @classmethod
        def make(cls, x):
            return x * cls.k

        @staticmethod
        def plain(x):
            return x + 1

    c = C(lambda x: (A.make(x), A.plain(x), A().make(x)))
    a = c(X())
    A.k = 3
    b = c(X())
    A.make = classmethod(lambda cls, x: x * 50)
    A.plain = staticmethod(lambda x: x - 7)
    return a, b, c(X())


@probe
def test_dataclass_default(C):
    @dataclasses.dataclass
    class D:
        k: int = 2

    d = D()
    c = C(lambda x, v: (x * v.k, v == d))
    a = c(X(), D())
    d.k = 5
    b = c(X(), D())
    return a, b, c(X(), D(5)), c(X(), d)


@probe
def test_enum_argument(C):
    class E(enum.Enum):
        A = 1
        B = 2

    c = C(lambda x, e: x * e.value if e is E.A else x + 100)
    return c(X(), E.A), c(X(), E.B), c(X(), E.A)


@probe
def test_same_class_other_object(C):
    class A:
        def __init__(self, k):
            self.k, self.items = k, [k]

        def go(self, x):
            return x * self.k + len(self.items)

    c = C(lambda x, o: o.go(x))
    a, b = A(2), A(3)
    out = [c(X(), a), c(X(), b)]
    b.items.append(1)
    return [*out, c(X(), b), c(X(), a)]


@probe
def test_type_argument(C):
    class A:
        k = 2

    class B(A):
        k = 3

    c = C(lambda x, t: (x * t.k, t.__name__, issubclass(t, B)))
    return c(X(), A), c(X(), B), c(X(), A)


class Times:
    """A descriptor whose own attribute counts."""

    def __init__(self, k):
        self.k = k

    def __get__(self, obj, owner):
        return self.k * len(owner.__name__)


class Under:
    times, items = Times(2), [1, 2]


class Over(Under):
    times, items = Times(2), [1, 2]

    def of_instance(self, x):
        return x * super().times + sum(super().items)

    @classmethod
    def of_class(cls, x):
        return x * super().times + sum(super().items)


@probe
def test_what_super_finds_changes_inside(C):
    found, told = [C(Over().of_instance), C(Over.of_class)], []
    before = vars(Under)["times"].k, list(Under.items)
    for k, more in (2, []), (3, []), (3, [4]):
        vars(Under)["times"].k = k
        Under.items.extend(more)
        told.append([f(X()) for f in found])
    vars(Under)["times"].k, Under.items[:] = before
    return told


@probe
def test_a_number_that_the_trace_deletes(C):
    Base, Child = make()
    obj = Child()

    def f(x):
        y = x * Child.n
        del Child.n
        return y, hasattr(Child, "n"), hasattr(obj, "n"), getattr(obj, "n", None)

    c, found = C(f), []
    for n in range(4):
        Child.n = n
        Base.n = n + 10 if n == 3 else 7
        if n == 1:
            del Base.n
        found.append(c(X()))
    return found
