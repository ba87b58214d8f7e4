"""functools.cmp_to_key (CPython: Modules/_functoolsmodule.c), by the polyfill that compares in the same way."""

from __future__ import annotations

import functools
from typing import Any

from ..errors import GraphBreak
from ..model.dispatch import handles
from ..model.value import VariableTracker
from ..polyfills.sorting import Key
from .constructors import PartialVariable
from .wrapping import STAND_INS, wrap_pinned

STAND_INS.add(Key)
_KEYS = type(functools.cmp_to_key(lambda a, b: 0))


class KeysVariable(PartialVariable):
    """What ``cmp_to_key`` gives: a call of it makes a key. It stays in the trace, as its keys do."""

    __slots__ = ()

    def python_type(self) -> type:
        return _KEYS


@handles(functools.cmp_to_key)
def handle_cmp_to_key(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    given = [*args, *kwargs.values()]
    if len(given) != 1 or kwargs.keys() - {"mycmp"}:
        raise GraphBreak("raised_exception", "cmp_to_key() of something other than one function")
    return KeysVariable(wrap_pinned(tx, Key), given, {})
