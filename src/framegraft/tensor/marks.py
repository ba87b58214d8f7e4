"""Marks on tensors that tell which dimensions are symbols. They are the attributes that torch.compile's own marks set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch


class DimRange(NamedTuple):
    """Limits of one dimension, None for none."""

    dim: int
    min: int | None
    max: int | None


def _dims(t: torch.Tensor, index: int | Sequence[int]) -> list[int]:
    if not isinstance(t, torch.Tensor):
        raise TypeError(f"t must be a tensor, not {type(t).__name__}")
    dims = [index] if isinstance(index, int) else list(index)
    for dim in dims:
        if type(dim) is not int:
            raise TypeError(f"a dimension is an int, not {type(dim).__name__}")
        if not -t.dim() <= dim < t.dim():
            raise IndexError(f"dimension {dim} of a tensor of {t.dim()} dimensions")
    return [d % t.dim() for d in dims]


def _marks(t: Any) -> dict[str, Any]:
    return t.__dict__


def _mark(t: Any, name: str, dims: Sequence[int]) -> None:
    marked = _marks(t).setdefault(name, set())
    marked.update(dims)


def mark_dynamic(t: torch.Tensor, index: int | Sequence[int], *, min: int | None = None, max: int | None = None) -> None:  # noqa: A002
    """The size of dimension ``index`` (or of several) differs from call to call: one capture serves all its values.

    Sizes 0 and 1 have captures of their own in any case. A program that needs one particular size is an error:
    ``framegraft.exc.ConstraintViolation``. ``min`` and ``max`` are limits that the capture may rely on; a call with a size
    beyond them is captured anew. Marks are read when the tensor is an input of a capture; mark before the call.
    """
    dims = _dims(t, index)
    if min is not None and max is not None and min > max:
        raise ValueError(f"min ({min}) is more than max ({max})")
    _mark(t, "_dynamo_dynamic_indices", dims)
    _mark(t, "_dynamo_dynamic_range", [DimRange(d, min, max) for d in dims])  # type: ignore[misc]
    _marks(t).setdefault("_dynamo_hint_overrides", {})


def maybe_mark_dynamic(t: torch.Tensor, index: int | Sequence[int]) -> None:
    """As ``mark_dynamic``, but no error where the program needs one particular size."""
    _mark(t, "_dynamo_weak_dynamic_indices", _dims(t, index))


def mark_static(t: torch.Tensor, index: int | Sequence[int] | None = None) -> None:
    """Dimension ``index`` (None: all of them) is a constant of each capture, even if it was seen to change."""
    _mark(t, "_dynamo_static_indices", range(t.dim()) if index is None else _dims(t, index))


def mark_unbacked(t: torch.Tensor, index: int | Sequence[int], *, min: int | None = None, max: int | None = None) -> None:  # noqa: A002
    """The size of dimension ``index`` is unknown even in the call that is captured, 0 and 1 included.

    A branch on it breaks the graph, unless ``min``, ``max`` or ``torch._check`` decide it.
    """
    dims = _dims(t, index)
    _mark(t, "_dynamo_unbacked_indices", dims)
    if min is not None or max is not None:
        _marks(t).setdefault("_dynamo_unbacked_bounds", {}).update(dict.fromkeys(dims, (min, max)))
