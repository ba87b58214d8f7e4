"""CPython 3.11: from canonical instructions to raw code, line table and exception table."""

from __future__ import annotations

import builtins
import operator
from typing import Any, NamedTuple

from .. import ops
from ..flow import NO_FALLTHROUGH, stack_effect
from ..ir import Instruction
from .py311 import BINARY, CACHES, COMPARE, CONVERSIONS, OPCODES, RAW_INTRINSICS


class Assembled(NamedTuple):
    code: bytes
    linetable: bytes
    exceptiontable: bytes
    stacksize: int


class Unit:
    """A raw instruction on its way: ``jump`` is the canonical instruction it goes to."""

    __slots__ = ("op", "arg", "jump", "source", "size", "offset")

    def __init__(self, op: str, arg: int = 0, jump: Instruction | None = None, source: Instruction | None = None) -> None:
        self.op = op
        self.arg = arg
        self.jump = jump
        self.source = source
        self.size = 0
        self.offset = 0


def assemble(body: list[Instruction], layout: Any, consts: Any, names: Any, firstlineno: int) -> Assembled:
    stacks, needs_null = _simulate(body)
    units: list[Unit] = _prologue(body, layout)
    starts: dict[int, int] = {}
    for inst in body:
        starts[inst.index] = len(units)
        for unit in _lower(inst, layout, consts, names, needs_null):
            unit.source = inst
            units.append(unit)
    _place(units, starts)
    code = bytearray()
    for unit in units:
        _write(code, unit)
    nulls = [sum(s) if s is not None else 0 for s in stacks]
    size = max((len(s) + sum(s) for s in stacks if s is not None), default=0) + 8
    return Assembled(bytes(code), _line_table(units, firstlineno), _exception_table(units, starts, stacks), size + max(nulls, default=0))


def _prologue(body: list[Instruction], layout: Any) -> list[Unit]:
    units = []
    if layout.frees:
        units.append(Unit("COPY_FREE_VARS", len(layout.frees)))
    units += [Unit("MAKE_CELL", layout.plus[c]) for c in layout.cells if c not in layout.no_make_cell]
    if body[0].op != "RETURN_GENERATOR":
        units.append(Unit("RESUME", 0))
    return units


# -- NULLs: which callables have a NULL below them


def _simulate(body: list[Instruction]) -> tuple[list[Any], dict[int, str]]:
    """Stack before each instruction as flags "has a NULL below", and which instructions push such a callable.

    A callable gets its NULL where every path pushes it with a plain load that nothing but its call takes. A stack entry is
    the index of the instruction that pushed it, or -1.
    """
    owners: list[Any] = [None] * len(body)
    uses: dict[int, set[int]] = {}  # pusher -> calls that take it as callable
    spoilt: set[int] = set()
    calls: dict[int, set[int]] = {}  # call -> pushers of its callable
    work: list[tuple[int, tuple]] = [(0, ())]
    while work:
        index, stack = work.pop()
        while True:
            seen = owners[index]
            if seen is not None:
                merged = _merge(seen, stack, spoilt)
                if merged == seen:
                    break
                owners[index] = merged
                stack = merged
            else:
                owners[index] = stack
            inst = body[index]
            if inst.handler is not None:
                h = inst.handler
                work.append((h.target.index, stack[: h.depth] + (frozenset(),) * (1 + h.lasti)))
            if inst.target is not None:
                work.append((inst.target.index, _after(inst, stack, uses, spoilt, calls, True)))
            if inst.op in NO_FALLTHROUGH:
                _after(inst, stack, uses, spoilt, calls, False)
                break
            stack = _after(inst, stack, uses, spoilt, calls, False)
            index += 1
    good = _settle(body, calls, spoilt)
    flags = [None if s is None else tuple(bool(entry) and entry <= good for entry in s) for s in owners]
    spread = {p for c, pushers in calls.items() if body[c].op == "CALL_EX" for p in pushers}
    null: dict[int, str] = {i: "swap" if i in spread else "method" for i in good}
    null.update({c: "call" for c, p in calls.items() if p and p <= good})
    return flags, null


