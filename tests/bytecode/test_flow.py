"""Stack depths, reachability, liveness and the consistency check."""

import operator

import pytest

from framegraft.bytecode.decode import decode
from framegraft.bytecode.flow import live_cells, live_locals, remove_unreachable, renumber, stack_depths, stack_effect
from framegraft.bytecode.ir import ExceptionHandler, Instruction
from framegraft.bytecode.verify import verify


def op(name, arg=None, target=None):
    inst = Instruction(name, arg)
    inst.target = target
    return inst


def at(body, live, name, arg=None):
    """Liveness before the first instruction that fits."""
    return next(names for inst, names in zip(body, live, strict=True) if inst.op == name and arg in (None, inst.arg))


def analysed(f, analysis=live_locals):
    """The instructions of a function and what is live before each."""
    body = decode(f.__code__)
    return body, analysis(body)


def test_live_locals_of_straight_code():
    def f(a, b):
        c = a + b
        d = c
        return d

    body, live = analysed(f)
    assert live[0] == {"a", "b"}
    assert at(body, live, "STORE_FAST", "c") == frozenset()
    assert at(body, live, "LOAD_FAST", "c") == {"c"}
    assert live[-1] == frozenset()


def test_live_locals_of_loops():
    def f(n):
        total = 0
        for i in range(n):
            total = total + i
        return total

    body, live = analysed(f)
    assert at(body, live, "FOR_ITER") == {"total"}
    assert at(body, live, "STORE_FAST", "i") == {"total"}


def test_live_locals_through_handlers():
    """What a handler reads is live wherever an exception may go there, before a store, too."""
    def f(g):
        x = 1
        try:
            x = g()
        except KeyError:
            return x
        return 0

    body, live = analysed(f)
    stores = [names for inst, names in zip(body, live, strict=True) if (inst.op, inst.arg) == ("STORE_FAST", "x")]
    assert "x" in stores[1], "the second store may not be reached: the handler reads the first value"
    assert "x" not in stores[0]


def test_live_locals_of_a_backward_handler():
    """A handler that stands before what it covers takes another sweep."""
    catch = op("POP_TOP")
    start = op("LOAD_FAST", "f")
    call = op("CALL", (0, ()))
    call.handler = ExceptionHandler(catch, 0, False)
    body = renumber([op("JUMP", None, start), catch, op("LOAD_FAST", "kept"), op("RETURN_VALUE"), start, call, op("POP_TOP"),
                     op("LOAD_CONST", None), op("RETURN_VALUE")])
    assert live_locals(body)[0] == {"f", "kept"}


def test_deleting_uses_a_local():
    def f(a):
        del a

    assert "a" in live_locals(decode(f.__code__))[0]


def test_live_cells():
    def f(a):
        b = 1

        def g():
            return a, b

        x = g
        return x

    body, live = analysed(f, live_cells)
    assert live[0] == {"a", "b"}
    assert at(body, live, "STORE_FAST", "x") == frozenset()
    assert at(body, live, "STORE_DEREF", "b") == {"a", "b"}, "a store is a use: the cell may be shared"


def test_stack_depths():
    ret = op("RETURN_VALUE")
    body = renumber([op("LOAD_FAST", "a"), op("COPY", 1), op("POP_JUMP_IF", "true", ret), op("POP_TOP"), op("LOAD_CONST", 1), ret,
                     op("POP_TOP")])
    assert stack_depths(body) == [0, 1, 2, 1, 0, 1, None]


def test_stack_depths_behind_exceptions():
    def f(x):
        for i in x:
            try:
                i()
            except ValueError as e:
                x = e

    body = decode(f.__code__)
    depths = stack_depths(body)
    assert depths[next(i.index for i in body if i.op == "PUSH_EXC_INFO")] == 2  # the iterator and the exception


def test_stack_effects():
    assert stack_effect(op("APPLY", (operator.add, 2)), False) == -1
    assert stack_effect(op("CALL", (2, ("k",))), False) == -3
    assert stack_effect(op("CALL_EX", True), False) == -2
    assert stack_effect(op("UNPACK_EX", (1, 2)), False) == 3
    assert stack_effect(op("FOR_ITER"), True) == -1 and stack_effect(op("FOR_ITER"), False) == 1
    with pytest.raises(ValueError, match="no stack effect"):
        stack_effect(op("NO_SUCH"), False)


def test_remove_unreachable():
    end = op("LOAD_CONST", 2)
    handler = op("POP_TOP")
    start = op("LOAD_CONST", 1)
    start.handler = ExceptionHandler(handler, 0, False)
    body = [start, op("POP_TOP"), op("JUMP", None, end), op("LOAD_CONST", "dead"), op("RETURN_VALUE"), handler, end, op("RETURN_VALUE")]
    left = remove_unreachable(body)
    assert [i.arg for i in left if i.op == "LOAD_CONST"] == [1, 2] and handler in left
    assert [i.index for i in left] == list(range(len(left)))
    assert remove_unreachable([]) == []


def numbered(*instructions):
    return renumber(list(instructions))


def jump_to_nowhere():
    return numbered(op("JUMP", None, op("POP_TOP")))


def wrong_index():
    body = numbered(op("LOAD_CONST", 1), op("RETURN_VALUE"))
    body[1].index = 5
    return body


def deep_handler():
    catch = op("POP_TOP")
    load = op("LOAD_CONST", 1)
    load.handler = ExceptionHandler(catch, 1, False)
    return numbered(load, op("RETURN_VALUE"), catch, op("RETURN_VALUE"))


@pytest.mark.parametrize("body, text", [
    ([], "no instructions"),
    (numbered(op("LOAD_CONST", 1)), "runs off the end"),
    (numbered(op("POP_TOP"), op("LOAD_CONST", 1), op("RETURN_VALUE")), "underflow"),
    (numbered(op("LOAD_CONST", 1), op("COPY", 2), op("RETURN_VALUE")), "underflow"),
    (numbered(op("LOAD_CONST", 1), op("LIST_APPEND", 1), op("LOAD_CONST", 1), op("RETURN_VALUE")), "underflow"),
    (numbered(op("JUMP")), "missing target"),
    (numbered(op("LOAD_CONST", 1, op("POP_TOP")), op("RETURN_VALUE")), "unexpected target"),
    (jump_to_nowhere(), "dangling"),
    (wrong_index(), "wrong index"),
    (deep_handler(), "keeps 1"),
], ids=lambda value: value if isinstance(value, str) else "")
def test_what_verify_refuses(body, text):
    with pytest.raises(ValueError, match=text):
        verify(body)


def test_verify_refuses_depths_that_differ():
    end = op("LOAD_CONST", 1)
    body = numbered(op("LOAD_FAST", "a"), op("POP_JUMP_IF", "true", end), op("LOAD_CONST", 2), end, op("RETURN_VALUE"))
    with pytest.raises(ValueError, match="stack depth"):
        verify(body)


def test_a_condition_in_a_loop_is_covered():
    """CPython 3.13 leaves the jump itself uncovered; what asks for the truth value is covered."""

    def f(items):
        try:
            for item in items:
                if item:
                    raise ValueError(item)
        except KeyError:
            return "caught"

    condition = next(inst for inst in decode(f.__code__) if inst.op == "POP_JUMP_IF")
    assert condition.handler is not None
