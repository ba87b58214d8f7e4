"""``functools.wraps`` on functions that the captured function makes, and decorators that use it."""

import contextlib
import functools

import torch

import framegraft

from .differential import differential


def plus_one(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return fn(*args, **kwargs) + 1

    return wrapper


def documented(x):
    """Twice."""
    return x * 2


documented.mark = "m"


@differential(graphs=1)
def test_local_decorator(x):
    @plus_one
    def inner(a):
        """Three times."""
        return a * 3

    return inner(x), inner.__name__, inner.__doc__, inner.__qualname__.endswith("inner"), inner.__wrapped__(x)


@differential(graphs=1)
def test_functions_from_outside(x):
    wrapped = plus_one(documented)
    return wrapped(x), wrapped.__name__, wrapped.__doc__, wrapped.mark, wrapped.__wrapped__ is documented, wrapped.__module__


@differential(graphs=1)
def test_modes_as_decorators(x):
    @torch.no_grad()
    def inner(a):
        return a * 2

    @contextlib.contextmanager
    def scaled(k):
        yield k * 2

    with scaled(x) as y:
        return inner(x), y + 1, torch.is_grad_enabled()


@differential()
def test_wrapped_functions_leave(x):
    def inner(a):
        return a * 3

    inner.note = "n"
    wrapped = plus_one(plus_one(inner))
    return wrapped, wrapped.__wrapped__.__wrapped__ is inner, wrapped.note, wrapped(x)


@differential()
def test_other_forms(x):
    def inner(a: int):
        yield a

    def outer(a):
        yield from inner(a)

    functools.update_wrapper(outer, inner)
    partial = functools.update_wrapper(functools.partial(documented, x), documented)
    some = functools.update_wrapper(lambda a: a, documented, assigned=("__name__",), updated=())
    return list(outer(x)), outer.__name__, partial(), some.__name__, hasattr(some, "mark")


def test_one_capture_for_all_calls():
    counter = framegraft.testing.CompileCounter()

    @framegraft.compile(backend=counter)
    def f(x):
        @plus_one
        def inner(a):
            return a * 2

        return inner(x)

    for _ in range(4):
        f(torch.ones(2))
    assert counter.frame_count == 1


def test_what_is_wrapped_changes():
    @framegraft.compile(backend="eager")
    def f(x):
        return getattr(plus_one(documented), "late", None), plus_one(documented).__doc__, x + 1

    assert f(torch.ones(2))[:2] == (None, "Twice.")
    documented.late, documented.__doc__ = "yes", "Changed."
    try:
        assert f(torch.ones(2))[:2] == ("yes", "Changed.")
    finally:
        del documented.late
        documented.__doc__ = "Twice."
    assert f(torch.ones(2))[:2] == (None, "Twice.")


@differential()
def test_annotations_of_a_function_made_here(x):
    def plain():
        return x

    def full(a: int, b: "str" = "b", *c: 1) -> float:
        return a

    def constant(a: 1):
        return a

    @functools.wraps(plain)
    def first():
        return x

    @functools.wraps(full)
    def second():
        return x

    told = [first.__annotations__ is plain.__annotations__, second.__annotations__ is full.__annotations__, constant.__annotations__]
    full.__annotations__["d"] = x + 1
    plain.__annotations__["e"] = 2
    constant.__annotations__ = {"f": 3}
    told += [dict(f.__annotations__) for f in (plain, full, constant, first, second)]
    return told, [f.__annotations__ for f in (plain, full, constant, first, second)], plain, second


class Adding:
    def add(self, x):
        """Twice and one."""
        return x * 2 + 1

    add.mark = "of a method"


class Wrapping(Adding):
    def __init__(self):
        self.add = plus_one(self.add)


@differential(lambda: (torch.ones(2), Adding()), graphs=1)
def test_methods(x, other):
    made, outer = Wrapping(), plus_one(other.add)
    told = [(f.__name__, f.__qualname__, f.__doc__, f.__module__, f.mark) for f in (made.add, outer)]
    return made.add(x) + outer(x), told, list(vars(made)), outer.__wrapped__ == other.add, made.add.__wrapped__.__self__ is made
