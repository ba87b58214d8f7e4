"""Two processes on the CPU, started by torchrun: a captured DistributedDataParallel model trains as it does in eager mode."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
import torch

WORKER = pathlib.Path(__file__).with_name("ddp_worker.py")
SOURCE = WORKER.parents[2] / "src"


def train(backend, *options):
    """{rank: losses and sums of the parameters}, graphs captured, compiled parts of each step's graph."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{SOURCE}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(WORKER), backend, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    results = [json.loads(part.splitlines()[0]) for part in done.stdout.split("RESULT ")[1:]]
    assert len(results) == 2, done.stdout
    return {r["rank"]: r["losses"] for r in results}, min(r["graphs"] for r in results), results[0]["parts"]


@pytest.fixture(scope="module")
def eager():
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        pytest.skip("this torch was built without gloo")
    return train("none")[0]


@pytest.mark.parametrize("backend", ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_losses_as_in_eager_mode(eager, backend):
    losses, graphs, parts = train(backend)
    assert graphs >= 3
    assert parts == ([0] * 10 if backend == "eager" else [1] * 5 + [2] * 5)
    torch.testing.assert_close(losses, eager, rtol=1e-5, atol=1e-6)


def test_graphs_end_where_buckets_do(eager):
    losses, _, parts = train("aot_eager", "split")
    assert parts == [2] * 5 + [3] * 5
    torch.testing.assert_close(losses, eager, rtol=1e-5, atol=1e-6)
