"""CPython 3.14, from the documentation of its opcodes: not tested, and refused at import until it is (see ``running``).

What ``features`` has room for is here as for the other CPythons. What decoder and encoder must learn besides:
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
    "LOAD_SMALL_INT": "LOAD_CONST of the argument",
    "LOAD_COMMON_CONSTANT": "LOAD_CONST of AssertionError, NotImplementedError, tuple, all, any",
    "LOAD_SPECIAL": "two of them, with COPY and SWAP, are BEFORE_WITH or BEFORE_ASYNC_WITH: __enter__ (0), __exit__ (1), __aenter__ (2), "
                    "__aexit__ (3) of the type, and below it the object or a NULL",
    "BUILD_INTERPOLATION": "APPLY of string.templatelib.Interpolation",
    "BUILD_TEMPLATE": "APPLY of string.templatelib.Template to the parts in turn",
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
# WITH_EXCEPT_START finds a callable and its object or NULL where there was one entry: the exception is the fifth from there.
# MAKE_FUNCTION's attribute 16 is ``__annotate__`` (PEP 649). Dicts have no versions: memos need watchers (docs/decisions/008).
