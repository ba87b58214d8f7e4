"""Things that a capture may have looked at without noticing: names of classes, parts of signatures, hooks of classes, caches."""

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
def test_name_of_a_class(C):
    K = cls()
    f = C(lambda x: (x + 1, K.__name__, K.__qualname__, K.__module__))
    seen = [f(X())]
    K.__name__ = "L"
    seen.append(f(X()))
    K.__qualname__ = "M"
    seen.append(f(X()))
    K.__module__ = "n"
    return seen, f(X())


@probe
def test_name_of_the_class_of_an_object(C):
    K = cls()
    f = C(lambda x, o: (x + 1, type(o).__name__, repr(type(o)), f"{o.__class__.__qualname__}"))
    seen = [f(X(), K())]
    K.__name__ = K.__qualname__ = "L"
    return seen, f(X(), K())


@probe
def test_doc_of_a_class(C):
    K = cls(__doc__="one")
    f = C(lambda x: (x + 1, K.__doc__, K().__doc__))
    seen = [f(X())]
    K.__doc__ = "two"
    return seen, f(X())


@probe
def test_annotations_of_a_class(C):
    K = cls(__annotations__={"a": int})
    f = C(lambda x: (x + len(K.__annotations__), list(K.__annotations__)))
    seen = [f(X())]
    K.__annotations__["b"] = str
    return seen, f(X())


@probe
def test_dict_of_a_class(C):
    K = cls(a=1)
    f = C(lambda x: (x + 1, "a" in K.__dict__, [n for n in vars(K) if not n.startswith("__")]))
    seen = [f(X())]
    K.b = 2
    seen.append(f(X()))
    del K.a
    return seen, f(X())


@probe
def test_subclasses_of_a_class(C):
    K = cls()
    f = C(lambda x: (x + len(K.__subclasses__()), [k.__name__ for k in K.__subclasses__()]))
    seen = [f(X())]
    L = type("L", (K,), {})
    return seen, f(X()), L.__name__


@probe
def test_abstract_methods(C):
    class A(abc.ABC):
        @abc.abstractmethod
        def m(self): ...

    class B(A):
        def m(self):
            return 1

    def g(x):
        try:
            return x + B().m()
        except TypeError:
            return x - 1

    f = C(g)
    seen = [f(X())]
    B.__abstractmethods__ = frozenset(["m"])
    return seen, f(X())


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
def test_init_subclass(C):
    log = []

    class K:
        def __init_subclass__(cls, **kwargs):
            log.append(kwargs)

    def g(x):
        class L(K, a=1):
            pass

        return x + len(log)

    f = C(g)
    seen = [f(X()), f(X())]
    K.__init_subclass__ = classmethod(lambda cls, **kwargs: log.extend([1, 2]))
    return seen, f(X()), len(log)


@probe
def test_set_name(C):
    log = []

    class D:
        def __set_name__(self, owner, name):
            log.append(name)

    def g(x):
        class L:
            field = D()

        return x + len(log)

    f = C(g)
    seen = [f(X())]
    D.__set_name__ = lambda self, owner, name: log.extend([name, name])
    return seen, f(X()), log


@probe
def test_class_getitem(C):
    class K:
        def __class_getitem__(cls, key):
            return key * 2

    f = C(lambda x: x + K[2])
    seen = [f(X())]
    K.__class_getitem__ = classmethod(lambda cls, key: key * 3)
    return seen, f(X())


@probe
def test_missing_hook(C):
    class D(dict):
        def __missing__(self, key):
            return 1

    d = D()
    f = C(lambda x: x + d["a"])
    seen = [f(X())]
    D.__missing__ = lambda self, key: 2
    seen.append(f(X()))
    d["a"] = 5
    seen.append(f(X()))
    del d["a"], D.__missing__
    return seen, outcome(lambda: f(X()))


@probe
def test_index_and_float_hooks(C):
    K = cls(__index__=lambda self: 1, __float__=lambda self: 2.0)
    k = K()
    f = C(lambda x: (x * float(k), [10, 20, 30][k], range(5)[k:]))
    seen = [f(X())]
    K.__index__ = lambda self: 2
    K.__float__ = lambda self: 3.0
    return seen, f(X())


@probe
def test_format_hook(C):
    K = cls(__format__=lambda self, spec: f"<{spec}>", __str__=lambda self: "s")
    k = K()
    f = C(lambda x: (x + 1, f"{k:a}", f"{k!s}", str(k)))
    seen = [f(X())]
    K.__format__ = lambda self, spec: f"[{spec}]"
    K.__str__ = lambda self: "t"
    return seen, f(X())


@probe
def test_descriptor_becomes_data(C):
    class D:
        def __get__(self, obj, owner):
            return 10

    class K:
        a = D()

    k = K()
    k.__dict__["a"] = 1
    f = C(lambda x: x + k.a)
    seen = [f(X())]
    D.__set__ = lambda self, obj, value: None
    seen.append(f(X()))
    del D.__set__
    return seen, f(X())


@probe
def test_descriptor_changes_class(C):
    class D:
        def __get__(self, obj, owner):
            return 10

    class E(D):
        def __get__(self, obj, owner):
            return 20

    class K:
        a = D()

    f = C(lambda x: x + K().a)
    seen = [f(X())]
    K.__dict__["a"].__class__ = E
    return seen, f(X())


