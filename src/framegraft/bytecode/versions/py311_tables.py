"""CPython 3.11: opcodes, what they do to the stack, and which canonical operation each is.

The raw stack is described by its depth and by ``nulls``, an int whose bit i is set where entry i is a NULL. The method
half of LOAD_METHOD's pair counts as a NULL: the canonical stack has one entry where the raw one has two.
"""

from __future__ import annotations

import builtins
import dis
import opcode
import operator
from typing import Any

from .. import ops

OPCODES = opcode.opmap
CACHES: list[int] = opcode._inline_cache_entries  # type: ignore[attr-defined]
EXTENDED_ARG = dis.EXTENDED_ARG
(LOAD_GLOBAL, LOAD_METHOD, PUSH_NULL, PRECALL, CALL, CALL_FUNCTION_EX, KW_NAMES, SWAP, COPY, POP_TOP, RESUME, YIELD_VALUE,
 RETURN_GENERATOR, UNPACK_EX, STORE_FAST) = (OPCODES[name] for name in (
    "LOAD_GLOBAL", "LOAD_METHOD", "PUSH_NULL", "PRECALL", "CALL", "CALL_FUNCTION_EX", "KW_NAMES", "SWAP", "COPY", "POP_TOP",
    "RESUME", "YIELD_VALUE", "RETURN_GENERATOR", "UNPACK_EX", "STORE_FAST"))

NO_FALLTHROUGH = frozenset(OPCODES[name] for name in (
    "RETURN_VALUE", "RAISE_VARARGS", "RERAISE", "JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"))
JUMPS = {number: -1 if "BACKWARD" in name else 1 for name, number in OPCODES.items() if number in dis.hasjrel}
# Operations whose argument counts stack entries downwards -> entries that they pop before they count.
RELATIVE = {OPCODES[name]: popped for name, popped in {
    "COPY": 0, "SWAP": 0, "LIST_APPEND": 1, "SET_ADD": 1, "MAP_ADD": 2, "LIST_EXTEND": 1, "SET_UPDATE": 1,
    "DICT_UPDATE": 1, "DICT_MERGE": 1}.items()}


# -- the raw stack


def _fixed_effects() -> list[int | None]:
    """Stack effect by opcode, None where it depends on the argument or on the jump."""
    effects: list[int | None] = [None] * 256
    for number in OPCODES.values():
        arguments = range(17) if number >= dis.HAVE_ARGUMENT else (None,)
        found = {dis.stack_effect(number, arg, jump=jump) for arg in arguments for jump in (True, False)}
        if len(found) == 1:
            effects[number] = found.pop()
    for number in (PUSH_NULL, LOAD_METHOD, SWAP, CALL):
        effects[number] = None  # these move NULLs
    effects[PRECALL] = 0  # dis lets PRECALL pop the arguments; really CALL does
    effects[RETURN_GENERATOR] = 1  # the value of the first send(), which the compiler counts as there from the start
    return effects


EFFECTS = _fixed_effects()


def step(op: int, arg: int, depth: int, nulls: int, jump: bool) -> tuple[int, int]:
    """(depth, nulls) after an operation."""
    effect = EFFECTS[op]
    if effect is not None:
        return depth + effect, nulls
    if op == LOAD_GLOBAL:
        return (depth + 2, nulls | 1 << depth) if arg & 1 else (depth + 1, nulls)
    if op == LOAD_METHOD:
        return depth + 1, nulls | 1 << depth - 1
    if op == PUSH_NULL:
        return depth + 1, nulls | 1 << depth
    if op == CALL:
        below = depth - arg - 2
        return below + 1, nulls & (1 << below) - 1
    if op == CALL_FUNCTION_EX:
        below = depth - 3 - (arg & 1)
        return below + 1, nulls & (1 << below) - 1
    if op == SWAP:
        top, other = depth - 1, depth - arg
        if (nulls >> top ^ nulls >> other) & 1:
            nulls ^= 1 << top | 1 << other
        return depth, nulls
    return depth + dis.stack_effect(op, arg if op >= dis.HAVE_ARGUMENT else None, jump=jump), nulls


# -- canonical operations

BINARY = (operator.add, operator.and_, operator.floordiv, operator.lshift, operator.matmul, operator.mul, operator.mod,
          operator.or_, operator.pow, operator.rshift, operator.sub, operator.truediv, operator.xor, operator.iadd,
          operator.iand, operator.ifloordiv, operator.ilshift, operator.imatmul, operator.imul, operator.imod,
          operator.ior, operator.ipow, operator.irshift, operator.isub, operator.itruediv, operator.ixor)
COMPARE = (operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge)
UNARY = {"UNARY_POSITIVE": operator.pos, "UNARY_NEGATIVE": operator.neg, "UNARY_NOT": operator.not_,
         "UNARY_INVERT": operator.invert, "GET_ITER": builtins.iter}
FORMATS = tuple((conversion, spec) for spec in (False, True) for conversion in ("", "s", "r", "a"))
INTRINSICS = {"IMPORT_STAR": "import_star", "PRINT_EXPR": "print_expr", "ASYNC_GEN_WRAP": "async_gen_wrap",
              "PREP_RERAISE_STAR": "prep_reraise_star"}
YIELDS = {2: "from", 3: "await"}  # RESUME's argument behind a YIELD_VALUE that passes on an inner one's value

