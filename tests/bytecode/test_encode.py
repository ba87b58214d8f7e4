"""Encoding: prefixes, constants, names, parameters, exception and line tables, what cannot be encoded."""

import dis
import math
import operator
import sys
import traceback
import types

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from framegraft.bytecode.code import qualified_name
from framegraft.bytecode.decode import decode
from framegraft.bytecode.encode import encode, hiding, in_order
from framegraft.bytecode.ir import ExceptionHandler, Instruction
from framegraft.bytecode.versions import VERSION

from .canon import again, comparable, remade, run


def template():
    """The docstring."""


def op(name, arg=None, target=None):
    inst = Instruction(name, arg)
    inst.target = target
    return inst


def function(instructions, **changes):
    return types.FunctionType(encode(instructions, template.__code__, **changes), globals())


def const(value):
    return [op("LOAD_CONST", value), op("RETURN_VALUE")]


# -- EXTENDED_ARG


@pytest.mark.parametrize("size", [10, 300, 70_000])
def test_jumps_of_every_width_in_both_directions(size):
    """A loop whose body is `size` additions long, skipped by a condition."""
    end = op("LOAD_FAST", "total")
    top = op("LOAD_FAST", "n")
    step = [op("LOAD_FAST", "n"), op("LOAD_CONST", 1), op("APPLY", (operator.sub, 2)), op("STORE_FAST", "n")]
    body = [op("LOAD_FAST", "total"), op("LOAD_CONST", 1), op("APPLY", (operator.add, 2)), op("STORE_FAST", "total")]
    filler = [inst for _ in range(size // 4) for inst in map(lambda i: op(i.op, i.arg), body)]
    code = [op("LOAD_CONST", 0), op("STORE_FAST", "total"), top, op("POP_JUMP_IF", "false", end), *filler, *step,
            op("JUMP", None, top), end, op("RETURN_VALUE")]
    fn = function(code, argnames=["n"])
    assert fn(3) == 3 * (size // 4)
    prefixes = [inst.arg for inst in dis.get_instructions(fn) if inst.opname == "EXTENDED_ARG"]
    assert bool(prefixes) == (size > 256) and (max(prefixes, default=0) > 0xFF) == (size > 65536)
    assert again(fn.__code__).co_code == fn.__code__.co_code


def test_many_constants_names_and_locals():
    lines = ["def f(x):"]
    lines += [f"    v{i} = x + {i + 0.5}" for i in range(400)]
    lines += ["    return " + " + ".join(f"v{i}" for i in range(400))]
    assert run("\n".join(lines))(1.0) == sum(1.0 + i + 0.5 for i in range(400))
    names = "\n".join(f"n{i} = {i}" for i in range(400)) + "\ndef f():\n    return " + " + ".join(f"n{i}" for i in range(400))
    assert run(names)() == sum(range(400))


def test_a_for_loop_may_jump_backward():
    """FOR_ITER has no backward form: the jump goes by way of a trampoline."""
    done = op("LOAD_FAST", "last")
    top = op("FOR_ITER", None, done)
    code = [op("JUMP", None, (start := op("LOAD_FAST", "items"))), done, op("RETURN_VALUE"),
            start, op("APPLY", (iter, 1)), top, op("STORE_FAST", "last"), op("JUMP", None, top)]
    assert function(code, argnames=["items"])([1, 2, 3]) == 3


@pytest.mark.parametrize("op_name, arg, below, expected", [
    ("MATCH_CLASS", 0, [dict, ()], [(), (), None]),
    ("MATCH_KEYS", None, [("a",)], [None, (1,), None]),
])
def test_a_pattern_without_a_jump_behind_it(op_name, arg, below, expected):
    """As transformed code has it at a break; CPython 3.10 has no single operation for it."""
    body = [op("LOAD_FAST", "subject"), *(op("LOAD_CONST", value) for value in below), op(op_name, arg)]
    if op_name == "MATCH_KEYS":
        body += [op("BUILD_TUPLE", 3), op("LOAD_CONST", 2), op("APPLY", (operator.getitem, 2))]
    body.append(op("RETURN_VALUE"))
    fn = function(body, argnames=["subject"])
    assert [fn(subject) for subject in ({}, {"a": 1}, types.MappingProxyType({}))] == expected
    assert [inst.op for inst in decode(fn.__code__)] == [inst.op for inst in body]


# -- constants


def test_equal_constants_of_different_kinds_stay_apart():
    values = [0, 0.0, -0.0, False, 1, 1.0, True, 1 + 0j, complex(1, -0.0), complex(-0.0, 0), 0j, (0.0,), (-0.0,), (1,), (True,), (1.0,),
              frozenset((1,)), frozenset((True,)), ((0.0, 1),), ((0.0, True),), "1", b"1", None, ..., ()]
    code = [*(op("LOAD_CONST", v) for v in values), op("BUILD_TUPLE", len(values)), op("RETURN_VALUE")]
    found = function(code)()
    assert [(type(v), repr(v)) for v in found] == [(type(v), repr(v)) for v in values]


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(st.recursive(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.complex_numbers(), st.text(), st.binary()),
                             lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=4), max_size=8))
def test_constants_come_back_as_they_are(values):
    code = [*(op("LOAD_CONST", v) for v in values), op("BUILD_TUPLE", len(values)), op("RETURN_VALUE")]
    found = function(code)()
    assert [(type(v), repr(v)) for v in found] == [(type(v), repr(v)) for v in values]


def test_constants_may_be_any_object():
    class Odd:
        __hash__ = None

        def __eq__(self, other):
            raise AssertionError("constants are not compared")

    odd, same, table = Odd(), [1], {}
    found = function([op("LOAD_CONST", odd), op("LOAD_CONST", same), op("LOAD_CONST", table), op("LOAD_CONST", odd),
                      op("BUILD_TUPLE", 4), op("RETURN_VALUE")])()
    assert found[0] is odd and found[1] is same and found[2] is table and found[3] is odd


def test_nans_keep_their_identity():
    first, second = math.nan, float("nan")
    found = function([op("LOAD_CONST", first), op("LOAD_CONST", second), op("BUILD_TUPLE", 2), op("RETURN_VALUE")])()
    assert found[0] is first and found[1] is second


def test_equal_constants_are_kept_once():
    code = function([op("LOAD_CONST", 7.5), op("LOAD_CONST", float("7.5")), op("BUILD_TUPLE", 2), op("RETURN_VALUE")]).__code__
    assert code.co_consts.count(7.5) == 1


def test_the_docstring_stays():
    assert function(const(1)).__doc__ == "The docstring."
    assert remade(template).__doc__ == "The docstring."


# -- parameters, names, flags


def test_argnames_make_all_parameters_positional():
    def original(a, /, b, *rest, c, **more):
        return a, b, rest, c, more

    body = decode(original.__code__)
    code = encode(body, original.__code__, argnames=["a", "b", "c", "rest", "more"])
    assert (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount) == (5, 0, 0)
    assert not code.co_flags & 0x0C
    assert types.FunctionType(code, {})(1, 2, 3, (4,), {"d": 5}) == (1, 2, (4,), 3, {"d": 5})


def test_parameters_stay_without_argnames():
    def original(a, /, b=2, *rest, c=3, **more):
        return a, b, rest, c, more

    assert remade(original)(1, 5, 6, c=7, d=8) == original(1, 5, 6, c=7, d=8)
    assert remade(original)(1) == original(1)


def test_names_and_lines_can_be_replaced():
    code = encode(const(1), template.__code__, name="other", qualname="some.other", firstlineno=77, flags=0x13)
    assert (code.co_name, qualified_name(code), code.co_firstlineno, code.co_flags) == ("other", "some.other", 77, 0x13 | code.co_flags & NOFREE)


def test_closures():
    def outer(x):
        y = x + 1

        def inner():
            nonlocal y
            y += x
            return y

        return inner, lambda: (x, y)

    inner, look = remade(outer)(10)
    assert (inner(), inner(), look()) == (21, 31, (10, 31))


def test_a_cell_that_the_code_installs_itself():
    def original():
        x = 1
        return lambda: x

    body = decode(original.__code__)
    install = [op("LOAD_FAST", "given"), op("STORE_CELL", "x")]
    # `x` is both a cell variable and what STORE_CELL writes: the prologue must not make another cell.
    code = encode([*install, *body[2:]], original.__code__, argnames=["given"], no_make_cell={"x"})
    cell = types.CellType("kept")
    getter = types.FunctionType(code, {})(cell)
    assert getter() == "kept" and getter.__closure__[0] is cell


# -- tables


def test_exception_tables():
    source = """
def f(how):
    seen = []
    for i in range(3):
        try:
            with_value = seen, i
            try:
                if how == i:
                    raise KeyError(i)
                seen.append(i)
            except KeyError as e:
                seen.append(e.args)
                continue
            finally:
                seen.append("finally")
        except ZeroDivisionError:
            pass
        else:
            seen.append("else")
    return seen
"""
    plain = {}
    exec(source, plain)
    for how in range(4):
        assert run(source)(how) == plain["f"](how)


def test_far_away_handlers():
    filler = "\n".join(f"            x = x + {i}" for i in range(5000))
    source = f"""
def f(x):
    try:
        if x:
{filler}
        raise ValueError(x)
    except ValueError as e:
        return e.args[0]
"""
    assert run(source)(1) == 1 + sum(range(5000))
    assert run(source)(0) == 0


def test_exceptions_of_operands_on_the_stack():
    """A handler that keeps entries: the stack is cut to its depth, NULLs counted."""
    source = """
def g(x):
    raise ValueError(x)
def f(log):
    return [log(1, [log(i) for i in (1, 2)], *(log(3),), k=[y for y in [log(4)]]), log(5)]
"""
    calls = []
    assert run(source)(lambda *a, **k: calls.append((a, k)) or len(calls)) == [5, 6]
    assert len(calls) == 6


def test_tracebacks_point_at_the_same_place():
    def original(x):
        y = x
        return (y +
                x.missing(1))

    def shown(fn):
        try:
            fn(1)
        except Exception:
            return traceback.format_exc().replace("in made", "in original").splitlines()[3:]

    assert shown(remade(original)) == shown(original)


def test_positions_of_code_without_columns():
    body = decode(template.__code__)
    for inst in body:
        inst.positions = None
    made = encode(body, template.__code__)
    assert {inst.positions[0] for inst in decode(made)} == {None}
    for inst in body:
        inst.positions = (5, None, None, None)
    made = encode(body, template.__code__, firstlineno=900)
    assert {inst.positions[0] for inst in decode(made)} == {5}


NOFREE = 0x40  # CO_NOFREE, set by CPython itself before 3.11
KEPT = hasattr(types.CodeType, "co_positions")  # else only lines are


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 100_000), st.integers(0, 70), st.integers(0, 300), st.integers(0, 300)), min_size=1, max_size=8),
       st.integers(1, 100_000))
