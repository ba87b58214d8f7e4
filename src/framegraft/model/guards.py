"""Guards recorded during a trace.

A guard is (source, check, payload). Guards are recorded where a property is observed; nothing carries guards along.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

from .source import Source, local, pinned


@dataclass(eq=False, slots=True)  # not frozen: that makes each five times as dear
class Guard:
    """One assumption: ``check(payload)`` holds for the object at ``source``; ``cause`` is the user's file:line."""

    source: Source
    check: str
    payload: Any
    cause: str

    def code(self) -> str:
        """The guard as a readable Python expression."""
        spell = _CODE.get(self.check)
        name = self.source.name
        return spell(name, self.payload) if spell is not None else f"{self.check.lower()}({name}, {spelled(self.payload):.80})"


def spelled(value: Any) -> str:
    """``repr``, but hexadecimal for an int of more digits than Python converts."""
    try:
        return repr(value)
    except ValueError:
        return hex(value) if isinstance(value, int) else object.__repr__(value)


def _tensor_code(name: str, spec: Any) -> str:
    return f"check_tensor({name}, {spec!r})"


def _names(names: list[str]) -> str:
    left = f", ... {len(names) - _SHOWN} more]" if len(names) > _SHOWN else "]"
    return f"[{', '.join(map(repr, names[:_SHOWN]))}{left}"


_SHOWN = 30  # of tensors' classes some 600 are looked up
_CODE: dict[str, Any] = {
    "ID": lambda n, p: f"___check_obj_id({n}, {id(p)})",
    "TYPE": lambda n, p: f"___check_type_id({n}, {id(p)})",
    "EQ": lambda n, p: f"{n} == {spelled(p)}",
    "LEN": lambda n, p: f"len({n}) == {p}",
    "KEYS": lambda n, p: f"list({n}) == {list(p)!r}",
    "HASKEY": lambda n, p: f"{spelled(p)} in {n}",
    "NOKEY": lambda n, p: f"{spelled(p)} not in {n}",
    "ABSENT": lambda n, p: f"not ___exists(lambda: {n})",
    "PRESENT": lambda n, p: f"___exists(lambda: {n})",
    "TYPEVER": lambda n, p: f"___check_class_lookups({n}, {_names([k for k, _ in p])})",
    "MRO": lambda n, p: f"{n}.__mro__ == ({', '.join(c.__qualname__ for c in p)},)",
    "TENSOR": _tensor_code,
    "STATE": lambda n, p: "___check_global_state()",
    "NOALIAS": lambda n, p: f"___no_alias({', '.join(s.name for s in p)})",
    "ALIAS": lambda n, p: f"{p[0].name} is {p[1].name}",
    "PY": lambda n, p: f"{p.__name__}({n})",
    "SHAPE": lambda n, p: p.text,
    "METHOD": lambda n, p: f"___is_method({n}, {p.__objclass__.__qualname__}.{p.__name__})",
    "SUBCLASS": lambda n, p: f"issubclass({p[0].__qualname__}, {n}) == {p[1]}",
    "RANGE": lambda n, p: f"{p[0]} <= {n} <= {p[1]}",
}


class Condition:
    """Payload of a guard in Python. Conditions of one class with equal keys are one guard."""

    key: Any


def payload_key(payload: Any) -> Any:
    """Equal for payloads that say the same."""
    kind = type(payload)
    if issubclass(kind, Condition):
        return (kind, payload.key)
    if kind in (str, int, bool, type(None), bytes):
        return (kind, payload)
    if kind is float:
        return (kind, payload.hex())
    if kind is tuple and payload and type(payload[0]) is Source:
        return payload
    if kind is tuple and payload and isinstance(payload[0], type):
        return (kind, *map(id, payload))
    return id(payload)


class Template:
    """Guards on what is below an object, with paths that start at ``ROOT``, for it: they are made of others as well.

    ``program`` makes these checks alone; ``position`` tells the node of each path in it, of which ``ROOT`` is the first.
    """

    ROOT = local(0, "\N{WHITE SQUARE}")  # no variable of a program has this name

    def __init__(self, guards: list[Guard], program: Any, position: dict[Source, int]) -> None:
        self.guards = guards
        self.program = program
        self.position = position

    @functools.cached_property
    def keys(self) -> set:
        """What ``GuardSet`` takes for the same guards."""
        return {(g.source, g.check, payload_key(g.payload)) for g in self.guards}

    @functools.cached_property
    def present(self) -> set[Source]:
        """Paths at the ends of which something is."""
        return self.position.keys() - {g.source for g in self.guards if g.check == "ABSENT"}


def below(path: Source, places: dict[Source, Source]) -> Source:
    """The place that ``path`` leads to, which starts at one that ``places`` tells. Places on the way are added."""
    place = places.get(path)
    if place is None:
        assert path.base is not None
        place = places[path] = Source(path.access, path.key, below(path.base, places))
    return place


class Repeat:
    """What a template says, of the object at ``source``. ``places``: those below it that others may ask for -> nodes of its program."""

    def __init__(self, template: Template, source: Source, places: dict[Source, int]) -> None:
        self.template = template
        self.source = source
        self.places = places

    def guards(self) -> Iterator[Guard]:
        known = {Template.ROOT: self.source}
        for guard in self.template.guards:
            yield Guard(below(guard.source, known), guard.check, guard.payload, guard.cause)


