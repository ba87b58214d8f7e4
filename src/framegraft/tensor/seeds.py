"""The states of torch's random number generators: the CPU's and, where the program uses some, those of accelerators."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

States = list[tuple[torch.device, torch.Tensor]]

_CPU = torch.device("cpu")
_KINDS = ("cuda", "xpu")  # whose modules have get_rng_state(device) and set_rng_state(state, device)


def states_in_use() -> States:
    """Of all generators that the program can have drawn from; of accelerators that nobody has used there is none."""
    found = [torch.device(kind, i) for kind in _KINDS if _module(kind).is_initialized() for i in range(_module(kind).device_count())]
    return states([_CPU, *found])


def states(devices: Iterable[torch.device]) -> States:
    """Of the generators of these devices. Those that a CUDA graph is recorded with are its own, and left alone (CUDAGeneratorImpl)."""
    return [(device, _get(device)) for device in devices if not is_recorded(device)]


def put_back(known: States) -> None:
    for device, state in known:
        if device == _CPU:
            torch.set_rng_state(state)
        elif not is_recorded(device):
            _module(device.type).set_rng_state(state, device)


def devices_of(values: Iterable[Any]) -> tuple[torch.device, ...] | None:
    """The devices whose numbers an operation on these may draw, the CPU first; None where one of them keeps its state otherwise."""
    found = dict.fromkeys((_CPU, *(v.device for v in values if isinstance(v, torch.Tensor) and v.device.type != "meta")))
    return tuple(found) if all(device == _CPU or device.type in _KINDS for device in found) else None


def _get(device: torch.device) -> torch.Tensor:
    return torch.get_rng_state() if device == _CPU else _module(device.type).get_rng_state(device)


def is_recorded(device: torch.device) -> bool:
    """Whether a CUDA graph is being recorded there."""
    return device.type == "cuda" and torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()


def _module(kind: str) -> Any:
    return torch.get_device_module(kind)
