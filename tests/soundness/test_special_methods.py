"""Special methods: operators, protocols, contexts, finalisers."""

import collections.abc

from .harness import X, outcome, probe


@probe
def test_operator_patched(C):
    class V:
        def __init__(self, x):
            self.x = x

        def __add__(self, other):
            return self.x + other

    c = C(lambda x: V(x) + 1)
    a = c(X())
    V.__add__ = lambda self, other: self.x * 100
    return a, c(X())


@probe
def test_reflected_operator_appears_on_subclass(C):
    class V:
        def __add__(self, other):
            return 1

    class W(V):
        pass

    v, w = V(), W()
    c = C(lambda x: x * (v + w))
    a = c(X())
    W.__radd__ = lambda self, other: 5
    return a, c(X())


@probe
def test_bool_and_len(C):
    class A:
        pass

    obj = A()
    c = C(lambda x: x * 2 if obj else x)
    a = c(X())
    A.__len__ = lambda self: 0
    b = c(X())
    A.__bool__ = lambda self: True
    return a, b, c(X())


@probe
def test_protocol_method_appears(C):
    class A:
        pass

    obj = A()
    c = C(lambda x: (x, isinstance(obj, collections.abc.Iterable), callable(obj), hasattr(obj, "__iter__")))
    a = c(X())
    A.__iter__ = lambda self: iter(())
    A.__call__ = lambda self: None
    return a, c(X())


@probe
def test_instancecheck_patched(C):
    class Meta(type):
        def __instancecheck__(cls, obj):
            return False

    class A(metaclass=Meta):
        pass

    c = C(lambda x: x * 2 if isinstance(x, A) else x)
    a = c(X())
    Meta.__instancecheck__ = lambda cls, obj: True
    return a, c(X())


@probe
def test_iter_patched(C):
    class A:
        def __iter__(self):
            return iter([1, 2])

    obj = A()
    c = C(lambda x: x * sum(obj))
    a = c(X())
    A.__iter__ = lambda self: iter([7])
    return a, c(X())


@probe
def test_context_manager_patched(C):
    class A:
        def __enter__(self):
            return 2

        def __exit__(self, *args):
            return False

    obj = A()

    def f(x):
        with obj as k:
            x = x * k
            raise ValueError
        return x

    c = C(f)
    a = outcome(lambda: c(X()))
    A.__exit__ = lambda self, *args: True
    b = outcome(lambda: c(X()))
    A.__enter__ = lambda self: 9
    return a, b, outcome(lambda: c(X()))


@probe
def test_eq_and_hash_of_key(C):
    class K:
        def __init__(self, n):
            self.n = n

        def __hash__(self):
            return 1

        def __eq__(self, other):
            return self.n == other.n

    k = K(1)
    d = {K(1): 5}
    c = C(lambda x: x * d.get(k, 2))
    a = c(X())
    k.n = 3
    return a, c(X())


@probe
def test_finaliser_runs_when_the_program_lets_go(C):
    log = []

    class A:
        def __del__(self):
            log.append("gone")

    def inner(x):
        a = A()
        y = x + 1
        del a
        log.append("after")
        return y

    def outer(x):
        y = inner(x * 2)
        log.append("out")
        return y * 3

    c, d = C(inner), C(outer)
    return c(X()), d(X()), c(X()), d(X()), log


@probe
def test_exit_gets_a_traceback(C):
    seen = []

    class M:
        def __enter__(self):
            return self

        def __exit__(self, kind, value, tb):
            seen.append((kind, value.args if value else None, tb is not None, bool(tb), type(tb).__name__))
            return kind is KeyError

    def f(x, n):
        with M():
            y = x + 1
            if n == 1:
                raise KeyError("k")
            if n == 2:
                raise ValueError("v")
            return y
        return x * 9

    c = C(f)
    return c(X(), 0), c(X(), 1), outcome(lambda: c(X(), 2)), c(X(), 1), seen


@probe
def test_traceback_of_a_caught_exception(C):
    k = [1]

    def f(x):
        try:
            raise KeyError(k[0])
        except KeyError as error:
            tb = error.__traceback__
            error.__cause__ = ValueError("why")
            error.__traceback__ = None
            return x * k[0], tb is not None, error.__cause__.args, type(error.__cause__), KeyError().__traceback__

    c = C(f)
    a = c(X())
    k[0] = 3
    return a, c(X())


@probe
def test_what_an_eq_says_of_the_same_object(C):
    """Containers ask no object whether it is itself."""

    class Never:
        def __init__(self, h):
            self.h = h

        def __hash__(self):
            return self.h

        def __eq__(self, other):
            return False

    def f(x, items, one):
        return x + (one in items), items.count(one), items == [one, one], {one: 1, items[0]: 2}, (one,) == (items[1],)

    c = C(f)
    a, b = Never(1), Never(1)
    pairs = [([a, b], b), ([a, b], Never(1)), ([a, b], b), ([a, a], a), ([a, b], a), ([b, b], a)]
    return [len(part) if isinstance(part, dict) else part for pair in pairs for part in c(X(), *pair)]
