"""From instructions to statements: one walk along the control flow, a region at a time.

The walk mirrors ``compile.c`` of CPython 3.11: what a statement compiles to is fixed, so the statement is told from the
first instruction that only it writes. The result is checked by compiling it again (see ``verify``); a wrong guess costs
a refusal, never a wrong answer.
"""

from __future__ import annotations

import ast
from types import CodeType
from typing import Any

from ..bytecode.ir import Instruction
from ..errors import DecompileError
from .blocks import NOWHERE, Block, awaited, breaks, continues, leave, peel
from .conditions import Conditions
from .expressions import RULES
from .functions import Functions
from .generics import Generics
from .graph import Graph
from .inlined import Inlined
from .items import AssertionClass, Item, Mark, Slot, as_expr
from .loops import Loops
from .match import Matches
from .scopes import Scopes
from .stores import Impure
from .tries import Tries

_MATCHES = ("MATCH_SEQUENCE", "MATCH_MAPPING", "MATCH_CLASS")


class Walker(Conditions, Loops, Tries, Matches, Functions, Generics, Inlined, Scopes):
    """Decompiles one code object; code objects inside of it get walkers of their own."""

    def __init__(self, code: CodeType, parent: Walker | None = None, insts: list[Instruction] | None = None, joined: int = 0) -> None:
        self.code = code
        self.parent = parent
        self.joined = joined
        self.g = Graph(code, insts, joined)
        self.has_lines = self.g.has_lines
        self.budget = 40 * self.g.n + 4000
        self.is_genexpr = code.co_name == "<genexpr>"
        self.is_comprehension = code.co_name in ("<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>")
        self.is_expression = code.co_name == "<lambda>"
        self.floor = 0
        self.parallel: list[tuple[ast.expr, Any]] = []
        self.pushed: list[Any] = []
        self.has_places = parent.has_places if parent else False
        self.has_annotations = False
        self.consumed: set[int] = set()  # backward jumps that belong to loops walked already
        self.nested: dict[int, Walker] = {}
        self.returns: list[ast.Return] = []
        self.type_parameters: list = []  # of a class, and the base that stands for them
        self.generic_base: Any = None
        self.body: list[ast.stmt] = []
        self.init_scopes()
        if insts is not None:
            self.cell_names = self.cells_used()

    def statements(self) -> list[ast.stmt]:
        """The body of the code object."""
        top = Block("function", None, 0, -1)
        stack: list = []
        start = 0
        if self.is_comprehension and not self.is_genexpr:
            start = 1 if self.g.ops[0].startswith("BUILD_") else 2  # behind RETURN_GENERATOR
            stack.append(Mark("result"))
            top.base = 1
        out, _ = self.region(start, top, frozenset(), stack)
        return out

    # -- a region: statements one behind the other

    def region(self, i: int, block: Block, follow: Any, stack: list, entering: bool = False) -> tuple[list[ast.stmt], bool]:
        """Statements from ``i`` on, and whether control gets to their end: to ``follow`` or out of ``block`` normally.

        ``stack``: the entries below the statements, with those that wait for a store on top (the value of a ``for``).
        ``entering``: ``i`` may be the header of the loop that ``block`` is, or a ``try`` at its beginning: the loop is not
        left at once therefore.
        """
        ops = self.g.ops
        out: list[ast.stmt] = []
        stack = list(stack)
        base = self.floor = block.base
        start = i
        while True:
            self.spend()
            if len(stack) == base:
                ended, i = self.boundary(self.g.resolve(i), block, () if entering else follow, stack, out, entering)
                if ended is not None or i < 0:
                    return out, bool(ended)
                entering = False
                self.floor, start, self.pushed = base, i, []
                if len(stack) != base:
                    continue
            ended, op = None, ops[i]
            if op not in RULES:
                ended, i = self.statement(i, op, start, block, follow, stack, out)
            elif len(stack) > base and (op == "SWAP" or self.g.handler[i] != block.handler) and self.is_return(i, block, stack):
                ended = self.returned(as_expr(stack.pop()), block, out)
            else:
                matched = None
                if op == "COPY" and not self.is_keep(i) and self.starts_match(i, block, stack):
                    matched = self.match_statement(i, block, follow, stack, out)
                ended, i = matched or (None, self.operation(i, stack, out))
            if ended is not None or i < 0:
                return out, bool(ended)

    def operation(self, i: int, stack: list, out: Any) -> int:
        """Runs an operation that has a rule, or the condition or link of a comparison chain that begins with it; the next one."""
        op = self.g.ops[i]
        if op == "COPY" and self.is_keep(i):
            return self.value_condition(i, stack)
        after = -1
        if op == "SWAP":
            after = self.chained(i, stack)
        elif op == "LOAD_CONST":
            after = self.behind_unbinding(i)
        elif op == "MAKE_FUNCTION" and self.is_evaluated_later(i):
            after = self.evaluated_later(i, stack)
        elif (op.startswith("BUILD_") or op == "MAKE_CELL") and self.starts_inlined(i, stack):
            after = self.inlined(i, stack)
        if after >= 0:
            return after
        RULES[op](self, self.g.insts[i], stack, out)
        return i + 1

    def statement(
        self, i: int, op: str, start: int, block: Block, follow: Any, stack: list, out: list
    ) -> tuple[bool | None, int]:
        """What an operation without a rule stands for. With None the next instruction, -1 for none; else how the region ends.

        ``start``: where the present statement began.
        """
        if op == "POP_JUMP_IF":
            return self.conditional(i, start, block, follow, stack, out)
        if op == "JUMP":
            return None, self.g.target(i)
        if op == "RETURN_VALUE":
            if isinstance(stack[-1], Mark) and stack[-1].kind == "result":
                return False, -1
            return self.returned(as_expr(stack.pop()), block, out), -1
        if op == "RAISE_VARARGS":
            out.append(self.raise_statement(self.g.insts[i].arg, stack))
            return False, -1
        if op in ("GET_AWAITABLE", "GET_YIELD_FROM_ITER"):
            return None, self.awaiting(i, stack)
        if op in ("BEFORE_WITH", "BEFORE_ASYNC_WITH"):
            return None, self.with_statement(i, block, stack, out)
        if op in ("FOR_ITER", "GET_ANEXT"):
            return None, self.for_statement(i, block, follow, stack, out)
        if op == "GET_AITER":
            self.async_iterator(stack)
            return None, i + 1
        matched = self.match_statement(i, block, follow, stack, out) if op in _MATCHES else None
        if matched is None:
            raise DecompileError(f"{op} out of place at offset {self.g.insts[i].offset}")
        return matched

    def boundary(self, i: int, block: Block, follow: Any, stack: list, out: list, entering: bool) -> tuple[bool | None, int]:
        """Between two statements: does the region end here (True, False), or at which instruction does it go on (None)?"""
        g = self.g
        while True:
            if i in follow:
                return True, i
            if block.is_loop and not entering:
                if i in block.cont:
                    out.append(ast.Continue())
                    return False, i
                if block.kind == "while" and breaks(g, i, block):
                    out.append(ast.Break())
                    return False, i
            elif block.kind == "try" and not entering and continues(i, block):
                out.append(ast.Continue())
                return False, i
            op = g.ops[i]
            handler = g.handler[i]
            if op == "RERAISE" and block.kind == "cleanup":
                return True, i
            if op == "POP_TOP" or op == "POP_EXCEPT":
                pass  # no statement begins with these
            else:
                if self.opens_loop(i, block.handler):
                    after = self.maybe_while(i, block, follow, stack, out)
                    if after < 0:
                        return False, i
                    if after != i:
                        i, entering = g.resolve(after), False
                        continue
                if handler == block.handler or op == "GET_ANEXT" or op == "RETURN_VALUE":
                    return None, i
                if block.handler < 0 or block.handler in g.chain(handler):
                    after = self.try_statement(i, block, follow, stack, out)
                    if after < 0:
                        return False, i
                    i, entering = g.resolve(after), False
                    continue
            how, where, node = leave(g, i, block)
            if how == "end":
                block.exits.append(where)
                return True, i
            if how == "statement" and node is not None:
                out.append(node)
                return False, i
            if how == "return":
                return self.returned(self.constant_at(where), block, out), i
            raise DecompileError(f"a block is left in an unknown way at offset {g.insts[i].offset}")

    def returned(self, value: ast.expr, block: Block | None, out: list) -> bool:
        """Writes a ``return``; whether control gets to the end of the region. A class's body ends without one."""
        if not self.is_function:
            while block is not None and not block.is_loop:
                block = block.parent
            if block is None:
                return True
            block.brk = -1  # nothing but the class's end comes behind the loop
            out.append(ast.Break())
            return False
        made = ast.Return(value)
        self.returns.append(made)
        out.append(made)
        return False

    def spend(self) -> None:
        """Counts a step; DecompileError for code that takes too many."""
        self.budget -= 1
        if self.budget < 0:
            raise DecompileError("the control flow is too tangled")

    def constant_at(self, i: int) -> ast.expr:
        stack: list = []
        RULES["LOAD_CONST"](self, self.g.insts[i], stack, None)
        return as_expr(stack[0])

    def is_return(self, i: int, block: Block, stack: list) -> bool:
        """Whether the code at ``i`` leaves every block with the value on top, to return it."""
        g = self.g
        if len(stack) != block.base + 1 or isinstance(stack[-1], (Slot, Mark)):
            return False
        if g.ops[i] == "SWAP" and not isinstance(stack[-2] if len(stack) > 1 else None, Item):
            return False
        b: Block | None = block
        while b is not None:
            i = peel(g, i, b, True)
            if i == NOWHERE:
                return True
            if i < 0:
                return False
            i = g.resolve(i)
            b = b.parent
        return g.ops[i] == "RETURN_VALUE"

    # -- pieces of expressions with jumps of their own

    def expression(self, i: int, stack: list, stop: int, rep: Any, until: str = "") -> tuple[str, int]:
        """Runs an expression from ``i`` on: ``("value", i)`` at ``stop``, or ``("jump", i)`` at a conditional jump of the
        expression that the caller reads, with the condition on top, or ``("until", i)`` at an operation of that name.
        Impure or DecompileError where there is no expression."""
        g = self.g
        ops = g.ops
        depth = len(stack)
        while True:
            self.spend()
            if (i if rep is None else rep[i]) == stop and len(stack) == depth + 1:
                return "value", i
            op = ops[i]
            if op in RULES:
                if op == "COPY" and len(stack) == depth + 1 and self.is_keep(i) and self.value_join(i)[0] == stop:
                    return "jump", i
                i = self.operation(i, stack, None)
            elif op == "POP_JUMP_IF":
                if len(stack) == depth + 1:
                    join = self.value_join(i)[0]
                    if join < 0 or join == stop:
                        return "jump", i
                i = self.value_condition(i, stack)
            elif op == "JUMP":
                i = g.target(i)
            elif op in ("GET_AWAITABLE", "GET_YIELD_FROM_ITER"):
                i = self.awaiting(i, stack)
            elif op == until:
                return "until", i
            else:
                raise Impure

    def awaiting(self, i: int, stack: list) -> int:
        g = self.g
        after = awaited(g, i + 1)
        if after < 0:
            raise DecompileError("an await without its loop")
        value = as_expr(stack.pop())
        if getattr(value, "is_awaited", False):
            stack.append(value)  # an asynchronous comprehension is awaited without a word
            value.is_awaited = False  # type: ignore[attr-defined]
        elif g.ops[i] == "GET_AWAITABLE":
            stack.append(ast.Await(value))
        else:
            stack.append(ast.YieldFrom(value))
        return after

    def raise_statement(self, count: int, stack: list) -> ast.stmt:
        cause = as_expr(stack.pop()) if count > 1 else None
        if not count:
            return ast.Raise(None, None)
        what = stack.pop()
        if isinstance(what, AssertionClass):
            made = ast.Assert(ast.Constant(False), what.message)
            made.raised = True  # type: ignore[attr-defined]
            return made
        return ast.Raise(as_expr(what), cause)
