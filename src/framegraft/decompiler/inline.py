"""Variables that stand for an entry of the stack, put back where they are used: the value dies when the original's does."""

from __future__ import annotations

import ast
import collections
from collections.abc import Iterator
from typing import Any

from .cleanup import TRIES
from .values import cleared, is_cleared

_ORDER: dict[type, tuple[str, ...]] = {  # what is evaluated, in that order
    ast.Call: ("func", "args", "keywords"), ast.keyword: ("value",), ast.Tuple: ("elts",), ast.List: ("elts",), ast.Set: ("elts",),
    ast.Attribute: ("value",), ast.Subscript: ("value", "slice"), ast.BinOp: ("left", "right"), ast.UnaryOp: ("operand",),
    ast.Starred: ("value",), ast.Return: ("value",), ast.Expr: ("value",), ast.Assign: ("value",), ast.Yield: ("value",),
    ast.If: ("test",), ast.For: ("iter",), ast.IfExp: ("test",), ast.FormattedValue: ("value",), ast.JoinedStr: ("values",),
}
_PURE = (ast.Tuple, ast.List, ast.Set, ast.keyword)


def inline(body: list[ast.stmt], names: set[str]) -> None:
    """Where a statement assigns a variable and only the next one uses it, before anything else that could tell.

    A variable of ``names`` is one that the original had on the stack; any other must be cleared by its use (``Values.move``).
    """
    counts: collections.Counter[str] = collections.Counter()
    for statement in body:
        counts.update(node.id for node in ast.walk(statement) if isinstance(node, ast.Name))
    for block in _blocks(body):
        for k in range(len(block) - 2, -1, -1):
            if _put_back(block[k], block[k + 1], names, counts):
                del block[k]


def finish(body: list[ast.stmt], owns: Any, is_structured: bool) -> None:
    """Where handlers begin, clears the variables that stand for what the exception took off the stack; and writes plainly what is
    taken out of a variable where nobody can tell. ``owns``: whether a variable stands for entries of the stack."""
    for block in list(_blocks(body)):
        for statement in block:
            if isinstance(statement, TRIES) and hasattr(statement, "unwound"):
                _unwind(statement, owns)
        block[:] = [made for statement in block for made in _plainly(statement, is_structured)]


def _unwind(made: Any, owns: Any) -> None:
    names, kept = made.unwound
    found = dict.fromkeys(n.id for part in made.body for n in ast.walk(part)
                          if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and owns(n.id))
    names = dict.fromkeys([*reversed([*found]), *reversed(names)])
    left = [name for name in names if name not in kept]
    if left:
        made.handlers[0].body.append(cleared(left))


def _plainly(statement: ast.stmt, is_structured: bool) -> Iterator[ast.stmt]:
    """``return x`` where it would be taken out of ``x``; ``y = x``, ``x = None`` in two statements."""
    value = getattr(statement, "value", None)
    name: Any = getattr(value, "moves", None)
    if isinstance(statement, ast.Return):
        statement.value = _as_result(value)
    elif isinstance(statement, ast.Expr) and name:
        yield _gone(name, is_structured)
        return
    elif isinstance(statement, ast.Assign) and name and isinstance(statement.targets[0], ast.Name) and statement.targets[0].id != name:
        statement.value = value.value.elts[0]  # type: ignore[union-attr]
        yield statement
        yield _gone(name, is_structured)
        return
    elif is_structured and isinstance(statement, ast.Assign) and len(statement.targets) == 1 and is_cleared(statement, name):
        statement = _gone(name, is_structured)
    yield statement


def _gone(name: str, is_structured: bool) -> ast.stmt:
    return ast.Delete([ast.Name(name, ast.Del())]) if is_structured else cleared((name,))


def _as_result(value: Any) -> Any:
    """A returned value: the frame ends, and all that it holds."""
    if hasattr(value, "moves"):
        return value.value.elts[0]
    if isinstance(value, (ast.Tuple, ast.List, ast.Set)):
        value.elts = [_as_result(part) for part in value.elts]
    return value


def _blocks(body: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
    yield body
    for statement in body:
        for field in ("body", "orelse", "finalbody"):
            yield from _blocks(getattr(statement, field, None) or [])
        for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            yield from _blocks(part.body)


def _put_back(first: ast.stmt, then: ast.stmt, names: set[str], counts: collections.Counter[str]) -> bool:
    if not isinstance(first, ast.Assign) or not isinstance(first.targets[0], ast.Name) or len(first.targets) > 1:
        return False
    name = first.targets[0].id
    written = {n.id for n in ast.walk(first.value) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    if written and not written.isdisjoint(n.id for n in ast.walk(then) if isinstance(n, ast.Name)):
        return False
    place = _use(then, name)
    if not isinstance(place, tuple):
        return False
    node, field, at = place
    old = getattr(node, field) if at is None else getattr(node, field)[at]
    if counts[name] != 2 or name not in names if isinstance(old, ast.Name) else counts[name] != 3:
        return False
    if at is None:
        setattr(node, field, first.value)
    else:
        getattr(node, field)[at] = first.value
    return True


def _use(node: Any, name: str) -> Any:
    """(node, field, index or None) of the use of ``name``; True if ``node`` has none and nobody can tell when it is evaluated,
    False if it may matter."""
    fields = _ORDER.get(type(node))
    if fields is None:
        return False
    for field in fields:
        value = getattr(node, field)
        for at, part in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if _is_use(part, name):
                return node, field, at
            if part is None or isinstance(part, ast.Constant) or getattr(part, "is_local", False):
                continue
            found = _use(part, name)
            if found is not True:
                return found
    return isinstance(node, _PURE)


def _is_use(node: Any, name: str) -> bool:
    """The variable, or ``(name, (name := None))[0]``."""
    return isinstance(node, ast.Name) and node.id == name or getattr(node, "moves", None) == name