def test_positions_come_back(places, first):
    body = [op("POP_TOP") if i % 2 else op("LOAD_CONST", 1) for i in range(2 * len(places))]
    for inst, (line, lines, column, end) in zip(body[::2], places, strict=True):
        inst.positions = (line, line + lines, column, end if lines else max(column, end)) if KEPT else (line, line, None, None)
    body += const(1)
    made = encode(body, template.__code__, firstlineno=first)
    found = [inst.positions for inst in decode(made)]
    assert [tuple(p) if p else None for p in found[: 2 * len(places) : 2]] == [inst.positions for inst in body[::2][: len(places)]]


# -- what cannot be encoded


def looping():
    inst = op("JUMP")
    inst.target = op("RETURN_VALUE")
    return [inst]


def handled_deeper_than_the_stack():
    load, ret = const(1)
    catch = op("POP_TOP")
    load.handler = ExceptionHandler(catch, 3, False)
    return [load, ret, catch, op("POP_TOP"), op("POP_TOP"), op("POP_TOP"), *const(2)]


@pytest.mark.parametrize("instructions", [
    [],
    [op("LOAD_CONST", 1)],
    [op("POP_TOP"), *const(1)],
    [op("SWAP", 2), *const(1)],
    [op("NO_SUCH_OPERATION"), *const(1)],
    [op("LOAD_CONST", 1), op("APPLY", (len, 1)), op("RETURN_VALUE")],
    [op("LOAD_CONST", 1), op("FORMAT_VALUE", ("x", False)), op("RETURN_VALUE")],
    [op("LOAD_CONST", 1), op("INTRINSIC", "no such"), op("RETURN_VALUE")],
    [op("LOAD_DEREF", "no_such_cell"), op("RETURN_VALUE")],
    [op("LOAD_CONST", 1), op("LIST_APPEND", 1), *const(1)],
    looping(),
    handled_deeper_than_the_stack(),
], ids=lambda instructions: repr(instructions)[:40])
def test_what_cannot_be_encoded(instructions):
    with pytest.raises(ValueError):
        encode(instructions, template.__code__)


