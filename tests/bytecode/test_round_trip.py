"""decode and encode are inverse on compiled code, and what they make behaves as the original."""

import doctest
import importlib
import inspect
import pathlib
import random
import signal
import sysconfig
import types
import unittest

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from framegraft.bytecode.decode import decode
from framegraft.bytecode.flow import remove_unreachable, stack_depths

from .canon import again, code_objects, deeply, ops

STDLIB = pathlib.Path(sysconfig.get_paths()["stdlib"])
# Modules that between them use every statement, and some large ones; the rest is a sample that never changes.
ALWAYS = ("argparse", "ast", "asyncio/tasks", "contextlib", "dataclasses", "decimal", "_pydecimal", "enum", "inspect", "typing",
          "test/test_generators", "test/test_coroutines", "test/test_patma", "test/test_except_star", "test/test_grammar")


def sample():
    everything = sorted(p for p in STDLIB.rglob("*.py") if not {"site-packages", "lib2to3", "idlelib"} & set(p.parts))
    paths = random.Random(20).sample(everything, 60)
    paths += [p for name in ALWAYS if (p := STDLIB / f"{name}.py").exists()]
    return list(dict.fromkeys(paths))


def compiled(path):
    try:
        return compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return None  # files that are there to be wrong


def source_name(name):
    """Without the number that tells the variables of inlined comprehensions from others."""
    return name.rpartition(".")[0] or name


def parts(count):
    paths = sample()
    return [paths[i::count] for i in range(count)]


@pytest.mark.parametrize("paths", parts(6), ids=lambda paths: paths[0].stem)
def test_standard_library(paths):
    for path in paths:
        module = compiled(path)
        for code in code_objects(module) if module else ():
            made = again(code)
            params = inspect.getargs(code)
            assert inspect.getargs(made) == params
            assert {source_name(name) for name in made.co_varnames} <= set(code.co_varnames)  # in the order of use
            assert made.co_freevars == code.co_freevars
            assert {source_name(name) for name in made.co_cellvars} == set(code.co_cellvars)
            assert (made.co_argcount, made.co_kwonlyargcount, made.co_posonlyargcount, made.co_flags) == (
                code.co_argcount, code.co_kwonlyargcount, code.co_posonlyargcount, code.co_flags)
            assert made.co_stacksize <= code.co_stacksize + 4, code  # a NULL may have to be pushed where none was


def test_lines_stay():
    for path in sample()[:12]:
        for code in code_objects(compiled(path)):
            if not code.co_flags & inspect.CO_OPTIMIZED:
                continue  # a module's RESUME is on line 0, here on line 1
            made = again(code)
            assert {line for _, _, line in made.co_lines() if line} <= {line for _, _, line in code.co_lines() if line}


def test_second_round_gives_the_same_code():
    for path in sample()[:12]:
        for code in code_objects(compiled(path)):
            once = again(code)
            twice = again(once)
            assert once.co_code == twice.co_code
            assert getattr(once, "co_exceptiontable", None) == getattr(twice, "co_exceptiontable", None)  # 3.11 and later
            assert once.co_linetable == twice.co_linetable and once.co_consts == twice.co_consts


def remade_module(name):
    """A module of the standard library, executed from code made anew."""
    original = importlib.import_module(name)
    module = types.ModuleType(name)
    module.__dict__.update({k: v for k, v in original.__dict__.items() if k.startswith("__")})
    exec(deeply(compile(pathlib.Path(original.__file__).read_bytes(), original.__file__, "exec")), module.__dict__)
    return module


@pytest.mark.parametrize("name", ["test.test_generators", "test.test_coroutines", "test.test_patma", "test.test_except_star",
                                  "test.test_with", "test.test_raise", "test.test_extcall", "test.test_unpack_ex"])
def test_cpython_tests_pass_on_code_made_anew(name):
    pytest.importorskip("test.support")
    try:
        module = remade_module(name)
    except ImportError:
        pytest.skip(f"{name} is not installed")
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    if not suite.countTestCases():
        suite.addTests(doctest.DocTestSuite(module))  # as these modules have it before 3.11
    result = unittest.TestResult()
    interrupt = signal.signal(signal.SIGINT, signal.default_int_handler)  # one of the tests sends it; a job in the background ignores it
    try:
        suite.run(result)
    finally:
        signal.signal(signal.SIGINT, interrupt)
    # Lines that hold nothing but NOPs (`pass`) are not traced.
    wrong = [(test.id(), text) for test, text in result.failures + result.errors if "TestTracing" not in test.id()]
    assert not wrong, wrong[0]
    assert result.testsRun > 0


def test_heavy_library_code_runs():
    decimal = remade_module("_pydecimal")
    assert str(decimal.Decimal(2).sqrt()) == "1.414213562373095048801688724"
    assert str((decimal.Decimal("1.1") ** 20).quantize(decimal.Decimal("0.001"))) == "6.727"
    text = remade_module("textwrap").fill("the quick brown fox jumps over the lazy dog", 12)
    assert text == "the quick\nbrown fox\njumps over\nthe lazy dog"
    json = remade_module("json.decoder")
    assert json.JSONDecoder().decode('{"a": [1, 2.5, null, true], "b": "c\\u00e9"}') == {"a": [1, 2.5, None, True], "b": "cé"}


