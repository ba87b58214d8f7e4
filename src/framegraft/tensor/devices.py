"""The default device: ``torch.set_default_device`` and ``with torch.device(...)`` (torch/utils/_device.py).

torch keeps it as a mode that sees each call and adds ``device=`` where a function makes a tensor out of nothing. A trace has
those modes taken away, and adds it itself: the graph says which device it means, whatever holds when it runs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._device import DeviceContext, _device_constructors

from ..errors import GraphBreak
from ..model.dispatch import TENSOR, handles, method
from ..model.source import pinned
from ..model.value import NONE, ConstantVariable, TensorVariable, VariableTracker, constant

_C: Any = torch._C


def _modes() -> list[Any]:
    return [_C._get_function_stack_at(i) for i in range(_C._len_torch_function_stack())]


def only_devices() -> bool:
    """Whether no mode sees what torch's functions do, but for default devices, and these do."""
    return not _C._is_torch_function_all_disabled() and all(type(mode) is DeviceContext for mode in _modes())


def _default() -> Any:
    return getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)  # type: ignore[attr-defined]


def here() -> tuple:
    """What the program's own thread has: the devices, outermost first; whether there is a default; whether that one is the first."""
    modes, default = _modes(), _default()
    return tuple(getattr(m, "device", None) for m in modes), default is not None, bool(modes) and modes[0] is default


class _DevicesAre:
    """Guard: the same default devices, which are in force."""

    def __init__(self, value: tuple) -> None:
        self.value = value
        self.__name__ = f"default_devices_are[{', '.join(map(str, value[0]))}]"

    def __call__(self, value: Any) -> bool:
        return here() == self.value and not _C._is_torch_function_all_disabled()


@contextlib.contextmanager
def taken_away() -> Iterator[Any]:
    """The context of a trace: none of these modes sees what it does. Gives the context in which they are back."""
    modes = _take()
    try:
        yield lambda: _back(modes)
    finally:
        _put(modes)


@contextlib.contextmanager
def _back(modes: list[Any]) -> Iterator[None]:
    _put(modes)
    try:
        yield
    finally:
        _take()


def _take() -> list[Any]:
    return [_C._pop_torch_function_stack() for _ in range(_C._len_torch_function_stack())]


def _put(modes: list[Any]) -> None:
    for mode in reversed(modes):
        _C._push_on_torch_function_stack(mode)


def begin(state: Any, found: tuple, own: Any) -> None:
    """``found``: what ``here()`` gave before the trace; ``own``: what ``taken_away()`` did."""
    state.devices = list(found[0])
    state.own_devices = own
    state.devices_before = found
    state.graph.watches_devices = bool(found[0])
    if found[0]:
        guard(state)


def of_program(tx: Any) -> Any:
    if steps(tx.state):
        raise GraphBreak("unknown_c_function", "a function that is called while it is captured, under another default device")
    return tx.state.own_devices()


TENSOR.devices_of_program = of_program


def guard(state: Any) -> None:
    state.guards.add(pinned(here), "PY", _DevicesAre(state.devices_before))


def with_device(tx: Any, fn: Any, args: list, kwargs: dict) -> dict:
    """The keyword arguments of a call, with the default device where the call would get it.

    That is said also where the program has left the device that the frame began with: the graph runs before it is left.
    """
    if fn not in _device_constructors():
        return kwargs
    given = kwargs.get("device", NONE)
    if not isinstance(given, ConstantVariable) or given.value is not None:
        return kwargs
    for frame in tx.state.frames:  # whatever a function of torch calls that shows itself to modes is not shown to them
        if any("torch_function" in name for name in frame.code.co_names):
            raise GraphBreak("untraceable_call", f"{fn.__name__} in {frame.code.co_name}, under a default device")
    if tx.state.devices:
        device = tx.state.devices[-1]
    else:
        device = args[0].fake.device if args and isinstance(args[0], TensorVariable) else torch.device("cpu")
    return {**kwargs, "device": constant(device)}


class Watch(TorchFunctionMode):
    """Ends the trace where an operation, written in Python, would make a tensor on the default device."""

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        if func in _device_constructors() and (kwargs or {}).get("device") is None:
            raise GraphBreak("untraceable_call", f"{func.__name__} inside of an operation, under a default device")
        return func(*args, **(kwargs or {}))


@method(ConstantVariable, "__enter__")
def enter(tx: Any, obj: ConstantVariable, args: list, kwargs: dict) -> VariableTracker | None:
    if type(obj.value) is not torch.device:
        return None
    if tx.state.function_modes:
        raise GraphBreak("unsupported_context", "a default device inside of a TorchFunctionMode")
    guard(tx.state)
    tx.state.changed(None)
    tx.state.graph.watches_devices = True
    tx.state.devices.append(obj.value)
    return obj


@method(ConstantVariable, "__exit__")
def leave(tx: Any, obj: ConstantVariable, args: list, kwargs: dict) -> VariableTracker | None:
    if type(obj.value) is not torch.device:
        return None
    if not tx.state.devices:
        raise GraphBreak("unsupported_context", "a default device that was not entered")
    guard(tx.state)
    tx.state.changed(None)
    tx.state.devices.pop()
    return NONE


@handles(torch.set_default_device)
def set_default_device(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    state = tx.state
    if state.function_modes:
        raise GraphBreak("unsupported_context", "a default device inside of a TorchFunctionMode")
    given = next(iter((*args, *kwargs.values())), None)
    _, has_default, is_first = state.devices_before
    known = len(state.devices) == (state.default_device[0] is not None if state.default_device else has_default)
    if not known or has_default != is_first or not isinstance(given, ConstantVariable):
        raise GraphBreak("untraceable_call", "set_default_device inside of another device's context")
    try:
        device = None if given.value is None else torch.device(given.value)
    except (RuntimeError, TypeError) as error:  # eager mode raises it
        raise GraphBreak("raised_exception", f"set_default_device(): {error}") from None
    guard(state)
    state.changed(None)
    state.devices[:] = [] if device is None else [device]
    state.graph.watches_devices = True
    state.default_device = [device]
    return NONE


def steps(state: Any) -> list[tuple]:
    """Calls that lead from what the program has at frame entry to what it has here."""
    before = list(state.devices_before[0])
    calls: list[tuple] = []
    if state.default_device:
        calls += [(device.__exit__, None, None, None) for device in reversed(before[state.devices_before[1]:])]
        calls.append((torch.set_default_device, state.default_device[0]))
        before = [] if state.default_device[0] is None else [state.default_device[0]]
    common = 0
    while common < min(len(before), len(state.devices)) and before[common] == state.devices[common]:
        common += 1
    calls += [(device.__exit__, None, None, None) for device in reversed(before[common:])]
    return calls + [(device.__enter__,) for device in state.devices[common:]]
