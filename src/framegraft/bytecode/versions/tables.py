"""CPython 3.11 and later: opcodes, what they do to the stack, and which canonical operation each is.

The raw stack is described by its depth and by ``nulls``, an int whose bit i is set where entry i is absent from the canonical
stack: a NULL of a call, the method half of a pair, a local that an inlined comprehension has put aside, an iterator that is
exhausted.
"""

from __future__ import annotations

import builtins
import dis
import opcode
import operator
from typing import Any

from .. import ops
from .running import FEATURES

OPCODES = {name: number for name, number in opcode.opmap.items() if number < 256 and not name.startswith("INSTRUMENTED_")}
_entries: Any = opcode._inline_cache_entries  # type: ignore[attr-defined]
CACHES: list[int] = _entries if isinstance(_entries, list) else [_entries.get(dis.opname[n], 0) for n in range(256)]
EXTENDED_ARG = dis.EXTENDED_ARG


def opcodes(*names: str) -> list[int]:
    """Numbers of opcodes, -1 for those that the running CPython lacks."""
    return [OPCODES.get(name, -1) for name in names]


(LOAD_GLOBAL, LOAD_ATTR, LOAD_METHOD, LOAD_SUPER_ATTR, PUSH_NULL, PRECALL, CALL, CALL_KW, CALL_FUNCTION_EX, KW_NAMES) = opcodes(
    "LOAD_GLOBAL", "LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "PUSH_NULL", "PRECALL", "CALL", "CALL_KW", "CALL_FUNCTION_EX",
    "KW_NAMES")
(SWAP, COPY, POP_TOP, RESUME, YIELD_VALUE, RETURN_GENERATOR, RETURN_VALUE, SEND, END_SEND, FOR_ITER, CLEANUP_THROW) = opcodes(
    "SWAP", "COPY", "POP_TOP", "RESUME", "YIELD_VALUE", "RETURN_GENERATOR", "RETURN_VALUE", "SEND", "END_SEND", "FOR_ITER",
    "CLEANUP_THROW")
(LOAD_CONST, LOAD_FAST, STORE_FAST, DELETE_FAST, LOAD_FAST_AND_CLEAR, MAKE_CELL, COPY_FREE_VARS, LOAD_DEREF, LOAD_LOCALS) = opcodes(
    "LOAD_CONST", "LOAD_FAST", "STORE_FAST", "DELETE_FAST", "LOAD_FAST_AND_CLEAR", "MAKE_CELL", "COPY_FREE_VARS", "LOAD_DEREF",
    "LOAD_LOCALS")
(UNPACK_EX, CALL_INTRINSIC_1, CALL_INTRINSIC_2, MAKE_FUNCTION, SET_FUNCTION_ATTRIBUTE, CONVERT_VALUE, FORMAT_SIMPLE,
 FORMAT_WITH_SPEC, LOAD_FROM_DICT_OR_DEREF, BUILD_SLICE, BINARY_SUBSCR, STORE_SUBSCR, UNARY_NOT, TO_BOOL, COMPARE_OP) = opcodes(
    "UNPACK_EX", "CALL_INTRINSIC_1", "CALL_INTRINSIC_2", "MAKE_FUNCTION", "SET_FUNCTION_ATTRIBUTE", "CONVERT_VALUE", "FORMAT_SIMPLE",
    "FORMAT_WITH_SPEC", "LOAD_FROM_DICT_OR_DEREF", "BUILD_SLICE", "BINARY_SUBSCR", "STORE_SUBSCR", "UNARY_NOT", "TO_BOOL", "COMPARE_OP")

NO_FALLTHROUGH = frozenset(OPCODES[name] for name in (
    "RETURN_VALUE", "RAISE_VARARGS", "RERAISE", "JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"))
JUMPS = {number: -1 if "BACKWARD" in name else 1 for name, number in OPCODES.items() if number in dis.hasjrel}
# Operations whose argument counts stack entries downwards -> entries that they pop before they count.
RELATIVE = {OPCODES[name]: popped for name, popped in {
    "COPY": 0, "SWAP": 0, "LIST_APPEND": 1, "SET_ADD": 1, "MAP_ADD": 2, "LIST_EXTEND": 1, "SET_UPDATE": 1,
    "DICT_UPDATE": 1, "DICT_MERGE": 1}.items()}
