"""Source that code was decompiled to, compiled to run in the place of that code."""

from __future__ import annotations

from types import CodeType
from typing import Any

from ..bytecode.code import qualified_name, replace_code
from ..bytecode.encode import hiding
from ..errors import DecompileError
from .verify import FUTURE, PLACE, recompile, source_name

_RAISES_AGAIN = ("__reraise",)  # the instruction that it stands for adds nothing to a traceback


def compiled_for(source: str, code: CodeType, name: str | None = None, filename: str | None = None) -> CodeType:
    """The function ``name`` (by default the code's own) of ``source`` as a code object that can stand for ``code``.

    Constants without a literal are those of ``code``; what the source defines is in ``filename``, by default the code's own.

    Raises:
        DecompileError: there is no such function, or it takes other arguments or variables from outside.
        SyntaxError: the source has been changed since it was decompiled.
    """
    name = name or source_name(code)
    made = recompile(source, code, name, code.co_flags & FUTURE)
    if made.co_freevars != code.co_freevars or made.co_argcount != code.co_argcount:
        raise DecompileError(f"{name}: other parameters or free variables")
    filename = filename or code.co_filename
    inner = {const.co_name: qualified_name(const) for const in code.co_consts if isinstance(const, CodeType)}
    consts = tuple(_constant(const, code, inner, filename) for const in made.co_consts)
    made = replace_code(made, co_consts=consts, co_name=code.co_name, co_qualname=qualified_name(code), co_filename=filename)
    return hiding(made, _RAISES_AGAIN)


def _constant(const: Any, code: CodeType, inner: dict[str, str], filename: str) -> Any:
    if type(const) is tuple:
        return tuple(_constant(item, code, inner, filename) for item in const)
    if isinstance(const, CodeType):
        const = _of_file(const, filename)
        return replace_code(const, co_qualname=inner[const.co_name]) if const.co_name in inner else const
    place = PLACE.match(const) if isinstance(const, str) else None
    return code.co_consts[int(place[1])] if place else const


def _of_file(value: Any, filename: str) -> Any:
    if not isinstance(value, CodeType):
        return value
    return value.replace(co_filename=filename, co_consts=tuple(_of_file(const, filename) for const in value.co_consts))
