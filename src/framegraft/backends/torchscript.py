"""The ``ts`` backend: the graph as a TorchScript module."""

from __future__ import annotations

import types
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node

from .eager import warn_ignored


def ts(gm: GraphModule, example_inputs: Sequence[Any], **ignored: Any) -> Callable[..., Any]:
    """Script the graph; where TorchScript cannot type it, trace it on copies of the example inputs.

    Tracing sees operations alone. A graph that sets torch's modes, or hands functions to torch, runs as it is.
    """
    warn_ignored("ts", ignored)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # both entry points are deprecated, and tracing warns of every constant
        try:
            scripted: Any = torch.jit.script(gm)
        except Exception:  # scripting raises RuntimeError, NotSupportedError, TypeError ...
            if not all(map(_is_operation, gm.graph.nodes)):
                return gm.forward
            with torch.random.fork_rng():
                scripted = torch.jit.trace(gm, tuple(map(_stand_in, example_inputs)), check_trace=False)
    return scripted


def _is_operation(node: Node) -> bool:
    """Whether a node is seen by tracing, or is none of its concern."""
    if node.op == "call_method":
        return node.target not in ("requires_grad_", "retain_grad")
    if node.op != "call_function":
        return True
    module = getattr(node.target, "__module__", None) or ""
    of_torch = module.split(".")[0] in ("torch", "_operator", "math") or isinstance(node.target, types.BuiltinFunctionType)
    return of_torch and "example_value" in node.meta and not isinstance(node.target, torch._ops.HigherOrderOperator)


def _stand_in(value: Any) -> Any:
    """A copy that tracing may write to."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    return value
