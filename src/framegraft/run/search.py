"""Where a frame breaks when a value alive at the break cannot be made again: earlier, found by trial."""

from __future__ import annotations

import sys
from typing import Any

from ..errors import GraphBreak


class Search:
    """The latest step at which a trace can end, when a value that is alive at the wanted one cannot be rebuilt.

    Such a value is made by one instruction and alive from there on: the two steps before are tried, then halves.
    """

    def __init__(self, points: list[int]) -> None:
        self.points = list(points)
        self.good = 0
        self.bad = sys.maxsize
        self.tries = 0
        self.broken: Any = None
        self.settled = False

    def failed(self, at: int, broken: GraphBreak) -> None:
        self.bad = at
        self.broken = broken

    def could_be_later(self, at: int) -> bool:
        """Whether the end at step ``at``, which would do, need not be the latest."""
        self.good = at
        return not self.settled and bool(self._between())

    def _between(self) -> list[int]:
        return [p for p in self.points if self.good < p < self.bad]

    def next(self) -> tuple[int, GraphBreak]:
        """The step to try, and the break that it stands for, which is raised when there is none."""
        between = self._between()
        self.tries += 1
        if between:
            return between[-1] if self.tries <= 2 else between[len(between) // 2], self.broken
        if not self.good:
            raise self.broken
        self.settled = True
        return self.good, self.broken