class Recorded(Sequence[Guard]):
    """Every guard of an entry. Those of a repeat are made where they are asked for."""

    def __init__(self, items: list[Guard | Repeat]) -> None:
        self.items = items

    def numbered(self) -> Iterator[tuple[int, Guard | Repeat]]:
        """The items, each with the number of its (first) guard."""
        number = 0
        for item in self.items:
            yield number, item
            number += len(item.template.guards) if isinstance(item, Repeat) else 1

    def __len__(self) -> int:
        return sum(len(item.template.guards) if isinstance(item, Repeat) else 1 for item in self.items)

    def __iter__(self) -> Iterator[Guard]:
        for item in self.items:
            if isinstance(item, Repeat):
                yield from item.guards()
            else:
                yield item

    @overload
    def __getitem__(self, index: int) -> Guard: ...
    @overload
    def __getitem__(self, index: slice) -> list[Guard]: ...
    def __getitem__(self, index: int | slice) -> Guard | list[Guard]:
        return list(self)[index]


class GuardSet:
    """All guards of one trace, deduplicated, in the order of observation."""

    def __init__(self) -> None:
        self.guards: list[Guard | Repeat] = []
        self._repeats: dict[Source, list[Template]] = {}
        self._seen: set = set()
        self._pins: dict[int, Source] = {}
        self.class_lookups: dict[type, dict[str, Any]] = {}
        self._class_causes: dict[type, str] = {}
        self._present: dict[Source, str] = {}
        self.tensors: list[Source] = []
        self.aliases: list[tuple[Source, Source]] = []  # places of the same object
        self.keys: dict[type, dict[Source, None]] = {}  # objects that were told apart as keys, by class
        self.made: dict[int, Any] = {}  # objects that the trace made: nobody else can change one that does not leave it
        self.where: Any = lambda: ""

    def count(self) -> int:
        """Of what was added in all."""
        return len(self._seen)

    def add(self, source: Source, check: str, payload: Any = None, cause: str | None = None) -> None:
        key = (source, check, payload_key(payload))
        if key in self._seen:
            return
        self._seen.add(key)
        if check == "ALIAS":
            self.aliases.append(payload)
        if not any((path, *key[1:]) in template.keys for template, path in self._repeated(source)):
            self.guards.append(Guard(source, check, payload, self.where() if cause is None else cause))

    def repeat(self, template: Template, source: Source, places: dict[Source, int]) -> None:
        """Record all that ``template`` says, of the object at ``source``."""
        key = (template, source)
        if key not in self._seen:
            self._seen.add(key)
            self.guards.append(Repeat(template, source, places))
            self._repeats.setdefault(source, []).append(template)

    def _repeated(self, source: Source) -> Iterator[tuple[Template, Source]]:
        """The templates that may tell of the place, each with the path of it there."""
        path: list[Source] = []
        at: Source | None = source if self._repeats else None
        while at is not None:
            templates = self._repeats.get(at)
            if templates:
                there = Template.ROOT
                for step in reversed(path):
                    there = Source(step.access, step.key, there)
                yield from ((template, there) for template in templates)
            path.append(at)
            at = at.base

    def pin(self, source: Source, obj: Any) -> Source:
        """Guard that ``source`` is this very object; paths below it may start at the returned root."""
        if source.access != "CONST":
            self.add(source, "ID", obj)
        root = self._pins.get(id(obj))
        if root is None:
            root = self._pins[id(obj)] = pinned(obj)
        return root

    def class_lookup(self, cls: type, name: str, found: Any) -> None:
        """Record that the MRO lookup of ``name`` on ``cls`` gave ``found`` (``MISSING`` of the native core if absent)."""
        lookups = self.class_lookups.get(cls)
        if lookups is None:
            lookups = self.class_lookups[cls] = {}
            self._class_causes[cls] = self.where()
        lookups.setdefault(name, found)

    def present(self, source: Source) -> None:
        """Record that there is something at ``source``, whatever it is."""
        if source not in self._present and not any(path in template.present for template, path in self._repeated(source)):
            self._present[source] = self.where()

    def so_far(self, concerns: Callable[[Source], bool]) -> Iterator[Guard]:
        """What was recorded below objects; looking classes up, and what no single object shows, is left out.

        ``concerns``: whether a repeat at this place is asked for.
        """
        for item in self.guards:
            if not isinstance(item, Repeat):
                yield item
            elif concerns(item.source):
                yield from item.guards()
        yield from presence(self._present)

    def finish(self, left: Container[int]) -> Recorded:
        """Every guard that is needed, the collected class lookups included. ``left``: ids of pinned objects that leave the trace."""
        inside = self.made.keys() - {i for i in self.made if i in left}
        found = [*self.guards, *presence(unseen(self._present, self.guards))]
        if inside:
            found = [item for item in found if not self._is_inside(item.source, inside)]
        found += (
            Guard(pinned(cls), "TYPEVER", tuple(lookups.items()), self._class_causes[cls])
            for cls, lookups in self.class_lookups.items()
        )
        return Recorded(found)

    @staticmethod
    def _is_inside(source: Source, inside: Container[int]) -> bool:
        root = source.root()
        return root.access == "CONST" and id(root.key) in inside


def presence(causes: dict[Source, str]) -> list[Guard]:
    return [Guard(source, "PRESENT", None, cause) for source, cause in causes.items()]


def unseen(present: dict[Source, str], guards: Iterable[Guard | Repeat]) -> dict[Source, str]:
    """Those places where no guard looks at the value, or at what is behind it."""
    left, seen = present.copy(), set()
    for guard in guards:
        if isinstance(guard, Repeat):
            source = guard.source
        else:
            source = guard.source if guard.check != "ABSENT" else guard.source.base
        while left and source is not None and source not in seen:
            seen.add(source)
            left.pop(source, None)
            source = source.base
    return left
