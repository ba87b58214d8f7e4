"""Control flow over canonical instructions: stack use, depths, reachability, liveness.

Every function that takes a list needs ``index`` filled in (``decode``, ``renumber`` and ``remove_unreachable`` do that).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from .ir import Instruction

INVERTED = {"true": "false", "false": "true", "none": "not_none", "not_none": "none"}  # what POP_JUMP_IF tests
NO_FALLTHROUGH = frozenset(("RETURN_VALUE", "RAISE_VARARGS", "RERAISE", "JUMP"))

# What an operation touches at the top of the stack and what it leaves there. Entries that are only looked at count as
# touched and left, so that "touched" tells who uses a value. The entry that LIST_APPEND and its like reach far below is
# left out here, and so is the lasti of RERAISE.
_FIXED: dict[str, tuple[int, int]] = {
    "LOAD_FAST": (0, 1), "STORE_FAST": (1, 0), "DELETE_FAST": (0, 0),
    "LOAD_DEREF": (0, 1), "STORE_DEREF": (1, 0), "DELETE_DEREF": (0, 0), "LOAD_CLOSURE": (0, 1), "STORE_CELL": (1, 0),
    "LOAD_FROM_DICT_OR_DEREF": (0, 1), "LOAD_FROM_MAPPING_OR_DEREF": (1, 1), "LOAD_FROM_DICT_OR_GLOBALS": (1, 1),
    "LOAD_LOCALS": (0, 1), "MAKE_CELL": (0, 0), "LOAD_GLOBAL": (0, 1), "STORE_GLOBAL": (1, 0), "DELETE_GLOBAL": (0, 0),
    "LOAD_NAME": (0, 1), "STORE_NAME": (1, 0), "DELETE_NAME": (0, 0), "LOAD_CONST": (0, 1),
    "LOAD_ATTR": (1, 1), "STORE_ATTR": (2, 0), "DELETE_ATTR": (1, 0), "STORE_SUBSCR": (3, 0), "DELETE_SUBSCR": (2, 0),
    "LIST_TO_TUPLE": (1, 1), "GET_LEN": (1, 2), "POP_TOP": (1, 0),
    "LIST_APPEND": (1, 0), "SET_ADD": (1, 0), "MAP_ADD": (2, 0), "LIST_EXTEND": (1, 0), "SET_UPDATE": (1, 0),
    "DICT_UPDATE": (1, 0), "DICT_MERGE": (1, 0),
    "IMPORT_NAME": (2, 1), "IMPORT_FROM": (1, 2), "LOAD_BUILD_CLASS": (0, 1), "SETUP_ANNOTATIONS": (0, 0),
    "BEFORE_WITH": (1, 2), "BEFORE_ASYNC_WITH": (1, 2), "WITH_EXCEPT_START": (4, 5),
    "PUSH_EXC_INFO": (1, 2), "POP_EXCEPT": (1, 0), "CHECK_EXC_MATCH": (2, 2), "CHECK_EG_MATCH": (2, 2),
    "RERAISE": (1, 0), "RETURN_VALUE": (1, 0), "RETURN_GENERATOR": (0, 0), "YIELD_VALUE": (1, 1),
    "GET_YIELD_FROM_ITER": (1, 1), "CLEANUP_THROW": (3, 1), "GET_AWAITABLE": (1, 1), "GET_AITER": (1, 1), "GET_ANEXT": (1, 2),
    "END_ASYNC_FOR": (2, 0), "MATCH_SEQUENCE": (1, 2), "MATCH_MAPPING": (1, 2), "MATCH_KEYS": (2, 3),
    "MATCH_CLASS": (3, 1), "JUMP": (0, 0), "POP_JUMP_IF": (1, 0),
}
_INTRINSIC = {"import_star": (1, 0), "print_expr": (1, 0), "async_gen_wrap": (1, 1), "prep_reraise_star": (2, 1),
              "typevar": (1, 1), "paramspec": (1, 1), "typevartuple": (1, 1), "subscript_generic": (1, 1), "typealias": (1, 1),
              "typevar_with_bound": (2, 1), "typevar_with_constraints": (2, 1), "set_function_type_params": (2, 1),
              "set_typeparam_default": (2, 1)}


def _intrinsic(name: str) -> tuple[int, int]:
    if name not in _INTRINSIC:
        raise ValueError(f"no stack effect known for INTRINSIC {name!r}")
    return _INTRINSIC[name]


def _gather(n: Any) -> tuple[int, int]:
    return (n or 0, 1)


_BY_ARG: dict[str, Callable[[Any], tuple[int, int]]] = {
    "APPLY": lambda arg: (arg[1], 1),
    "CALL": lambda arg: (arg[0] + len(arg[1]) + 1, 1),
    "CALL_EX": lambda kwargs: (3, 1) if kwargs else (2, 1),
    "BUILD_TUPLE": _gather, "BUILD_LIST": _gather, "BUILD_SET": _gather, "BUILD_STRING": _gather, "BUILD_SLICE": _gather,
    "BUILD_MAP": lambda n: (2 * (n or 0), 1),
    "BUILD_MAP_KEYS": lambda n: (1 + (n or 0), 1),
    "UNPACK_SEQUENCE": lambda n: (1, n or 0),
    "UNPACK_EX": lambda arg: (1, arg[0] + 1 + arg[1]),
    "FORMAT_VALUE": lambda arg: (2, 1) if arg[1] else (1, 1),
    "MAKE_FUNCTION": lambda flags: (1 + (flags or 0).bit_count(), 1),
    "RAISE_VARARGS": lambda n: (n or 0, 0),
    "INTRINSIC": _intrinsic,
    "COPY": lambda n: (n, n + 1),
    "SWAP": lambda n: (n, n),
}


def stack_use(inst: Instruction, jump: bool) -> tuple[int, int]:
    """How many entries at the top an instruction touches, and how many it leaves in their place."""
    fixed = _FIXED.get(inst.op)
    if fixed is not None:
        return fixed
    by_arg = _BY_ARG.get(inst.op)
    if by_arg is not None:
        return by_arg(inst.arg)
    if inst.op == "FOR_ITER":
        return (1, 0) if jump else (1, 2)
    if inst.op == "SEND":
        return (2, 1) if jump else (2, 2)
    raise ValueError(f"no stack effect known for {inst.op}")


def stack_effect(inst: Instruction, jump: bool) -> int:
    """Change of the canonical stack's depth, on the way to the target (``jump``) or to the next instruction."""
    touched, left = stack_use(inst, jump)
    return left - touched


