"""Objects whose methods misbehave while guards look at them, and caches that change meanwhile."""

import gc
import threading
import weakref

import pytest

from framegraft import _native

from .build import Compiled, argument, fresh, holds, node, program


def body(x):
    return ("compiled", x)


def plain(x):
    return ("plain", x)


class Raises:
    def __init__(self, error):
        self.error = error

    def __eq__(self, other):
        raise self.error

    def __bool__(self):
        raise self.error

    def __getattr__(self, name):
        raise self.error

    __hash__ = object.__hash__


def guards_that_run_code(value):
    def call(v):
        raise v.error

    return {"EQ": argument(("EQ", value)), "TRUTH": argument(("TRUTH", True)), "PY": argument(("PY", call)),
            "ATTR": program(node("ARG", 0), node("ATTR", "x", ("EQ", 1), parent=0)),
            "PYCALL": program(node("ARG", 0), node("PYCALL", call, ("EQ", 1), parent=0)),
            "KEYS": program(node("ARG", 1, ("KEYS", (value,)))), "HASKEY": program(node("ARG", 2, ("HASKEY", value)))}


class Colliding(Raises):
    def __hash__(self):
        return 1


@pytest.mark.parametrize("kind", ["EQ", "TRUTH", "PY", "ATTR", "PYCALL", "KEYS", "HASKEY"])
def test_errors_count_as_failures(kind):
    value, other = Colliding(ValueError("odd")), Colliding(ValueError("odd"))
    made = guards_that_run_code(value)[kind]
    args = (other, {other: 1}, {Colliding(ValueError("x")): 1})
    assert not made.check(args, holds)
    assert made.explain(args, holds)[0] == 0


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, RecursionError, MemoryError])
@pytest.mark.parametrize("kind", ["EQ", "TRUTH", "PY", "ATTR", "PYCALL", "KEYS", "HASKEY"])
def test_errors_that_nobody_may_swallow(kind, error):
    value, other = Colliding(error()), Colliding(error())
    made = guards_that_run_code(value)[kind]
    args = (other, {other: 1}, {Colliding(error()): 1})
    with pytest.raises(error):
        made.check(args, holds)
    with pytest.raises(error):
        made.explain(args, holds)


def test_an_interrupt_in_a_guard_leaves_the_call():
    made = Compiled(fresh(plain), body)
    _native.add_entry(made.fn.__code__, made.entry(guards=argument(("TRUTH", True))))
    with pytest.raises(KeyboardInterrupt):
        made.call(Raises(KeyboardInterrupt()))
    assert not made.misses
    assert made.call(5) == ("compiled", 5)


def test_a_guard_that_calls_the_function_again():
    made = Compiled(fresh(plain), body)
    depth = []

    def guard(x):
        depth.append(x)
        return len(depth) > 3 or made.call(x) == ("compiled", x)

    _native.add_entry(made.fn.__code__, made.entry(guards=argument(("PY", guard))))
    assert made.call(1) == ("compiled", 1)
    assert len(depth) == 4 and not made.misses


def test_a_guard_that_clears_the_cache():
    made = Compiled(fresh(plain), body)
    code = made.fn.__code__

    def guard(x):
        _native.clear_cache(code)
        gc.collect()
        return x

    _native.add_entry(code, made.entry(guards=argument(("PY", guard))))
    assert made.call(1) == ("compiled", 1) and not made.misses
    assert _native.cache_entries(code) == []
    _native.add_entry(code, made.entry(guards=argument(("PY", guard))))
    assert made.call(0) == ("compiled", 0) and len(made.misses) == 1


def test_a_guard_that_adds_and_removes_entries():
    made = Compiled(fresh(plain), body)
    code = made.fn.__code__
    entries = []

    def guard(x):
        entries.append(made.entry(guards=argument(("EQ", "never"))))
        _native.add_entry(code, entries[-1])
        if len(entries) > 2:
            _native.remove_entry(code, entries[-3])
        return False

    for _ in range(5):
        _native.add_entry(code, made.entry(guards=argument(("PY", guard))))
    wanted = made.entry(guards=argument(("EQ", 1)))
    found = _native.cache_entries(code)
    _native.clear_cache(code)
    for e in [wanted, *reversed(found)]:
        _native.add_entry(code, e)
    assert made.call(1) == ("compiled", 1)
    assert not made.misses, "the entry that fits was there all the time"


def test_a_guard_that_replaces_the_code():
    made = Compiled(fresh(plain), body)
    other = fresh(lambda x: ("other", x)).__code__

    def guard(x):
        made.fn.__code__ = other
        gc.collect()
        return True

    _native.add_entry(made.fn.__code__, made.entry(guards=argument(("PY", guard))))
    assert made.call(1) == ("compiled", 1)


def test_a_keyword_that_replaces_the_code():
    """Binding **kwargs runs the hash of the names, which may be anything."""
    def function(a, **more):
        return a, sorted(more)

    made = Compiled(fresh(function))

    class Name(str):
        def __hash__(self):
            made.fn.__code__ = (lambda a, **k: "replaced").__code__
            gc.collect()
            return str.__hash__(self)

        __eq__ = str.__eq__

    assert made.call(1, **{Name("b"): 2}) in ((1, ["b"]), "replaced")


def test_deleting_what_a_guard_looks_at():
    class Suicidal:
        def __init__(self, table):
            self.table = table

        def __eq__(self, other):
            self.table.clear()
            gc.collect()
            return True

        __hash__ = None

    table = {}
    table["x"] = Suicidal(table)
    made = program(node("ARG", 0), node("KEY", "x", ("EQ", Suicidal({})), parent=0))
    assert made.check((table,), holds)
    assert table == {}


