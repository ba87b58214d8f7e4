"""``cls.__dict__`` and ``vars(cls)``: what a class has itself, as it is in each call."""

import types

import pytest
import torch

import framegraft

from .differential import differential


class Base:
    inherited = 9


class Settings(Base):
    rate = 1
    share = 2.5

    def method(self):
        return 3

    @classmethod
    def of_class(cls):
        return cls.share

    @staticmethod
    def static():
        return 5

    @property
    def told(self):
        return 6


class Slotted:
    __slots__ = ("a",)


class Meta(type):
    pass


class Made(metaclass=Meta):
    kept = 4


@differential(graphs=1)
def test_entries(x):
    shown = Settings.__dict__
    return x + shown["rate"], shown.get("inherited"), "inherited" in shown, list(shown), len(shown), vars(Made)["kept"]


@differential(graphs=1)
def test_functions_and_descriptors(x):
    shown = vars(Settings)
    y = x + shown["method"](None) + shown["of_class"].__func__(Settings) + shown["static"].__func__() + shown["told"].fget(None)
    return y, isinstance(vars(Slotted)["a"], types.MemberDescriptorType), {k: v.__name__ for k, v in shown.items() if callable(v)}


@differential(graphs=1)
def test_along_the_mro(x):
    found = [(k, v) for cls in Settings.__mro__ for k, v in vars(cls).items() if isinstance(v, (int, float)) and k[0] != "_"]
    return x * len(found), found


@differential()
def test_it_is_made_anew_and_read_only(x):
    try:
        Settings.__dict__["rate"] = 3
    except TypeError as error:
        told = str(error)
    return x + 1, type(Settings.__dict__), Settings.__dict__ is Settings.__dict__, Settings.__dict__ == Settings.__dict__, told


@differential(build=True, calls=1)
def test_a_class_that_is_changed():
    class Local:
        rate = 1

    def fn(x):
        shown = Local.__dict__
        before = shown["rate"]
        Local.rate = 7
        Local.other = 2
        return x + before, shown["rate"], "other" in vars(Local)

    return fn


@pytest.mark.parametrize("change", [("rate", 3), ("more", 5), ("method", lambda self: 8)], ids=lambda change: change[0])
def test_changes_between_calls(change, monkeypatch):
    def fn(x):
        return x + Settings.__dict__["rate"], [k for k, v in vars(Settings).items() if k[0] != "_"], vars(Settings)["method"](None)

    compiled = framegraft.compile(fn, backend="eager", fullgraph=True)
    x = torch.ones(2)
    for _ in range(2):
        (told, *rest), (expected, *others) = compiled(x), fn(x)
        assert rest == others
        torch.testing.assert_close(told, expected)
        monkeypatch.setattr(Settings, *change, raising=False)


@differential(build=True, calls=1)
def test_a_class_that_is_changed_and_changed_back():
    class Local:
        rate = 1

    shown = Local.__dict__

    def fn(x):
        Local.other = 2
        found = "other" in Local.__dict__, "other" in shown
        del Local.other
        return x, found, "other" in Local.__dict__, "other" in shown

    return fn
