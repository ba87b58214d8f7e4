"""Shared by the benchmarks: timing by minima of short batches, a table, and a JSON line."""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch


def best_of(functions: dict[str, Callable[[], Any]], batches: int, calls: int) -> dict[str, float]:
    """Seconds per call of each function: the least of many short batches, in turn, so that drift hits all.

    One call before each batch is not counted: whoever ran before has left other things in the processor's caches.
    """
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(3):
        for run in functions.values():
            run()
    gc.collect()
    gc.disable()
    try:
        for _ in range(batches):
            for name, run in functions.items():
                run()
                start = time.perf_counter_ns()
                for _ in range(calls):
                    run()
                best[name] = min(best[name], (time.perf_counter_ns() - start) / calls)
    finally:
        gc.enable()
    return {name: ns * 1e-9 for name, ns in best.items()}


def print_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    text = [list(map(str, header)), *(list(map(str, row)) for row in rows)]
    widths = [max(len(row[i]) for row in text) for i in range(len(header))]
    text.insert(1, ["-" * width for width in widths])
    for row in text:
        print("  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))))
    print(flush=True)


def report(name: str, results: Any, path: str | None) -> None:
    """Print the JSON, and write it to ``path`` if one was given."""
    document = {
        "benchmark": name,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "results": results,
    }
    print(json.dumps(document))
    if path:
        Path(path).write_text(json.dumps(document, indent=1) + "\n")


def pinned() -> None:
    """On one core, with one thread: the scheduler shall not move us about."""
    torch.set_num_threads(1)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def load_stock() -> None:
    """Import all that torch.compile needs. It replaces methods of nn.Module when it is first used; programs that make modules
    as they run would be other programs with that, for us and for it: they are put back."""
    methods = {name: torch.nn.Module.__dict__[name] for name in ("__init__", "__setstate__")}
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(1))
    for name, method in methods.items():
        setattr(torch.nn.Module, name, method)


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def arguments(description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", metavar="FILE", help="write the results there as well")
    parser.add_argument("--device", default="cpu", help="where the tensors are, cuda for instance")
    parser.add_argument("--quick", action="store_true", help="few repetitions: to see that it runs")
    return parser
