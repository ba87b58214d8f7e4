"""The running interpreter's bytecode, behind one object."""

from __future__ import annotations

from types import CodeType, FunctionType
from typing import Any

from ..ir import Instruction
from .running import ASKED_PROTOCOLS, BLOCK_STACK, NAME

if BLOCK_STACK:
    from .py310 import assemble, canonical, name_code, qualname
else:
    from .assemble import assemble
    from .decode import canonical


class Version:
    """Decoding and encoding for the running CPython.

    Canonical code is the same for a program on every CPython, but for what the compilers really do otherwise:

    - a comprehension that 3.12+ inlines has locals of its own, ``x.1`` for its ``x`` (``x.2`` in the next one); where it ends,
      ``LOAD_CONST None, STORE_FAST x.1, DELETE_FAST x.1`` unbinds them. MAKE_CELL puts a new cell where ``x.1`` is a cell;
    - CLEANUP_THROW (3.12+) takes a ``yield from``'s iterator, what was sent last and the exception; it leaves the value of a
      StopIteration, or raises the exception again;
    - ``!r`` in an f-string with a format is APPLY of repr before the format is made (3.13).
    """

    name = NAME
    hides = not BLOCK_STACK  # a frame that is in front of its code's RESUME
    keeps_tracebacks = BLOCK_STACK  # beside the exceptions that are handled, not in them: raised again, they have those again
    asks_protocol_members = ASKED_PROTOCOLS  # isinstance() with a protocol calls getattr(), and looks at data members first

    def decode(self, code: CodeType) -> list[Instruction]:
        return canonical(code)

    def assemble(self, body: list[Instruction], layout: Any, consts: Any, names: Any, firstlineno: int) -> Any:
        """A named tuple of fields of the code object."""
        return assemble(body, layout, consts, names, firstlineno)

    def qualname(self, code: CodeType) -> str:
        return qualname(code) if BLOCK_STACK else code.co_qualname

    def note_name(self, fn: FunctionType) -> None:
        if BLOCK_STACK and qualname(fn.__code__) == fn.__code__.co_name:
            name_code(fn.__code__, fn.__qualname__)

    def replace(self, code: CodeType, **fields: Any) -> CodeType:
        if not BLOCK_STACK:
            return code.replace(**fields)
        name = fields.pop("co_qualname", None) or qualname(code)
        made = code.replace(**fields)
        name_code(made, name)
        return made


VERSION = Version()

__all__ = ["VERSION"]
