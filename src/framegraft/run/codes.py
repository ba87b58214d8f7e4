"""What is kept for code objects: by identity. Two code objects that are equal may belong to different functions."""

from __future__ import annotations

import types
import weakref
from collections.abc import Iterator


class CodeTable:
    """A number for each code object, which is forgotten when the code object goes."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[weakref.ref, int]] = {}

    def __getitem__(self, code: types.CodeType) -> int:
        """0 for a code object that is not in the table."""
        return self._found[id(code)][1] if id(code) in self._found else 0

    def __setitem__(self, code: types.CodeType, value: int) -> None:
        known = self._found.get(id(code))
        if known is None:
            key, found = id(code), self._found
            known = weakref.ref(code, lambda _: found.pop(key, None)), 0
        self._found[id(code)] = (known[0], value)

    def __contains__(self, code: types.CodeType) -> bool:
        return id(code) in self._found

    def __iter__(self) -> Iterator[types.CodeType]:
        return iter([code for ref, _ in list(self._found.values()) if (code := ref()) is not None])

    def clear(self) -> None:
        self._found.clear()
