"""The ``ts`` backend: the graph as a TorchScript module."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule

from .eager import warn_ignored


def ts(gm: GraphModule, example_inputs: Sequence[Any], **ignored: Any) -> Callable[..., Any]:
    """Script the graph; where TorchScript cannot type it, trace it on copies of the example inputs."""
    warn_ignored("ts", ignored)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # both entry points are deprecated, and tracing warns of every constant
        try:
            scripted: Any = torch.jit.script(gm)
        except Exception:  # scripting raises RuntimeError, NotSupportedError, TypeError ...
            with torch.random.fork_rng():
                scripted = torch.jit.trace(gm, tuple(map(_stand_in, example_inputs)), check_trace=False)
    return scripted


def _stand_in(value: Any) -> Any:
    """A copy that tracing may write to."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    return value
