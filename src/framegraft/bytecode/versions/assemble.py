"""CPython 3.11 and later: from canonical instructions to raw code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..flow import INVERTED, unbound_loads
from ..flow import NO_FALLTHROUGH as ENDS
from ..ir import ExceptionHandler, Instruction
from .callables import METHOD, callables
from .locate import exception_table, line_table
from .placing import place
from .running import FEATURES
from .tables import (
    APPLIED,
    CACHES,
    COMPARE_BOOL,
    CONST,
    EXTENDED_ARG,
    NAME,
    NO_FALLTHROUGH,
    NUMBERED,
    OPCODES,
    PLAIN,
    RELATIVE,
    RESUME_DEPTH_1,
    SLOT,
    TESTS,
    WITHOUT_RESULT,
    YIELDS,
    opcodes,
    step,
)

_RESUMES = {None: 1} | {how: arg for arg, how in YIELDS.items()}
_GENERATORS = 0x20 | 0x80 | 0x200  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR
(NOP, LOAD_GLOBAL, LOAD_ATTR, LOAD_METHOD, LOAD_FAST_CHECK, LOAD_CONST, LOAD_LOCALS, STORE_FAST, DELETE_FAST, MAKE_CELL, PUSH_NULL,
 SWAP, POP_TOP, TO_BOOL, COMPARE_OP, UNARY_NOT) = opcodes(
    "NOP", "LOAD_GLOBAL", "LOAD_ATTR", "LOAD_METHOD", "LOAD_FAST_CHECK", "LOAD_CONST", "LOAD_LOCALS", "STORE_FAST", "DELETE_FAST",
    "MAKE_CELL", "PUSH_NULL", "SWAP", "POP_TOP", "TO_BOOL", "COMPARE_OP", "UNARY_NOT")
(KW_NAMES, PRECALL, CALL, CALL_KW, RESUME, RETURN_GENERATOR, YIELD_VALUE, CLEANUP_THROW, END_SEND, SET_FUNCTION_ATTRIBUTE,
 LOAD_FROM_DICT_OR_DEREF, CONVERT_VALUE, JUMP_FORWARD, JUMP_BACKWARD, JUMP_BACKWARD_NO_INTERRUPT) = opcodes(
    "KW_NAMES", "PRECALL", "CALL", "CALL_KW", "RESUME", "RETURN_GENERATOR", "YIELD_VALUE", "CLEANUP_THROW", "END_SEND",
    "SET_FUNCTION_ATTRIBUTE", "LOAD_FROM_DICT_OR_DEREF", "CONVERT_VALUE", "JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
# What may evaluate a frame of Python code without leaving the evaluator.
_ENTERS = frozenset(OPCODES[name] for name in (
    "CALL", "CALL_KW", "CALL_FUNCTION_EX", "BINARY_SUBSCR", "LOAD_ATTR", "FOR_ITER", "SEND")) if FEATURES.looks_before else frozenset()
# Of these, where NULLs lie above callables, the result may get one.
_RESULTS = frozenset(("CALL", "CALL_EX", "APPLY", "MAKE_FUNCTION")) if FEATURES.null_above else frozenset()


class Assembled(NamedTuple):
    """Fields of the code object."""

    co_code: bytes
    co_linetable: bytes
    co_exceptiontable: bytes
    co_stacksize: int


class Unit:
    """A raw instruction on its way. ``goal``: index in ``starts`` of the unit it jumps to, or -1."""

    __slots__ = ("op", "arg", "goal", "source", "handler", "size", "offset", "handler_depth")

    def __init__(self, op: int, arg: int = 0, goal: int = -1) -> None:
        self.op = op
        self.arg = arg
        self.goal = goal
        self.source: Instruction | None = None
        self.handler: ExceptionHandler | None = None
        self.size = 0
        self.offset = 0
        self.handler_depth = 0  # of the handler, NULLs counted


def assemble(body: list[Instruction], layout: Any, consts: Any, names: Any, firstlineno: int) -> Assembled:
    """Raw code and tables for reachable, numbered instructions; ``consts`` and ``names`` are filled."""
    lowering = _Lowering(body, layout, consts, names)
    units, starts = lowering.units, lowering.starts
    if FEATURES.generators_wrapped and layout.flags & _GENERATORS and body[0].op == "RETURN_GENERATOR":
        _wrap(units, starts)
    stacksize = _settle_stack(units, starts)
    place(units, _width, lambda jump: abs(units[starts[jump.goal]].offset - jump.offset - jump.size) // 2)
    code = bytearray()
    for unit in units:
        _write(code, unit)
    return Assembled(bytes(code), line_table(units, firstlineno), exception_table(units, starts), stacksize)


# -- lowering


class _Lowering:
    """The units of each instruction; ``starts[i]`` is the first unit of instruction i (behind them, of what else is jumped to)."""

    def __init__(self, body: list[Instruction], layout: Any, consts: Any, names: Any) -> None:
        self.body = body
        self.consts = consts
        self.names = names
        self.slots = layout.slots
        self.nulls, self.paired, self.targets = callables(body, _RESULTS)
        self.unbound = unbound_loads(body, layout.params) if FEATURES.unchecked_loads else frozenset()
        self.adders: dict[int, Callable[[Any], int]] = {NAME: names.add, CONST: consts.add, SLOT: self.slots.__getitem__}
        self.units = _prologue(body, layout)
        self.starts: list[int] = [0] * len(body)
        self.exits: dict[tuple[str, int], int] = {}  # (jump, index of its target) -> goal
        self.detours: list[tuple[Instruction, int]] = []
        inline = _inline_exits(body)
        units, adders, null_at, unbound = self.units, self.adders, self.nulls, self.unbound
        for inst in body:
            first = len(units)
            index = inst.index
            if index in inline:
                self._add_exit(inline[index])
                first = len(units)
            self.starts[index] = first
            if inst is layout.entry:
                units.append(Unit(RESUME, 0))
                first += 1
            plain = PLAIN.get(inst.op)
            if plain is not None and index not in null_at and index not in unbound:
                units.append(Unit(plain[0], adders[plain[1]](inst.arg)))
            elif inst.op in NUMBERED and index not in null_at:
                units.append(Unit(NUMBERED[inst.op], inst.arg or 0))
            else:
                units += self.lower(inst)
            if units[first].op in _ENTERS and first and units[first - 1].handler is not inst.handler:
                units.insert(first, Unit(NOP))
            for unit in units[first:]:
                unit.source = inst
                unit.handler = inst.handler
        self._add_detours()

    def lower(self, inst: Instruction) -> list[Unit]:
        op, arg = inst.op, inst.arg
        if op == "LOAD_GLOBAL":
            return [Unit(LOAD_GLOBAL, self.names.add(arg) << 1 | (inst.index in self.nulls))]
        if op == "LOAD_ATTR":
            return self._load_attr(inst)
        units = self._lower(inst)
        if inst.index not in self.nulls:
            return units
        return [*units, Unit(PUSH_NULL)] if FEATURES.null_above else [Unit(PUSH_NULL), *units]

    def _load(self, inst: Instruction) -> Unit:
        op, arg = inst.op, inst.arg
        if op in NUMBERED:
            return Unit(NUMBERED[op])
        if op not in PLAIN:
            raise ValueError(f"cannot encode {inst}")
        number, table = PLAIN[op]
        return Unit(LOAD_FAST_CHECK if inst.index in self.unbound else number, self.adders[table](arg))

    def _lower(self, inst: Instruction) -> list[Unit]:
        op, arg = inst.op, inst.arg
        if op in _LOWERINGS:
            return _LOWERINGS[op](self, inst)
        if op in ("FORMAT_VALUE", "INTRINSIC", "LIST_TO_TUPLE"):
            raw = _found(APPLIED, (op, arg), inst)
            return [Unit(*raw), Unit(POP_TOP)] if raw in WITHOUT_RESULT else [Unit(*raw)]
        if op in PLAIN or op in NUMBERED:
            return [self._load(inst)]
        if op in FEATURES.exits:
            return [self._exit(inst)]
        raise ValueError(f"cannot encode {inst}")

    def _load_attr(self, inst: Instruction) -> list[Unit]:
        name = self.names.add(inst.arg)
        verdict = self.nulls.get(inst.index)
        if LOAD_METHOD >= 0:
            load = Unit(LOAD_METHOD if verdict == METHOD else LOAD_ATTR, name)
        else:
            load = Unit(LOAD_ATTR, name << 1 | (verdict == METHOD))
        if verdict is None or verdict == METHOD:
            return [load]
        return [load, Unit(PUSH_NULL)] if FEATURES.null_above else [load, Unit(PUSH_NULL), Unit(SWAP, 2)]

    def _apply(self, inst: Instruction) -> list[Unit]:
        op, arg = _found(APPLIED, inst.arg[0], inst)
        return [*(self._to_bool(inst) if op == UNARY_NOT else ()), Unit(op, arg)]

    def _to_bool(self, inst: Instruction) -> list[Unit]:
        """What makes the entry at the top a bool, where the language of the jumps wants one."""
        if not FEATURES.jump_tests_bool:
            return []
        last = self.units[-1] if self.units and inst.index not in self.targets and inst.index else None
        if last is None or last.op not in TESTS or last.source is not self.body[inst.index - 1]:
            return [Unit(TO_BOOL)]
        if last.op == COMPARE_OP:
            last.arg |= COMPARE_BOOL
        return []

    def _sink_null(self, inst: Instruction, n: int) -> list[Unit]:
        """Push a NULL and move it to the callable, the lowest of the ``n`` entries at the top, unless that has one."""
        if inst.index in self.paired:
            return []
        return [Unit(PUSH_NULL), *(Unit(SWAP, k) for k in range(n + 1 - FEATURES.null_above, 1, -1))]

    def _call(self, inst: Instruction) -> list[Unit]:
        npos, kwnames = inst.arg
        total = npos + len(kwnames)
        units = []
        if inst.index not in self.paired:
            if npos:
                total -= 1  # CALL n takes [callable, first argument, ...n] too: as a method with its self
            else:
                units = self._sink_null(inst, 1 + total)
        if kwnames and CALL_KW >= 0:
            return [*units, Unit(LOAD_CONST, self.consts.add(kwnames)), Unit(CALL_KW, total)]
        if kwnames:
            units.append(Unit(KW_NAMES, self.consts.add(kwnames)))
        if PRECALL >= 0:
            units.append(Unit(PRECALL, total))
        return [*units, Unit(CALL, total)]

    def _call_ex(self, inst: Instruction) -> list[Unit]:
        return [*self._sink_null(inst, 2 + bool(inst.arg)), Unit(OPCODES["CALL_FUNCTION_EX"], int(inst.arg))]

    def _dict_merge(self, inst: Instruction) -> list[Unit]:
        """Whose error names the callable, which it looks for below where the call's NULL is; without one it gets another entry there."""
        merge = Unit(OPCODES["DICT_MERGE"], inst.arg)
        if inst.index in self.paired:
            return [merge]
        others = inst.arg + 2
        put = [Unit(LOAD_CONST, self.consts.add(None)), *(Unit(SWAP, k) for k in range(others + 1, 1, -1))]
        return [*put, merge, *(Unit(SWAP, k) for k in range(2, others + 1)), Unit(POP_TOP)]

    def _make_function(self, inst: Instruction) -> list[Unit]:
        """Where MAKE_FUNCTION takes only the code, the rest is set afterwards, topmost first."""
        return [Unit(OPCODES["MAKE_FUNCTION"]), *(Unit(SET_FUNCTION_ATTRIBUTE, flag) for flag in (8, 4, 2, 1) if inst.arg & flag)]

    def _make_cell(self, inst: Instruction) -> list[Unit]:
        """MAKE_CELL would put what is in the slot, the last time's cell, into the new one."""
        slot = self.slots[inst.arg]
        return [Unit(LOAD_CONST, self.consts.add(None)), Unit(STORE_FAST, slot), Unit(DELETE_FAST, slot), Unit(MAKE_CELL, slot)]

    def _class_deref(self, inst: Instruction) -> list[Unit]:
        return [Unit(LOAD_LOCALS), Unit(LOAD_FROM_DICT_OR_DEREF, self.slots[inst.arg])]

    def _format_value(self, inst: Instruction) -> list[Unit]:
        """Where a conversion is an operation of its own."""
        conversion, has_spec = inst.arg
        convert = [Unit(CONVERT_VALUE, "_sra".index(conversion))] if conversion else []
        if has_spec and convert:
            convert = [Unit(SWAP, 2), *convert, Unit(SWAP, 2)]
        return [*convert, Unit(*APPLIED["FORMAT_VALUE", ("", has_spec)])]

    def _yield_value(self, inst: Instruction) -> list[Unit]:
        arg = _found(_RESUMES, inst.arg, inst)
        if FEATURES.yield_tells_depth:
            return [Unit(YIELD_VALUE, 1 if inst.handler is None else 2), Unit(RESUME, arg)]
        if not FEATURES.generators_wrapped:
            return [Unit(YIELD_VALUE), Unit(RESUME, arg)]
        return [Unit(YIELD_VALUE, arg > 1), Unit(RESUME, arg | (RESUME_DEPTH_1 if inst.handler is None else 0))]

    # -- jumps

    def _jump(self, inst: Instruction) -> list[Unit]:
        target: Any = inst.target
        if target.index > inst.index:
            return [Unit(JUMP_FORWARD, 0, target.index)]
        # As the compiler has it: nothing may interrupt between an await's yield and its next send.
        return [Unit(JUMP_BACKWARD_NO_INTERRUPT if target.op == "SEND" else JUMP_BACKWARD, 0, target.index)]

    def _jump_if(self, inst: Instruction) -> list[Unit]:
        target: Any = inst.target
        backward = target.index <= inst.index
        test = self._to_bool(inst) if inst.arg in ("true", "false") else []
        name = f"POP_JUMP_{'BACKWARD' if backward else 'FORWARD'}_IF_{inst.arg.upper()}"
        if name in OPCODES:
            return [Unit(OPCODES[name], 0, target.index)]
        if not backward:
            return [*test, Unit(OPCODES[f"POP_JUMP_IF_{inst.arg.upper()}"], 0, target.index)]
        around = Unit(OPCODES[f"POP_JUMP_IF_{INVERTED[inst.arg].upper()}"], 0, inst.index + 1)
        return [*test, around, Unit(JUMP_BACKWARD, 0, target.index)]

    def _exit(self, inst: Instruction) -> Unit:
        """A jump that leads forward to operations which take away what it leaves."""
        target: Any = inst.target
        key = inst.op, target.index
        unit = Unit(OPCODES[inst.op], 0, target.index)
        if key in self.exits and self.starts[self.exits[key]] < 0:
            unit.goal = self.exits[key]
        elif FEATURES.exits[inst.op] or target.index <= inst.index:
            unit.goal = self.exits[key] = len(self.starts)
            self.starts.append(-1)
            self.detours.append((inst, unit.goal))
        return unit

    def _add_exit(self, inst: Instruction) -> None:
        """Right before the target, where nothing falls through to it."""
        found = next((at for at, (jump, _) in enumerate(self.detours) if jump.op == inst.op and jump.target is inst.target), None)
        if found is not None:
            jump, goal = self.detours.pop(found)
            self.starts[goal] = len(self.units)
            if self.units[-1].op == END_SEND:  # CLEANUP_THROW's, which falls through
                self.starts[goal] -= 1
            else:
                self._append_exit(jump)

    def _append_exit(self, jump: Instruction, *more: Unit) -> None:
        for unit in (*(Unit(OPCODES[name]) for name in FEATURES.exits[jump.op]), *more):
            unit.source, unit.handler = jump, jump.handler
            self.units.append(unit)

    def _add_detours(self) -> None:
        for jump, goal in self.detours:
            self.starts[goal] = len(self.units)
            self._append_exit(jump, Unit(JUMP_BACKWARD, 0, jump.target.index))  # type: ignore[union-attr]