# Which table of a code object decodes an argument.
NAME, GLOBAL, CONST, SLOT = range(4)
NUMBER = range(1 << 32)  # a table that maps every argument to itself

# Every raw operation that becomes one canonical operation: its name there, and the table that decodes the argument.
SIMPLE: dict[str, tuple[str, Any]] = {
    "LOAD_CONST": ("LOAD_CONST", CONST), "LOAD_GLOBAL": ("LOAD_GLOBAL", GLOBAL), "LOAD_METHOD": ("LOAD_ATTR", NAME),
    "LOAD_CLASSDEREF": ("LOAD_FROM_DICT_OR_DEREF", SLOT),
    "LOAD_ASSERTION_ERROR": ("LOAD_CONST", (AssertionError,)),
    "BINARY_OP": ("APPLY", tuple((fn, 2) for fn in BINARY)),
    "COMPARE_OP": ("APPLY", tuple((fn, 2) for fn in COMPARE)),
    "BINARY_SUBSCR": ("APPLY", ((operator.getitem, 2),)),
    "IS_OP": ("APPLY", ((operator.is_, 2), (operator.is_not, 2))),
    "CONTAINS_OP": ("APPLY", ((ops.contains, 2), (ops.not_contains, 2))),
    "FORMAT_VALUE": ("FORMAT_VALUE", FORMATS), "BUILD_CONST_KEY_MAP": ("BUILD_MAP_KEYS", NUMBER),
    "CALL_FUNCTION_EX": ("CALL_EX", (False, True)),
}
SIMPLE |= {name: ("APPLY", ((fn, 1),)) for name, fn in UNARY.items()}
SIMPLE |= {name: ("INTRINSIC", (which,)) for name, which in INTRINSICS.items()}
SIMPLE |= {name: (name, SLOT) for name in (
    "LOAD_FAST", "STORE_FAST", "DELETE_FAST", "LOAD_DEREF", "STORE_DEREF", "DELETE_DEREF", "LOAD_CLOSURE")}
SIMPLE |= {name: (name, NAME) for name in (
    "STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_NAME", "STORE_NAME", "DELETE_NAME", "LOAD_ATTR", "STORE_ATTR", "DELETE_ATTR",
    "IMPORT_NAME", "IMPORT_FROM")}
SIMPLE |= {name: (name, NUMBER) for name in (
    "COPY", "SWAP", "BUILD_TUPLE", "BUILD_LIST", "BUILD_SET", "BUILD_STRING", "BUILD_MAP", "BUILD_SLICE", "LIST_APPEND",
    "SET_ADD", "MAP_ADD", "LIST_EXTEND", "SET_UPDATE", "DICT_UPDATE", "DICT_MERGE", "UNPACK_SEQUENCE", "MAKE_FUNCTION",
    "RERAISE", "RAISE_VARARGS", "GET_AWAITABLE", "MATCH_CLASS")}
SIMPLE |= {name: (name, (None,)) for name in (
    "POP_TOP", "STORE_SUBSCR", "DELETE_SUBSCR", "LIST_TO_TUPLE", "GET_LEN", "LOAD_BUILD_CLASS", "SETUP_ANNOTATIONS",
    "BEFORE_WITH", "BEFORE_ASYNC_WITH", "WITH_EXCEPT_START", "PUSH_EXC_INFO", "POP_EXCEPT", "CHECK_EXC_MATCH",
    "CHECK_EG_MATCH", "RETURN_VALUE", "RETURN_GENERATOR", "GET_YIELD_FROM_ITER", "GET_AITER", "GET_ANEXT",
    "END_ASYNC_FOR", "MATCH_SEQUENCE", "MATCH_MAPPING", "MATCH_KEYS")}
DROPPED = frozenset(("CACHE", "EXTENDED_ARG", "PRECALL", "KW_NAMES", "MAKE_CELL", "COPY_FREE_VARS", "RESUME", "NOP",
                     "PUSH_NULL"))


def _jump_form(name: str) -> tuple[str, str | None]:
    """The canonical jump and its condition."""
    if "_IF_" not in name:
        return ("JUMP" if name.startswith("JUMP") else name, None)
    condition = name.split("_IF_")[1].removesuffix("_OR_POP").lower()
    return ("KEEP_JUMP_IF" if name.endswith("_OR_POP") else "POP_JUMP_IF", condition)


JUMP_FORMS = {number: _jump_form(dis.opname[number]) for number in JUMPS}

# The other way round: (canonical operation, argument) of those that need no name or constant -> (opcode, argument).
APPLIED: dict[Any, tuple[int, int]] = {}
PLAIN: dict[str, tuple[int, Any]] = {}
NUMBERED: dict[str, int] = {}


def _invert() -> None:
    for name, (canonical, table) in SIMPLE.items():
        if name in ("LOAD_METHOD", "LOAD_ASSERTION_ERROR", "RETURN_GENERATOR"):
            continue
        if canonical == "APPLY":
            APPLIED.update({entry[0]: (OPCODES[name], arg) for arg, entry in enumerate(table)})
        elif canonical in ("FORMAT_VALUE", "INTRINSIC"):
            APPLIED.update({(canonical, entry): (OPCODES[name], arg) for arg, entry in enumerate(table)})
        elif table is NUMBER or table == (None,):
            NUMBERED[canonical] = OPCODES[name]
        elif canonical not in ("LOAD_GLOBAL", "CALL_EX"):
            PLAIN[canonical] = (OPCODES[name], table)


_invert()