def _merge(a: tuple, b: tuple, spoilt: set[int]) -> tuple:
    if a == b:
        return a
    if len(a) != len(b):
        raise ValueError(f"inconsistent stack depth: {len(a)} and {len(b)}")
    out = []
    for x, y in zip(a, b, strict=True):
        if x != y and (not x or not y):
            spoilt.update(x | y)
        out.append(x | y)
    return tuple(out)


def _settle(body: list[Instruction], calls: dict[int, set[int]], spoilt: set[int]) -> set[int]:
    """Drop pushers until every remaining one feeds only calls all of whose pushers remain."""
    good = {p for pushers in calls.values() for p in pushers}
    good -= spoilt
    changed = True
    while changed:
        changed = False
        for pushers in calls.values():
            if pushers & good and not pushers <= good:
                good -= pushers
                changed = True
    return good


_PLAIN = frozenset(("LOAD_GLOBAL", "LOAD_FAST", "LOAD_CONST", "LOAD_DEREF", "LOAD_NAME", "LOAD_ATTR", "LOAD_CLOSURE"))


def _after(inst: Instruction, stack: tuple, uses: dict, spoilt: set[int], calls: dict, jump: bool) -> tuple:
    op = inst.op
    if op in ("CALL", "CALL_EX"):
        n = (inst.arg[0] + len(inst.arg[1]) if op == "CALL" else 1 + bool(inst.arg)) + 1
        entry = stack[-n]
        calls.setdefault(inst.index, set()).update(entry)
        if not entry:
            calls.setdefault(inst.index, set())
        for other in stack[len(stack) - n + 1 :]:
            spoilt.update(other)
        return (*stack[: len(stack) - n], frozenset())
    if op in ("COPY", "SWAP"):
        n = inst.arg
        spoilt.update(stack[-n])
        if op == "SWAP":
            spoilt.update(stack[-1])
            changed = list(stack)
            changed[-1], changed[-n] = changed[-n], changed[-1]
            return tuple(changed)
        return (*stack, frozenset())
    if op in _PLAIN:
        if op == "LOAD_ATTR":
            spoilt.update(stack[-1])
            return (*stack[:-1], frozenset((inst.index,)))
        return (*stack, frozenset((inst.index,)))
    effect = stack_effect(inst, jump)
    taken = _consumed(inst, effect)
    for entry in stack[len(stack) - taken :]:
        spoilt.update(entry)
    if op in ("LIST_APPEND", "SET_ADD", "MAP_ADD", "LIST_EXTEND", "SET_UPDATE", "DICT_UPDATE", "DICT_MERGE"):
        spoilt.update(stack[-(inst.arg + (2 if op == "MAP_ADD" else 1))])
    rest = stack[: len(stack) - taken]
    depth = len(stack) + effect
    return rest + (frozenset(),) * (depth - len(rest))


def _consumed(inst: Instruction, effect: int) -> int:
    """How many stack entries an instruction takes away (or replaces)."""
    op, arg = inst.op, inst.arg
    if op == "APPLY":
        return arg[1]
    if op in ("BUILD_TUPLE", "BUILD_LIST", "BUILD_SET", "BUILD_STRING", "BUILD_SLICE"):
        return arg or 0
    if op == "BUILD_MAP":
        return 2 * (arg or 0)
    if op == "BUILD_MAP_KEYS":
        return 1 + (arg or 0)
    if op in ("UNPACK_SEQUENCE", "UNPACK_EX", "LIST_TO_TUPLE", "BEFORE_WITH", "GET_YIELD_FROM_ITER", "YIELD_VALUE",
              "PUSH_EXC_INFO", "CHECK_EXC_MATCH"):
        return 1
    if op == "FORMAT_VALUE":
        return 2 if arg[1] else 1
    if op == "MAKE_FUNCTION":
        return 1 + bin(arg or 0).count("1")
    if op == "IMPORT_NAME":
        return 2
    if op == "MATCH_CLASS":
        return 3
    return max(0, -effect)


# -- lowering


def _lower(inst: Instruction, layout: Any, consts: Any, names: Any, null: dict[int, str]) -> list[Unit]:
    op, arg = inst.op, inst.arg
    kind = null.get(inst.index)
    has_null = kind is not None
    if op == "LOAD_GLOBAL":
        return [Unit(op, names.add(arg) << 1 | has_null)]
    if op == "LOAD_ATTR":
        if kind == "method":
            return [Unit("LOAD_METHOD", names.add(arg))]
        return [Unit(op, names.add(arg)), *(_sink_null(1) if has_null else [])]
    units = _lower_plain(inst, layout, consts, names, has_null)
    if has_null and op in ("LOAD_FAST", "LOAD_CONST", "LOAD_DEREF", "LOAD_NAME", "LOAD_CLOSURE"):
        return [Unit("PUSH_NULL"), *units]
    return units


