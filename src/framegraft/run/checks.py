"""What a cache entry tells about itself: its guards as readable Python, and a check of a dict of locals."""

from __future__ import annotations

import functools
import types
import weakref
from typing import Any

from ..emit.tracebacks import Passages
from ..model.guards import Guard, Recorded, Repeat, Template

#: Checks whose payloads the native program holds, too.
_HELD = frozenset(("TYPE", "ABSENT", "PRESENT", "LEN", "HASKEY", "NOKEY", "KEYS", "EQ", "TENSOR", "RANGE"))


class _Told:
    """What guards say, and why they were made."""

    def __init__(self, guards: list[Guard]) -> None:
        # As text where the guard itself would keep an object alive that the program does not. The others become text when it is wanted.
        self._parts: list[Any] = [g if g.check in _HELD and g.source.root().access != "CONST" else g.code() for g in guards]
        self.kinds = [g.check for g in guards]
        self.causes = [g.cause for g in guards]

    @functools.cached_property
    def texts(self) -> list[str]:
        self._parts = [part if isinstance(part, str) else part.code() for part in self._parts]
        return self._parts


def _runs(guards: Recorded) -> list[tuple[_Told, str]]:
    """The guards in their order: those between two repeats are told together. With the name of a repeat's object, or an empty one."""
    runs: list[tuple[_Told, str]] = []
    told: dict[Template, _Told] = {}
    plain: list[Guard] = []
    for item in guards.items:
        if not isinstance(item, Repeat):
            plain.append(item)
            continue
        if plain:
            runs.append((_Told(plain), ""))
            plain = []
        template = item.template
        if template not in told:
            told[template] = _Told(template.guards)
        runs.append((told[template], item.source.name))
    return [*runs, (_Told(plain), "")]


class CheckFunction:
    """The guards of one entry, callable on the dict of locals of a frame.

    ``code_parts`` are readable Python expressions over ``L`` (locals) and ``G`` (globals); ``verbose_code_parts`` add the
    user's line that needed each.
    """

    def __init__(self, program: Any, guards: Recorded, argnames: list[str], fn: Any) -> None:
        self._program = program
        self._runs = _runs(guards)
        self.count = len(guards)
        self.slots = {i: [s.leaf().name for s in g.payload.slots] for i, g in guards.numbered()
                      if isinstance(g, Guard) and g.check == "SHAPE"}
        self.argnames = argnames
        self._fn = weakref.ref(fn)

    @functools.cached_property
    def code_parts(self) -> list[str]:
        root = Template.ROOT.name
        return [text.replace(root, name) if name else text for told, name in self._runs for text in told.texts]

    @functools.cached_property
    def kinds(self) -> list[str]:
        return [kind for told, _ in self._runs for kind in told.kinds]

    @functools.cached_property
    def causes(self) -> list[str]:
        return [cause for told, _ in self._runs for cause in told.causes]

    @property
    def verbose_code_parts(self) -> list[str]:
        return [f"{code}  # {cause}" for code, cause in zip(self.code_parts, self.causes, strict=True)]

    def __call__(self, f_locals: dict[str, Any]) -> bool:
        missing = [n for n in self.argnames if n not in f_locals]
        if missing:
            raise KeyError(f"check_fn needs the locals {', '.join(self.argnames)}; {', '.join(missing)} missing")
        return bool(self._program.check(tuple(f_locals[n] for n in self.argnames), self._fn()))

    def explain(self, f_locals: dict[str, Any]) -> str | None:
        """The first guard that fails, None if all hold."""
        failed = self._program.explain(tuple(f_locals[n] for n in self.argnames), self._fn())
        if failed is None:
            return None
        return self.code_parts[failed[0]] if failed[0] >= 0 else "an object that the entry relies on has died"


class EntryInfo:
    """Python side of an entry: guards, graph, break, the record of the conversion that made it, the sizes and numbers
    that it was made for (``tensor.policy``), the names of objects from outside that it changes, where errors come from, and the code
    of the functions in which it goes on behind a break."""

    def __init__(self, graph_module: Any, broken: Any, capture: Any, seen: dict[str, Any], changes: list[str], passages: Passages,
                 resumes: list[types.CodeType]) -> None:
        self.capture = capture
        self.changes = changes
        self.mend = passages.mend  # called by the native core
        self.rests = passages.rests
        self.seen = seen
        self.resumes = resumes
        self.graph_module = graph_module
        self.broken = broken
        self.check_fn: Any = None
        self.folder: Any = None  # where prepare_debug has written it

    def describe(self, guard_id: int) -> str:
        if guard_id < 0:
            return "an object that the entry relies on has died"
        return self.check_fn.verbose_code_parts[guard_id]
