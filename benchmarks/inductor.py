#!/usr/bin/env python
"""Steady state behind inductor: calls of models compiled by Framegraft against the same models compiled by ``torch.compile``.

    python benchmarks/inductor.py [--only mlp,conv] [--train] [--batches 60] [--json out.json]

Both get the same compiler, inductor; what differs is what surrounds the compiled graph in each call. Calls alternate in short
batches; of each batch the least time of its calls is kept, and the figure is the ratio of the medians of these. 1.0 is as quick.
"""

from __future__ import annotations

import copy
import gc
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from harness import arguments, load_stock, pinned, print_table, report
from torch import nn

import framegraft


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(128, 64)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True) for _ in range(2))
        self.head = nn.Linear(64, 128)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.gate, self.down = nn.Linear(64, 256), nn.Linear(64, 256), nn.Linear(256, 64)
        self.norm = nn.RMSNorm(64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        return x + self.down(torch.nn.functional.silu(self.gate(y)) * self.up(y))


def mlp() -> nn.Module:
    return nn.Sequential(*[layer for _ in range(6) for layer in (nn.Linear(128, 128), nn.GELU())])


def convolutions() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2),
                         nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))


# name -> model, input
MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], torch.Tensor]]] = {
    "mlp": (mlp, lambda: torch.randn(16, 128)),
    "convolutions": (convolutions, lambda: torch.randn(4, 3, 32, 32)),
    "attention": (Attention, lambda: torch.randint(0, 128, (4, 32))),
    "gated": (lambda: nn.Sequential(*[Gated() for _ in range(4)]), lambda: torch.randn(4, 16, 64)),
    "wide": (lambda: nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 512), nn.LayerNorm(512)), lambda: torch.randn(32, 512)),
}


def call_of(model: Any, x: torch.Tensor, train: bool) -> Callable[[], Any]:
    if not train:
        def infer() -> Any:
            with torch.no_grad():
                return model(x)

        return infer

    def step() -> None:
        model(x).square().mean().backward()

    return step


def measure(runs: dict[str, Callable[[], Any]], batches: int, calls: int, finish: Callable[[], Any]) -> dict[str, float]:
    """Median over batches of the least time of a batch's calls, in seconds. ``finish`` waits for the device."""
    least: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        for _ in range(5):
            run()
    gc.collect()
    gc.disable()
    try:
        for batch in range(batches):
            for name in runs if batch % 2 else reversed(runs):
                run, best = runs[name], float("inf")
                for _ in range(calls):
                    start = time.perf_counter()
                    run()
                    finish()
                    best = min(best, time.perf_counter() - start)
                least[name].append(best)
    finally:
        gc.enable()
    return {name: statistics.median(values) for name, values in least.items()}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--only", metavar="NAMES", help="models whose names begin so, separated by commas")
    parser.add_argument("--train", action="store_true", help="forward and backward passes, not forward alone")
    parser.add_argument("--batches", type=int, default=60)
    parser.add_argument("--calls", type=int, default=10, help="calls in each batch")
    options = parser.parse_args()
    if options.quick:
        options.batches = 10
    pinned()
    load_stock()
    results, rows = {}, []
    for name, (make, data) in MODELS.items():
        if options.only and not any(name.startswith(only) for only in options.only.split(",")):
            continue
        torch.manual_seed(0)
        mine = make().train(options.train).to(options.device)
        stock, x = copy.deepcopy(mine), data().to(options.device)
        runs = {
            "framegraft": call_of(framegraft.compile(mine), x, options.train),
            "torch.compile": call_of(torch.compile(stock), x, options.train),
        }
        wait = torch.accelerator.synchronize if options.device != "cpu" else lambda: None
        found = measure(runs, options.batches, options.calls, wait)
        ratio = found["framegraft"] / found["torch.compile"]
        results[name] = {**found, "ratio": ratio}
        rows.append([name, *(f"{found[n] * 1e6:.1f} us" for n in runs), f"{ratio:.3f}"])
    print_table(["model", "framegraft", "torch.compile", "ratio"], rows)
    report("inductor" + (" train" if options.train else ""), results, options.json)


if __name__ == "__main__":
    main()
