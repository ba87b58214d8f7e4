"""Leaves that are made in the graph.

Of a parameter a node makes the program's own: compilers see it as an input, whose gradient goes where eager mode has it.

Other tensors may be told to require a gradient while grad mode is off. Nothing that is computed from them in this mode requires one, so
that the graph needs to know of no gradient: what leaves it gets its mark behind the graph. In grad mode such a tensor is no operand of a
node; nor is a view of a parameter from outside that was made in no_grad mode.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from ..errors import GraphBreak
from ..model.guards import Condition
from ..model.value import ConstantVariable, TensorVariable, VariableTracker, constant
from .running import run_node


class MadeAs(Condition):
    """Guard: a view was made in the same way (as one of several, in no_grad mode). To some of them autograd allows no writes."""

    __name__ = "made_as"

    def __init__(self, view: torch.Tensor) -> None:
        self.key = int(_creation_of(view))

    def __call__(self, value: torch.Tensor) -> bool:
        try:
            return int(_creation_of(value)) == self.key
        except RuntimeError:  # it is no view
            return False


_creation_of: Any = torch._C._autograd._get_creation_meta  # type: ignore[attr-defined]


class Traced(NotImplementedError):
    """A compiler traces through a graph in which a parameter is made."""


def parameter(data: torch.Tensor, *, requires_grad: bool) -> torch.nn.Parameter:
    """The node's function. Who traces through it would differentiate what becomes of the parameter, and give itself no gradient."""
    if type(data) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer, FakeTensor):
        raise Traced("nn.Parameter made in a graph that a compiler traces: framegraft's own aot_eager and inductor know how")
    return torch.nn.Parameter(data, requires_grad)


def make_parameter(tx: Any, data: TensorVariable, requires_grad: VariableTracker) -> TensorVariable:
    fake = data.fake
    if not tx.state.graph.makes_parameters:
        raise GraphBreak("untraceable_call", "nn.Parameter(), for a compiler that traces through it")
    if type(fake) is not FakeTensor or tx.state.graph.body is not None or torch.is_inference_mode_enabled() or fake.is_inference():
        raise GraphBreak("untraceable_call", "nn.Parameter() in inference mode, or in a function given to torch")
    if tx.state.graph.levels or id(fake) in tx.state.graph.leaves or not _is_bool(requires_grad):
        raise GraphBreak("untraceable_call", "nn.Parameter() in forward mode, or of a leaf that was made without grad mode")
    made = run_node(tx, "call_function", parameter, [data], {"requires_grad": requires_grad})
    assert isinstance(made, TensorVariable)
    return made


def _is_bool(tracker: VariableTracker) -> bool:
    return isinstance(tracker, ConstantVariable) and type(tracker.value) is bool


def may_become(tx: Any, obj: TensorVariable, args: list) -> bool:
    """Whether ``requires_grad_(*args)`` can be captured."""
    wanted, fake = args[0] if args else constant(True), obj.fake
    if not isinstance(wanted, ConstantVariable) or wanted.value is not True or len(args) > 1 or obj.source is not None:
        return False
    if type(fake) is not FakeTensor or tx.state.graph.body is not None or torch.is_grad_enabled() or torch.is_inference_mode_enabled():
        return False
    return not fake.requires_grad and fake.is_leaf and not fake._is_view() and (fake.is_floating_point() or fake.is_complex())


def make(tx: Any, obj: TensorVariable) -> TensorVariable:
    made = run_node(tx, "call_method", "requires_grad_", [obj], {})
    assert made is obj
    tx.state.graph.leaves[id(obj.fake)] = obj.fake
    return obj

