"""A backend that is wrong about one operation: the minifier finds it, and a recording runs without the program."""

import pathlib
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

import torch

import framegraft

torch.manual_seed(0)


def forgets_sqrt(gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> Callable[..., Any]:
    """Takes every square root for the value itself."""
    for node in list(gm.graph.nodes):
        if node.target in (torch.sqrt, "sqrt"):
            node.replace_all_uses_with(node.args[0])
    gm.recompile()
    return gm.forward


def refuses_softmax(gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> Callable[..., Any]:
    if any(node.target is torch.softmax for node in gm.graph.nodes):
        raise NotImplementedError("softmax")
    return gm.forward


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scale = torch.sqrt(torch.full((), float(q.shape[-1])))
    return torch.softmax(q @ k.transpose(-1, -2) / scale, -1) @ v


with tempfile.TemporaryDirectory() as folder:
    torch.manual_seed(0)
    inputs = [torch.randn(2, 4, 8) for _ in range(3)]

    found = framegraft.minify(attention, *inputs, backend=forgets_sqrt, path=f"{folder}/small.py")
    print(f"{found.operations_before} operations became {found.operations}: {found.failure}")
    assert subprocess.run([sys.executable, found.path], stdout=subprocess.DEVNULL).returncode == 1

    framegraft.config.suppress_errors = True
    framegraft.config.repro_directory = f"{folder}/repros"
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        result = framegraft.compile(attention, backend=refuses_softmax)(*inputs)
    print(told[0].message)
    (left,) = pathlib.Path(folder, "repros").iterdir()
    print(sorted(path.name for path in left.iterdir()))
    assert torch.equal(framegraft.replay(left), result)
