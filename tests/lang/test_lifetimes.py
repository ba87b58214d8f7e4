"""Objects die at the instruction at which they die in eager mode, wherever the graph breaks."""

import contextlib
import functools
import gc
import itertools
import sys
import types
import weakref

import pytest
import torch

import framegraft
from framegraft.bytecode import VERSION

from .differential import differential


class Thing:
    def __init__(self, name="thing"):
        self.name = name


class Noisy:
    log: list = []

    def __init__(self, name):
        self.name = name

    def __del__(self):
        Noisy.log.append(self.name)


def heard():
    found, Noisy.log[:] = list(Noisy.log), []
    return found


def make(*names):
    """What only the caller's frame holds."""
    return tuple(Thing(n) for n in names) if len(names) > 1 else Thing(*names)


@differential()
def test_deleted_behind_a_break(x):
    thing = Thing()
    ref = weakref.ref(thing)
    print("break")
    y = x + 1
    del thing
    return y, ref() is None


@differential()
def test_stored_anew_behind_a_break(x):
    thing = Thing()
    ref = weakref.ref(thing)
    print("break")
    first = ref() is None
    thing = x * 2
    return thing, first, ref() is None


@differential()
def test_never_read_again_but_alive(x):
    thing = Thing()
    ref = weakref.ref(thing)
    print("break")
    y = x + 1
    print("again")
    return y, ref() is None


@differential()
def test_alive_until_it_is_stored_anew(x):
    thing = Thing()
    ref = weakref.ref(thing)
    print("one")
    seen = [ref() is None]
    print("two")
    seen.append(ref() is None)
    thing = None
    print("three")
    seen.append(ref() is None)
    return x + 1, seen, thing


@differential()
def test_loop_variables(x):
    refs = []
    seen = []
    for i in range(3):
        thing = Thing(i)
        refs.append(weakref.ref(thing))
        print(i)
        seen.append([r() is None for r in refs])
        x = x + i
    return x, seen, [r() is None for r in refs]


@pytest.mark.skipif(VERSION.name == "3.10", reason="callers keep the arguments")
@differential(xfail_breaks="a frame evaluator is called with the caller's arguments still on its stack (PEP 523)")
def test_arguments_of_a_callee(x):
    def callee(thing, x):
        ref = weakref.ref(thing)
        print("inside")
        del thing
        gone = ref() is None
        print("behind")
        return x + 1, gone

    return callee(x=x, thing=Thing())


@differential()
def test_callee_returns(x):
    def callee(x):
        thing = Thing()
        refs.append(weakref.ref(thing))
        print("inside")
        seen.append(refs[0]() is None)
        return x + 1

    refs, seen = [], []
    y = callee(x)
    seen.append(refs[0]() is None)
    print("outside")
    return y, seen


@differential()
def test_callee_raises(x):
    def callee(x):
        thing = Thing()
        refs.append(weakref.ref(thing))
        print("inside")
        raise ValueError("no")

    refs, seen = [], []
    try:
        callee(x)
    except ValueError as error:
        print("caught", error)
    seen.append(refs[0]() is None)
    print("outside")
    return x + 1, seen


@differential()
def test_values_on_the_stack(x):
    refs = []

    def make(i):
        thing = Thing(i)
        refs.append(weakref.ref(thing))
        print("made", i)
        return thing

    names = [make(0).name, make(1).name + len(refs), (make(2), make(3))[0].name]
    gone = [r() is None for r in refs]
    print("behind")
    return x + 1, names, gone


@differential()
def test_finalisers(x):
    heard()
    a = Noisy("a")
    b = Noisy("b")
    print("break")
    x = x + 1
    del a
    seen = [heard()]
    print("break")
    b = x * 2
    seen.append(heard())
    return b, seen


@differential(lambda: (torch.ones(3), [int, Thing, str]))
def test_a_comprehensions_variable_that_is_a_class(x, classes):
    """A class may tell when it dies. The comprehension runs in the function's frame on 3.12 and later."""
    return [cls for cls in classes if hasattr(cls, "__mro__")], x + 1


