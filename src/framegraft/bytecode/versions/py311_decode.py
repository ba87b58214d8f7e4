"""CPython 3.11: from raw code to canonical instructions."""

from __future__ import annotations

import bisect
import dis
from types import CodeType
from typing import Any

from ..ir import ExceptionHandler, Instruction
from .py311_tables import (
    CACHES,
    CALL,
    DROPPED,
    EXTENDED_ARG,
    JUMP_FORMS,
    JUMPS,
    KW_NAMES,
    NO_FALLTHROUGH,
    OPCODES,
    POP_TOP,
    PUSH_NULL,
    RELATIVE,
    RESUME,
    RETURN_GENERATOR,
    SIMPLE,
    STORE_FAST,
    SWAP,
    UNPACK_EX,
    YIELD_VALUE,
    YIELDS,
    step,
)

_RULES: list[Any] = [None] * 256
for _name, _rule in SIMPLE.items():
    _RULES[OPCODES[_name]] = _rule
_DROPPED = frozenset(OPCODES[name] for name in DROPPED)


class RawCode:
    """Raw instructions without caches and prefixes, as parallel lists, with the stack before each."""

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.ops: list[int] = []
        self.args: list[int] = []
        self.begins: list[int] = []  # byte offset, of the first prefix if there is one
        self.ends: list[int] = []  # byte offset of the operation itself: its position is told there
        self.goals: list[int] = []  # where it jumps to: byte offset at first, then index; -1 for none
        self._read(code.co_code)
        self.handlers = self._covers()
        self.depths = [-1] * len(self.ops)  # -1: unreachable
        self.nulls = [0] * len(self.ops)
        self._simulate()

    def _read(self, data: bytes) -> None:
        offset, begin, prefix = 0, 0, 0
        while offset < len(data):
            op, arg = data[offset], data[offset + 1] | prefix
            if op == EXTENDED_ARG:
                prefix = arg << 8
                offset += 2
                continue
            after = offset + 2 + 2 * CACHES[op]
            self.ops.append(op)
            self.args.append(arg)
            self.begins.append(begin)
            self.ends.append(offset)
            self.goals.append(after + 2 * arg * JUMPS[op] if op in JUMPS else -1)
            prefix = 0
            offset = begin = after
        index = {begin: i for i, begin in enumerate(self.begins)}
        self.goals = [index[goal] if goal >= 0 else -1 for goal in self.goals]

    def _covers(self) -> list[Any]:
        """The entry of the exception table that covers each instruction: (index of the target, depth, lasti)."""
        covers: list[Any] = [None] * len(self.ops)
        for entry in dis._parse_exception_table(self.code):  # type: ignore[attr-defined]
            low = bisect.bisect_left(self.begins, entry.start)
            high = bisect.bisect_left(self.begins, entry.end)
            target = bisect.bisect_left(self.begins, entry.target)
            covers[low:high] = [(target, entry.depth, entry.lasti)] * (high - low)
        return covers

    def _simulate(self) -> None:
        ops, args, goals, depths, handlers = self.ops, self.args, self.goals, self.depths, self.handlers
        work = [(0, 0, 0)]
        cover = None
        while work:
            index, depth, nulls = work.pop()
            while depths[index] < 0:
                depths[index], self.nulls[index] = depth, nulls
                if handlers[index] is not cover:
                    cover = handlers[index]
                    if cover is not None:
                        target, kept, lasti = cover
                        work.append((target, kept + 1 + lasti, nulls & (1 << kept) - 1))
                op, arg = ops[index], args[index]
                if goals[index] >= 0:
                    work.append((goals[index], *step(op, arg, depth, nulls, True)))
                if op in NO_FALLTHROUGH:
                    break
                depth, nulls = step(op, arg, depth, nulls, False)
                index += 1


