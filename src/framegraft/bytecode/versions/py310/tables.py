"""CPython 3.10: opcodes by name, and which canonical operation each is.

Exceptions that are being handled take three entries of 3.10's stack, and who handles them is told by blocks. Code that no
compiler made may do with such an exception what it likes, so operations on it are encoded as small sequences around four
functions of the native core, which see the exception as the one object it is (csrc/handled.c).
"""

from __future__ import annotations

import builtins
import dis
import operator
from typing import Any

from .... import _native
from ... import ops

OPCODES = dis.opmap
ABSOLUTE = frozenset(dis.opname[number] for number in dis.hasjabs)
RELATIVE = frozenset(dis.opname[number] for number in dis.hasjrel)
SETUPS = frozenset(("SETUP_FINALLY", "SETUP_WITH", "SETUP_ASYNC_WITH"))
NO_FALLTHROUGH = frozenset(("RETURN_VALUE", "RAISE_VARARGS", "RERAISE", "JUMP_FORWARD", "JUMP_ABSOLUTE"))

_OPERATORS = {"ADD": "add", "AND": "and_", "FLOOR_DIVIDE": "floordiv", "LSHIFT": "lshift", "MATRIX_MULTIPLY": "matmul",
              "MULTIPLY": "mul", "MODULO": "mod", "OR": "or_", "POWER": "pow", "RSHIFT": "rshift", "SUBTRACT": "sub",
              "TRUE_DIVIDE": "truediv", "XOR": "xor"}
COMPARE = (operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge)

# Opcode -> canonical APPLY, by the opcode's argument (0 for those without).
APPLY: dict[str, tuple[tuple[Any, int], ...]] = {
    "COMPARE_OP": tuple((fn, 2) for fn in COMPARE), "BINARY_SUBSCR": ((operator.getitem, 2),),
    "IS_OP": ((operator.is_, 2), (operator.is_not, 2)), "CONTAINS_OP": ((ops.contains, 2), (ops.not_contains, 2)),
    "UNARY_POSITIVE": ((operator.pos, 1),), "UNARY_NEGATIVE": ((operator.neg, 1),), "UNARY_NOT": ((operator.not_, 1),),
    "UNARY_INVERT": ((operator.invert, 1),), "GET_ITER": ((builtins.iter, 1),),
}
APPLY |= {f"BINARY_{name}": ((getattr(operator, fn), 2),) for name, fn in _OPERATORS.items()}
APPLY |= {f"INPLACE_{name}": ((getattr(operator, f"i{fn.rstrip('_')}"), 2),) for name, fn in _OPERATORS.items()}
APPLIED = {entry[0]: (name, arg) for name, entries in APPLY.items() for arg, entry in enumerate(entries)}

FORMATS = tuple((conversion, spec) for spec in (False, True) for conversion in ("", "s", "r", "a"))
INTRINSICS = {"IMPORT_STAR": "import_star", "PRINT_EXPR": "print_expr"}

# Opcodes that are canonical operations of the same or another name, by what their argument is.
NAMED = {name: name for name in (
    "LOAD_GLOBAL", "STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_NAME", "STORE_NAME", "DELETE_NAME", "LOAD_ATTR", "STORE_ATTR", "DELETE_ATTR",
    "IMPORT_NAME", "IMPORT_FROM")} | {"LOAD_METHOD": "LOAD_ATTR"}
LOCAL = frozenset(("LOAD_FAST", "STORE_FAST", "DELETE_FAST"))
CELL = {name: name for name in ("LOAD_DEREF", "STORE_DEREF", "DELETE_DEREF", "LOAD_CLOSURE")} | {
    "LOAD_CLASSDEREF": "LOAD_FROM_DICT_OR_DEREF"}
NUMBERED = {name: name for name in (
    "BUILD_TUPLE", "BUILD_LIST", "BUILD_SET", "BUILD_STRING", "BUILD_MAP", "BUILD_SLICE", "LIST_APPEND", "SET_ADD", "MAP_ADD",
    "LIST_EXTEND", "SET_UPDATE", "DICT_UPDATE", "DICT_MERGE", "UNPACK_SEQUENCE", "RAISE_VARARGS")} | {
    "BUILD_CONST_KEY_MAP": "BUILD_MAP_KEYS"}
