"""What is no compiler's work is refused, never guessed."""

import dis

import pytest
import torch

import framegraft
from framegraft.decompiler import DecompileError, decompile
from framegraft.decompiler.verify import check


def patched(function, old, new):
    """The function's code with one operation's number exchanged."""
    code = bytearray(function.__code__.co_code)
    at = next(i for i in range(0, len(code), 2) if code[i] == dis.opmap[old])
    code[at : at + 2] = bytes(new)
    return function.__code__.replace(co_code=bytes(code))


def two(a, b):
    return a - b


def one(a):
    return a


def store(a):
    b = a
    return b


def test_stack_in_disorder():
    with pytest.raises(DecompileError):
        decompile(patched(store, "STORE_FAST", (dis.opmap.get("COPY") or dis.opmap["DUP_TOP"], 1)))


def test_names_that_are_no_names():
    code = two.__code__.replace(co_varnames=("a-b", "b"))
    with pytest.raises(DecompileError):
        decompile(code)


def test_keywords_as_names():
    with pytest.raises(DecompileError):
        decompile(two.__code__.replace(co_varnames=("class", "b")))


def test_a_different_function_is_no_proof():
    def other(a, b):
        return b - a

    check(two.__code__, two.__code__.replace(co_filename="elsewhere"))
    for code in (other.__code__, store.__code__, (lambda a, c: a - c).__code__):
        with pytest.raises(DecompileError):
            check(two.__code__, code)


def test_handlers_count():
    def plain(f, g):
        f()
        g()

    def first(f, g):
        try:
            f()
        except ValueError:
            pass
        g()

    with pytest.raises(DecompileError):
        check(first.__code__, plain.__code__)


def test_public_names():
    from framegraft.tools import decompile as module

    assert framegraft.decompile is decompile is module.decompile
    assert framegraft.decompile(two) == "def two(a, b):\n    return a - b"
    assert "decompile" in framegraft.__all__
    assert framegraft.errors.DecompileError is DecompileError


def test_constants_without_literals():
    thing = object()
    code = patched(one, "LOAD_FAST", (dis.opmap["LOAD_CONST"], 1)).replace(co_consts=(None, thing))
    assert "'__co_consts[1]'" in decompile(code)


@pytest.mark.parametrize("what", [3, len, torch.nn.Linear, torch.nn.Linear(1, 1)])
def test_what_has_no_code(what):
    with pytest.raises(TypeError, match="decompile takes a function"):
        framegraft.decompile(what)
