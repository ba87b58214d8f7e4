"""Objects with a ``__hash__`` and ``__eq__`` of their own as keys of dicts and items of sets that the trace makes.

The trace asks both methods, and stands for all objects that are equal with one ``OwnKey``. They are asked more often than the
interpreter would ask them, so they must change nothing; and an object that is a key keeps its attributes.
"""

from __future__ import annotations

from typing import Any

from ..errors import GraphBreak
from ..interp.state import need_constant, realize
from ..model.value import ObjectVariable, VariableTracker
from . import comparing, functions, hashed, lookup


class OwnKey(hashed.Told):
    """Hashes and compares as ``members`` do."""

    __slots__ = ("hash", "members")

    def __init__(self, value: int, member: ObjectVariable) -> None:
        self.hash = value
        self.members = [member]

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, OwnKey):
            return False  # the members were compared when the later one came
        raise GraphBreak("unsupported_builtin_method", "objects of two kinds with one hash as keys")


def key_of(tx: Any, key: ObjectVariable) -> OwnKey | None:
    """What stands for the object among keys; None where it does not hash and compare by methods in Python."""
    if key.payload is not None or not all(
            lookup.is_python(tx, key.cls, name) for name in ("__hash__", "__eq__")):
        return None
    state = tx.state
    if state.outside:  # the transformed code makes the dict first: the object would hash as it did at frame entry
        raise GraphBreak("unsupported_builtin_method", f"a {key.cls.__name__} as a key, behind changes that its __hash__ may look at")
    before = state.dirty, state.graph.call_count, len(state.mutated)
    value = need_constant(realize(functions.handle_hash(tx, [key], {}), state), "a hash")
    found = [k for k in state.own_keys.get(value, ()) if _is_one_of(tx, key, k.members)]
    if (state.dirty, state.graph.call_count, len(state.mutated)) != before:
        raise GraphBreak("unsupported_builtin_method", f"a {key.cls.__name__} as a key, whose __hash__ or __eq__ changes something")
    known = state.own_key_of.get(id(key))
    if len(found) > 1 or known is not None and found != [known]:
        raise GraphBreak("unsupported_builtin_method", f"a {key.cls.__name__} as a key, which is equal to several that are not equal")
    if not found:
        found = [OwnKey(value, key)]
        state.own_keys.setdefault(value, []).append(found[0])
    elif known is None:
        found[0].members.append(key)
    state.own_key_of[id(key)] = found[0]
    return found[0]


def _is_one_of(tx: Any, key: VariableTracker, members: list) -> bool:
    told = {comparing.equal_items(tx, m, key) for m in members}
    if len(told) > 1:
        raise GraphBreak("unsupported_builtin_method", f"a {key.python_type().__name__} as a key, which equals some of several equal ones")
    return told.pop()


hashed.OWN_KEY.append(key_of)
