"""Functions: code, defaults, closures, attributes, wrappers."""

import functools
import subprocess
import sys
import types

import torch

from .harness import X, outcome, probe


@probe
def test_code_of_callee(C):
    def g(x):
        return x + 1

    def h(x):
        return x * 10

    c = C(lambda x: g(x))
    a = c(X())
    g.__code__ = h.__code__
    return a, c(X())


@probe
def test_defaults_of_callee(C):
    def g(x, k=2):
        return x * k

    c = C(lambda x: g(x))
    a = c(X())
    g.__defaults__ = (5,)
    return a, c(X())


@probe
def test_mutable_default_of_callee(C):
    def g(x, k=[2]):  # noqa: B006
        return x * k[0]

    c = C(lambda x: g(x))
    a = c(X())
    g.__defaults__[0][0] = 5
    return a, c(X())


@probe
def test_keyword_defaults_of_callee(C):
    def g(x, *, k=2):
        return x * k

    c = C(lambda x: g(x))
    a = c(X())
    g.__kwdefaults__["k"] = 3
    b = c(X())
    g.__kwdefaults__ = None
    return a, b, outcome(lambda: c(X()))


@probe
def test_fields_that_are_read(C):
    def g(x, k=2, *, m=3):
        return x * k * m

    def h(x):
        return x

    c = C(lambda x: (x + 1, g.__defaults__, g.__kwdefaults__, g.__code__.co_name, g.__closure__ is None))
    seen = [c(X())]
    g.__defaults__ = (5,)
    seen.append(c(X()))
    g.__defaults__ = None
    seen.append(c(X()))
    g.__kwdefaults__ = None
    seen.append(c(X()))
    g.__kwdefaults__, g.__defaults__ = {"m": 4}, (1,)
    seen.append(c(X()))
    g.__kwdefaults__["m"] = 5
    seen.append(c(X()))
    g.__code__ = h.__code__
    seen.append(c(X()))
    return seen


AUDITED = """
import sys, torch, framegraft

def g(x, k=2, *, m=3):
    return x

def f(x):
    return x + len(g.__defaults__) + len(g.__kwdefaults__) + g.__code__.co_argcount

compiled = framegraft.compile(f, backend="eager")
compiled(torch.ones(2)), compiled(torch.ones(2))
events = []
sys.addaudithook(lambda event, args: events.append((event, args)))
compiled(torch.ones(2))
events = [args for event, args in events if event == "object.__getattr__"]
assert not events, events
"""


def test_guards_raise_no_audit_events():
    assert subprocess.run([sys.executable, "-c", AUDITED], timeout=300).returncode == 0


@probe
def test_own_defaults(C):
    def f(x, k=2):
        return x * k

    c = C(f)
    a = c(X())
    f.__defaults__ = (torch.full((3,), 4.0),)
    return a, c(X())


@probe
def test_cell_of_callee(C):
    k = 2

    def g(x):
        return x * k

    c = C(lambda x: g(x))
    a = c(X())
    k = 6
    return a, c(X())


@probe
def test_cell_emptied(C):
    k = 2

    def f(x):
        return x * k

    c = C(f)
    a = c(X())
    del k
    return a, outcome(lambda: c(X()))


@probe
def test_cell_holds_list(C):
    items = [1]

    def f(x):
        return x * sum(items)

    c = C(f)
    a = c(X())
    items.append(4)
    return a, c(X())


@probe
def test_same_code_other_closure(C):
    def make(k):
        def f(x):
            return x * k

        return f

    return [C(make(k))(X()) for k in (1, 2, "3".__len__(), torch.ones(3) * 9)], C(lambda x: x)(X(2)), freeze_marker(C)


def freeze_marker(C):
    box = [1]
    c = C(lambda x: x * box[0])
    c(X())
    box[0] = 2
    return c(X())


@probe
def test_function_attribute(C):
    def g(x):
        return x * g.k

    g.k = 2
    c = C(lambda x: g(x))
    a = c(X())
    g.k = 3
    return a, c(X())


@probe
def test_wraps_target_replaced(C):
    def deco(fn):
        @functools.wraps(fn)
        def inner(x):
            return inner.__wrapped__(x) + 1

        return inner

    @deco
    def g(x):
        return x * 2

    c = C(lambda x: g(x))
    a = c(X())
    g.__wrapped__ = lambda x: x * 7
    return a, c(X())


