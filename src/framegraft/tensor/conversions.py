"""Tensors that the trace makes tensors of a class of the program's.

In the graph each is a plain tensor, which gets its class where it leaves the graph (``subclasses.to_subclass``).
"""

from __future__ import annotations

from typing import Any

import torch

from ..errors import GraphBreak
from ..interp.state import realize
from ..model.dispatch import handles
from ..model.value import FALSE, ConstantVariable, TensorVariable, VariableTracker
from ..semantics import making
from . import leaves, literal, subclasses, torchops
from .fake import FakeTensor
from .running import run_node


def as_subclass(tx: Any, tensor: TensorVariable, cls: type, new: frozenset = frozenset()) -> TensorVariable:
    """``tensor.as_subclass(cls)``: another tensor with the same memory, which no code of the class has seen.

    ``new``: nodes whose tensors nobody else has.
    """
    _check(tx, tensor, cls)
    grad = torch.is_grad_enabled()
    if tensor.fake.requires_grad and not grad:
        raise GraphBreak("input_subclass", f"a tensor made one of class {cls.__name__}, in a mode of autograd's")
    if cls is not torch.Tensor:
        subclasses.begin(tx.state)
    if tensor.node not in new or tensor.made_as is not None:
        with subclasses.switched_off(tx.state):
            tensor = run_node(tx, "call_function", torch.ops.aten.alias.default, [tensor], {})  # type: ignore[assignment]
    tensor.cls = cls
    tensor.made_as = grad if cls is not torch.Tensor else None
    return tensor


def _check(tx: Any, tensor: TensorVariable, cls: type) -> None:
    state = tx.state
    if cls is not torch.Tensor and (not subclasses.is_live(cls) or not subclasses.is_captured(state, cls)):
        raise GraphBreak("input_subclass", f"a tensor made one of class {cls.__name__}")
    if (torch.is_inference_mode_enabled() or type(tensor.fake) is not FakeTensor or id(tensor.fake) in state.graph.leaves
            or tensor.fake.is_inference()):
        raise GraphBreak("input_subclass", f"a tensor made one of class {cls.__name__}, in a mode of autograd's")


def _as_subclass_method(tx: Any, obj: TensorVariable, args: list, kwargs: dict) -> VariableTracker:
    given = [*args, *kwargs.values()]
    cls = getattr(realize(given[0], tx.state), "value", None) if len(given) == 1 else None
    if not isinstance(cls, type) or not issubclass(cls, torch.Tensor) or kwargs.keys() - {"cls"}:
        raise GraphBreak("raised_exception", "Tensor.as_subclass of other arguments")
    return as_subclass(tx, obj, cls)


def _new(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    """``torch.Tensor.__new__(cls, tensor)``, which is ``tensor.as_subclass(cls)`` (legacy_tensor_generic_ctor_new)."""
    tensor = realize(args[0], tx.state) if len(args) == 1 and not kwargs else None
    if cls is torch.Tensor and not isinstance(tensor, TensorVariable):
        return literal.make(tx, cls, args, kwargs)
    if not _is_plain(tx, tensor) or cls in subclasses.PLAIN:
        raise GraphBreak("untraceable_call", f"{cls.__name__}() of something other than a plain tensor")
    return as_subclass(tx, tensor, cls)  # type: ignore[arg-type]


@handles(torch.Tensor._make_subclass)
def make_subclass(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    """``torch.Tensor._make_subclass(cls, tensor)``: detached, and no view (THPVariable_make_subclass)."""
    cls, tensor, requires_grad = (*[realize(arg, tx.state) for arg in args[:3]], FALSE, FALSE, FALSE)[:3]
    requires_grad = realize(kwargs.get("require_grad", requires_grad), tx.state)
    made = getattr(cls, "value", None)
    if getattr(made, "__torch_dispatch__", None) is not torch._C._disabled_torch_dispatch_impl:
        raise GraphBreak("input_subclass", f"a tensor made one of class {made}, which has a __torch_dispatch__")
    if made is torch.nn.Parameter and isinstance(tensor, TensorVariable) and _is_plain(tx, tensor) and len(args) <= 3 and not kwargs:
        return leaves.make_parameter(tx, tensor, requires_grad)
    known = isinstance(made, type) and issubclass(made, torch.Tensor) and made not in subclasses.PLAIN and _is_plain(tx, tensor)
    if not known or len(args) > 3 or kwargs.keys() - {"require_grad"} or not isinstance(requires_grad, ConstantVariable):
        raise GraphBreak("untraceable_call", "Tensor._make_subclass() of something other than a class and a plain tensor")
    if requires_grad.value is not False:
        raise GraphBreak("untraceable_call", "Tensor._make_subclass() of a tensor that requires a gradient then")
    _check(tx, tensor, made)  # type: ignore[arg-type]
    subclasses.begin(tx.state)
    with subclasses.switched_off(tx.state):
        result: Any = run_node(tx, "call_function", torch.ops.aten.detach.default, [tensor], {})
    result.cls = made
    result.made_as = subclasses.DETACHED
    return result


def _is_plain(tx: Any, tensor: Any) -> bool:
    return isinstance(tensor, TensorVariable) and tensor.cls in subclasses.PLAIN and not tx.state.function_modes


making.MAKERS[torch._C.TensorBase] = _new  # type: ignore[attr-defined]
torchops.METHODS["as_subclass"] = _as_subclass_method
