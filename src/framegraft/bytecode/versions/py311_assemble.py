"""CPython 3.11: from canonical instructions to raw code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..ir import Instruction
from .callables import METHOD, callables
from .py311_locate import exception_table, line_table
from .py311_tables import (
    APPLIED,
    CACHES,
    CONST,
    EXTENDED_ARG,
    NAME,
    NO_FALLTHROUGH,
    NUMBERED,
    OPCODES,
    PLAIN,
    RELATIVE,
    SLOT,
    YIELDS,
    step,
)

_RESUMES = {None: 1} | {how: arg for arg, how in YIELDS.items()}
(LOAD_GLOBAL, LOAD_ATTR, LOAD_METHOD, LOAD_CLASSDEREF, STORE_FAST, PUSH_NULL, SWAP, KW_NAMES, PRECALL, CALL, RESUME,
 RETURN_GENERATOR, POP_TOP, YIELD_VALUE, JUMP_FORWARD, JUMP_BACKWARD, JUMP_BACKWARD_NO_INTERRUPT) = (OPCODES[name] for name in (
    "LOAD_GLOBAL", "LOAD_ATTR", "LOAD_METHOD", "LOAD_CLASSDEREF", "STORE_FAST", "PUSH_NULL", "SWAP", "KW_NAMES", "PRECALL",
    "CALL", "RESUME", "RETURN_GENERATOR", "POP_TOP", "YIELD_VALUE", "JUMP_FORWARD", "JUMP_BACKWARD",
    "JUMP_BACKWARD_NO_INTERRUPT"))


class Assembled(NamedTuple):
    code: bytes
    linetable: bytes
    exceptiontable: bytes
    stacksize: int


class Unit:
    """A raw instruction on its way. ``goal``: index in ``starts`` of the unit it jumps to, or -1."""

    __slots__ = ("op", "arg", "goal", "source", "size", "offset", "handler_depth")

    def __init__(self, op: int, arg: int = 0, goal: int = -1) -> None:
        self.op = op
        self.arg = arg
        self.goal = goal
        self.source: Instruction | None = None
        self.size = 0
        self.offset = 0
        self.handler_depth = 0  # of the source's handler, NULLs counted


def assemble(body: list[Instruction], layout: Any, consts: Any, names: Any, firstlineno: int) -> Assembled:
    """Raw code and tables for reachable, numbered instructions; ``consts`` and ``names`` are filled."""
    lowering = _Lowering(body, layout, consts, names)
    units, starts = lowering.units, lowering.starts
    stacksize = _settle_stack(units, starts)
    _place(units, starts)
    code = bytearray()
    for unit in units:
        _write(code, unit)
    return Assembled(bytes(code), line_table(units, firstlineno), exception_table(units, starts), stacksize)


# -- lowering


class _Lowering:
    """The units of each instruction; ``starts[i]`` is the first unit of instruction i (behind them, of trampolines)."""

    def __init__(self, body: list[Instruction], layout: Any, consts: Any, names: Any) -> None:
        self.body = body
        self.consts = consts
        self.names = names
        self.slots = layout.slots
        self.nulls = callables(body)
        self.adders: dict[int, Callable[[Any], int]] = {NAME: names.add, CONST: consts.add, SLOT: self.slots.__getitem__}
        self.units = _prologue(body, layout)
        self.starts: list[int] = []
        self.detours: list[tuple[Unit, Instruction]] = []
        units, adders, null_at = self.units, self.adders, self.nulls
        for inst in body:
            first = len(units)
            self.starts.append(first)
            plain = PLAIN.get(inst.op)
            if plain is not None and inst.index not in null_at:
                units.append(Unit(plain[0], adders[plain[1]](inst.arg)))
            elif inst.op in NUMBERED and inst.index not in null_at:
                units.append(Unit(NUMBERED[inst.op], inst.arg or 0))
            else:
                units += self.lower(inst)
            for unit in units[first:]:
                unit.source = inst
        self._add_trampolines()

    def lower(self, inst: Instruction) -> list[Unit]:
        op, arg = inst.op, inst.arg
        if op == "LOAD_GLOBAL":
            return [Unit(LOAD_GLOBAL, self.names.add(arg) << 1 | (inst.index in self.nulls))]
        if op == "LOAD_BUILD_CLASS":
            return [Unit(PUSH_NULL), Unit(NUMBERED[op])]
        if op in PLAIN:
            return self._load_callable(inst)
        if op == "APPLY":
            return [Unit(*_found(APPLIED, arg[0], inst))]
        if op in ("FORMAT_VALUE", "INTRINSIC"):
            return [Unit(*_found(APPLIED, (op, arg), inst))]
        if op == "CALL":
            return self._call(inst)
        if op == "CALL_EX":
            return [*self._sink_null(inst, 2 + bool(arg)), Unit(OPCODES["CALL_FUNCTION_EX"], int(arg))]
        if inst.target is not None:
            return [self._jump(inst, inst.target)]
        if op == "STORE_CELL":
            return [Unit(STORE_FAST, self.slots[arg])]
        if op == "UNPACK_EX":
            return [Unit(OPCODES[op], arg[0] | arg[1] << 8)]
        if op == "RETURN_GENERATOR":
            return [Unit(RETURN_GENERATOR), Unit(POP_TOP), Unit(RESUME, 0)]
        if op == "YIELD_VALUE":
            return [Unit(YIELD_VALUE), Unit(RESUME, _found(_RESUMES, arg, inst))]
        raise ValueError(f"cannot encode {inst}")

    def _load_callable(self, inst: Instruction) -> list[Unit]:
        number, table = PLAIN[inst.op]
        load = Unit(number, self.adders[table](inst.arg))
        if inst.op != "LOAD_ATTR":
            return [Unit(PUSH_NULL), load]
        if self.nulls[inst.index] == METHOD:
            return [Unit(LOAD_METHOD, load.arg)]
        return [load, Unit(PUSH_NULL), Unit(SWAP, 2)]

    def _sink_null(self, inst: Instruction, n: int) -> list[Unit]:
        """Push a NULL and move it below the ``n`` entries at the top, unless the callable has one."""
        if inst.index in self.nulls:
            return []
        return [Unit(PUSH_NULL), *(Unit(SWAP, k) for k in range(n + 1, 1, -1))]

    def _call(self, inst: Instruction) -> list[Unit]:
        npos, kwnames = inst.arg
        total = npos + len(kwnames)
        units = []
        if inst.index not in self.nulls:
            if npos:
                total -= 1  # CALL n takes [callable, first argument, ...n] too: as a method with its self
            else:
                units = self._sink_null(inst, 1 + total)
        if kwnames:
            units.append(Unit(KW_NAMES, self.consts.add(kwnames)))
        return [*units, Unit(PRECALL, total), Unit(CALL, total)]

    def _jump(self, inst: Instruction, target: Instruction) -> Unit:
        op, backward = inst.op, target.index <= inst.index
        if op == "JUMP":
            if not backward:
                return Unit(JUMP_FORWARD, 0, target.index)
            # As the compiler has it: nothing may interrupt between an await's yield and its next send.
            return Unit(JUMP_BACKWARD_NO_INTERRUPT if target.op == "SEND" else JUMP_BACKWARD, 0, target.index)
        if op == "POP_JUMP_IF":
            direction = "BACKWARD" if backward else "FORWARD"
            return Unit(OPCODES[f"POP_JUMP_{direction}_IF_{inst.arg.upper()}"], 0, target.index)
        unit = Unit(OPCODES[op], 0, target.index)
        if backward:  # FOR_ITER and SEND jump forward only
            self.detours.append((unit, inst))
        return unit

    def _add_trampolines(self) -> None:
        for unit, inst in self.detours:
            back = Unit(JUMP_BACKWARD, 0, unit.goal)
            back.source = inst
            unit.goal = len(self.starts)
            self.starts.append(len(self.units))
            self.units.append(back)


def _found(table: dict, key: Any, inst: Instruction) -> Any:
    if key not in table:
        raise ValueError(f"cannot encode {inst}")
    return table[key]


def _prologue(body: list[Instruction], layout: Any) -> list[Unit]:
    units = []
    if layout.frees:
        units.append(Unit(OPCODES["COPY_FREE_VARS"], len(layout.frees)))
    units += [Unit(OPCODES["MAKE_CELL"], layout.slots[c]) for c in layout.cells if c not in layout.no_make_cell]
    if body[0].op != "RETURN_GENERATOR":
        units.append(Unit(RESUME, 0))
    return units


# -- the raw stack


def _settle_stack(units: list[Unit], starts: list[int]) -> int:
    """Count NULLs into stack-relative arguments and handlers' depths; returns the stack size."""
    reached = [-1] * len(units)
    most = 1
    work = [(0, 0, 0)]
    while work:
        index, depth, nulls = work.pop()
        covered = None
        while reached[index] < 0:
            reached[index] = depth
            unit = units[index]
            source = unit.source
            if source is not None and source.handler is not None:
                handler = source.handler
                unit.handler_depth = kept = _raw_depth(handler.depth, nulls)
                if (handler, kept) != covered:
                    covered = (handler, kept)
                    work.append((starts[handler.target.index], kept + 1 + handler.lasti, nulls & (1 << kept) - 1))
            if nulls and unit.op in RELATIVE and source is not None and unit.op == NUMBERED.get(source.op):
                unit.arg = _raw_distance(unit.arg, depth - RELATIVE[unit.op], nulls)
            if unit.goal >= 0:
                work.append((starts[unit.goal], *step(unit.op, unit.arg, depth, nulls, True)))
            if unit.op in NO_FALLTHROUGH:
                break
            depth, nulls = step(unit.op, unit.arg, depth, nulls, False)
            if depth > most:
                most = depth
            index += 1
        else:
            if reached[index] != depth:
                raise ValueError(f"stack depth {depth} and {reached[index]} at {units[index].source}")
    return most


