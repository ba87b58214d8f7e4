"""What the generator knows while it writes a program: the variables in sight and their types, and the random choices.

Types are strings ("T" tensor, "I" int, "F" float, "B" bool, "S" str, "N" None) and tuples: ("list", t), ("tuple", t, ...),
("dict", t) with str keys, ("set",) of ints, ("obj", class number), ("fn", t) of one int that gives t, ("iter", t).
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SCALARS = ("I", "F", "B", "S")
Type = Any


class Scope:
    """Variables of one function body, by type."""

    def __init__(self, kind: str = "function") -> None:
        self.kind = kind  # function, generator
        self.names: dict[str, Type] = {}
        self.frozen: set[str] = set()  # read, never assigned: loop counters, closure variables
        self.loops = 0
        self.handlers = 0
        self.is_main = False

    def of(self, wanted: Type) -> list[str]:
        return [n for n, t in self.names.items() if t == wanted]

    def like(self, kind: str) -> list[tuple[str, Type]]:
        return [(n, t) for n, t in self.names.items() if isinstance(t, tuple) and t[0] == kind]


class Source:
    """Lines of Python under construction, with the random generator that decides them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.indent = 0
        self.counter = 0
        self.scope = Scope()
        self.budget = 0

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def fresh(self, prefix: str = "v") -> str:
        self.counter += 1
        return f"{prefix}{self.counter}"

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def pick(self, options: Any) -> Any:
        return self.random.choice(list(options))

    def weighted(self, table: dict[Any, float]) -> Any:
        return self.random.choices(list(table), list(table.values()))[0]

    @contextmanager
    def block(self, keep: float = 0.1) -> Iterator[None]:
        """An indented block; the variables that it makes are mostly forgotten behind it, as they may be unbound."""
        before = dict(self.scope.names)
        frozen = set(self.scope.frozen)
        self.indent += 1
        size = len(self.lines)
        yield
        if len(self.lines) == size:
            self.emit("pass")
        self.indent -= 1
        if not self.chance(keep):
            self.scope.names = before
        self.scope.frozen = frozen

    @contextmanager
    def function(self, kind: str = "function", inherit: bool = False) -> Iterator[Scope]:
        """The body of a nested or top-level function."""
        outer = self.scope
        self.scope = Scope(kind)
        if inherit:
            self.scope.names = dict(outer.names)
            self.scope.frozen = set(outer.names)
        self.indent += 1
        yield self.scope
        self.indent -= 1
        self.scope = outer