# Operations that stand for others: opcode -> the others, each with what its argument is of the whole's.
_WHOLE, _HIGH, _LOW, _TWO, _NONE = (lambda arg: arg), (lambda arg: arg >> 4), (lambda arg: arg & 15), (lambda arg: 2), (lambda arg: 0)
EXPANSIONS = {OPCODES[name]: parts for name, parts in {
    "LOAD_FAST_CHECK": ((LOAD_FAST, _WHOLE),),
    "RETURN_CONST": ((LOAD_CONST, _WHOLE), (RETURN_VALUE, _NONE)),
    "BINARY_SLICE": ((BUILD_SLICE, _TWO), (BINARY_SUBSCR, _NONE)),
    "STORE_SLICE": ((BUILD_SLICE, _TWO), (STORE_SUBSCR, _NONE)),
    "LOAD_FAST_LOAD_FAST": ((LOAD_FAST, _HIGH), (LOAD_FAST, _LOW)),
    "STORE_FAST_STORE_FAST": ((STORE_FAST, _HIGH), (STORE_FAST, _LOW)),
    "STORE_FAST_LOAD_FAST": ((STORE_FAST, _HIGH), (LOAD_FAST, _LOW)),
}.items() if name in OPCODES}


# -- the raw stack


def _fixed_effects() -> list[int | None]:
    """Stack effect by opcode, None where it depends on the argument or on the jump, or where an entry is absent."""
    effects: list[int | None] = [None] * 256
    for number in OPCODES.values():
        arguments = range(17) if number >= dis.HAVE_ARGUMENT else (None,)
        found = {dis.stack_effect(number, arg, jump=jump) for arg in arguments for jump in (True, False)}
        if len(found) == 1:
            effects[number] = found.pop()
    for number in (PUSH_NULL, LOAD_METHOD, SWAP, CALL, CALL_KW, RETURN_GENERATOR, LOAD_FAST_AND_CLEAR, FOR_ITER, SEND, END_SEND,
                   CLEANUP_THROW, LOAD_SUPER_ATTR, LOAD_ATTR if LOAD_METHOD < 0 else -1):
        if number >= 0:
            effects[number] = None
    if PRECALL >= 0:
        effects[PRECALL] = 0  # dis lets PRECALL pop the arguments; really CALL does
    return effects


EFFECTS = _fixed_effects()
_ABOVE = FEATURES.null_above
_PAIRED = frozenset((LOAD_METHOD if LOAD_METHOD >= 0 else LOAD_ATTR, LOAD_SUPER_ATTR))
_LEAVES_EXIT = {name: bool(there) for name, there in FEATURES.exits.items()}


def step(op: int, arg: int, depth: int, nulls: int, jump: bool) -> tuple[int, int]:
    """(depth, nulls) after an operation."""
    effect = EFFECTS[op]
    if effect is not None:
        depth += effect
        return depth, nulls & (1 << depth) - 1 if nulls else 0
    if op == LOAD_GLOBAL:
        return (depth + 2, nulls | 1 << depth + _ABOVE) if arg & 1 else (depth + 1, nulls)
    if op in _PAIRED:
        return _pair(op, arg, depth, nulls)
    if op == PUSH_NULL or op == LOAD_FAST_AND_CLEAR or op == RETURN_GENERATOR:
        return depth + 1, nulls | 1 << depth
    if op in (CALL, CALL_KW, CALL_FUNCTION_EX):
        below = depth - arg - 2 if op == CALL else depth - arg - 3 if op == CALL_KW else depth - 3 - (arg & 1)
        return below + 1, nulls & (1 << below) - 1
    if op == SWAP:
        top, other = depth - 1, depth - arg
        if (nulls >> top ^ nulls >> other) & 1:
            nulls ^= 1 << top | 1 << other
        return depth, nulls
    if op == FOR_ITER:
        if not jump:
            return depth + 1, nulls
        return (depth + 1, nulls | 3 << depth - 1) if _LEAVES_EXIT["FOR_ITER"] else (depth - 1, nulls)
    if op == SEND:
        if not jump:
            return depth, nulls
        return (depth, nulls | 1 << depth - 2) if _LEAVES_EXIT["SEND"] else (depth - 1, nulls)
    if op == CLEANUP_THROW:
        return depth - 1, nulls & (1 << depth - 3) - 1 | 1 << depth - 3
    if op == END_SEND:
        return depth - 1, nulls & (1 << depth - 2) - 1
    depth += dis.stack_effect(op, arg if op >= dis.HAVE_ARGUMENT else None, jump=jump)
    return depth, nulls & (1 << depth) - 1 if nulls else 0


def _pair(op: int, arg: int, depth: int, nulls: int) -> tuple[int, int]:
    """An attribute, or a method and what it is called on: of the pair, the canonical stack has the bound method."""
    base = depth - (3 if op == LOAD_SUPER_ATTR else 1)
    nulls &= (1 << base) - 1
    if op != LOAD_METHOD and not arg & 1:
        return base + 1, nulls
    return base + 2, nulls | 1 << base + _ABOVE


