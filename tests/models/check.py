"""One check for every model: equal to eager bit for bit, one graph, no recompile."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch

import framegraft


def plain(value: Any) -> Any:
    """A model's output as tuples, lists and dicts of tensors."""
    if isinstance(value, torch.Tensor) or value is None or isinstance(value, (int, float, str, bool)):
        return value
    if isinstance(value, Mapping):
        return (type(value).__name__, {k: plain(v) for k, v in value.items()})
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, [plain(v) for v in value])
    if dataclasses.is_dataclass(value) or hasattr(value, "__dict__"):
        return (type(value).__name__, {k: plain(v) for k, v in vars(value).items() if not k.startswith("_")})
    return repr(type(value))


def check_model(model: torch.nn.Module, inputs: Any, *, graphs: int = 1) -> None:
    """`inputs(n)` gives the n-th arguments (a tuple, or a dict of keyword arguments) of one shape."""
    model.eval()
    counter = framegraft.testing.CompileCounter()
    compiled = framegraft.compile(model, backend=counter)
    seen = []
    for n in range(3):
        results = []
        for run in (model, compiled):
            torch.manual_seed(n)
            given = inputs(n)
            with torch.no_grad():
                results.append(plain(run(**given) if isinstance(given, dict) else run(*given)))
        assert framegraft.testing.same(*results), f"call {n} differs from eager"
        seen.append(counter.frame_count)
    reasons = [str(r) for r in framegraft.break_reasons()]
    assert seen == [graphs] * 3, f"graphs after each call: {seen}; breaks: {reasons}"
    with torch.enable_grad():
        given = inputs(0)
        results = [plain(run(**given) if isinstance(given, dict) else run(*given)) for run in (model, compiled)]
    assert framegraft.testing.same(*results), "differs from eager with gradients on"
