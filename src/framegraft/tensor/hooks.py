"""Hooks on the gradients of tensors. One on a tensor from outside is registered behind the graph: gradients come later.

On a tensor that the trace has made, the hook becomes a graph in the graph, registered where it was.

Whoever runs the graph registers it anew in each call; AOTAutograd traces through it when it makes the backward pass. A hook with
side effects breaks the graph, and so do the use of its handle, and a hook that looks at what may change before the backward pass.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx.node import has_side_effect
from torch.utils.hooks import RemovableHandle

from ..errors import GraphBreak
from ..interp.state import realize
from ..model.dispatch import method
from ..model.value import NONE, FunctionVariable, MethodVariable, ObjectVariable, TensorVariable, VariableTracker
from . import subgraphs, torchops
from .steady import is_steady, tells_none


@has_side_effect
def register_hook(tensor: torch.Tensor, body: Any, *lifted: Any) -> None:
    """The node's function; ``body`` takes the gradient and tensors from around the hook."""
    tensor.register_hook(lambda grad: body(grad, *lifted))


@has_side_effect
def register_hooks(tensor: torch.Tensor, body: Any, recorded: Any, count: int, *lifted: Any) -> None:
    """The same of a hook that does something else, ``recorded``, in a backward pass that is recorded itself.

    ``count``: how many of the tensors from around it ``body`` takes.
    """

    def hook(grad: torch.Tensor) -> Any:
        return recorded(grad, *lifted[count:]) if torch.is_grad_enabled() else body(grad, *lifted[:count])

    tensor.register_hook(hook)


class HandleVariable(VariableTracker):
    """What registering a hook on a tensor of the trace gives. It can only be forgotten: none is there to be built behind the graph."""

    __slots__ = ()

    def __init__(self) -> None:
        self.source = None

    def python_type(self) -> type:
        return RemovableHandle


class LaterHandleVariable(HandleVariable):
    """The same of a tensor from outside; ``call``, the method that registers it, gives the handle behind the graph."""

    __slots__ = ("call", "tensor", "hook", "version")

    def __init__(self, call: Any, tensor: TensorVariable, hook: VariableTracker) -> None:
        super().__init__()
        self.call = call
        self.tensor = tensor
        self.hook = hook
        self.version = tensor.fake._version

    def is_late(self) -> bool:
        """Whether the tensor has been written to since: autograd would take the hook for one on what it has become."""
        return self.tensor.fake._version != self.version


def _register_later(tx: Any, call: Any, obj: TensorVariable, hook: VariableTracker) -> VariableTracker:
    """Autograd keeps hooks with the tensor's history, whatever uses it before or after that."""
    state = tx.state
    known = isinstance(hook, (FunctionVariable, MethodVariable)) or isinstance(hook, ObjectVariable) and callable(hook.value)
    if not known or state.overriding or state.graph.symbols is not None and obj.fake._base is not None:
        raise GraphBreak("hook_on_intermediate", f"Tensor.{call.__name__}() of a tensor from outside")
    if not obj.fake.requires_grad or call is not torch.Tensor.register_hook and not obj.fake.is_leaf:
        raise GraphBreak("hook_on_intermediate", f"Tensor.{call.__name__}() of a tensor that requires no gradient, or is no leaf")
    state.changed(None)
    handle = LaterHandleVariable(call, obj, hook)
    state.hooked.append(handle)
    return handle


@method(LaterHandleVariable, "remove")
def remove(tx: Any, obj: LaterHandleVariable, args: list, kwargs: dict) -> VariableTracker:
    """RemovableHandle.remove: again, it does nothing."""
    if obj in tx.state.hooked:
        tx.state.changed(None)
        tx.state.hooked.remove(obj)
    return NONE


def register_accumulated(tx: Any, obj: TensorVariable, args: list, kwargs: dict) -> VariableTracker:
    """``Tensor.register_post_accumulate_grad_hook``."""
    if obj.source is None or len(args) != 1 or kwargs or tx.state.graph.body is not None or tx.state.pure:
        raise GraphBreak("hook_on_intermediate", "Tensor.register_post_accumulate_grad_hook()")
    return _register_later(tx, torch.Tensor.register_post_accumulate_grad_hook, obj, realize(args[0], tx.state))


def register(tx: Any, obj: TensorVariable, args: list, kwargs: dict) -> VariableTracker:
    """``Tensor.register_hook``."""
    state, graph = tx.state, tx.state.graph
    if len(args) != 1 or kwargs or graph.body is not None or state.pure:
        raise GraphBreak("hook_on_intermediate", "Tensor.register_hook() of a tensor from outside, or in a region of its own")
    if obj.source is not None and not graph.is_changed(obj.fake):  # else what AOTAutograd differentiates has passed behind the graph
        return _register_later(tx, torch.Tensor.register_hook, obj, realize(args[0], state))
    if not obj.fake.requires_grad:
        raise GraphBreak("hook_on_intermediate", "Tensor.register_hook() of a tensor that requires no gradient")
    if torch.is_autocast_enabled("cpu") or not is_steady(tx, args[0]):
        raise GraphBreak("hook_on_intermediate", "Tensor.register_hook() of a hook that may look at what changes before the backward pass")
    if tells_none(tx, args[0]):
        raise GraphBreak("hook_on_intermediate", "Tensor.register_hook() of a hook that asks whether there is a gradient")
    traced, recorded, asked = (_trace(tx, args[0], obj.fake, *how) for how in ((False, False), (True, False), (True, True)))
    if traced is None and recorded is None and asked is None:
        return HandleVariable()  # it has looked at the gradient, no more
    if traced is None or recorded is None or asked is None or not _equal(recorded, asked):
        raise GraphBreak("hook_on_intermediate", "a hook that asks whether its gradient requires one")
    _, inner, around = traced
    if _equal(traced, recorded):
        node = graph.node("call_function", register_hook, (obj.node, graph.submodule("hook", inner), *around), {})
    else:
        other = graph.submodule("hook", recorded[1])
        node = graph.node("call_function", register_hooks, (
            obj.node, graph.submodule("hook", inner), other, len(around), *around, *recorded[2]), {})
    node.meta["stack_trace"] = state.stack_trace()
    state.dirty += 1
    state.outside += 1  # for blocks: the node is none of those that they repeat
    return HandleVariable()


def _trace(tx: Any, hook: VariableTracker, fake: Any, grad_mode: bool, requires_grad: bool) -> tuple[str, Any, list] | None:
    """The hook's source, graph and tensors from around it in a backward pass with this grad mode; None where it gives nothing."""
    before = torch.is_grad_enabled()
    torch._C._set_grad_enabled(grad_mode)
    try:
        with tx.state.graph.propagating():
            grad = torch.empty_like(fake, requires_grad=requires_grad)
        traced = subgraphs.trace(tx, "register_hook", hook, (grad,), {})
    finally:
        torch._C._set_grad_enabled(before)
    result = traced.results
    if result is None:
        return None
    if not (isinstance(result, torch.Tensor) and result.shape == grad.shape and result.dtype is grad.dtype):
        raise GraphBreak("hook_on_intermediate", "a hook that gives something other than a gradient")
    module = traced.module(single=True)
    return module.code, module, traced.lifted


def _equal(one: tuple[str, Any, list], other: tuple[str, Any, list]) -> bool:
    return one[0] == other[0] and one[2] == other[2] and not any(True for _ in one[1].children())


torchops.METHODS["register_hook"] = register
torchops.METHODS["register_post_accumulate_grad_hook"] = register_accumulated
