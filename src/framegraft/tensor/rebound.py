"""Tensors that get the memory of others: ``x.data = y``, and ``detach_()`` of tensors that the trace has made.

The tracker stands for the same tensor as before, so that its node is another one from then on. A tensor from outside gets its new memory
behind the graph. In the graph, gradients of what is computed from the new memory go to the tensor that they are for.
"""

from __future__ import annotations

from typing import Any

import torch

from ..errors import GraphBreak
from ..interp.state import realize
from ..model.value import TensorVariable, VariableTracker
from . import kept, subclasses, torchops, whole
from .fake import FakeTensor
from .modes import autocast_nesting
from .running import read, run_node


class _Rebind(torch.autograd.Function):
    """The new memory, with the history of the tensor that gets it."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, data: torch.Tensor) -> torch.Tensor:
        return data.data

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0], None


def rebind(tensor: torch.Tensor, data: torch.Tensor) -> torch.Tensor:
    """The node's function. Whatever the mode, a tensor that requires a gradient still does."""
    with torch.enable_grad():
        made: torch.Tensor = _Rebind.apply(tensor, data)
    return made


def get_data(tx: Any, obj: TensorVariable) -> VariableTracker:
    return read(tx, obj, "data")


def set_data(tx: Any, obj: TensorVariable, value: VariableTracker) -> None:
    """``tensor.data = value`` (torch/csrc/autograd/variable.cpp, VariableHooks::set_data)."""
    value = realize(value, tx.state)
    if value is obj:
        return  # what is there already: Module.to() where nothing differs
    if not isinstance(value, TensorVariable) or not _fits(obj, value):
        raise GraphBreak("unsupported_mutation", "Tensor.data set to something other than a plain tensor of the same kind")
    old, new = obj.fake, value.fake
    same = len(old.shape) == len(new.shape) and all(a == b for a, b in zip(old.shape, new.shape, strict=True))
    if not same and (old.requires_grad or "grad" in obj.attrs):
        raise GraphBreak("unsupported_mutation", "Tensor.data of another shape, of a tensor that has to do with gradients")
    _refuse_in_use(tx, obj)
    if obj.source is None and (old._version or old.requires_grad):
        raise GraphBreak("unsupported_mutation", "Tensor.data of a tensor that was made, and written to or with a gradient")
    data = get_data(tx, value)
    assert isinstance(data, TensorVariable)
    graph = tx.state.graph
    graph.rebound = [fake for fake in graph.rebound if fake is not old]
    made = run_node(tx, "call_function", rebind, [obj, data], {}) if old.requires_grad else data
    assert isinstance(made, TensorVariable)
    made.node.meta["rebound"] = True
    if obj.node.op == "placeholder":
        obj.node.meta["loses_memory"] = True  # what is saved of it for a backward pass has the new one by then
    _become(tx, obj, made)
    if obj.source is not None:
        obj.attrs.pop("data", None)
        obj.attrs["data"] = data
        tx.state.mark_mutated(obj)
        graph.rebound.append(obj.fake)


def detach_in_place(tx: Any, obj: TensorVariable, args: list, kwargs: dict) -> VariableTracker:
    """``Tensor.detach_()``"""
    plain = type(obj.fake) is FakeTensor and tx.state.graph.body is None and not args and not kwargs and not _is_view(obj)
    if plain and not obj.fake.requires_grad and obj.fake.is_leaf:
        return obj
    if not plain or obj.source is not None or not _is_plain(obj):
        raise GraphBreak("unsupported_mutation", "Tensor.detach_() of a view, or of a tensor from outside that requires a gradient")
    _refuse_in_use(tx, obj)
    made = run_node(tx, "call_method", "detach", [obj], {})
    assert isinstance(made, TensorVariable)
    _become(tx, obj, made)
    return obj


def _fits(obj: TensorVariable, value: TensorVariable) -> bool:
    """Whether the new memory is like the old, and both are known well enough."""
    old, new = obj.fake, value.fake
    if not _is_plain(obj) or not _is_plain(value) or old.dtype is not new.dtype or old.fake_device != new.fake_device:
        return False
    return not _is_view(obj) and not torch.is_inference_mode_enabled()


def _is_plain(obj: TensorVariable) -> bool:
    fake = obj.fake
    if type(fake) is not FakeTensor or fake.layout is not torch.strided or subclasses.is_live(obj.cls) or obj.made_as is not None:
        return False
    if obj.source is None and (obj.cls is not torch.Tensor or fake.is_leaf and fake.requires_grad):
        return False  # a leaf that is made anew in each call
    return not (fake.is_inference() or fake.is_conj() or fake.is_neg() or fake.fake_device.type == "meta")


def _is_view(obj: TensorVariable) -> bool:
    """Views share version and history with their base."""
    return obj.fake._is_view() or obj.value is not None and obj.value._is_view()


def _refuse_in_use(tx: Any, obj: TensorVariable) -> None:
    """Autograd may have saved the tensor, and finds in the backward pass what it has become. The graph has what it was."""
    graph = tx.state.graph
    if graph.body is not None or graph.levels or graph.has_arrays or id(obj.fake) in graph.leaves:
        raise GraphBreak("unsupported_mutation", "Tensor.data or detach_() near NumPy, forward mode or a function given to torch")
    if autocast_nesting() or graph.nesting:
        raise GraphBreak("unsupported_mutation", "Tensor.data or detach_() in a region of autocast, which may have cast the tensor before")
    for user in obj.node.users:
        results = list(kept.tensors(user.meta.get("example_value")))
        if not results and obj.fake.requires_grad:
            raise GraphBreak("unsupported_mutation", "Tensor.data or detach_() of a tensor that was used otherwise than as an operand")
        if obj.source is None and any(result._is_view() for result in results):
            raise GraphBreak("unsupported_mutation", "Tensor.data or detach_() of a tensor of which there are views")
        if any(result.requires_grad for result in results) and (whole.knows(user.target) or kept.keeps(results, [obj.fake], [])):
            raise GraphBreak("unsupported_mutation", "Tensor.data or detach_() of a tensor that autograd may have saved")


def _become(tx: Any, obj: TensorVariable, made: TensorVariable) -> None:
    """From now on the tracker stands for what is in ``made``."""
    graph = tx.state.graph
    if obj.source is not None:
        graph.inputs = [_as_given(t) if t is obj else t for t in graph.inputs]
    tx.state.changed(obj)
    for mark in ("_is_param", "_is_buffer"):
        if getattr(obj.fake, mark, False):
            setattr(made.fake, mark, True)
    obj.node, obj.fake = made.node, made.fake
    tx.state.outside += 1  # for blocks: they tell tensors apart by their nodes


def _as_given(obj: TensorVariable) -> TensorVariable:
    """The graph's input, which stays what it was."""
    return TensorVariable(obj.node, obj.fake, obj.cls, obj.source, obj.value)


torchops.ATTRIBUTES["data"] = get_data, set_data
torchops.METHODS["detach_"] = detach_in_place
