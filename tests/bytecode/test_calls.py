"""Calls: where CPython wants a NULL below the callable, and where canonical code has none."""

import itertools
import types

import pytest

from framegraft.bytecode.decode import decode
from framegraft.bytecode.encode import encode
from framegraft.bytecode.ir import Instruction
from framegraft.bytecode.verify import verify

from .canon import again, remade


def template(a, b):
    pass


def show(*args, **kwargs):
    return args, kwargs


class Thing:
    attribute = staticmethod(show)

    def method(self, *args, **kwargs):
        return show(type(self).__name__, *args, **kwargs)


def op(name, arg=None, target=None):
    inst = Instruction(name, arg)
    inst.target = target
    return inst


def execute(instructions, *args, argnames=("a", "b"), closure=None, **changes):
    code = encode([*instructions, op("RETURN_VALUE")], template.__code__, argnames=list(argnames), **changes)
    again(code)
    verify(decode(code))
    return types.FunctionType(code, globals(), closure=closure)(*args)


def loads(free):
    """Every way to push the callable."""
    return {
        "global": [op("LOAD_GLOBAL", "show")], "local": [op("LOAD_FAST", "a")], "constant": [op("LOAD_CONST", show)],
        "free": [op("LOAD_DEREF", "free")],
        "method": [op("LOAD_FAST", "b"), op("LOAD_ATTR", "method")], "attribute": [op("LOAD_FAST", "b"), op("LOAD_ATTR", "attribute")],
        "copy": [op("LOAD_FAST", "a"), op("COPY", 1), op("POP_TOP")],
        "swapped": [op("LOAD_FAST", "a"), op("LOAD_CONST", 0), op("SWAP", 2), op("SWAP", 2), op("POP_TOP")],
        "computed": [op("LOAD_CONST", (show,)), op("UNPACK_SEQUENCE", 1)],
        "called": [op("LOAD_CONST", lambda: show), op("CALL", (0, ()))],
    }


@pytest.mark.parametrize("how", list(loads(None)))
@pytest.mark.parametrize("npos, names", list(itertools.product((0, 1, 2, 5), ((), ("k",), ("k", "l")))))
def test_calls(how, npos, names):
    values = [op("LOAD_CONST", i) for i in range(npos + len(names))]
    extra = {"freevars": ("free",), "closure": (types.CellType(show),)} if how == "free" else {}
    found = execute([*loads(None)[how], *values, op("CALL", (npos, names))], show, Thing(), **extra)
    prefix = ("Thing",) if how == "method" else ()
    assert found == ((*prefix, *range(npos)), dict(zip(names, range(npos, npos + len(names)))))


@pytest.mark.parametrize("how", list(loads(None)))
@pytest.mark.parametrize("kwargs", [False, True])
def test_calls_with_stars(how, kwargs):
    values = [op("LOAD_CONST", (1, 2)), *([op("LOAD_CONST", {"k": 3})] if kwargs else [])]
    extra = {"freevars": ("free",), "closure": (types.CellType(show),)} if how == "free" else {}
    found = execute([*loads(None)[how], *values, op("CALL_EX", kwargs)], show, Thing(), **extra)
    prefix = ("Thing",) if how == "method" else ()
    assert found == ((*prefix, 1, 2), {"k": 3} if kwargs else {})


def test_entries_below_a_call_are_reached_across_its_null():
    """COPY and SWAP count canonical entries; those between may have a NULL below."""
    found = execute([
        op("LOAD_CONST", "low"), op("LOAD_GLOBAL", "show"), op("LOAD_CONST", 1), op("COPY", 3), op("CALL", (2, ())),
        op("BUILD_TUPLE", 2)], show, None)
    assert found == ("low", ((1, "low"), {}))


def test_swapping_across_nested_calls():
    found = execute([
        op("LOAD_CONST", "low"), op("LOAD_GLOBAL", "show"), op("LOAD_GLOBAL", "show"), op("LOAD_CONST", "x"),
        op("SWAP", 4), op("CALL", (1, ())), op("CALL", (1, ())), op("BUILD_TUPLE", 2)], None, None)
    assert found == ("x", (((("low",), {}),), {}))


def test_a_conditional_callable():
    other, call = op("LOAD_FAST", "b"), op("LOAD_CONST", 7)
    found = [op("LOAD_CONST", True), op("POP_JUMP_IF", "false", other), op("LOAD_FAST", "a"), op("JUMP", None, call), other,
             call, op("CALL", (1, ()))]
    assert execute(found, show, None) == ((7,), {})


def test_a_conditional_callable_of_two_kinds():
    """One way loads a method, the other a local: both must push the same number of entries."""
    other, call = op("LOAD_FAST", "a"), op("LOAD_CONST", 7)
    found = [op("LOAD_FAST", "b"), op("POP_JUMP_IF", "false", other), op("LOAD_FAST", "b"), op("LOAD_ATTR", "method"),
             op("JUMP", None, call), other, call, op("CALL", (1, ()))]
    assert execute(found, show, Thing()) == (("Thing", 7), {})
    assert execute(found, show, None) == ((7,), {})


def test_a_load_that_only_some_ways_call():
    """One way calls what was loaded, the other returns it: it can have no NULL."""
    call = op("CALL", (0, ()))
    end = op("RETURN_VALUE")
    found = [op("LOAD_FAST", "a"), op("LOAD_FAST", "b"), op("POP_JUMP_IF", "true", call), op("JUMP", None, end), call, end]
    code = encode(found, template.__code__)
    fn = types.FunctionType(code, {})
    assert fn(show, True) == ((), {}) and fn(show, False) is show


def test_calls_in_try_blocks():
    def original(log):
        out = []
        for i in range(3):
            out.append(log(i, *[log(j) for j in range(i)], **({"k": log(9)} if i else {})))
            try:
                out.append(log(out.pop(), int("x") if i == 1 else int("5")))
            except ValueError as e:
                out.append(log(str(e), k=1))
        return out

    log = lambda *a, **k: (len(a), len(k))
    assert remade(original)(log) == original(log)


def test_methods_builtins_and_class_bodies():
    def original(x):
        class Inner:
            value = x.upper()
            print_ = staticmethod(len)

            @staticmethod
            def made(y=x):
                return y * 2

        return Inner.value, Inner.print_("abc"), Inner.made(), super, sorted({1: 2}.items(), key=lambda kv: kv[0]), f"{x!r:>5}"

    assert remade(original)("a") == original("a")


def test_decorators_call_with_no_null():
    def original(f):
        @f
        @f
        def g():
            pass

        return g

    assert remade(original)(lambda g: (g,))[0][0].__name__ == "g"


def test_with_statements():
    def original(log):
        class M:
            def __enter__(self):
                log("enter")
                return self

            def __exit__(self, *exc):
                log(exc[0])
                return exc[0] is KeyError

        with M() as m, M():
            log(m.__class__.__name__)
            raise KeyError
        return log("after")

    seen, expected = [], []
    remade(original)(seen.append)
    original(expected.append)
    assert seen == expected
