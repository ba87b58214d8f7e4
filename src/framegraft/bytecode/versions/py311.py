"""CPython 3.11: raw instructions, their canonical form, the exception table, and back."""

from __future__ import annotations

import builtins
import dis
import opcode
import operator
from types import CodeType
from typing import Any, NamedTuple

from .. import ops
from ..ir import Instruction


class Raw(NamedTuple):
    op: str
    arg: int
    offset: int
    positions: Any
    kwnames: tuple


BINARY = (operator.add, operator.and_, operator.floordiv, operator.lshift, operator.matmul, operator.mul, operator.mod,
          operator.or_, operator.pow, operator.rshift, operator.sub, operator.truediv, operator.xor, operator.iadd,
          operator.iand, operator.ifloordiv, operator.ilshift, operator.imatmul, operator.imul, operator.imod,
          operator.ior, operator.ipow, operator.irshift, operator.isub, operator.itruediv, operator.ixor)
COMPARE = (operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge)
UNARY = {"UNARY_POSITIVE": operator.pos, "UNARY_NEGATIVE": operator.neg, "UNARY_NOT": operator.not_,
         "UNARY_INVERT": operator.invert, "GET_ITER": builtins.iter}
DROPPED = frozenset(("CACHE", "EXTENDED_ARG", "PRECALL", "KW_NAMES", "MAKE_CELL", "COPY_FREE_VARS", "RESUME", "NOP",
                     "PUSH_NULL"))
FAST = frozenset(("LOAD_FAST", "STORE_FAST", "DELETE_FAST"))
CELL = frozenset(("LOAD_DEREF", "STORE_DEREF", "DELETE_DEREF", "LOAD_CLOSURE"))
NAMED = frozenset(("STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_NAME", "STORE_NAME", "DELETE_NAME", "LOAD_ATTR", "STORE_ATTR",
                   "DELETE_ATTR", "IMPORT_NAME", "IMPORT_FROM"))
COUNTED = frozenset(("COPY", "SWAP", "BUILD_TUPLE", "BUILD_LIST", "BUILD_SET", "BUILD_STRING", "BUILD_MAP", "BUILD_SLICE",
                     "LIST_APPEND", "SET_ADD", "MAP_ADD", "LIST_EXTEND", "SET_UPDATE", "DICT_UPDATE", "DICT_MERGE",
                     "UNPACK_SEQUENCE", "MAKE_FUNCTION", "RERAISE", "RAISE_VARARGS", "GET_AWAITABLE", "MATCH_CLASS"))
CONVERSIONS = ("", "s", "r", "a")
INTRINSICS = {"IMPORT_STAR": "import_star", "PRINT_EXPR": "print_expr", "ASYNC_GEN_WRAP": "async_gen_wrap",
              "PREP_RERAISE_STAR": "prep_reraise_star"}
RAW_INTRINSICS = {v: k for k, v in INTRINSICS.items()}
RAW_UNARY = {v: k for k, v in UNARY.items()}
CACHES = {name: opcode._inline_cache_entries[number] for name, number in opcode.opmap.items()}
OPCODES = opcode.opmap


