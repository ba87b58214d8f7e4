"""Transformed code and resume functions: their source reads well, and behaves the same in their place."""

import collections
import gc
import re
import sys
import textwrap
import types
import weakref

import pytest
import torch

import framegraft
from framegraft.decompiler import _emitted, decompile
from framegraft.decompiler.resumed import is_resume

from .swap import recompiled, swapping

pytestmark = pytest.mark.filterwarnings("error::SyntaxWarning")  # of source that nobody has written


def say(*args):
    print(*args)


def in_loop(x, n):
    out = []
    for i in range(n):
        x = x + i
        say("i", i)
        out.append(x * 2)
    return out


def in_nested_loops(x, items):
    for k, item in enumerate(items):
        for j in range(2):
            if item > j:
                x = x + 1
                say("in", k, j)
                if item == 3:
                    break
                x = x * 2
        else:
            x = x - 1
            continue
        if k > 2:
            break
    else:
        x = x + 100
    return x


def in_while(x, n):
    while n:
        n -= 1
        x = x + 1
        say(n)
        x = x * 2
    return x


def in_while_with_continue(x, n):
    while n:
        n -= 1
        x = x + 1
        say(n)
        if n == 2:
            continue
        x = x * 2
    else:
        say("else")
    return x


def in_with(x):
    with torch.no_grad():
        y = x * 2
        say("no grad")
        y = y + 1
    return y, torch.is_grad_enabled()


def in_try(x, bad):
    try:
        y = x.sin()
        say("try")
        if bad:
            raise ValueError(bad)
        z = y + 1
    except ValueError as error:
        say("caught", error)
        z = x
    finally:
        say("finally")
    return z


def in_with_that_does_nothing(x, n):
    say("before")
    with torch.no_grad():
        n
    return x + 1, torch.is_grad_enabled()


def in_handler_that_does_nothing(x, n):
    try:
        say("before")
        raise IndexError
    except IndexError as error:
        n = n
    say("behind")
    return x + n


def in_expression(x, d):
    d["a"] = x + 1
    return [x * 2, len(d), say("middle"), {"b": x + 3}], d


def in_closure(x):
    y = x + 1

    def inner(z):
        return y + z

    say("made")
    y = y * 2
    return inner(x)


def in_closure_without_a_value(x):
    def inner():
        return y + 1

    for act in ("load", "call", "delete"):
        try:
            say(act)
            if act == "load":
                x = x + y
            elif act == "call":
                x = x + inner()
            else:
                del y
        except NameError as error:
            say(type(error), error)
    y = x * 2
    say("made")
    return inner() + y


def without_a_value(x, n):
    len([say("begun")])
    if n == 0:
        y = y
    elif n == 1:
        x = say_or_raise(y, say("later"))
    elif n == 2:
        y
    return x


def in_class(x, n):
    say("made")

    class Holder:
        value = n

        def get(self):
            return self.value + n

    n += 1
    return x + Holder().get()


def in_comprehension(x, n):
    return [x + i if say("at", i) else x * i for i in range(n) if i != 1]


def in_handler_in_loop(x, n):
    for i in range(n):
        try:
            x = x / say_or_raise(i)
        except ValueError as error:
            say("caught", error)
            if i == 3:
                break
            continue
        finally:
            say("finally", i)
    else:
        x = -x
    return x


def say_or_raise(i):
    if i % 2:
        raise ValueError(i)
    return i + 1


def closing():
    try:
        yield 1
    finally:
        say("closed")


def starts():
    started = closing()
    next(started)


def values_die(x):
    starts()
    say("behind")
    return x + 1


def in_generator(x):
    def squares(n):
        for i in range(n):
            say("yield", i)
            yield x * i

    return [y + 1 for y in squares(3)]


def branch_on_data(x):
    if x.sum() > 0:
        return x + 1
    return x - 1


CASES = [
    (in_loop, (torch.ones(2), 3)), (in_nested_loops, (torch.ones(2), [1, 2, 3, 4])), (in_while, (torch.ones(2), 4)),
    (in_while_with_continue, (torch.ones(2), 4)),
    (in_class, (torch.ones(2), 3)), (in_comprehension, (torch.ones(2), 4)), (in_handler_in_loop, (torch.ones(2), 6)),
    (in_handler_in_loop, (torch.ones(2), 3)), (values_die, (torch.ones(2),)),
    (in_with, (torch.ones(2),)), (in_with_that_does_nothing, (torch.ones(2), 3)), (in_handler_that_does_nothing, (torch.ones(2), 3)),
    (in_try, (torch.ones(2), 0)), (in_try, (torch.ones(2), 1)), (in_expression, (torch.ones(2), {})),
    (in_closure, (torch.ones(2),)), (in_closure_without_a_value, (torch.ones(2),)), (in_generator, (torch.ones(2),)), (branch_on_data, (torch.ones(2),)),
]


