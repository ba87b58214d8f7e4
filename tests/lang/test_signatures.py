"""inspect.signature() of functions, methods and classes, and of what wraps them."""

import functools
import inspect

import torch

import framegraft

from .differential import differential


def passing_on(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return fn(*args, **kwargs)

    return wrapper


@passing_on
@passing_on
def wrapped(x, y: int = 2, *, k=3) -> int:
    return x


class Model:
    def __init__(self, width, depth=2):
        self.width = width

    @passing_on
    def forward(self, x, mask=None, *, return_dict=True):
        return x

    @classmethod
    def made(cls, path):
        return cls(path)


class Derived(Model):
    pass


@differential(lambda: (Model(3), torch.ones(2)), graphs=1)
def test_parameters(model, x):
    takes = inspect.signature(model.forward).parameters
    return (x + 1, "return_dict" in takes, [str(p) for p in takes.values()], str(inspect.signature(wrapped)), str(inspect.signature(Model.forward)),
            str(inspect.signature(Derived)), list(inspect.signature(model.made).parameters), inspect.signature(wrapped).return_annotation)


def test_what_a_signature_hangs_on_is_guarded():
    def inner(a, b=1): ...

    def other(c): ...

    @functools.wraps(inner)
    def outer(*args): ...

    class Made:
        def __init__(self, a, b=2): ...

    def f(x):
        return x + len(inspect.signature(outer).parameters), str(inspect.signature(outer)), str(inspect.signature(Made))

    compiled = framegraft.compile(f, backend="eager", fullgraph=True)

    def check():
        assert compiled(torch.ones(1)) == f(torch.ones(1))

    check()
    inner.__defaults__ = (7,)
    check()
    outer.__wrapped__ = other
    check()
    del outer.__wrapped__
    check()
    Made.__init__ = lambda self, z: None
    check()


@differential()
def test_what_wraps_itself(x):
    def endless(): ...

    endless.__wrapped__ = endless
    try:
        inspect.signature(endless)
    except ValueError as error:
        return x + 1, str(error)[:20]
