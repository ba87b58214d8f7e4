"""Parts of torch that are loaded when they are first asked for; what importing the package loads."""

import json
import subprocess
import sys

import pytest

ASK = """
import torch, framegraft
{before}
def f(x):
    return x if torch.onnx.is_in_onnx_export() else x + 1
assert torch.equal(framegraft.compile(f, backend="eager", fullgraph=True)(torch.ones(2)), torch.full((2,), 2.0))
assert "onnx" in torch.__dict__
"""


@pytest.mark.parametrize("before", ["", "import torch.onnx", "framegraft.compile(lambda x: x, backend='eager')(1); import torch.onnx"])
def test_onnx_is_asked_without_a_break(before):
    subprocess.run([sys.executable, "-c", ASK.format(before=before)], check=True, timeout=120)


def test_importing_the_package_loads_little():
    program = "import sys, torch, json; old = set(sys.modules); import framegraft; print(json.dumps(sorted(set(sys.modules) - old)))"
    done = subprocess.run([sys.executable, "-c", program], check=True, timeout=120, capture_output=True, text=True)
    loaded = json.loads(done.stdout)
    assert not [name for name in loaded if name.startswith(("torch.onnx", "torch._inductor", "rich", "framegraft.tools", "framegraft.decomp"))]
