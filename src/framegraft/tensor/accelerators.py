"""Accelerators: which of several the program means, what they can do, and the contexts that choose one (torch/cuda/__init__.py)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
import torch.cuda.amp.common

from ..errors import GraphBreak
from ..model.dispatch import handles, specialised
from ..model.value import ConstantVariable, VariableTracker, constant
from ..semantics import folding
from . import devices
from .modes import guard_answer

#: Kinds of which a process may have several, one of them the current one.
NUMBERED = ("cuda", "xpu")
_KNOWN = (bool, int, str, tuple, type(None), torch.device)


def current(tx: Any, kind: str) -> int:
    """Which of several devices one without a number stands for: guarded where there are several."""
    module = torch.get_device_module(kind)
    number: int = module.current_device()
    if module.device_count() > 1:
        guard_answer(tx, module.current_device, number)
    return number


def note_moves(tx: Any, method: Any, args: Iterable[VariableTracker]) -> None:
    """``args``: of an operation that may say where its result is to be; ``method``: its name, if it is one of a tensor."""
    asked = [a.value for a in args if isinstance(a, ConstantVariable)]
    if method in NUMBERED and (not asked or asked[0] is None):
        current(tx, method)
    for value in asked:
        kind = value.type if isinstance(value, torch.device) and value.index is None else value
        if type(kind) is str and kind in NUMBERED:
            current(tx, kind)


def _fact(fn: Any) -> None:
    """Of the machine, and of the current device where the program names none."""

    @handles(fn)
    def tell(tx: Any, args: list, kwargs: dict) -> VariableTracker:
        given, named = [specialised(a) for a in args], {key: specialised(value) for key, value in kwargs.items()}
        if not all(isinstance(a, ConstantVariable) and type(a.value) in _KNOWN for a in (*given, *named.values())):
            raise GraphBreak("untraceable_call", f"{fn.__name__} of something other than constants")
        if torch.cuda.is_initialized():
            current(tx, "cuda")
        return folding.fold(fn, given, {key: value.value for key, value in named.items()})


for _asked in (torch.cuda.get_device_name, torch.cuda.get_device_capability, torch.cuda.is_bf16_supported, torch.cuda.is_tf32_supported,
               torch.cuda.amp.common.amp_definitely_not_available):
    _fact(_asked)


@handles(torch.get_default_device)
def get_default_device(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    devices.guard(tx.state)
    if not tx.state.devices:
        if tx.state.devices_before[1] and not tx.state.default_device:
            raise GraphBreak("untraceable_call", "a default device that is not in force")
        return constant(torch.device("cpu"))
    device = tx.state.devices[-1]
    if device.index is None and device.type not in ("cpu", "meta"):
        if device.type not in NUMBERED:
            raise GraphBreak("untraceable_call", "which device of several is the default")
        device = torch.device(device.type, current(tx, device.type))
    return constant(device)


@handles(torch.cuda.current_device)
def current_device(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    if not torch.cuda.is_initialized():
        raise GraphBreak("untraceable_call", "torch.cuda.current_device() before CUDA is used")
    return constant(current(tx, "cuda"))


@handles(torch.cuda._utils._get_device_index)
def device_index(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    given = dict(zip(("device", "optional", "allow_cpu"), args, strict=False)) | kwargs
    device = specialised(given.pop("device"))
    value = device.value if isinstance(device, ConstantVariable) else None
    if isinstance(value, str):
        value = torch.device(value)
    if type(value) is int:
        return device
    if not isinstance(value, torch.device) or value.type != "cuda":
        raise GraphBreak("untraceable_call", "the index of something other than a device of CUDA")
    return constant(current(tx, "cuda") if value.index is None else value.index)


@handles(torch.cuda._exchange_device, torch.cuda._maybe_exchange_device)
def exchange_device(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    """``with torch.cuda.device(x.device)``: nothing happens where that is the current device, or none."""
    number = specialised(args[0])
    value = number.value if isinstance(number, ConstantVariable) and type(number.value) is int else None
    if value is not None and value < 0:
        return constant(-1)
    if value is None or not torch.cuda.is_initialized() or value != current(tx, "cuda"):
        raise GraphBreak("unsupported_context", "another current device")
    return number
