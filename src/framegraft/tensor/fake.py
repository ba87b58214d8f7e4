"""Fake tensors: shape propagation without running anything.

``CaptureMode`` is torch's FakeTensorMode built without its constructor, because that constructor imports all of
``torch._dynamo`` (1.3 s) to read two settings.
"""

from __future__ import annotations

from typing import Any

import torch
import torch._functorch.config as functorch_config
from torch._subclasses import fake_tensor as ft
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorConverter, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode


class CaptureMode(FakeTensorMode):
    """A FakeTensorMode with static shapes, as its constructor would leave it with default settings."""

    def __init__(self) -> None:  # noqa: D107 - see the class
        TorchDispatchMode.__init__(self)
        self.allow_fallback_kernels = True
        self.propagate_real_tensors = False
        self.fake_tensor_converter = FakeTensorConverter(copy_data=False, export=False)
        self.static_shapes = True
        self.allow_scalar_outputs = False
        self._allow_unsafe_data_ptr_access = functorch_config.fake_tensor_allow_unsafe_data_ptr_access
        self.allow_meta = functorch_config.fake_tensor_allow_meta
        self.cache_enabled = True
        self.cache_crosscheck_enabled = False
        self.allow_non_fake_inputs = False
        self.in_kernel_invocation = False
        self.enter_stack = []
        self.shape_env = None
        self._stack_trace = []
        self._stack = None
        self._mode_key = torch._C._TorchDispatchModeKey.FAKE
        import torch.nested._internal.nested_tensor as nested  # noqa: PLC0415 - heavy, and only its counter is needed

        self.nt_tensor_id_initial_count = nested._tensor_id_counter
        self.nt_tensor_id_counter = self.nt_tensor_id_initial_count
        self.random = False  # whether an operation drew random numbers

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: D105
        if not self.random and torch.Tag.nondeterministic_seeded in func.tags:
            self.random = not _drops_nothing(func, args, kwargs or {})
        return super().__torch_dispatch__(func, types, args, kwargs)


def _drops_nothing(func: Any, args: tuple, kwargs: dict) -> bool:
    """Whether a call of an operation with dropout inside draws no random number."""
    for index, argument in enumerate(func._schema.arguments):
        if argument.name in ("dropout_p", "train", "dropout"):
            value = args[index] if index < len(args) else kwargs.get(argument.name, argument.default_value)
            if not value:
                return True
    return False


DATA_DEPENDENT = (
    ft.DataDependentOutputException,
    ft.DynamicOutputShapeException,
    ft.UnsupportedOperatorException,
)


class _Origin:
    """The least that torch asks of a source; without one it imports torch._dynamo to make one up."""

    def __init__(self, name: str) -> None:
        self._name = name

    def name(self) -> str:
        return self._name

    def guard_source(self) -> None:
        return None

    def is_ephemeral(self) -> bool:
        return False


def to_fake(mode: FakeTensorMode, tensor: torch.Tensor, name: str) -> Any:
    """The fake twin of ``tensor``; views of other tensors make torch look for sources, so they get none."""
    source = None if tensor._is_view() else _Origin(name)
    return mode.from_tensor(tensor, static_shapes=True, source=source)  # type: ignore[arg-type]


__all__ = ["DATA_DEPENDENT", "CaptureMode", "FakeTensor", "to_fake"]