def plain(value):
    return repr(value)


@pytest.mark.parametrize("which", ["transformed", "resumed"])
@pytest.mark.parametrize("n", range(4))
def test_unbound_locals_raise_in_their_order(n, which, capsys):
    def outcome(fn):
        try:
            return plain(fn(torch.ones(2), n)), capsys.readouterr().out
        except UnboundLocalError as error:
            return repr(error), capsys.readouterr().out

    want = outcome(without_a_value)
    with swapping(which):
        compiled = framegraft.compile(without_a_value, backend="eager")
        assert [outcome(compiled), outcome(compiled)] == [want, want]


@pytest.mark.parametrize("which", ["transformed", "resumed"])
@pytest.mark.parametrize("fn,args", CASES, ids=lambda v: getattr(v, "__name__", ""))
def test_behaves(fn, args, which, capsys):
    import copy

    want = plain(fn(*copy.deepcopy(args))), capsys.readouterr().out
    seen = []

    def swap(old, new):
        code = new if which == "transformed" else old
        if which == "resumed" and not is_resume(old):
            return None
        seen.append(code)
        return recompiled(code)

    handle = framegraft.register_bytecode_hook(swap)
    try:
        compiled = framegraft.compile(fn, backend="eager")
        for _ in range(2):
            assert (plain(compiled(*copy.deepcopy(args))), capsys.readouterr().out) == want
    finally:
        handle.remove()
    assert seen or which == "resumed"


def resume_functions(fn, *args):
    seen = []
    handle = framegraft.register_bytecode_hook(lambda old, new: seen.append(old))
    framegraft.compile(fn, backend="eager")(*args)
    handle.remove()
    return [decompile(code) for code in seen if is_resume(code) and code.co_name == fn.__name__]


def test_the_rest_of_a_round_then_the_loop():
    """In front of it, the rest of what had broken the graph: a function that the trace had entered."""
    sources = [re.sub("___1_[a-z_0-9]+|__resume_at_[0-9_]+", "_", source) for source in resume_functions(in_loop, torch.ones(2), 2)]
    assert textwrap.dedent('''\
        def in_loop(___stack0, x, out, i, _, _):
            _(_, _)
            out.append(x * 2)
            for i in (___stack0, (___stack0 := None))[0]:
                x = x + i
                say('i', i)
                out.append(x * 2)
            return out''') in sources


def test_while_goes_on():
    (source, *_) = resume_functions(in_while, torch.ones(2), 3)
    assert "while n:" in source and "__at" not in source


def test_variables_with_given_cells_read_well():
    """What loads the cell's variable is a function of ``runtime`` (on CPython 3.10 a constant of the code)."""
    source = resume_functions(in_closure_without_a_value, torch.ones(2))[-1]
    assert re.search(r"    return inner\(\) \+ \S+\(\w+, 'y'\)$", source)
    assert "lambda" not in source and "y: None" not in source


def test_with_statement_goes_on():
    (source, *_) = resume_functions(in_with, torch.ones(2))
    assert "except BaseException as" in source and "(None, None, None)" in source and "__at" not in source


@pytest.mark.parametrize("fn,args", [c for c in CASES if c[0] not in (in_generator, in_handler_in_loop)], ids=lambda v: getattr(v, "__name__", ""))
def test_no_numbered_pieces(fn, args):
    import copy

    for n in range(2, 30, 3):
        framegraft.reset()
        with framegraft.config.patch(force_break_at=n):
            assert not [s for s in resume_functions(fn, *copy.deepcopy(args)) if "match __at" in s]


def test_a_loop_that_goes_on_reads_well():
    sources = resume_functions(in_comprehension, torch.ones(2), 4) + resume_functions(in_class, torch.ones(2), 3)
    assert not [s for s in sources if "while True" in s or "__advance" in s]


def test_transformed_code_reads_well():
    codes = []
    handle = framegraft.register_bytecode_hook(lambda old, new: codes.append(new))
    framegraft.compile(branch_on_data, backend="eager")(torch.ones(2))
    handle.remove()
    lines = decompile(codes[0]).splitlines()
    assert lines[0] == "def branch_on_data(x):"
    assert lines[2].startswith("    if ") and lines[3].startswith("        return __resume_at_") and lines[4].startswith("    return __resume_at_")


class LetsThrough:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False


def raises_in_with(x):
    y = x + 1
    with LetsThrough():
        try:
            raise KeyError(y.shape)
        except KeyError as error:
            raise ValueError("v") from error


def contexts(error):
    found = []
    while error is not None and len(found) < 9:
        found.append(repr(error))
        error = error.__context__
    return found


