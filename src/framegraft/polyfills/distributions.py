"""Functions of ``torch.distributions`` as the tracer sees them."""

from __future__ import annotations

from typing import Any

import torch


def of_class(lazy: Any) -> Any:
    """What reading the lazy property from its class gives: a property, made anew each time."""
    return lazy.__get__(None, None)


def read_lazily(self: Any, instance: Any, obj_type: Any = None) -> Any:
    """``lazy_property.__get__``, but what it makes for the class is no object of the trace."""
    if instance is None:
        return of_class(self)
    with torch.enable_grad():
        value = self.wrapped(instance)
    setattr(instance, self.wrapped.__name__, value)
    return value