# -- canonical operations

BINARY = (operator.add, operator.and_, operator.floordiv, operator.lshift, operator.matmul, operator.mul, operator.mod,
          operator.or_, operator.pow, operator.rshift, operator.sub, operator.truediv, operator.xor, operator.iadd,
          operator.iand, operator.ifloordiv, operator.ilshift, operator.imatmul, operator.imul, operator.imod,
          operator.ior, operator.ipow, operator.irshift, operator.isub, operator.itruediv, operator.ixor)
COMPARE = (operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge)
# Where COMPARE_OP's argument tells the comparison from bit 4 on: what specialised forms read below it.
_COMPARE_MASKS = (2, 10, 8, 7, 4, 12)
TESTS = frozenset(opcodes("COMPARE_OP", "IS_OP", "CONTAINS_OP", "UNARY_NOT"))  # they leave a bool, COMPARE_OP where asked to
COMPARE_BOOL = 16  # with TO_BOOL in the language: the result is made a bool at once
UNARY = {"UNARY_POSITIVE": operator.pos, "UNARY_NEGATIVE": operator.neg, "UNARY_NOT": operator.not_,
         "UNARY_INVERT": operator.invert, "GET_ITER": builtins.iter}
FORMATS = tuple((conversion, spec) for spec in (False, True) for conversion in ("", "s", "r", "a"))
CONVERSIONS = {1: str, 2: repr, 3: ascii}
CONVERTED = {1: "s", 2: "r", 3: "a"}
INTRINSICS = {"IMPORT_STAR": "import_star", "PRINT_EXPR": "print_expr", "ASYNC_GEN_WRAP": "async_gen_wrap",
              "PREP_RERAISE_STAR": "prep_reraise_star"}
YIELDS = {2: "from", 3: "await"}  # RESUME's argument behind a YIELD_VALUE that passes on an inner one's value
RESUME_DEPTH_1 = 4  # flag of RESUME's argument: nothing but the generator's own handler covers the yield

# Which table of a code object decodes an argument.
NAME, GLOBAL, CONST, SLOT = range(4)
NUMBER = range(1 << 32)  # a table that maps every argument to itself

# Every raw operation that becomes one canonical operation: its name there, and the table that decodes the argument.
SIMPLE: dict[str, tuple[str, Any]] = {
    "LOAD_CONST": ("LOAD_CONST", CONST), "LOAD_GLOBAL": ("LOAD_GLOBAL", GLOBAL), "LOAD_METHOD": ("LOAD_ATTR", NAME),
    "LOAD_CLASSDEREF": ("LOAD_FROM_DICT_OR_DEREF", SLOT), "LOAD_FROM_DICT_OR_DEREF": ("LOAD_FROM_MAPPING_OR_DEREF", SLOT),
    "LOAD_ASSERTION_ERROR": ("LOAD_CONST", (AssertionError,)),
    "BINARY_OP": ("APPLY", tuple((fn, 2) for fn in BINARY)),
    "COMPARE_OP": ("APPLY", tuple((fn, 2) for fn in COMPARE for _ in range(1 << FEATURES.compare_shift))),
    "BINARY_SUBSCR": ("APPLY", ((operator.getitem, 2),)),
    "IS_OP": ("APPLY", ((operator.is_, 2), (operator.is_not, 2))),
    "CONTAINS_OP": ("APPLY", ((ops.contains, 2), (ops.not_contains, 2))),
    "FORMAT_VALUE": ("FORMAT_VALUE", FORMATS), "BUILD_CONST_KEY_MAP": ("BUILD_MAP_KEYS", NUMBER),
    "FORMAT_SIMPLE": ("FORMAT_VALUE", (("", False),)), "FORMAT_WITH_SPEC": ("FORMAT_VALUE", (("", True),)),
    "CONVERT_VALUE": ("APPLY", (None, (str, 1), (repr, 1), (ascii, 1))),
    "CALL_FUNCTION_EX": ("CALL_EX", (False, True)),
    "LOAD_ATTR": ("LOAD_ATTR", NAME if LOAD_METHOD >= 0 else GLOBAL),
}
SIMPLE |= {name: ("APPLY", ((fn, 1),)) for name, fn in UNARY.items()}
SIMPLE |= {name: ("INTRINSIC", (which,)) for name, which in INTRINSICS.items()}
SIMPLE |= {name: (name, SLOT) for name in (
    "LOAD_FAST", "STORE_FAST", "DELETE_FAST", "LOAD_DEREF", "STORE_DEREF", "DELETE_DEREF", "LOAD_CLOSURE")}