@probe
def test_function_argument(C):
    c = C(lambda x, g: g(x))
    return [c(X(), g) for g in (torch.sin, torch.cos, lambda v: v + 1, lambda v: v + 2)]


@probe
def test_partial_argument(C):
    c = C(lambda x, g: g(x))
    p = functools.partial(torch.add, alpha=2, other=1)
    a = c(X(), p)
    p.keywords["alpha"] = 5
    b = c(X(), p)
    p.__setstate__((torch.sub, (), {"other": 1}, {}))
    return a, b, c(X(), p)


@probe
def test_lru_cache_cleared(C):
    box = [2]

    @functools.lru_cache
    def g():
        return box[0]

    c = C(lambda x: x * g())
    a = c(X())
    box[0] = 9
    b = c(X())
    g.cache_clear()
    return a, b, c(X())


@probe
def test_bound_method_self(C):
    class A:
        def __init__(self, k):
            self.k = k

        def go(self, x):
            return x * self.k

    a = A(2)
    c = C(a.go)
    r = c(X())
    a.k = 3
    return r, c(X()), C(A(8).go)(X())


@probe
def test_method_argument_of_other_object(C):
    c = C(lambda x, m: m(x))
    t, u = X(), X() * 2
    return c(X(), t.add), c(X(), u.add), c(X(), t.mul)


@probe
def test_singledispatch_registers(C):
    @functools.singledispatch
    def kind(v):
        return 1

    c = C(lambda x, v: x * kind(v))
    a = c(X(), [1])
    kind.register(list)(lambda v: 5)
    return a, c(X(), [1])


@probe
def test_name_and_doc(C):
    def g():
        """One."""

    c = C(lambda x: (x, g.__name__, g.__doc__))
    a = c(X())
    g.__name__, g.__doc__ = "renamed", "Two."
    return a, c(X())


@probe
def test_globals_of_other_function_type(C):
    def g(x):
        return x * K  # noqa: F821

    one = types.FunctionType(g.__code__, {"K": 2})
    two = types.FunctionType(g.__code__, {"K": 5})
    c = C(lambda x, f: f(x))
    return c(X(), one), c(X(), two), C(one)(X()), C(two)(X())


@probe
def test_generator_function_changed(C):
    def g(x):
        yield x
        yield x * 2

    def other(x):
        yield x * 10

    c = C(lambda x: list(g(x)))
    a = c(X())
    g.__code__ = other.__code__
    return a, c(X())


@probe
def test_other_bound_method_of_a_builtin_class(C):
    seen = [1, 2]
    c = C(lambda x, method: (method([x]), x + len(seen)))
    return c(X(), seen.append), seen[:], c(X(), seen.extend), seen[:]


@probe
def test_bound_method_of_a_base_class(C):
    class Doubled(list):
        def append(self, item):
            super().append(item * 2)

    one, other = [], Doubled()
    c = C(lambda x, method: (method(x), x + 1))
    return c(X(), one.append), c(X(), other.append), c(X(), list.append.__get__(other)), one, list(other)


@probe
def test_bound_method_of_another_tensor(C):
    c = C(lambda x, method: method(x) + 1)
    return c(X(), X().mul), c(X(), (X() * 3).mul), c(X(), X().add), c(X(), X().reshape(1, -1).add)


@probe
def test_keyword_defaults_that_nobody_reads(C):
    class K:
        def __init__(self, *, a=1): ...

        def method(self, x, *, b=2):
            return x

        def __call__(self, x, *, c=3):
            return x + 1

    def required(x, *, d):
        return x * 2

    def f(x):
        x = K()(K().method(x))
        try:
            return required(x)
        except TypeError as error:
            return x, str(error)

    c = C(f)
    seen = [c(X())]
    for fn, defaults in ((required, {"d": 1}), (required, {}), *((fn, None) for fn in (K.__init__, K.method, K.__call__)), (required, {"d": 2})):
        before, fn.__kwdefaults__ = fn.__kwdefaults__, defaults
        seen.append(outcome(lambda: c(X())))
        fn.__kwdefaults__ = before
        seen.append(outcome(lambda: c(X())))
    return seen
