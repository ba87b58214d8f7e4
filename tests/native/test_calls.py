"""Calling a CompiledFunction: arguments as Python binds them, errors in Python's words, modes, recursion, callbacks."""

import copy
import functools
import gc
import inspect
import pickle
import sys
import types
import weakref

import pytest

from framegraft import _native

from .build import ALWAYS, Compiled, argument, compiled, fresh, growth, positional


def every_kind(a, /, b, c=3, *rest, d, e=5, **more):
    "Its docstring."
    return a, b, c, rest, d, e, more


def no_stars(a, b=2, *, c=3):
    return a, b, c


def nothing():
    return "nothing"


def keywords_only(*, a, b=2):
    return a, b


def stars_only(*args, **kwargs):
    return args, kwargs


FUNCTIONS = [every_kind, no_stars, nothing, keywords_only, stars_only]
CALLS = [
    ((), {}), ((1,), {}), ((1, 2), {}), ((1, 2, 3), {}), ((1, 2, 3, 4, 5), {}), ((1, 2), {"d": 4}), ((1,), {"b": 2, "d": 4}),
    ((1, 2), {"d": 4, "e": 6, "x": 7}), ((), {"a": 1}), ((1,), {"a": 1, "b": 2, "d": 4}), ((1, 2), {"b": 3, "d": 4}), ((1, 2), {"c": 9}),
    ((1, 2, 3, 4), {"d": 5, "z": 6}), ((), {"a": 1, "b": 2}), ((), {"b": 2}), ((1,), {"nope": 1}), (tuple(range(50)), {"d": 1}),
    ((), {f"k{i}": i for i in range(30)}),
]


def result_of(fn, args, kwargs):
    try:
        return fn(*args, **kwargs)
    except TypeError as error:
        return str(error)


@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda f: f.__name__)
def test_arguments(fn):
    made = Compiled(fresh(fn), fn)
    for args, kwargs in CALLS:
        expected = result_of(made.fn, args, kwargs)
        for _ in range(2):
            assert result_of(made.call, args, kwargs) == expected
        names = {str(k): v for k, v in kwargs.items()}  # names that are not interned
        assert result_of(made.call, args, {"".join(k): v for k, v in names.items()}) == expected
    assert len(made.misses) == 1


def test_the_miss_gets_all_parameters_in_order():
    made = Compiled(fresh(every_kind))
    made.call(1, 2, d=4, z=6)
    assert made.misses == [(1, 2, 3, 4, 5, (), {"z": 6})]


def test_defaults_are_those_of_now():
    made = Compiled(fresh(no_stars))
    assert made.call(1) == (1, 2, 3)
    made.fn.__defaults__ = (20,)
    made.fn.__kwdefaults__ = {"c": 30}
    assert made.call(1) == (1, 20, 30)
    made.fn.__defaults__ = None
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'b'"):
        made.call(1)


def test_keywords_must_be_strings():
    with pytest.raises(TypeError, match="keywords must be strings"):
        compiled(fresh(stars_only))(**{1: 2})


def test_more_parameters_than_anyone_needs():
    names = [f"p{i}" for i in range(300)]
    namespace = {}
    exec(f"def many({', '.join(names)}): return sum([{', '.join(names)}])", namespace)
    made = Compiled(namespace["many"])
    assert made.call(*range(300)) == sum(range(300))
    assert not made.misses, "it runs as it is"
    exec(f"def many({', '.join(names[:255])}): return sum([{', '.join(names[:255])}])", namespace)
    made = Compiled(namespace["many"])
    assert made.call(*range(255)) == sum(range(255)) and made.misses
    assert made.call(*range(254), p254=254) == sum(range(255))


def test_methods_classmethods_and_static_methods():
    class Owner:
        @compiled
        def method(self, x=1):
            return self, x

        @classmethod
        @compiled
        def of_class(cls, x=1):
            return cls, x

        @staticmethod
        @compiled
        def static(x=1):
            return x

        @property
        @compiled
        def computed(self):
            return self

    owner = Owner()
    assert owner.method() == (owner, 1) == Owner.method(owner) and owner.method(x=5) == (owner, 5)
    assert owner.of_class(3) == (Owner, 3) and owner.static(4) == 4 and owner.computed is owner
    assert isinstance(owner.method, types.MethodType) and owner.method.__self__ is owner
    bound = owner.method
    assert bound(2) == (owner, 2)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'self'"):
        Owner.method()


# -- the object


def outer():
    captured = 1

    def closure(x):
        return x + captured

    return closure


def test_attributes_are_those_of_the_function():
    call = compiled(fresh(every_kind))
    assert call.__name__ == "every_kind" and call.__doc__ == "Its docstring." and call.__module__ == __name__
    assert call.__wrapped__.__code__ is call.__code__ and call.__kwdefaults__ == {"e": 5}
    call.__wrapped__.tag = 1
    assert call.tag == 1
    call.other = 2
    assert call.other == 2 and call.__dict__["other"] == 2 and not hasattr(call.__wrapped__, "other")
    call.__name__, call.__doc__ = "renamed", "redocumented"
    assert call.__wrapped__.__name__ == "renamed" and call.__wrapped__.__doc__ == "redocumented"
    with pytest.raises(AttributeError, match="no_such"):
        call.no_such
    del call.other
    assert not hasattr(call, "other")
    assert "every_kind" in repr(compiled(every_kind)) and callable(call) and isinstance(hash(call), int)
    assert inspect.signature(call) == inspect.signature(every_kind)
    assert call.__annotations__ == {} and call.__globals__ is globals()


