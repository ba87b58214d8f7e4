"""Imports in captured functions: what they find may change, and so may who looks for it."""

import builtins
import json.tool
import sys
import types
from unittest.mock import patch

import pytest
import torch

import framegraft

X = torch.ones(2)


def dotted(x):
    import json.tool as found

    return found.__name__, x + 1


def top(x):
    import json.tool

    return json.tool.__name__, x + 1


def part(x):
    from json import tool

    return tool.__name__, x + 1


def plain(x):
    import json as found

    return found.__name__, x + 1


def changes_modules(x):
    sys.modules["json"] = types.ModuleType("other")
    try:
        import json as found
    finally:
        sys.modules["json"] = json
    return found.__name__, x + 1


def changes_import(x):
    builtins.__import__ = other_import
    try:
        import json as found
    finally:
        builtins.__import__ = REAL
    return found.__name__, x + 1


REAL = builtins.__import__
OTHER = types.ModuleType("another")


def other_import(name, *args, **kwargs):
    return OTHER if name.startswith("json") else REAL(name, *args, **kwargs)


CHANGES = {
    "nothing": lambda: patch.dict(sys.modules, {}),
    "submodule is None": lambda: patch.dict(sys.modules, {"json.tool": None}),
    "package is None": lambda: patch.dict(sys.modules, {"json": None}),
    "another submodule": lambda: patch.dict(sys.modules, {"json.tool": types.ModuleType("another")}),
    "another package": lambda: patch.dict(sys.modules, {"json": types.ModuleType("another")}),
    "attribute": lambda: patch.object(json, "tool", types.ModuleType("another")),
    "import function": lambda: patch.object(builtins, "__import__", other_import),
}


def told(fn):
    try:
        name, x = fn(X)
    except Exception as error:
        return repr(error)
    return name, x.tolist()


@pytest.mark.parametrize("fn", [dotted, top, part, plain, changes_modules, changes_import])
@pytest.mark.parametrize("first", CHANGES)
def test_imports(fn, first):
    compiled = framegraft.compile(fn, backend="eager")
    for change in (first, *CHANGES, "nothing"):
        with CHANGES[change]():
            expected = told(fn)
        with CHANGES[change]():
            assert told(compiled) == expected, change


def test_relative_imports():
    namespace = {"__package__": "json", "__name__": "somewhere"}
    exec("def fn(x):\n    from . import tool\n    return tool.__name__, x + 1", namespace)
    fn = namespace["fn"]
    compiled = framegraft.compile(fn, backend="eager")
    for package in ("json", "email", "json", None, "", "json"):
        namespace["__package__"] = package
        assert told(compiled) == told(fn), package
