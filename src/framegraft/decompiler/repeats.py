"""Loops of code that is run symbolically: the rest of a round was written already when control gets to the header."""

from __future__ import annotations

import ast
import collections
from typing import Any

from ..bytecode.flow import stack_use
from .blocks import returns_constant
from .cleanup import is_continue, strip
from .conditions import negate
from .graph import Graph
from .operations import Operations
from .values import STORE, Branchy, OpenLoop, State, Where, local_name

_MUTATE = {"LIST_APPEND": 1, "SET_ADD": 1, "MAP_ADD": 2, "LIST_EXTEND": 1, "SET_UPDATE": 1, "DICT_UPDATE": 1, "DICT_MERGE": 1, "COPY": 0}


def natural_loop(g: Graph, header: int) -> set[int]:
    """The header and what gets to a jump back to it without passing it, handlers included."""
    ways = [g.edges(i) for i in range(g.n)]
    reached, todo = {header}, [header]
    while todo:
        for to in ways[todo.pop()]:
            if to not in reached:
                reached.add(to)
                todo.append(to)
    before: dict[int, list[int]] = {}
    for i in reached:
        for to in ways[i]:
            before.setdefault(to, []).append(i)
    body = {header}
    todo = [j for j in g.back.get(header, ()) if j in reached]
    while todo:
        i = todo.pop()
        if i not in body:
            body.add(i)
            todo += before.get(i, ())
    return body


