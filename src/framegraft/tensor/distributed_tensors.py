"""DTensor's own methods, which are nodes: torch's code for them knows what fake tensors give."""

from __future__ import annotations

import sys
from typing import Any

from ..errors import GraphBreak
from ..model.dispatch import HANDLERS, constructs, handles
from ..model.value import ConstantVariable, VariableTracker
from ..semantics import folding
from . import torchops
from .whole_calls import call_whole

_METHODS = ("from_local", "to_local", "redistribute", "full_tensor")
_PLACEMENTS = ("Replicate", "Shard", "Partial")


def register_late() -> None:
    """Once the program has loaded them."""
    module = sys.modules.get("torch.distributed.tensor")
    if module is None or id(module.DTensor.to_local) in HANDLERS:
        return
    for name in _METHODS:
        _as_node(getattr(module.DTensor, name))
    placements = [getattr(module, name) for name in _PLACEMENTS]
    torchops.VALUES.update(placements)  # made in C++: nobody can change one
    constructs(*placements)(_placement)


def _as_node(method: Any) -> None:
    @handles(method)
    def call(tx: Any, args: list, kwargs: dict) -> VariableTracker:
        return call_whole(tx, method, args, kwargs)


def _placement(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    if not all(isinstance(a, ConstantVariable) for a in (*args, *kwargs.values())):
        raise GraphBreak("untraceable_call", f"{cls.__name__} of what is no constant")
    return folding.fold(cls, args, {name: a.value for name, a in kwargs.items()})
