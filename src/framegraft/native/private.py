"""Names of torch's own that its releases have otherwise."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch._guards
from torch import _prims_common as prims


def _same(fn: Any) -> Any:
    return fn


def hints(env: Any) -> dict[Any, Any]:
    """A ShapeEnv's values that symbols had when they were made."""
    return env.backed_var_to_val if hasattr(env, "backed_var_to_val") else env.var_to_val


def note_unbacked_input(env: Any, symbol: Any) -> None:
    """Tell a ShapeEnv that an unbacked symbol comes from an input; 2.8 does not ask."""
    if hasattr(env, "unbacked_inputs"):
        env.unbacked_inputs.add(symbol)


# Whether a tensor's elements fill its memory without overlap; what is not known counts as no. In 2.8 it is always known.
is_dense: Callable[[torch.Tensor], bool] = (
    getattr(prims, "is_non_overlapping_and_dense_or_false", None) or prims.is_non_overlapping_and_dense)  # type: ignore[attr-defined]
# What is called as ``apply`` of any autograd.Function. From 2.15 on it is one of C's.
_apply: Any = torch.autograd.Function.apply
FUNCTION_APPLY: Any = getattr(_apply, "__func__", None) or torch.autograd.Function.__dict__["apply"]


def function_apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
    """torch's own ``apply`` of an autograd.Function, whatever the class has under that name."""
    return torch.autograd.Function.__dict__["apply"].__get__(None, cls)(*args, **kwargs)


@functools.cache
def apply_takes_keywords() -> bool:
    """Whether ``apply`` finds the places of keyword arguments where there is no ``setup_context``."""

    class Probe(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, given: Any) -> Any:
            return given

    try:
        return function_apply(Probe, given=0) == 0
    except TypeError:
        return False


# How a Source tells its name: as a property; in 2.8 as a method.
source_field: Any = property if isinstance(vars(torch._guards.Source).get("name"), (property, functools.cached_property)) else _same
