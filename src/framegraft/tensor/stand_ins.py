"""Tensors that functions of the program find by themselves, where something else stands for them.

A compiler runs a node's function on tensors of its own, with one for each input of the graph. What the function takes from a global or
an attribute is still the program's.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

PLAIN = (torch.Tensor, torch.nn.Parameter)  # the program's own


class _Standing(TorchFunctionMode):
    """``given``: by the ids of the tensors that they stand for."""

    def __init__(self, given: dict[int, torch.Tensor]) -> None:
        super().__init__()
        self.given = given

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args, kwargs = pytree.tree_map_only(torch.Tensor, lambda t: self.given.get(id(t), t), (args, kwargs or {}))
        return func(*args, **kwargs)


_METHODS = ("forward", "setup_context", "backward", "vjp")


def seeing(cls: Any, given: dict[int, torch.Tensor]) -> Any:
    """The ``autograd.Function`` with ``given`` in the place of tensors that its methods use."""
    own = {name: staticmethod(_within(getattr(cls, name), given)) for name in _METHODS
           if getattr(cls, name) is not getattr(torch.autograd.Function, name)}
    return type(cls)(cls.__name__, (cls,), own)


def _within(fn: Any, given: dict[int, torch.Tensor]) -> Any:
    def run(*args: Any) -> Any:
        with _Standing(given):
            return fn(*args)

    return run