@probe
def test_class_assigned(C):
    class A:
        n = 1

        def m(self):
            return self.n

    class B:
        n = 2

        def m(self):
            return self.n + 10

    a = A()
    f = C(lambda x: x + a.m())
    seen = [f(X())]
    a.__class__ = B
    return seen, f(X())


@probe
def test_class_of_a_module_assigned(C):
    m = module("a = 1")

    class M(types.ModuleType):
        @property
        def b(self):
            return 5

    f = C(lambda x: x + getattr(m, "b", 2))
    seen = [f(X())]
    m.__class__ = M
    return seen, f(X())


@probe
def test_namespace_replaced_while_held(C):
    K = cls()
    k = K()
    k.a = 1
    held = k.__dict__
    f = C(lambda x: (x + k.a, held["a"]))
    seen = [f(X())]
    k.__dict__ = {"a": 2}
    seen.append(f(X()))
    held["a"] = 7
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
def test_enum_extended(C):
    class E(enum.Enum):
        A = 1

    def g(x, v):
        try:
            return x + 1, E(v).name
        except ValueError:
            return x - 1, [m.name for m in E], len(E), v in E._value2member_map_

    f = C(g)
    seen = [f(X(), 2)]
    made = object.__new__(E)
    made._value_, made._name_ = 2, "B"
    E._member_map_["B"] = made
    E._value2member_map_[2] = made
    E._member_names_.append("B")
    return seen, f(X(), 2)


@probe
def test_enum_member_changed(C):
    class E(enum.Enum):
        A = 1

    f = C(lambda x, e: (x + e.value, e.name, e.extra if hasattr(e, "extra") else None))
    seen = [f(X(), E.A)]
    E.A._value_ = 5
    E.A.extra = 2
    return seen, f(X(), E.A)


@probe
def test_namedtuple_class_changed(C):
    class P(typing.NamedTuple):
        a: int
        b: int = 2

        def total(self):
            return self.a + self.b

    f = C(lambda x: (x + P(1).total(), P(1)._asdict(), P._fields, P._field_defaults))
    seen = [f(X())]
    P.__new__.__defaults__ = (9,)
    P.total = lambda self: self.a
    P._field_defaults["b"] = 3
    return seen, f(X())


@probe
def test_dataclass_machinery(C):
    @dataclasses.dataclass
    class D:
        a: int = 1
        b: list = dataclasses.field(default_factory=list)

    f = C(lambda x: (x + D().a, dataclasses.asdict(D()), [q.name for q in dataclasses.fields(D)], D() == D()))
    seen = [f(X())]
    D.__eq__ = lambda self, other: False
    D.__dataclass_fields__.pop("b")
    D.__init__.__defaults__ = (4, *D.__init__.__defaults__[1:])
    return seen, f(X())


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
def test_copy_hooks(C):
    K = cls(a=1)
    k = K()
    k.b = [1]
    f = C(lambda x: (x + 1, copy.copy(k).b is k.b, copy.deepcopy(k).b))
    seen = [f(X())]
    K.__copy__ = lambda self: types.SimpleNamespace(b=[2])
    K.__deepcopy__ = lambda self, memo: types.SimpleNamespace(b=[3])
    return seen, f(X())


@probe
def test_reduce_hooks(C):
    K = cls()
    k = K()
    k.b = 1
    f = C(lambda x: (x + 1, copy.copy(k).b))
    seen = [f(X())]
    K.__setstate__ = lambda self, state: setattr(self, "b", 8)
    return seen, f(X())


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


@probe
def test_mro_entries_and_prepare(C):
    class Base:
        k = 1

    class Proxy:
        def __mro_entries__(self, bases):
            return (Base,)

    proxy = Proxy()

    def g(x):
        class L(proxy):  # type: ignore[misc]
            pass

        return x + L.k

    f = C(g)
    seen = [f(X())]
    Proxy.__mro_entries__ = lambda self, bases: (type("Other", (), {"k": 5}),)
    return seen, f(X())


@probe
def test_hash_and_equality_of_keys_change(C):
    class K:
        def __init__(self, n):
            self.n = n

        def __hash__(self):
            return 1

        def __eq__(self, other):
            return self.n == other.n

    d = {K(1): 5}
    f = C(lambda x, k: x + d.get(k, 0))
    seen = [f(X(), K(1)), f(X(), K(2))]
    K.__eq__ = lambda self, other: True
    return seen, f(X(), K(2))


@probe
def test_length_hint_and_iteration_hooks(C):
    class K:
        def __getitem__(self, i):
            if i >= 2:
                raise IndexError
            return i

    k = K()
    f = C(lambda x: x + sum(i for i in k))
    seen = [f(X())]
    K.__iter__ = lambda self: iter([10])
    return seen, f(X())


@probe
def test_type_changed_by_the_call_itself(C):
    class A:
        n = 1

    class B:
        n = 2

    def g(x, o):
        first = o.n
        o.__class__ = B
        return x + first, o.n

    f = C(g)
    a = A()
    return f(X(), a), f(X(), a), f(X(), A())
