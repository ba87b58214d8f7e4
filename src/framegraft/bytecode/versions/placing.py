"""Where units of code lie: the argument of a jump tells how far it goes, and how long it is itself depends on that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def place(units: list[Any], width: Callable[[Any], int], reach: Callable[[Any], int]) -> None:
    """Give units their offsets and sizes, and jumps their arguments and prefixes, until nothing grows any more.

    ``width(unit)``: its bytes with its argument as it is; ``reach(jump)``: its argument with all units where they are.
    """
    jumps = [unit for unit in units if unit.goal >= 0]
    for unit in units:
        unit.size = width(unit)
    grown = True
    while grown:
        grown = False
        offset = 0
        for unit in units:
            unit.offset = offset
            offset += unit.size
        for unit in jumps:
            unit.arg = reach(unit)
            size = width(unit)
            if size > unit.size:
                unit.size, grown = size, True
