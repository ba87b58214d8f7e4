"""From a code object to canonical instructions."""

from __future__ import annotations

from types import CodeType

from .ir import Instruction
from .versions import VERSION


def decode(code: CodeType) -> list[Instruction]:
    """Fresh canonical instructions of ``code``; jumps and handlers point at instructions, ``index`` is filled in.

    Unreachable instructions are kept. ValueError for code that no compiler makes (a NULL moved about in odd ways).
    """
    return VERSION.decode(code)
