"""torch.cond and torch.while_loop: their functions become graphs inside of the graph, called by torch's own operators."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree

from ..errors import GraphBreak
from ..model.dispatch import handles
from ..model.value import ConstantVariable, TensorVariable, VariableTracker
from ..semantics import calls
from . import running, subgraphs
from .fake import CaptureMode


def _operands(tx: Any, name: str, tracker: VariableTracker) -> tuple[Any, list[TensorVariable]]:
    """(the structure with fake tensors, the trackers of its tensors); nothing but tensors."""
    structure = subgraphs.as_structure(tx, tracker)
    leaves = pytree.tree_leaves(structure)
    if not isinstance(structure, (list, tuple)) or not all(isinstance(leaf, TensorVariable) for leaf in leaves):
        raise GraphBreak("untraceable_call", f"torch.{name} of something other than tensors")
    return pytree.tree_map(lambda v: v.fake, structure), leaves


def _share(*traced: subgraphs.Traced) -> list[torch.fx.Node]:
    """Give all bodies the same inputs, in the same order: those that any of them has lifted."""
    nodes = list(dict.fromkeys(node for t in traced for node in t.body.lifted))
    for t in traced:
        t.body.take(nodes)
    return nodes


def _operator(tx: Any, name: str, op: Any, before: list, bodies: list, given: list[tuple], fake: Any) -> list[VariableTracker]:
    """A node for ``op(*before, *bodies, *given)``: (node, fake) pairs, graphs, and tuples of pairs. Its results are tensors.

    ``fake`` is called in the operator's place on fake tensors.
    """
    graph = tx.state.graph
    inner = [graph.submodule(name, module) for module in bodies]
    pairs = [tuple(zip(*group, strict=True)) or ((), ()) for group in given]
    try:
        with graph.propagating():
            result = fake(*(p[1] for p in before), *bodies, *(p[1] for p in pairs))
    except running.PROPAGATION_ERRORS as error:
        raise running.not_propagated(f"torch.{name}", error) from None
    running.note_errors(tx.state, name, True)
    tx.state.dirty += 1
    node = graph.node("call_function", op, (*(p[0] for p in before), *inner, *(p[0] for p in pairs)), {})
    node.meta["stack_trace"] = tx.state.stack_trace()
    return running.wrap_result(tx, node, tuple(result), running.Unwrapper(tx, op)).items  # type: ignore[attr-defined]


def _pair(node: torch.fx.Node) -> tuple[torch.fx.Node, Any]:
    return node, node.meta["example_value"]


def _flat_tensors(name: str, traced: subgraphs.Traced) -> Any:
    """How the results are put together. Results that share memory with an input are an error in eager mode."""
    leaves, spec = pytree.tree_flatten(traced.results)
    if not leaves or not all(isinstance(leaf, torch.Tensor) for leaf in leaves):
        raise GraphBreak("untraceable_call", f"torch.{name} of functions that return something other than tensors")
    inputs = {n.meta["example_value"].untyped_storage()._cdata for n in traced.body.graph.nodes if n.op == "placeholder"}
    outputs = [leaf.untyped_storage()._cdata for leaf in leaves]
    if len(set(outputs)) < len(outputs) or not inputs.isdisjoint(outputs):
        raise GraphBreak("untraceable_call", f"torch.{name} of functions whose results share memory")
    return spec


@handles(torch.cond)
def cond(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    given = dict(zip(("pred", "true_fn", "false_fn", "operands"), args, strict=False)) | kwargs
    pred, operands = given["pred"], given.get("operands")
    if isinstance(pred, ConstantVariable):
        chosen = given["true_fn" if pred.value else "false_fn"]
        return calls.call(tx, chosen, [] if operands is None else _items(tx, operands), {})
    if not isinstance(pred, TensorVariable) or operands is None:
        raise GraphBreak("untraceable_call", "torch.cond without a tensor to decide, or without operands")
    structure, leaves = _operands(tx, "cond", operands)
    branches = [subgraphs.trace(tx, "cond", given[name], tuple(structure), {}) for name in ("true_fn", "false_fn")]
    specs = [_flat_tensors("cond", t) for t in branches]
    if specs[0] != specs[1]:
        raise GraphBreak("untraceable_call", "torch.cond with branches that return different structures")
    lifted = _share(*branches)
    modules = [t.module() for t in branches]
    given_tensors = [(t.node, t.fake) for t in leaves] + [_pair(n) for n in lifted]
    op = torch.ops.higher_order.cond
    op.python_key_table.setdefault(CaptureMode, op.python_key_table[FakeTensorMode])  # looked up by the very class of the mode
    results = _operator(tx, "cond", op, [(pred.node, pred.fake)], modules, [tuple(given_tensors)], op)
    return subgraphs.as_tracker(tx, pytree.tree_unflatten(results, specs[0]))


def _items(tx: Any, tracker: VariableTracker) -> list[VariableTracker]:
    return list(tracker.items)  # type: ignore[attr-defined]


def while_loop(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    given = dict(zip(("cond_fn", "body_fn", "carried_inputs"), args, strict=False)) | kwargs
    structure, leaves = _operands(tx, "while_loop", given["carried_inputs"])
    test = subgraphs.trace(tx, "while_loop", given["cond_fn"], tuple(structure), {})
    body = subgraphs.trace(tx, "while_loop", given["body_fn"], tuple(structure), {})
    spec = _flat_tensors("while_loop", body)
    if len(test.outputs) != 1 or len(body.outputs) != len(leaves):
        raise GraphBreak("untraceable_call", "torch.while_loop with functions that return something else than it asks for")
    lifted = _share(test, body)
    modules = [test.module(single=True), body.module()]
    carried = tuple((t.node, t.fake) for t in leaves)
    around = tuple(_pair(n) for n in lifted)
    if torch.is_grad_enabled() and any(fake.requires_grad for _, fake in (*carried, *around)):
        raise GraphBreak("untraceable_call", "torch.while_loop of tensors that require gradients")
    if [running.metadata(t.fake) for t in leaves] != [running.metadata(t.fake) for t in body.outputs]:
        raise GraphBreak("untraceable_call", "torch.while_loop whose tensors change their shapes")
    results = _operator(tx, "while_loop", torch.ops.higher_order.while_loop, [], modules, [carried, around], _as_carried)
    return subgraphs.as_tracker(tx, pytree.tree_unflatten(results, spec))


def _as_carried(test: Any, body: Any, carried: tuple, around: tuple) -> tuple:
    return tuple(t.clone() for t in carried)


def register_late() -> None:
    """``while_loop`` lives in a module that torch does not load by itself."""
    module = sys.modules.get("torch._higher_order_ops.while_loop")
    if module is not None:
        handles(module.while_loop)(while_loop)