SIMPLE |= {name: (name, NAME) for name in (
    "STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_NAME", "STORE_NAME", "DELETE_NAME", "STORE_ATTR", "DELETE_ATTR",
    "IMPORT_NAME", "IMPORT_FROM", "LOAD_FROM_DICT_OR_GLOBALS")}
SIMPLE |= {name: (name, NUMBER) for name in (
    "COPY", "SWAP", "BUILD_TUPLE", "BUILD_LIST", "BUILD_SET", "BUILD_STRING", "BUILD_MAP", "BUILD_SLICE", "LIST_APPEND",
    "SET_ADD", "MAP_ADD", "LIST_EXTEND", "SET_UPDATE", "DICT_UPDATE", "DICT_MERGE", "UNPACK_SEQUENCE", "MAKE_FUNCTION",
    "RERAISE", "RAISE_VARARGS", "GET_AWAITABLE", "MATCH_CLASS")}
SIMPLE |= {name: (name, (None,)) for name in (
    "POP_TOP", "STORE_SUBSCR", "DELETE_SUBSCR", "LIST_TO_TUPLE", "GET_LEN", "LOAD_BUILD_CLASS", "SETUP_ANNOTATIONS",
    "BEFORE_WITH", "BEFORE_ASYNC_WITH", "WITH_EXCEPT_START", "PUSH_EXC_INFO", "POP_EXCEPT", "CHECK_EXC_MATCH",
    "CHECK_EG_MATCH", "RETURN_VALUE", "RETURN_GENERATOR", "GET_YIELD_FROM_ITER", "GET_AITER", "GET_ANEXT",
    "END_ASYNC_FOR", "MATCH_SEQUENCE", "MATCH_MAPPING", "MATCH_KEYS", "LOAD_LOCALS", "CLEANUP_THROW")}
SIMPLE = {name: entry for name, entry in SIMPLE.items() if name in OPCODES}
DROPPED = frozenset(OPCODES[name] for name in (
    "CACHE", "EXTENDED_ARG", "PRECALL", "KW_NAMES", "COPY_FREE_VARS", "RESUME", "NOP", "PUSH_NULL", "TO_BOOL", "END_FOR", "END_SEND",
    "LOAD_FAST_AND_CLEAR") if name in OPCODES)


def _intrinsics() -> dict[tuple[int, int], tuple[str, Any]]:
    """(CALL_INTRINSIC_1 or 2, its argument) -> canonical operation and argument."""
    found: dict[tuple[int, int], tuple[str, Any]] = {}
    special = {"unary_positive": ("APPLY", (operator.pos, 1)), "list_to_tuple": ("LIST_TO_TUPLE", None),
               "print": ("INTRINSIC", "print_expr")}
    for number, table in ((CALL_INTRINSIC_1, "_intrinsic_1_descs"), (CALL_INTRINSIC_2, "_intrinsic_2_descs")):
        for arg, name in enumerate(getattr(opcode, table, ())):
            short = name.removeprefix("INTRINSIC_").lower()
            found[number, arg] = special.get(short, ("INTRINSIC", short))
    return found


CALLED_INTRINSICS = _intrinsics()
# Intrinsics whose result the canonical stack does not have: POP_TOP follows.
WITHOUT_RESULT = frozenset(key for key, (_, name) in CALLED_INTRINSICS.items() if name in ("print_expr", "import_star"))


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
        if name in ("LOAD_METHOD", "LOAD_ASSERTION_ERROR", "RETURN_GENERATOR", "CLEANUP_THROW"):
            continue
        if canonical == "APPLY":
            APPLIED.update({entry[0]: (OPCODES[name], arg) for arg, entry in enumerate(table) if entry})
        elif canonical in ("FORMAT_VALUE", "INTRINSIC"):
            APPLIED.update({(canonical, entry): (OPCODES[name], arg) for arg, entry in enumerate(table)})
        elif table is NUMBER or table == (None,):
            NUMBERED[canonical] = OPCODES[name]
        elif table != GLOBAL and canonical != "CALL_EX":
            PLAIN[canonical] = (OPCODES[name], table)
    if FEATURES.compare_shift:
        APPLIED.update({fn: (COMPARE_OP, i << FEATURES.compare_shift | _COMPARE_MASKS[i]) for i, fn in enumerate(COMPARE)})
    PLAIN.setdefault("LOAD_CLOSURE", (LOAD_FAST, SLOT))
    for raw, (name, arg) in CALLED_INTRINSICS.items():
        APPLIED[arg[0] if name == "APPLY" else (name, arg)] = raw


_invert()