def _raw_depth(depth: int, nulls: int) -> int:
    """How many raw entries hold the lowest ``depth`` canonical ones."""
    raw = depth
    while nulls:
        count = raw - (nulls & (1 << raw) - 1).bit_count()
        if count == depth:
            break
        raw += depth - count
    return raw


def _raw_distance(distance: int, depth: int, nulls: int) -> int:
    """How far below ``depth`` the canonical entry at ``distance`` lies."""
    raw = distance
    while True:
        count = raw - (nulls >> depth - raw).bit_count()
        if count == distance:
            return raw
        raw += distance - count


# -- placing


def _place(units: list[Unit], starts: list[int]) -> None:
    """Give jumps their arguments and prefixes, until nothing grows any more."""
    jumps = [unit for unit in units if unit.goal >= 0]
    for unit in units:
        unit.size = _width(unit)
    grown = True
    while grown:
        grown = False
        offset = 0
        for unit in units:
            unit.offset = offset
            offset += unit.size
        for unit in jumps:
            unit.arg = abs(units[starts[unit.goal]].offset - unit.offset - unit.size) // 2
            size = _width(unit)
            if size > unit.size:
                unit.size, grown = size, True


def _width(unit: Unit) -> int:
    arg = unit.arg
    if arg <= 0xFF:
        return 2 + 2 * CACHES[unit.op]
    return 4 + 2 * (arg > 0xFFFF) + 2 * (arg > 0xFFFFFF) + 2 * CACHES[unit.op]


def _write(code: bytearray, unit: Unit) -> None:
    op, arg, caches = unit.op, unit.arg, 2 * CACHES[unit.op]
    for shift in range((unit.size - 2 - caches) // 2, 0, -1):
        code += bytes((EXTENDED_ARG, arg >> 8 * shift & 0xFF))
    code.append(op)
    code.append(arg & 0xFF)
    if caches:
        code += bytes(caches)