_LOWERINGS: dict[str, Callable[[_Lowering, Instruction], list[Unit]]] = {
    "APPLY": _Lowering._apply,
    "CALL": _Lowering._call,
    "CALL_EX": _Lowering._call_ex,
    "MAKE_CELL": _Lowering._make_cell,
    "YIELD_VALUE": _Lowering._yield_value,
    "JUMP": _Lowering._jump,
    "POP_JUMP_IF": _Lowering._jump_if,
    "STORE_CELL": lambda self, inst: [Unit(STORE_FAST, self.slots[inst.arg])],
    "UNPACK_EX": lambda self, inst: [Unit(OPCODES["UNPACK_EX"], inst.arg[0] | inst.arg[1] << 8)],
    "RETURN_GENERATOR": lambda self, inst: [Unit(RETURN_GENERATOR), Unit(POP_TOP), Unit(RESUME, 0)],
    "CLEANUP_THROW": lambda self, inst: [Unit(CLEANUP_THROW), Unit(END_SEND)],
}
if SET_FUNCTION_ATTRIBUTE >= 0:
    _LOWERINGS["MAKE_FUNCTION"] = _Lowering._make_function
    del NUMBERED["MAKE_FUNCTION"]
if FEATURES.null_above:
    _LOWERINGS["DICT_MERGE"] = _Lowering._dict_merge
    del NUMBERED["DICT_MERGE"]
