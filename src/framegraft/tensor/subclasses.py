"""Subclasses of torch.Tensor whose operations are those of plain tensors: kinds of parameters, for the most part.

They switch ``__torch_function__`` off and add attributes and methods, but replace none of Tensor's own. So operations give plain
tensors, and backends may treat them as such.
"""

from __future__ import annotations

from typing import Any

import torch

from .. import _native
from ..model.source import pinned
from ..model.value import MISSING, LazyVariable, TensorVariable, VariableTracker
from ..semantics import instances, lookup

_C: Any = torch._C
PLAIN = frozenset((torch.Tensor, torch.nn.Parameter, torch.nn.Buffer))
_NAMES = frozenset(dir(torch.Tensor)) | {"__getattr__", "__set_name__", "__get__", "__set__", "__delete__"}
# What a class may define for itself: it is made outside of the trace, or the tracer breaks where the method is called.
_OWN = frozenset(("__new__", "__init__", "__module__", "__doc__", "__dict__", "__weakref__", "__torch_function__", "__repr__",
                  "__annotations__", "__orig_bases__", "__parameters__", "__init_subclass__", "__class_getitem__"))
_GUARDED = tuple(sorted(_NAMES - _OWN | {"__torch_function__"}))


def is_plain(state: Any, cls: type) -> bool:
    """Whether tensors of this class can be captured; guarded."""
    if cls in PLAIN:
        return True
    if cls.__torch_function__ is not _C._disabled_torch_function_impl or type(cls) not in _METACLASSES:  # type: ignore[attr-defined]
        return False
    for base in cls.__mro__:
        if base in PLAIN:
            break
        if (base.__dict__.keys() & _NAMES) - _OWN:
            return False
    state.guards.add(pinned(cls), "MRO", cls.__mro__)
    for name in _GUARDED:
        found = next((base.__dict__[name] for base in cls.__mro__ if name in base.__dict__), MISSING)
        state.guards.class_lookup(cls, name, _native.MISSING if found is MISSING else found)
    return True


_METACLASSES = (type(torch.Tensor), type(torch.nn.Parameter), type(torch.nn.Buffer))


def instance_attribute(tx: Any, obj: TensorVariable, name: str) -> VariableTracker | None:
    """What the program has set on this very tensor; None for nothing, which is guarded, too."""
    if name in obj.attrs:
        tx.state.outside += 1  # for blocks: nothing tells one tensor of the trace from another by its attributes
        return obj.attrs[name]
    if obj.value is None or obj.source is None:
        return None
    source = obj.source.namespace(obj.value).child("KEY", name)
    if name in obj.value.__dict__:
        tx.state.guards.present(source)
        return LazyVariable(obj.value.__dict__[name], source)
    tx.state.guards.add(source, "ABSENT")
    return None


def own_attribute(tx: Any, obj: TensorVariable, name: str, on_class: Any) -> VariableTracker | None:
    """What a class of the program's own defines under a name that Tensor does not have; None for other names."""
    if obj.cls in PLAIN or name in _NAMES:
        return None
    found = None if lookup.is_data(tx, type(on_class)) else instance_attribute(tx, obj, name)
    return found or instances.bind(tx, on_class, obj, obj.cls, name)
