"""``torch.utils.checkpoint`` with a ``context_fn``: which operations of the region are computed anew, the program's policy says.

The region becomes a graph in the graph, and a node calls torch's own checkpoint with it: the policy is asked as in eager mode. A
compiler asks it while it compiles (torch/_higher_order_ops/wrap.py: tag_activation_checkpoint).
"""

from __future__ import annotations

import functools
import types
from collections.abc import Sequence
from typing import Any

import torch
import torch.utils.checkpoint
from torch.utils import _pytree as pytree

from ..errors import GraphBreak
from ..interp.state import realize
from ..model.source import Source
from ..model.value import ConstantVariable, ListVariable, ObjectVariable, TensorVariable, TupleVariable, VariableTracker
from ..semantics.constructors import PartialVariable
from . import control_flow, stand_ins, subgraphs


def run_selective(
    tx: Any, fn: VariableTracker, args: list, kwargs: dict, settings: dict[str, Any], context_fn: VariableTracker
) -> VariableTracker:
    """A call of ``fn`` as such a region. ``settings``: keywords of checkpoint() itself."""
    contexts = _real(tx, realize(context_fn, tx.state))
    if tx.state.graph.body is not None:
        raise _refused("in a function that torch calls")
    outer = [subgraphs.as_structure(tx, a) for a in args], {k: subgraphs.as_structure(tx, v) for k, v in kwargs.items()}
    leaves = [leaf for leaf in pytree.tree_leaves(outer) if isinstance(leaf, TensorVariable)]
    inside = pytree.tree_map(lambda v: v.fake if isinstance(v, TensorVariable) else v, outer)
    mode = tx.state.graph.mode
    traced = subgraphs.trace(tx, "torch.utils.checkpoint", fn, *inside)
    if mode.random:
        raise _refused("of what draws random numbers")
    module = traced.module()
    operands = [(t.node, t.fake) for t in leaves] + [(n, n.meta["example_value"]) for n in traced.lifted]

    def checkpointed(body: Any, given: Sequence[torch.Tensor]) -> Any:
        if all(type(t) in stand_ins.PLAIN for t in given):
            return torch.utils.checkpoint.checkpoint(body, *given, use_reentrant=False, context_fn=contexts, **settings)
        body.meta["_checkpoint_context_fn"] = contexts
        return torch.ops.higher_order.tag_activation_checkpoint(body, *given)

    results = iter(control_flow.operator(tx, "checkpoint", checkpointed, [], [module], [tuple(operands)], _plainly))
    return subgraphs.as_tracker(tx, pytree.tree_map(lambda v: next(results) if isinstance(v, torch.Tensor) else v, traced.results))


def _plainly(body: Any, given: Sequence[Any]) -> Any:
    return body(*given)


def _real(tx: Any, tracker: VariableTracker) -> Any:
    """The object that the program has, or has made of such: a function of a module, or a ``functools.partial`` of one."""
    if isinstance(tracker, PartialVariable) and not tracker.kwargs:
        return functools.partial(_real(tx, realize(tracker.func, tx.state)), *(_real(tx, realize(a, tx.state)) for a in tracker.args))
    if isinstance(tracker, ConstantVariable):
        return tracker.value
    if type(tracker) in (ListVariable, TupleVariable):
        return [_real(tx, realize(item, tx.state)) for item in tracker.items]  # type: ignore[attr-defined]
    value = getattr(tracker, "value", None)
    known = type(value) in (types.FunctionType, types.BuiltinFunctionType, torch._ops.OpOverload, functools.partial)
    if not known or not isinstance(tracker, ObjectVariable):
        raise _refused("and a context_fn that the trace has made")
    tx.state.guards.pin(tracker.source or Source("CONST", value), value)
    return value


def _refused(why: str) -> GraphBreak:
    return GraphBreak("untraceable_call", f"torch.utils.checkpoint with a context_fn {why}")
