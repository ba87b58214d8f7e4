"""Inductor's caches on disk: a second process compiles nothing anew."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

SOURCE = pathlib.Path(__file__).parents[2] / "src"
PROGRAM = """
import json
import torch
import framegraft
from torch._dynamo.utils import counters

def f(x, w):
    return (x * w).sin()

w = torch.ones(4, requires_grad=True)
framegraft.compile(f)(torch.ones(4), w).sum().backward()
print(json.dumps([counters["aot_autograd"]["autograd_cache_hit"], counters["aot_autograd"]["autograd_cache_bypass"], w.grad.tolist()]))
"""


@pytest.mark.inductor
def test_a_second_process_finds_what_the_first_compiled(tmp_path):
    found = []
    for _ in range(2):
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path), "OMP_NUM_THREADS": "1",
                       "PYTHONPATH": f"{SOURCE}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
        done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=280, env=environment)
        assert done.returncode == 0, done.stderr[-2000:]
        found.append(json.loads(done.stdout.splitlines()[-1]))
    (first, *_, gradient), (second, bypassed, again) = found
    assert (first, second, bypassed) == (0, 1, 0) and gradient == again