def test_depths_that_differ():
    end = op("LOAD_CONST", 1)
    with pytest.raises(ValueError):
        encode([op("LOAD_CONST", 3), op("POP_JUMP_IF", "true", end), op("LOAD_CONST", 2), end, op("RETURN_VALUE")], template.__code__)


def test_unreachable_code_is_left_out():
    code = encode([*const(1), *const("unreachable")], template.__code__)
    assert "unreachable" not in code.co_consts
    assert types.FunctionType(code, {})() == 1


def test_encoding_changes_nothing_but_index():
    body = decode(test_exception_tables.__code__)
    before = [(i.op, i.arg, i.target, i.offset, i.positions, i.handler) for i in body]
    encode(body, test_exception_tables.__code__)
    assert before == [(i.op, i.arg, i.target, i.offset, i.positions, i.handler) for i in body]


# -- calls during which a frame is not seen


def unseen(*told):
    return sys._getframe(1).f_code.co_name, told


def seen(*told):
    return unseen(*told)


def calls_some(x, items):
    local = unseen
    found = [unseen(x if x else seen(x), seen()), local(), (unseen(),)]
    for item in items:
        try:
            found.append(unseen(1 / item))
        except ZeroDivisionError as error:
            found.append(unseen(item, unseen("inner"), len(error.args)))
        finally:
            found.append(seen(item))
    return unseen(found, sys._getframe().f_lineno)


@pytest.mark.skipif(not VERSION.hides, reason="CPython 3.10 shows every frame")
@pytest.mark.parametrize("names", [("unseen",), ("seen",), ("unseen", "local")])
def test_frames_that_are_not_seen(names):
    def run(code, *args):
        return types.FunctionType(code, globals())(*args)

    plain = calls_some.__code__
    made = hiding(plain, names)
    assert comparable(decode(in_order(made))) == comparable(decode(made)), "people see it in order"
    for args in ((1, ()), (0, (1, 0, 2))):
        want, got = repr(run(plain, *args)), repr(run(made, *args))
        assert ("seen",) == names or want != got
        assert want.replace("calls_some", "run") == got.replace("calls_some", "run"), "nothing else is changed"
    again = plain
    for name in names:
        again = hiding(again, (name,))
    assert repr(run(again, 0, (1, 0))) == repr(run(made, 0, (1, 0))), "what was hidden stays hidden"


def test_code_without_such_calls_stays_as_it_is():
    assert hiding(calls_some.__code__, ("other",)) is calls_some.__code__
