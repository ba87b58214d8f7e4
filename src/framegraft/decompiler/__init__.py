"""Decompiler: from code objects back to source, proven by compiling the source again."""

from __future__ import annotations
import __future__

import ast
from types import CodeType, FunctionType, MethodType

from ..errors import DecompileError
from .unparse import unparse
from .verify import check, recompile
from .walker import Walker

_FUTURE = 0
for _name in __future__.all_feature_names:
    _FUTURE |= getattr(__future__, _name).compiler_flag
_FUTURE &= ~0x10  # nested_scopes shares CO_NESTED


def decompile(code: CodeType | FunctionType | MethodType) -> str:
    """Python source of a function's code.

    The source defines a function of the code's name (``__decompiled`` where that is no identifier). Free variables are free
    in it, or declared nonlocal; a constant that has no literal is the string ``'__co_consts[i]'``.

    Raises:
        DecompileError: the code does something that no source compiles to, or that is not understood. What is returned
            was compiled again and compared with the original, instruction by instruction along every way, so it is never
            wrong silently.
    """
    if not isinstance(code, CodeType):
        code = code.__code__
    future = code.co_flags & _FUTURE
    name = code.co_name if code.co_name.isidentifier() else "__decompiled"
    try:
        walker = Walker(code)
        walker.walk_body()
        tree = ast.Module([walker.function_node(None, name)], [])
    except DecompileError:
        raise
    except Exception as error:
        raise DecompileError(f"{code.co_name}: {type(error).__name__}: {error}") from error
    if walker.has_lines:
        try:
            return _proven(tree, True, code, name, future)
        except DecompileError:
            pass
    return _proven(tree, False, code, name, future)


def _proven(tree: ast.Module, lines: bool, code: CodeType, name: str, future: int) -> str:
    try:
        source = unparse(tree, lines)
        made = recompile(source, code, name, future)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise DecompileError(f"{code.co_name}: {type(error).__name__}: {error}") from error
    check(code, made)
    return source


__all__ = ["DecompileError", "decompile"]
