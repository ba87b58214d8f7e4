"""CPython 3.14, from the documentation of its opcodes: not tested, and refused at import until it is (see ``running``).

What ``features`` has room for is here as for the other CPythons. What decoder and encoder must learn besides stands below, checked
against the ``dis`` documentation of 3.14 and the list of opcodes in its ``Lib/_opcode_metadata.py``.
"""

from __future__ import annotations

from .features import Features

FEATURES = Features(
    name="3.14", null_above=True, compare_shift=5, jump_tests_bool=True, unchecked_loads=True, generators_wrapped=True,
    yield_tells_depth=False, looks_before=True, exits={"FOR_ITER": ("END_FOR", "POP_ITER"), "SEND": ("END_SEND",)},
)
# Opcodes that 3.13 does not have -> what they are in canonical code.
NEW = {
    "LOAD_FAST_BORROW": "LOAD_FAST; the reference is the local's, which must outlive its entry on the stack: written as LOAD_FAST",
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW": "LOAD_FAST, LOAD_FAST",
    "LOAD_SMALL_INT": "LOAD_CONST of the argument, 0 to 255",
    "LOAD_COMMON_CONSTANT": "LOAD_CONST of AssertionError, NotImplementedError, tuple, all, any",
    "LOAD_SPECIAL": "two of them, with COPY and SWAP, are BEFORE_WITH or BEFORE_ASYNC_WITH: __enter__ (0), __exit__ (1), __aenter__ (2), "
                    "__aexit__ (3) of the type; above it the object, or a NULL where it is not a method",
    "BUILD_INTERPOLATION": "APPLY of string.templatelib.Interpolation to value and expression; argument: 2, plus 1 where a format is on "
                           "top, plus 4 times the conversion (CONVERT_VALUE's numbers)",
    "BUILD_TEMPLATE": "APPLY of what makes a string.templatelib.Template of a tuple of strings and one of interpolations",
    "POP_ITER": "POP_TOP behind a loop",
    "NOT_TAKEN": "nothing; stands behind conditional jumps",
}
# Opcodes of 3.13 that are gone -> what the compiler writes.
GONE = {
    "BINARY_SUBSCR": "BINARY_OP with 26 (NB_SUBSCR)",
    "BUILD_CONST_KEY_MAP": "BUILD_MAP",
    "BEFORE_WITH": "LOAD_SPECIAL",
    "BEFORE_ASYNC_WITH": "LOAD_SPECIAL",
    "LOAD_ASSERTION_ERROR": "LOAD_COMMON_CONSTANT",
    "RETURN_CONST": "LOAD_CONST, RETURN_VALUE",
}
# Opcodes of both that are not what they were in 3.13.
CHANGED = {
    "CALL_FUNCTION_EX": "no argument (the documentation still has one): a dict of keyword arguments or a NULL is always on top",
    "END_ASYNC_FOR": "an argument, how far back the SEND of its loop is: for sys.monitoring. It is among dis.hasjrel, and does not jump",
    "LOAD_CONST": "constants may be slices",
    "SET_FUNCTION_ATTRIBUTE": "16: __annotate__ (PEP 649)",
    "WITH_EXCEPT_START": "a callable and its object or NULL are where there was one entry: the callable is the fifth from the exception",
}
# Dicts have no versions: memos need watchers (docs/decisions/008). What frames hold is tagged, and nested calls of C are limited by the
# address of the stack: `compat.h` has no case for either.
