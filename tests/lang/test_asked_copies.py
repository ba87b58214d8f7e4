"""What copy.copy and copy.deepcopy ask of an object, of its class and of the copy: which names, in which order, how often."""

import abc
import copy
import dataclasses
import typing

import torch

from .differential import differential

LOG: list = []


class Told:
    """Tells of every attribute that is looked for."""

    def __init__(self, **values):
        object.__getattribute__(self, "__dict__").update(values)

    def __getattribute__(self, name):
        LOG.append(name)
        return super().__getattribute__(name)


class Missed:
    """Tells of every attribute that it has not."""

    def __init__(self, **values):
        self.__dict__.update(values)

    def __getattr__(self, name):
        LOG.append(name)
        raise AttributeError(name)


def contents(obj):
    return type(obj), object.__getattribute__(obj, "__dict__")


def copies(obj):
    """Both copies, and what was asked for each of them."""
    seen = []
    for function in (copy.copy, copy.deepcopy):
        LOG.clear()
        try:
            made = contents(function(obj))
        except (AttributeError, KeyError, TypeError) as error:
            made = type(error), error.args
        seen.append((made, list(LOG)))
    return seen


@differential(graphs=1)
def test_told(x):
    return copies(Told(a=1, t=x + 1, items=[x * 2])), copies(Told())


@differential()
def test_missed(x):
    return copies(Missed(a=1, t=x + 1, items=[x * 2])), copies(Missed())


def from_outside():
    x = torch.ones(3)
    inner = Missed(x=x)
    return x, Told(a=1, parts=[inner, inner, x], again=inner), Missed(a=[1])


@differential(from_outside)
def test_from_outside(x, told, missed):
    seen = copies(told), copies(missed)
    told.a = 5
    return seen, copies(told), contents(told), x + 1


@differential()
def test_nested(x):
    inner = Told(x=x + 1)
    outer = Told(inner=inner, pair=(inner, [inner]))
    object.__getattribute__(outer, "__dict__")["itself"] = outer
    LOG.clear()
    made = copy.deepcopy({"a": outer, "b": inner})
    asked = list(LOG)
    return made["a"].inner is made["b"], made["a"].pair[1][0] is made["b"], made["a"].itself is made["a"], asked, made["b"].x


class Renamed:
    """Maps names of attributes, as configurations do."""

    names = {"width": "d_model"}

    def __init__(self, **values):
        for name, value in values.items():
            setattr(self, name, value)

    def __setattr__(self, name, value):
        super().__setattr__(super().__getattribute__("names").get(name, name), value)

    def __getattribute__(self, name):
        if name != "names":
            name = super().__getattribute__("names").get(name, name)
        return super().__getattribute__(name)


@differential(lambda: (torch.ones(3), Renamed(width=3, parts=[Renamed(width=4)])), graphs=1)
def test_configuration(x, config):
    made = copy.deepcopy(config)
    made.width = 7
    made.parts[0].depth = 2
    return x * made.width + config.width, contents(made), contents(made.parts[0]), contents(config.parts[0])


class Everything:
    """Has every name, and gives a number for it."""

    def __init__(self, **values):
        self.__dict__.update(values)

    def __getattr__(self, name):
        LOG.append(name)
        return 3


class EveryMethod(Everything):
    def __getattr__(self, name):
        LOG.append(name)
        return lambda *args: (name, len(args))


@differential()
def test_every_name(x):
    return copies(Everything(a=x + 1)), copies(Everything()), copies(EveryMethod(a=x)), copies(EveryMethod())


class Reluctant:
    """Has not the names that the class says: CPython asks for some of them only to see whether they are there."""

    def __init__(self, *hidden):
        self.hidden = hidden

    def __getattribute__(self, name):
        LOG.append(name)
        if name != "hidden" and name in object.__getattribute__(self, "hidden"):
            raise AttributeError(name)
        return object.__getattribute__(self, name)


class Refusing(Reluctant):
    def __getattribute__(self, name):
        if name != "hidden" and name in object.__getattribute__(self, "hidden"):
            raise KeyError(name)
        return super().__getattribute__(name)


