"""Torch's higher-order operators that do no more than call their function, and the Python in front of ``scan``."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree


def call(operator: Any, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
    """``wrap(f, ...)``, torch's operator for tests of the others."""
    return fn(*args, **kwargs)


def call_region(fn: Any, /, *args: Any, **kwargs: Any) -> Any:
    """What ``torch.compiler.nested_compile_region`` makes of a function: in eager mode a call of it."""
    return fn(*args, **kwargs)


def call_with_autocast(
    operator: Any, device_type: Any, dtype: Any, enabled: Any, cache_enabled: Any, fn: Any, /, *args: Any, **kwargs: Any
) -> Any:
    with torch.autocast(device_type, dtype, enabled, cache_enabled):
        return fn(*args, **kwargs)


def call_with_grad_mode(operator: Any, enabled: Any, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
    before = torch.is_grad_enabled()
    torch.set_grad_enabled(enabled)
    result = fn(*args, **kwargs)
    torch.set_grad_enabled(before)
    return result


def scan(first: Any, combine_fn: Any, init: Any, xs: Any, dim: int, reverse: bool) -> Any:
    """torch/_higher_order_ops/scan.py: what is scanned comes to dimension 0, and goes back where it was; ``first`` scans that."""
    leaves, spec = _pytree.tree_flatten(xs)
    if dim != 0:
        leaves = [torch.movedim(leaf, dim, 0) for leaf in leaves]
    if reverse:
        leaves = [torch.flip(leaf, [0]) for leaf in leaves]
    carry, out = first(combine_fn, init, _pytree.tree_unflatten(leaves, spec))
    if reverse:
        out = _pytree.tree_map(lambda leaf: leaf.flip([0]), out)
    if dim != 0:
        out = _pytree.tree_map(lambda leaf: torch.movedim(leaf, 0, dim) if dim < leaf.ndim else leaf, out)
    return carry, out


def create_mask(kind_of: Any, mod_fn: Any, B: Any, H: Any, Q_LEN: Any, KV_LEN: Any, *device: Any, **named: Any) -> Any:  # noqa: N803
    """torch/nn/attention/flex_attention.py: ``kind_of`` tells what the function is for, by its parameters."""
    return masked(mod_fn, kind_of(mod_fn).name == "SCORE_MOD", (B, H, Q_LEN, KV_LEN, *device), named)


def masked(mod_fn: Any, of_scores: bool, given: Any, named: Any) -> Any:
    """Stands in a trace for the rest of ``create_mask``."""
    raise NotImplementedError
