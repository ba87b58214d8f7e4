"""Making fake tensors: one for each operation and each parameter, so that the making is most of what a rule of ours costs."""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

_subclass = torch.Tensor._make_subclass
_no_data: Any = torch._C._set_throw_on_mutable_data_ptr  # type: ignore[attr-defined]
META = torch.device("meta")
_WithoutDispatch: Any = torch._C._DisableTorchDispatch  # type: ignore[attr-defined]


def twin(mode: Any, meta: torch.Tensor, device: torch.device) -> FakeTensor:
    """The fake tensor on ``device`` with the metadata of ``meta``, as FakeTensor's constructor makes it.

    The constructor makes the first one of each device in a ``CaptureMode``; its attributes, all of them unchangeable, are
    copied for the others.
    """
    known = getattr(mode, "twins", None)
    attributes = None if known is None else known.get(device)
    if attributes is None:
        made = FakeTensor(mode, meta, device)
        if known is not None:
            known[device] = dict(made.__dict__)
        return made
    made: Any = _subclass(FakeTensor, meta, meta.requires_grad, dispatch_device=True, device_for_backend_keys=device)
    _no_data(made)
    made.__dict__.update(attributes)
    return made


def fresh(mode: Any, shape: Any, dtype: torch.dtype, device: torch.device) -> FakeTensor:
    """A contiguous one."""
    without = _WithoutDispatch()
    try:
        return twin(mode, torch.empty(shape, dtype=dtype, device=META), device)
    finally:
        del without


def empty(mode: Any, shape: Any, stride: Any, dtype: torch.dtype, device: torch.device) -> FakeTensor:
    """One with these strides."""
    without = _WithoutDispatch()
    try:
        return twin(mode, torch.empty_strided(shape, stride, dtype=dtype, device=META), device)
    finally:
        del without