@differential()
def test_hidden_names(x):
    names = ("__deepcopy__", "__reduce_ex__", "__reduce__", "__getstate__", "__setstate__", "__dict__")
    return [copies(cls(name)) for cls in (Reluctant, Refusing) for name in names], x + 1


class Diverting(Missed):
    """The ``__dict__`` that it shows is not its own."""

    shown: dict = {}

    def __getattribute__(self, name):
        return Diverting.shown if name == "__dict__" else super().__getattribute__(name)


@differential()
def test_another_dict(x):
    Diverting.shown.clear()
    one = Diverting.__new__(Diverting)
    one.a = x + 1
    return copies(one), dict(Diverting.shown)


class OwnState(Told):
    def __getstate__(self):
        LOG.append("state")
        return {"kept": self.__dict__["a"]}

    def __setstate__(self, state):
        LOG.append(sorted(state))
        self.__dict__["back"] = state


class PairState(Told):
    def __getstate__(self):
        return {"kept": self.a}, {"set": 1}

    def __setattr__(self, name, value):
        LOG.append((name, value))
        super().__setattr__(name, value)


class NoState(Told):
    def __getstate__(self):
        return None

    def __setstate__(self, state):
        LOG.append("never")


class OddState(Told):
    def __getstate__(self):
        return 0 if self.a else ""

    def __setstate__(self, state):
        self.__dict__["state"] = state


@differential(graphs=1)
def test_state(x):
    own = OwnState(a=[x + 1])
    deep = copy.deepcopy(own)
    return [copies(cls(a=[x])) for cls in (OwnState, PairState, NoState, OddState)], deep.back["kept"] is own.a, copies(OddState(a=0))


class Other:
    def __init__(self, a=None):
        self.a = a


class Reduced(Told):
    def __reduce__(self):
        LOG.append("reduce")
        return Other, (self.a,), {"more": self.a}


class ReducedByProtocol(Missed):
    def __reduce_ex__(self, protocol):
        LOG.append(protocol)
        return Other, (self.a,)


class ReducedAsBefore(Missed):
    def __reduce_ex__(self, protocol):
        reduced = super().__reduce_ex__(protocol)
        return (*reduced[:2], {**reduced[2], "size": len(reduced)})


class ReducedToItself(Missed):
    def __reduce_ex__(self, protocol):
        return "name"


class ReducedToFixed(Missed):
    """To an object that is there already, whose class has another ``__dict__``."""

    shown: dict = {}

    @property
    def __dict__(self):
        return ReducedToFixed.shown

    def __reduce_ex__(self, protocol):
        return ReducedToFixed, (), {"more": protocol}


class ReducedToItems(Missed):
    def __reduce_ex__(self, protocol):
        return list, (), None, iter(self.a)


@differential()
def test_reduce(x):
    seen = []
    for cls in (Reduced, ReducedByProtocol, ReducedAsBefore, ReducedToItself):
        one = cls(a=[x + 1])
        seen += [copies(one), copy.copy(one).a is one.a, copy.deepcopy(one).a is one.a, copy.copy(one) is one]
    fixed = copy.copy(ReducedToFixed()), copy.deepcopy(ReducedToFixed())
    return seen, copy.deepcopy(ReducedToItems(a=[x])), len(fixed), dict(ReducedToFixed.shown)


class OwnCopies(Missed):
    def __copy__(self):
        return OwnCopies(a=self.a, how="copy")

    def __deepcopy__(self, memo):
        made = type(self).__new__(type(self))
        made.a = copy.deepcopy(self.a, memo=memo)
        return made


class ByName(Missed):
    """Finds ``__deepcopy__`` by ``__getattr__``."""

    def __getattr__(self, name):
        if name == "__deepcopy__":
            return lambda memo: copy.deepcopy(self.a, memo)
        return super().__getattr__(name)


@differential()
def test_own_copies(x):
    part = Missed(t=x + 1)
    one, named = OwnCopies(a=part), ByName(a=part)
    made = copy.deepcopy([one, part, one, named])
    return copies(one), copies(named), made[0].a is made[1], made[0] is made[2], made[3] is made[1]


