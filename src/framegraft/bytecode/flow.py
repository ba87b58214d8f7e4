"""Control flow over canonical instructions: stack depths, reachability, liveness."""

from __future__ import annotations

from .ir import Instruction

_FIXED = {
    "LOAD_FAST": 1, "STORE_FAST": -1, "DELETE_FAST": 0, "LOAD_DEREF": 1, "STORE_DEREF": -1, "DELETE_DEREF": 0,
    "LOAD_CLOSURE": 1, "STORE_CELL": -1, "LOAD_FROM_DICT_OR_DEREF": 1, "LOAD_GLOBAL": 1, "STORE_GLOBAL": -1,
    "DELETE_GLOBAL": 0, "LOAD_NAME": 1, "STORE_NAME": -1, "DELETE_NAME": 0, "LOAD_CONST": 1, "LOAD_ATTR": 0,
    "STORE_ATTR": -2, "DELETE_ATTR": -1, "STORE_SUBSCR": -3, "DELETE_SUBSCR": -2, "LIST_TO_TUPLE": 0, "GET_LEN": 1,
    "COPY": 1, "SWAP": 0, "POP_TOP": -1, "LIST_APPEND": -1, "SET_ADD": -1, "MAP_ADD": -2, "LIST_EXTEND": -1,
    "SET_UPDATE": -1, "DICT_UPDATE": -1, "DICT_MERGE": -1, "IMPORT_NAME": -1, "IMPORT_FROM": 1, "LOAD_BUILD_CLASS": 1,
    "BEFORE_WITH": 1, "BEFORE_ASYNC_WITH": 1, "PUSH_EXC_INFO": 1, "POP_EXCEPT": -1, "CHECK_EXC_MATCH": 0,
    "CHECK_EG_MATCH": 0, "RERAISE": -1, "WITH_EXCEPT_START": 1, "RETURN_VALUE": -1, "RETURN_GENERATOR": 0,
    "YIELD_VALUE": 0, "GET_YIELD_FROM_ITER": 0, "GET_AWAITABLE": 0, "GET_AITER": 0, "GET_ANEXT": 1, "END_ASYNC_FOR": -2,
    "MATCH_SEQUENCE": 1, "MATCH_MAPPING": 1, "MATCH_KEYS": 1, "MATCH_CLASS": -2, "SETUP_ANNOTATIONS": 0, "JUMP": 0,
    "POP_JUMP_IF": -1,
}
_INTRINSIC = {"import_star": -1, "print_expr": -1, "async_gen_wrap": 0, "prep_reraise_star": -1}
NO_FALLTHROUGH = frozenset(("RETURN_VALUE", "RAISE_VARARGS", "RERAISE", "JUMP"))


def stack_effect(inst: Instruction, jump: bool) -> int:
    """Change of the canonical stack's depth."""
    op, arg = inst.op, inst.arg
    fixed = _FIXED.get(op)
    if fixed is not None:
        return fixed
    if op == "APPLY":
        return 1 - arg[1]
    if op == "CALL":
        return -arg[0] - len(arg[1])
    if op == "CALL_EX":
        return -2 if arg else -1
    if op in ("BUILD_TUPLE", "BUILD_LIST", "BUILD_SET", "BUILD_STRING", "BUILD_SLICE"):
        return 1 - arg if arg else 1
    if op == "BUILD_MAP":
        return 1 - 2 * (arg or 0)
    if op == "BUILD_MAP_KEYS":
        return -(arg or 0)
    if op == "UNPACK_SEQUENCE":
        return (arg or 0) - 1
    if op == "UNPACK_EX":
        return arg[0] + arg[1]
    if op == "FORMAT_VALUE":
        return -1 if arg[1] else 0
    if op == "FOR_ITER":
        return -1 if jump else 1
    if op == "SEND":
        return -1 if jump else 0
    if op == "MAKE_FUNCTION":
        return -bin(arg or 0).count("1")
    if op == "RAISE_VARARGS":
        return -(arg or 0)
    if op == "INTRINSIC":
        return _INTRINSIC[arg]
    raise ValueError(f"no stack effect known for {op}")


def stack_depths(instructions: list[Instruction]) -> list[int | None]:
    """Depth before each instruction, None for unreachable ones; ``index`` must be filled in."""
    depths: list[int | None] = [None] * len(instructions)
    work = [(0, 0)]
    while work:
        index, depth = work.pop()
        while index < len(instructions) and depths[index] is None:
            inst = instructions[index]
            depths[index] = depth
            if inst.handler is not None:
                work.append((inst.handler.target.index, inst.handler.depth + inst.handler.lasti + 1))
            if inst.target is not None:
                work.append((inst.target.index, depth + stack_effect(inst, True)))
            if inst.op in NO_FALLTHROUGH:
                break
            depth += stack_effect(inst, False)
            index += 1
    return depths


def remove_unreachable(instructions: list[Instruction]) -> list[Instruction]:
    """The reachable instructions, with ``index`` filled in anew."""
    renumber(instructions)
    kept = [i for i, d in zip(instructions, stack_depths(instructions), strict=True) if d is not None]
    return renumber(kept)


def renumber(instructions: list[Instruction]) -> list[Instruction]:
    for index, inst in enumerate(instructions):
        inst.index = index
    return instructions


def live_locals(instructions: list[Instruction]) -> list[frozenset[str]]:
    """Names of fast locals that may be read before they are written, before each instruction."""
    bits: dict[str, int] = {}
    for inst in instructions:
        if inst.op in ("LOAD_FAST", "STORE_FAST", "DELETE_FAST"):
            bits.setdefault(inst.arg, 1 << len(bits))
    live = [0] * (len(instructions) + 1)
    changed = True
    while changed:
        changed = False
        for inst in reversed(instructions):
            index = inst.index
            out = 0 if inst.op in NO_FALLTHROUGH else live[index + 1]
            if inst.target is not None:
                out |= live[inst.target.index]
            if inst.op in ("LOAD_FAST", "DELETE_FAST"):
                out |= bits[inst.arg]
            elif inst.op == "STORE_FAST":
                out &= ~bits[inst.arg]
            if inst.handler is not None:
                out |= live[inst.handler.target.index]
            if out != live[index]:
                live[index] = out
                changed = True
    cache: dict[int, frozenset[str]] = {}
    for mask in live:
        if mask not in cache:
            cache[mask] = frozenset(n for n, b in bits.items() if mask & b)
    return [cache[mask] for mask in live[:-1]]
