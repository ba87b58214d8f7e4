"""Code objects, alike on every CPython."""

from __future__ import annotations

from types import CodeType, FunctionType
from typing import Any

from .versions import VERSION

RESUME = "__resume_at_"  # begins the names of resume functions, by which the decompiler knows them


def qualified_name(code: CodeType) -> str:
    """The qualified name of functions made of ``code``: co_qualname, where CPython keeps it.

    CPython 3.10 does not. There it is what was told to ``note_name``, or found where the code around was decoded; else the simple name.
    """
    return VERSION.qualname(code)


def note_name(fn: FunctionType) -> None:
    """Tell the name of the code's functions, where its code does not."""
    VERSION.note_name(fn)


def replace_code(code: CodeType, **fields: Any) -> CodeType:
    """``code.replace``, where co_qualname may be given on every CPython."""
    return VERSION.replace(code, **fields)


def parameter_count(code: CodeType) -> int:
    """How many of ``co_varnames`` are parameters, ``*args`` and ``**kwargs`` among them."""
    stars = bool(code.co_flags & 4) + bool(code.co_flags & 8)
    return code.co_argcount + code.co_kwonlyargcount + stars
