"""CPython 3.11 and later: from raw code to canonical instructions."""

from __future__ import annotations

import dis
from types import CodeType
from typing import Any

from ..flow import INVERTED, NO_FALLTHROUGH, renumber
from ..ir import ExceptionHandler, Instruction
from .rawcode import Aside, RawCode, asides
from .running import FEATURES
from .tables import (
    CALL,
    CALL_INTRINSIC_1,
    CALL_INTRINSIC_2,
    CALL_KW,
    CALLED_INTRINSICS,
    CONVERT_VALUE,
    CONVERTED,
    COPY_FREE_VARS,
    DELETE_FAST,
    DROPPED,
    FORMAT_SIMPLE,
    JUMP_FORMS,
    JUMPS,
    KW_NAMES,
    LOAD_CONST,
    LOAD_DEREF,
    LOAD_FAST,
    LOAD_FROM_DICT_OR_DEREF,
    LOAD_LOCALS,
    LOAD_SUPER_ATTR,
    MAKE_CELL,
    MAKE_FUNCTION,
    OPCODES,
    POP_TOP,
    PUSH_NULL,
    RELATIVE,
    RESUME,
    SET_FUNCTION_ATTRIBUTE,
    SIMPLE,
    SLOT,
    STORE_FAST,
    SWAP,
    TESTS,
    TO_BOOL,
    UNPACK_EX,
    WITHOUT_RESULT,
    YIELD_VALUE,
    YIELDS,
)

_RULES: list[Any] = [None] * 256
for _name, _rule in SIMPLE.items():
    _RULES[OPCODES[_name]] = _rule
_CONDITIONAL = {*RELATIVE, POP_TOP, MAKE_FUNCTION, FORMAT_SIMPLE}  # what surrounds them matters
_PLAIN = [rule and op not in _CONDITIONAL and rule[1] != SLOT for op, rule in enumerate(_RULES)]


def canonical(code: CodeType) -> list[Instruction]:
    """The whole code object's canonical instructions."""
    return _Decoder(code).run()


