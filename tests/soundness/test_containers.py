"""Containers: length, order, element types, aliasing, subclasses, iterators."""

import collections
import dataclasses
import types

import torch

from .harness import X, outcome, probe


@probe
def test_list_value_and_length(C):
    c = C(lambda x, items: x * items[0] + len(items))
    return c(X(), [1, 2]), c(X(), [1, 3]), c(X(), [2, 2]), c(X(), [1]), c(X(), [1, 2, 3])


@probe
def test_element_type(C):
    c = C(lambda x, items: (x * items[0], type(items[0]).__name__))
    return [c(X(), [v]) for v in (1, True, 1.0, 0, False, -0.0, 0.0)], c(X(), [X()])


@probe
def test_nan(C):
    c = C(lambda x, v: (x * v, v == v, v in (v,)))
    return c(X(), 1.0), c(X(), float("nan")), c(X(), float("nan")), c(X(), float("inf"))


@probe
def test_dict_order(C):
    c = C(lambda x, d: [k for k in d] + [x * v for v in d.values()])
    return c(X(), {"a": 1, "b": 2}), c(X(), {"b": 2, "a": 1})


@probe
def test_dict_key_types(C):
    c = C(lambda x, d: (list(d), x + len(d)))
    return c(X(), {1: 0}), c(X(), {True: 0}), c(X(), {1.0: 0}), c(X(), {"1": 0})


@probe
def test_unread_key_added(C):
    c = C(lambda x, d: x * d["k"])
    d = {"k": 2}
    out = [c(X(), d)]
    d["other"] = 1
    out.append(c(X(), d))
    d["k"] = 3
    out.append(c(X(), d))
    del d["k"]
    return out, outcome(lambda: c(X(), d))


@probe
def test_tuple_and_list_and_namedtuple(C):
    P = collections.namedtuple("P", "a b")
    c = C(lambda x, t: (type(t).__name__, x * t[0], t + t if isinstance(t, list) else t * 2))
    return c(X(), (1, 2)), c(X(), [1, 2]), c(X(), P(1, 2))


@probe
def test_dict_subclass(C):
    class D(dict):
        def __getitem__(self, key):
            return 9

    c = C(lambda x, d: x * d["k"])
    return (
        c(X(), {"k": 2}),
        c(X(), D(k=2)),
        c(X(), collections.OrderedDict(k=2)),
        c(X(), collections.defaultdict(int, k=2)),
    )


@probe
def test_missing_key_of_defaultdict(C):
    c = C(lambda x, d: (x + len(d["k"]), list(d)))
    d = collections.defaultdict(list)
    a = c(X(), d)
    d["k"].append(1)
    b = c(X(), d)
    d.default_factory = tuple
    d.clear()
    return a, b, c(X(), d), outcome(lambda: c(X(), {}))


@probe
def test_aliased_elements(C):
    def f(x, items):
        items[0].append(1)
        return x * len(items[1])

    c = C(f)
    shared = []
    return c(X(), [[], []]), c(X(), [shared, shared]), shared


@probe
def test_aliased_arguments(C):
    def f(x, a, b):
        a.append(len(b))
        return x * len(b), a is b

    c = C(f)
    one = [1]
    return c(X(), [1], [1]), c(X(), one, one), one


@probe
def test_argument_is_global_list(C):
    state = [1]

    def f(x, items):
        items.append(2)
        return x * len(state)

    c = C(f)
    return c(X(), [1]), c(X(), state), state


@probe
def test_mutated_in_call_counts_once(C):
    def f(x, items):
        items.append(len(items))
        return x * sum(items)

    c = C(f)
    items = [5]
    return [c(X(), items) for _ in range(4)], items


@probe
def test_iterator_argument(C):
    c = C(lambda x, it: (x * next(it), list(it)))
    it = iter([3, 4, 5])
    next(it)
    return c(X(), iter([1, 2])), c(X(), it), c(X(), iter((7,))), outcome(lambda: c(X(), iter([])))