def canonical(code: CodeType) -> list[Instruction]:
    """The whole code object's canonical instructions."""
    raw = RawCode(code)
    sinks = _sinks(raw)
    tables = (code.co_names, [name for name in code.co_names for _ in (0, 1)], code.co_consts, _slots(code))
    cells = {*code.co_cellvars, *code.co_freevars}
    positions = list(code.co_positions())
    out: list[Instruction] = []
    starts: list[int] = []  # raw index -> index of the first canonical instruction from there on
    jumps: list[tuple[Instruction, int]] = []
    kwnames: tuple = ()
    for index, op in enumerate(raw.ops):
        arg = raw.args[index]
        first = len(out)
        starts.append(first)
        rule = _RULES[op]
        if op in RELATIVE:
            if index not in sinks:
                out.append(Instruction(rule[0], _below(raw, index)))
        elif rule is not None:
            if op == POP_TOP and index and raw.ops[index - 1] == RETURN_GENERATOR:
                continue  # drops the None of the first send(): canonical generators start with an empty stack
            name, table = rule
            value = tables[table][arg] if type(table) is int else table[arg]
            if op == STORE_FAST and value in cells:
                name = "STORE_CELL"  # the compiler writes STORE_DEREF; only our own code puts a cell into a slot
            out.append(Instruction(name, value))
        elif op == KW_NAMES:
            kwnames = code.co_consts[arg]
        elif op == CALL:
            out.append(Instruction("CALL", (_positional(raw, index) - len(kwnames), kwnames)))
            kwnames = ()
        elif op in JUMPS:
            jumps.append((_jump(op, out), raw.goals[index]))
        elif op not in _DROPPED:
            out.append(_odd(raw, index))
        position = positions[raw.ends[index] // 2]
        for inst in out[first:]:
            inst.offset, inst.positions = raw.begins[index], position
    for index, inst in enumerate(out):
        inst.index = index
    for inst, goal in jumps:
        inst.target = out[starts[goal]]
    _attach_handlers(raw, out, starts)
    return out


def _slots(code: CodeType) -> list[str]:
    """Names of the frame's slots (localsplus)."""
    locals_ = code.co_varnames
    return [*locals_, *(cell for cell in code.co_cellvars if cell not in locals_), *code.co_freevars]


def _sinks(raw: RawCode) -> set[int]:
    """Swaps that move a NULL below other entries, which keep their order: PUSH_NULL, SWAP n, SWAP n - 1, ..., SWAP 2."""
    found: set[int] = set()
    for index, op in enumerate(raw.ops[:-1]):
        if op == PUSH_NULL and raw.ops[index + 1] == SWAP:
            count = raw.args[index + 1] - 1
            chain = range(index + 1, min(index + 1 + count, len(raw.ops)))
            if [(raw.ops[i], raw.args[i]) for i in chain] == [(SWAP, n) for n in range(count + 1, 1, -1)]:
                found.update(chain)
    return found


def _below(raw: RawCode, index: int) -> int:
    """The argument of a stack-relative operation without the NULLs it counts."""
    op, arg, nulls = raw.ops[index], raw.args[index], raw.nulls[index]
    if not nulls or raw.depths[index] < 0:
        return arg
    reached = raw.depths[index] - RELATIVE[op] - arg
    if op == SWAP and (nulls >> raw.depths[index] - 1 | nulls >> reached) & 1:
        raise ValueError(f"a NULL is moved in an unknown way at offset {raw.begins[index]}")
    return arg - (nulls >> reached).bit_count()


def _positional(raw: RawCode, index: int) -> int:
    """Arguments of a CALL. With no NULL below, the entry under the arguments is the callable (decorators, __exit__)."""
    arg, depth = raw.args[index], raw.depths[index]
    shifted = depth >= 0 and not raw.nulls[index] >> depth - arg - 2 & 1
    return arg + shifted


def _jump(op: int, out: list[Instruction]) -> Instruction:
    name, condition = JUMP_FORMS[op]
    if name == "KEEP_JUMP_IF":
        jump = Instruction("POP_JUMP_IF", condition)
        out += (Instruction("COPY", 1), jump, Instruction("POP_TOP"))
    else:
        jump = Instruction(name, condition)
        out.append(jump)
    return jump


def _odd(raw: RawCode, index: int) -> Instruction:
    op, arg = raw.ops[index], raw.args[index]
    if op == UNPACK_EX:
        return Instruction("UNPACK_EX", (arg & 0xFF, arg >> 8))
    if op == YIELD_VALUE:
        resume = raw.args[index + 1] if raw.ops[index + 1] == RESUME else 1
        return Instruction("YIELD_VALUE", YIELDS.get(resume))
    raise ValueError(f"unknown operation {dis.opname[op]} at offset {raw.begins[index]}")


def _attach_handlers(raw: RawCode, out: list[Instruction], starts: list[int]) -> None:
    made: dict[tuple, ExceptionHandler] = {}
    starts.append(len(out))
    for index, cover in enumerate(raw.handlers):
        if cover is None or raw.depths[index] < 0:
            continue
        target, depth, lasti = cover
        nulls = (raw.nulls[index] & (1 << depth) - 1).bit_count()
        key = (target, depth - nulls, lasti)
        handler = made.get(key)
        if handler is None:
            handler = made[key] = ExceptionHandler(out[starts[target]], depth - nulls, bool(lasti))
        for at in range(starts[index], starts[index + 1]):
            out[at].handler = handler
