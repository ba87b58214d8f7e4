"""CPython 3.10: the line table (Objects/lnotab_notes.txt)."""

from __future__ import annotations

from typing import Any

_MOST, _NO_LINE = 254, -128


def line_table(units: list[Any], firstlineno: int) -> bytes:
    """co_linetable: for each run of bytes on one line how many they are and how far the line is from the last one."""
    out = bytearray()
    runs: list[tuple[int, int | None]] = []
    for unit in units:
        positions = unit.source.positions if unit.source is not None else None
        line = positions[0] if positions else None
        if runs and runs[-1][1] == line:
            runs[-1] = (runs[-1][0] + unit.size, line)
        else:
            runs.append((unit.size, line))
    last = firstlineno
    for size, line in runs:
        delta = _NO_LINE if line is None else line - last
        if line is not None:
            last = line
            while not -127 <= delta <= 127:
                part = 127 if delta > 0 else -127
                _entry(out, 0, part)
                delta -= part
        while size > _MOST:
            _entry(out, _MOST, delta)
            size -= _MOST
            delta = _NO_LINE if line is None else 0
        _entry(out, size, delta)
    return bytes(out)


def _entry(out: bytearray, size: int, delta: int) -> None:
    out += bytes((size, delta & 0xFF))
