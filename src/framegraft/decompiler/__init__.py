"""Decompiler: from code objects back to source, proven by compiling the source again."""

from __future__ import annotations

import ast
from contextlib import suppress
from types import CodeType, FunctionType, MethodType

from ..bytecode.ir import Instruction
from ..errors import DecompileError
from .copies import LONG, SHORT
from .emitted import Emitter, has_marks, is_emitted
from .resumed import untangled
from .unparse import unparse
from .verify import FUTURE, Known, check, recompile, source_name
from .walker import Walker


def decompile(code: CodeType | FunctionType | MethodType) -> str:
    """Python source of a function's code.

    The source defines a function of the code's name (``__decompiled`` where that is no identifier). Free variables are free
    in it, or declared nonlocal; a constant that has no literal is the string ``'__co_consts[i]'``.

    Raises:
        DecompileError: the code does something that no source compiles to, or that is not understood. What is returned
            was compiled again and compared with the original, instruction by instruction along every way, so it is never
            wrong silently.
        TypeError: ``code`` is no function written in Python.
    """
    if not isinstance(code, CodeType):
        found = getattr(code, "__code__", None)
        if not isinstance(found, CodeType):
            raise TypeError(f"decompile takes a function or method written in Python, or its code object, not {code!r:.80}; "
                            "of a class or module, name a method")
        code = found
    future = code.co_flags & FUTURE
    name = source_name(code)
    for insts in untangled(code):
        with suppress(DecompileError):
            return _compiled(code, name, future, insts)
    joined = 0 if has_marks(code) else SHORT
    with suppress(DecompileError):
        return _compiled(code, name, future, None, joined)
    try:
        return _compiled(code, name, future, None, SHORT - joined)
    except DecompileError:
        if not is_emitted(code):
            with suppress(DecompileError):
                return _compiled(code, name, future, None, LONG)
            raise
    return _emitted(code, name, future)


def _compiled(code: CodeType, name: str, future: int, insts: list[Instruction] | None = None, joined: int = 0) -> str:
    """For code that the compiler made: proven by comparing it with what the source is compiled to.

    ``insts``: instructions that do the same as the code's, to decompile in their place. ``joined``: see ``Graph``.
    """
    try:
        walker = Walker(code, None, insts, joined)
        walker.walk_body()
        tree = ast.Module([walker.function_node(None, name)], [])
    except DecompileError:
        raise
    except Exception as error:
        raise DecompileError(f"{code.co_name}: {type(error).__name__}: {error}") from error
    known = _decoded(walker)
    if walker.has_lines:
        try:
            return _proven(tree, True, code, name, future, known)
        except DecompileError:
            pass
    return _proven(tree, False, code, name, future, known)


def _decoded(walker: Walker) -> Known:
    found = {id(walker.code): walker.g.insts}
    for inner in walker.nested.values():
        found |= _decoded(inner)
    return found


def _emitted(code: CodeType, name: str, future: int) -> str:
    """For code that the engine made, which no source is compiled to: right by construction."""
    try:
        walker = Emitter(code)
        walker.walk_body()
        source = unparse(ast.Module([walker.function_node(None, name)], []))
        recompile(source, code, name, future)
    except DecompileError:
        raise
    except Exception as error:
        raise DecompileError(f"{code.co_name}: {type(error).__name__}: {error}") from error
    return source


def _proven(tree: ast.Module, lines: bool, code: CodeType, name: str, future: int, known: Known) -> str:
    try:
        source = unparse(tree, lines)
        made = recompile(source, code, name, future)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise DecompileError(f"{code.co_name}: {type(error).__name__}: {error}") from error
    check(code, made, known=known)
    return source


__all__ = ["DecompileError", "decompile"]