if LOAD_FROM_DICT_OR_DEREF >= 0:
    _LOWERINGS["LOAD_FROM_DICT_OR_DEREF"] = _Lowering._class_deref
if CONVERT_VALUE >= 0:
    _LOWERINGS["FORMAT_VALUE"] = _Lowering._format_value


def _inline_exits(body: list[Instruction]) -> dict[int, Instruction]:
    """Targets whose exit may stand right before them -> the first jump there: nothing else falls through to it."""
    found: dict[int, Instruction] = {}
    for inst in body:
        if inst.op in FEATURES.exits and inst.target is not None:
            index = inst.target.index
            before = body[index - 1].op
            if index > inst.index and index not in found and (before in ENDS or before == "CLEANUP_THROW" and inst.op == "SEND"):
                found[index] = inst
    return found


def _wrap(units: list[Unit], starts: list[int]) -> None:
    """The handler around a generator's body, which makes a StopIteration that leaves it a RuntimeError."""
    entry = Instruction("INTRINSIC", "stopiteration_error")
    entry.index = len(starts)
    handler = ExceptionHandler(entry, 0, True)
    begin = next(i for i, unit in enumerate(units) if unit.op == RETURN_GENERATOR) + 2
    for unit in units[begin:]:
        if unit.handler is None:
            unit.handler = handler
    starts.append(len(units))
    for op, arg in (APPLIED["INTRINSIC", "stopiteration_error"], (OPCODES["RERAISE"], 1)):
        unit = Unit(op, arg)
        unit.source = entry
        units.append(unit)


def _found(table: dict, key: Any, inst: Instruction) -> Any:
    if key not in table:
        raise ValueError(f"cannot encode {inst}")
    return table[key]


def _prologue(body: list[Instruction], layout: Any) -> list[Unit]:
    units = []
    if layout.frees:
        units.append(Unit(OPCODES["COPY_FREE_VARS"], len(layout.frees)))
    units += [Unit(OPCODES["MAKE_CELL"], layout.slots[c]) for c in layout.cells if c not in layout.no_make_cell]
    if body[0].op != "RETURN_GENERATOR" and layout.entry is None:
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
        most = max(most, depth)  # a handler's first operation may push no more than what was pushed for it
        covered = None
        while reached[index] < 0:
            reached[index] = depth
            unit = units[index]
            source = unit.source
            if unit.handler is not None:
                handler = unit.handler
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
