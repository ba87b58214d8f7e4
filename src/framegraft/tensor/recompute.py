"""Marks of nodes for a compiler's partitioner: the region of torch.utils.checkpoint that they are in, and what of it is computed anew."""

from __future__ import annotations

import itertools
from typing import Any

from torch.utils.checkpoint import CheckpointPolicy

_regions = itertools.count()


def mark(nodes: list) -> None:
    """Nodes that are in no region yet become one, all of it computed anew."""
    region = next(_regions)
    for node in nodes:
        node.meta["recompute"] = CheckpointPolicy.PREFER_RECOMPUTE
        node.meta["ac_graph_id"] = region


def is_marked(node: Any) -> bool:
    return "recompute" in node.meta


class Marks:
    """The marks of a block's nodes at its end. The nodes of its repetitions get the same ones, in regions of their own."""

    def __init__(self, nodes: Any) -> None:
        self._of = {node: (node.meta["recompute"], node.meta["ac_graph_id"]) for node in nodes if is_marked(node)}

    def again(self) -> Any:
        """A function for one repetition: (node, the first of those that repeat it, up to the last of the graph) to None."""
        regions: dict[int, int] = {}

        def repeat(made: Any, node: Any) -> None:
            found = self._of.get(made)
            if found is None:
                return
            policy, region = found
            if region not in regions:
                regions[region] = next(_regions)
            while node.op != "root":
                node.meta["recompute"], node.meta["ac_graph_id"] = policy, regions[region]
                node = node.next

        return repeat
