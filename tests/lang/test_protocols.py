"""isinstance() and issubclass() with protocols of the typing module."""

import abc
import typing
from typing import Any, Protocol, runtime_checkable

import pytest
import torch

import framegraft

from .differential import differential


@runtime_checkable
class Goes(Protocol):
    def go(self, x: Any) -> Any: ...


@runtime_checkable
class Sized(Protocol):
    size: int

    def go(self, x: Any) -> Any: ...


class Unchecked(Protocol):
    def go(self, x: Any) -> Any: ...


class Nominal(Goes):
    def go(self, x):
        return x + 1


class Structural:
    def go(self, x):
        return x * 2


class Blocked:
    go = None


class Both(Structural):
    def __init__(self, size):
        self.size = size


class OnInstance:
    def __init__(self):
        self.go = lambda x: x


SEEN: list = []


class Asked:
    @property
    def size(self):
        SEEN.append("size")
        return 3

    def go(self, x):
        return x


class Answers:
    def __getattr__(self, name):
        if name == "size":
            raise AttributeError(name)
        return name


class Slots:
    __slots__ = ("go", "size")


def one():
    return (torch.arange(3.0),)


OBJECTS = [Nominal(), Structural(), Blocked(), Both(3), Both(None), OnInstance(), Slots(), 3, "go", None, [1], {}, (1, 2), Both, len]


@differential(one, graphs=1)
def test_what_is_one(x):
    x = x + 1
    found = [(isinstance(o, Goes), isinstance(o, Nominal)) for o in OBJECTS[:7]]
    made = Nominal(), Structural(), Both(2), Blocked()
    found += [(isinstance(o, Goes), isinstance(o, Sized)) for o in made]
    return x * 2, found, isinstance(x, Nominal), isinstance(made[0], (int, Goes))


@differential(one)
def test_data_members(x):
    found = [isinstance(o, Sized) for o in OBJECTS]
    return x + 1, found, isinstance(Asked(), Sized), SEEN[:], isinstance(Answers(), Sized), isinstance(Answers(), Goes)


@differential(one)
def test_classes_and_generic_protocols(x):
    return (x + 1, [issubclass(c, Goes) for c in (Nominal, Structural, Blocked, int)], isinstance(3, typing.SupportsInt),
            isinstance([], typing.SupportsInt), isinstance(3, typing.SupportsIndex), isinstance(x, typing.SupportsFloat))


@differential(one)
def test_what_eager_mode_refuses(x):
    try:
        return isinstance(x, Unchecked)
    except TypeError as error:
        first = str(error)
    try:
        return issubclass(int, Sized)
    except TypeError as error:
        return first, str(error)[:30], x + 1


def changes():
    def member(monkeypatch, obj):
        obj.go = lambda x: x

    def method(monkeypatch, obj):
        monkeypatch.setattr(type(obj), "go", lambda self, x: x, raising=False)

    def blocked(monkeypatch, obj):
        obj.go = None

    def registered(monkeypatch, obj):
        Goes.register(type(obj))

    def asks_for_more(monkeypatch, obj):
        obj.go = obj.more = lambda x: x

    return [member, method, blocked, registered, asks_for_more]


@pytest.mark.parametrize("change", changes(), ids=lambda c: c.__name__)
def test_change_between_calls(change, monkeypatch):
    class Plain:
        pass

    def f(x, obj):
        return x + 1 if isinstance(obj, Goes) else x - 1

    obj, x = Plain(), torch.ones(3)
    compiled = framegraft.compile(f, backend="eager")
    for _ in range(2):
        assert torch.equal(compiled(x, obj), x - 1)
    change(monkeypatch, obj)
    for _ in range(2):
        assert torch.equal(compiled(x, obj), f(x, obj))
    for other in (Nominal(), Structural(), Blocked(), Plain()):
        assert torch.equal(compiled(x, other), f(x, other))


@pytest.mark.parametrize("what", ["data", "unchecked", "hook"])
@pytest.mark.parametrize("ask", [isinstance, issubclass])
def test_of_classes_that_nobody_has_asked_about(what, ask):
    """A protocol with data members refuses issubclass(), and isinstance() asks it all the same; a hook may raise."""
    def run(capture):
        class Data(typing.Protocol):
            k: int

        class Hooked(abc.ABC):
            @classmethod
            def __subclasshook__(cls, other):
                raise ValueError(other.__name__)

        class Numbers(abc.ABC):
            pass

        class Plain:
            pass

        target = {"data": typing.runtime_checkable(Data), "unchecked": Data, "hook": Hooked}[what]
        value = Plain() if ask is isinstance else Plain
        f = capture(lambda x: (x.sum().item(), ask(value, target)))
        seen = []
        for change in (lambda: None, lambda: Numbers.register(type("Other", (), {})), lambda: setattr(Plain, "k", 1)):
            change()
            try:
                seen.append(f(torch.ones(3)))
            except (TypeError, ValueError) as error:
                seen.append((type(error), str(error)))
        return seen

    with framegraft.config.patch(raise_internal_errors=True):
        assert run(lambda f: framegraft.compile(f, backend="eager")) == run(lambda f: f)
