"""What the decompiler asks of a code object's control flow: joins, handlers' nesting, loops' back edges, equal copies.

Layout matters as little as possible: expressions are told by post-dominators, ``if`` joins by dominators. Only loops use
that CPython 3.11 keeps a function's blocks in the order of its source.
"""

from __future__ import annotations

import functools
from types import CodeType
from typing import Any

from ..bytecode.decode import decode
from ..bytecode.flow import NO_FALLTHROUGH, remove_unreachable, stack_depths
from ..bytecode.ir import Instruction
from .backward import with_jumps_back
from .copies import EXITS, hashable, without_copies

_TAIL = 5  # canonical instructions of the longest exit block that the compiler copies (four raw ones)


def instructions_of(code: CodeType) -> list[Instruction]:
    """Reachable canonical instructions, with jumps that keep a condition threaded through those that test it again.

    The compiler does so itself (``optimize_basic_block``), but only for jumps on one line.
    """
    return thread(remove_unreachable(decode(code)))[0]


def thread(insts: list[Instruction]) -> tuple[list[Instruction], bool]:
    """``insts`` with such jumps threaded, and whether there were any."""
    found = False
    for i, inst in enumerate(insts):
        target = inst.target
        if target is None or inst.op != "POP_JUMP_IF" or target.op != "COPY" or not i:
            continue
        again = insts[target.index + 1]
        keeps = insts[i - 1].op == "COPY" and insts[i - 1].offset == inst.offset >= 0
        if keeps and again.op == "POP_JUMP_IF" and again.offset == target.offset and again.arg in ("true", "false"):
            found = True
            if again.arg == inst.arg:
                inst.target = again.target
            else:  # the value is dropped there: a jump that does not keep it
                inst.target = insts[target.index + 3]
                insts[i - 1].op = insts[i + 1].op = "JUMP"
                insts[i - 1].target, insts[i + 1].target = inst, insts[i + 2]
    return insts, found


