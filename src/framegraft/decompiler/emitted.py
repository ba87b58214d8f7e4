"""Decompiles code that no compiler made: what the engine emits, and the resume functions it makes of a function's rest.

Such code keeps values on the stack between statements, jumps into the middle of blocks and handles exceptions outside of
``try`` statements. It is run symbolically: entries of the stack become expressions, and variables where a statement comes
between a value and its use, so that everything is evaluated in the original order. Branches that do not meet again become
nested ``if`` statements; other control flow becomes a loop over numbered pieces. Operations without syntax are calls of
``runtime``.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from ..errors import DecompileError
from . import runtime
from .conditions import none_test
from .expressions import RULES
from .graph import Graph
from .operations import Operations
from .resumed import is_resume
from .values import Fixed, State, local_name
from .verify import QUIET

LOAD, STORE = ast.Load(), ast.Store()
RUNTIME = runtime.__name__  # it is loaded here, so that the code that imports it need not run anything
_MARKS = re.compile(r"__(?:_stack\d|_cell_|temp_\d|stack_\d|graph_out_\d|compiled_fn_\d|resume_at_\d|fg__|failure\b)")
_STORES = ("STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF", "STORE_ATTR", "STORE_SUBSCR")


def is_emitted(code: Any) -> bool:
    """Whether the engine made the code: it names what only the engine does, or is a resume function."""
    if is_resume(code) or any(map(_MARKS.match, (*code.co_varnames, *code.co_names))):
        return True
    g = Graph(code)
    if g.ops[0] == "RETURN_GENERATOR" and "JUMP" in (g.ops[1], *g.ops[3:4]):
        return True  # a generator that goes on in the middle
    if any(op == "LOAD_CLOSURE" and g.ops[i + 1] == "LOAD_ATTR" for i, op in enumerate(g.ops)):
        return True
    # The compiler knows the columns of all that has a line, but for a generator's beginning.
    places = [inst.positions for inst in g.insts if inst.op != "RETURN_GENERATOR"]
    return any(place and place[0] is not None and place[2] is None for place in places)


class _Branchy(Exception):
    """The code's control flow is no tree."""

