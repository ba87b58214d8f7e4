"""Marks of nodes for a compiler's partitioner: the region of torch.utils.checkpoint that they are in, and what of it is computed anew."""

from __future__ import annotations

import itertools
from typing import Any

from torch.utils.checkpoint import CheckpointPolicy

_regions = itertools.count()
_KEYS = ("recompute", "ac_graph_id", "custom")


def mark(nodes: list) -> None:
    """Nodes that are in no region yet become one, all of it computed anew."""
    region = next(_regions)
    for node in nodes:
        node.meta["recompute"] = CheckpointPolicy.PREFER_RECOMPUTE
        node.meta["ac_graph_id"] = region


def is_marked(node: Any) -> bool:
    return "recompute" in node.meta


class Marks:
    """The marks of a block's nodes at its end, and what the program has annotated. Repetitions get the same, in regions of their own."""

    def __init__(self, nodes: Any) -> None:
        self._of = {node: {key: node.meta[key] for key in _KEYS if key in node.meta} for node in nodes}

    def again(self) -> Any:
        """A function for one repetition: (node, the first of those that repeat it, up to the last of the graph) to None."""
        regions: dict[int, int] = {}

        def repeat(made: Any, node: Any) -> None:
            marks = self._of.get(made)
            if not marks:
                return
            region = marks.get("ac_graph_id")
            if region is not None:
                if region not in regions:
                    regions[region] = next(_regions)
                marks = {**marks, "ac_graph_id": regions[region]}
            while node.op != "root":
                node.meta.update(marks)
                node = node.next

        return repeat
