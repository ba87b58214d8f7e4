"""``try`` and ``with`` statements, told from the handlers that cover the code.

Every handler begins with PUSH_EXC_INFO (``compiler_try_except``, ``compiler_try_finally``, ``compiler_with``); what comes
behind it tells the statement.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ..errors import DecompileError
from .blocks import Block, awaited, peel
from .cleanup import TRIES
from .items import Mark, Slot, as_expr
from .stores import Impure

if TYPE_CHECKING:
    from .walker import Walker


class Tries:
    """The walker's part for exception handlers."""

    def try_statement(self: Walker, i: int, block: Block, follow: Any, stack: list, out: list) -> int:  # type: ignore[misc]
        """A ``try`` whose body begins at ``i``; the instruction behind it, -1 where control does not get there."""
        g = self.g
        chain = g.chain(g.handler[i])
        outermost = chain[chain.index(block.handler) - 1] if block.handler >= 0 else chain[-1]
        if g.ops[outermost] != "PUSH_EXC_INFO":
            raise DecompileError(f"an exception handler of an unknown kind at offset {g.insts[outermost].offset}")
        first = g.resolve(outermost + 1)
        if g.ops[first : first + 2] in (["COPY", "BUILD_LIST"], ["BUILD_LIST", "COPY"]):
            return self.try_star(i, outermost, block, stack, out)
        if self.is_except(first, stack):
            return self.try_except(i, outermost, block, stack, out)
        return self.try_finally(i, outermost, block, stack, out)

    def is_except(self: Walker, i: int, stack: list) -> bool:  # type: ignore[misc]
        """Whether a handler's code is that of ``except`` clauses: drops the exception, or tests its type."""
        g = self.g
        if g.ops[i] == "POP_TOP":
            return True
        at = self.type_test(i, [*stack, Mark("previous"), Mark("exception")])[0]
        return at >= 0

    def type_test(self: Walker, i: int, stack: list, op: str = "CHECK_EXC_MATCH") -> tuple[int, Any]:  # type: ignore[misc]
        """The instruction that tests the exception's type, and the type's expression; (-1, None) where there is none."""
        g = self.g
        inner = list(stack)
        floor, self.floor = self.floor, len(stack)
        try:
            at = self.expression(i, inner, -1, None, op)[1]
            return (at, as_expr(inner[-1])) if g.ops[at] == op and len(inner) == len(stack) + 1 else (-1, None)
        except (Impure, DecompileError):
            return -1, None
        finally:
            self.floor = floor

    # -- try ... except

    def try_except(self: Walker, i: int, handler: int, block: Block, stack: list, out: list) -> int:  # type: ignore[misc]
        g = self.g
        inside = Block("try", block, block.base, handler)
        body, falls = self.region(i, inside, frozenset(), stack, True)
        handlers: list[ast.ExceptHandler] = []
        ends: list[int] = []
        at = g.resolve(handler + 1)
        below = [*stack, Mark("previous")]
        cleanup = g.handler[handler]
        while g.ops[at] != "RERAISE":
            kind: Any = None
            other = -1
            if g.ops[at] != "POP_TOP":
                test, kind = self.type_test(at, [*below, Mark("exception")])
                if test < 0 or g.ops[test + 1] != "POP_JUMP_IF":
                    raise DecompileError(f"an except clause of an unknown kind at offset {g.insts[at].offset}")
                other = g.target(test + 1)
                at = test + 2
            clause = Block("handler", block, block.base + 1, cleanup)
            name, at = self.exception_name(at, clause, below)
            if name is not None:
                clause.handler = self.named_cleanup(at, clause, cleanup)
            statements, _ = self.region(at, clause, frozenset(), below)
            handlers.append(ast.ExceptHandler(kind, name, statements or [ast.Pass()]))
            ends += clause.exits
            if other < 0:
                break
            at = other
        made = ast.Try(body or [ast.Pass()], handlers, [], [])
        out.append(made)
        return self.after_try(made, inside, falls, ends, block, stack)

    def after_try(self: Walker, made: Any, inside: Block, falls: bool, ends: list[int], block: Block, stack: list) -> int:  # type: ignore[misc]
        """Fills in ``else``; what comes behind the statement."""
        normal = max(inside.exits) if falls and inside.exits else -1
        end = max(ends, key=lambda e: (ends.count(e), e)) if ends else normal
        if normal >= 0 and normal != end:
            made.orelse, also = self.region(normal, block, frozenset((end,)), stack)
            if not made.orelse and not also:
                raise DecompileError("a try statement of unknown shape")
        return end

    def exception_name(self: Walker, at: int, clause: Block, below: list) -> tuple[str | None, int]:  # type: ignore[misc]
        """``as name``, or POP_TOP: (name or None, first instruction of the clause's body)."""
        g = self.g
        op = g.ops[at]
        if op == "POP_TOP":
            return None, at + 1
        if op not in ("STORE_FAST", "STORE_DEREF", "STORE_NAME", "STORE_GLOBAL"):
            raise DecompileError("an exception is bound to what is no name")
        self.note_store(g.insts[at])
        clause.name = self.name(g.insts[at].arg)
        return clause.name, at + 1

    def named_cleanup(self: Walker, at: int, clause: Block, cleanup: int) -> int:  # type: ignore[misc]
        """The handler that unbinds the name when the clause's body raises."""
        g = self.g
        for handler in g.chain(g.handler[at]):
            if g.ops[handler] == "LOAD_CONST" and g.handler[handler] == cleanup and g.ops[handler + 1].startswith("STORE_"):
                return handler
        return cleanup  # a body that cannot raise

    # -- try ... finally

    def try_finally(self: Walker, i: int, handler: int, block: Block, stack: list, out: list) -> int:  # type: ignore[misc]
        g = self.g
        final = Block("cleanup", block, block.base + 2, g.handler[handler])
        finalbody, _ = self.region(handler + 1, final, frozenset(), [*stack, Mark("previous"), Mark("exception")])
        inside = Block("finally", block, block.base, handler)
        inside.final = handler + 1
        body, falls = self.region(i, inside, frozenset(), stack, True)
        if len(body) == 1 and isinstance(body[0], TRIES) and not body[0].finalbody:
            body[0].finalbody = finalbody or [ast.Pass()]
            out.append(body[0])
        else:
            out.append(ast.Try(body or [ast.Pass()], [], [], finalbody or [ast.Pass()]))
        return max(inside.exits) if falls and inside.exits else -1

    # -- with

    def with_statement(self: Walker, i: int, block: Block, stack: list, out: list) -> int:  # type: ignore[misc]
        """A ``with`` at BEFORE_WITH; the instruction behind the statement, -1 where control does not get there."""
        g = self.g
        is_async = g.ops[i] == "BEFORE_ASYNC_WITH"
        manager = as_expr(stack.pop())
        if len(stack) != block.base:
            raise DecompileError("a with statement inside of an expression")
        after = i + 1
        if is_async:
            after = awaited(g, i + 2)
            if after < 0 or g.ops[i + 1] != "GET_AWAITABLE":
                raise DecompileError("an async with without its await")
        handler = g.handler[after]
        end = self.suppressed(handler, is_async)
        inside = Block("with", block, block.base + 1, handler)
        inside.is_async = is_async
        slot = Slot()
        below = [*stack, Mark("exit")]
        if g.ops[after] == "POP_TOP":
            body, _falls = self.region(after + 1, inside, frozenset(), below)
        else:
            body, _falls = self.region(after, inside, frozenset(), [*below, slot])
        item = ast.withitem(manager, slot.target)
        kind: Any = ast.AsyncWith if is_async else ast.With
        inner = body[0] if len(body) == 1 else None
        line = g.insts[i].positions and g.insts[i].positions[0]
        if type(inner) is kind and line is not None and inner.line_ == line:  # type: ignore[union-attr]
            made = kind([item, *inner.items], inner.body, lineno=0)  # type: ignore[union-attr]
        else:
            made = kind([item], body or [ast.Pass()], lineno=0)
        made.line_ = line
        out.append(made)
        return end

    def suppressed(self: Walker, handler: int, is_async: bool) -> int:  # type: ignore[misc]
        """Where the program goes on when ``__exit__`` swallows an exception."""
        g = self.g
        at = handler + 2
        if handler < 0 or g.ops[handler : handler + 2] != ["PUSH_EXC_INFO", "WITH_EXCEPT_START"]:
            raise DecompileError("a with statement without its handler")
        if is_async:
            at = awaited(g, at + 1)
        if at < 0 or g.ops[at] != "POP_JUMP_IF":
            raise DecompileError("a with statement with an unknown handler")
        at = g.target(at) if g.insts[at].arg == "true" else g.next(at)
        if g.ops[at : at + 4] != ["POP_TOP", "POP_EXCEPT", "POP_TOP", "POP_TOP"]:
            raise DecompileError("a with statement with an unknown handler")
        return g.resolve(at + 4)

    # -- try ... except*

    def try_star(self: Walker, i: int, handler: int, block: Block, stack: list, out: list) -> int:  # type: ignore[misc]
        """``try ... except*``: the handler keeps the group and a list of what its clauses raise; each clause takes its part."""
        g = self.g
        inside = Block("try", block, block.base, handler)
        body, falls = self.region(i, inside, frozenset(), stack, True)
        handlers: list[ast.ExceptHandler] = []
        at = g.resolve(handler + (4 if g.ops[handler + 1] == "COPY" else 3))  # behind COPY, BUILD_LIST, SWAP or BUILD_LIST, COPY
        below = [*stack, *map(Mark, ("previous", "group", "raised", "rest"))]
        while g.ops[at] != "LIST_APPEND":
            test, kind = self.type_test(at, below, "CHECK_EG_MATCH")
            if test < 0 or g.ops[test + 1 : test + 3] != ["COPY", "POP_JUMP_IF"]:
                raise DecompileError(f"an except* clause of an unknown kind at offset {g.insts[at].offset}")
            ways = g.target(test + 2), g.next(test + 2)
            start, dropped = ways if g.insts[test + 2].arg == "not_none" else ways[::-1]
            if g.ops[dropped] != "POP_TOP":
                raise DecompileError(f"an except* clause of an unknown kind at offset {g.insts[at].offset}")
            clause = Block("star", block, block.base + 4, g.handler[test])
            name, at = self.exception_name(start, clause, below)
            clause.handler = self.star_cleanup(at, g.handler[test])
            after = g.next(dropped)
            statements: list[ast.stmt] = []
            follow = self.star_ends(after)
            if name is None or g.resolve(peel(g, at, clause, False)) not in follow:  # else the body is empty
                statements, _ = self.region(at, clause, follow, below)
            handlers.append(ast.ExceptHandler(kind, name, statements or [ast.Pass()]))
            at = after
        end = self.behind_star(at)
        made = ast.TryStar(body or [ast.Pass()], handlers, [], [])
        out.append(made)
        return self.after_try(made, inside, falls, [end], block, stack)

    def star_ends(self: Walker, after: int) -> frozenset[int]:  # type: ignore[misc]
        """Where a clause ends behind which comes ``after``: behind the last one, the compiler may write it more than once."""
        g = self.g
        if g.ops[after] != "LIST_APPEND":
            return frozenset((after,))
        kind = g.depth[after], g.next(after)
        return frozenset(i for i, op in enumerate(g.ops) if op == "LIST_APPEND" and (g.depth[i], g.next(i)) == kind)

    def star_cleanup(self: Walker, at: int, outer: int) -> int:  # type: ignore[misc]
        """The handler that notes what the body of an ``except*`` clause raises; ``outer`` for a body that cannot raise."""
        g = self.g
        for handler in g.chain(g.handler[at]):
            behind = handler + 3 if g.ops[handler] == "LOAD_CONST" else handler
            if g.ops[behind] == "LIST_APPEND" and g.handler[handler] == outer:
                return handler
        return outer

    def behind_star(self: Walker, i: int) -> int:  # type: ignore[misc]
        """Where control goes on when all exceptions of the group are dealt with; ``i``: where the last clause ends."""
        g = self.g
        at = g.next(i)
        if g.ops[at : at + 3] != ["INTRINSIC", "COPY", "POP_JUMP_IF"]:
            raise DecompileError("an except* statement without its end")
        at = g.next(at + 2) if g.insts[at + 2].arg == "not_none" else g.target(at + 2)
        if g.ops[at : at + 2] != ["POP_TOP", "POP_EXCEPT"]:
            raise DecompileError("an except* statement without its end")
        return g.resolve(at + 2)
