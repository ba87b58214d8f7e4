"""functools.singledispatch as the tracer sees it: without the cache, which holds its classes weakly."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary


def dispatch(cache_token: Any, dispatch_cache: Any, registry: Any, cls: Any) -> Any:
    """The implementation for a class."""
    if type(dispatch_cache) is not WeakKeyDictionary:
        tells_of_itself()
    return registry[cls] if cls in registry else registry[nearest(cls, *registry)]


def tells_of_itself() -> None:
    """The program has given the function a cache of its own, which may notice that nobody asks it: a break."""


def nearest(cls: Any, *known: Any) -> Any:
    """Which of the classes comes first among those that a class inherits from, or is registered with: traced as a whole."""
    raise NotImplementedError
