"""Things that a capture may have looked at without noticing: signatures, caches, iterators, exceptions, settings."""

import abc
import collections
import contextvars
import copy
import dataclasses
import enum
import functools
import gc
import inspect
import itertools
import locale
import logging
import operator
import os
import random
import sys
import threading
import types
import typing
import warnings
import weakref

import torch

from .harness import X, defer, module, outcome, patch, probe


def cls(**names):
    return type("K", (), names)


@probe
def test_signature_of_a_function(C):
    def g(a=1, *, b=2): ...

    f = C(lambda x: (x + 1, [(n, p.default, p.annotation) for n, p in inspect.signature(g).parameters.items()]))
    seen = [f(X())]
    g.__kwdefaults__["b"] = 3
    seen.append(f(X()))
    g.__annotations__["a"] = int
    seen.append(f(X()))
    g.__defaults__ = (5,)
    return seen, f(X())


@probe
def test_annotations_of_a_function(C):
    def g(a: int = 1): ...

    f = C(lambda x: (x + len(g.__annotations__), list(g.__annotations__)))
    seen = [f(X())]
    g.__annotations__["b"] = str
    return seen, f(X())


@probe
def test_cached_property(C):
    class K:
        n = 1

        @functools.cached_property
        def a(self):
            return self.n

    k = K()
    f = C(lambda x: x + k.a)
    seen = [f(X())]
    K.n = 2
    seen.append(f(X()))
    del k.a
    seen.append(f(X()))
    k.__dict__["a"] = 9
    return seen, f(X())


@probe
def test_partialmethod_and_dispatch(C):
    class K:
        def m(self, n):
            return n

        p = functools.partialmethod(m, 3)

        @functools.singledispatchmethod
        def d(self, v):
            return 1

    f = C(lambda x: (x + K().p(), K().d(1)))
    seen = [f(X())]
    K.__dict__["d"].register(int, lambda self, v: 2)
    K.p = functools.partialmethod(K.m, 4)
    return seen, f(X())


@probe
def test_cache_with_a_changed_body(C):
    box = [1]

    @functools.lru_cache(maxsize=1)
    def cached(n):
        return box[0] + n

    f = C(lambda x: (x + cached(1), cached.cache_info().hits))
    seen = [f(X())[0]]
    box[0] = 5
    seen.append(f(X())[0])
    cached(2)
    return seen, f(X())[0]


@probe
def test_context_variable(C):
    v = contextvars.ContextVar("v", default=1)
    f = C(lambda x: x + v.get())
    seen = [f(X())]
    token = v.set(2)
    seen.append(f(X()))
    v.reset(token)
    seen.append(f(X()))
    return seen, contextvars.copy_context().run(lambda: (v.set(9), f(X()))[1])


@probe
def test_weak_reference_dies(C):
    K = cls(n=2)
    k = K()
    r = weakref.ref(k)
    f = C(lambda x: x + (r().n if r() is not None else 0))
    seen = [f(X())]
    del k
    gc.collect()
    return seen, f(X())


@probe
def test_weak_dict_shrinks(C):
    K = cls()
    k = K()
    d = weakref.WeakValueDictionary(a=k)
    f = C(lambda x: (x + len(d), "a" in d))
    seen = [f(X())]
    del k
    gc.collect()
    return seen, f(X())


@probe
def test_module_exchanged(C):
    sys.modules["probed_helper"] = module("n = 1")
    defer(lambda: sys.modules.pop("probed_helper", None))

    def g(x):
        import probed_helper  # type: ignore[import-not-found]

        return x + probed_helper.n

    f = C(g)
    seen = [f(X())]
    sys.modules["probed_helper"] = module("n = 2")
    seen.append(f(X()))
    sys.modules["probed_helper"].n = 3
    seen.append(f(X()))
    del sys.modules["probed_helper"]
    return seen, outcome(lambda: f(X()))[:2]


