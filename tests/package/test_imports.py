"""What the package imports: nothing of the other capture engine, and nothing inside of functions."""

import ast
import pathlib
import subprocess
import sys

import pytest

import framegraft

PACKAGE = pathlib.Path(framegraft.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
# Imports inside of functions, each with a reason given beside it in the source.
LAZY = {("api.py", "."), ("tensor/fake.py", "torch.nested._internal.nested_tensor"), ("tensor/graph.py", "."),
        ("tensor/fake.py", "torch._functorch.pyfunctorch.temporarily_clear_interpreter_stack")}
FORBIDDEN = ("torch._dynamo", "torch._C._dynamo")


def imports_of(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from ((f"{node.module}.{alias.name}", node) for alias in node.names)


def dotted(node):
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return base and f"{base}.{node.attr}"
    return None


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_no_module_names_the_other_engine(path):
    tree = ast.parse(path.read_text())
    used = [(name, node.lineno) for name, node in imports_of(tree)]
    used += [(name, node.lineno) for node in ast.walk(tree) if isinstance(node, ast.Attribute) and (name := dotted(node))]
    for name, line in used:
        assert not any(name == bad or name.startswith(bad + ".") for bad in FORBIDDEN), f"{path}:{line}: {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_are_at_the_top(path):
    for function in ast.walk(ast.parse(path.read_text())):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for node in ast.walk(function):
                if isinstance(node, (ast.Import, ast.ImportFrom)):
                    names = {name for name, _ in imports_of(node)} or {"." * getattr(node, "level", 0)}
                    known = {name for file, name in LAZY if file == str(path.relative_to(PACKAGE))}
                    assert names <= known, f"{path}:{node.lineno}: import of {names} in a function"


def test_a_capture_leaves_the_other_engine_unloaded():
    program = """
import sys, torch
if "torch._dynamo" in sys.modules:
    print("torch itself"); sys.exit()
import framegraft
assert torch.equal(framegraft.compile(lambda x: x + 1, backend="eager")(torch.ones(2)), torch.full((2,), 2.0))
print("loaded" if "torch._dynamo" in sys.modules else "clean")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1] in ("clean", "itself"), done.stdout


def test_what_an_import_runs_is_not_captured():
    """A checkpoint imports the other engine, and with it what dynamic captures need: these were half-loaded then."""
    program = """
import contextlib, torch, framegraft
from torch.utils.checkpoint import checkpoint
framegraft.config.raise_internal_errors = True

def contexts():
    return contextlib.nullcontext(), contextlib.nullcontext()

@framegraft.compile(backend="eager")
def f(x):
    return checkpoint(lambda x: torch.dropout(x, 0.5, True) * 2, x, use_reentrant=False, context_fn=contexts)

x = torch.ones(64, requires_grad=True)
out = f(x)
out.sum().backward()
assert torch.equal(x.grad, out.detach())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_importing_the_package_loads_no_tracer():
    program = "import sys, torch, framegraft; print([m for m in sys.modules if m.startswith(('framegraft.semantics', 'framegraft.run.convert'))])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["[]"], done.stdout + done.stderr


def test_the_first_capture_leaves_the_garbage_collector_as_it_was():
    """Nothing of what is loaded then is garbage, so that no full collection looks for some."""
    program = """
import gc, torch, framegraft
full = []
gc.callbacks.append(lambda phase, info: full.append(phase) if info["generation"] == 2 else None)
if {disabled}:
    gc.disable()
framegraft.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
print(gc.isenabled(), full)
"""
    for disabled in (True, False):
        done = subprocess.run([sys.executable, "-c", program.format(disabled=disabled)], capture_output=True, text=True)
        assert done.stdout == f"{not disabled} []\n", done.stdout + done.stderr
