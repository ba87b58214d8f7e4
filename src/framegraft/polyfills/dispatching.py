"""functools.singledispatch as the tracer sees it: without the cache, which holds its classes weakly."""

from __future__ import annotations

from typing import Any


def dispatch(cache_token: Any, dispatch_cache: Any, registry: Any, cls: Any) -> Any:
    """The implementation for a class."""
    return registry[cls] if cls in registry else registry[nearest(cls, *registry)]


def nearest(cls: Any, *known: Any) -> Any:
    """Which of the classes comes first among those that a class inherits from, or is registered with: traced as a whole."""
    raise NotImplementedError
