"""``match`` statements."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ..bytecode.flow import NO_FALLTHROUGH, stack_use
from ..errors import DecompileError
from .blocks import Block
from .conditions import Node, is_folded, negate
from .expressions import RULES
from .items import Mark, Slot, as_expr
from .patterns import PatternReader, Subject, unknown
from .stores import Impure

if TYPE_CHECKING:
    from .walker import Walker

_FAR = 300  # instructions that the look ahead for a match goes


class Matches:
    """The walker's part for ``match``."""

    def starts_match(self: Walker, i: int, block: Block, stack: list) -> bool:  # type: ignore[misc]
        """Whether COPY at ``i`` begins the first case: the copied value is tested, then popped or stored."""
        g = self.g
        depth = block.base + 1
        if len(stack) != depth or g.insts[i].arg != 1 or isinstance(stack[-1], (Slot, Mark)):
            return False
        jumped, at = g.ops[i + 1] == "POP_TOP", i + 1  # ``case _ as name:``
        for _ in range(_FAR):
            inst = g.insts[at]
            if inst.op in NO_FALLTHROUGH:
                if inst.op != "JUMP" or g.raw_target(at) <= at:
                    return False
                at = g.raw_target(at)
                continue
            if g.depth[at] - stack_use(inst, False)[0] < g.depth[i]:
                return jumped and (inst.op == "POP_TOP" or inst.op.startswith("STORE_"))
            jumped = jumped or inst.op == "POP_JUMP_IF"
            at += 1
        return True

    def match_statement(self: Walker, i: int, block: Block, follow: Any,  # type: ignore[misc]
                        stack: list, out: list) -> tuple[bool | None, int] | None:
        """A ``match`` whose first pattern begins at ``i``; None where that is none. The subject is popped."""
        base = block.base
        value = stack[base]
        if isinstance(value, (Slot, Mark)):
            raise unknown()
        below, above = stack[:base], stack[base + 1 :]
        reader = PatternReader(self, RULES)
        cases: list[tuple[ast.pattern, ast.expr | None, int]] = []
        try:
            other = i
            while other >= 0:
                if cases and self.g.depth[other] == base:
                    break
                del reader.fails[:]
                root, inner, at = self.pattern_at(other, below, above, reader)
                copied = root.child is not None and not root.shape and not root.names
                anything = root.child is None and not root.shape and not root.names
                guard, start, other = self.guarded(at, inner, block, follow, reader, copied, anything)
                cases.append((root.pattern(), guard, start))
                above = []
        except (DecompileError, Impure, IndexError):
            if not cases and self.g.ops[i] == "COPY":
                return None
            raise
        del stack[base:]
        return self.match_bodies(as_expr(value), cases, other, reader.blocks, block, follow, stack, out)

    def pattern_at(self: Walker, i: int, below: list, above: list, reader: PatternReader) -> tuple[Subject, list, int]:  # type: ignore[misc]
        """The subject that a pattern at ``i`` was tried on, the stack behind it, and where it ends."""
        root = Subject()
        inner = [*below, root, *above]
        try:
            return root, inner, reader.case(i, inner)
        except DecompileError:
            if self.g.ops[i] == "COPY" or above:
                raise
        root = Subject()  # ``_`` with a guard, for which the subject is not copied from 3.12 on
        root.child = Subject()
        return root, [*below, root], i

    def guarded_anything(self: Walker, i: int, start: int, block: Block, follow: Any,  # type: ignore[misc]
                         stack: list, out: list) -> tuple[bool | None, int] | None:
        """A ``match`` whose first case is ``_`` with a guard, which jumps at ``i``: from 3.12 on the subject is not copied for it."""
        depth = self.g.depth
        begin = i
        while begin > start and depth[begin] != depth[i] - 1:
            begin -= 1
        if begin == start or len(stack) != block.base + 2:
            return None
        stack.pop()
        return self.match_statement(begin, block, follow, stack, out)

    def guarded(self: Walker, i: int, stack: list, block: Block, follow: Any,  # type: ignore[misc]
                reader: PatternReader, copied: bool, anything: bool) -> tuple[ast.expr | None, int, int]:
        """The guard of a case whose pattern ended at ``i``, where its body begins, and the next case (-1 for none).

        ``copied``: the pattern was tried on a copy of the subject, as all but the last one are. ``anything``: it is ``_``.
        """
        g, base = self.g, block.base
        kept = len(stack) > base  # the subject, for the next case
        test: Node | None = None
        if kept or anything or reader.fails:
            test = self.guard_at(i, stack, block, follow, reader)
        if kept:
            if test is None:
                raise unknown()
            yes, no, expr = test.yes, test.no, test.expr
            if g.ops[yes] != "POP_TOP":
                if g.ops[no] != "POP_TOP" or is_folded(expr):
                    raise unknown()
                yes, no, expr = no, yes, negate(expr)
            return expr, g.resolve(yes + 1), no
        if anything and test is not None:
            return test.expr, test.yes, test.no
        if not reader.fails:
            return None, g.resolve(i), -1
        other = reader.dropped(reader.fails[0], base + copied)
        if other < 0:
            raise unknown()
        if test is not None and not copied:
            if test.no == other:
                return test.expr, test.yes, other
            if test.yes == other and not is_folded(test.expr):
                return negate(test.expr), test.no, other
        return None, g.resolve(i), other

    def guard_at(self: Walker, i: int, stack: list, block: Block, follow: Any, reader: PatternReader) -> Node | None:  # type: ignore[misc]
        inner = list(stack)
        floor, self.floor = self.floor, len(stack)
        try:
            kind, at = self.expression(i, inner, -1, None)
            if kind != "jump" or len(inner) != len(stack) + 1:
                return None
            test, blocks = self.test_at(i, at, block, follow, inner)
        except (DecompileError, Impure, IndexError):
            return None
        finally:
            self.floor = floor
        reader.blocks |= blocks
        return test

    def match_bodies(self: Walker, subject: ast.expr, cases: list, other: int, blocks: set[int], block: Block,  # type: ignore[misc]
                     follow: Any, stack: list, out: list) -> tuple[bool | None, int]:
        join = self.join_of(blocks, other, -1, block, follow)
        inner = frozenset((join,)) if join >= 0 else follow
        made = ast.Match(subject, [])
        out.append(made)
        falls = False
        for pattern, guard, start in cases:
            body, also = self.region(start, block, inner, stack)
            falls = falls or also
            made.cases.append(ast.match_case(pattern, guard, body or [ast.Pass()]))
        if other < 0:
            return (None, join) if falls and join >= 0 else (falls, -1)
        pattern, guard, _start = cases[-1]
        forced = guard is not None and isinstance(pattern, ast.MatchAs) and pattern.name is None  # only a last ``_`` needs no guard
        if not falls and not forced:
            return None, other
        body, also = self.region(other, block, inner, stack)
        if body or forced:
            body = body or [ast.Pass()]
            made.cases.append(ast.match_case(ast.MatchAs(None, None), None, body))
        return (None, join) if join >= 0 else (falls or also, -1)