def test_finalizers_that_run_while_guards_let_go():
    events = []

    class Final:
        def __del__(self):
            events.append(_native.cache_entries(made.fn.__code__))
            _native.clear_cache(made.fn.__code__)

    made = Compiled(fresh(plain), body)
    guards = program(node("ARG", 0), node("PYCALL", lambda x: Final(), ("PRESENT", None), parent=0))
    _native.add_entry(made.fn.__code__, made.entry(guards=guards))
    assert made.call(1) == ("compiled", 1)
    assert events


def test_descriptors_and_getattr():
    class Lazy:
        made = 0

        def __getattr__(self, name):
            type(self).made += 1
            return type(self).made

    guards = program(node("ARG", 0), node("ATTR", "x", ("PRESENT", None), parent=0))
    assert guards.check((Lazy(),), holds) and Lazy.made == 1


# -- entries


def test_entries_that_rely_on_the_dead_are_dropped():
    class Thing:
        pass

    made = Compiled(fresh(plain), body)
    thing = Thing()
    _native.add_entry(made.fn.__code__, made.entry(guards=program(node("CONST", thing))))
    _native.add_entry(made.fn.__code__, made.entry(guards=argument(("ID", thing))))
    del thing
    assert made.call(1) == ("compiled", 1)
    assert len(made.misses) == 1 and len(_native.cache_entries(made.fn.__code__)) == 1


def test_the_entry_used_last_comes_first():
    made = Compiled(fresh(plain), body)
    entries = [made.entry(guards=argument(("EQ", i))) for i in range(4)]
    for e in entries:
        _native.add_entry(made.fn.__code__, e)
    for i in (0, 3, 2, 2, 1):
        assert made.call(i) == ("compiled", i)
        assert _native.cache_entries(made.fn.__code__)[0] is entries[i]
    assert sorted(e.hits for e in entries) == [1, 1, 1, 2]
    assert _native.remove_entry(made.fn.__code__, entries[0])
    assert not _native.remove_entry(made.fn.__code__, entries[0])
    assert len(_native.cache_entries(made.fn.__code__)) == 3


def test_entries_belong_to_a_context_and_to_globals():
    one = Compiled(fresh(plain), body)
    other = Compiled(one.fn, lambda x: ("other", x))
    assert one.call(1) == ("compiled", 1) and other.call(1) == ("other", 1)
    assert one.call(1) == ("compiled", 1) and len(one.misses) == len(other.misses) == 1
    import types

    elsewhere = Compiled(types.FunctionType(one.fn.__code__, dict(globals())), ctx=one.ctx)
    assert elsewhere.call(1) == ("plain", 1) and len(elsewhere.misses) == 1


def test_entries_die_with_the_code():
    class Info:
        pass

    made = Compiled(fresh(plain), body)
    info = Info()
    gone = weakref.ref(info)
    _native.add_entry(made.fn.__code__, made.entry(info=info))
    del info
    assert gone() is not None
    made.call = made.fn = None
    gc.collect()
    assert gone() is None


def test_an_entry_lives_while_its_code_runs():
    gone = []

    class Info:
        def __del__(self):
            gone.append(True)

    def function(x):
        _native.clear_cache(code)
        gc.collect()
        assert not gone
        return x

    function.__globals__.update(code=None, gone=gone, gc=gc, _native=_native)
    made = Compiled(fresh(plain), lambda x: (_native.clear_cache(CODE[0]), gc.collect(), list(GONE), x)[2:])
    CODE[:], GONE[:] = [made.fn.__code__], []

    class Told:
        def __del__(self):
            GONE.append("gone")

    _native.add_entry(made.fn.__code__, made.entry(info=Told()))
    assert made.call(7) == ([], 7)
    assert GONE == ["gone"]


CODE, GONE = [], []


def test_removal_while_other_threads_check():
    """Four threads call, two add and evict; every call must give the compiled or the plain result."""
    made = Compiled(fresh(plain), body)
    code = made.fn.__code__
    stop = threading.Event()
    wrong = []

    def guard(x):
        return x % 7 == 0

    def call():
        x = 0
        while not stop.is_set():
            x += 1
            if made.call(x) not in (("compiled", x), ("plain", x)):
                wrong.append(x)

    def churn():
        while not stop.is_set():
            _native.add_entry(code, made.entry(guards=argument(("PY", guard))))
            for entry in _native.cache_entries(code)[3:]:
                _native.remove_entry(code, entry)
            if len(_native.cache_entries(code)) > 2:
                _native.clear_cache(code)

    made.miss = lambda callee, args: None
    made.call = _native.CompiledFunction(made.fn, made.ctx, lambda callee, args: None)
    threads = [threading.Thread(target=t) for t in (call, call, call, call, churn, churn)]
    for t in threads:
        t.start()
    stop.wait(1.0)
    stop.set()
    for t in threads:
        t.join()
    assert not wrong


def test_reordering_hides_no_entry_from_another_check():
    """While a guard of the first entry runs, another call moves the entry that is wanted to the front."""
    made = Compiled(fresh(plain), body)
    code = made.fn.__code__
    once = []

    def guard(x):
        if x == 1 and not once:
            once.append(True)
            assert made.call(1) == ("compiled", 1)
        return False

    wanted = made.entry(guards=argument(("EQ", 1)))
    for entry in (wanted, made.entry(guards=argument(("EQ", 2))), made.entry(guards=argument(("PY", guard)))):
        _native.add_entry(code, entry)
    assert made.call(1) == ("compiled", 1)
    assert not made.misses
