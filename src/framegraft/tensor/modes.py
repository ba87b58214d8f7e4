"""Torch's thread-wide switches that a program may set while it is traced: grad mode and autocast.

A switch takes effect in the trace at once (fake tensors see it), goes into the graph as a node, and is set again by the
transformed code behind the graph, because a backend may keep the graph's switches to itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from ..errors import GraphBreak
from ..model.dispatch import handles
from ..model.value import NONE, ConstantVariable, VariableTracker, constant

_DEVICES = ("cpu", "cuda")
_C: Any = torch._C  # its private functions have no stubs
#: Which kernels scaled_dot_product_attention may take: what torch.nn.attention.sdpa_kernel sets.
_SDP = tuple((getattr(_C, f"_set_sdp_use_{kind}"), getattr(_C, f"_get_{kind}_sdp_enabled"))
             for kind in ("cudnn", "flash", "mem_efficient", "math", "overrideable") if hasattr(_C, f"_get_{kind}_sdp_enabled"))
SWITCHES = frozenset((torch._C._set_grad_enabled, torch.set_autocast_enabled, torch.set_autocast_dtype, torch.set_autocast_cache_enabled,
                      torch.clear_autocast_cache, *(setter for setter, _ in _SDP)))  # as nodes of a graph


class Modes:
    """A snapshot of the switches."""

    __slots__ = ("values",)

    def __init__(self) -> None:
        """What holds now."""
        self.values: dict[Any, Any] = {(torch._C._set_grad_enabled,): torch.is_grad_enabled()}
        for device in _DEVICES:
            self.values[torch.set_autocast_enabled, device] = torch.is_autocast_enabled(device)
            self.values[torch.set_autocast_dtype, device] = torch.get_autocast_dtype(device)
        self.values[torch.set_autocast_cache_enabled,] = torch.is_autocast_cache_enabled()
        for setter, getter in _SDP:
            self.values[setter,] = getter()

    def restore(self) -> None:
        now = Modes().values
        for (setter, *where), value in self.values.items():
            if now[(setter, *where)] != value:
                setter(*where, value)

    def changes_since(self, before: Modes) -> list[tuple]:
        """Calls (function, arguments...) that lead from ``before`` to here. Grad mode is always told."""
        return [(*key, value) for key, value in self.values.items()
                if key[0] is torch._C._set_grad_enabled or before.values[key] != value]


@contextlib.contextmanager
def no_saved_tensor_hooks() -> Iterator[None]:
    """Keeps the program's hooks on saved tensors from what a trace computes on fake ones; a checkpoint counts, for one."""
    autograd: Any = torch._C._autograd  # type: ignore[attr-defined]
    hooks = []
    while (top := autograd._top_saved_tensors_default_hooks(True)) is not None:
        hooks.append(top)
        autograd._pop_saved_tensors_default_hooks()
    try:
        yield
    finally:
        for pack, unpack in reversed(hooks):
            autograd._push_saved_tensors_default_hooks(pack, unpack)


def _node(tx: Any, fn: Any, args: tuple) -> None:
    graph = tx.state.graph
    graph.node("call_function", fn, args, {})
    graph.call_count -= 1  # a graph of nothing but switches need not run
    graph.switches += 1
    tx.state.dirty += 1


def _plain(args: list, kwargs: dict, name: str) -> tuple:
    if kwargs or not all(isinstance(a, ConstantVariable) for a in args):
        raise GraphBreak("untraceable_call", f"{name} of something other than constants")
    return tuple(a.value for a in args)


@handles(torch._C._set_grad_enabled)
def set_grad_enabled(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    mode, = _plain(args, kwargs, "set_grad_enabled")
    if torch.is_grad_enabled() != mode:
        _node(tx, torch._C._set_grad_enabled, (mode,))
        torch._C._set_grad_enabled(mode)
    return NONE


def _switch(setter: Any, getter: Any) -> None:
    @handles(setter)
    def switch(tx: Any, args: list, kwargs: dict) -> VariableTracker:
        values = _plain(args, kwargs, setter.__name__)
        if getter(*values[:-1]) != values[-1]:
            _node(tx, setter, values)
            setter(*values)
        return NONE


_switch(torch.set_autocast_enabled, torch.is_autocast_enabled)
_switch(torch.set_autocast_dtype, torch.get_autocast_dtype)
_switch(torch.set_autocast_cache_enabled, torch.is_autocast_cache_enabled)
for _setter, _getter in _SDP:
    _switch(_setter, _getter)


@handles(torch.clear_autocast_cache)
def clear_autocast_cache(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    _node(tx, torch.clear_autocast_cache, ())
    return NONE


@handles(torch.autocast_increment_nesting)
def increment_nesting(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    tx.state.graph.nesting += 1
    tx.state.dirty += 1
    return constant(torch.autocast_increment_nesting())


@handles(torch.autocast_decrement_nesting)
def decrement_nesting(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    tx.state.graph.nesting -= 1
    tx.state.dirty += 1
    return constant(torch.autocast_decrement_nesting())