class Repeats(Operations):
    """The part of the emitter for loops."""

    def leaves(self, i: int, state: State, where: Where, out: list) -> bool:
        """Whether control leaves the statements at ``i``: for the next round of a loop, for what is behind it, for a piece."""
        if not self.is_structured:
            if i not in self.meets:
                return False
            self.flush(state, out)
            out += [*self.piece(i, state), ast.Continue()]  # type: ignore[attr-defined]
            return True
        loop = where.loop
        while loop is not None:
            if i in (loop.header, loop.behind):
                if loop is not where.loop:
                    raise Branchy
                self.between_rounds(state, loop, self.g.depth[i], out)
                loop.is_left = loop.is_left or i == loop.behind
                out.append(ast.Continue() if i == loop.header else ast.Break())
                return True
            loop = loop.outer
        return False

    def between_rounds(self, state: State, loop: OpenLoop, depth: int, out: list) -> None:
        """Brings everything to where it is at the loop's header."""
        self.flush(state, out)
        self.settle(state, out, list(state.aliases))
        for item, known in zip(state.stack, loop.stack[:depth], strict=True):
            if item is not known and (local_name(item) is None or local_name(item) != local_name(known)):
                raise Branchy

    def is_header(self, i: int, op: str, where: Where) -> bool:
        """Whether a loop statement begins at ``i``."""
        if op == "FOR_ITER":
            return where.covered == self.g.handler[i] and i in self.g.back  # of one that runs once, the iterator may be used again
        if i not in self.g.back or not self.opens_loop(i, where.covered):
            return False
        body = natural_loop(self.g, i)
        loop = where.loop
        while loop is not None:
            if loop.header in body:
                return False  # its test, written a second time
            loop = loop.outer
        return not any(self.tests_again(i, body, inner) for inner in self.g.back if inner in body and inner != i)

    def tests_again(self, header: int, body: set[int], inner: int) -> bool:
        """Whether the loop at ``inner`` is the very one at ``header`` behind its first test, which ``continue`` jumps to:
        the compiler writes the test of ``while`` twice."""
        g = self.g
        part = natural_loop(g, inner)
        ways = {to for i in part for to in g.successors(i) if to not in part}
        return header in ways and self.way_out(header, body, False) in ways

    def repeat(self, header: int, state: State, where: Where, out: list) -> tuple[int, State] | None:
        """The loop at ``header``; where control goes on behind it (None for nowhere)."""
        g = self.g
        body = natural_loop(g, header)
        is_for = g.ops[header] == "FOR_ITER"
        depth = g.depth[header]
        if any(g.depth[i] - _changed(g.insts[i]) < depth for i in body if i != header or not is_for):
            raise Branchy  # what lies on the stack changes from round to round
        self.flush(state, out)
        self.settle(state, out, list(state.aliases))
        for name in {g.insts[i].arg for i in body | self.targets(header) if g.ops[i] in ("STORE_FAST", "DELETE_FAST")}:
            self.release(state, name, out)
        loop = OpenLoop(header, self.way_out(header, body, is_for), list(state.stack), where.loop)
        if is_for:
            return self.for_loop(header, loop, state, where, out)
        inner, end = self.run(header, state.copy(), where.within(loop), True)
        if end is not None:
            raise Branchy
        out.append(_while(inner))
        return (loop.behind, self.behind(loop, state)) if loop.is_left else None

    def for_loop(self, header: int, loop: OpenLoop, state: State, where: Where, out: list) -> tuple[int, State] | None:
        g = self.g
        targets = sorted(self.targets(header))
        inner = state.copy()
        inner.stack[-1] = loop.stack[-1] = ast.Constant(None)  # the iterator, which the loop itself holds
        if targets:
            names: list[ast.expr] = [ast.Name(self.name(g.insts[i].arg), STORE) for i in targets if g.ops[i] == "STORE_FAST"]
            target = names[0] if g.ops[targets[0]] == "STORE_FAST" else ast.Tuple(names, STORE)
            for i in targets:
                if g.ops[i] == "STORE_FAST":
                    self.note_store(g.insts[i])
        else:
            name = self.fresh("value")
            target = ast.Name(name, STORE)
            inner.stack.append(self.local(name))
        body, end = self.run(header + 1 + len(targets), inner, where.within(loop))
        if end is not None:
            raise Branchy
        strip(body, is_continue)
        made = ast.For(target, self.take(self.last(state, state.stack.pop())), body or [ast.Pass()], [], lineno=0)
        out.append(made)
        ended = g.target(header)
        if not loop.is_left or loop.behind == ended:
            return ended, state
        made.orelse, end = self.run(ended, state.copy(), where.to(loop.behind))
        if end is not None:
            if end[0] != loop.behind:
                raise Branchy
            self.between_rounds(end[1], loop, g.depth[loop.behind], made.orelse)
        return loop.behind, self.behind(loop, state)

    def behind(self, loop: OpenLoop, state: State) -> State:
        return State(loop.stack[: self.g.depth[loop.behind]], state.aliases)

    def targets(self, header: int) -> set[int]:
        """The instructions behind FOR_ITER that store the item, as far as they make a plain target."""
        g = self.g
        if g.ops[header] != "FOR_ITER":
            return set()
        count = 1 if g.ops[header + 1] == "STORE_FAST" else 0
        if g.ops[header + 1] == "UNPACK_SEQUENCE":
            count = 1 + g.insts[header + 1].arg
        found = range(header + 1, header + 1 + count)
        names = [g.insts[i].arg for i in found if g.ops[i] == "STORE_FAST"]
        if count > 1 and len(names) != count - 1 or len(set(names)) != len(names):
            return set()
        return set(found) if all(g.handler[i] == g.handler[header] for i in found if g.ops[i] != "STORE_FAST") else set()

    def way_out(self, header: int, body: set[int], is_for: bool) -> int:
        """Where most jumps out of the loop lead, -1 for none: what ``break`` stands for."""
        g = self.g
        ended = g.target(header) if is_for else -1
        found: collections.Counter[int] = collections.Counter()
        for i in body:
            for to in g.successors(i):
                if to in body or is_for and i == header:
                    continue
                if is_for and g.ops[to] == "POP_TOP" and g.depth[to] == g.depth[header]:
                    to = g.next(to)
                if g.depth[to] <= g.depth[header] and (to == ended or not returns_constant(g, to)):
                    found[to] += 1
        return ended if ended in found else max(found, key=lambda to: (found[to], to), default=-1)


def _changed(inst: Any) -> int:
    """How many entries at the top an instruction replaces."""
    found = _MUTATE.get(inst.op)
    return stack_use(inst, False)[0] if found is None else found


def _while(body: list[ast.stmt]) -> ast.stmt:
    """``while True``, or with a test where the body begins or ends with it."""
    strip(body, is_continue)
    test: ast.expr = ast.Constant(True)
    first = body[0] if body else None
    if isinstance(first, ast.If) and not first.orelse:
        if _is_break(first.body):
            test, body = negate(first.test), body[1:]
        elif _is_break(body[1:]) and isinstance(first.body[-1], (ast.Continue, ast.Return, ast.Raise)):
            test, body = first.test, first.body
            strip(body, is_continue)
    return ast.While(test, body or [ast.Pass()], [])


def _is_break(body: list[ast.stmt]) -> bool:
    return len(body) == 1 and isinstance(body[0], ast.Break)
