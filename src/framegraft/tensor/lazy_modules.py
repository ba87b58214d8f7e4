"""Lazy modules (``torch.nn.LazyLinear`` and the program's own): their first call makes their parameters, and changes their class.

That call is left to eager mode, and the next is captured.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter
from torch.utils.weak import WeakIdKeyDictionary

from ..errors import NotYet
from ..interp.state import realize
from ..model.dispatch import handles
from ..model.value import MISSING, ObjectVariable, VariableTracker
from ..semantics import calls
from ..semantics.wrapping import wrap_pinned

_WAITED = WeakIdKeyDictionary()
_INFER: Any = vars(LazyModuleMixin)["_infer_parameters"]


def wait_for_shape(value: torch.Tensor) -> None:
    """Leave a frame to eager mode that meets a tensor without a shape: once, for it may only look at it."""
    cls = type(value)
    if issubclass(cls, (UninitializedParameter, UninitializedBuffer)) and value not in _WAITED:
        _WAITED[value] = True
        raise NotYet("input_subclass", f"a tensor of class {cls.__name__}")


@handles(_INFER)
def infer(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    """The hook that makes what is missing, or raises. A module without parameters may have it, too."""
    module = realize(args[0], tx.state) if args else None
    if isinstance(module, ObjectVariable) and module.source is not None and module.value is not MISSING:
        raise NotYet("input_subclass", f"the first call of {module.cls.__name__}, a lazy module")
    return calls.inline_call(tx, wrap_pinned(tx, _INFER), _INFER, args, kwargs)  # type: ignore[arg-type]