class Emitter(Operations):
    """A walker for one such code object; the code objects inside of it were made by the compiler."""

    def statements(self) -> list[ast.stmt]:
        g = self.g
        start = 1 if g.ops[0] == "RETURN_GENERATOR" else 0
        try:
            if g.back:
                raise _Branchy
            out = self.run(start, State([], {}), -1)[0]
        except _Branchy:
            out = self.loop(start)
        if self.needs:
            names = [ast.alias(n, f"__{n}") for n in sorted(self.needs)]
            out.insert(0, ast.ImportFrom(RUNTIME, names, 0))
        return out

    # -- pieces

    def loop(self, start: int) -> list[ast.stmt]:
        """Numbered pieces, for control flow that is no tree."""
        g = self.g
        self.is_tree = False
        self.steps = 0
        self.needs.clear()
        self.returns.clear()
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
            body = self.run(i, State(stack, {}), -1, True)[0]
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

    # -- running

    def run(self, i: int, state: State, covered: int, inside: bool = False) -> tuple[list[ast.stmt], Any]:
        """Statements from ``i`` on. With them None where control does not get behind them, else (instruction, state) where
        the code that the handler ``covered`` covers ends."""
        g = self.g
        out: list[ast.stmt] = []
        first = i
        while True:
            self.steps += 1
            if self.steps > 30 * g.n + 3000:
                if self.is_tree:
                    raise _Branchy
                raise DecompileError("the control flow is too tangled")
            op, inst = g.ops[i], g.insts[i]
            if not self.is_tree and i in self.meets and not (i == first and inside):
                self.flush(state, out)
                return [*out, *self.piece(i, state), ast.Continue()], None
            inside = False
            handler = g.handler[i]
            # PUSH_EXC_INFO cannot fail, and changes an entry that the handler covering it wants as it is behind it.
            if handler != covered and op != "PUSH_EXC_INFO" and (op not in QUIET or covered >= 0 and op in ("LOAD_CONST", "COPY")):
                if handler >= 0 and (covered < 0 or covered in g.chain(handler)):
                    done = self.guarded(i, handler, state, covered, out)
                    if done is None:
                        return out, None
                    i, state = done
                    first = -1
                    continue
                self.flush(state, out)
                return out, (i, state)
            i = self.step(i, op, inst, state, covered, out)
            if i < 0:
                return out, None
            if i >= g.n:
                raise DecompileError("control gets to no return")

    def guarded(self, i: int, handler: int, state: State, covered: int, out: list) -> tuple[int, State] | None:
        """Code that ``handler`` covers, as a ``try`` statement; where control goes on behind it (None for nowhere)."""
        g = self.g
        self.flush(state, out)
        info = g.insts[i].handler
        stored = self.stored_in(i, handler)
        self.settle(state, out, stored)
        for name in stored:
            if any(local_name(item) == name for item in state.stack):
                self.release(state, name, out)
        below = state.stack[: info.depth]  # type: ignore[union-attr]
        before = dict(state.aliases)
        inner = state.copy()
        inner.aliases = Fixed(before)
        body, end = self.run(i, inner, handler, True)
        caught, error = self.fresh("caught"), self.fresh("error")
        stack = [*below, *([ast.Constant(0)] if info.lasti else []), self.local(error)]  # type: ignore[union-attr]
        keep = ast.Assign([ast.Name(error, STORE)], ast.Name(caught, LOAD), lineno=0)
        clause = ast.ExceptHandler(ast.Name("BaseException", LOAD), caught, [keep])
        orelse: list[ast.stmt] = []
        if end is not None:
            at, after = end
            after.aliases = dict(after.aliases)
            if self.is_tree:
                if g.handler[at] != covered and g.handler[at] >= 0 and covered not in g.chain(g.handler[at]) and covered >= 0:
                    raise _Branchy
                orelse, also = self.run(at, after, covered)
                if also is not None:
                    raise _Branchy
            else:
                orelse = [*self.piece(at, after), ast.Continue()]
        made = ast.Try(body or [ast.Pass()], [clause], orelse, [])
        if not body:
            raise DecompileError("nothing is covered")
        out.append(made)
        later = State(stack, before)
        if self.is_tree:
            rest, also = self.run(handler, later, covered)
            if also is not None:
                raise _Branchy
            out += rest
        else:
            out += [*self.piece(handler, later), ast.Continue()]
        return None

    def stored_in(self, i: int, handler: int) -> set[str]:
        """Variables that the code from ``i`` on stores as far as ``handler`` covers it."""
        g = self.g
        found: set[str] = set()
        seen: set[int] = set()
        todo = [i]
        while todo:
            at = todo.pop()
            if at in seen or g.handler[at] != handler and g.ops[at] not in QUIET and handler not in g.chain(g.handler[at]):
                continue
            seen.add(at)
            if g.ops[at] in ("STORE_FAST", "DELETE_FAST"):
                found.add(g.insts[at].arg)
            todo += g.successors(at)
        return found

    # -- one instruction

    def step(self, i: int, op: str, inst: Any, state: State, covered: int, out: list) -> int:
        """Runs an instruction; the next one, or -1."""
        g, stack, arg = self.g, state.stack, inst.arg
        special = getattr(self, f"op_{op}", None)
        if special is not None:
            return special(i, inst, state, out)
        if op == "JUMP":
            return g.raw_target(i)
        if op in ("POP_JUMP_IF", "FOR_ITER"):
            return self.branch(i, op, inst, state, covered, out)
        if op in _STORES:
            return self.assign(i, op, arg, state, out)
        if op.startswith("DELETE_"):
            return self.delete(i, op, inst, state, out)
        rule = RULES.get(op)
        if rule is None:
            raise DecompileError(f"{op} out of place at offset {inst.offset}")
        self.plain_operands(op, inst, stack)
        rule(self, inst, stack, None)
        return i + 1

    def branch(self, i: int, op: str, inst: Any, state: State, covered: int, out: list) -> int:
        g = self.g
        if op == "FOR_ITER":
            self.flush(state, out)
            name = self.fresh("value")
            out.append(ast.Assign([ast.Name(name, STORE)], self.call_runtime("advance", self.take(state.stack[-1])), lineno=0))
            self.needs.add("END")
            test: ast.expr = ast.Compare(self.local(name), [ast.Is()], [ast.Name("__END", LOAD)])
            yes, no = g.raw_target(i), i + 1
            then, other = state.copy(), state.copy()
            then.stack.pop()
            other.stack.append(self.local(name))
        else:
            test = self.take(self.named(state, out))
            self.flush(state, out)
            yes, no = g.raw_target(i), i + 1
            if inst.arg == "false":
                yes, no = no, yes
            elif inst.arg != "true":
                test = none_test(test, ast.Is() if inst.arg == "none" else ast.IsNot())
            then, other = state.copy(), state.copy()
        for one in (then, other):
            if isinstance(state.aliases, Fixed):
                one.aliases = Fixed(one.aliases)
        body = self.way(yes, then, covered)
        orelse = self.way(no, other, covered)
        out.append(ast.If(test, body or [ast.Pass()], []))
        out += orelse
        return -1

    def way(self, i: int, state: State, covered: int) -> list[ast.stmt]:
        out, end = self.run(i, state, covered)
        if end is not None:
            if self.is_tree:
                raise _Branchy
            at, after = end
            after.aliases = dict(after.aliases)
            out += [*self.piece(at, after), ast.Continue()]
        return out
