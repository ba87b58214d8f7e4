"""The package has nothing of torch's own tracer in it, neither in its imports nor in a process that uses it."""

import ast
import pathlib
import subprocess
import sys

import pytest

import framegraft

ROOT = pathlib.Path(framegraft.__file__).parent
ADAPTERS = {"backends/inductor.py"}  # the one place that may need it, because torch._inductor does
BANNED = ("torch._dynamo", "torch._C._dynamo", "torch._C._dynamo.eval_frame")


def modules():
    return sorted(ROOT.rglob("*.py"))


def imported(tree, package):
    """Every module name that an import statement of the tree asks for, relative ones resolved."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")
                base = ".".join(parts[: len(parts) - node.level + 1] + ([base] if base else []))
            yield node.lineno, base
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}"
        elif isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            if name in ("import_module", "__import__") and node.args and isinstance(node.args[0], ast.Constant):
                yield node.lineno, str(node.args[0].value)


@pytest.mark.parametrize("path", modules(), ids=lambda p: p.relative_to(ROOT).as_posix())
def test_no_import(path):
    relative = path.relative_to(ROOT).as_posix()
    package = ".".join(("framegraft", *path.relative_to(ROOT).with_suffix("").parts))
    package = package.rsplit(".", 1)[0]
    tree = ast.parse(path.read_text())
    found = [(line, name) for line, name in imported(tree, package) if name.startswith(BANNED)]
    if relative in ADAPTERS:
        return
    assert not found, f"{relative} imports {found}"


@pytest.mark.parametrize("path", modules(), ids=lambda p: p.relative_to(ROOT).as_posix())
def test_no_attribute_access(path):
    """torch._dynamo reached as an attribute is an import, too."""
    if path.relative_to(ROOT).as_posix() in ADAPTERS:
        return
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and node.attr == "_dynamo" and isinstance(node.value, ast.Name):
            found.append(node.lineno)
    assert not found, f"{path.name} reads ._dynamo at lines {found}"


def fresh(code):
    import os

    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT.parent), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def test_fresh_process_import():
    assert fresh("import framegraft, sys; print([m for m in sys.modules if m.startswith('torch._dynamo')])") == "[]"


CALLS = {
    "function": "f = lambda x: (x * 2).relu().sum()\nargs = (torch.ones(3),)",
    "break": "def f(x):\n    y = x + 1\n    if y.sum() > 0:\n        return y * 2\n    return y\nargs = (torch.ones(3),)",
    "module": "f = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())\nargs = (torch.ones(2, 3),)",
}


@pytest.mark.parametrize("name", CALLS)
def test_fresh_process_call(name):
    out = fresh(
        "import sys, torch, framegraft\n"
        f"{CALLS[name]}\n"
        "c = framegraft.compile(f, backend='eager')\n"
        "assert torch.equal(c(*args), f(*args))\n"
        "print([m for m in sys.modules if m.startswith('torch._dynamo')])"
    )
    assert out == "[]"