@dataclasses.dataclass
class Plain:
    a: typing.Any = 0


def with_own_attribute():
    one = Plain(3)
    one.__deepcopy__ = lambda memo: "by the instance"  # type: ignore[attr-defined]
    other = Plain(4)
    other.__reduce_ex__ = lambda protocol: (Plain, (9,))  # type: ignore[attr-defined]
    state = Plain(5)
    state.__getstate__ = lambda: {"a": 8}  # type: ignore[method-assign,attr-defined,assignment]
    return torch.ones(3), one, other, state


@differential(with_own_attribute)
def test_methods_of_the_instance(x, one, other, state):
    shallow = copy.copy(one).a, copy.copy(other).a, copy.copy(state).a
    return shallow, copy.deepcopy(one), copy.deepcopy(other).a, copy.deepcopy(state).a, x + 1


class Slotted:
    __slots__ = ("a", "__b", "unset")

    def __init__(self, a):
        self.a, self.__b = [a], {"b": a}

    def contents(self):
        return type(self), self.a, self.__b, hasattr(self, "unset"), getattr(self, "more", None)


class SlottedToo(Slotted):
    def __init__(self, a):
        super().__init__(a)
        self.more = a

    def __getattr__(self, name):
        LOG.append(name)
        raise AttributeError(name)


@differential(lambda: (torch.ones(3), Slotted(1), SlottedToo(2)))
def test_slots(x, one, other):
    LOG.clear()
    made = [function(value) for value in (one, other, Slotted(x + 1), SlottedToo(3)) for function in (copy.copy, copy.deepcopy)]
    return [m.contents() for m in made], [m.a is one.a for m in made], list(LOG)


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: typing.Any


class WithBase(abc.ABC, typing.Generic[typing.TypeVar("T")]):  # type: ignore[misc]
    def __init__(self, a):
        self.a = a


@differential(graphs=1)
def test_usual_classes(x):
    made = [copy.deepcopy(cls([x + 1])) for cls in (Plain, Frozen, WithBase)] + [copy.copy(cls([x])) for cls in (Plain, Frozen, WithBase)]
    return [contents(m) for m in made]


class MissedClass(type):
    def __getattr__(cls, name):
        LOG.append(("class", name))
        raise AttributeError(name)


class OfMissedClass(Told, metaclass=MissedClass):
    pass


class Copying(type):
    """What a class gives for ``cls.__copy__`` may be its metaclass's."""

    def __copy__(cls, *others):
        return f"a copy by {cls.__name__}", len(others)


class OfCopying(metaclass=Copying):
    pass


@differential()
def test_metaclasses(x):
    one = OfMissedClass(a=[1])
    copy.copy(one)  # which keeps the names of the class's slots
    asked = copies(one)
    try:
        copied = copy.copy(OfCopying())
    except TypeError as error:
        copied = error.args
    return asked, copied, x + 1


class Growing:
    """Changes what it is copied with."""

    def __init__(self, home):
        self.home = home

    def __deepcopy__(self, memo):
        if len(self.home) < 4:
            if isinstance(self.home, dict):
                self.home[len(self.home)] = 1
            else:
                self.home.append(len(self.home))
        return "copied"


@differential()
def test_containers_that_change_meanwhile(x):
    items: list = [0]
    items.append(Growing(items))
    entries: dict = {}
    entries["a"] = Growing(entries)
    try:
        copied = copy.deepcopy(entries)
    except RuntimeError as error:
        copied = error.args
    return copy.deepcopy(items), copied, x + 1


def modules():
    torch.manual_seed(0)
    return torch.randn(2, 3), torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout(0.5)), torch.nn.BatchNorm1d(3, affine=False)


@differential(modules)
def test_modules(x, model, norm):
    shallow = copy.copy(model[0])
    shallow.extra = 1
    deep = copy.deepcopy(norm)
    y = deep(shallow(x))
    deep.eval()
    return y, shallow.weight is model[0].weight, hasattr(model[0], "extra"), norm.training, norm.running_mean, deep(x), shallow
