"""Guards, laid out as the program that the native core runs at each call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .guards import Guard, Recorded, Repeat
from .source import GUARD_ACCESS, Source


def _sources(guard: Guard) -> tuple[Source, ...]:
    """The objects that a guard on several of them looks at."""
    return tuple(s.source for s in guard.payload.slots) if guard.check == "SHAPE" else guard.payload


_LATE = frozenset(("NOALIAS", "ALIAS", "SHAPE"))  # on several objects
_INDEXED = {"ARG": 0, "CELL": 0, "CELLOBJ": 0, "BASEITEM": 1}  # accessors with several keys: which of them the program takes


class ProgramBuilder:
    """Lays guards out as the pre-order node list that ``_native.GuardProgram`` takes. ``wanted``: places that get nodes in any case."""

    def __init__(self, guards: Iterable[Guard], wanted: Iterable[Source] = ()) -> None:
        self.wanted = wanted
        self.guards = guards if isinstance(guards, Recorded) else Recorded([*guards])
        self.children: dict[Source | None, list[Source]] = {None: []}
        self.checks: dict[Source, list] = {}
        self.position: dict[Source, int] = {}  # of each source's node, once built

    def build(self) -> list[tuple]:
        late: list[tuple[int, Guard]] = []
        known = self.checks
        for source in self.wanted:
            self._place(source)
        repeats = [(number, item) for number, item in self.guards.numbered() if isinstance(item, Repeat)]
        repeated = {source for _, repeat in repeats for source in repeat.places}
        for index, guard in self.guards.numbered():
            if isinstance(guard, Repeat):
                self._place(guard.source)
                continue
            check, source = guard.check, guard.source
            if check in _LATE:
                for one in _sources(guard):
                    if one not in repeated:
                        self._place(one)
                late.append((index, guard))
                continue
            checks = known.get(source)
            if checks is None:
                checks = self._place(source)
            checks.append((check, guard.payload, index))
        nodes: list[tuple] = []
        for root in self.children[None]:
            self._emit(root, nodes)
        self._repeat(repeats, nodes)
        self._emit_late(late, nodes)
        return nodes

    def _emit_late(self, late: list[tuple[int, Guard]], nodes: list[tuple]) -> None:
        position = self.position
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

    def _repeat(self, repeats: list[tuple[int, Repeat]], nodes: list[tuple]) -> None:
        """One item for all nodes of a template: the core copies them."""
        position = self.position
        above = len(nodes) - 1  # the template's root is there already
        for first, repeat in repeats:
            nodes.append((position[repeat.source], repeat.template.program, first))
            for place, node in repeat.places.items():
                position.setdefault(place, above + node)
            above += len(repeat.template.position) - 1

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

    def _emit(self, root: Source, nodes: list[tuple]) -> None:
        children, checks, position = self.children.get, self.checks, self.position
        stack = [(root, -1)]
        while stack:
            source, above = stack.pop()
            here = position[source] = len(nodes)
            nodes.append((above, *_step(source), checks[source]))
            below = children(source)
            if below is not None:
                for child in reversed(below):
                    stack.append((child, here))


def _step(source: Source) -> tuple[str, Any]:
    """Accessor and argument, as the program takes them."""
    access, key = source.access, source.key
    if access in _INDEXED:
        key = key[_INDEXED[access]]
    return GUARD_ACCESS.get(access, access), key