class Graph:
    """Instructions of one code object and what is derived from them, most of it on demand.

    ``joined``: without the copies of exits that the compiler made, as far as they are no longer; 0 for with them.
    """

    def __init__(self, code: CodeType, insts: list[Instruction] | None = None, joined: int = 0) -> None:
        self.code = code
        insts = with_jumps_back(insts or remove_unreachable(decode(code)))
        self.insts, self.has_lines = thread(without_copies(insts, joined) if joined else insts)  # a condition that is on several lines
        self.n = len(self.insts)
        self.depth: list[int] = stack_depths(self.insts)  # type: ignore[assignment]
        self.ops = [inst.op for inst in self.insts]
        self.handler = [-1 if inst.handler is None else inst.handler.target.index for inst in self.insts]
        self.back: dict[int, set[int]] = {}  # loop header -> jumps back to it
        self._chains: dict[int, tuple[int, ...]] = {-1: ()}
        self._joins: dict[bool, list[int]] = {}
        self._rep: list[int] | None = None
        self._dominators()
        self._loops(joined > 0)

    # -- moving on

    def resolve(self, i: int) -> int:
        """The first instruction at or behind jumps from ``i`` on that is no plain jump."""
        hops = 0
        while self.ops[i] == "JUMP":
            i = self.insts[i].target.index  # type: ignore[union-attr]
            hops += 1
            if hops > 100:
                return i
        return i

    def next(self, i: int) -> int:
        return self.resolve(i + 1)

    def target(self, i: int) -> int:
        return self.resolve(self.insts[i].target.index)  # type: ignore[union-attr]

    def raw_target(self, i: int) -> int:
        return self.insts[i].target.index  # type: ignore[union-attr]

    def successors(self, i: int) -> tuple[int, ...]:
        """Where control goes from ``i`` without an exception, plain jumps skipped."""
        inst = self.insts[i]
        if inst.op in NO_FALLTHROUGH:
            return (self.target(i),) if inst.op == "JUMP" else ()
        if inst.target is None:
            return (self.next(i),)
        return self.target(i), self.next(i)

    def edges(self, i: int) -> list[int]:
        """Where control may go from ``i``, plain jumps and the handler included."""
        inst = self.insts[i]
        found = [] if inst.op in NO_FALLTHROUGH else [i + 1]
        if inst.target is not None:
            found.append(inst.target.index)
        if inst.handler is not None:
            found.append(self.handler[i])
        return found

    # -- handlers

    def chain(self, handler: int) -> tuple[int, ...]:
        """``handler`` and those outside of it, innermost first. Handlers are named by the index of their first instruction.

        The compiler covers PUSH_EXC_INFO and what follows with a clean-up (COPY 3, POP_EXCEPT, RERAISE), and that with the
        handler outside.
        """
        found = self._chains.get(handler)
        if found is None:
            outer = self.handler[handler]
            if self.ops[handler] == "PUSH_EXC_INFO" and outer >= 0:
                outer = self.handler[outer]
            found = self._chains[handler] = (handler, *(self.chain(outer) if outer != handler else ()))
        return found

    @functools.cached_property
    def covered_last(self) -> dict[int, int]:
        """For each handler the last instruction that it covers. (Those that the decoder adds for CPython 3.10 stand behind all.)"""
        return {handler: i for i, handler in enumerate(self.handler)}

    # -- dominators, by blocks

    def _dominators(self) -> None:
        insts, n = self.insts, self.n
        leader = bytearray(n + 1)
        leader[0] = 1
        for i, inst in enumerate(insts):
            if inst.target is not None:
                leader[inst.target.index] = leader[i + 1] = 1
            elif inst.op in NO_FALLTHROUGH:
                leader[i + 1] = 1
            if inst.handler is not None:
                leader[inst.handler.target.index] = 1
                if i and insts[i - 1].handler is not inst.handler:
                    leader[i] = 1
        self.block_of = block_of = [0] * n
        starts: list[int] = []
        for i in range(n):
            if leader[i]:
                starts.append(i)
            block_of[i] = len(starts) - 1
        self.starts = starts
        edges: list[list[int]] = []
        for b, start in enumerate(starts):
            last = (starts[b + 1] if b + 1 < len(starts) else n) - 1
            out = []
            inst = insts[last]
            if inst.op not in NO_FALLTHROUGH and last + 1 < n:
                out.append(b + 1)
            if inst.target is not None:
                out.append(block_of[inst.target.index])
            handler = self.handler[start]
            if handler >= 0:
                out.append(block_of[handler])
            edges.append(out)
        order, preds = _postorder(edges)
        self.idom = _immediate_dominators(order, preds, len(starts))
        self.preds = preds
        children: list[list[int]] = [[] for _ in starts]
        for b, parent in enumerate(self.idom):
            if b and parent >= 0:
                children[parent].append(b)
        self.children = children
        handlers = set(self.handler)
        self.merges = [len(found) > 1 and starts[b] not in handlers for b, found in enumerate(preds)]

    def dominates(self, i: int, j: int) -> bool:
        """Whether control gets to ``j`` only by way of the block of ``i``."""
        b, inner = self.block_of[i], self.block_of[j]
        while inner != b and inner > 0:
            inner = self.idom[inner]
        return inner == b

    def _loops(self, structured: bool) -> None:
        """Jumps back. ``structured``: to headers that dominate them; others lead back from handlers, which the compiler moves to
        the end. (A resume function jumps into the middle of its loops.)"""
        for i, inst in enumerate(self.insts):
            target = inst.target
            if (target is not None and target.index <= i and inst.op != "SEND" and target.op != "SEND"
                    and (not structured or self.dominates(target.index, i))):
                self.back.setdefault(target.index, set()).add(i)

    # -- joins of values, by post-dominators

    def join(self, i: int, merged: bool = False) -> int:
        """The nearest instruction that every way on from ``i`` passes, -1 for none; ways backwards count as ends.

        ``merged``: with the copies of small exit blocks that the compiler made counted as one.
        """
        found = self._joins.get(merged)
        if found is None:
            found = self._joins[merged] = self._postdominators(self.rep if merged else None)
        return found[i]

    @property
    def rep(self) -> list[int]:
        """For each instruction the last one that starts the same short exit: same operations, depth and handler."""
        if self._rep is None:
            rep = list(range(self.n))
            known: dict[Any, int] = {}
            for end in range(self.n - 1, -1, -1):
                if self.ops[end] not in EXITS:
                    continue
                key: tuple = ()
                for at in range(end, max(end - _TAIL, -1), -1):
                    inst = self.insts[at]
                    if at != end and (inst.target is not None or inst.op in NO_FALLTHROUGH):
                        break
                    key = (inst.op, hashable(inst.arg), self.depth[at], self.handler[at], key)
                    rep[at] = known.setdefault(key, at)
            self._rep = rep
        return self._rep

    def _postdominators(self, rep: list[int] | None) -> list[int]:
        n, insts = self.n, self.insts
        joins = [-1] * (n + 1)
        level = [0] * (n + 1)  # distance from the end of the function
        for i in range(n - 1, -1, -1):
            inst = insts[i]
            if rep is not None and rep[i] != i:
                joins[i] = joins[rep[i]]
                level[i] = level[rep[i]]
                continue
            if inst.op in EXITS:
                continue
            if inst.op == "SEND":
                ways = [inst.target.index]  # type: ignore[union-attr]
            else:
                ways = [] if inst.op == "JUMP" else [i + 1]
                if inst.target is not None:
                    ways.append(inst.target.index)
            meet = -2
            for way in ways:
                if way <= i or way >= n:
                    meet = -1
                    break
                if rep is not None:
                    way = rep[way]
                meet = way if meet == -2 else _meet(meet, way, joins, level)
            joins[i] = meet
            level[i] = level[meet] + 1 if meet >= 0 else 0
        return joins

    # -- copies

    def same(self, p: int, q: int, limit: int = 400) -> bool:
        """Whether the code from ``p`` and from ``q`` on does the same, every way, exceptions included."""
        seen: set[tuple[int, int]] = set()
        todo = [(p, q)]
        while todo:
            i, j = todo.pop()
            i, j = self.resolve(i), self.resolve(j)
            if i == j or (i, j) in seen:
                continue
            seen.add((i, j))
            if len(seen) > limit or self.handler[i] != self.handler[j] and self.ops[i] not in ("LOAD_CONST", "RETURN_VALUE"):
                return False
            pair = self.step_together(i, j)
            if pair is None:
                return False
            todo += pair
        return True

    def step_together(self, i: int, j: int) -> list[tuple[int, int]] | None:
        """Pairs of successors of two instructions that do the same, None where they do not."""
        a, b = self.insts[i], self.insts[j]
        if a.op != b.op:
            return None
        if a.op == "POP_JUMP_IF":
            one, two = self.successors(i), self.successors(j)
            if a.arg != b.arg:
                if (a.arg in ("true", "false")) != (b.arg in ("true", "false")):
                    return None
                two = two[::-1]
            return list(zip(one, two, strict=True))
        if a.arg is not b.arg and (type(a.arg) is not type(b.arg) or a.arg != b.arg):
            return None
        return list(zip(self.successors(i), self.successors(j), strict=True))


