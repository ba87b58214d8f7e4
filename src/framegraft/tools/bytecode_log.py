"""``framegraft.install()``: the bytecode log shows source, too."""

from __future__ import annotations

from types import CodeType

from ..run import logs
from .sources import readable_code


def _possible_source(code: CodeType) -> str:
    source, refused = readable_code(code)
    return f"possible source code: none ({refused})" if refused else f"possible source code:\n{source}"


def install() -> None:
    """From now on the log ``bytecode`` adds ``possible source code:`` to each modified bytecode."""
    logs.CODE_NOTES[:] = [_possible_source]


def uninstall() -> None:
    """The log ``bytecode`` shows bytecode alone again."""
    logs.CODE_NOTES.clear()
