"""``match`` statements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import DecompileError
from .blocks import Block

if TYPE_CHECKING:
    from .walker import Walker


class Matches:
    """The walker's part for ``match``."""

    def starts_match(self: Walker, i: int, block: Block, stack: list) -> bool:  # type: ignore[misc]
        return False

    def match_statement(self: Walker, i: int, block: Block, follow: Any, stack: list, out: list) -> tuple[bool | None, int]:  # type: ignore[misc]
        raise DecompileError("match statements are not decompiled yet")