@differential()
def test_comprehensions_variables_die_before_the_functions(x):
    heard()
    z = Noisy("z")
    seen = [(n, heard(), print("break")) for z, y in [(Noisy("inner z"), Noisy("inner y"))] for n in range(2)]
    seen.append(heard())
    print("break")
    y = Noisy("y")
    seen.append(heard())
    return x + len(z.name + y.name), seen


@differential()
def test_deleted_once_more(x):
    v = (i for i in range(3))
    for _ in range(2):
        print("break")
        del v
        print("break")
    return x


@differential()
def test_finaliser_of_a_temporary(x):
    heard()
    Noisy("a")
    seen = [heard()]
    y = x + len(Noisy("bc").name)
    seen.append(heard())
    return y, seen


@differential()
def test_callbacks(x):
    log = []
    thing = Thing()
    ref = weakref.ref(thing, lambda r: log.append("gone"))
    print("break")
    y = x + 1
    log.append("before")
    del thing
    log.append("after")
    return y, log, ref() is None


@differential()
def test_proxies(x):
    log = []
    thing, other = Thing(), Thing("other")
    proxy = weakref.proxy(thing, lambda r: log.append("gone"))
    plain = weakref.proxy(other)
    print("break")
    y = x + len(proxy.name) + len(plain.name)
    log.append("before")
    del thing, other
    log.append("after")
    try:
        return y, log, plain.name
    except ReferenceError as error:
        return y, log, str(error)


class Telling(weakref.ref):
    @property
    def __callback__(self):
        raise ValueError


@differential()
def test_a_reference_that_hides_its_callback(x):
    log = []
    thing = Thing()
    ref = Telling(thing, lambda r: log.append("gone"))
    print("break")
    y = x + 1
    del thing
    log.append("after")
    return y, log, ref() is None


@differential()
def test_weak_dictionaries(x):
    table = weakref.WeakKeyDictionary()
    values = weakref.WeakValueDictionary()
    a, b = Thing("a"), Thing("b")
    table[a], table[b] = 1, 2
    values["a"], values["b"] = a, b
    print("break")
    sizes = [len(table), len(values)]
    del a
    sizes += [len(table), len(values)]
    b = None
    sizes += [len(table), len(values)]
    return x + 1, sizes, b


@differential()
def test_cells(x):
    def outer():
        thing = Thing()
        ref = weakref.ref(thing)

        def inner():
            return thing.name

        print("break")
        seen = [inner(), ref() is None]
        del inner
        del thing
        print("again")
        seen.append(ref() is None)
        return seen

    return x + 1, outer()


@differential()
def test_an_iterator_dies_before_the_handler_runs(x):
    def items():
        try:
            yield 1
            yield 2
        finally:
            log.append("closed")

    log = []
    for number in range(2):
        try:
            for item in items():
                print("round", item)
                if number:
                    raise ValueError(item)
                break
            log.append("left")
        except ValueError:
            log.append("caught")
    return x + 1, log


@differential()
def test_generator_closes_when_it_is_dropped(x):
    log = []

    def generate():
        try:
            yield 1
            yield 2
        finally:
            log.append("closed")

    it = generate()
    log.append(next(it))
    print("break")
    y = x + 1
    it = None
    log.append("after")
    return y, log, it


def closing(log):
    try:
        yield from range(5)
    finally:
        log.append("closed")


class Drawing:
    """An iterator in Python that holds a generator."""

    def __init__(self, log):
        self.items = closing(log)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self.items)


DRAWN = {
    "enumerate": enumerate,
    "zip": lambda items: zip(range(9), items, strict=False),
    "map": functools.partial(map, abs),
    "filter": functools.partial(filter, lambda n: n >= 0),
    "chain": lambda items: itertools.chain(items, [1]),
    "islice": lambda items: itertools.islice(items, 4),
    "generator": lambda items: (n + 1 for n in items),
}


@differential(lambda: (torch.ones(2), list(DRAWN)))
def test_generators_close_where_a_loop_over_what_draws_from_them_ends(x, names):
    logs = []
    for name in names:
        log = []
        for _ in DRAWN[name](closing(log)):
            print("break")
            break
        x = x + len(log)
        logs.append((name, list(log)))
    log = []
    for item in Drawing(log):
        print(item)
        if item == 1:
            break
    return x + len(log), logs, list(log)


