"""How long capture takes, ours next to torch.compile with a backend that compiles nothing, and next to tracers of torch.

CPU seconds of the process: other load on the machine hardly moves them. Each figure is the least of several captures of
programs made anew, in turns. "32 layers / 1 layer" is what the layers cost that were seen before.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

import programs
import torch
from harness import arguments, geometric_mean, load_stock, pinned, print_table, report

import framegraft

Run = Callable[[programs.Program], tuple[float, int, int]]  # CPU seconds, graphs, operations


def captured_by(capture: Callable[..., Any], reset: Callable[[], None]) -> Run:
    """The first call less one eager call."""

    def run(program: programs.Program) -> tuple[float, int, int]:
        graphs, operations = 0, 0

        def backend(gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
            nonlocal graphs, operations
            graphs += 1
            operations += sum("call" in node.op for node in gm.graph.nodes)
            return gm.forward

        reset()
        fn, args, named = program
        if torch.cuda.is_initialized():
            fn(*args, **named)  # kernels are loaded when they are first used
        eager = timed(lambda: fn(*args, **named))
        captured = capture(fn, backend=backend)
        return timed(lambda: captured(*args, **named)) - eager, graphs, operations

    return run


def timed(run: Callable[[], Any]) -> float:
    gc.collect()
    start = time.process_time()
    run()
    return time.process_time() - start


def jit_trace(program: programs.Program) -> tuple[float, int, int]:
    fn, args, named = program
    return timed(lambda: torch.jit.trace(fn, args or None, example_kwarg_inputs=named or None, check_trace=False)), 1, 0


def symbolic_trace(program: programs.Program) -> tuple[float, int, int]:
    return timed(lambda: torch.fx.symbolic_trace(program[0])), 1, 0


RUNS: dict[str, Run] = {
    "ours": captured_by(framegraft.compile, framegraft.reset),
    "stock": captured_by(torch.compile, torch.compiler.reset),
    "jit.trace": jit_trace,
    "fx.symbolic_trace": symbolic_trace,
}


def measure(make: Callable[[], programs.Program], repeats: int) -> dict[str, dict[str, Any]]:
    """What each tracer took at its best; a tracer that can't trace the program is left out."""
    best: dict[str, dict[str, Any]] = {}
    failed: set[str] = set()
    for _ in range(repeats):
        for who, run in RUNS.items():
            if who in failed:
                continue
            try:
                seconds, graphs, operations = run(make())
            except Exception:  # noqa: BLE001 - whatever it is, this tracer has no figure here
                if who in ("ours", "stock"):
                    raise
                failed.add(who)
                continue
            if who not in best or seconds < best[who]["seconds"]:
                best[who] = {"seconds": seconds, "graphs": graphs, "operations": operations}
    return best


def row(name: str, found: dict[str, dict[str, Any]]) -> tuple[str, ...]:
    ours, stock = found["ours"], found["stock"]
    times = (f"{found[who]['seconds'] * 1e3:.0f} ms" if who in found else "-" for who in RUNS)
    counts = (f"{f['graphs']}/{f['operations']}" for f in (ours, stock))
    return (name, *counts, *times, f"{stock['seconds'] / ours['seconds']:.1f}x")


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--only", metavar="TEXT", default="", help="programs whose name has this in it")
    options = parser.parse_args()
    pinned()
    load_stock()
    torch.manual_seed(0)
    repeats = 1 if options.quick else 3
    results: dict[str, Any] = {}
    with torch.no_grad():
        for run in RUNS.values():  # imports, caches
            run((torch.nn.Linear(2, 2), (torch.randn(1, 2),), {}))
        for name, make in programs.known().items():
            if options.only in name:
                results[name] = measure(programs.placed(make, options.device), repeats)
    rows = [row(name, found) for name, found in results.items()]
    ratios = [found["stock"]["seconds"] / found["ours"]["seconds"] for found in results.values()]
    empty = ("",) * (len(RUNS) + 2)
    rows.append(("geometric mean", *empty, f"{geometric_mean(ratios):.1f}x"))
    if "1 layer" in results and "32 layers" in results:
        both = (results["32 layers"][who]["seconds"] / results["1 layer"][who]["seconds"] for who in ("ours", "stock"))
        rows.append(("32 layers / 1 layer", "", "", *(f"{ratio:.1f}" for ratio in both), "", "", ""))
    print_table(("capture, CPU time", "our graphs/ops", "stock's", *RUNS, "stock / ours"), rows)
    report("capture", results, options.json)


if __name__ == "__main__":
    main()
