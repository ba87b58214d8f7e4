"""Whether an operation on fake tensors has done no more than give new tensors: with operands of the same metadata, it will again."""

from __future__ import annotations

import enum
import types
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch

from ..model.value import TensorVariable
from .fake import FakeTensor


class New(NamedTuple):
    """A tensor with memory of its own, which it fills. ``grad``: autograd has recorded how it was made."""

    shape: torch.Size
    stride: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    grad: bool

    @classmethod
    def like(cls, fake: Any) -> New:
        return cls(fake.shape, fake.stride(), fake.dtype, fake.fake_device, fake.requires_grad)


class View(NamedTuple):
    """All of a new tensor, of which there is nothing else, in another shape."""

    base: New
    shape: torch.Size


class Other(enum.Enum):
    OPERAND = 0  #: one of the operands
    NOTHING = 1  #: None


Recipe = New | View | Other | list  # list: a tuple of such


def gives_gradient(recipe: Recipe) -> bool:
    if isinstance(recipe, list):
        return any(map(gives_gradient, recipe))
    return not isinstance(recipe, Other) and (recipe.base if isinstance(recipe, View) else recipe).grad


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

    def recipe(self, target: Any, result: Any) -> Recipe | None:
        """How ``result`` follows from the operands' metadata. None where it does not, or where something else has happened."""
        if self.seen is None or not is_torchs(target) or self.mode.effects != self.effects or self._now() != self.seen:
            return None
        if not is_pure(target) and (result is None or any(result is f for f in self.fakes)):
            return None
        return self._recipe(result, {f.untyped_storage()._cdata for f in self.fakes})

    def _recipe(self, result: Any, memory: set[int]) -> Recipe | None:
        """``memory``: of the operands, and of the results before this one."""
        if result is None:
            return Other.NOTHING
        if type(result) is tuple:
            parts = [self._recipe(part, memory) for part in result]
            return None if any(part is None for part in parts) else parts
        if any(result is f for f in self.fakes):
            return Other.OPERAND
        if type(result) is not FakeTensor:
            return None
        base: Any = result._base
        if base is None:
            return New.like(result) if _is_new(result, memory) else None
        whole = (type(base) is FakeTensor and _is_new(base, memory) and base.is_contiguous() and result.is_contiguous()
                 and result.numel() == base.numel() and _is_plain(result) and result.dtype == base.dtype)
        return View(New.like(base), result.shape) if whole else None


def _is_plain(fake: Any) -> bool:
    if fake.layout is not torch.strided or fake.is_inference() or fake.constant is not None:
        return False  # an inference tensor counts no writes
    if fake.storage_offset() or fake._version or fake.is_conj() or fake.is_neg():
        return False
    return not (fake.requires_grad and fake.is_leaf) and fake.numel() > 0


def _is_new(fake: Any, memory: set[int]) -> bool:
    if not _is_plain(fake) or fake._is_view():
        return False
    own = fake.untyped_storage()
    if own._cdata in memory:
        return False
    memory.add(own._cdata)
    last = sum((n - 1) * stride for n, stride in zip(fake.shape, fake.stride(), strict=True))
    return own.nbytes() == (last + 1) * fake.itemsize


def is_torchs(target: Any) -> bool:
    """Whether the operation is a function or method of torch's own, not a program's operator."""
    if isinstance(target, str):
        return True
    module = getattr(target, "__module__", None) or "torch"
    return isinstance(target, (types.FunctionType, types.BuiltinFunctionType)) and module.partition(".")[0] in ("torch", "_operator")


_CASTS = frozenset(("to", "float", "double", "half", "bfloat16", "type_as", "cpu"))


def is_pure(target: Any) -> bool:
    """Whether the operation is done for its result alone. Others change what tensors do not tell here (``retain_grad``)."""
    return target in _CASTS if isinstance(target, str) else getattr(target, "__module__", None) == "torch.nn.functional"
