"""Canonical instructions: the same small set on every CPython, without NULLs, caches and prefixes."""

from __future__ import annotations

from typing import Any


class ExceptionHandler:
    """What covers an instruction: where an exception goes, how deep the stack is cut, whether lasti is pushed."""

    __slots__ = ("target", "depth", "lasti")

    def __init__(self, target: Instruction, depth: int, lasti: bool) -> None:
        self.target = target
        self.depth = depth
        self.lasti = lasti


class Instruction:
    """One operation. ``offset`` is the byte offset in the original code, -1 for synthesised instructions.

    ``run`` and ``place`` belong to the interpreter: the rule, and the index among the instructions that resume functions
    are made of (-1: none can go on there).
    """

    __slots__ = ("op", "arg", "target", "offset", "positions", "handler", "index", "run", "place")

    def __init__(self, op: str, arg: Any = None) -> None:
        self.op = op
        self.arg = arg
        self.target: Instruction | None = None
        self.offset = -1
        self.positions: Any = None
        self.handler: ExceptionHandler | None = None
        self.index = -1
        self.run: Any = None
        self.place = -1

    def __repr__(self) -> str:
        to = f" -> {self.target.index}" if self.target is not None else ""
        return f"<{self.index}: {self.op} {self.arg!r}{to} @{self.offset}>"