@differential()
def test_finalisers_of_what_a_dropped_object_holds(x):
    heard()
    items, thing, table, pair = [Noisy("in a list")], Thing(), {"a": [Noisy("in a dict")]}, (Noisy("in a tuple"), 1)
    thing.name = Noisy("in an object")
    noisy = Noisy("in a closure")

    def hold():
        return noisy

    both = Noisy("held twice")
    more = [both]
    print("break")
    x = x + 1
    seen = []
    del items
    seen.append(heard())
    thing = None
    seen.append(heard())
    table = {"b": 1}
    seen.append(heard())
    pair = ()
    seen.append(heard())
    del noisy
    seen.append(heard())
    del hold
    seen.append(heard())
    del more
    seen.append(heard())
    del both
    return x, [*seen, heard()], thing, table, pair


@differential()
def test_exceptions_let_go(x):
    class Failure(Exception):
        pass

    def fail():
        thing = Thing()
        refs.append(weakref.ref(thing))
        raise Failure(thing)

    refs, seen = [], []
    try:
        fail()
    except Failure as error:
        print("caught")
        seen.append(refs[0]() is None)
        x = x + len(error.args)
    seen.append(refs[0]() is None)
    print("behind")
    seen.append(refs[0]() is None)
    return x, seen


@differential()
def test_context_managers_let_go(x):
    @contextlib.contextmanager
    def lend():
        thing = Thing()
        refs.append(weakref.ref(thing))
        yield thing
        print("leaves")

    refs, seen = [], []
    with lend() as thing:
        print("inside")
        name = thing.name
    seen.append(refs[0]() is None)
    thing = None
    seen.append(refs[0]() is None)
    return x + 1, name, seen, thing


@differential()
def test_reference_counts(x):
    thing = Thing()
    print("break")
    y = x + 1
    before = sys.getrefcount(thing)
    other = thing
    print("again", len(other.name))
    after = sys.getrefcount(thing)
    del other
    return y, after - before, sys.getrefcount(thing) - before


@differential()
def test_cycles_are_collected(x):
    thing = Thing()
    thing.self = thing
    ref = weakref.ref(thing)
    print("break")
    y = x + 1
    del thing
    gc.collect()
    return y, ref() is None


@differential(lambda: (torch.ones(2), [Thing("a"), Thing("b")]))
def test_objects_of_the_caller(x, things):
    refs = [weakref.ref(t) for t in things]
    print("break")
    seen = [r() is None for r in refs]
    things.pop()
    seen += [r() is None for r in refs]
    print("again")
    things[:] = []
    seen += [r() is None for r in refs]
    return x + 1, seen


def two(a, b):
    refs = [weakref.ref(a), weakref.ref(b)]
    print("break", end="")
    a = b = None
    print("again", end="")
    return [r() is not None for r in refs]


class Callers:
    """Ways to a callee in C, most of which keep the arguments."""

    plain = staticmethod(lambda f: f(Thing(), Thing()))
    of_tuple = staticmethod(lambda f: f(*(Thing(), Thing())))
    keywords = staticmethod(lambda f: f(b=Thing(), a=Thing()))
    partial = staticmethod(lambda f: functools.partial(f, Thing())(Thing()))
    partial_of_all = staticmethod(lambda f: functools.partial(f)(Thing(), Thing()))
    method = staticmethod(lambda f: types.MethodType(f, Thing())(Thing()))
    partial_of_method = staticmethod(lambda f: functools.partial(types.MethodType(f, Thing()))(Thing()))
    nested = staticmethod(lambda f: [f, functools.partial(types.MethodType(f, Thing()))(Thing())][1])
    mapped = staticmethod(lambda f: list(map(f, [Thing()], [Thing()])))
    starred = staticmethod(lambda f: f(Thing(), *[Thing()]))