class Version:
    """Everything that decode and encode must know of this CPython."""

    def read(self, code: CodeType) -> list[Raw]:
        """Instructions with full arguments, without caches and prefixes; KW_NAMES are attached to their CALL."""
        raw: list[Raw] = []
        data = code.co_code
        positions = list(code.co_positions())
        prefix, kwnames, start = 0, (), None
        names = dis.opname
        for offset in range(0, len(data), 2):
            name = names[data[offset]]
            if name == "CACHE":
                continue
            arg = data[offset + 1] | prefix
            begin = offset if start is None else start
            if name == "EXTENDED_ARG":
                prefix, start = arg << 8, begin
                continue
            prefix, start = 0, None
            if name == "KW_NAMES":
                kwnames = code.co_consts[arg]
            raw.append(Raw(name, arg, begin, positions[offset // 2], kwnames if name == "CALL" else ()))
            if name == "CALL":
                kwnames = ()
        return raw

    def canonical(self, code: CodeType, raw: Raw, nulls: tuple | None) -> list[tuple[Instruction, int | None]]:
        """Canonical instructions of a raw one, each with the raw offset that it jumps to."""
        name, arg = raw.op, raw.arg
        if name in DROPPED:
            return []
        if name in FAST:
            return [(Instruction(name, code.co_varnames[arg]), None)]  # locals come first in localsplus
        if name in CELL or name == "LOAD_CLASSDEREF":
            cell = code._varname_from_oparg(arg)  # type: ignore[attr-defined]
            return [(Instruction("LOAD_FROM_DICT_OR_DEREF" if name == "LOAD_CLASSDEREF" else name, cell), None)]
        if name == "LOAD_GLOBAL":
            return [(Instruction(name, code.co_names[arg >> 1]), None)]
        if name == "LOAD_METHOD":
            return [(Instruction("LOAD_ATTR", code.co_names[arg]), None)]
        if name in NAMED:
            return [(Instruction(name, code.co_names[arg]), None)]
        if name == "LOAD_CONST":
            return [(Instruction(name, code.co_consts[arg]), None)]
        if name == "LOAD_ASSERTION_ERROR":
            return [(Instruction("LOAD_CONST", AssertionError), None)]
        if name == "CALL":
            # Without a NULL (or a method) below it, the entry under the arguments is the callable: decorators, __exit__.
            shifted = nulls is not None and not nulls[-(arg + 2)]
            return [(Instruction(name, (arg + shifted - len(raw.kwnames), raw.kwnames)), None)]
        if name == "CALL_FUNCTION_EX":
            return [(Instruction("CALL_EX", bool(arg & 1)), None)]
        if "JUMP" in name or name in ("FOR_ITER", "SEND"):
            return self._jump(name, arg, raw.offset, code)
        made = self._simple(name, arg)
        return [(made, None)]

    def _simple(self, name: str, arg: int) -> Instruction:
        if name == "BINARY_OP":
            return Instruction("APPLY", (BINARY[arg], 2))
        if name == "BINARY_SUBSCR":
            return Instruction("APPLY", (operator.getitem, 2))
        if name == "COMPARE_OP":
            return Instruction("APPLY", (COMPARE[arg], 2))
        if name == "IS_OP":
            return Instruction("APPLY", (operator.is_not if arg else operator.is_, 2))
        if name == "CONTAINS_OP":
            return Instruction("APPLY", (ops.not_contains if arg else ops.contains, 2))
        if name in UNARY:
            return Instruction("APPLY", (UNARY[name], 1))
        if name == "FORMAT_VALUE":
            return Instruction(name, (CONVERSIONS[arg & 3], bool(arg & 4)))
        if name == "BUILD_CONST_KEY_MAP":
            return Instruction("BUILD_MAP_KEYS", arg)
        if name == "UNPACK_EX":
            return Instruction(name, (arg & 0xFF, arg >> 8))
        if name in INTRINSICS:
            return Instruction("INTRINSIC", INTRINSICS[name])
        if name in COUNTED:
            return Instruction(name, arg)
        return Instruction(name, arg or None)

    def _jump(self, name: str, arg: int, offset: int, code: CodeType) -> list[tuple[Instruction, int | None]]:
        end = self._end_of(code, offset)
        target = end - 2 * arg if "BACKWARD" in name else end + 2 * arg
        if name in ("FOR_ITER", "SEND"):
            return [(Instruction(name), target)]
        if name.endswith("_OR_POP"):
            kind = "true" if "TRUE" in name else "false"
            return [(Instruction("COPY", 1), None), (Instruction("POP_JUMP_IF", kind), target), (Instruction("POP_TOP"), None)]
        if name.startswith("POP_JUMP"):
            kind = {"TRUE": "true", "FALSE": "false", "NOT_NONE": "not_none", "NONE": "none"}[name.split("_IF_")[1]]
            return [(Instruction("POP_JUMP_IF", kind), target)]
        return [(Instruction("JUMP"), target)]

    @staticmethod
    def _end_of(code: CodeType, offset: int) -> int:
        """Offset behind an instruction that starts (with its prefixes) at ``offset``."""
        data = code.co_code
        while data[offset] == dis.EXTENDED_ARG:
            offset += 2
        return offset + 2 + 2 * CACHES[dis.opname[data[offset]]]

    def exception_table(self, code: CodeType) -> list[tuple[int, int, int, int, bool]]:
        return [(e.start, e.end, e.target, e.depth, e.lasti) for e in dis._parse_exception_table(code)]  # type: ignore[attr-defined]

    def null_states(self, code: CodeType, raw: list[Raw]) -> dict[int, tuple[bool, ...]]:
        return null_states(code, raw)


NO_FALLTHROUGH = frozenset(("RETURN_VALUE", "RAISE_VARARGS", "RERAISE", "JUMP_FORWARD", "JUMP_BACKWARD",
                            "JUMP_BACKWARD_NO_INTERRUPT"))


def null_states(code: CodeType, raw: list[Raw]) -> dict[int, tuple[bool, ...]]:
    """For each reachable raw offset, which stack entries are NULL (or the method half of LOAD_METHOD's pair)."""
    version = VERSION
    by_offset = {r.offset: i for i, r in enumerate(raw)}
    table = version.exception_table(code)
    entered: set[int] = set()
    states: dict[int, tuple[bool, ...]] = {}
    work: list[tuple[int, tuple[bool, ...]]] = [(0, ())]
    while work:
        index, state = work.pop()
        while index < len(raw):
            item = raw[index]
            if item.offset in states:
                break
            states[item.offset] = state
            for start, end, target, depth, lasti in table:
                if start <= item.offset < end and target not in entered:
                    entered.add(target)
                    work.append((by_offset[target], state[:depth] + (False,) * (1 + lasti)))
            if _is_jump(item.op):
                for _inst, goal in version._jump(item.op, item.arg, item.offset, code):
                    if goal is not None:
                        work.append((by_offset[goal], _after(item, state, True)))
            if item.op in NO_FALLTHROUGH:
                break
            state = _after(item, state, False)
            index += 1
    return states


def _is_jump(name: str) -> bool:
    return "JUMP" in name or name in ("FOR_ITER", "SEND")


def _after(item: Raw, state: tuple[bool, ...], jump: bool) -> tuple[bool, ...]:
    name = item.op
    if name == "PUSH_NULL":
        return (*state, True)
    if name == "LOAD_GLOBAL":
        return (*state, True, False) if item.arg & 1 else (*state, False)
    if name == "LOAD_METHOD":
        return (*state[:-1], True, False)
    if name == "PRECALL":
        return state
    if name == "CALL":
        return (*state[: len(state) - item.arg - 2], False)
    if name == "CALL_FUNCTION_EX":
        return (*state[: len(state) - 3 - (item.arg & 1)], False)
    if name == "SWAP":
        changed = list(state)
        changed[-1], changed[-item.arg] = changed[-item.arg], changed[-1]
        return tuple(changed)
    if name == "COPY":
        return (*state, state[-item.arg])
    number = OPCODES[name]
    effect = dis.stack_effect(number, item.arg if number >= dis.HAVE_ARGUMENT else None, jump=jump)
    return state[:effect] if effect < 0 else state + (False,) * effect


VERSION = Version()
