"""Decompiles code that no compiler made: what the engine emits, and the resume functions it makes of a function's rest.

Such code keeps values on the stack between statements, jumps into the middle of blocks and handles exceptions outside of
``try`` statements. It is run symbolically: entries of the stack become expressions, and variables where a statement comes
between a value and its use, so that everything is evaluated in the original order. What lies between a jump into a block
and the block's end is written first, then the loop (``repeats``); where ways meet, their values become the same variables.
Control flow that this cannot follow becomes a loop over numbered pieces (``pieces``). Operations without syntax are calls
of ``runtime``.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from ..bytecode.flow import stack_use
from ..errors import DecompileError
from . import runtime
from .conditions import negate, none_test
from .expressions import RULES
from .graph import Graph
from .inline import finish, inline
from .items import Item
from .pieces import Pieces
from .repeats import Repeats
from .resumed import is_resume
from .values import Branchy, Fixed, State, Where, is_cleared, local_name
from .verify import QUIET

LOAD, STORE = ast.Load(), ast.Store()
RUNTIME = runtime.__name__  # it is loaded here, so that the code that imports it need not run anything
_MARKS = re.compile(r"__(?:_stack\d|_cell_|temp_\d|pushed_\d|graph_out_\d|compiled_fn_\d|resume_at_\d|fg__|failure\b)")
_STORES = ("STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF", "STORE_ATTR", "STORE_SUBSCR")


def has_marks(code: Any) -> bool:
    """Whether the code names what only the engine does, or is a resume function."""
    return is_resume(code) or any(map(_MARKS.match, (*code.co_varnames, *code.co_names)))


def is_emitted(code: Any) -> bool:
    """Whether the engine made the code: by its names, or its instructions and their places."""
    if has_marks(code):
        return True
    g = Graph(code)
    if g.ops[0] == "RETURN_GENERATOR" and "JUMP" in (g.ops[1], *g.ops[3:4]):
        return True  # a generator that goes on in the middle
    if any(op == "LOAD_CLOSURE" and g.ops[i + 1] == "LOAD_ATTR" for i, op in enumerate(g.ops)):
        return True
    if not hasattr(code, "co_positions"):
        return False
    # The compiler knows the columns of all that has a line, but for a generator's beginning.
    places = [inst.positions for inst in g.insts if inst.op != "RETURN_GENERATOR"]
    return any(place and place[0] is not None and place[2] is None for place in places)


class Emitter(Pieces, Repeats):
    """A walker for one such code object; the code objects inside of it were made by the compiler."""

    def statements(self) -> list[ast.stmt]:
        start = 1 if self.g.ops[0] == "RETURN_GENERATOR" else 0
        try:
            out = self.run(start, State([], {}), Where())[0]
        except (Branchy, DecompileError):
            out = self.in_pieces(start)
        inline(out, self.fresh_names)
        finish(out, self.owns, self.is_structured)
        used = {n.id for statement in out for n in ast.walk(statement) if isinstance(n, ast.Name)}
        self.needs = {n for n in self.needs if f"__{n}" in used}
        if self.needs:
            names = [ast.alias(n, f"__{n}") for n in sorted(self.needs)]
            out.insert(0, ast.ImportFrom(RUNTIME, names, 0))
        return out

    # -- running

    def run(self, i: int, state: State, where: Where, entering: bool = False) -> tuple[list[ast.stmt], Any]:
        """Statements from ``i`` on. With them None where control does not get behind them, else (instruction, state) where
        the code that the handler ``where.covered`` covers ends, or at ``where.until``.

        ``entering``: ``i`` is the header of the loop around, or the piece to write: not left at once therefore.
        """
        g = self.g
        out: list[ast.stmt] = []
        while True:
            self.count_step()
            op, inst = g.ops[i], g.insts[i]
            if not entering:
                if i == where.until:
                    return out, (i, state)
                if self.leaves(i, state, where, out):
                    return out, None
                if self.is_structured and self.is_header(i, op, where):
                    done = self.repeat(i, state, where, out)
                    if done is None:
                        return out, None
                    i, state = done
                    continue
            if self.is_left(i, op, where.covered):
                handler = g.handler[i]
                if handler < 0 or where.covered >= 0 and where.covered not in g.chain(handler):
                    self.flush(state, out)
                    return out, (i, state)
                i, state = self.guarded(i, handler, state, where, out, entering)
            else:
                i = self.step(i, op, inst, state, where, out)
            entering = False
            if i < 0:
                return out, None
            if i >= g.n:
                raise DecompileError("control gets to no return")

    def is_left(self, i: int, op: str, covered: int) -> bool:
        """Whether another handler than ``covered`` is responsible for ``i``, and it matters."""
        # PUSH_EXC_INFO cannot fail, and changes an entry that the handler covering it wants as it is behind it.
        return (self.g.handler[i] != covered and op != "PUSH_EXC_INFO"
                and (op not in QUIET or covered >= 0 and op in ("LOAD_CONST", "COPY")))

    def guarded(self, i: int, handler: int, state: State, where: Where, out: list, entering: bool) -> tuple[int, State]:
        """Code that ``handler`` covers, as a ``try`` statement; where control goes on behind it."""
        g = self.g
        self.flush(state, out)
        info: Any = g.insts[i].handler
        stored = self.stored_in(i, handler)
        self.settle(state, out, stored)
        for name in stored:
            if any(local_name(item) == name for item in state.stack):
                self.release(state, name, out)
        below = state.stack[: info.depth]
        before = state.aliases.copy()
        inner = State(list(state.stack), Fixed(before))
        body, end = self.run(i, inner, where.inside(handler), entering or not self.is_structured)
        if not body:  # all that is covered moves values about, and cannot fail
            if end is None or end[0] == i:
                raise DecompileError("nothing is covered")
            return end[0], State(end[1].stack, type(before)(end[1].aliases))
        caught, error = self.fresh("caught"), self.fresh("error")
        later = State([*below, *([ast.Constant(0)] if info.lasti else []), self.local(error)], before)
        keep = ast.Assign([ast.Name(error, STORE)], ast.Name(caught, LOAD), lineno=0)
        clause = ast.ExceptHandler(ast.Name("BaseException", LOAD), caught, [keep])
        made = ast.Try(body, [clause], [], [])
        kept = {name for name in map(local_name, below) if name}
        made.unwound = [name for name in map(local_name, state.stack[info.depth :]) if self.owns(name)], kept  # type: ignore[attr-defined]
        if end is None:
            out.append(made)
            return handler, later
        at, after = end
        after.aliases = type(before)(after.aliases)
        if not self.is_structured:
            made.orelse = [*self.piece(at, after), ast.Continue()]
            out.append(made)
            return handler, later
        out += [ast.Assign([ast.Name(error, STORE)], ast.Constant(None), lineno=0), made]
        at = g.resolve(at)
        rest, met = self.run(handler, later, where.to(at))
        out.append(ast.If(none_test(self.local(error), ast.IsNot()), rest or [ast.Pass()], []))
        if met is None:
            return at, after
        if met[0] != at:
            raise Branchy
        orelse: list[ast.stmt] = []
        after = self.merged(rest, met[1], orelse, after)
        out[-1].body, out[-1].orelse = rest or [ast.Pass()], orelse  # type: ignore[attr-defined]
        return at, after

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

    def step(self, i: int, op: str, inst: Any, state: State, where: Where, out: list) -> int:
        """Runs an instruction; the next one, or -1."""
        g, stack, arg = self.g, state.stack, inst.arg
        special = getattr(self, f"op_{op}", None)
        if special is not None:
            return special(i, inst, state, out)
        if op == "JUMP":
            return g.raw_target(i)
        if op in ("POP_JUMP_IF", "FOR_ITER"):
            return self.branch(i, op, inst, state, where, out)
        if op in _STORES:
            return self.assign(i, op, arg, state, out)
        if op.startswith("DELETE_"):
            return self.delete(i, op, inst, state, out)
        rule = RULES.get(op)
        if rule is None:
            raise DecompileError(f"{op} out of place at offset {inst.offset}")
        self.consume(state, stack_use(inst, False)[0], out)
        self.plain_operands(op, inst, stack)
        rule(self, inst, stack, None)
        return i + 1

    def branch(self, i: int, op: str, inst: Any, state: State, where: Where, out: list) -> int:
        g = self.g
        then, other = state, state
        body: list[ast.stmt] = []
        if op == "FOR_ITER":
            self.flush(state, out)
            name = self.fresh("value")
            out.append(ast.Assign([ast.Name(name, STORE)], self.call_runtime("advance", self.take(state.stack[-1])), lineno=0))
            self.needs.add("END")
            test: ast.expr = ast.Compare(self.local(name), [ast.Is()], [ast.Name("__END", LOAD)])
            then, other = state.copy(), state.copy()
            self.drop(then, then.stack.pop(), body)
            other.stack.append(self.local(name))
        else:
            self.consume(state, 1, out)
            test = self.take(self.named(state, out))
            self.flush(state, out)
            then, other = state.copy(), state.copy()
        yes, no = g.raw_target(i), i + 1
        if inst.arg == "false":
            yes, no = no, yes
        elif inst.arg in ("none", "not_none"):
            test = none_test(test, ast.Is() if inst.arg == "none" else ast.IsNot())
        if not self.is_structured:
            body += self.way(yes, then, where)
            orelse = self.way(no, other, where)
            out += [ast.If(test, body or [ast.Pass()], []), *orelse]
            return -1
        statements, end = self.met(i, yes, then, where)
        return self.meet(test, (body + statements, end), self.met(i, no, other, where), state, out)

    def met(self, i: int, to: int, state: State, where: Where) -> tuple[list[ast.stmt], Any]:
        """One way on from the branch at ``i``, as far as to where it meets the other."""
        join = self.g.join(i)
        return self.run(to, state, where if join < 0 else where.to(self.g.resolve(join)))

    def meet(self, test: ast.expr, yes: tuple[list, Any], no: tuple[list, Any], state: State, out: list) -> int:
        """An ``if`` statement; where both ways go on behind it, -1 for nowhere. ``state`` becomes the one there."""
        (body, end), (orelse, other) = yes, no
        if end is not None and other is not None:
            if end[0] != other[0]:
                raise Branchy
            chosen = self.chosen(test, body, end[1], orelse, other[1], out)
            after = chosen or self.merged(body, end[1], orelse, other[1])
            if chosen is not None:
                pass
            elif body or orelse:
                out.append(ast.If(test, body, orelse) if body else ast.If(negate(test), orelse, []))
            else:
                out.append(ast.Expr(test))
        elif end is not None:
            out += [ast.If(negate(test), orelse or [ast.Pass()], []), *body]
            after = end[1]
        else:
            out += [ast.If(test, body or [ast.Pass()], []), *orelse]
            after = other and other[1]
        met = end or other
        if after is None or met is None:
            return -1
        state.stack[:], state.aliases = after.stack, after.aliases
        return met[0]

    def chosen(self, test: ast.expr, body: list, state: State, orelse: list, other: State, out: list) -> State | None:
        """The state where two ways meet that do nothing but leave a value on top, as one expression; else None."""
        tested = local_name(test)
        if not all(is_cleared(statement, tested) for statement in (*body, *orelse)):
            return None
        below = list(zip(state.stack[:-1], other.stack[:-1], strict=False))
        if len(state.stack) != len(other.stack) or not state.stack or state.aliases != other.aliases or any(a is not b for a, b in below):
            return None
        yes, no = state.stack[-1], other.stack[-1]
        if yes is no or isinstance(yes, Item) or isinstance(no, Item):
            return None
        last = out[-1] if out else None
        is_kept = (isinstance(last, ast.Assign) and isinstance(last.targets[0], ast.Name) and last.targets[0].id == tested
                   and tested in self.fresh_names and all(local_name(item) != tested for item in state.stack[:-1]))
        if is_kept and local_name(yes) == tested:
            made: ast.expr = ast.BoolOp(ast.Or(), [out.pop().value, no])
        elif is_kept and local_name(no) == tested:
            made = ast.BoolOp(ast.And(), [out.pop().value, yes])
        elif body or orelse:
            return None
        else:
            made = ast.IfExp(test, self.take(yes), self.take(no))
        return State([*state.stack[:-1], made], state.aliases)

    def merged(self, out: list, state: State, also: list, other: State) -> State:
        """The state where two ways meet, behind the statements of each."""
        for one, statements, two in ((state, out, other), (other, also, state)):
            self.settle(one, statements, [n for n, value in one.aliases.items() if two.aliases.get(n) is not value])
        if len(state.stack) != len(other.stack):
            raise Branchy
        for k, (a, b) in enumerate(zip(state.stack, other.stack, strict=True)):
            if a is b or local_name(a) is not None and local_name(a) == local_name(b):
                continue
            name = self.fresh("value")
            for one, statements in ((state, out), (other, also)):
                item, one.stack[k] = one.stack[k], None
                one.stack[k] = self.bind(name, self.last(one, item), statements)
        return state
