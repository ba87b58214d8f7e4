"""Hooks on the gradients of tensors that the trace has made: the hook becomes a graph in the graph, registered where it was.

Whoever runs the graph registers it anew in each call; AOTAutograd traces through it when it makes the backward pass. A hook with
side effects breaks the graph, and so does the use of its handle.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx.node import has_side_effect
from torch.utils.hooks import RemovableHandle

from ..errors import GraphBreak
from ..model.value import TensorVariable, VariableTracker
from . import subgraphs, torchops


@has_side_effect
def register_hook(tensor: torch.Tensor, body: Any, *lifted: Any) -> None:
    """The node's function; ``body`` takes the gradient and tensors from around the hook."""
    tensor.register_hook(lambda grad: body(grad, *lifted))


class HandleVariable(VariableTracker):
    """What registering a hook gives. It can only be forgotten: none is there to be built behind the graph."""

    __slots__ = ()

    def __init__(self) -> None:
        self.source = None

    def python_type(self) -> type:
        return RemovableHandle


def register(tx: Any, obj: TensorVariable, args: list, kwargs: dict) -> VariableTracker:
    """``Tensor.register_hook``."""
    state, graph = tx.state, tx.state.graph
    if obj.source is not None or len(args) != 1 or kwargs or graph.body is not None or state.pure:
        raise GraphBreak("hook_on_intermediate", "Tensor.register_hook() of a tensor from outside, or in a region of its own")
    if not obj.fake.requires_grad:
        raise GraphBreak("hook_on_intermediate", "Tensor.register_hook() of a tensor that requires no gradient")
    grad_mode = torch.is_grad_enabled()
    torch._C._set_grad_enabled(False)  # as in a backward pass
    try:
        with graph.propagating():
            grad = torch.empty_like(obj.fake)
        traced = subgraphs.trace(tx, "register_hook", args[0], (grad,), {})
    finally:
        torch._C._set_grad_enabled(grad_mode)
    result = traced.results
    if result is not None and not (isinstance(result, torch.Tensor) and result.shape == grad.shape and result.dtype is grad.dtype):
        raise GraphBreak("hook_on_intermediate", "a hook that gives something other than a gradient")
    if result is None:
        return HandleVariable()  # it has looked at the gradient, no more
    inner = graph.submodule("hook", traced.module(single=True))
    node = graph.node("call_function", register_hook, (obj.node, inner, *traced.lifted), {})
    node.meta["stack_trace"] = state.stack_trace()
    state.dirty += 1
    state.outside += 1  # for blocks: the node is none of those that they repeat
    return HandleVariable()


torchops.METHODS["register_hook"] = register
