"""Guards recorded during a trace, and the program for the native core that they become.

A guard is (source, check, payload). Guards are recorded where a property is observed; nothing carries guards along.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Any

from .source import GUARD_ACCESS, Source, pinned


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
    "TYPEVER": lambda n, p: f"___check_class_lookups({n}, {[k for k, _ in p]})",
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


class GuardSet:
    """All guards of one trace, deduplicated, in the order of observation."""

    def __init__(self) -> None:
        self.guards: list[Guard] = []
        self._seen: set = set()
        self._pins: dict[int, Source] = {}
        self.class_lookups: dict[type, dict[str, Any]] = {}
        self._class_causes: dict[type, str] = {}
        self._present: dict[Source, str] = {}
        self.tensors: list[Source] = []
        self.keys: dict[type, dict[Source, None]] = {}  # objects that were told apart as keys, by class
        self.made: dict[int, Any] = {}  # objects that the trace made: nobody else can change one that does not leave it
        self.where: Any = lambda: ""

    def add(self, source: Source, check: str, payload: Any = None, cause: str | None = None) -> None:
        key = (source, check, payload_key(payload))
        if key in self._seen:
            return
        self._seen.add(key)
        self.guards.append(Guard(source, check, payload, self.where() if cause is None else cause))

    def add_like(self, source: Source, guard: Guard, key: Any) -> None:
        """What ``guard`` says, of another place; ``key``: of its payload."""
        seen = (source, guard.check, key)
        if seen not in self._seen:
            self._seen.add(seen)
            self.guards.append(Guard(source, guard.check, guard.payload, guard.cause))

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
        if source not in self._present:
            self._present[source] = self.where()

    def so_far(self) -> list[Guard]:
        """What was recorded below objects; looking classes up, and what no single object shows, is left out."""
        return [*self.guards, *(Guard(source, "PRESENT", None, cause) for source, cause in self._present.items())]

    def _found(self) -> list[Guard]:
        """Guards of presence where no other guard looks at the value, or at what is behind it."""
        left, seen = self._present.copy(), set()
        for guard in self.guards:
            source: Source | None = guard.source if guard.check != "ABSENT" else guard.source.base
            while left and source is not None and source not in seen:
                seen.add(source)
                left.pop(source, None)
                source = source.base
        return [Guard(source, "PRESENT", None, cause) for source, cause in left.items()]

    def finish(self, left: Container[int]) -> list[Guard]:
        """Every guard that is needed, the collected class lookups included. ``left``: ids of pinned objects that leave the trace."""
        inside = self.made.keys() - {i for i in self.made if i in left}
        guards = [g for g in self.guards if not self._is_inside(g.source, inside)] if inside else self.guards
        extra = [
            Guard(pinned(cls), "TYPEVER", tuple(lookups.items()), self._class_causes[cls])
            for cls, lookups in self.class_lookups.items()
        ]
        return guards + [g for g in self._found() if not self._is_inside(g.source, inside)] + extra

    @staticmethod
    def _is_inside(source: Source, inside: Container[int]) -> bool:
        root = source.root()
        return root.access == "CONST" and id(root.key) in inside


def _sources(guard: Guard) -> tuple[Source, ...]:
    """The objects that a guard on several of them looks at."""
    return tuple(s.source for s in guard.payload.slots) if guard.check == "SHAPE" else guard.payload


_LATE = frozenset(("NOALIAS", "ALIAS", "SHAPE"))  # on several objects
_INDEXED = {"ARG": 0, "CELL": 0, "CELLOBJ": 0, "BASEITEM": 1}  # accessors with several keys: which of them the program takes


class ProgramBuilder:
    """Lays guards out as the pre-order node list that ``_native.GuardProgram`` takes."""

    def __init__(self, guards: list[Guard]) -> None:
        self.guards = guards
        self.children: dict[Source | None, list[Source]] = {None: []}
        self.checks: dict[Source, list] = {}
        self.position: dict[Source, int] = {}  # of each source's node, once built

    def build(self) -> list[tuple]:
        late: list[tuple[int, Guard]] = []
        known = self.checks
        for index, guard in enumerate(self.guards):
            check, source = guard.check, guard.source
            if check in _LATE:
                for one in _sources(guard):
                    self._place(one)
                late.append((index, guard))
                continue
            checks = known.get(source)
            if checks is None:
                checks = self._place(source)
            checks.append((check, guard.payload, index))
        nodes: list[tuple] = []
        position = self.position
        for root in self.children[None]:
            self._emit(root, -1, nodes, position)
        shapes: list[tuple] = []
        for index, guard in late:
            payload = tuple(position[s] for s in _sources(guard))
            if guard.check == "SHAPE":
                expression = guard.payload
                slots = tuple((p, s.what, s.dim) for p, s in zip(payload, expression.slots, strict=True))
                shapes.append(("SHAPE", (slots, expression.code, expression.fn), index))
            else:
                nodes.append((-1, "NONE", None, [(guard.check, list(payload) if guard.check == "NOALIAS" else payload, index)]))
        if shapes:
            nodes.append((-1, "NONE", None, shapes))
        return nodes

    def _place(self, source: Source) -> list:
        """The checks of the source's node, which is laid out with those above it."""
        known, children = self.checks, self.children
        checks = known.get(source)
        if checks is not None:
            return checks
        made = known[source] = []
        while (parent := source.base) is not None:
            children.setdefault(parent, []).append(source)
            source = parent
            if source in known:
                return made
            known[source] = []
        children[None].append(source)
        return made

    def _emit(self, top: Source, parent: int, nodes: list[tuple], position: dict[Source, int]) -> None:
        children, checks = self.children.get, self.checks
        stack = [(top, parent)]
        while stack:
            source, above = stack.pop()
            here = position[source] = len(nodes)
            access, key = source.access, source.key
            if access in _INDEXED:
                key = key[_INDEXED[access]]
            nodes.append((above, GUARD_ACCESS.get(access, access), key, checks[source]))
            below = children(source)
            if below is not None:
                for child in reversed(below):
                    stack.append((child, here))
