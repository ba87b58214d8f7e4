"""The running interpreter's bytecode, behind one object."""

from __future__ import annotations

from types import CodeType
from typing import Any

from ..ir import Instruction
from .assemble import Assembled, assemble
from .decode import canonical
from .running import FEATURES


class Version:
    """Decoding and encoding for the running CPython.

    Canonical code is the same for a program on every CPython, but for what the compilers really do otherwise:

    - a comprehension that 3.12+ inlines has locals of its own, ``x.1`` for its ``x`` (``x.2`` in the next one); where it ends,
      ``LOAD_CONST None, STORE_FAST x.1, DELETE_FAST x.1`` unbinds them. MAKE_CELL puts a new cell where ``x.1`` is a cell;
    - CLEANUP_THROW (3.12+) takes a ``yield from``'s iterator, what was sent last and the exception; it leaves the value of a
      StopIteration, or raises the exception again;
    - ``!r`` in an f-string with a format is APPLY of repr before the format is made (3.13).
    """

    name = FEATURES.name

    def decode(self, code: CodeType) -> list[Instruction]:
        return canonical(code)

    def assemble(self, body: list[Instruction], layout: Any, consts: Any, names: Any, firstlineno: int) -> Assembled:
        return assemble(body, layout, consts, names, firstlineno)


VERSION = Version()

__all__ = ["VERSION"]