def _lower_plain(inst: Instruction, layout: Any, consts: Any, names: Any, has_null: bool) -> list[Unit]:
    op, arg = inst.op, inst.arg
    if op in ("LOAD_FAST", "STORE_FAST", "DELETE_FAST"):
        return [Unit(op, layout.fast[arg])]
    if op in ("LOAD_DEREF", "STORE_DEREF", "DELETE_DEREF", "LOAD_CLOSURE"):
        return [Unit(op, layout.plus[arg])]
    if op == "STORE_CELL":
        return [Unit("STORE_FAST", layout.plus[arg])]
    if op == "LOAD_FROM_DICT_OR_DEREF":
        return [Unit("LOAD_CLASSDEREF", layout.plus[arg])]
    if op == "LOAD_CONST":
        return [Unit(op, consts.add(arg))]
    if op in ("STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_NAME", "STORE_NAME", "DELETE_NAME", "STORE_ATTR", "DELETE_ATTR",
              "IMPORT_NAME", "IMPORT_FROM"):
        return [Unit(op, names.add(arg))]
    if op == "APPLY":
        return [_apply(arg[0])]
    if op == "FORMAT_VALUE":
        return [Unit(op, CONVERSIONS.index(arg[0]) | (4 if arg[1] else 0))]
    if op == "BUILD_MAP_KEYS":
        return [Unit("BUILD_CONST_KEY_MAP", arg)]
    if op == "UNPACK_EX":
        return [Unit(op, arg[0] | arg[1] << 8)]
    if op == "INTRINSIC":
        return [Unit(RAW_INTRINSICS[arg])]
    if op == "CALL":
        return _call(arg, consts, has_null)
    if op == "CALL_EX":
        return [*([] if has_null else _sink_null(2 + bool(arg))), Unit("CALL_FUNCTION_EX", int(arg))]
    if op in ("JUMP", "POP_JUMP_IF", "FOR_ITER", "SEND"):
        return [Unit(op, 0, inst.target)]
    if op == "RETURN_GENERATOR":
        return [Unit(op), Unit("POP_TOP"), Unit("RESUME", 0)]
    if op == "YIELD_VALUE":
        return [Unit(op), Unit("RESUME", 1)]
    return [Unit(op, arg or 0)]


def _sink_null(n: int) -> list[Unit]:
    """Push a NULL and move it below the ``n`` entries on top of the stack."""
    return [Unit("PUSH_NULL"), *(Unit("SWAP", k) for k in range(n + 1, 1, -1))]


def _call(arg: tuple, consts: Any, has_null: bool) -> list[Unit]:
    npos, kwnames = arg
    total = npos + len(kwnames)
    units = [Unit("KW_NAMES", consts.add(kwnames))] if kwnames else []
    if has_null:
        return [*units, Unit("PRECALL", total), Unit("CALL", total)]
    if npos:
        # CALL takes [callable, first argument, ...] for a method and its self: no NULL is needed.
        return [*units, Unit("PRECALL", total - 1), Unit("CALL", total - 1)]
    return [*_sink_null(1 + total), *units, Unit("PRECALL", total), Unit("CALL", total)]


def _apply(fn: Any) -> Unit:
    if fn in BINARY:
        return Unit("BINARY_OP", BINARY.index(fn))
    if fn in COMPARE:
        return Unit("COMPARE_OP", COMPARE.index(fn))
    return Unit(*_APPLY[fn])


_APPLY: dict[Any, tuple[str, int]] = {
    operator.getitem: ("BINARY_SUBSCR", 0), operator.is_: ("IS_OP", 0), operator.is_not: ("IS_OP", 1),
    ops.contains: ("CONTAINS_OP", 0), ops.not_contains: ("CONTAINS_OP", 1), operator.pos: ("UNARY_POSITIVE", 0),
    operator.neg: ("UNARY_NEGATIVE", 0), operator.not_: ("UNARY_NOT", 0), operator.invert: ("UNARY_INVERT", 0),
    builtins.iter: ("GET_ITER", 0),
}


