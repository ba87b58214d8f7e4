"""Statements that say nothing: a ``return`` or ``continue`` at the end, where control goes there anyway."""

from __future__ import annotations

import ast
from typing import Any

from .conditions import is_folded, negate

TRIES = (ast.Try, ast.TryStar) if hasattr(ast, "TryStar") else (ast.Try,)


def tidy(body: list[ast.stmt]) -> list[ast.stmt]:
    """Drops the ``return None`` at the end of a function."""
    strip(body, _is_return)
    return body


def _is_return(node: ast.stmt) -> bool:
    if not isinstance(node, ast.Return):
        return False
    return node.value is None or isinstance(node.value, ast.Constant) and node.value.value is None


def is_continue(node: ast.stmt) -> bool:
    return isinstance(node, ast.Continue)


def strip(body: list[Any], says_nothing: Any) -> None:
    """Drops such statements from the places behind which ``body`` ends."""
    while body and says_nothing(body[-1]):
        body.pop()
    if not body:
        return
    last = body[-1]
    if isinstance(last, ast.If):
        strip(last.body, says_nothing)
        strip(last.orelse, says_nothing)
        if not last.body:
            if last.orelse and not is_folded(last.test):
                last.test, last.body, last.orelse = negate(last.test), last.orelse, []
            else:
                last.body = [ast.Pass()]
    elif isinstance(last, (ast.With, ast.AsyncWith)):
        strip(last.body, says_nothing)
        last.body = last.body or [ast.Pass()]
    elif isinstance(last, ast.Match):
        for case in last.cases:
            strip(case.body, says_nothing)
            case.body = case.body or [ast.Pass()]
    elif isinstance(last, TRIES):
        if last.orelse:
            strip(last.orelse, says_nothing)
        else:
            strip(last.body, says_nothing)
            last.body = last.body or [ast.Pass()]
        for handler in last.handlers:
            strip(handler.body, says_nothing)
            handler.body = handler.body or [ast.Pass()]
