"""Locks: one that is held when a trace begins may be released in it, which happens behind the graph.

``with lock:`` breaks where the lock is taken, for nothing may be checked before it is held. What follows is captured with the body.
"""

from __future__ import annotations

import threading
from typing import Any

from ..interp.state import realize
from ..model.dispatch import handles, method
from ..model.value import MISSING, NONE, ObjectVariable, VariableTracker
from . import attributes, calls

LOCK, RLOCK = type(threading.Lock()), type(threading.RLock())


class _Held:
    """Accessor: whether a lock is held, an RLock by this thread."""

    __name__ = "held"

    def __call__(self, lock: Any) -> bool:
        return lock.locked() if type(lock) is LOCK else lock._is_owned()


HELD = _Held()


@method(ObjectVariable, "release", "__exit__")
def release(tx: Any, obj: ObjectVariable, args: list, kwargs: dict) -> VariableTracker | None:
    if obj.cls not in (LOCK, RLOCK) or obj.value is MISSING or obj.source is None:
        return None
    state = tx.state
    if any(held is obj for held in state.released) or not HELD(obj.value):
        return None
    state.guards.add(obj.source.child("PYCALL", HELD), "EQ", True)
    state.changed(obj)
    state.released.append(obj)
    return NONE


@handles(threading.Condition.__exit__)
def leave_condition(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    lock = attributes.get_attr(tx, realize(args[0], tx.state), "_lock")
    return calls.call(tx, attributes.get_attr(tx, realize(lock, tx.state), "__exit__"), args[1:], kwargs)
