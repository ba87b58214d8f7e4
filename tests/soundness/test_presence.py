"""Names that the trace found but never looked at: they must still be there in the next call."""

import builtins
import warnings

import framegraft

from .harness import X, module, outcome, probe


@probe
def test_global_deleted_by_the_call_itself(C):
    m = module("g = 1\ndef f(x):\n    global g\n    del g\n    return x + 1\n")
    f = C(m.f)
    return outcome(lambda: f(X())), outcome(lambda: f(X())), "g" in vars(m)


@probe
def test_unused_global_deleted(C):
    m = module("g = object()\ndef f(x):\n    y = g\n    return x + 1\n")
    f = C(m.f)
    first = outcome(lambda: f(X()))
    del m.g
    return first, outcome(lambda: f(X()))


@probe
def test_unused_attribute_deleted(C):
    m = module("def f(x, o):\n    y = o.a\n    return x + 1\n")
    f, o = C(m.f), module("a = []")
    first = outcome(lambda: f(X(), o))
    del o.a
    return first, outcome(lambda: f(X(), o))


@probe
def test_deleted_attribute(C):
    class O:
        pass

    def f(x, o):
        del o.a
        return x + 1

    g, o = C(f), O()
    o.a = 3
    return outcome(lambda: g(X(), o)), outcome(lambda: g(X(), o))


@probe
def test_cell_emptied(C):
    kept = [1]

    def empty():
        nonlocal kept
        del kept

    def f(x):
        y = kept
        return x + 1

    g = C(f)
    first = outcome(lambda: g(X()))
    empty()
    return first, outcome(lambda: g(X()))


@probe
def test_global_made_and_deleted(C):
    m = module("def f(x):\n    global g\n    g = 1\n    del g\n    return x + 1\n")
    f = C(m.f)
    first = outcome(lambda: f(X()))
    m.g = 5
    return first, outcome(lambda: f(X())), "g" in vars(m)


class Key:
    """A key of builtins that runs code of the program when names are looked up, and draws from an iterator then."""

    def __init__(self, name, iterator):
        self.name, self.iterator = name, iterator

    def __hash__(self):
        return hash(self.name)

    def __eq__(self, other):
        [*self.iterator]
        return other == self.name


def test_code_of_the_program_that_guards_run():
    names, original = builtins.__dict__, iter

    def reduced(items):
        it = original(items)
        del names["iter"]
        names[Key("iter", it)] = original
        return it.__reduce__()

    try:
        # Framegraft needs iter(), too: frames that it cannot capture meanwhile run as they are.
        with warnings.catch_warnings(), framegraft.config.patch(raise_internal_errors=False), framegraft.optimize("eager"):
            warnings.simplefilter("ignore")
            for _ in range(3):
                assert reduced("xyz") == (original, ("",))
    finally:
        names.pop("iter", None)
        names["iter"] = original


@probe
def test_slots_that_are_not_set(C):
    """Nor guards may ask ``__getattr__``."""
    asked = []

    class Slotted:
        __slots__ = ("a",)

        def __getattr__(self, name):
            asked.append(name)
            raise AttributeError(name)

    one = Slotted()
    f = C(lambda x: (x + 1, hasattr(one, "a")))
    seen = [f(X()), f(X()), list(asked)]
    one.a = 1
    seen += [f(X()), f(X()), list(asked)]
    del one.a
    return [*seen, f(X()), asked]