@probe
def test_generator_advanced_outside(C):
    c = C(lambda x, g: x * next(g))
    g = (i for i in range(1, 9))
    a = c(X(), g)
    next(g)
    return a, c(X(), g), list(g)


@probe
def test_range_and_slice(C):
    c = C(lambda x, r, s: [x * i for i in r] + [list(range(10))[s]])
    return c(X(), range(2), slice(1, 3)), c(X(), range(2, 0, -1), slice(None)), c(X(), range(2), slice(1, 3, 2))


@probe
def test_set_contents(C):
    c = C(lambda x, s: x * sum(s) + (1 if 2 in s else 0))
    s = {1, 3}
    a = c(X(), s)
    s.add(2)
    b = c(X(), s)
    return a, b, c(X(), frozenset(s))


class Held:
    pass


@probe
def test_set_of_objects(C):
    c = C(lambda x, s, o: (o in s, x + len(s), torch.float32 in s, (1, "k") in s))
    one, two = Held(), Held()
    return [c(X(), s, o) for s in ({one}, {two}, {one, two}, {one, torch.float32}, {one, torch.float64}, {two, (1, "k")},
                                   {two, (1, "j")}, {two, (1.0, "k")}) for o in (one, two)]


@probe
def test_set_items(C):
    c = C(lambda x, s: [x * f(3) for f in s] + [len(s)])
    return c(X(), {abs}), c(X(), {float}), c(X(), frozenset([abs])), c(X(), set())


@probe
def test_deque_and_maxlen(C):
    def f(x, d):
        d.append(1)
        return x * len(d)

    c = C(f)
    return c(X(), collections.deque([1])), c(X(), collections.deque([1], maxlen=1)), c(X(), [1])


@probe
def test_nested_structure(C):
    c = C(lambda x, d: x * d["a"][1]["b"][0])
    d = {"a": [0, {"b": (2, 3)}]}
    out = [c(X(), d)]
    d["a"][1]["b"] = (5, 3)
    out.append(c(X(), d))
    d["a"][1] = {"b": [7]}
    out.append(c(X(), d))
    d["a"].insert(0, 0)
    return out, outcome(lambda: c(X(), d))


@probe
def test_string_argument(C):
    c = C(lambda x, s: x * len(s) if s.startswith("a") else x)
    return c(X(), "ab"), c(X(), "abc"), c(X(), "b"), outcome(lambda: c(X(), 3))


@probe
def test_none_and_missing(C):
    c = C(lambda x, y=None, **kw: x + (0 if y is None else y) + len(kw))
    return c(X()), c(X(), 1), c(X(), None), c(X(), y=2), c(X(), z=1), c(X(), z=1, w=2)


@probe
def test_namespace_and_mappingproxy(C):
    c = C(lambda x, ns, proxy: x * ns.k + proxy["k"])
    ns, d = types.SimpleNamespace(k=1), {"k": 2}
    proxy = types.MappingProxyType(d)
    out = [c(X(), ns, proxy)]
    ns.k = 5
    out.append(c(X(), ns, proxy))
    d["k"] = 50
    return [*out, c(X(), ns, proxy)]


@probe
def test_dataclass_argument(C):
    @dataclasses.dataclass
    class D:
        k: int
        items: list

    c = C(lambda x, d: x * d.k + len(d.items))
    d = D(2, [1])
    out = [c(X(), d)]
    d.items.append(1)
    out.append(c(X(), d))
    d.k = 3
    return [*out, c(X(), d), c(X(), D(2, [1]))]


@probe
def test_dict_view_held(C):
    d = {"a": 1}
    keys = d.keys()
    c = C(lambda x: x * len(keys) + ("b" in keys))
    a = c(X())
    d["b"] = 2
    return a, c(X())


@probe
def test_exception_half_way(C):
    def f(x, items, fail):
        items.append(1)
        y = x * len(items)
        if fail:
            raise KeyError(len(items))
        items.append(2)
        return y

    c = C(f)
    items = []
    a = c(X(), items, False)
    b = outcome(lambda: c(X(), items, True))
    return a, b, items, c(X(), items, False)