BARE = frozenset((
    "POP_TOP", "STORE_SUBSCR", "DELETE_SUBSCR", "LIST_TO_TUPLE", "GET_LEN", "LOAD_BUILD_CLASS", "SETUP_ANNOTATIONS",
    "BEFORE_ASYNC_WITH", "RETURN_VALUE", "GET_YIELD_FROM_ITER", "GET_AITER", "GET_ANEXT", "END_ASYNC_FOR", "MATCH_SEQUENCE",
    "MATCH_MAPPING"))

# -- what stands for operations on an exception

HANDLE, UNHANDLE, AS_THREE, LOAD_CELL = _native.handle, _native.unhandle, _native.as_three, _native.load_cell
_THREE = [("LOAD_CONST", AS_THREE), ("ROT_TWO", 0), ("CALL_FUNCTION", 1), ("UNPACK_SEQUENCE", 3)]
_AS_HANDLED = [("LOAD_CONST", _native.as_handled), *_THREE[1:]]  # with 1, the exception is one that its handler raised
_BELOW_THREE = [("ROT_FOUR", 0), *[("POP_TOP", 0)] * 3]
SEQUENCES: dict[Any, list[tuple[str, Any]]] = {
    ("PUSH_EXC_INFO", None): [("DUP_TOP", 0), ("LOAD_CONST", HANDLE), ("ROT_TWO", 0), ("CALL_FUNCTION", 1), ("ROT_TWO", 0)],
    ("POP_EXCEPT", None): [("LOAD_CONST", UNHANDLE), ("ROT_TWO", 0), ("CALL_FUNCTION", 1), ("POP_TOP", 0)],
    # The seventh entry from the top is __exit__, as WITH_EXCEPT_START wants it.
    ("WITH_EXCEPT_START", None): [("DUP_TOP", 0), *_THREE, ("WITH_EXCEPT_START", 0), *_BELOW_THREE],
    # With GET_AWAITABLE, whose errors are worded by the operation before it.
    ("WITH_EXCEPT_START", 0): [("DUP_TOP", 0), *_THREE, ("WITH_EXCEPT_START", 0), ("GET_AWAITABLE", 0), *_BELOW_THREE],
    # How far down lasti lies is told for readers only: nothing of a frame's depends on it.
    **{("RERAISE", n): [*three, *[("NOP", 0)] * n, ("RERAISE", 0)] for n, three in ((2, _AS_HANDLED), (1, _THREE), (0, _AS_HANDLED))},
}
# An exception alone, as canonical handlers begin with it, of the six entries that they begin with here.
ENTRY: list[tuple[str, Any]] = [("POP_TOP", 0), ("ROT_TWO", 0), ("POP_TOP", 0), ("ROT_FOUR", 0), ("POP_EXCEPT", 0)]
LASTI: list[tuple[str, Any]] = [("LOAD_CONST", AS_THREE), ("ROT_TWO", 0)]  # below it, where handlers want something there
# The operands of JUMP_IF_NOT_EXC_MATCH, which takes both, of those of CHECK_EXC_MATCH.
MATCH: list[tuple[str, Any]] = [("ROT_TWO", 0), ("DUP_TOP", 0), ("ROT_THREE", 0), ("ROT_TWO", 0)]
# Behind a MATCH_CLASS on whose bool nothing depends but what lies below it: None where the pattern fails.
NO_MATCH: list[tuple[str, Any]] = [("POP_JUMP_IF_TRUE", None), ("POP_TOP", 0), ("LOAD_CONST", None)]


def rotation(n: int) -> tuple[str, int]:
    """What moves the top entry ``n`` places down."""
    return ({2: "ROT_TWO", 3: "ROT_THREE", 4: "ROT_FOUR"}.get(n, "ROT_N"), n if n > 4 else 0)


def rotated(name: str, arg: int) -> int:
    """How far down an operation moves the top entry; 0 for other operations."""
    return arg if name == "ROT_N" else {"ROT_TWO": 2, "ROT_THREE": 3, "ROT_FOUR": 4}.get(name, 0)


def copy(n: int) -> list[tuple[str, Any]]:
    """COPY n for n above 1: the entry is brought to the top, copied, and brought back."""
    return [*[rotation(n)] * (n - 1), ("DUP_TOP", 0), rotation(n + 1)]


def swap(n: int) -> list[tuple[str, Any]]:
    """SWAP n for n above 2."""
    return [rotation(n), *[rotation(n - 1)] * (n - 2)]
