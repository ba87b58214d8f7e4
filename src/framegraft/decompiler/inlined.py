"""Comprehensions that CPython 3.12 and later compile into the function around them.

Their variables are locals of their own there, ``x.1`` for ``x``, which are unbound behind them (see ``bytecode.versions``).
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ..errors import DecompileError
from .blocks import Block
from .items import Iter, Mark

if TYPE_CHECKING:
    from .walker import Walker

_KINDS = {"BUILD_LIST": "<listcomp>", "BUILD_SET": "<setcomp>", "BUILD_MAP": "<dictcomp>"}


class Inlined:
    """The walker's part for them."""

    def starts_inlined(self: Walker, i: int, stack: list) -> bool:  # type: ignore[misc]
        """Whether a comprehension over the iterator on top of the stack begins at ``i``, with its empty result."""
        g = self.g
        if g.ops[i] == "MAKE_CELL":
            return bool(stack) and isinstance(stack[-1], Iter)
        return (g.ops[i] in _KINDS and not g.insts[i].arg and bool(stack) and isinstance(stack[-1], Iter)
                and g.ops[i + 1] == "SWAP" and g.insts[i + 1].arg == 2 and g.ops[i + 2] in ("FOR_ITER", "GET_ANEXT"))

    def inlined(self: Walker, i: int, stack: list) -> int:  # type: ignore[misc]
        """Folds it; the instruction behind it."""
        g = self.g
        while g.ops[i] == "MAKE_CELL":
            i += 1
        if g.ops[i] not in _KINDS:
            raise DecompileError("a comprehension of unknown shape")
        iterator = stack.pop()
        header = i + 2
        result = Mark("result")
        block = Block("function", None, len(stack) + 1, g.handler[i])
        out: list[ast.stmt] = []
        saved = self.floor, self.is_comprehension, self.pushed, self.parallel
        self.is_comprehension, self.pushed, self.parallel = True, [], []
        after = self.for_statement(header, block, frozenset(), [*stack, result, iterator], out)
        self.floor, self.is_comprehension, self.pushed, self.parallel = saved
        made = self.comprehension_of(_KINDS[g.ops[i]], out, iterator)
        stack.append(made)
        if after < 0:
            raise DecompileError("a comprehension without an end")
        return after

    def behind_unbinding(self: Walker, i: int) -> int:  # type: ignore[misc]
        """The instruction behind ``LOAD_CONST None, STORE_FAST x.1, DELETE_FAST x.1`` at ``i``; -1 for another."""
        insts = self.g.insts[i : i + 3]
        if [inst.op for inst in insts] != ["LOAD_CONST", "STORE_FAST", "DELETE_FAST"] or "." not in insts[1].arg:
            return -1
        return i + 3 if insts[1].arg == insts[2].arg else -1


def inlined_name(name: str) -> str:
    """``x`` for ``x.1``."""
    stem, dot, number = name.rpartition(".")
    return stem if dot and stem and number.isdigit() else name
