"""Copies by the copy module: what decides how an object is copied changes between two calls."""

import copy
import copyreg

from .harness import X, defer, patch, probe


class Kept:
    def __init__(self):
        self.items = [1]


def make(**methods):
    """An object of a fresh class, and functions that copy it."""
    cls = type("Made", (Kept,), methods)
    return cls, cls()


def copied(obj):
    return lambda x: (x + 1, copy.copy(obj).items is obj.items, copy.deepcopy(obj).items, type(copy.copy(obj)).__name__)


class Others:
    items = (5,)


def own(self, *args):
    return Others()


@probe
def test_a_getattr_appears(C):
    cls, one = make()
    log = []
    f = C(copied(one))
    seen = [f(X())]

    def asked(self, name):
        log.append(name)
        raise AttributeError(name)

    cls.__getattr__ = asked
    seen.append(f(X()))
    asked_for = list(log)
    del cls.__getattr__
    return seen, asked_for, f(X())


@probe
def test_a_getattribute_appears(C):
    cls, one = make()
    f = C(copied(one))
    seen = [f(X())]
    cls.__getattribute__ = lambda self, name: own if name == "__deepcopy__" else object.__getattribute__(self, name)
    return seen, f(X())


@probe
def test_a_getattr_answers_otherwise(C):
    answers = {}

    def answer(self, name):
        try:
            return answers[name]
        except KeyError:
            raise AttributeError(name) from None

    cls, one = make(__getattr__=answer)
    f = C(copied(one))
    seen = [f(X())]
    answers["__setstate__"] = lambda state: None
    answers["items"] = (3,)
    seen.append(f(X()))
    answers["__deepcopy__"] = own
    return seen, f(X())


@probe
def test_methods_of_the_class_appear(C):
    seen = []
    for name, method in (("__reduce_ex__", lambda self, protocol: (Others, ())), ("__reduce__", lambda self: (Others, ())),
                         ("__getstate__", lambda self: {"items": (4,)}), ("__setstate__", lambda self, state: setattr(self, "items", (6,))),
                         ("__copy__", own), ("__deepcopy__", own), ("__getnewargs__", lambda self: (1, 2))):
        cls, one = make()
        f = C(lambda x, one=one: (x + 1, copy.copy(one).items, copy.deepcopy(one).items))
        seen.append(f(X()))
        setattr(cls, name, method)
        try:
            seen.append(f(X()))
        except TypeError as error:
            seen.append(type(error))
        delattr(cls, name)
        seen.append(f(X()))
    return seen


@probe
def test_methods_of_the_instance_appear(C):
    seen = []
    for name, method in (("__deepcopy__", own), ("__reduce_ex__", lambda protocol: (Others, ())), ("__setstate__", own),
                         ("__getstate__", lambda: {"items": (4,)}), ("__reduce__", lambda: (Others, ()))):
        _, one = make()
        f = C(lambda x, one=one: (x + 1, copy.copy(one).items, copy.deepcopy(one).items))
        seen.append(f(X()))
        setattr(one, name, method)
        seen.append(f(X()))
        delattr(one, name)
        seen.append(f(X()))
    return seen


@probe
def test_tables(C):
    seen = []
    for table in (copyreg.dispatch_table, copy._copy_dispatch, copy._deepcopy_dispatch):  # type: ignore[attr-defined]
        cls, one = make()
        f = C(copied(one))
        seen.append(f(X()))
        table[cls] = (lambda obj: (Others, ())) if table is copyreg.dispatch_table else own
        defer(lambda table=table, cls=cls: table.pop(cls, None))
        seen.append(f(X()))
        del table[cls]
        seen.append(f(X()))
    return seen


@probe
def test_slots_are_renamed(C):
    class Slotted:
        __slots__ = ("a", "b")

    one = Slotted()
    one.a = 1
    f = C(lambda x: (x + 1, [hasattr(copy.copy(one), name) for name in "ab"]))
    seen = [f(X())]
    one.b = 2
    seen.append(f(X()))
    del one.a
    return seen, f(X())


@probe
def test_a_class_gets_another_metaclass_method(C):
    class Meta(type):
        pass

    class Made(metaclass=Meta):
        items = [1]

    one = Made()
    f = C(lambda x: (x + 1, copy.copy(one).items))
    seen = [f(X())]
    patch(Meta, "__copy__", lambda cls, obj=None: Others())
    try:
        seen.append(f(X()))
    except TypeError as error:
        seen.append(error.args)
    return seen
