"""What tells the CPythons apart whose code has exception tables, inline caches and NULLs below callables (3.11 and later)."""

from __future__ import annotations

from typing import NamedTuple


class Features(NamedTuple):
    """Facts of one CPython that its list of opcodes does not tell."""

    name: str
    null_above: bool  # the NULL of a call lies above the callable
    compare_shift: int  # COMPARE_OP's argument: which comparison, from this bit on; masks of specialised forms below it
    jump_tests_bool: bool  # conditional jumps and UNARY_NOT want a bool: TO_BOOL goes before them
    unchecked_loads: bool  # LOAD_FAST does not look whether the local is bound
    generators_wrapped: bool  # a handler around a generator's body makes StopIteration a RuntimeError
    yield_tells_depth: bool  # YIELD_VALUE's argument: how many handlers cover it (else RESUME's tells whether it is one)
    looks_before: bool  # the handler for what an inlined frame raises is looked for one code unit before what entered it
    exits: dict[str, tuple[str, ...]]  # jump -> what stands where it leads to
