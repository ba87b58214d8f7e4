"""Variables that stand for an entry of the stack, put back where they are used: the value dies when the original's does."""

from __future__ import annotations

import ast
import collections
from collections.abc import Iterator
from typing import Any

from .values import holds_error, taken_out

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


def let_go_of_errors(body: list[ast.stmt], names: set[str]) -> None:
    """Where a call gets an exception for good, its variable is cleared: the exception knows the frame, and would keep it alive, and
    all frames that wait for it. ``names``: variables that stand for entries of the stack. (A variable of an error is set before it is
    used once, and compared only with None.)"""
    nodes = [n for part in body for n in ast.walk(part)]
    loads = collections.Counter(n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    tests = collections.Counter(n.left.id for n in nodes if isinstance(n, ast.Compare) and isinstance(n.left, ast.Name))
    _let_go(body, names, {name for name, count in loads.items() if count - tests[name] == 1})


def _let_go(body: list[ast.stmt], names: set[str], last: set[str]) -> None:
    for statement in body:
        if isinstance(statement, ast.If):
            _let_go(statement.body, names, last)
            _let_go(statement.orelse, names, last)
        value = getattr(statement, "value", None)
        if not isinstance(value, ast.Call):
            continue
        used = [n.id for n in ast.walk(value) if isinstance(n, ast.Name)]
        for at, arg in enumerate(value.args):
            if not isinstance(arg, ast.Name) or used.count(arg.id) > 1:
                continue
            ends = isinstance(statement, ast.Return) and (arg.id in names or holds_error(arg.id))
            if ends or arg.id in last and arg.id.startswith("__error_"):
                value.args[at] = taken_out(arg, arg.id)


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
