"""Source of a syntax tree; conditions that need it are broken into lines."""

from __future__ import annotations

import ast
from typing import Any

_Unparser: Any = getattr(ast, "_Unparser")  # noqa: B009


class _Lines(_Unparser):
    """Begins conditions inside of conditions on lines of their own where the original did.

    The compiler threads a jump that keeps a condition's value through one that tests it again only if both are on one line,
    and the line of a jump is the one its condition begins on.
    """

    outer: Any = None  # the line of the condition around

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        line = getattr(node, "line_", None)
        outer, self.outer = self.outer, line
        if outer is not None and line != outer and not self._avoid_backslashes:  # those stand in f-strings
            with self.delimit("(\n" + "    " * (self._indent + 1), ")"):
                self.set_precedence(0, node)
                super().visit_BoolOp(node)
        else:
            super().visit_BoolOp(node)
        self.outer = outer

    def visit_Call(self, node: ast.Call) -> None:
        outer, self.outer = self.outer, None
        super().visit_Call(node)
        self.outer = outer


def unparse(tree: ast.AST, lines: bool = False) -> str:
    """``ast.unparse``, or with ``lines`` the same with inner conditions on their own lines."""
    return _Lines().visit(tree) if lines else ast.unparse(tree)
