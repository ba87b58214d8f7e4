"""Iterators from outside of the trace: looked at ahead of where they stand, and advanced after the graph has run.

What the trace relies on is told relative to the iterator's place ("the second item from here"), so that one entry serves
every round of a loop.
"""

from __future__ import annotations

import collections
import copy
import gc
import itertools
import operator
import re
import sys
from typing import Any

from ..errors import GraphBreak
from ..model.source import Source
from ..model.value import LazyVariable, VariableTracker

_SAMPLES: tuple[Any, ...] = (
    [], (), "", b"", bytearray(), range(0), range(1 << 70), {}, {}.keys(), {}.values(), {}.items(), set(), collections.deque(),
    reversed([]), reversed({}),
)
# Leaves: iterators over a container, which copy.copy duplicates (their __reduce__ tells container and place).
LEAVES = frozenset(type(iter(sample)) for sample in _SAMPLES)
_PLACES = LEAVES | {itertools.count}  # iterators with a place of their own
KINDS = _PLACES | {enumerate, zip}
_BACKWARDS = type(reversed([]))


def leaves_of(iterator: Any) -> list[Any]:
    """The iterators over containers that an iterator draws from; GraphBreak if one cannot be looked into."""
    kind = type(iterator)
    if kind in LEAVES or kind is itertools.count and _counted(iterator) is not None:
        return [iterator]
    if kind in (enumerate, zip):
        inner = iterator.__reduce__()[1]
        return [leaf for part in (inner[:1] if kind is enumerate else inner) for leaf in leaves_of(part)]
    raise GraphBreak("unsupported_iterator", f"a {kind.__name__} made outside of the trace")


def _counted(iterator: Any) -> tuple[int, int] | None:
    """Next number and step of an ``itertools.count`` of whole numbers: its __reduce__ warns, from CPython 3.12 on."""
    found = re.fullmatch(r"count\((-?\d+)(?:, (-?\d+))?\)", repr(iterator))
    return None if found is None else (int(found[1]), int(found[2] or 1))


def duplicate(iterator: Any) -> Any:
    """An independent iterator at the same place."""
    kind = type(iterator)
    if kind is itertools.count and (counted := _counted(iterator)) is not None:
        return itertools.count(*counted)
    if kind in _PLACES:
        if kind is _BACKWARDS and not operator.length_hint(iterator):
            return iter([])  # the list has become shorter: a copy's __setstate__ would stand at its new end
        try:
            return copy.copy(iterator)
        except RuntimeError:
            raise GraphBreak("unsupported_iterator", "an iterator over a container that has changed since") from None
    parts = iterator.__reduce__()
    if kind is enumerate:
        return enumerate(duplicate(parts[1][0]), parts[1][1])
    return zip(*map(duplicate, parts[1]), strict=len(parts) > 2 and parts[2])


# Of these, __reduce__ and __length_hint__ tell where an iterator stands and what is left: (iter, (container,), index).
_INDEXED = {type(iter([])): list.__getitem__, type(iter(())): tuple.__getitem__}


def _left(iterator: Any) -> int | None:
    """How many items are left; None where only a duplicate can tell."""
    kind = type(iterator)
    if kind in _INDEXED:
        return iterator.__length_hint__()
    if kind is itertools.count and _counted(iterator) is not None:
        return sys.maxsize
    if kind is enumerate:
        return _left(iterator.__reduce__()[1][0])
    if kind is zip:
        parts = iterator.__reduce__()
        counts = [_left(part) for part in parts[1]]
        if len(parts) == 2 and counts and None not in counts:  # not strict: the shortest ends it
            return min(counts)  # type: ignore[type-var]
    return None


def _item(iterator: Any, ahead: int) -> Any:
    """The item ``ahead`` places from where an iterator stands of which ``_left`` tells what is left."""
    kind = type(iterator)
    if kind in _INDEXED:
        _, (container,), *index = iterator.__reduce__()
        return _INDEXED[kind](container, index[0] + ahead)
    if kind is itertools.count and (counted := _counted(iterator)) is not None:
        return counted[0] + ahead * counted[1]
    parts = iterator.__reduce__()[1]
    if kind is enumerate:
        return parts[1] + ahead, _item(parts[0], ahead)
    return tuple([_item(part, ahead) for part in parts])


class Peek:
    """Accessor: the item ``ahead`` places from where the iterator stands."""

    def __init__(self, ahead: int) -> None:
        self.ahead = ahead
        self.__name__ = f"peek_{ahead}"

    def __call__(self, iterator: Any) -> Any:
        left = _left(iterator)
        if left is not None and left > self.ahead:
            return _item(iterator, self.ahead)
        return next(itertools.islice(duplicate(iterator), self.ahead, None))


class Remaining:
    """Guard: at least, or exactly, so many items are left, and all come from different places."""

    __name__ = "items_remain"

    def __init__(self) -> None:
        self.count = 0
        self.all = False

    def __call__(self, iterator: Any) -> bool:
        if type(iterator) is itertools.count and _counted(iterator) is None:
            return False
        if type(iterator) not in _PLACES:
            leaves = leaves_of(iterator)
            if len({id(leaf) for leaf in leaves}) != len(leaves):
                return False
        known = _left(iterator)
        if known is not None:
            return known == self.count if self.all else known >= self.count
        left, ahead = 0, duplicate(iterator)
        try:
            for _ in itertools.islice(ahead, self.count + 1):
                left += 1
        except (ValueError, RuntimeError):  # a strict zip() whose iterators differ; a container that has changed
            return not self.all and left >= self.count
        return left == self.count if self.all else left >= self.count


