"""Backends that run the graph as it is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from torch.fx import GraphModule

from ..log import get_logger, graph_table


def eager(gm: GraphModule, example_inputs: Sequence[Any], **ignored: Any) -> Callable[..., Any]:
    """Run the captured graph, operation by operation: bit for bit what the program would have computed."""
    warn_ignored("eager", ignored)
    return gm.forward


def print_graph(gm: GraphModule, example_inputs: Sequence[Any], **ignored: Any) -> Callable[..., Any]:
    """Print each captured graph as a table on stdout, then run it as ``eager`` does."""
    warn_ignored("print", ignored)
    shapes = ", ".join(str(list(x.shape)) if hasattr(x, "shape") else repr(x) for x in example_inputs)
    sys.stdout.write(f"captured graph, inputs {shapes or 'none'}\n{graph_table(gm.graph)}\n\n")
    return gm.forward


def warn_ignored(name: str, keywords: dict[str, Any]) -> None:
    """Say that a backend has no use for ``mode=`` or ``options=``."""
    if keywords:
        get_logger("backends").warning("backend %s ignores %s", name, ", ".join(sorted(keywords)))