def test_closures():
    made = Compiled(outer())
    assert made.call(1) == 2
    assert made.call.__closure__[0].cell_contents == 1
    made.call.__closure__[0].cell_contents = 10
    assert made.call(1) == 11


def test_each_function_of_one_code_has_its_own_closure():
    first, second = outer(), outer()
    second.__closure__[0].cell_contents = 100
    one = Compiled(first)
    two = Compiled(second, ctx=one.ctx)
    assert one.call(1) == 2 and two.call(1) == 101 and one.call(1) == 2
    assert not two.misses


def test_code_whose_closure_does_not_fit_is_refused():
    made = Compiled(fresh(nothing))
    code = outer().__code__
    entry = _native.Entry(ALWAYS, code.replace(co_argcount=0, co_varnames=(), co_nlocals=0) if False else code, globals(), made.ctx)
    call = _native.CompiledFunction(fresh(stars_only.__code__ and (lambda x: x)), made.ctx, lambda callee, args: entry)
    with pytest.raises((TypeError, ValueError, SystemError)):
        call(1)


def test_weak_references():
    call = compiled(fresh(nothing))
    assert weakref.ref(call)() is call
    gone = weakref.ref(call)
    del call
    gc.collect()
    assert gone() is None


def test_wraps_and_update_wrapper():
    call = compiled(fresh(every_kind))

    @functools.wraps(call)
    def wrapper(*args, **kwargs):
        return call(*args, **kwargs)

    assert wrapper.__name__ == "every_kind" and inspect.signature(wrapper) == inspect.signature(every_kind)
    assert wrapper(1, 2, d=3) == (1, 2, 3, (), 3, 5, {})


def test_what_users_do_to_wrapped_changes_no_call():
    made = Compiled(fresh(nothing))
    functools.update_wrapper(made.call, no_stars)
    assert made.call() == "nothing"
    made.call.__dict__.clear()
    assert made.call() == "nothing"


@compiled
def at_module_level(x):
    return x


def test_pickling_and_copying():
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(at_module_level, protocol)) is at_module_level
    assert copy.copy(at_module_level) is at_module_level and copy.deepcopy({1: at_module_level})[1] is at_module_level
    local = compiled(fresh(nothing))
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(local)


def test_partial_and_attributes_of_the_type():
    call = functools.partial(compiled(fresh(no_stars)), 1, c=5)
    assert call() == (1, 2, 5) and call(3) == (1, 3, 5)
    with pytest.raises(TypeError):
        _native.CompiledFunction(len, None, None)
    with pytest.raises(TypeError):
        _native.CompiledFunction()
    with pytest.raises(TypeError):
        type("Sub", (_native.CompiledFunction,), {})


# -- modes


@pytest.fixture
def mode():
    old = _native.get_mode()
    yield _native.set_mode
    _native.set_mode(*old)


def test_modes(mode):
    made = Compiled(fresh(nothing), lambda: "compiled")
    mode(2, None, None)
    assert made.call() == "nothing"
    mode(3, None, None)
    assert made.call() == "nothing" and not made.misses
    mode(0, None, None)
    assert made.call() == "compiled"
    mode(3, None, None)
    assert made.call() == "compiled"
    mode(2, None, None)
    assert made.call() == "nothing"


def test_set_mode_gives_back_the_old_one(mode):
    ctx, miss = object(), lambda *a: None
    before = mode(1, ctx, miss)
    assert mode(0, None, None) == (1, ctx, miss)
    assert _native.get_mode() == (0, None, None)
    mode(*before)
    for wrong in ((5, None, None), (-1, None, None), ("x", None, None), (1,)):
        with pytest.raises((TypeError, ValueError)):
            mode(*wrong)


def test_skipped_code(mode):
    made = Compiled(fresh(nothing), lambda: "compiled")
    _native.set_skip(made.fn.__code__, True)
    assert _native.is_skipped(made.fn.__code__) and made.call() == "nothing" and not made.misses
    _native.set_skip(made.fn.__code__, False)
    assert made.call() == "compiled"
    for wrong in (lambda: _native.is_skipped(5), lambda: _native.set_skip(5, True), lambda: _native.clear_cache(None),
                  lambda: _native.cache_entries("x"), lambda: _native.add_entry(made.fn.__code__, 5), lambda: _native.remove_entry(5, 5)):
        with pytest.raises(TypeError):
            wrong()


def test_the_miss_runs_with_capture_off():
    seen = []

    def miss(callee, args):
        seen.append((_native.get_mode(), callee is call, args))

    call = _native.CompiledFunction(fresh(no_stars), None, miss)
    assert call(1) == (1, 2, 3)
    assert seen == [((2, None, None), True, (1, 2, 3))] and _native.get_mode()[0] == 0


