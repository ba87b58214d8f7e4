"""The blocks a walk is inside of, and the code that the compiler writes to leave each (``compiler_unwind_fblock``)."""

from __future__ import annotations

import ast

from .graph import Graph

# kind: function, while, for, try, finally, with, handler (an except clause), star (an except* clause), cleanup (a finally body
# run by an exception)

NOWHERE = -2  # behind a finally body that never gets to its end


class Block:
    """A block statement around the code that is walked: the fblock of CPython's compile.c."""

    __slots__ = ("kind", "parent", "base", "handler", "cont", "brk", "exits", "name", "final", "is_async")

    def __init__(self, kind: str, parent: Block | None, base: int, handler: int) -> None:
        self.kind, self.parent = kind, parent
        self.base = base  # stack depth between the statements inside
        self.handler = handler  # innermost handler that covers the statements inside, -1 for none
        self.cont: set[int] = set()  # loops: where ``continue`` goes
        self.brk = -1  # loops: where ``break`` goes
        self.exits: list[int] = []  # where the end of the block led to
        self.name: str | None = None  # handler: the name that the exception is bound to
        self.final = -1  # finally: the first instruction of the body in the handler
        self.is_async = False

    @property
    def is_loop(self) -> bool:
        return self.kind in ("while", "for")


def peel(g: Graph, i: int, block: Block, value: bool) -> int:
    """The instruction behind the code at ``i`` that leaves ``block``, -1 where there is no such code.

    ``value``: a return value lies on top of the stack.
    """
    ops, kind = g.ops, block.kind
    if kind in ("try", "while", "function"):
        return i
    if kind == "finally":
        return behind_final(g, block.final, i)
    if value and not (kind == "cleanup" and ops[i] == "POP_TOP"):
        if ops[i] != "SWAP" or g.insts[i].arg != 2:
            return -1
        i += 1
    if kind == "for":
        return i + 1 if ops[i] == "POP_TOP" else -1
    if kind == "with":
        return _behind_exit_call(g, i, block.is_async)
    if kind == "cleanup":
        if ops[i] != "POP_TOP":
            return -1
        i += 1
        if value and ops[i] == "SWAP":
            i += 1
        return i + 1 if ops[i] == "POP_EXCEPT" else -1
    if kind in ("handler", "star"):
        if kind == "handler":
            if ops[i] != "POP_EXCEPT":
                return -1
            i += 1
        if block.name is not None:
            if ops[i] != "LOAD_CONST" or not ops[i + 1].startswith("STORE_") or not ops[i + 2].startswith("DELETE_"):
                return -1
            i += 3
        return i
    return -1


def _behind_exit_call(g: Graph, i: int, is_async: bool) -> int:
    """``__exit__(None, None, None)``."""
    ops = g.ops
    if ops[i : i + 4] != ["LOAD_CONST", "LOAD_CONST", "LOAD_CONST", "CALL"]:
        return -1
    if any(g.insts[at].arg is not None for at in range(i, i + 3)):
        return -1
    i += 4
    if is_async:
        if ops[i] != "GET_AWAITABLE":
            return -1
        i = awaited(g, i + 1)
    return i + 1 if i >= 0 and ops[i] == "POP_TOP" else -1


def awaited(g: Graph, i: int) -> int:
    """The instruction behind LOAD_CONST None, SEND, YIELD_VALUE, JUMP from ``i`` on; -1 where that is not there."""
    if g.ops[i : i + 4] != ["LOAD_CONST", "SEND", "YIELD_VALUE", "JUMP"]:
        return -1
    return g.raw_target(i + 1)


def behind_final(g: Graph, final: int, i: int) -> int:
    """The code behind the copy at ``i`` of the finally body that stands in the handler from ``final`` on.

    Both are gone through in step. Ways on which they part (a ``return`` in the body) do not count. NOWHERE where the body
    never gets to its end, -1 where there is no copy.
    """
    seen: set[tuple[int, int]] = set()
    todo = [(final, i)]
    parted = False
    bottom = g.depth[final]
    while todo:
        a, b = todo.pop()
        a, b = g.resolve(a), g.resolve(b)
        if g.ops[a] == "RERAISE" and g.depth[a] == bottom:
            return b
        if (a, b) in seen:
            continue
        seen.add((a, b))
        pairs = g.step_together(a, b)
        if pairs is None:
            parted = parted or not _left_alike(g, a, b)
            continue
        todo += reversed(pairs)
    return -1 if parted else NOWHERE