@pytest.mark.parametrize("way", [n for n in vars(Callers) if not n.startswith("_")])
def test_callers_keep_what_they_need(way):
    call = getattr(Callers, way)
    want = call(two)
    if way in ("of_tuple", "starred"):  # CPython 3.12 and later unpack the tuple into the frame of a Python function
        want = [True, True]
    got = [call(framegraft.compile(two, backend="eager")) for _ in range(3)]
    assert got == [want] * 3


def test_the_caller_keeps_a_tuple_of_arguments():
    args = (Thing("a"), Thing("b"))
    compiled = framegraft.compile(two, backend="eager")
    for _ in range(3):
        assert compiled(*args) == [True, True]
        assert compiled(*args, **{}) == [True, True]
        assert [t.name for t in args] == ["a", "b"]


class Keeps:
    pass


@differential()
def test_dropped_by_an_object_from_outside(x):
    keeps = Keeps()
    keeps.noisy, keeps.many, keeps.named = Noisy("attribute"), [Noisy("item"), x], {"k": Noisy("value"), "l": 1}
    print("break")
    told = []
    for drop in (lambda: setattr(keeps, "noisy", None), keeps.many.clear, lambda: keeps.named.update(k=x), lambda: delattr(keeps, "named")):
        x = x + 1
        drop()
        told.append((heard(), Noisy.log[:]))
    return x, told


kept_noisy = None


@differential()
def test_dropped_by_a_global(x):
    global kept_noisy
    kept_noisy = Noisy("global")
    print("break")
    x = x + 1
    kept_noisy = 5
    told = heard()
    return x * 2, told


@differential()
def test_inference_mode_is_left_when_it_dies(x):
    keeps = Keeps()
    told = []
    for way in (0, 1, 2):
        mode = torch.inference_mode()
        mode.__enter__()
        y = x + 1
        if way == 0:
            del mode
        elif way == 1:
            mode = None
        else:
            keeps.mode = mode
            del mode
            keeps.mode = None
        told.append((y.is_inference(), torch.is_inference_mode_enabled(), (x * 2).is_inference()))
    return told, y


def test_what_holds_very_many_objects_is_not_walked_through(monkeypatch):
    """A list that grows while it is looked at, as a tracer's events do, would be walked through for ever."""
    from framegraft.interp import letting_go

    looked = []
    monkeypatch.setattr(letting_go, "_tells_itself", lambda value: looked.append(value))
    assert letting_go.tells([[n] for n in range(100_000)])
    assert not letting_go.tells([[n] for n in range(1000)])
    assert len(looked) < 10_000


def read(thing):
    return 1


def after_a_break(thing):
    print("break")
    return 1


class Entered(Noisy):
    def __enter__(self):
        return self

    def __exit__(self, *error):
        Noisy.log.append("left")


@pytest.mark.parametrize("use", [
    lambda: read(Noisy("a")),
    lambda: read(thing=[Noisy("a")]) + read(Noisy("b")),
    lambda: after_a_break(Noisy("a")),
    lambda: len([Noisy("a")]),
    lambda: 1 if Noisy("a") else 2,
    lambda: Noisy("a") is None,
    lambda: max([Noisy("a")], key=read).__class__ is Noisy,
    lambda: sum(read(Noisy(name)) for name in "ab"),
    lambda: [Noisy("a"), Noisy("b")][0].name == "a",
])
def test_used_from_the_stack(use):
    """What no variable holds dies with the instruction that uses it."""

    def f(x):
        x = x + use()
        Noisy.log.append("behind")
        return x * 2

    expected = f(torch.ones(3)), heard()
    compiled = framegraft.compile(f, backend="eager")
    for _ in range(2):
        assert str((compiled(torch.ones(3)), heard())) == str(expected)


@differential()
def test_held_by_what_the_trace_makes(x):
    box = types.SimpleNamespace(one=Noisy("a"), more=[Noisy("b")])
    x = x + 1
    del box
    Noisy.log.append("behind")
    with Entered("c"):
        x = x + 1
    Noisy.log.append("behind")
    for thing in [Noisy("d"), Noisy("e")]:
        x = x + read(thing)
    Noisy.log.append("behind")
    del thing
    return x, heard()
