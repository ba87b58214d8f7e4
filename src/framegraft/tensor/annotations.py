"""``torch.fx.traceback.annotate`` inside of a trace: what it says is in ``node.meta["custom"]`` of the nodes that are made there."""

from __future__ import annotations

from typing import Any

from torch.fx import traceback
from torch.utils import _pytree as pytree

from ..errors import GraphBreak
from ..model.dispatch import handles
from ..model.value import NONE, VariableTracker
from ..polyfills import annotations as polyfills
from ..semantics import calls
from . import subgraphs


@handles(polyfills.begin)
def begin(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    graph = tx.state.graph
    told = subgraphs.as_structure(tx, args[0])
    if type(told) is not dict or any(isinstance(leaf, VariableTracker) for leaf in pytree.tree_leaves(told)):
        raise GraphBreak("untraceable_call", "torch.fx.traceback.annotate with something other than a dict of constants")
    before = graph.annotations
    graph.annotations = {**before, **told}
    return subgraphs.as_tracker(tx, before) if before else NONE


@handles(polyfills.end)
def end(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    tx.state.graph.annotations = subgraphs.as_structure(tx, args[0]) or {}
    return NONE


for _name, _polyfill in (("annotate", polyfills.annotate), ("preserve_node_meta", polyfills.nothing)):
    if (_found := getattr(traceback, _name, None)) is not None:  # torch 2.8 has no annotate()
        calls.REPLACED[_found.__wrapped__.__code__] = _polyfill
