"""Dicts that are the namespace of an object, and that the trace has come by in another way: it takes them for objects apart."""

from __future__ import annotations

import gc
import types
from typing import Any

from .._native import namespace_of
from ..model.value import MISSING, DictVariable
from .codegen import Unreconstructible

_APART = "a change of an object of which the trace holds the __dict__, too, got from elsewhere"


def none_changed_unseen(state: Any) -> None:
    """Of an object and its namespace, the trace must not have changed the one and looked at the other."""
    if not state.mutated:
        return
    dicts, proxies = {}, set()
    for value in state.keep_alive:
        tracker = state.by_id.get(id(value))
        if type(value) is dict and isinstance(tracker, DictVariable) and tracker.owner is None:
            dicts[id(value)] = id(tracker) in state.mutated
        elif type(value) is types.MappingProxyType:
            proxies.add(id(gc.get_referents(value)[0]))
    for tracker in state.mutated.values() if proxies else ():  # also of a class that has all that it had by now
        cls = getattr(tracker, "value", None)
        if isinstance(cls, type) and id(gc.get_referents(namespace_of(cls))[0]) in proxies:
            raise Unreconstructible(_APART)
    if not dicts:
        return
    any_changed = any(dicts.values())
    for value in state.keep_alive:
        changed = id(state.by_id.get(id(value))) in state.mutated
        if (changed or any_changed) and type(value) is not dict and not issubclass(type(value), type):
            found = dicts.get(id(namespace_of(value)), MISSING)
            if found is True or changed and found is False:
                raise Unreconstructible(_APART)