def test_every_operation_of_the_sample_has_a_stack_effect():
    for path in sample()[:20]:
        for code in code_objects(compiled(path)):
            body = remove_unreachable(decode(code))
            assert None not in stack_depths(body), code
            assert max(stack_depths(body)) <= code.co_stacksize + 1  # `a or b` copies


# -- generated programs

names = st.sampled_from(["a", "b", "c"])
atoms = st.one_of(names, st.integers(-3, 300).map(str), st.sampled_from(["0.0", "-0.0", "True", "None", "()", "[]", "'s'"]))


def _expressions(inner):
    return st.one_of(
        st.tuples(inner, st.sampled_from(["-", "%", "==", "is", "in", "and", "or", "<"]), inner).map(lambda t: f"({' '.join(t)})"),
        st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} if {t[1]} else {t[2]})"),
        st.tuples(inner, inner).map(lambda t: f"probe({t[0]}, k={t[1]})"),
        st.tuples(inner, inner).map(lambda t: f"probe(*[{t[0]}], **{{'k': {t[1]}}})"),
        st.tuples(inner, inner).map(lambda t: f"(probe if {t[0]} else other)({t[1]})"),
        st.tuples(inner, inner).map(lambda t: f"({t[0]} < {t[1]} <= {t[0]})"),
        inner.map(lambda e: f"[q for q in [{e}] if q]"),
        inner.map(lambda e: f"f'{{{e}!r:.9}}'"),
        inner.map(lambda e: f"(lambda z={e}: [z is a])()"),
    )


expressions = st.recursive(atoms, _expressions, max_leaves=8)


def _indent(lines):
    return ["    " + line for line in lines]


def _statements(inner):
    block = st.lists(inner, min_size=1, max_size=2).map(lambda parts: _indent(sum(parts, [])))
    return st.one_of(
        st.tuples(expressions, block, block).map(lambda t: [f"if {t[0]}:", *t[1], "else:", *t[2]]),
        st.tuples(names, block).map(lambda t: [f"for {t[0]} in (1, 2):", *t[1]]),
        st.tuples(block, block, block).map(lambda t: ["try:", *t[0], "except TypeError as e:", *t[1], "finally:", *t[2]]),
        st.tuples(block, block).map(lambda t: ["try:", *t[0], "except* (TypeError, ValueError):", *t[1]]),
        st.tuples(expressions, block).map(lambda t: [f"with manager({t[0]}) as c:", *t[1]]),
        st.tuples(names, expressions, block).map(lambda t: [f"match {t[1]}:", *_indent(["case [x, *_] | (x, _):", *_indent(["log(x)"]),
                                                            "case {'k': 1, **rest}:", *_indent(["log(rest)"]), "case _:", *t[2]])]),
        block.map(lambda b: ["while budget():", *b]),
    )


simple = st.one_of(
    st.tuples(names, expressions).map(lambda t: [f"{t[0]} = {t[1]}"]),
    expressions.map(lambda e: [f"log({e})"]),
    expressions.map(lambda e: [f"a, *b = [{e}, 2, 3]"]),
    st.sampled_from([["del c"], ["b -= a"], ["raise ValueError(a)"], ["return b"], ["log(locals().get('c'))"], ["pass"]]),
)
programs = st.lists(st.recursive(simple, _statements, max_leaves=8), min_size=1, max_size=4).map(lambda s: sum(s, []))


class Manager:
    def __init__(self, log, value):
        self.log, self.value = log, value

    def __enter__(self):
        self.log(("enter", repr(self.value)))
        return self.value

    def __exit__(self, kind, value, traceback):
        self.log(("exit", kind))
        return kind is ValueError


def outcome(code):
    """Everything that a run can be told by."""
    seen, left = [], [20]

    def budget():
        left[0] -= 1
        return left[0] > 0

    def log(value):
        if len(seen) < 200:
            seen.append(repr(value))

    namespace = {"log": log, "budget": budget, "manager": lambda value: Manager(log, value),
                 "probe": lambda *args, **kw: (len(args), args[:1] == (1,)), "other": lambda *args: [len(args)]}
    exec(code, namespace)
    try:
        result = repr(namespace["f"](1, 2.0, "c"))
    except Exception as error:
        result = (type(error), str(error), error.__traceback__.tb_next.tb_lineno if error.__traceback__.tb_next else None)
    return result, seen


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(programs)
def test_generated_programs_behave_the_same(lines):
    source = "\n".join(["def f(a, b, c):", *_indent(lines)])
    try:
        code = compile(source, "<generated>", "exec")
    except SyntaxError:
        return  # `return` or `break` inside except*
    assert outcome(deeply(code)) == outcome(code), source


def test_the_generator_covers_the_operations():
    source = "\n".join(["def f(a, b, c):", "    with manager(a) as c:", "        log(*[b], **{'k': c})"])
    assert {"BEFORE_WITH", "CALL_EX", "WITH_EXCEPT_START"} <= set(ops(compile(source, "", "exec").co_consts[0]))
