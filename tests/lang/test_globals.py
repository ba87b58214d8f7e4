"""Globals: read, written, deleted, of other modules; builtins."""

import builtins
import importlib
import sys
import types

import pytest
import torch

import framegraft

from .differential import differential

COUNTER = 0
TABLE = {"calls": 0, "items": [1]}
STATE = None
BUFFER = torch.zeros(3)
other = types.ModuleType("other_for_globals")
other.value = 3


class Registry:
    entries = []


def bump():
    global COUNTER
    COUNTER += 10
    return COUNTER


@differential()
def test_counter(x):
    global COUNTER
    COUNTER += 1
    return x * COUNTER


@differential()
def test_written_in_callee(x):
    global COUNTER
    COUNTER = 1
    a = bump()
    return x * COUNTER, a, COUNTER


@differential()
def test_container_global(x):
    TABLE["calls"] += 1
    TABLE["items"].append(x)
    return len(TABLE["items"]) * x, TABLE["calls"]


@differential()
def test_tensor_stored(x):
    global STATE
    previous = STATE
    STATE = x * 2
    return previous, STATE is not previous, STATE + 1


@differential()
def test_tensor_mutated(x):
    BUFFER.add_(x)
    return BUFFER * 2


@differential()
def test_new_and_deleted(x):
    global FRESH
    had = "FRESH" in globals()
    FRESH = x + 1
    y = FRESH * 2
    del FRESH
    try:
        FRESH
    except NameError as error:
        return y, str(error), had


@differential()
def test_undefined(x):
    return x + never_defined  # noqa: F821


@differential()
def test_order_against_print(x):
    global COUNTER
    COUNTER = 5
    print("before", COUNTER)
    COUNTER = 6
    y = x * COUNTER
    bump()
    print("after", COUNTER)
    return y


@differential(build=True)
def test_other_module():
    m = types.ModuleType("m")
    m.value, m.items = 3, []

    def f(x):
        m.value += 1
        m.items.append(m.value)
        m.fresh = x
        return x * m.value, m.items

    return f


@differential()
def test_builtin_shadowed_by_local(x):
    len = lambda v: 100  # noqa: A001,E731
    return x * len(x), builtins.len(x)


@differential()
def test_globals_function(x):
    g = globals()
    return x * g["COUNTER"], "TABLE" in g, g["__name__"]


@differential()
def test_locals_function(x):
    y = x + 1
    found = locals()
    return sorted(found), found["y"] is y


@differential()
def test_import_inside(x):
    import math
    import os.path as p
    from functools import reduce as r

    return x * math.floor(2.5), r(lambda a, b: a + b, [1, 2]), p.join("a", "b"), "math" in sys.modules


@differential(graphs=1)
def test_imports_by_name(x):
    functional, here = importlib.import_module("torch.nn.functional"), importlib.import_module(".nn", package="torch")
    return functional.relu(x) * importlib.import_module("math").pi, here is torch.nn


@differential()
def test_relative_imports_of_nothing(x):
    try:
        importlib.import_module(".nn")
    except (TypeError, ImportError) as error:
        return x + 1, type(error), str(error)


@differential()
def test_import_error(x):
    try:
        import no_such_module_anywhere  # noqa: F401
    except ImportError as error:
        return x + 1, error.name


@differential(build=True)
def test_class_registry():
    class R:
        entries = []

    def f(x):
        R.entries.append(x.shape)
        R.last = len(R.entries)
        return x * R.last

    return f



RENEWED = """
def main(x):
    global first, second, third
    y = x * first
    del first
    third = 3
    first = 4
    return y + first

def turn(x):
    main(x)
    global second
    del second
    second = 5
    del second
    second = 6
    return x
"""


@pytest.mark.parametrize("name", ["main", "turn"])
def test_names_that_are_deleted_and_set_again_are_the_last_ones(name):
    found = []
    for capture in (lambda f: f, lambda f: framegraft.compile(f, backend="eager")):
        scope = {"first": 1, "second": 2}
        exec(RENEWED, scope)
        capture(scope[name])(torch.ones(2))
        found.append([(k, v) for k, v in scope.items() if isinstance(v, int)])
    assert found[0] == found[1]