@probe
def test_large_integers_and_floats(C):
    c = C(lambda x, n: (x * (n % 7), n + 1))
    return [c(X(), n) for n in (10, 11, 2**70, 2**70 + 1, -1)], c(X(), 2.5)


@probe
def test_custom_sequence(C):
    class S:
        def __init__(self, n):
            self.n = n

        def __len__(self):
            return self.n

        def __getitem__(self, i):
            if i >= self.n:
                raise IndexError
            return i + 1

    s = S(2)
    c = C(lambda x: x * sum(s) + len(s) + s[0])
    a = c(X())
    s.n = 4
    return a, c(X())


@probe
def test_which_nan(C):
    """Of a nan only the object tells whether a container has it."""
    fns = (
        lambda x, a, b: (x + 1, a is b, a is not b),
        lambda x, a, b: (x + 1, a in [b], [b].count(a), [a] == [b], (a, 1) == (b, 1), {1: a} == {1: b}),
        lambda x, a, b: (x + 1, {a: 1}.get(b), len({a, b})),
        lambda x, a, b: (x + 1, complex(a, 0) == complex(b, 0), (a,) == (b,)),
    )
    nan, other = float("nan"), float("nan")
    pairs = [(nan, nan), (nan, other), (other, other), (other, nan), (1.0, nan), (complex(nan, 1), complex(nan, 1))]
    told = []
    for fn in fns[:3]:
        for order in (pairs, pairs[::-1]):
            c = C(fn)
            told += [c(X(), *pair) for pair in order]
    return told, [C(fns[3])(X(), *pair) for pair in pairs[:5]]


@probe
def test_which_nan_is_in_the_argument(C):
    nan, other = float("nan"), float("nan")
    told = []
    for make in (lambda v: [v], lambda v: (v,), lambda v: {v}, lambda v: {v: 1}, lambda v: frozenset([v]), lambda v: {"a": v}.values()):
        for first, second in ((nan, other), (other, nan)):
            c = C(lambda x, v, items: (x + 1, v in items))
            told += [c(X(), nan, make(first)), c(X(), nan, make(second))]
    return told


@probe
def test_iterators_that_draw_from_one_place_or_not(C):
    """Each of several, made of others or not; what they draw from, and how, changes between calls."""

    def draws(x, one, other, n=2):
        told = []
        for v in one:
            told.append(v)
            for w in other:
                told.append(w)
                x = x + 1
                if len(told) % n == 0:
                    break
        return told, x, list(one), list(other)

    def pairs():
        for same in (False, True, False):
            base = iter([1, 2, 3, 4, 5, 6])
            yield base, enumerate(base if same else iter([7, 8, 9]))
            yield zip("abc", base if same else iter([4, 5, 6, 7])), enumerate(base)
            yield zip(iter([1, 2, 3]), base), zip("abcde", base if same else iter([5, 6]))
            yield enumerate(zip("xyz", "abc")), zip(range(5), enumerate(base))

    c = C(draws)
    return [c(X(), one, other) for one, other in pairs()]


@probe
def test_which_of_equal_keys_a_dict_has(C):
    """A key stays the object that came first; the trace asks for it by an equal one, before it sees all keys."""

    def asked(x, d, key):
        return x + d.get(key, 0), list(d), repr(d)

    def written(x, d, key):
        d[key] = d.setdefault(key, 4) + 1
        return x, list(d.items()), {**d}

    def moved(x, d, key):
        d.move_to_end(key)
        return x, list(d.items()), d.popitem(last=True)

    class Name(str):
        pass

    told = []
    for f in (asked, written, moved):
        c = C(f)
        for keys in ((1, True, 1.0), (True, 1), (0, -0.0), ((1, 2), (True, 2.0)), ("a", Name("a")), (Name("a"), "a")):
            for key in keys:
                d = collections.OrderedDict({keys[0]: 3, "other": 5})
                told += [c(X(), d, key), list(d.items())]
                told += [c(X(), plain, key), list(plain.items())] if f is not moved and (plain := {keys[0]: 3}) else []
    return told
