"""Conditional jumps: short circuits, conditional expressions, comparison chains and ``if`` statements.

A test is a small graph of nodes, one for each conditional jump, which ``reduce_nodes`` folds two or three at a time: what
``compiler_jump_if``, ``compiler_boolop`` and ``compiler_ifexp`` made of it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ..errors import DecompileError
from .blocks import Block, continues
from .expressions import _COMPARE as COMPARE
from .expressions import compare, pop
from .items import Chain, as_expr
from .stores import Impure

if TYPE_CHECKING:
    from .walker import Walker

_FOLDED = (ast.Is, ast.IsNot, ast.In, ast.NotIn)
VALUE = -2  # target of an edge that keeps the condition's value as the value of the whole expression


class Node:
    """A condition with two ways on, or (``yes == no == VALUE``, ``is_value``) a plain value."""

    __slots__ = ("start", "expr", "yes", "no", "jumps_on", "is_value", "line")

    def __init__(self, start: int, expr: ast.expr, yes: int, no: int, jumps_on: bool = False, is_value: bool = False,
                 line: int | None = None) -> None:
        self.start, self.expr, self.yes, self.no = start, expr, yes, no
        self.jumps_on = jumps_on  # whether it jumps where the condition holds
        self.is_value = is_value
        self.line = line  # of the jump


def negate(test: ast.expr) -> ast.expr:
    """``not test``, without a double negation."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    if getattr(test, "is_none_test", False):
        return none_test(test.left, ast.Is() if isinstance(test.ops[0], ast.IsNot) else ast.IsNot())  # type: ignore[attr-defined]
    return ast.UnaryOp(ast.Not(), test)


def none_test(node: ast.expr, op: ast.cmpop) -> ast.expr:
    """``node is None`` or ``node is not None``: the jumps on None come from either."""
    made = ast.Compare(node, [op], [ast.Constant(None)])
    made.is_none_test = True  # type: ignore[attr-defined]
    return made


def is_folded(test: ast.expr) -> bool:
    """Whether ``not test`` compiles to another operation: the compiler folds ``not a in b`` into ``a not in b``."""
    return (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], _FOLDED)
            and not getattr(test, "is_none_test", False))


def _bool(op: ast.boolop, left: ast.expr, right: ast.expr, line: int | None) -> ast.expr:
    values = []
    for part in (left, right):
        values += part.values if isinstance(part, ast.BoolOp) and type(part.op) is type(op) else [part]
    made = ast.BoolOp(op, values)
    made.line_ = line  # type: ignore[attr-defined]
    return made


def reduce_nodes(nodes: list[Node]) -> list[Node]:
    """Folds neighbours until nothing more fits together."""
    changed = True
    while changed and len(nodes) > 1:
        changed = False
        for k in range(len(nodes) - 2, -1, -1):
            made = _pair(nodes[k], nodes[k + 1], nodes)
            if made is not None:
                nodes[k : k + 2] = [made]
                changed = True
            elif k + 2 < len(nodes):
                made = _triple(nodes[k], nodes[k + 1], nodes[k + 2], nodes)
                if made is not None:
                    nodes[k : k + 3] = [made]
                    changed = True
    return nodes


def _only_from(node: Node, nodes: list[Node], *sources: Node) -> bool:
    return all(n in sources or node.start not in (n.yes, n.no) for n in nodes)


def _pair(a: Node, b: Node, nodes: list[Node]) -> Node | None:
    if a.is_value or not _only_from(b, nodes, a):
        return None
    if b.is_value:
        if a.yes == b.start and a.no == VALUE:
            return Node(a.start, _bool(ast.And(), a.expr, b.expr, a.line), VALUE, VALUE, is_value=True)
        if a.no == b.start and a.yes == VALUE:
            return Node(a.start, _bool(ast.Or(), a.expr, b.expr, a.line), VALUE, VALUE, is_value=True)
        return None
    if b.start not in (a.yes, a.no):
        return None
    onwards = a.yes == b.start  # the second condition is asked where the first holds
    away = a.no if onwards else a.yes
    op, other = (ast.And(), ast.Or()) if onwards else (ast.Or(), ast.And())
    same, opposite = (b.no, b.yes) if onwards else (b.yes, b.no)

    def joined(kind: ast.boolop, left: ast.expr) -> Node:
        return Node(a.start, _bool(kind, left, b.expr, a.line), b.yes, b.no, b.jumps_on, line=b.line)

    if away == same:
        return joined(op, a.expr)
    if away != opposite or away == VALUE:
        return None
    if _flips(a, b):  # a and not b, a or not b
        return Node(a.start, _bool(op, a.expr, negate(b.expr), a.line), b.no, b.yes, not b.jumps_on, line=b.line)
    return None if is_folded(a.expr) else joined(other, negate(a.expr))