def advance(iterator: Any, count: int) -> None:
    """Called by transformed code: take ``count`` items."""
    for _ in range(count):
        next(iterator, None)


class Leaf:
    """Accessor: one of the iterators over containers that an iterator draws from."""

    def __init__(self, leaf: int) -> None:
        self.leaf = leaf
        self.__name__ = f"leaf_{leaf}"

    def __call__(self, iterator: Any) -> Any:
        return leaves_of(iterator)[self.leaf]


class Drawing:
    """Guard: the iterator draws from others of the same types in the same way."""

    __name__ = "draws_alike"

    def __init__(self, iterator: Any) -> None:
        self.types = self._types(iterator)

    def __call__(self, iterator: Any) -> bool:
        return self._types(iterator) == self.types

    def _types(self, iterator: Any) -> tuple:
        kind = type(iterator)
        if kind not in (enumerate, zip):
            return (kind,)
        inner = iterator.__reduce__()[1]
        return (kind, *map(self._types, inner[:1] if kind is enumerate else inner))


class Container:
    """Accessor: what one of an iterator's leaves draws from; None where that cannot change."""

    def __init__(self, leaf: int) -> None:
        self.leaf = leaf
        self.__name__ = f"container_{leaf}"

    def __call__(self, iterator: Any) -> Any:
        return next((r for r in gc.get_referents(leaves_of(iterator)[self.leaf]) if isinstance(r, MUTABLE)), None)


MOST = 256  # items that a trace takes from one iterator: guards look each of them up from the iterator's place on
MUTABLE = (list, dict, set, collections.deque)


class OutsideIteratorVariable(VariableTracker):
    """An iterator from outside; ``taken`` items of it have been used by the trace."""

    __slots__ = ("value", "taken", "ended", "remaining", "_ahead")

    def __init__(self, value: Any, source: Source) -> None:
        self.value = value
        self.source = source
        self.taken = 0
        self.ended = False
        self.remaining = Remaining()
        self._ahead: Any = None  # a duplicate that stands where the trace does

    def python_type(self) -> type:
        return type(self.value)

    def steps(self) -> int:
        """Calls of next() that the trace made."""
        return self.taken + self.ended

    def next_item(self, state: Any) -> VariableTracker | None:
        if self.ended:
            return None
        self._check_containers(state)
        if self.taken == MOST:
            raise GraphBreak("unsupported_iterator", f"more than {MOST} items of a {type(self.value).__name__} made outside of the trace")
        state.mark_mutated(self)
        if self._ahead is None:
            self._ahead = duplicate(self.value)
        try:
            item = next(self._ahead)
        except StopIteration:
            self.ended = self.remaining.all = True
            return None
        except (ValueError, RuntimeError) as error:
            raise GraphBreak("unsupported_iterator", f"a {type(self.value).__name__} made outside of the trace: {error}") from None
        assert self.source is not None
        found = LazyVariable(item, self.source.child("PYCALL", Peek(self.taken)))
        self.taken += 1
        self.remaining.count = self.taken
        return found

    def _check_containers(self, state: Any) -> None:
        """The items are looked up in the real containers: the trace must not have changed these."""
        if not any(isinstance(getattr(t, "value", None), MUTABLE) for t in state.mutated.values()):
            return
        assert self.source is not None
        for leaf in range(len(leaves_of(self.value))):
            get = Container(leaf)
            found = get(self.value)
            if found is None:
                continue
            tracker = state.builder.wrap(found, self.source.child("PYCALL", get))
            if id(tracker) in state.mutated or id(getattr(tracker, "payload", None)) in state.mutated:
                raise GraphBreak("unsupported_iterator", f"an iterator over a {type(found).__name__} that the trace has changed")


def wrap_iterator(state: Any, value: Any, source: Source) -> OutsideIteratorVariable:
    leaves = leaves_of(value)
    made = OutsideIteratorVariable(value, source)
    others = [t for t in state.by_id.values() if isinstance(t, OutsideIteratorVariable)]
    places = [*leaves, *(leaf for t in others for leaf in leaves_of(t.value))]
    if len({id(leaf) for leaf in places}) != len(places):
        raise GraphBreak("unsupported_iterator", "iterators from outside that draw from one place")
    state.guards.add(source, "PY", made.remaining)
    if others:
        state.guards.add(Source("NONE"), "NOALIAS", tuple(place for t in (made, *others) for place in _places(state, t)))
    return made


def _places(state: Any, tracker: OutsideIteratorVariable) -> list[Source]:
    """Where the iterators over containers are that an iterator draws from."""
    source: Any = tracker.source
    if type(tracker.value) in _PLACES:
        return [source]
    state.guards.add(source, "PY", Drawing(tracker.value))
    return [source.child("PYCALL", Leaf(i)) for i in range(len(leaves_of(tracker.value)))]
