"""torch.cond, while_loop, map and scan: their functions become graphs inside of the graph, called by torch's own operators."""

from __future__ import annotations

import inspect
import sys
import types
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ..errors import GraphBreak
from ..model.dispatch import handles
from ..model.value import ConstantVariable, ListVariable, SymbolicVariable, TensorVariable, TupleVariable, VariableTracker, constant
from ..polyfills import annotations
from ..polyfills import higher_order as polyfills
from ..semantics import calls
from ..semantics.wrapping import wrap_pinned
from . import flex, running, subgraphs, symbolic
from .higher_order import call_operator, known_in_capture, pair


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
    """A node for ``op(*before, *bodies, *given)``: (node, fake) pairs, graphs, and tuples of pairs."""

    def arguments(side: int, *bodies: Any) -> tuple:
        return (*(p[side] for p in before), *bodies, *(tuple(p[side] for p in group) for group in given))

    return call_operator(tx, name, op, bodies, arguments, fake)


def _flat_tensors(name: str, traced: subgraphs.Traced) -> Any:
    """How the results are put together. Results that share memory with an input are an error in eager mode."""
    leaves, spec = pytree.tree_flatten(traced.results)
    if not leaves or not all(isinstance(leaf, torch.Tensor) for leaf in leaves):
        raise GraphBreak("untraceable_call", f"torch.{name} of functions that return something other than tensors")
    given = [n.meta["example_value"] for n in traced.body.graph.nodes if n.op == "placeholder"]
    inputs = {value.untyped_storage()._cdata for value in given if isinstance(value, torch.Tensor)}
    outputs = [leaf.untyped_storage()._cdata for leaf in leaves]
    if len(set(outputs)) < len(outputs) or not inputs.isdisjoint(outputs):
        raise GraphBreak("untraceable_call", f"torch.{name} of functions whose results share memory")
    return spec