def _flips(a: Node, b: Node) -> bool:
    """Whether the second condition rather than the first is the negated one: the one that jumps in the other sense."""
    if VALUE in (b.yes, b.no) or is_folded(b.expr):
        return False
    return is_folded(a.expr) or b.jumps_on


def _triple(a: Node, b: Node, c: Node, nodes: list[Node]) -> Node | None:
    if a.is_value or b.is_value != c.is_value or (b.yes, b.no) != (c.yes, c.no):
        return None
    if not (_only_from(b, nodes, a) and _only_from(c, nodes, a)):
        return None
    if a.yes == b.start and a.no == c.start:
        return Node(a.start, ast.IfExp(a.expr, b.expr, c.expr), b.yes, b.no, b.jumps_on, b.is_value)
    if a.no == b.start and a.yes == c.start:
        return Node(a.start, ast.IfExp(negate(a.expr), b.expr, c.expr), b.yes, b.no, b.jumps_on, b.is_value)
    return None


class Conditions:
    """The walker's part for conditional jumps."""

    # -- pieces

    def is_keep(self: Walker, i: int) -> bool:  # type: ignore[misc]
        """Whether COPY, POP_JUMP_IF, POP_TOP from ``i`` on are one JUMP_IF_..._OR_POP."""
        ops, insts = self.g.ops, self.g.insts
        if ops[i : i + 3] != ["COPY", "POP_JUMP_IF", "POP_TOP"]:
            return False
        return insts[i].arg == 1 and insts[i + 1].arg in ("true", "false")

    def value_join(self: Walker, i: int) -> tuple[int, bool]:  # type: ignore[misc]
        """Where the value comes about that the condition at ``i`` (COPY of a kept one, or POP_JUMP_IF) decides on.

        ``(-1, False)`` for the jump of a statement. The second entry tells that the place was found among copies of a short
        exit (``return f(a if b else c)`` ends in two copies of the call and the return).
        """
        g = self.g
        depth = g.depth[i]
        jump = i + 1 if g.ops[i] == "COPY" else i
        if not self.is_expression:
            join = g.join(jump)
            if join >= 0 and g.depth[join] == depth:
                return join, False
            if depth <= self.floor + 1 and jump == i:
                return -1, False
        join = g.join(jump, merged=True)
        return (join, True) if join >= 0 and g.depth[join] == depth else (-1, False)

    def chained(self: Walker, i: int, stack: list) -> int:  # type: ignore[misc]
        """SWAP 2, COPY 2, comparison, jump: one link of a comparison chain. -1 where that is not there."""
        g = self.g
        insts, ops = g.insts, g.ops
        if insts[i].arg != 2 or ops[i + 1] != "COPY" or insts[i + 1].arg != 2 or ops[i + 2] != "APPLY":
            return -1
        op = COMPARE.get(insts[i + 2].arg[0])
        at = i + 3
        if op is None:
            return -1
        if ops[at] == "COPY":
            if not self.is_keep(at):
                return -1
            jump, after = at + 1, at + 3
        elif ops[at] == "POP_JUMP_IF":
            jump, after = at, at + 1
        else:
            return -1
        right, left = pop(stack), stack.pop()
        compare(left, op(), right, stack)
        node = stack.pop()
        stack.append(Chain(node, g.raw_target(jump)))
        return after

    def line(self: Walker, i: int) -> int | None:  # type: ignore[misc]
        positions = self.g.insts[i].positions
        return positions and positions[0]

    # -- expressions

    def node(self: Walker, start: int, i: int, stack: list) -> Node:  # type: ignore[misc]
        """The node of the conditional jump at ``i`` (COPY of a kept condition, or POP_JUMP_IF); pops the condition."""
        g = self.g
        if isinstance(stack[-1], Chain) and g.ops[i] != "COPY":
            return self.chain_end(start, i, stack.pop())
        test = pop(stack)
        if g.ops[i] == "COPY":
            go_on = g.resolve(i + 3)
            yes, no = (VALUE, go_on) if g.insts[i + 1].arg == "true" else (go_on, VALUE)
            return Node(start, test, yes, no, line=self.line(i + 1))
        arg, target, after = g.insts[i].arg, g.target(i), g.next(i)
        if arg == "true":
            return Node(start, test, target, after, True, line=self.line(i))
        if arg != "false":
            test = none_test(test, ast.IsNot() if arg == "none" else ast.Is())
        return Node(start, test, after, target, line=self.line(i))

    def chain_end(self: Walker, start: int, i: int, chain: Chain) -> Node:  # type: ignore[misc]
        """``... is None`` at the end of a chain; where the links before lead to tells which way is which."""
        g = self.g
        arg, target, after = g.insts[i].arg, g.target(i), g.next(i)
        if arg not in ("none", "not_none"):
            raise DecompileError("a comparison chain without its end")
        failed = g.next(chain.cleanup) if g.ops[chain.cleanup] == "POP_TOP" else -1
        yes, no = (after, target) if failed == target else (target, after)
        op = ast.Is() if (yes == target) == (arg == "none") else ast.IsNot()
        node = chain.node
        return Node(start, ast.Compare(node.left, [*node.ops, op], [*node.comparators, ast.Constant(None)]), yes, no)

    def value_condition(self: Walker, i: int, stack: list) -> int:  # type: ignore[misc]
        """Folds the expression of which the condition on top is the first one; the instruction behind it."""
        g = self.g
        join, merged = self.value_join(i)
        if join < 0:
            raise DecompileError(f"a jump inside of an expression leads out of it at offset {g.insts[i].offset}")
        rep = g.rep if merged else None
        nodes = [self.node(i, i, stack)]
        starts = {i}
        end = -1
        while True:
            start = min((t for n in nodes for t in (n.yes, n.no) if t != VALUE and t not in starts), default=-1)
            if start < 0:
                break
            starts.add(start)
            inner = list(stack)
            kind, at = self.expression(start, inner, join, rep)
            if kind == "value":
                end = at
                nodes.append(Node(start, as_expr(inner.pop()), VALUE, VALUE, is_value=True))
            else:
                nodes.append(self.node(start, at, inner))
        reduce_nodes(nodes)
        if len(nodes) != 1 or not nodes[0].is_value:
            raise DecompileError(f"a condition of unknown shape at offset {g.insts[i].offset}")
        stack.append(nodes[0].expr)
        return end

    # -- statements

    def test_at(self: Walker, start: int, i: int, block: Block, follow: Any, stack: list) -> tuple[Node, set[int]]:  # type: ignore[misc]
        """The whole test that begins at ``start`` and of which ``i`` is the first jump, and the blocks of its jumps."""
        g = self.g
        nodes = [self.node(start, i, stack)]
        used = {g.block_of[i]}
        starts = {start}
        while True:
            last = nodes[-1].start
            new = min((t for n in nodes for t in (n.yes, n.no) if t > last and t not in starts), default=-1)
            if new < 0 or new in follow or new in g.back or g.handler[new] != block.handler or not self.only_from(new, used):
                break
            if new in block.cont or new == block.brk:
                break
            inner = list(stack)
            try:
                _kind, at = self.expression(new, inner, -1, None)
            except (Impure, DecompileError):
                break
            starts.add(new)
            nodes.append(self.node(new, at, inner))
            used.add(g.block_of[at])
        reduce_nodes(nodes)
        blocks = {g.block_of[start], g.block_of[i]}
        first = nodes[0]
        rest = {n.start for n in nodes[1:]}
        blocks |= {b for b in used if not any(g.starts[b] >= s for s in rest)}
        return first, blocks

    def only_from(self: Walker, i: int, blocks: set[int]) -> bool:  # type: ignore[misc]
        """Whether control gets to ``i`` only out of ``blocks``, plain jumps between them skipped."""
        g = self.g
        b = g.block_of[i]
        if g.starts[b] != i:
            return False
        todo = list(g.preds[b])
        while todo:
            pred = todo.pop()
            if pred in blocks:
                continue
            if g.ops[g.starts[pred]] != "JUMP":
                return False
            todo += g.preds[pred]
        return True

    def conditional(self: Walker, i: int, start: int, block: Block, follow: Any, stack: list, out: list) -> tuple[bool | None, int]:  # type: ignore[misc]
        """A conditional jump met while statements are walked: part of an expression, or an ``if`` or ``while``."""
        g = self.g
        if self.value_join(i)[0] >= 0:
            return None, self.value_condition(i, stack)
        if len(stack) != block.base + 1:
            matched = self.guarded_anything(i, start, block, follow, stack, out)
            if matched is None:
                raise DecompileError(f"a jump inside of an expression leads out of it at offset {g.insts[i].offset}")
            return matched
        test, blocks = self.test_at(start, i, block, follow, stack)
        if test.yes in g.back or test.no in g.back:
            after = self.while_from_test(start, test, block, follow, stack, out)
            if after is not None:
                return after
        return self.if_statement(test, blocks, block, follow, stack, out)

    def if_statement(self: Walker, test: Node, blocks: set[int], block: Block, follow: Any,  # type: ignore[misc]
                     stack: list, out: list) -> tuple[bool | None, int]:
        yes, no, expr = test.yes, test.no, test.expr
        if is_folded(expr):
            pass  # cannot be negated
        elif no < yes and not (no in block.cont and no < test.start):
            yes, no, expr = no, yes, negate(expr)
        elif yes < test.start and yes not in block.cont and no > test.start:
            yes, no, expr = no, yes, negate(expr)
        join = self.join_of(blocks, yes, no, block, follow)
        if join >= 0:
            inner: Any = frozenset((join,))
            body, falls = self.region(yes, block, inner, stack)
            orelse, also = self.region(no, block, inner, stack)
            self.append_if(out, expr, body, falls, orelse)
            return (None, join) if falls or also else (False, -1)
        if continues(yes, block) and yes < test.start and no not in follow and not self.is_comprehension:
            body, falls = [ast.Continue()], False
        else:
            body, falls = self.region(yes, block, follow, stack)
        if not falls:
            self.append_if(out, expr, body, falls, [])
            return None, no
        orelse, also = self.region(no, block, follow, stack)
        self.append_if(out, expr, body, falls, orelse)
        return True, -1

    def append_if(self: Walker, out: list, test: ast.expr, body: list, falls: bool, orelse: list) -> None:  # type: ignore[misc]
        if len(body) == 1 and isinstance(body[0], ast.Assert) and getattr(body[0], "raised", False):
            out.append(ast.Assert(negate(test), body[0].msg))
            out += orelse
            return
        if not body and orelse and not is_folded(test):
            body, orelse, test = orelse, [], negate(test)
        if not falls and orelse:
            out.append(ast.If(test, body, []))
            out += orelse
            return
        out.append(ast.If(test, body or [ast.Pass()], orelse))

    def join_of(self: Walker, blocks: set[int], yes: int, no: int, block: Block, follow: Any) -> int:  # type: ignore[misc]
        """Where the two ways of an ``if`` meet again; -1 where they do so no sooner than at the region's end, or never."""
        g = self.g
        best = -1
        for b in blocks:
            for child in g.children[b]:
                if not g.merges[child] or child in blocks:
                    continue
                start = g.starts[child]
                if g.depth[start] != block.base or start <= best:
                    continue
                if block.handler >= 0 and block.handler not in g.chain(g.handler[start]):
                    continue  # behind the end of the block
                at = g.resolve(start)
                if at in follow or self.is_loop_target(at, block) or self.only_from(start, blocks):
                    continue
                best = start
        return g.resolve(best) if best >= 0 else -1

    def is_loop_target(self: Walker, i: int, block: Block) -> bool:  # type: ignore[misc]
        b: Block | None = block
        while b is not None:
            if b.is_loop and (i in b.cont or i == b.brk):
                return True
            b = b.parent
        return False