@probe
def test_from_import(C):
    made = sys.modules["probed_helper"] = module("n = 1")
    defer(lambda: sys.modules.pop("probed_helper", None))

    def g(x):
        from probed_helper import n  # type: ignore[import-not-found]

        return x + n

    f = C(g)
    seen = [f(X())]
    made.n = 2
    seen.append(f(X()))
    del made.n
    made.__getattr__ = lambda name: 7
    return seen, f(X())


@probe
def test_default_mutated_by_the_call(C):
    def g(x, seen=[]):  # noqa: B006
        seen.append(len(seen))
        return x + len(seen)

    f = C(g)
    seen = [f(X()), f(X())]
    g.__defaults__[0].clear()
    return seen, f(X()), g.__defaults__


@probe
def test_cell_changed_by_a_sibling(C):
    n = 1

    def bump():
        nonlocal n
        n += 1

    def g(x):
        first = n
        bump()
        return x + first, n

    f = C(g)
    return f(X()), f(X()), bump(), f(X()), n


@probe
def test_views_kept_over_mutation(C):
    d = {"a": 1}
    k, v, i = d.keys(), d.values(), d.items()
    f = C(lambda x: (x + sum(v), list(k), list(i), "b" in k))
    seen = [f(X())]
    d["b"] = 2
    seen.append(f(X()))
    d["b"] = 2.5
    return seen, f(X())


@probe
def test_iterator_shared_between_calls(C):
    it = iter([1, 2, 3, 4, 5])
    f = C(lambda x: (x + next(it), list(itertools.islice(it, 1))))
    return f(X()), f(X()), outcome(lambda: f(X())), outcome(lambda: f(X())[0])


@probe
def test_enumerate_and_zip_shared(C):
    e, z = enumerate("abcd"), zip([1, 2, 3], "xyz", strict=False)
    f = C(lambda x: (x + next(e)[0], next(z)))
    seen = [f(X())]
    next(e)
    return seen, f(X()), next(z)


@probe
def test_list_that_its_iterator_goes_over(C):
    items = [1, 2]
    it = iter(items)
    f = C(lambda x: (x + 1, next(it, None)))
    seen = [f(X())]
    items.insert(0, 9)
    seen.append(f(X()))
    items.append(7)
    return seen, f(X()), f(X())


@probe
def test_context_of_an_exception(C):
    def g(x, n):
        try:
            try:
                raise ValueError(n)
            except ValueError as first:
                raise KeyError(n) from (first if n else None)
        except KeyError as error:
            return x + n, type(error.__context__).__name__, type(error.__cause__).__name__, error.__suppress_context__

    f = C(g)
    return f(X(), 0), f(X(), 1), f(X(), 0)


@probe
def test_exception_object_used_twice(C):
    error = ValueError(1)

    def g(x):
        try:
            raise error
        except ValueError as e:
            e.args = (*e.args, len(e.args))
            return x + len(e.args), e is error, e.__traceback__ is not None

    f = C(g)
    seen = [f(X())]
    error.args = ()
    return seen, f(X()), error.args


@probe
def test_deleted_in_a_loop(C):
    d = {i: i for i in range(4)}

    def g(x, d):
        for key in list(d):
            if key % 2:
                del d[key]
            x = x + key
        return x, len(d)

    f = C(g)
    return f(X(), d), f(X(), d), f(X(), {1: 1}), d


@probe
def test_environment(C):
    patch(os, "sep", os.sep)
    os.environ["FRAMEGRAFT_PROBE"] = "1"
    defer(lambda: os.environ.pop("FRAMEGRAFT_PROBE", None))
    f = C(lambda x: (x + len(os.environ.get("FRAMEGRAFT_PROBE", "")), os.getenv("FRAMEGRAFT_PROBE"), "FRAMEGRAFT_PROBE" in os.environ))
    seen = [f(X())]
    os.environ["FRAMEGRAFT_PROBE"] = "22"
    seen.append(f(X()))
    del os.environ["FRAMEGRAFT_PROBE"]
    return seen, f(X())


