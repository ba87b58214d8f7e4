"""CPython 3.11: the one object that the rest of the package uses."""

from __future__ import annotations

from types import CodeType
from typing import Any

from ..ir import Instruction
from .py311_assemble import Assembled, assemble
from .py311_decode import canonical


class Version:
    """Decoding and encoding for one CPython."""

    name = "3.11"

    def decode(self, code: CodeType) -> list[Instruction]:
        return canonical(code)

    def assemble(self, body: list[Instruction], layout: Any, consts: Any, names: Any, firstlineno: int) -> Assembled:
        return assemble(body, layout, consts, names, firstlineno)


VERSION = Version()