@handles(torch.cond)
def cond(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    given = dict(zip(("pred", "true_fn", "false_fn", "operands"), args, strict=False)) | kwargs
    pred, operands = given["pred"], given.get("operands", TupleVariable([]))
    if isinstance(pred, (ConstantVariable, SymbolicVariable)):
        decided = symbolic.truth(pred) if isinstance(pred, SymbolicVariable) else pred.value
        chosen = given["true_fn" if decided else "false_fn"]
        if not isinstance(operands, (ListVariable, TupleVariable)):
            raise GraphBreak("untraceable_call", "torch.cond of something other than a list or tuple")
        return calls.call(tx, chosen, list(operands.items), {})
    if not isinstance(pred, TensorVariable):
        raise GraphBreak("untraceable_call", "torch.cond without a tensor to decide")
    structure, leaves = _operands(tx, "cond", operands)
    nodes = [leaf.node for leaf in leaves]
    branches = [subgraphs.trace(tx, "cond", given[name], tuple(structure), {}, nodes) for name in ("true_fn", "false_fn")]
    specs = [_flat_tensors("cond", t) for t in branches]
    if specs[0] != specs[1]:
        raise GraphBreak("untraceable_call", "torch.cond with branches that return different structures")
    lifted = _share(*branches)
    modules = [t.module() for t in branches]
    given_tensors = [pair(n) for n in (*branches[0].body.given, *lifted)]  # each once: the operator takes the same twice for aliases
    op = known_in_capture(torch.ops.higher_order.cond)
    results = _operator(tx, "cond", op, [(pred.node, pred.fake)], modules, [tuple(given_tensors)], op)
    return subgraphs.as_tracker(tx, pytree.tree_unflatten(results, specs[0]))


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
    around = tuple(pair(n) for n in lifted)
    if torch.is_grad_enabled() and any(getattr(fake, "requires_grad", False) for _, fake in (*carried, *around)):
        raise GraphBreak("untraceable_call", "torch.while_loop of tensors that require gradients")
    if _differ(*([running.metadata(t.fake) for t in group] for group in (leaves, body.outputs))):
        raise GraphBreak("untraceable_call", "torch.while_loop whose tensors change their shapes")
    results = _operator(tx, "while_loop", torch.ops.higher_order.while_loop, [], modules, [carried, around], _as_carried)
    return subgraphs.as_tracker(tx, pytree.tree_unflatten(results, spec))


def _as_carried(test: Any, body: Any, carried: tuple, around: tuple) -> tuple:
    return tuple(t.clone() for t in carried)


def _differ(one: list, other: list) -> bool:
    """Whether sizes, or what else is known of tensors, differ in this call; guarded."""
    try:
        return one != other
    except Exception as error:
        if not symbolic.is_data_dependent(error):
            raise
        raise GraphBreak("data_dependent_branch", f"a size that the data decides: {symbolic.asked(error)}") from None


def _slices(tx: Any, name: str, tracker: VariableTracker) -> tuple[Any, list[TensorVariable]]:
    """(the structure with the first slices of its tensors, as a function sees them; the trackers of its tensors)."""
    structure = subgraphs.as_structure(tx, tracker)
    leaves = pytree.tree_leaves(structure)
    if not leaves or not all(isinstance(leaf, TensorVariable) and leaf.fake.dim() for leaf in leaves):
        raise GraphBreak("untraceable_call", f"{name} over something other than tensors with dimensions")
    lengths = [leaf.fake.shape[0] for leaf in leaves]
    if _differ(lengths, [lengths[0]] * len(lengths)) or not _differ(lengths[:1], [0]):
        raise GraphBreak("untraceable_call", f"{name} over tensors without elements, or of different lengths")
    with tx.state.graph.propagating():
        return pytree.tree_map(lambda v: v.fake.detach()[0].requires_grad_(v.fake.requires_grad), structure), leaves


def _sizes_known(tx: Any, name: str) -> None:
    """Inductor fails on some of these loops where sizes are symbols, and not where they are run from Python."""
    if tx.state.graph.symbols is not None and not tx.state.graph.whole:
        raise GraphBreak("untraceable_call", f"{name} in a graph with symbolic sizes or numbers")


def _stacked(outputs: Any, count: int) -> tuple:
    return tuple(out.new_empty((count, *out.shape)) for out in outputs)


def _mapped(body: Any, xs: tuple, around: tuple) -> tuple:
    return _stacked(body(*(x[0] for x in xs), *around), xs[0].shape[0])


def _scanned(body: Any, init: tuple, xs: tuple, around: tuple) -> tuple:
    made = body(*init, *(x[0] for x in xs), *around)
    return *made[: len(init)], *_stacked(made[len(init) :], xs[0].shape[0])


def map_(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    """``map(f, xs, *args)``: tensors among the arguments behind ``xs`` are inputs of its graph like those that it uses besides."""
    if len(args) < 2 or kwargs:
        raise GraphBreak("untraceable_call", "map with keywords")
    structure, leaves = _slices(tx, "map", args[1])
    _sizes_known(tx, "map")
    body = subgraphs.trace(tx, "map", args[0], (structure, *args[2:]), {})
    _sizes_known(tx, "map")
    spec = _flat_tensors("map", body)
    module = body.module()
    given = [tuple((t.node, t.fake) for t in leaves), tuple(pair(n) for n in body.lifted)]
    op = known_in_capture(torch.ops.higher_order.map_impl, _mapped)
    return subgraphs.as_tracker(tx, pytree.tree_unflatten(_operator(tx, "map", op, [], [module], given, op), spec))


def scan(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    given = dict(zip(("combine_fn", "init", "xs"), args, strict=False)) | kwargs
    dim, reverse = given.pop("dim", constant(0)), given.pop("reverse", constant(False))
    leaves = pytree.tree_leaves(subgraphs.as_structure(tx, given["xs"]))
    if not leaves or not all(isinstance(leaf, TensorVariable) for leaf in leaves):
        raise GraphBreak("untraceable_call", "scan over something other than tensors")
    count = leaves[0].fake.dim()
    if not isinstance(dim, ConstantVariable) or type(dim.value) is not int or not -count <= dim.value < count:
        raise GraphBreak("untraceable_call", "scan with a dimension that is none, or no constant")
    where = dim.value % count
    if not isinstance(reverse, ConstantVariable) or type(reverse.value) is not bool or any(where >= t.fake.dim() for t in leaves):
        raise GraphBreak("untraceable_call", "scan of tensors without the dimension, or with reverse that is no constant")
    asked = [given[name] for name in ("combine_fn", "init", "xs")]
    return calls.call(tx, wrap_pinned(tx, polyfills.scan), [wrap_pinned(tx, scan_first), *asked, constant(where), reverse], {})


def scan_first(combine_fn: Any, init: Any, xs: Any) -> Any:
    """Stands in a trace for ``scan`` over dimension 0."""
    raise NotImplementedError


@handles(scan_first)
def _scan_first(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    structure, leaves = _slices(tx, "scan", args[2])
    begin = subgraphs.as_structure(tx, args[1])
    carried = pytree.tree_leaves(begin)
    if not carried or not all(isinstance(leaf, TensorVariable) for leaf in carried):
        raise GraphBreak("untraceable_call", "scan that begins with something other than tensors")
    start = pytree.tree_map(lambda v: v.fake, begin)
    _sizes_known(tx, "scan")
    body = subgraphs.trace(tx, "scan", args[0], (start, structure), {})
    _sizes_known(tx, "scan")
    spec = _flat_tensors("scan", body)
    if type(body.results) is not tuple or len(body.results) != 2:
        raise GraphBreak("untraceable_call", "scan with a function that returns something else than it asks for")
    made = pytree.tree_leaves(body.results[0])
    if _differ([(t.fake.shape, t.fake.dtype) for t in carried], [(t.shape, t.dtype) for t in made]):
        raise GraphBreak("untraceable_call", "scan whose tensors change their shapes")
    module = body.module()
    given = [tuple((t.node, t.fake) for t in group) for group in (carried, leaves)] + [tuple(pair(n) for n in body.lifted)]
    op = known_in_capture(torch.ops.higher_order.scan, _scanned)
    return subgraphs.as_tracker(tx, pytree.tree_unflatten(_operator(tx, "scan", op, [], [module], given, op), spec))


_OPERATORS = "torch._higher_order_ops."
_LATE: dict[str, dict[str, Any]] = {  # module -> the function in it -> its handler, or the function to trace in its place
    _OPERATORS + "while_loop": {"while_loop": while_loop},
    _OPERATORS + "map": {"map": map_},
    _OPERATORS + "scan": {"scan": scan},
    _OPERATORS + "wrap": {"Wrap": polyfills.call, "WrapWithAutocast": polyfills.call_with_autocast,
                          "WrapWithSetGradEnabled": polyfills.call_with_grad_mode},
    _OPERATORS + "invoke_subgraph": {"invoke_subgraph_placeholder": polyfills.call_region, "mark_compile_region": polyfills.call_region},
    _OPERATORS + "flex_attention": {"flex_attention": flex.attention},
    "torch.nn.attention.flex_attention": {"create_mask": flex.create_mask, "flex_attention": flex.function},
    "torch._dynamo.decorators": {"mark_static": flex.mark_static},
    "torch._dynamo.eval_frame": {"_set_in_optimized_module": annotations.nothing},
    "torch._dynamo.external_utils": {"wrap_inline": polyfills.call_region},
}


def register_late() -> None:
    """These live in modules that torch does not load by itself."""
    for name, functions in list(_LATE.items()):
        module = sys.modules.get(name)
        if module is None:
            continue
        del _LATE[name]
        for attribute, known in functions.items():
            found = getattr(module, attribute, None)
            if found is None:
                continue
            if known.__module__ in (__name__, flex.__name__):
                handles(found)(known)
            else:
                function = found.__call__ if isinstance(found, type) else inspect.unwrap(found)
                calls.REPLACED[_code(function.__code__)] = known


def _code(code: types.CodeType) -> types.CodeType:
    """The code of the function that a decorator makes, whose closure holds the decorated one alone; any other code itself."""
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType) and (found := _code(inner)).co_freevars in (("func",), ("fn",)) and found.co_name == "inner":
            return found
    return code