@pytest.mark.parametrize("which", ["transformed", "resumed"])
def test_handled_exceptions_are_the_same(which):
    """Wherever a break falls, nothing is being handled that was not before."""

    def swap(old, new):
        if which == "transformed":
            return recompiled(new)
        return recompiled(old) if is_resume(old) else None

    want = ["ValueError('v')", "KeyError(torch.Size([2]))"]
    for n in range(1, 30):
        framegraft.reset()
        handle = framegraft.register_bytecode_hook(swap)
        with framegraft.config.patch(force_break_at=n):
            with pytest.raises(ValueError) as caught:
                framegraft.compile(raises_in_with, backend="eager")(torch.ones(2))
        handle.remove()
        assert contexts(caught.value) == want, n
        assert sys.exc_info() == (None, None, None)


def taking_names(x):
    import os.path as p
    import xml.etree.ElementTree as tree
    from os import path
    from os import sep as s
    return path is p, s, x, tree.__name__


def asking_for_none(x):
    if x is not None:
        return "something"
    return "nothing"


@pytest.mark.parametrize("fn", [taking_names, asking_for_none])
def test_statements_that_need_no_structure(fn):
    """Written as code of the engine's, which is compared with nothing."""
    namespace = {}
    exec(_emitted(fn.__code__, "f", 0), namespace)
    assert [namespace["f"](x) for x in (None, 0, 1)] == [fn(x) for x in (None, 0, 1)]


def asserting_inside(x):
    def shape(a):
        assert a.shape == (2,)  # has names that are none where pytest rewrites it
        return a.sin()

    say("made")
    return shape(x)


def nan_in_a_list(x):
    n = float("nan")
    items = [n, 1.0, n]
    say("made")
    return x + 1, items.index(n), n in items


def unbound_in_a_handler(x):
    try:
        try:
            say("made")
            raise KeyError
        except KeyError:
            y = y  # noqa: F821
    except UnboundLocalError:
        return x + 1


def defined_for_others(x):
    say("first")

    def inner(a):
        return a + x if a is not None else other()

    async def later():
        return inner

    def other():
        return later

    say("then", inner(1))
    return inner(x)


@pytest.mark.parametrize("fn", [asserting_inside, nan_in_a_list, unbound_in_a_handler, defined_for_others])
def test_what_has_no_literal(fn, capsys):
    test_behaves(fn, (torch.ones(2),), "transformed", capsys)
    test_behaves(fn, (torch.ones(2),), "resumed", capsys)


class Held:
    """Something to refer to weakly."""


def lets_go(x, kept):
    held = Held()
    kept.append(weakref.ref(held))
    say("made")
    try:
        say("in")
        raise KeyError(x.shape)
    except KeyError as error:
        say(type(error))
    return x + 1


def lets_go_of_a_callees(x, kept):
    held = Held()
    kept.append(weakref.ref(held))
    say("made")
    try:
        fails(x)
    except ValueError:
        say("caught")
    return x + 1


def fails(x):
    try:
        say("fails")
        raise KeyError(x.shape)
    except KeyError as error:
        say("again")
        raise ValueError(error.args) from error


@pytest.mark.parametrize("which", ["transformed", "resumed"])
@pytest.mark.parametrize("fn", [lets_go, lets_go_of_a_callees])
def test_exceptions_keep_no_frames(fn, which):
    """What handles an exception lets go of it, and so of the frames that it passed."""
    gc.disable()
    try:
        with swapping(which):
            kept = []
            framegraft.compile(fn, backend="eager")(torch.ones(2), kept)
            assert kept[0]() is None
    finally:
        gc.enable()


class Pair(collections.namedtuple("Pair", "left right")):
    def swapped(self):
        return Pair(self.right, self.left)


def in_a_namespace_without_builtins(x):
    return Pair(x, 1).swapped()


@pytest.mark.parametrize("n", range(1, 25, 2))
def test_names_that_nothing_can_import(n):
    """``namedtuple`` makes a ``__new__`` whose globals lack ``__import__``."""
    with swapping("transformed"), framegraft.config.patch(force_break_at=n):
        assert framegraft.compile(in_a_namespace_without_builtins, backend="eager")(2) == (1, 2)


def imports(x):
    import of_this_test_alone  # type: ignore[import-not-found]  # noqa: PLC0415

    return x + of_this_test_alone.n


def test_an_import_that_fails_later(monkeypatch):
    monkeypatch.setitem(sys.modules, "of_this_test_alone", types.SimpleNamespace(n=1))
    with swapping("transformed"):
        compiled = framegraft.compile(imports, backend="eager")
        assert compiled(torch.ones(2))[0] == 2
        monkeypatch.delitem(sys.modules, "of_this_test_alone")
        with pytest.raises(ModuleNotFoundError):
            compiled(torch.ones(2))