class _Decoder:
    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.raw = RawCode(code)
        self.slots = _slots(code)
        self.asides = asides(self.raw, self.slots)
        self.absorbed = _absorbed(self.raw)
        self.cells = {*code.co_cellvars, *code.co_freevars}
        self.tables = (code.co_names, [name for name in code.co_names for _ in (0, 1)], code.co_consts, self.slots)
        self.out: list[Instruction] = []
        self.kwnames: tuple = ()

    def run(self) -> list[Instruction]:
        raw, out = self.raw, self.out
        places = list(self.code.co_positions())
        starts: list[int] = []  # raw index -> index of the first canonical instruction from there on
        jumps: list[tuple[Instruction, int]] = []
        for index, op in enumerate(raw.ops):
            first = len(out)
            starts.append(first)
            if op in JUMPS:
                jumps.append((_jump(op, out), raw.goals[index]))
            elif index not in self.absorbed and not raw.wrapper <= index <= raw.wrapper + 1:
                self.translate(index, op, raw.args[index])
            for at in range(first, len(out)):
                inst = out[at]
                inst.index, inst.offset, inst.positions = at, raw.begins[index], places[raw.ends[index] // 2]
        for inst, goal in jumps:
            inst.target = out[starts[goal]]
        _attach_handlers(raw, out, starts)
        return _in_order(raw, out, starts)

    def translate(self, index: int, op: int, arg: int) -> None:
        rule, out, raw = _RULES[op], self.out, self.raw
        if _PLAIN[op]:
            name, table = rule
            out.append(Instruction(name, self.tables[table][arg] if type(table) is int else table[arg]))
        elif op in RELATIVE:
            below = _below(raw, index)
            if below is not None:
                out.append(Instruction(rule[0], below))
        elif op == POP_TOP and raw.nulls[index] >> max(raw.depths[index] - 1, 0) & 1:
            pass  # what it drops is not there: the None of the first send(), an exhausted iterator
        elif rule is not None and rule[1] == SLOT:
            self.local(index, op, arg, rule[0])
        elif op == MAKE_FUNCTION:
            out.append(Instruction("MAKE_FUNCTION", arg if SET_FUNCTION_ATTRIBUTE < 0 else _attributes(raw, index)))
        elif op == FORMAT_SIMPLE and index and raw.ops[index - 1] == CONVERT_VALUE:
            out.append(Instruction("FORMAT_VALUE", (CONVERTED[raw.args[index - 1]], False)))
        elif rule is not None:
            out.append(Instruction(rule[0], rule[1][arg]))
        elif op not in DROPPED or op == KW_NAMES:
            self.odd(index, op, arg)

    def local(self, index: int, op: int, arg: int, name: str) -> None:
        """Operations on the frame's slots."""
        if not self.asides and self.slots[arg] not in self.cells:
            self.out.append(Instruction(name, self.slots[arg]))
            return
        aside = self.aside(index, arg)
        if aside is not None and op == STORE_FAST and aside is self.asides[index].get(self.raw.depths[index] - 1):
            self.restore(aside)
            return
        value = self.slots[arg] if aside is None else aside.name
        is_cell = value in self.cells if aside is None else aside.is_cell
        if is_cell and op == STORE_FAST:
            name = "STORE_CELL"  # the compiler writes STORE_DEREF; only our own code puts a cell into a slot
        elif is_cell and op == LOAD_FAST:
            name = "LOAD_CLOSURE"
        elif op == LOAD_FROM_DICT_OR_DEREF and self.raw.ops[index - 1] == LOAD_LOCALS:
            name = "LOAD_FROM_DICT_OR_DEREF"
        self.out.append(Instruction(name, value))

    def aside(self, index: int, slot: int) -> Aside | None:
        """The innermost inlined comprehension that has the slot for itself."""
        held = self.asides[index] if self.asides else {}
        return held[max(at for at in held if held[at].slot == slot)] if any(a.slot == slot for a in held.values()) else None

    def restore(self, aside: Aside) -> None:
        """The end of an inlined comprehension: nothing was put aside, but its variable is gone."""
        if aside.is_cell:
            self.out.append(Instruction("MAKE_CELL", aside.name))
        else:
            self.out += (Instruction("LOAD_CONST", None), Instruction("STORE_FAST", aside.name), Instruction("DELETE_FAST", aside.name))

    def odd(self, index: int, op: int, arg: int) -> None:
        raw, out = self.raw, self.out
        if op == KW_NAMES:
            self.kwnames = self.code.co_consts[arg]
        elif op == CALL:
            out.append(Instruction("CALL", (_positional(raw, index, 2) - len(self.kwnames), self.kwnames)))
            self.kwnames = ()
        elif op == CALL_KW:
            names = self.code.co_consts[raw.args[index - 1]]
            out.append(Instruction("CALL", (_positional(raw, index, 3) - len(names), names)))
        elif op == LOAD_SUPER_ATTR:
            out.append(Instruction("CALL", (0 if index - 1 in self.absorbed else 2, ())))
            out.append(Instruction("LOAD_ATTR", self.code.co_names[arg >> 2]))
        elif op in (CALL_INTRINSIC_1, CALL_INTRINSIC_2):
            out.append(Instruction(*CALLED_INTRINSICS[op, arg]))
        elif op == MAKE_CELL:
            aside = self.aside(index, arg)
            if aside is not None:
                out.append(Instruction("MAKE_CELL", aside.name))
            elif raw.ops[index - 1] == DELETE_FAST:
                out.append(Instruction("MAKE_CELL", self.slots[arg]))
        elif op == UNPACK_EX:
            out.append(Instruction("UNPACK_EX", (arg & 0xFF, arg >> 8)))
        elif op == YIELD_VALUE:
            resume = raw.args[index + 1] & 3 if raw.ops[index + 1] == RESUME else 1
            out.append(Instruction("YIELD_VALUE", YIELDS.get(resume)))
        else:
            raise ValueError(f"unknown operation {dis.opname[op]} at offset {raw.begins[index]}")


def _slots(code: CodeType) -> list[str]:
    """Names of the frame's slots (localsplus)."""
    locals_ = code.co_varnames
    return [*locals_, *(cell for cell in code.co_cellvars if cell not in locals_), *code.co_freevars]


# -- operations that belong to another


def _absorbed(raw: RawCode) -> set[int]:
    """Operations that become part of another's canonical instruction, and those that only move NULLs about."""
    found: set[int] = set()
    ops, args = raw.ops, raw.args
    for index, op in enumerate(ops):
        if op == PUSH_NULL:
            found.update(_sink(raw, index))
        elif op == CALL_KW:
            found.add(index - 1)  # LOAD_CONST of the names
        elif op == SET_FUNCTION_ATTRIBUTE or op == POP_TOP and index and (ops[index - 1], args[index - 1]) in WITHOUT_RESULT:
            found.add(index)
        elif op == LOAD_SUPER_ATTR and not args[index] & 2 and ops[index - 1] in (LOAD_FAST, LOAD_DEREF) and ops[index - 2] == LOAD_DEREF:
            found.update((index - 1, index - 2))  # __class__ and the first argument: super() finds them itself
        elif op == FORMAT_SIMPLE and index and ops[index - 1] == CONVERT_VALUE:
            found.add(index - 1)
        elif op == LOAD_FROM_DICT_OR_DEREF and ops[index - 1] == LOAD_LOCALS:
            found.add(index - 1)
        elif op == MAKE_CELL and [ops[i] for i in range(max(index - 3, 0), index)] == [LOAD_CONST, STORE_FAST, DELETE_FAST]:
            found.update(range(index - 3, index))  # how MAKE_CELL is encoded
    return found


def _sink(raw: RawCode, index: int) -> range:
    """Swaps that move a NULL below other entries, which keep their order: PUSH_NULL, SWAP n, SWAP n - 1, ..., SWAP 2."""
    if index + 1 < len(raw.ops) and raw.ops[index + 1] == SWAP:
        count = raw.args[index + 1] - 1
        chain = range(index + 1, min(index + 1 + count, len(raw.ops)))
        if [(raw.ops[i], raw.args[i]) for i in chain] == [(SWAP, n) for n in range(count + 1, 1, -1)]:
            return chain
    return range(0)


def _attributes(raw: RawCode, index: int) -> int:
    flags = 0
    while raw.ops[index + 1] == SET_FUNCTION_ATTRIBUTE:
        index += 1
        flags |= raw.args[index]
    return flags


def _in_order(raw: RawCode, out: list[Instruction], starts: list[int]) -> list[Instruction]:
    """What our encoder has put in front of RESUME stands where it is jumped to."""
    first = next(i for i, op in enumerate(raw.ops) if op not in (COPY_FREE_VARS, MAKE_CELL))
    goal = raw.goals[first]
    if goal <= first + 1 or raw.ops[goal] != RESUME:
        return out
    begin, end = starts[first] + 1, starts[goal]
    rest = out[end:]
    ahead: dict[int, list[Instruction]] = {}  # id of the first instruction of each piece -> the piece
    while begin < end:
        last = next(i for i in range(begin, end) if out[i].op in NO_FALLTHROUGH)
        ahead[id(out[begin])] = out[begin : last + 1]
        begin = last + 1
    for jump, back, after in reversed(list(zip(rest, rest[1:], rest[2:], strict=False))):  # a branch backwards, as some versions have it
        if jump.op == "POP_JUMP_IF" and back.op == "JUMP" and id(back.target) in ahead and jump.target is after:
            jump.arg, jump.target = INVERTED[jump.arg], back.target
            rest.remove(back)
    found: list[Instruction] = []
    for inst in reversed(rest):
        piece = ahead.pop(id(inst.target), None) if inst.op == "JUMP" else None
        if piece is None:
            found.append(inst)
            continue
        for other in out:
            if other.target is inst:
                other.target = piece[0]
        if piece[-1].op == "JUMP" and found and piece[-1].target is found[-1]:
            piece.pop()
        found += reversed(piece)
    return renumber(found[::-1])


# -- the stack


def _below(raw: RawCode, index: int) -> int | None:
    """The argument of a stack-relative operation without the absent entries it counts; None where it moves nothing else."""
    op, arg, nulls = raw.ops[index], raw.args[index], raw.nulls[index]
    if not nulls or raw.depths[index] < 0:
        return arg
    depth = raw.depths[index]
    reached = depth - RELATIVE[op] - arg
    below = arg - (nulls >> reached).bit_count()
    if op != SWAP or not (nulls >> depth - 1 | nulls >> reached) & 1:
        return below
    if below > 1 and (nulls >> depth - 1 ^ nulls >> reached) & 1:
        raise ValueError(f"a NULL is moved in an unknown way at offset {raw.begins[index]}")
    return None


def _positional(raw: RawCode, index: int, others: int) -> int:
    """Arguments of a call. With no NULL, the entry beside the callable is one of them (decorators, __exit__).

    others: entries that the call takes beside its arguments.
    """
    arg, depth = raw.args[index], raw.depths[index]
    shifted = depth >= 0 and not raw.nulls[index] >> depth - arg - others + FEATURES.null_above & 1
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
        # A jump is covered as what makes its bool, and raises where there is none: 3.13 may leave the jump itself uncovered.
        tested = FEATURES.jump_tests_bool and raw.ops[index] in (TO_BOOL, *TESTS) and raw.ops[index + 1] in JUMPS
        for at in range(starts[index], starts[index + 1 + tested]):
            out[at].handler = handler