def _left_alike(g: Graph, a: int, b: int) -> bool:
    """Whether a finally body leaves its handler at ``a`` as its copy just goes on at ``b``: return, break, continue."""
    while g.ops[a] in ("SWAP", "POP_TOP", "POP_EXCEPT"):
        a = g.resolve(a + 1)
    return a == b or g.step_together(a, b) is not None


def leave(g: Graph, i: int, block: Block) -> tuple[str, int, ast.stmt | None]:
    """What the code at ``i``, which leaves ``block``, does.

    ``("statement", -1, node)`` for break and continue, ``("return", at, None)`` where the constant loaded at ``at`` is
    returned, ``("end", next, None)`` where the block just ends and ``next`` comes behind it, ``("unknown", -1, None)`` for
    code that leaves no block in a known way.
    """
    at, b, first, crossed = i, block, -1, False
    while True:
        behind = peel(g, at, b, False)
        if behind == NOWHERE:
            return "end", NOWHERE, None
        if behind < 0:
            break
        at = g.resolve(behind)
        if b.kind == "for" and breaks(g, at, b) and not crossed:
            return "statement", -1, ast.Break()
        crossed = crossed or b.is_loop
        if b is block:
            first = at
        outer = b.parent
        if outer is None:
            return ("return", at, None) if returns_constant(g, at) else ("unknown", -1, None)
        if not crossed and outer.is_loop:
            if at in outer.cont:
                return "statement", -1, ast.Continue()
            if outer.kind == "while" and breaks(g, at, outer):
                return "statement", -1, ast.Break()
        if not crossed and outer.kind == "try" and continues(at, outer):
            return "statement", -1, ast.Continue()
        if returns_constant(g, at) and _all_trivial(outer):
            return "return", at, None
        if not _leaves(g, at, outer):
            break
        b = outer
    if first < 0 or block.is_loop:
        return "unknown", -1, None
    return "end", first, None


def breaks(g: Graph, i: int, loop: Block) -> bool:
    """Whether ``i`` is what comes behind ``loop``, or a copy of it: of a short exit, or of the end of the ``finally`` body that
    the loop ends."""
    brk = loop.brk
    if i == brk or brk < 0:
        return i == brk
    if g.ops[i] == g.ops[brk] == "RERAISE":
        return g.depth[i] == g.depth[brk] and g.handler[i] == g.handler[brk]
    return g.rep[i] == g.rep[brk] and not returns_constant(g, i)


def continues(i: int, block: Block | None) -> bool:
    """Whether ``i`` is the header of the loop around the ``try`` statements of ``block``, whatever covers the header."""
    while block is not None and block.kind == "try":
        block = block.parent
    return block is not None and block.is_loop and i in block.cont


def returns_constant(g: Graph, i: int) -> bool:
    return g.ops[i] == "LOAD_CONST" and g.ops[i + 1] == "RETURN_VALUE"


def leaves_to_return(g: Graph, i: int, block: Block | None) -> bool:
    """Whether the code at ``i`` leaves ``block`` and all around it to return a constant."""
    while block is not None and not returns_constant(g, i):
        i = peel(g, i, block, False)
        if i < 0:
            return False
        i, block = g.resolve(i), block.parent
    return returns_constant(g, i)


def _all_trivial(block: Block | None) -> bool:
    """Whether a return needs no code to leave ``block`` and what is outside of it."""
    while block is not None:
        if block.kind not in ("function", "while", "try"):
            return False
        block = block.parent
    return True


def _leaves(g: Graph, i: int, block: Block) -> bool:
    """Whether the code at ``i`` may be such as leaves ``block``."""
    kind, op = block.kind, g.ops[i]
    if kind == "while":
        return True
    if kind == "handler":
        return op == "POP_EXCEPT"
    if kind in ("for", "cleanup"):
        return op == "POP_TOP" and g.depth[i] == block.base
    return block.handler >= 0 and block.handler not in g.chain(g.handler[i])
