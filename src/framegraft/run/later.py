"""Transformed code that is encoded when it is wanted."""

from __future__ import annotations

import types

from ..bytecode.encode import encode
from ..bytecode.ir import Instruction
from ..interp import frame as frames
from ..interp.state import recursion_room


class LaterCode:
    """Transformed code, encoded when somebody wants it: most entries never run it."""

    def __init__(self, instructions: list[Instruction], template: types.CodeType, argnames: list[str], line: int, installed: tuple,
                 unseen: tuple[Instruction, Instruction] | None) -> None:
        self._instructions = instructions
        self._template = template
        self._argnames = argnames
        self._line = line
        self._installed = installed
        self._unseen = unseen

    def __call__(self) -> types.CodeType:
        with recursion_room():
            return self.holding(self.encoded(self._unseen))

    def encoded(self, unseen: tuple[Instruction, Instruction] | None = None) -> types.CodeType:
        """``unseen``: see ``encode``; None for code that people look at."""
        for inst in self._instructions:
            if inst.positions is None or inst.positions[0] is None:
                inst.positions = (self._line, None, None, None)  # a frame without a line breaks those who print tracebacks
        flags = self._template.co_flags & ~(frames.CO_VARARGS | frames.CO_VARKEYWORDS)
        return encode(self._instructions, self._template, argnames=self._argnames, cellvars=(), flags=flags, unseen=unseen)

    def holding(self, code: types.CodeType) -> types.CodeType:
        """``code`` with the names that it uses, which live as long as it does."""
        return code.replace(co_consts=(*code.co_consts, *self._installed))