def stack_depths(instructions: list[Instruction]) -> list[int | None]:
    """Depth before each instruction, None for unreachable ones."""
    depths: list[int | None] = [None] * len(instructions)
    work = [(0, 0)]
    handler = None
    while work:
        index, depth = work.pop()
        while index < len(instructions) and depths[index] is None:
            inst = instructions[index]
            depths[index] = depth
            if inst.handler is not handler:
                handler = inst.handler
                if handler is not None:
                    work.append((handler.target.index, handler.depth + handler.lasti + 1))
            if inst.target is not None:
                work.append((inst.target.index, depth + stack_effect(inst, True)))
            if inst.op in NO_FALLTHROUGH:
                break
            touched, left = _FIXED.get(inst.op) or stack_use(inst, False)
            depth += left - touched
            index += 1
    return depths


def reachable(instructions: list[Instruction], starts: list[int]) -> set[int]:
    """Indices of the instructions that a way leads to from one of ``starts``, by jumps and handlers, too."""
    seen: set[int] = set()
    work = list(starts)
    while work:
        index = work.pop()
        while index < len(instructions) and index not in seen:
            seen.add(index)
            inst = instructions[index]
            if inst.handler is not None:
                work.append(inst.handler.target.index)
            if inst.target is not None:
                work.append(inst.target.index)
            if inst.op in NO_FALLTHROUGH:
                break
            index += 1
    return seen


def renumber(instructions: list[Instruction]) -> list[Instruction]:
    """Fill in ``index``; returns the list given."""
    for index, inst in enumerate(instructions):
        inst.index = index
    return instructions


def remove_unreachable(instructions: list[Instruction]) -> list[Instruction]:
    """The reachable instructions, as a new list, with ``index`` filled in anew. ValueError for targets that are not there."""
    renumber(instructions)

    def placed(target: Instruction, user: Instruction) -> int:
        index = target.index
        if not 0 <= index < len(instructions) or instructions[index] is not target:
            raise ValueError(f"dangling target {target} of {user}")
        return index

    seen = bytearray(len(instructions))
    work = [0] if instructions else []
    handler = None
    while work:
        index = work.pop()
        while index < len(instructions) and not seen[index]:
            inst = instructions[index]
            seen[index] = 1
            if inst.handler is not handler:
                handler = inst.handler
                if handler is not None:
                    work.append(placed(handler.target, inst))
            if inst.target is not None:
                work.append(placed(inst.target, inst))
            if inst.op in NO_FALLTHROUGH:
                break
            index += 1
    return renumber([inst for inst, reached in zip(instructions, seen, strict=True) if reached])


# -- locals


def unbound_loads(instructions: list[Instruction], params: Collection[str]) -> frozenset[int]:
    """Indices of the LOAD_FAST whose local may be unbound there. ``params``: the locals that are bound at the start."""
    bits: dict[str, int] = {name: 1 << i for i, name in enumerate(params)}
    for inst in instructions:
        if inst.op == "STORE_FAST":
            bits.setdefault(inst.arg, 1 << len(bits))
    everything = (1 << len(bits)) - 1
    bound: list[int] = [-1] * len(instructions)  # locals that are bound before each instruction on every way there; -1: not met
    work = [(0, (1 << len(params)) - 1)]
    while work:
        index, now = work.pop()
        while index < len(instructions):
            before = bound[index]
            after = now if before < 0 else before & now
            if after == before:
                break
            bound[index] = now = after
            inst = instructions[index]
            if inst.handler is not None:
                kept = now & ~bits.get(inst.arg, 0) if inst.op == "DELETE_FAST" else now
                work.append((inst.handler.target.index, kept))
            if inst.op == "STORE_FAST":
                now |= bits[inst.arg]
            elif inst.op == "DELETE_FAST":
                now &= everything & ~bits.get(inst.arg, 0)
            if inst.target is not None:
                work.append((inst.target.index, now))
            if inst.op in NO_FALLTHROUGH:
                break
            index += 1
    return frozenset(index for index, inst in enumerate(instructions)
                     if inst.op == "LOAD_FAST" and not bound[index] & bits.get(inst.arg, 0))


