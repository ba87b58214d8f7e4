"""Tensors that the trace makes tensors of a class of the program's.

In the graph each is a plain tensor, which gets its class where it leaves the graph (``subclasses.to_subclass``).
"""

from __future__ import annotations

import enum
import types
from typing import Any

import torch

from ..errors import GraphBreak
from ..interp.state import realize
from ..model.dispatch import TENSOR, handles
from ..model.value import FALSE, MISSING, ConstantVariable, ObjectVariable, TensorVariable, VariableTracker
from ..semantics import making, members
from . import leaves, literal, subclasses, torchops, wrappers
from .apply_objects import ApplyArguments
from .arguments import Recipe
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


def _wrap(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker | None:
    """``cls(...)`` of a wrapper subclass, as one node: what its constructor does, it does in the graph. None for other classes."""
    if torch.Tensor not in cls.__mro__ or cls in subclasses.PLAIN or not wrappers.is_wrapper(cls):
        return None
    given = [realize(a, tx.state) for a in (*args, *kwargs.values())]
    inside = [a for a in given if isinstance(a, TensorVariable)]
    if not inside or any(a.attrs for a in inside) or not subclasses.is_captured(tx.state, cls):
        return None
    if subclasses.is_live(cls):
        subclasses.begin(tx.state)
    with subclasses.switched_off(tx.state):
        return call_whole(tx, cls, args, kwargs)


def call_whole(tx: Any, fn: Any, args: list, kwargs: dict) -> VariableTracker:
    """One node that calls ``fn``, which makes or takes wrappers, with what the program passes."""
    wrappers.expect(tx.state)
    given = [realize(a, tx.state) for a in (*args, *kwargs.values())]
    for tensor in given:
        if isinstance(tensor, TensorVariable):  # which a new wrapper may hold
            tx.state.graph.mode.wrappers.setdefault(id(tensor.fake), tensor)
    arguments = _WrapperArguments(tx, given)
    target = arguments.takes_back(_with_names(fn, len(args), list(kwargs)))
    return run_node(tx, "call_function", target, [*arguments.others, *arguments.values], {})


def _with_names(fn: Any, positions: int, names: list[str]) -> Any:
    """The function, with its keyword arguments behind the others."""
    if not names and not fn.__module__.startswith("torch."):  # torch.fx would write a path that leads nowhere
        return fn

    def call(*given: Any) -> Any:
        return fn(*given[:positions], **dict(zip(names, given[positions:], strict=True)))

    call.__name__ = call.__qualname__ = fn.__name__
    return call


class _WrapperArguments(ApplyArguments):
    """Objects from outside are handed over themselves, which is guarded: the new tensor keeps them. Those that the trace has made, and
    that nobody can change, are made anew.
    """

    def __init__(self, tx: Any, inputs: list) -> None:
        super().__init__(tx, inputs, {}, {})

    def is_made(self, tracker: VariableTracker) -> bool:
        tracker = realize(tracker, self.tx.state)
        return _is_object(tracker) or _is_value(tracker) or super().is_made(tracker)

    def recipe(self, tracker: VariableTracker) -> Recipe:
        tracker = realize(tracker, self.tx.state)
        if not _is_object(tracker):
            return super().recipe(tracker)
        assert isinstance(tracker, ObjectVariable)
        if tracker.value is MISSING and _is_frozen(tracker.cls):
            return self.made_anew(tracker)
        if tracker.value is MISSING or tracker.source is None or tracker.attrs or id(tracker) in self.tx.state.mutated:
            raise GraphBreak("input_subclass", f"a wrapper made with a {tracker.python_type().__name__} that the trace has made or changed")
        self.tx.state.guards.pin(tracker.source, tracker.value)
        self.tx.state.graph.mode.wrappers[id(tracker.value)] = tracker
        value = tracker.value
        return lambda values, made: value


def _is_frozen(cls: type) -> bool:
    parameters = cls.__dict__.get("__dataclass_params__")
    return parameters is not None and parameters.frozen


def _is_value(tracker: VariableTracker) -> bool:
    return isinstance(tracker, ConstantVariable) and type(tracker.value) in torchops.VALUES


def _is_object(tracker: VariableTracker) -> bool:
    plain = type(tracker) is ObjectVariable and tracker.payload is None and members.plain_value(tracker) is None
    return plain and not issubclass(tracker.cls, (type, types.FunctionType, enum.Enum))  # type: ignore[attr-defined]


TENSOR.construct = _wrap  # type: ignore[method-assign]
making.MAKERS[torch._C.TensorBase] = _new  # type: ignore[attr-defined]
torchops.METHODS["as_subclass"] = _as_subclass_method
