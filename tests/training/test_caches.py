"""Inductor's caches on disk: a second process compiles nothing anew."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
import torch
from torch._inductor.utils import fresh_cache

import framegraft

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


@pytest.mark.inductor
@pytest.mark.parametrize("function", [
    lambda x, number: x.clamp(max=number),
    pytest.param(lambda x, number: x.lerp_(x.cos(), 1 - number), marks=pytest.mark.slow),
    pytest.param(lambda x, number: x.add(x, alpha=number), marks=pytest.mark.slow),
    pytest.param(lambda x, number: torch.where(x > number, x, number), marks=pytest.mark.slow),
])
def test_a_float_that_inductor_takes_for_a_constant(function):
    """The guard that its code needs is known where the code is made; what comes from a cache on disk has none."""
    torch.manual_seed(0)
    x = torch.randn(8)
    with fresh_cache():
        for _ in range(2):
            framegraft.reset()
            compiled = framegraft.compile(function, backend="inductor")
            for number in (0.95, 0.9, 0.85, 0.8):
                torch.testing.assert_close(compiled(x.clone(), number), function(x.clone(), number))
