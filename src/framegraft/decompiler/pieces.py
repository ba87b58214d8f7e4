"""Numbered pieces: how control flow is written that no statements follow."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

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
        targets, values = [], []
        for k, item in enumerate(state.stack):
            if local_name(item) != f"__entry_{k}":
                targets.append(ast.Name(f"__entry_{k}", STORE))
                values.append(self.take(item))
        if len(targets) == 1:
            out.append(ast.Assign(targets, values[0], lineno=0))
        elif targets:
            out.append(ast.Assign([ast.Tuple(targets, STORE)], ast.Tuple(values, LOAD), lineno=0))
        out.append(ast.Assign([ast.Name("__at", STORE)], ast.Constant(self.pieces[i]), lineno=0))
        return out

    def let_go_of_pieces(self, out: list[ast.stmt]) -> None:
        """Clears, where a piece is left, what it had on the stack: an exception would keep the frame alive, and be kept alive by it."""
        if self.is_structured:
            return
        starts = {number: self.g.depth[i] for i, number in self.pieces.items()}
        given = sorted(name for name in self.handed_over if name.startswith("___stack"))
        for case in out[-1].body[0].cases:  # type: ignore[attr-defined]
            number = case.pattern.value.value
            _Leaving({*self.fresh_names, *given}, starts, starts[number], () if number else given).visit(case.body)

    def way(self, i: int, state: State, where: Where) -> list[ast.stmt]:
        """One way on from a branch."""
        out, end = self.run(i, state, where)
        if end is not None:
            at, after = end
            after.aliases = dict(after.aliases)
            out += [*self.piece(at, after), ast.Continue()]
        return out


class _Leaving:
    """Puts the clearing into one piece. ``names``: variables that stand for entries of the stack, those of ``held`` from the
    beginning; ``starts``: entries that each piece begins with; ``depth``: those that this one does."""

    def __init__(self, names: set[str], starts: dict[int, int], depth: int, held: Iterable[str] = ()) -> None:
        self.names, self.starts, self.depth = names, starts, depth
        self.held = dict.fromkeys(held)

    def visit(self, block: list[Any], covered: bool = False) -> None:
        for statement in list(block):
            if _is_call_of_reraise(statement):
                if not covered:
                    self.clear(block, statement, 0)
            elif _leaves_for(statement):
                self.clear(block, statement, self.starts[statement.value.value])
            for part in ast.iter_child_nodes(statement):
                if isinstance(part, ast.expr):
                    self.held.update((n.id, None) for n in ast.walk(part) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
            for field in ("body", "handlers", "orelse"):
                self.visit(getattr(statement, field, None) or [], covered or field == "body" and isinstance(statement, ast.Try))

    def clear(self, block: list[Any], before: ast.AST, kept: int) -> None:
        """Everything but the lowest ``kept`` entries of the stack."""
        used = {n.id for n in ast.walk(before) if isinstance(n, ast.Name)}
        names = [*(f"__entry_{k}" for k in range(kept, self.depth)), *(name for name in self.held if name in self.names)]
        targets: list[ast.expr] = [ast.Name(name, STORE) for name in names if name not in used]
        if targets:
            block.insert(block.index(before), ast.Assign(targets, ast.Constant(None), lineno=0))


def _leaves_for(statement: Any) -> bool:
    return isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name) and statement.targets[0].id == "__at"


def _is_call_of_reraise(statement: Any) -> bool:
    call = getattr(statement, "value", None)
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "__reraise"