def _meet(a: int, b: int, joins: list[int], level: list[int]) -> int:
    while a != b and a >= 0 and b >= 0:
        if level[a] >= level[b]:
            a = joins[a]
        else:
            b = joins[b]
    return a if a == b else -1


def _postorder(edges: list[list[int]]) -> tuple[list[int], list[list[int]]]:
    """Blocks in postorder from the entry, and each block's predecessors."""
    preds: list[list[int]] = [[] for _ in edges]
    order: list[int] = []
    seen = bytearray(len(edges))
    seen[0] = 1
    stack = [(0, iter(edges[0]))]
    while stack:
        block, ways = stack[-1]
        for way in ways:
            preds[way].append(block)
            if not seen[way]:
                seen[way] = 1
                stack.append((way, iter(edges[way])))
                break
        else:
            order.append(block)
            stack.pop()
    return order, preds


def _immediate_dominators(order: list[int], preds: list[list[int]], count: int) -> list[int]:
    """Cooper, Harvey and Kennedy's algorithm; -1 for what is not reached."""
    number = [-1] * count
    for position, block in enumerate(order):
        number[block] = position
    idom = [-1] * count
    idom[0] = 0
    changed = True
    while changed:
        changed = False
        for block in reversed(order):
            if block == 0:
                continue
            best = -1
            for pred in preds[block]:
                if idom[pred] < 0:
                    continue
                if best < 0:
                    best = pred
                    continue
                a, b = pred, best
                while a != b:
                    while number[a] < number[b]:
                        a = idom[a]
                    while number[b] < number[a]:
                        b = idom[b]
                best = a
            if idom[block] != best:
                idom[block] = best
                changed = True
    return idom
