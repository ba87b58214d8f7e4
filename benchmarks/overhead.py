"""What a captured call costs on top of its graph, ours next to torch.compile, with a backend that compiles nothing.

Two figures for each program. "call - graph": the captured call less a direct call of the same graph on the same inputs.
"empty graph": the captured call when its graph does nothing but return results computed before; it has less noise.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import torch
from harness import arguments, best_of, print_table, report
from torch import nn

import framegraft


def toy(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    x = a / (torch.abs(a) + 1)
    return x * b


def fresh(fn: Any) -> Any:
    """The same function with a code object of its own: captures must not share a cache."""
    return types.FunctionType(fn.__code__.replace(), fn.__globals__, fn.__name__)


def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
    for layer in self.layers:
        x = layer(x)
    return x


def mlp() -> nn.Module:
    model = type("MLP", (nn.Module,), {"forward": fresh(forward)})()
    model.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(64))
    return model.eval()


class Recorder:
    """A backend that keeps the graph and its inputs; ``empty`` makes the graph a constant."""

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


def measure(make: Callable[[], Any], args: tuple[Any, ...], batches: int, calls: int) -> dict[str, dict[str, float]]:
    runs: dict[str, Callable[[], Any]] = {}
    recorders = []
    for who, capture in CAPTURES.items():
        for empty in (False, True):
            recorder = Recorder(empty)
            captured = capture(make(), recorder)
            captured(*args)
            captured(*args)
            recorders.append(recorder)
            runs[f"{who} {'empty' if empty else 'call'}"] = lambda f=captured: f(*args)
            if not empty:
                graph, inputs = recorder.graph, recorder.inputs
                assert graph is not None
                runs[f"{who} graph"] = lambda g=graph, i=inputs: g(*i)
    times = best_of(runs, batches, calls)
    assert all(recorder.count == 1 for recorder in recorders), "compiled more than once"
    return {
        who: {
            "call_s": times[f"{who} call"],
            "graph_s": times[f"{who} graph"],
            "overhead_s": times[f"{who} call"] - times[f"{who} graph"],
            "empty_graph_s": times[f"{who} empty"],
        }
        for who in CAPTURES
    }


def main() -> None:
    parser = arguments(__doc__ or "")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    batches = 20 if options.quick else 400
    x = torch.randn(10)
    programs: dict[str, tuple[Callable[[], Any], tuple[Any, ...], int]] = {
        "toy function": (lambda: fresh(toy), (x, torch.randn(10)), 50),
        "64-Linear MLP": (mlp, (torch.randn(1, 8),), 5),
    }
    results: dict[str, Any] = {}
    rows = []
    with torch.no_grad():
        for name, (make, args, calls) in programs.items():
            found = results[name] = measure(make, args, batches, calls)
            for figure, label in (("overhead_s", "call - graph"), ("empty_graph_s", "empty graph")):
                ours, stock = found["ours"][figure], found["stock"][figure]
                ratio = f"{stock / ours:.1f}x" if ours > 0 else "-"
                rows.append((f"{name}, {label}", f"{ours * 1e6:.2f} us", f"{stock * 1e6:.2f} us", ratio))
    print_table(("overhead per call", "ours", "stock", "stock / ours"), rows)
    report("overhead", results, options.json)


if __name__ == "__main__":
    main()
