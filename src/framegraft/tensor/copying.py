"""Copies of tensors by the copy module (torch/_tensor.py, ``__deepcopy__`` and ``__reduce_ex__``)."""

from __future__ import annotations

from typing import Any

import torch

from ..errors import GraphBreak
from ..interp.state import constant_value, realize
from ..model.dispatch import TENSOR
from ..model.value import TensorVariable, VariableTracker
from ..native.private import is_dense
from ..semantics import attributes
from . import special
from .fake import FakeTensor
from .running import run_node


class _FillsStorage:
    """Guard: a tensor without attributes of the program's that is all there is in its memory."""

    __name__ = "fills_its_storage"

    def __call__(self, value: torch.Tensor) -> bool:
        return not value.__dict__ and _fills(value)


_FILLS_STORAGE = _FillsStorage()


def _fills(tensor: torch.Tensor) -> bool:
    whole = tensor.storage_offset() == 0 and is_dense(tensor)
    return whole and tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()


def duplicate(tx: Any, obj: TensorVariable, memo: dict | None) -> VariableTracker:
    """A copy of a plain tensor; where ``memo`` is None, another tensor with the same memory."""
    special.check(tx, obj, "__copy__" if memo is None else "__deepcopy__", "__reduce_ex__")
    fake = obj.fake
    if (obj.cls is not torch.Tensor or type(fake) is not FakeTensor or obj.attrs or fake.requires_grad or fake.device.type == "meta"
            or fake.is_conj() or fake.is_neg() or torch.is_inference_mode_enabled() or fake.is_inference()
            or not _fills(fake) or tx.state.graph.symbols is not None):
        raise GraphBreak("untraceable_call", "a copy of a tensor that is a view, has attributes, or requires a gradient")
    if obj.source is not None:
        tx.state.guards.add(obj.source, "PY", _FILLS_STORAGE)
        if not _FILLS_STORAGE(obj.value):
            raise GraphBreak("untraceable_call", "a copy of a tensor that has attributes, or is a part of another one")
    if constant_value(realize(attributes.get_attr(tx, obj, "grad"), tx.state)) is not None:
        raise GraphBreak("untraceable_call", "a copy of a tensor that has a gradient")
    if memo is None:
        return attributes.get_attr(tx, obj, "data")
    storage = fake.untyped_storage()._cdata
    for known, (_, old) in memo.items():  # what shares memory shares the copy's
        if known != id(obj) and isinstance(old, TensorVariable) and (
                old.fake.untyped_storage()._cdata == storage or old.source is not None and obj.source is not None):
            raise GraphBreak("untraceable_call", "a deep copy of several tensors that may share memory")
    return run_node(tx, "call_method", "clone", [obj], {})


TENSOR.duplicate = duplicate