# -- placing


def _place(units: list[Unit], starts: dict[int, int]) -> None:
    """Choose jump directions and widths until nothing grows any more."""
    for unit in units:
        if unit.jump is not None:
            unit.op = _directed(unit, units, starts)
        unit.size = _width(unit)
    while True:
        offset = 0
        for unit in units:
            unit.offset = offset
            offset += unit.size
        grown = False
        for unit in units:
            if unit.jump is not None:
                target = units[starts[unit.jump.index]].offset
                distance = abs(target - (unit.offset + unit.size))
                unit.arg = distance // 2
            size = _width(unit)
            if size > unit.size:
                unit.size, grown = size, True
        if not grown:
            return


def _directed(unit: Unit, units: list[Unit], starts: dict[int, int]) -> str:
    assert unit.jump is not None and unit.source is not None
    backward = unit.jump.index <= unit.source.index
    op = unit.op
    if op == "JUMP":
        return "JUMP_BACKWARD" if backward else "JUMP_FORWARD"
    if op == "POP_JUMP_IF":
        return f"POP_JUMP_{'BACKWARD' if backward else 'FORWARD'}_IF_{unit.source.arg.upper()}"
    return op


def _width(unit: Unit) -> int:
    prefixes = (unit.arg > 0xFF) + (unit.arg > 0xFFFF) + (unit.arg > 0xFFFFFF)
    return 2 + 2 * prefixes + 2 * CACHES[unit.op]


def _write(code: bytearray, unit: Unit) -> None:
    caches = CACHES[unit.op]
    prefixes = (unit.size - 2 - 2 * caches) // 2
    for shift in range(prefixes, 0, -1):
        code += bytes((OPCODES["EXTENDED_ARG"], unit.arg >> 8 * shift & 0xFF))
    code += bytes((OPCODES[unit.op], unit.arg & 0xFF)) + bytes(2 * caches)


# -- tables


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 64:
        out.append(0x40 | value & 0x3F)
        value >>= 6
    out.append(value)
    return bytes(out)


def _signed(value: int) -> bytes:
    return _varint((-value << 1 | 1) if value < 0 else value << 1)


def _line_table(units: list[Unit], firstlineno: int) -> bytes:
    out = bytearray()
    line = firstlineno
    for unit in units:
        positions = unit.source.positions if unit.source is not None else (firstlineno, None, None, None)
        length = unit.size // 2
        while length > 0:
            step = min(length, 8)
            length -= step
            start = positions[0] if positions else None
            if start is None:
                out.append(0x80 | 15 << 3 | step - 1)
                continue
            _, end, column, end_column = positions
            if end is None or column is None or end_column is None or end < start:
                out.append(0x80 | 13 << 3 | step - 1)
                out += _signed(start - line)
            else:
                out.append(0x80 | 14 << 3 | step - 1)
                out += _signed(start - line) + _varint(end - start) + _varint(column + 1) + _varint(end_column + 1)
            line = start
    return bytes(out)


def _exception_table(units: list[Unit], starts: dict[int, int], stacks: list[Any]) -> bytes:
    out = bytearray()
    index = 0
    while index < len(units):
        source = units[index].source
        handler = source.handler if source is not None else None
        if handler is None or source is None:
            index += 1
            continue
        nulls = sum(stacks[source.index][: handler.depth])
        begin = units[index].offset
        end = begin
        while index < len(units):
            here = units[index].source
            if here is None or here.handler is not handler or sum(stacks[here.index][: handler.depth]) != nulls:
                break
            end = units[index].offset + units[index].size
            index += 1
        target = units[starts[handler.target.index]].offset
        for position, value in enumerate((begin // 2, (end - begin) // 2, target // 2,
                                          (handler.depth + nulls) << 1 | handler.lasti)):
            out += _table_entry(value, position == 0)
    return bytes(out)


def _table_entry(value: int, first: bool) -> bytes:
    groups = [value & 0x3F]
    while value >= 64:
        value >>= 6
        groups.append(value & 0x3F)
    groups.reverse()
    data = bytearray(g | 0x40 for g in groups)
    data[-1] &= 0x3F
    if first:
        data[0] |= 0x80
    return bytes(data)
