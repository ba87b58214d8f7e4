"""The catalogue of reasons: every one is raised by its own example, and nothing else is raised."""

import ast
import linecache
import pathlib
import warnings

import pytest
import torch

import framegraft
from framegraft import _native
from framegraft.reasons import REASONS
from framegraft.tools import explain

PACKAGE = pathlib.Path(framegraft.__file__).parent


@pytest.mark.parametrize("id", list(REASONS))
def test_the_example_breaks_for_this_reason(id):
    source = REASONS[id].example
    name = f"<example of {id}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    scope = {"torch": torch, "framegraft": framegraft, "__name__": "example"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(source, name, "exec"), scope)
        f = scope["f"]
        compiled = f if isinstance(f, _native.CompiledFunction) else framegraft.compile(f, backend="eager")
        try:
            compiled(torch.ones(3))
        except Exception as error:
            assert id in ("raised_exception", "fake_tensor_failure"), error
    found = [b for b in explain.status().breaks if b.reason == id]
    assert found, framegraft.break_reasons()
    assert found[0].stack and found[0].stack[-1][0].startswith("<example of") or id in ("random_call", "unknown_c_function")
    assert found[0].why == REASONS[id].why and found[0].hint == REASONS[id].hint


@pytest.mark.parametrize("reason", REASONS.values(), ids=list(REASONS))
def test_words(reason):
    assert reason.why.endswith(".") and reason.hint.endswith((".", "?")) and "\n" not in reason.why + reason.hint
    assert 20 < len(reason.why) < 200 and 10 < len(reason.hint) < 220
    assert "def f(x" in reason.example and reason.example.endswith("\n")


def raised_ids():
    """Ids in the source that are given to GraphBreak, or stand first in a pair of reason and detail."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "GraphBreak" and node.args:
                first = node.args[0]
                for value in (first.body, first.orelse) if isinstance(first, ast.IfExp) else (first,):
                    if isinstance(value, ast.Constant):
                        yield value.value, f"{path.name}:{node.lineno}"


def test_every_id_in_the_source_is_in_the_catalogue():
    unknown = [(id, where) for id, where in raised_ids() if id not in REASONS]
    assert not unknown