@probe
def test_own_random_state(C):
    rng = random.Random(3)
    f = C(lambda x: (x + rng.random(), rng.randint(0, 9), random.choice([1, 2, 3])))
    seen = [f(X()), f(X())]
    rng.seed(3)
    random.setstate(random.getstate())
    return seen, f(X()), rng.random(), random.random()


@probe
def test_own_generator(C):
    rng = torch.Generator().manual_seed(1)
    f = C(lambda x: x + torch.rand(3, generator=rng))
    seen = [f(X()), f(X())]
    rng.manual_seed(1)
    return seen, f(X()), torch.rand(1, generator=rng)


@probe
def test_warning_filter(C):
    def g(x):
        warnings.warn("told", UserWarning, stacklevel=1)
        return x + 1

    f = C(g)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        f(X())
        f(X())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        raised = outcome(lambda: f(X()))[:2]
    return [str(w.message) for w in told], raised


@probe
def test_locale_and_recursion_limit(C):
    f = C(lambda x: (x + 1, locale.getlocale()[0], sys.getrecursionlimit(), threading.current_thread().name))
    seen = [f(X())]
    old = sys.getrecursionlimit()
    defer(lambda: sys.setrecursionlimit(old))
    sys.setrecursionlimit(old + 7)
    name = threading.current_thread().name
    defer(lambda: setattr(threading.current_thread(), "name", name))
    threading.current_thread().name = "renamed"
    return seen, f(X())


@probe
def test_logging_level(C):
    logger = logging.getLogger("framegraft.probe.level")
    heard = []
    handler = logging.Handler()
    handler.emit = lambda record: heard.append(record.getMessage())  # type: ignore[method-assign]
    logger.addHandler(handler)
    defer(lambda: (logger.removeHandler(handler), setattr(logger, "disabled", False)))
    logger.propagate = False
    logger.setLevel(logging.WARNING)

    def g(x):
        logger.info("info %d", 1)
        y = x + 1
        logger.warning("warning %s", "w")
        return y

    f = C(g)
    f(X())
    logger.setLevel(logging.INFO)
    f(X())
    logger.disabled = True
    f(X())
    return heard


@probe
def test_operator_objects(C):
    get = operator.itemgetter(0)
    f = C(lambda x, g: (x + g([5, 6]),))
    seen = [f(X(), get), f(X(), operator.itemgetter(1))]
    return seen, f(X(), lambda v: v[0] + v[1])


@probe
def test_chain_map_and_user_dict(C):
    m = collections.ChainMap({}, {"a": 1})
    u = collections.UserDict(a=1)
    f = C(lambda x: (x + m["a"], u["a"], len(m), list(u)))
    seen = [f(X())]
    m.maps[0]["a"] = 4
    u.data = {"a": 9, "b": 1}
    return seen, f(X())


class Plan:
    def __init__(self, axis):
        self.axis = axis


@probe
def test_cache_with_objects_for_arguments(C):
    @functools.lru_cache(maxsize=None)
    def cached(plan, sizes):
        return [plan.axis * n for n in sizes]

    holder = [Plan(2), Plan(3)]
    f = C(lambda x, k: x * sum(cached(holder[k], (1, (2, 3)[k]))))
    seen = [f(X(), 0), f(X(), 1)]
    holder[0].axis = 7  # the cache keeps its answer
    seen.append(f(X(), 0))
    cached.cache_clear()
    seen.append(f(X(), 0))
    cached(holder[0], (1, 2)).append(100)
    seen.append(f(X(), 0))
    holder[0] = Plan(11)
    seen.append(f(X(), 0))
    gone = weakref.ref(holder[1])
    holder[1] = Plan(12)
    seen.append(gone() is None)
    cached.cache_clear()
    seen += [gone() is None, f(X(), 1), f(X(), 0)]
    return seen
