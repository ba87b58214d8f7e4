"""Transformed code that is encoded when it is wanted."""

from __future__ import annotations

import types
from collections.abc import Collection

from ..bytecode.encode import encode, hiding
from ..bytecode.ir import Instruction
from ..emit.loads import expanded
from ..interp import frame as frames
from ..interp.state import recursion_room


class LaterCode:
    """Transformed code, encoded when somebody wants it: most entries never run it."""

    def __init__(self, instructions: list[Instruction], template: types.CodeType, argnames: list[str], line: int, installed: tuple,
                 unseen: list[Instruction]) -> None:
        self._instructions = instructions  # loads of the graph's inputs are not spelled so far
        self._template = template.replace()  # not the code itself, which holds this through its entries
        self._argnames = argnames
        self._line = line
        self._installed = installed
        self._unseen = unseen

    def __call__(self) -> types.CodeType:
        with recursion_room():
            return self._holding(self._encoded(self._unseen))

    def shown(self) -> types.CodeType:
        """The code for people to look at: without places that Python has no words for."""
        return self._encoded(())

    def replaced(self, code: types.CodeType, rests: Collection[str]) -> types.CodeType:
        """``code``, ready to run in the place of what was ``shown``. ``rests``: see ``Passages``."""
        return self._holding(hiding(code, rests))

    def _encoded(self, unseen: Collection[Instruction]) -> types.CodeType:
        instructions = expanded(self._instructions)
        for inst in instructions:
            if inst.positions is None or inst.positions[0] is None:
                inst.positions = (self._line, None, None, None)  # a frame without a line breaks those who print tracebacks
        flags = self._template.co_flags & ~(frames.CO_VARARGS | frames.CO_VARKEYWORDS)
        return encode(instructions, self._template, argnames=self._argnames, cellvars=(), flags=flags, unseen=unseen)

    def _holding(self, code: types.CodeType) -> types.CodeType:
        """``code`` with the names that it uses, which live as long as it does."""
        return code.replace(co_consts=(*code.co_consts, *self._installed))
