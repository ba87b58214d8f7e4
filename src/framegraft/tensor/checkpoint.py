"""``torch.utils.checkpoint``: the region goes into the graph like any other code, its operations marked to be computed anew.

AOTAutograd's partitioner reads the marks (``node.meta["recompute"]``); a backend that runs the graph as it is keeps what the
region computed. Where the region cannot be traced, the call runs in eager mode with all that it calls: forward and
recomputation must be the same operations.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch.utils.checkpoint
from torch.utils.checkpoint import CheckpointPolicy

from ..errors import GraphBreak
from ..model.dispatch import handles
from ..model.value import ConstantVariable, VariableTracker
from ..semantics import calls

_regions = itertools.count()
# Keywords of checkpoint() itself; others go to the function. Those without effect on what is computed may have any value.
_HARMLESS = ("preserve_rng_state", "determinism_check", "debug", "early_stop")


@handles(torch.utils.checkpoint.checkpoint)
def checkpoint(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    reentrant = kwargs.pop("use_reentrant", None)
    if not args or not isinstance(reentrant, ConstantVariable) or reentrant.value is not False:
        raise GraphBreak("untraceable_call", "torch.utils.checkpoint with use_reentrant other than False")
    if "context_fn" in kwargs:
        raise GraphBreak("untraceable_call", "torch.utils.checkpoint with a context_fn")
    for name in _HARMLESS:
        if not isinstance(kwargs.pop(name, None), (ConstantVariable, type(None))):
            raise GraphBreak("untraceable_call", f"torch.utils.checkpoint with {name} of something other than a constant")
    graph = tx.state.graph.graph
    before = next(iter(reversed(graph.nodes)), None)
    result = calls.call(tx, args[0], args[1:], kwargs)
    region = next(_regions)
    node = next(iter(reversed(graph.nodes)), None)
    while node is not None and node is not before and node.op != "root":
        if node.op != "placeholder" and "recompute" not in node.meta:
            node.meta["recompute"] = CheckpointPolicy.PREFER_RECOMPUTE
            node.meta["ac_graph_id"] = region
        node = node.prev
    return result
