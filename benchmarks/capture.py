"""How long the first call takes: ours next to torch.compile, both with a backend that returns the graph as it is.

Every repetition captures a fresh function or model after a reset; imports are warm. The least of a few counts.
"""

from __future__ import annotations

import gc
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import torch
from harness import arguments, print_table, report
from programs import MLPBlock, fresh
from torch import nn

import framegraft


def mlp_transformer() -> tuple[Any, tuple[Any, ...]]:
    model = nn.Sequential(*(MLPBlock(32) for _ in range(24))).eval()
    return model, (torch.randn(4, 16, 32),)


def thousand_adds() -> tuple[Any, tuple[Any, ...]]:
    def adds(x: torch.Tensor) -> torch.Tensor:
        for _ in range(1000):
            x = torch.add(x, 1)
        return x

    return fresh(adds), (torch.randn(4),)  # a code object of its own each time, so that nothing is found in a cache


def bert() -> tuple[Any, tuple[Any, ...]]:
    import transformers

    config = transformers.BertConfig(
        vocab_size=1000, hidden_size=128, num_hidden_layers=4, num_attention_heads=4, intermediate_size=256
    )
    return transformers.BertModel(config).eval(), (torch.randint(0, 1000, (2, 32)),)


def timed_capture(capture: Callable[..., Any], make: Callable[[], Any]) -> tuple[float, int, int]:
    """Seconds from the first call's start to its end, less one eager call; graphs; operations."""
    graphs, operations = 0, 0

    def backend(gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        nonlocal graphs, operations
        graphs += 1
        operations += sum("call" in node.op for node in gm.graph.nodes)
        return gm.forward

    program, args = make()
    start = time.perf_counter()
    program(*args)
    eager = time.perf_counter() - start
    captured = capture(program, backend=backend)
    gc.collect()
    start = time.perf_counter()
    captured(*args)
    took = time.perf_counter() - start
    return took - eager, graphs, operations


def main() -> None:
    options = arguments(__doc__ or "").parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    repeats = 1 if options.quick else 5
    programs: dict[str, Callable[[], Any]] = {
        "MLP-transformer, 24 blocks": mlp_transformer,
        "1,000 torch.add": thousand_adds,
    }
    if importlib.util.find_spec("transformers"):
        programs["BERT, 4 layers"] = bert
    captures = {
        "ours": (framegraft.compile, framegraft.reset),
        "stock": (torch.compile, torch.compiler.reset),
    }
    results: dict[str, Any] = {}
    rows = []
    with torch.no_grad():
        for capture, _ in captures.values():  # imports
            timed_capture(capture, lambda: (lambda x: x + 1, (torch.randn(2),)))
        for name, make in programs.items():
            best = {who: (float("inf"), 0, 0) for who in captures}
            for _ in range(repeats):
                for who, (capture, reset) in captures.items():
                    reset()
                    best[who] = min(best[who], timed_capture(capture, make))
            results[name] = {
                who: {"seconds": seconds, "graphs": graphs, "operations": operations}
                for who, (seconds, graphs, operations) in best.items()
            }
            ours, stock = best["ours"], best["stock"]
            counts = f"{ours[1]}/{ours[2]}", f"{stock[1]}/{stock[2]}"
            ratio = f"{stock[0] / ours[0]:.1f}x"
            rows.append((name, *counts, f"{ours[0] * 1e3:.1f} ms", f"{stock[0] * 1e3:.1f} ms", ratio))
    header = ("capture time", "our graphs/ops", "stock graphs/ops", "ours", "stock", "stock / ours")
    print_table(header, rows)
    report("capture", results, options.json)


if __name__ == "__main__":
    main()
