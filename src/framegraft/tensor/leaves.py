"""Tensors made in the graph of which the program says that they require a gradient, while grad mode is off.

Nothing that is computed from them in this mode requires one, so that the graph needs to know of no gradient: what leaves it gets its
mark behind the graph. In grad mode such a tensor is no operand of a node; nor is a view of a parameter from outside that was made in
no_grad mode.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from ..model.value import ConstantVariable, TensorVariable, constant
from .running import run_node


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

