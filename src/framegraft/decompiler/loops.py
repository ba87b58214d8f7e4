"""Loops: ``for``, ``async for`` and ``while`` with ``break``, ``continue`` and ``else``.

``compiler_while`` writes its test twice, before the body and behind it; both copies are one loop header here.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ..bytecode.flow import NO_FALLTHROUGH
from ..errors import DecompileError
from .blocks import Block, awaited, leaves_to_return
from .cleanup import is_continue, strip
from .conditions import Node, is_folded, negate
from .items import Iter, Slot, as_expr
from .stores import Impure

if TYPE_CHECKING:
    from .walker import Walker


class Loops:
    """The walker's part for loops."""

    # -- for

    def async_iterator(self: Walker, stack: list) -> None:  # type: ignore[misc]
        stack.append(Iter(as_expr(stack.pop()), True))

    def for_statement(self: Walker, i: int, block: Block, follow: Any, stack: list, out: list) -> int:  # type: ignore[misc]
        """A loop at FOR_ITER or GET_ANEXT; the instruction behind it, -1 where control does not get there."""
        g = self.g
        if len(stack) != block.base + 1:
            raise DecompileError("a loop inside of an expression")
        iterator = stack.pop()
        if not isinstance(iterator, Iter):
            iterator = Iter(as_expr(iterator), g.ops[i] == "GET_ANEXT")
        loop = Block("for", block, block.base + 1, block.handler)
        loop.cont = {i}
        if iterator.is_async:
            ended = g.handler[i]
            if ended < 0 or g.ops[ended] != "END_ASYNC_FOR":
                raise DecompileError("an async for without its end")
            first, after = awaited(g, i + 1), g.next(ended)
            if first < 0:
                raise DecompileError("an async for without its await")
        else:
            first, after = i + 1, g.target(i)
        breaks = self.dropped_at(first, i, loop.base, block)
        loop.brk = self.break_target(breaks, after)
        slot = Slot()
        body, _falls = self.region(first, loop, frozenset((i,)), [*stack, iterator, slot])
        if slot.target is None:
            raise DecompileError("a for without a target")
        orelse: list[ast.stmt] = []
        if loop.brk != after:
            orelse, _ends = self.region(after, block, frozenset((loop.brk,)), stack)
        kind = ast.AsyncFor if iterator.is_async else ast.For
        strip(body, is_continue)
        out.append(kind(slot.target, iterator.node, body or [ast.Pass()], orelse, lineno=0))
        return loop.brk

    def dropped_at(self: Walker, first: int, header: int, depth: int, block: Block) -> list[int]:  # type: ignore[misc]
        """Where control goes that drops the iterator at ``depth`` of the loop at ``header`` in ``block`` and returns no constant."""
        g = self.g
        found = []
        seen = {header}
        todo = [first]
        while todo:
            at = todo.pop()
            while at not in seen and g.depth[at] >= depth:
                seen.add(at)
                inst = g.insts[at]
                if inst.op == "POP_TOP" and g.depth[at] == depth:
                    if g.ops[at + 1] == "JUMP" or not leaves_to_return(g, at + 1, block):
                        found.append(g.next(at))
                    break
                if inst.op == "SWAP" and g.depth[at] == depth + 1 and g.ops[at + 1] == "POP_TOP":
                    break  # returns the value on top
                if inst.handler is not None and inst.handler.depth >= depth:
                    todo.append(g.handler[at])
                if inst.target is not None:
                    todo.append(inst.target.index)
                if inst.op in NO_FALLTHROUGH:
                    break
                at += 1
        return found

    def break_target(self, breaks: list[int], after: int) -> int:
        others = [to for to in breaks if to != after]
        return max(others, key=lambda to: (others.count(to), to)) if others else after

    def last_of(self: Walker, low: int, header: int, block: Block) -> int:  # type: ignore[misc]
        """The last instruction, in layout, of the loop that begins at ``low``: its jumps back and its handlers."""
        g = self.g
        last = max((j for j in g.back.get(header, ()) if j not in self.consumed), default=low)
        outer = g.chain(block.handler)
        at = low
        while at <= last:
            for handler in g.chain(g.handler[at]):
                if handler in outer:
                    break
                if handler > last:
                    last = max(last, handler if g.insts[handler].offset >= 0 else g.covered_last[handler])
            if at == last and g.ops[at] not in ("JUMP", "POP_JUMP_IF") and g.ops[at] not in ("RERAISE", "RETURN_VALUE", "RAISE_VARARGS"):
                if at != low:
                    last += 1  # the rest of a handler
            at += 1
        return last

    # -- while

    def maybe_while(self: Walker, i: int, block: Block, follow: Any, stack: list, out: list) -> int:  # type: ignore[misc]
        """A ``while`` whose header is ``i``: what is behind it, -1 where control does not get there, ``i`` for no loop."""
        g = self.g
        sources = {j for j in g.back[i] if j not in self.consumed}
        if not sources or g.ops[i] in ("FOR_ITER", "GET_ANEXT", "SEND") or self.is_loop_target(i, block):
            return i
        test = self.loop_test(i, block, stack)
        copies: set[int] = set()
        if test is not None:
            for body in (test.yes, test.no):
                copies |= self.test_copies(i, body)
        return self.while_loop(i, test, copies, block, follow, stack, out)

    def opens_loop(self: Walker, i: int, covered: int) -> bool:  # type: ignore[misc]
        """Whether a loop begins at ``i`` outside of the ``try`` statements that begin there, too: it jumps back from
        outside of them. ``covered``: the handler that covers what is around."""
        g = self.g
        if i not in g.back:
            return False
        chain = g.chain(g.handler[i])
        if g.handler[i] == covered:
            return True
        if covered >= 0 and covered not in chain:
            return False
        outermost = chain[chain.index(covered) - 1] if covered >= 0 else chain[-1]
        return any(outermost not in g.chain(g.handler[j]) for j in g.back[i])

    def loop_test(self: Walker, i: int, block: Block, stack: list) -> Node | None:  # type: ignore[misc]
        """The test that code at ``i`` begins with, None where it begins with something else."""
        inner = list(stack)
        try:
            at = self.expression(i, inner, -1, None)[1]
            return self.test_at(i, at, block, frozenset(), inner)[0]
        except (Impure, DecompileError):
            return None

    def test_copies(self: Walker, start: int, body: int) -> set[int]:  # type: ignore[misc]
        """Where the test at ``start`` stands again behind the loop body at ``body``, to jump back to it."""
        g = self.g
        found = set()
        for jump in g.back.get(body, ()):
            if g.ops[jump] != "POP_JUMP_IF" or jump in self.consumed:
                continue
            low = max(body, jump - (body - start) - 3)
            for at in range(jump, low - 1, -1):
                if g.ops[at] == g.ops[start] and g.depth[at] == g.depth[start] and g.same(start, at):
                    found.add(at)
                    break
        return found

    def while_from_test(self: Walker, start: int, test: Node, block: Block, follow: Any, stack: list, out: list) -> Any:  # type: ignore[misc]
        """A ``while`` nothing jumps to the first test of; None where the test is that of an ``if``."""
        for body in (test.yes, test.no):
            if body in self.g.back and body > start:
                copies = self.test_copies(start, body)
                if copies:
                    after = self.while_loop(start, test, copies, block, follow, stack, out)
                    return (False, -1) if after < 0 else (None, after)
        return None

    def while_loop(self: Walker, i: int, test: Node | None, copies: set[int], block: Block, follow: Any, stack: list, out: list) -> int:  # type: ignore[misc]
        g = self.g
        loop = Block("while", block, block.base, block.handler)
        loop.cont = {i, *copies}
        last = self.last_of(i, i, block)
        mine = {j for j in g.back.get(i, ()) if j not in self.consumed}
        bodies = []
        if test is not None and copies:
            for body in (test.yes, test.no):
                jumps = {j for j in g.back.get(body, ()) if g.ops[j] == "POP_JUMP_IF"}
                if jumps and body > i:
                    bodies.append(body)
                    mine |= jumps
                    last = max(last, self.last_of(i, body, block))
        exits = self.exits_of(i, last)
        leaving = None
        if test is not None:
            ins = [i < t <= last for t in (test.yes, test.no)]
            if ins == [True, False] or ins == [False, True]:
                leaving = test.no if ins[0] else test.yes
        if leaving is not None and not copies and any(e != leaving for e in exits):
            leaving = None  # more likely ``while True`` with a break first
        if leaving is not None and leaving == test.yes and is_folded(test.expr):  # type: ignore[union-attr]
            leaving = None
        if leaving is None or test is None:
            loop.brk = self.break_target(exits, -1)
            first, expr = i, ast.Constant(True)
        else:
            loop.brk = self.break_target(exits, leaving)
            first, expr = (test.yes, test.expr) if leaving == test.no else (test.no, negate(test.expr))
        self.consumed |= mine
        if leaving is None:
            body, _ = self.region(first, loop, frozenset(loop.cont), stack, True)
        elif first in loop.cont:
            body = []
        else:
            body, _ = self.region(first, loop, frozenset(loop.cont), stack)
        orelse: list[ast.stmt] = []
        if leaving is not None and loop.brk != leaving:
            orelse, _ = self.region(leaving, block, frozenset((loop.brk,)), stack)
        self.consumed -= mine
        strip(body, is_continue)
        out.append(ast.While(expr, body or [ast.Pass()], orelse))
        return loop.brk

    def exits_of(self: Walker, low: int, last: int) -> list[int]:  # type: ignore[misc]
        """Where jumps of the loop at ``low`` lead out, which ends at ``last`` in the layout."""
        g = self.g
        found = []
        for at in range(low, last + 1):
            op = g.ops[at]
            if op == "POP_JUMP_IF":
                ways = [g.target(at)]
                if at == last:
                    ways.append(g.next(at))
            elif op in ("JUMP", "FOR_ITER"):
                ways = [g.target(at)]
            else:
                continue
            if not g.dominates(low, at):
                continue  # handlers of what is before the loop stand among its own
            found += [self.behind_chain(to) for to in ways if not low <= to <= last]
        return [to for to in found if not low <= to <= last]

    def behind_chain(self: Walker, i: int) -> int:  # type: ignore[misc]
        """The instruction behind the POP_TOP at ``i`` with which a comparison chain ends that failed; ``i`` for another."""
        g = self.g
        if g.ops[i] == "POP_TOP" and i and g.ops[i - 1] in ("JUMP", "RETURN_VALUE", "RAISE_VARARGS", "RERAISE"):
            return g.next(i)
        return i
