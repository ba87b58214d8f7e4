"""What a cache entry tells about itself: its guards as readable Python, and a check of a dict of locals."""

from __future__ import annotations

from typing import Any

from ..model.guards import Guard


class CheckFunction:
    """The guards of one entry, callable on the dict of locals of a frame.

    ``code_parts`` are readable Python expressions over ``L`` (locals) and ``G`` (globals); ``verbose_code_parts`` add the
    user's line that needed each.
    """

    def __init__(self, program: Any, guards: list[Guard], argnames: list[str], fn: Any) -> None:
        self._program = program
        self._guards = guards
        self._argnames = argnames
        self._fn = fn

    @property
    def code_parts(self) -> list[str]:
        return [g.code() for g in self._guards]

    @property
    def verbose_code_parts(self) -> list[str]:
        return [f"{g.code()}  # {g.cause}" for g in self._guards]

    def __call__(self, f_locals: dict[str, Any]) -> bool:
        missing = [n for n in self._argnames if n not in f_locals]
        if missing:
            raise KeyError(f"check_fn needs the locals {', '.join(self._argnames)}; {', '.join(missing)} missing")
        return bool(self._program.check(tuple(f_locals[n] for n in self._argnames), self._fn))

    def explain(self, f_locals: dict[str, Any]) -> str | None:
        """The first guard that fails, None if all hold."""
        failed = self._program.explain(tuple(f_locals[n] for n in self._argnames), self._fn)
        if failed is None:
            return None
        return self._guards[failed[0]].code() if failed[0] >= 0 else "an object that the entry relies on has died"


class EntryInfo:
    """Python side of an entry: guards, graph, break, and the names it put into the function's globals."""

    def __init__(self, guards: list[Guard], graph_module: Any, broken: Any, installed: list[str], scope: dict) -> None:
        self.guards = guards
        self.graph_module = graph_module
        self.broken = broken
        self.installed = installed
        self.check_fn: Any = None
        self._scope = scope

    def describe(self, guard_id: int) -> str:
        if guard_id < 0:
            return "an object that the entry relies on has died"
        guard = self.guards[guard_id]
        return f"{guard.code()}  # {guard.cause}"

    def __del__(self) -> None:
        for name in self.installed:
            self._scope.pop(name, None)
