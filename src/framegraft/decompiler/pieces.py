"""Numbered pieces: how control flow is written that no statements follow."""

from __future__ import annotations

import ast

from .operations import Operations
from .values import LOAD, STORE, State, Where, local_name


class Pieces(Operations):
    """The part of the emitter that writes ``while True: match __at: case 0: ...``."""

    def in_pieces(self, start: int) -> list[ast.stmt]:
        g = self.g
        self.is_structured = False
        self.steps = 0
        self.needs.clear()
        self.returns.clear()
        self.cells.clear()
        counts: dict[int, int] = {}
        for i in range(g.n):
            for to in g.successors(i):
                counts[to] = counts.get(to, 0) + 1
        self.meets = {to for to, count in counts.items() if count > 1} | {g.resolve(header) for header in g.back}
        first = self.piece(start, State([], {}))
        cases = []
        while self.todo:
            i = self.todo.pop(0)
            stack = [self.slot(k) for k in range(g.depth[i])]
            body = self.run(i, State(stack, {}), Where(), True)[0]
            cases.append(ast.match_case(ast.MatchValue(ast.Constant(self.pieces[i])), None, body or [ast.Pass()]))
        return [*first, ast.While(ast.Constant(True), [ast.Match(self.local("__at"), cases)], [])]

    def slot(self, k: int) -> ast.expr:
        return self.local(f"__entry_{k}")

    def piece(self, i: int, state: State) -> list[ast.stmt]:
        """Statements that leave for the piece at ``i``."""
        i = self.g.resolve(i)
        if i not in self.pieces:
            self.pieces[i] = len(self.pieces)
            self.todo.append(i)
        out: list[ast.stmt] = []
        self.settle(state, out, state.aliases)
        stack = state.stack
        kept = [item for k, item in enumerate(stack) if local_name(item) == f"__entry_{k}"]
        changed = [k for k, item in enumerate(stack) if local_name(item) != f"__entry_{k}"]
        moved = State([*kept, *(stack[k] for k in changed)], {})
        self.consume(moved, len(changed), out)
        targets, values = [], []
        for k, item in zip(changed, moved.stack[len(kept) :], strict=True):
            targets.append(ast.Name(f"__entry_{k}", STORE))
            values.append(self.take(item))
        if len(targets) == 1:
            out.append(ast.Assign(targets, values[0], lineno=0))
        elif targets:
            out.append(ast.Assign([ast.Tuple(targets, STORE)], ast.Tuple(values, LOAD), lineno=0))
        out.append(ast.Assign([ast.Name("__at", STORE)], ast.Constant(self.pieces[i]), lineno=0))
        return out

    def way(self, i: int, state: State, where: Where) -> list[ast.stmt]:
        """One way on from a branch."""
        out, end = self.run(i, state, where)
        if end is not None:
            at, after = end
            after.aliases = dict(after.aliases)
            out += [*self.piece(at, after), ast.Continue()]
        return out

