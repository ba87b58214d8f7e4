"""A context in which Python warns of nothing of a kind (with a text of this beginning), and forgets nothing of what it has shown before."""

from __future__ import annotations

import re
import warnings
from typing import Any


class Unheard:
    """The filter is put in the list by hand: ``warnings.catch_warnings`` makes Python forget what it has shown already."""

    def __init__(self, category: type[Warning] = Warning, beginning: str = "") -> None:
        self._filter: Any = ("ignore", re.compile(re.escape(beginning)) if beginning else None, category, None, 0)

    def __enter__(self) -> None:
        warnings.filters.insert(0, self._filter)  # type: ignore[attr-defined]

    def __exit__(self, *_: object) -> None:
        warnings.filters.remove(self._filter)  # type: ignore[attr-defined]


class Counting(Unheard):
    """Counts what nobody hears."""

    def __init__(self) -> None:
        super().__init__()
        self._filter = ("ignore", self, Warning, None, 0)
        self.count = 0

    def match(self, text: str) -> bool:
        """In the place of a compiled pattern."""
        self.count += 1
        return True
