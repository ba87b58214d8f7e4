"""``torch.nn.attention.flex_attention``: torch's operator, with graphs of the functions that change and mask the scores.

Eager mode hands the same operator to ``torch.compile``, whose graphs of these functions are made for scalars of the same kinds.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch._higher_order_ops.utils import registered_hop_fake_fns
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from ..errors import GraphBreak
from ..interp.state import realize
from ..model.dispatch import handles, specialised
from ..model.value import NONE, ConstantVariable, TensorVariable, TupleVariable, VariableTracker
from ..polyfills import higher_order as polyfills
from ..semantics import calls
from ..semantics.wrapping import need_constant_deep, wrap_pinned
from . import subgraphs, transforms
from .higher_order import call_operator, known_in_capture, pair

_NAME = "flex_attention"


class _SelectingByTensors(TorchFunctionMode):
    """Indexing by scalars gives what the operator's kernels give by a mode of torch's: they never read the scalars."""

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.__getitem__:
            keys = pytree.tree_leaves(args[1])
            if all(isinstance(key, (torch.Tensor, int)) for key in keys):
                device = args[0].device
                at = [torch.tensor(key, dtype=torch.int64, device=device) if isinstance(key, int) else key for key in keys]
                return torch.ops.aten.index(args[0], at)
        return func(*args, **(kwargs or {}))


def function(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    """Torch's function in Python around the operator. It tells a trace something else than eager mode, so that it may not break inside."""
    fn = sys.modules["torch.nn.attention.flex_attention"].flex_attention
    return calls.inline_call(tx, wrap_pinned(tx, fn), fn, args, kwargs)  # type: ignore[arg-type]


def attention(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    names = ("query", "key", "value", "score_mod", "block_mask", "scale", "kernel_options")
    given = dict(zip(names, args, strict=False)) | kwargs
    tensors = [given[name] for name in names[:3] if isinstance(given.get(name), TensorVariable)]
    if given.keys() != set(names) or len(tensors) != 3:
        raise GraphBreak("untraceable_call", f"torch.ops.higher_order.{_NAME} with other arguments than flex_attention gives it")
    *blocks, mask_mod = [realize(item, tx.state) for item in given["block_mask"].items]
    query = tensors[0].fake
    with tx.state.graph.propagating():
        scalars = [query.new_empty([], dtype=torch.int32) for _ in range(4)]
        score = query.new_empty([], requires_grad=query.requires_grad)
    scored = _traced(tx, given["score_mod"], (score, *scalars))
    masked = _traced(tx, mask_mod, tuple(scalars))
    modules = scored.module(single=True), masked.module(single=True)
    scale, options = need_constant_deep(given["scale"]), subgraphs.as_structure(tx, given["kernel_options"])
    if any(isinstance(leaf, VariableTracker) for leaf in pytree.tree_leaves(options)):
        raise GraphBreak("untraceable_call", f"{_NAME} with options that are no constants")
    where = [(t.node, t.fake) if isinstance(t, TensorVariable) else (need_constant_deep(t),) * 2 for t in blocks]

    def operands(side: int, score_mod: Any, mask_mod: Any) -> tuple:
        qkv = [(t.node, t.fake)[side] for t in tensors]
        around = [tuple(pair(node)[side] for node in traced.lifted) for traced in (scored, masked)]
        return (*qkv, score_mod, (*(block[side] for block in where), mask_mod), scale, options, *around)

    op = torch.ops.higher_order.flex_attention
    known_in_capture(op, registered_hop_fake_fns.get(op))  # type: ignore[arg-type]
    return TupleVariable(call_operator(tx, _NAME, op, modules, operands, op))


def _traced(tx: Any, fn: VariableTracker, args: tuple) -> subgraphs.Traced:
    with _SelectingByTensors():
        traced = subgraphs.trace(tx, _NAME, fn, args, {})
    if len(traced.outputs) != 1:
        raise GraphBreak("untraceable_call", f"{_NAME} with a function that gives something other than a tensor")
    if not all(isinstance(pair(node)[1], torch.Tensor) for node in traced.lifted):  # inductor's kernels take none, with block masks
        raise GraphBreak("untraceable_call", f"{_NAME} with a function that uses a size or number that differs from call to call")
    return traced


def create_mask(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    kind_of = sys.modules["torch.nn.attention.flex_attention"]._get_mod_type
    return calls.call(tx, wrap_pinned(tx, polyfills.create_mask), [wrap_pinned(tx, kind_of), *args], kwargs)


@handles(polyfills.masked)
def mask(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    """Torch's ``create_mask`` on a function with as many parameters, by which it tells what the function is for."""
    of_scores, given, named = need_constant_deep(args[1]), need_constant_deep(args[2]), subgraphs.as_structure(tx, args[3])
    create_mask = sys.modules["torch.nn.attention.flex_attention"].create_mask

    def make(inner: Any) -> Any:
        def score_mod(score: Any, b: Any, h: Any, q: Any, k: Any) -> Any:
            return inner(score, b, h, q, k)

        def mask_mod(b: Any, h: Any, q: Any, k: Any) -> Any:
            return inner(b, h, q, k)

        return lambda: create_mask(score_mod if of_scores else mask_mod, *given, **named)

    return transforms.apply(tx, "create_mask", make, args[0], ((), {}))


def mark_static(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    """``torch._dynamo.mark_static``: these sizes are constants of the capture."""
    given = dict(zip(("t", "index"), args, strict=False)) | kwargs
    index = given.get("index", NONE)
    if not isinstance(given["t"], TensorVariable) or not isinstance(index, ConstantVariable):
        raise GraphBreak("untraceable_call", "torch._dynamo.mark_static of something other than a tensor and a number")
    sizes = calls.call_method(tx, given["t"], "size", [] if index.value is None else [index], {})
    for size in sizes.items if isinstance(sizes, TupleVariable) else [sizes]:
        specialised(size)
    return NONE