# -- liveness

_USES_LOCAL = frozenset(("LOAD_FAST", "DELETE_FAST"))
_CELL_OPS = frozenset(("LOAD_DEREF", "STORE_DEREF", "DELETE_DEREF", "LOAD_CLOSURE", "LOAD_FROM_DICT_OR_DEREF",
                       "LOAD_FROM_MAPPING_OR_DEREF"))


def live_locals(instructions: list[Instruction]) -> list[frozenset[str]]:
    """Fast locals that may be read before they are written, before each instruction."""
    bits: dict[str, int] = {}
    count = len(instructions)
    uses, kills = [0] * count, [0] * count
    for index, inst in enumerate(instructions):
        if inst.op in _USES_LOCAL:
            uses[index] = bits.setdefault(inst.arg, 1 << len(bits))
        elif inst.op == "STORE_FAST":
            kills[index] = bits.setdefault(inst.arg, 1 << len(bits))
    return _names(_live_masks(instructions, uses, kills), bits)


def stored_later(instructions: list[Instruction]) -> list[frozenset[str]]:
    """Fast locals that may be written at or behind each instruction."""
    bits: dict[str, int] = {}
    stores = [0] * len(instructions)
    for index, inst in enumerate(instructions):
        if inst.op == "STORE_FAST":
            stores[index] = bits.setdefault(inst.arg, 1 << len(bits))
    return _names(_live_masks(instructions, stores, [0] * len(instructions)), bits)


def perhaps_bound(instructions: list[Instruction], params: Collection[str]) -> list[frozenset[str]]:
    """Fast locals that are bound before each instruction on some way there. ``params``: those that are at the start."""
    bits: dict[str, int] = {name: 1 << i for i, name in enumerate(params)}
    for inst in instructions:
        if inst.op == "STORE_FAST":
            bits.setdefault(inst.arg, 1 << len(bits))
    bound: list[int] = [-1] * len(instructions)  # -1: not met
    work = [(0, (1 << len(params)) - 1)]
    while work:
        index, now = work.pop()
        while index < len(instructions):
            before = bound[index]
            now = now if before < 0 else before | now
            if now == before:
                break
            bound[index] = now
            inst = instructions[index]
            if inst.handler is not None:
                work.append((inst.handler.target.index, now))
            if inst.op == "STORE_FAST":
                now |= bits[inst.arg]
            elif inst.op == "DELETE_FAST":
                now &= ~bits.get(inst.arg, 0)
            if inst.target is not None:
                work.append((inst.target.index, now))
            if inst.op in NO_FALLTHROUGH:
                break
            index += 1
    return _names([max(mask, 0) for mask in bound], bits)


def live_cells(instructions: list[Instruction]) -> list[frozenset[str]]:
    """Cell and free variables that may still be touched, before each instruction.

    A store counts as a use, because the cell may be shared; nothing ends a cell's life.
    """
    bits: dict[str, int] = {}
    uses = [0] * len(instructions)
    for index, inst in enumerate(instructions):
        if inst.op in _CELL_OPS:
            uses[index] = bits.setdefault(inst.arg, 1 << len(bits))
    return _names(_live_masks(instructions, uses, [0] * len(instructions)), bits)


def _live_masks(instructions: list[Instruction], uses: list[int], kills: list[int]) -> list[int]:
    """Backward sweeps over bit sets until nothing changes.

    A sweep from the end sees final values everywhere but across backward edges (loops, handlers that stand before what
    they cover), so that code without loops takes one sweep.
    """
    live = [0] * (len(instructions) + 1)
    backward: list[tuple[int, int]] = []  # (target, the mask that the last sweep saw there)
    while True:
        backward.clear()
        for index in range(len(instructions) - 1, -1, -1):
            inst = instructions[index]
            mask = 0 if inst.op in NO_FALLTHROUGH else live[index + 1]
            if inst.target is not None:
                target = inst.target.index
                mask |= live[target]
                if target <= index:
                    backward.append((target, live[target]))
            mask = mask & ~kills[index] | uses[index]
            if inst.handler is not None:
                target = inst.handler.target.index
                mask |= live[target]
                if target <= index:
                    backward.append((target, live[target]))
            live[index] = mask
        if all(live[target] == seen for target, seen in backward):
            live.pop()
            return live


def _names(masks: list[int], bits: dict[str, int]) -> list[frozenset[str]]:
    cache = {mask: frozenset(name for name, bit in bits.items() if mask & bit) for mask in set(masks)}
    return [cache[mask] for mask in masks]
