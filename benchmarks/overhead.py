"""What a captured call costs on top of its graph, ours next to torch.compile, with a backend that compiles nothing.

Two figures for each program. "call - graph": the captured call less a direct call of the same graph on the same inputs.
"empty graph": the captured call when its graph does nothing but return results computed before; it has less noise.
Programs with several graphs have the second only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import programs
import torch
from harness import arguments, best_of, geometric_mean, load_stock, pinned, print_table, report

import framegraft


class Recorder:
    """A backend that keeps the graph and its inputs; ``empty`` makes each graph a constant."""

    def __init__(self, empty: bool) -> None:
        self.empty = empty
        self.graph: Callable[..., Any] | None = None
        self.inputs: list[Any] = []
        self.count = 0

    def __call__(self, gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        self.count += 1
        self.inputs = list(example_inputs)
        self.graph = gm.forward
        if not self.empty:
            return gm.forward
        results: list[Any] = []

        def constant(*args: Any) -> Any:
            if not results:
                results.append(gm.forward(*args))
            return results[0]

        return constant


Capture = Callable[[Any, Recorder], Callable[..., Any]]
CAPTURES: dict[str, Capture] = {
    "ours": lambda fn, backend: framegraft.compile(fn, backend=backend),
    "stock": lambda fn, backend: torch.compile(fn, backend=backend),
}


def measure(make: Callable[[], programs.Program], batches: int, calls: int) -> dict[str, dict[str, float]]:
    runs: dict[str, Callable[[], Any]] = {}
    recorders = []
    for who, capture in CAPTURES.items():
        for empty in (False, True):
            recorder = Recorder(empty)
            program, args, named = make()
            captured = capture(program, recorder)
            for _ in range(2):
                captured(*args, **named)
            recorders.append((recorder, recorder.count))
            runs[f"{who} {'empty' if empty else 'call'}"] = lambda f=captured, a=args, k=named: f(*a, **k)
            if not empty:
                graph, inputs = recorder.graph, recorder.inputs
                assert graph is not None
                runs[f"{who} graph"] = lambda g=graph, i=inputs: g(*i)
    times = best_of(runs, batches, calls)
    assert all(recorder.count == count for recorder, count in recorders), "compiled again"
    single = all(count == 1 for _, count in recorders)
    return {
        who: {
            "call_s": times[f"{who} call"],
            "empty_graph_s": times[f"{who} empty"],
            **({"graph_s": times[f"{who} graph"], "overhead_s": times[f"{who} call"] - times[f"{who} graph"]} if single else {}),
        }
        for who in CAPTURES
    }


def entries(batches: int, device: str) -> dict[str, dict[str, float]]:
    """Eight entries told apart by the dtype of the argument, used in turn: the one that fits is the last that is looked at."""
    dtypes = (torch.float32, torch.float64, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.float16)
    runs: dict[str, Callable[[], Any]] = {}
    for who, capture in CAPTURES.items():
        captured = capture(programs.fresh(programs.toy), Recorder(True))
        pairs = [(torch.ones(10, dtype=d, device=device), torch.ones(10, dtype=d, device=device)) for d in dtypes]
        for a, b in pairs * 2:
            captured(a, b)

        def run(captured: Any = captured, pairs: list[Any] = pairs) -> None:
            for a, b in pairs:
                captured(a, b)

        runs[who] = run
    times = best_of(runs, batches, 10)
    return {who: {"call_s": seconds / 8, "empty_graph_s": seconds / 8} for who, seconds in times.items()}


def hundred() -> programs.Program:
    options = {f"k{i}": float(i) for i in range(50)}
    return programs.fresh(programs.hundred), (options, [torch.ones(4) for _ in range(50)], torch.ones(4)), {}


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--only", metavar="TEXT", default="", help="programs whose name has this in it")
    options = parser.parse_args()
    pinned()
    load_stock()
    torch.manual_seed(0)
    batches = 20 if options.quick else 300
    x, y = torch.randn(10), torch.randn(10)
    known: dict[str, tuple[Callable[[], programs.Program], int]] = {
        "toy function": (lambda: (programs.fresh(programs.toy), (x, y), {}), 50),
        "toy function with a break": (lambda: (programs.fresh(programs.toy_with_break), (x, y.abs()), {}), 50),
        "break three calls down": (lambda: (programs.fresh(programs.deep_break), (x, y.abs()), {}), 50),
        "64-Linear MLP": (programs.mlp, 5),
        "64 Linear, wrapper subclasses as weights": (programs.wrapped, 5),
        "100 arguments in a dict and a list": (hundred, 5),
    }
    if programs.HAVE_TRANSFORMERS:
        known["BERT, 12 layers"] = (programs.bert, 2)
        known["Llama, 32 layers"] = (programs.llama, 2)
    results: dict[str, Any] = {}
    with torch.no_grad():
        for name, (make, calls) in known.items():
            if options.only in name:
                results[name] = measure(programs.placed(make, options.device), batches if calls > 2 else batches // 3, calls)
        if options.only in "8 entries, the last fits":
            results["8 entries, the last fits"] = entries(batches, options.device)
    rows, ratios = [], []
    for name, found in results.items():
        for figure, label in (("overhead_s", "call - graph"), ("empty_graph_s", "empty graph")):
            if figure not in found["ours"]:
                continue
            ours, stock = found["ours"][figure], found["stock"][figure]
            if figure == "empty_graph_s":
                ratios.append(stock / ours)
            rows.append((f"{name}, {label}", f"{ours * 1e6:.2f} us", f"{stock * 1e6:.2f} us", f"{stock / ours:.1f}x" if ours > 0 else "-"))
    rows.append(("geometric mean, empty graph", "", "", f"{geometric_mean(ratios):.1f}x"))
    print_table(("overhead per call", "ours", "stock", "stock / ours"), rows)
    report("overhead", results, options.json)


if __name__ == "__main__":
    main()
