"""Whether an operation on fake tensors has done no more than give a new tensor: with others of the same metadata, it will again."""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any

import torch

from ..model.value import TensorVariable
from .fake import FakeTensor


class Watch:
    """Looks at an operation's operands before it runs, and at its result."""

    def __init__(self, mode: Any, operands: Iterable[TensorVariable]) -> None:
        self.mode = mode
        self.effects = mode.effects
        self.fakes = [t.fake for t in operands]
        self.seen = self._now()

    def _now(self) -> list[tuple] | None:
        if any(type(f) is not FakeTensor or f.layout is not torch.strided or f.is_inference() for f in self.fakes):
            return None  # these count no writes
        return [(f._version, f.shape, f.stride(), f.requires_grad) for f in self.fakes]

    def saw_only(self, result: Any) -> bool:
        """Whether ``result`` is a tensor that has memory of its own, and fills it, and nothing else happened."""
        if self.seen is None or self.mode.effects != self.effects or self._now() != self.seen:
            return False
        if type(result) is not FakeTensor or result.layout is not torch.strided or result.constant is not None:
            return False
        if result._is_view() or result.storage_offset() or result.is_conj() or result.is_neg() or result.is_inference():
            return False
        if result.requires_grad and result.is_leaf or not result.numel():
            return False
        memory = result.untyped_storage()
        if any(f.untyped_storage()._cdata == memory._cdata for f in self.fakes):
            return False
        last = sum((n - 1) * stride for n, stride in zip(result.shape, result.stride(), strict=True))
        return memory.nbytes() == (last + 1) * result.itemsize


def is_torchs(target: Any) -> bool:
    """Whether the operation is a function or method of torch's own, not a program's operator."""
    if isinstance(target, str):
        return True
    module = getattr(target, "__module__", None) or "torch"
    return isinstance(target, (types.FunctionType, types.BuiltinFunctionType)) and module.partition(".")[0] in ("torch", "_operator")