def test_exceptions_of_the_miss_leave_the_call():
    def miss(callee, args):
        raise LookupError("no")

    call = _native.CompiledFunction(fresh(nothing), None, miss)
    for _ in range(2):
        with pytest.raises(LookupError):
            call()
    assert _native.get_mode()[0] == 0


@pytest.mark.parametrize("answer", [5, "x", object(), ALWAYS])
def test_the_miss_must_answer_with_an_entry(answer):
    call = _native.CompiledFunction(fresh(nothing), None, lambda callee, args: answer)
    with pytest.raises(TypeError, match="Entry or None"):
        call()


def test_a_miss_that_cannot_be_called():
    with pytest.raises(TypeError):
        _native.CompiledFunction(fresh(nothing), None, 5)()


def test_exceptions_of_compiled_code():
    def boom(x):
        raise ValueError(x)

    made = Compiled(fresh(boom))
    for i in range(3):
        with pytest.raises(ValueError) as caught:
            made.call(i)
        assert caught.value.args == (i,)
    assert len(made.misses) == 1


def test_code_with_other_parameters_is_an_error():
    made = Compiled(fresh(nothing), lambda x: x)
    with pytest.raises(TypeError):
        made.call()


# -- depth


def test_recursion_errors_stay_recursion_errors():
    made = Compiled(fresh(lambda x: RECURSE[0](x + 1)))
    RECURSE[:] = [made.call]
    with pytest.raises(RecursionError):
        made.call(0)
    assert len(made.misses) == 1, "a call that is too deep is no reason to capture again"


def test_endless_recursion_in_guards():
    """When half of the frames are used up, calls run as written."""
    made = Compiled(fresh(lambda x: x))
    entry = made.entry(guards=argument(("PY", lambda x: made.call(x))))
    _native.add_entry(made.fn.__code__, entry)
    assert made.call(1) == 1
    assert not made.misses


def test_deep_recursion_fits_the_stack():
    """As deep as any callable written in C can be nested: some CPythons limit that apart from Python's frames."""
    made = Compiled(fresh(lambda n: n and 1 + RECURSE[0](n - 1)))
    written_in_c = functools.partial(lambda n: n and 1 + RECURSE[0](n - 1))
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(12_000)
    try:
        depth = 5000
        RECURSE[:] = [written_in_c]
        while not fits(written_in_c, depth):
            depth = depth * 3 // 4
        RECURSE[:] = [made.call]
        assert made.call(depth) == depth
    finally:
        sys.setrecursionlimit(limit)


def fits(fn, depth):
    try:
        return fn(depth) == depth
    except RecursionError:
        return False


RECURSE = []


# -- references


@pytest.mark.parametrize("args, kwargs", [((1, 2), {"d": 3}), ((1, 2, 3, 4), {"d": 1, "e": 2, "z": 3}), ((1,), {"b": 2, "d": 3}), ((), {})])
def test_calls_leak_nothing(args, kwargs):
    made = Compiled(fresh(every_kind))
    values = [object() for _ in args]
    counts = lambda: [sys.getrefcount(v) for v in (*values, made.fn, made.ctx, made.call)]

    def run():
        try:
            made.call(*values, **kwargs)
        except TypeError:
            pass

    run()
    before = counts()
    assert growth(run) < 100
    assert counts() == before


def test_misses_leak_nothing():
    call = _native.CompiledFunction(fresh(no_stars), object(), lambda callee, args: None)
    assert growth(lambda: call(1)) < 100


def test_failing_guards_leak_nothing():
    made = argument(("TYPE", int), ("EQ", 10**20))
    values = [10**20, 10**21, 1.5, "x"]

    def run():
        for v in values:
            made.check((v,), run)
            made.explain((v,), run)

    assert growth(run, 3000) < 100


def test_objects_leak_nothing():
    made = Compiled(fresh(nothing))

    def run():
        entry = made.entry()
        _native.add_entry(made.fn.__code__, entry)
        _native.cache_entries(made.fn.__code__)
        _native.remove_entry(made.fn.__code__, entry)
        _native.CompiledFunction(made.fn, None, None).x = 1
        try:
            _native.GuardProgram([(-1, "ARG", 0, [("EQ", [1], 0), ("LEN", "x", 0)])])
        except TypeError:
            pass

    assert growth(run, 300) < 100


def test_errors_leak_nothing():
    call = _native.CompiledFunction(fresh(nothing), None, lambda callee, args: 5)

    def run():
        try:
            call()
        except TypeError:
            pass

    assert growth(run, 3000) < 100


def test_cycles_are_collected():
    def make():
        def function(x):
            return call

        call = _native.CompiledFunction(function, {"self": None}, lambda callee, args: None)
        call.ctx["self"] = call
        call.me = call
        return weakref.ref(call)

    gone = make()
    gc.collect()
    assert gone() is None


def test_positional_code_of_every_kind():
    assert types.FunctionType(positional(every_kind), globals())(1, 2, 3, 4, 5, (6,), {"k": 7}) == (1, 2, 3, (6,), 4, 5, {"k": 7})
