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
    "network": (
        "N = torch.nn\n"
        "class Net(N.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.images = N.Sequential(N.Conv2d(3, 4, 3), N.BatchNorm2d(4), N.ReLU(), N.MaxPool2d(2), N.GroupNorm(2, 4))\n"
        "        self.words = N.Embedding(9, 8)\n"
        "        self.norm, self.q, self.kv = N.LayerNorm(8), N.Linear(8, 8), N.Linear(8, 16)\n"
        "    def forward(self, images, words):\n"
        "        mask = torch.tril(torch.ones(5, 5, dtype=torch.bool))\n"
        "        x = self.words(words) + torch.arange(5).float()[:, None] / 5\n"
        "        bias = torch.zeros(5, 5).masked_fill(~mask, float('-inf'))\n"
        "        heads = [t.reshape(2, 5, 2, 4).transpose(1, 2) for t in (self.q(x), *self.kv(x).chunk(2, -1))]\n"
        "        seen = torch.nn.functional.scaled_dot_product_attention(*heads, attn_mask=bias)\n"
        "        x = self.norm(x + seen.transpose(1, 2).reshape(2, 5, 8))\n"
        "        y = self.images(images).flatten(2).mean(-1)\n"
        "        x = torch.cat([x.mean(1), y], 1)[:, torch.tensor([0, 2])]\n"
        "        return torch.where(x > 0, x, 0.1), x.argmax(-1), torch.nn.functional.cross_entropy(x, words[:, 0] % 2)\n"
        "f = Net().eval()\n"
        "args = (torch.ones(2, 3, 8, 8), torch.tensor([[1, 2, 3, 4, 5], [0, 1, 2, 1, 0]]))"
    ),
    "module": "f = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())\nargs = (torch.ones(2, 3),)",
}


@pytest.mark.parametrize("name", CALLS)
def test_fresh_process_call(name):
    out = fresh(
        "import sys, torch, framegraft\n"
        f"{CALLS[name]}\n"
        "c = framegraft.compile(f, backend='eager')\n"
        "with torch.no_grad():\n"
        "    found = c(*args)\n"
        "print([m for m in ('torch._dynamo', 'torch.fx.experimental.symbolic_shapes', 'sympy') if m in sys.modules])\n"
        "with torch.no_grad():\n"
        "    torch.testing.assert_close(found, f(*args), rtol=0, atol=0)"
    )
    assert out == "[]"
