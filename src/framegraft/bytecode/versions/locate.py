"""CPython 3.11 and later: the location table and the exception table (Objects/locations.md, exception_handling_notes.txt)."""

from __future__ import annotations

from typing import Any

_SHORT_COLUMNS, _ONE_LINE, _NO_COLUMNS, _LONG, _NONE = 80, 10, 13, 14, 15


def line_table(units: list[Any], firstlineno: int) -> bytes:
    """co_linetable: one entry for each unit of at most eight code units of two bytes."""
    out = bytearray()
    made: dict[tuple, bytes] = {}
    line = firstlineno
    prologue = (firstlineno, firstlineno, 0, 0)
    for unit in units:
        positions = unit.source.positions if unit.source is not None else prologue
        length = unit.size // 2
        while length > 0:
            count = min(length, 8)
            length -= count
            start = positions[0] if positions else None
            if start is None:
                out.append(0x80 | _NONE << 3 | count - 1)
                continue
            delta, line = start - line, start
            key = (delta, count, positions)
            entry = made.get(key)
            if entry is None:
                entry = made[key] = _location(delta, count, positions)
            out += entry
    return bytes(out)


def _location(delta: int, count: int, positions: tuple) -> bytes:
    start, end, column, end_column = positions
    if end is None or column is None or end_column is None or end < start:
        return bytes((0x80 | _NO_COLUMNS << 3 | count - 1,)) + _signed(delta)
    if end == start:
        if delta == 0 and column < _SHORT_COLUMNS and 0 <= end_column - column < 16:
            return bytes((0x80 | column >> 3 << 3 | count - 1, (column & 7) << 4 | end_column - column))
        if 0 <= delta < 3 and column < 128 and end_column < 128:
            return bytes((0x80 | _ONE_LINE + delta << 3 | count - 1, column, end_column))
    return (bytes((0x80 | _LONG << 3 | count - 1,)) + _signed(delta) + _varint(end - start) + _varint(column + 1)
            + _varint(end_column + 1))


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 64:
        out.append(0x40 | value & 0x3F)
        value >>= 6
    out.append(value)
    return bytes(out)


def _signed(value: int) -> bytes:
    return _varint(-value << 1 | 1 if value < 0 else value << 1)


def exception_table(units: list[Any], starts: list[int]) -> bytes:
    """co_exceptiontable: an entry for each run of units with one handler at one depth."""
    out = bytearray()
    run: tuple = (None, 0)
    begin = end = 0
    for unit in units:
        handler = unit.handler
        if handler is not run[0] or unit.handler_depth != run[1]:
            if run[0] is not None:
                _entry(out, begin, end, units[starts[run[0].target.index]].offset, run)
            begin = unit.offset
            run = (handler, unit.handler_depth)
        end = unit.offset + unit.size
    if run[0] is not None:
        _entry(out, begin, end, units[starts[run[0].target.index]].offset, run)
    return bytes(out)


def _entry(out: bytearray, begin: int, end: int, target: int, run: tuple) -> None:
    first = len(out)
    for value in (begin // 2, (end - begin) // 2, target // 2, run[1] << 1 | run[0].lasti):
        _table_number(out, value)
    out[first] |= 0x80


def _table_number(out: bytearray, value: int) -> None:
    """Big-endian groups of six bits, all but the last marked."""
    shift = 6
    while value >> shift:
        shift += 6
    while shift > 6:
        shift -= 6
        out.append(0x40 | value >> shift & 0x3F)
    out.append(value & 0x3F)
