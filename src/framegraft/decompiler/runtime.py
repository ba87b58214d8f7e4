"""What decompiled code of the engine calls for operations that Python's syntax has no words for.

Each function runs the one operation that it is named for, so that it does exactly what the original code did, and has no frame for
those who walk the stack: the operation is the caller's.
"""

from __future__ import annotations

import builtins
import functools
import sys
from types import FunctionType
from typing import Any

from .._native import note_frame  # noqa: F401 - into a list, for the tracebacks that hold the frame whose rest this one is
from ..bytecode.code import qualified_name
from ..bytecode.decode import decode
from ..bytecode.encode import encode
from ..bytecode.flow import renumber
from ..bytecode.ir import Instruction

_RETURN_TOP = (("SWAP", 2), ("POP_TOP", None), ("RETURN_VALUE", None))  # with one entry below: CPython 3.10 would never let go of it

END: Any = object()  # what ``advance`` returns for an iterator at its end


def _assembled(name: str, parameters: list[str], *operations: tuple[str, Any], cells: tuple[str, ...] = ()) -> Any:
    body = []
    for op, arg in operations:
        inst = Instruction(op, arg)
        inst.positions = (1, None, None, None)
        body.append(inst)
    template = (lambda: None).__code__
    code = encode(renumber(body), template, name=name, qualname=name, argnames=parameters, cellvars=cells, no_make_cell=cells,
                  unseen=body[1:])
    return FunctionType(code, globals(), name)


def _unseen(function: Any) -> Any:
    """``function``, whose frame is not seen."""
    body = decode(function.__code__)
    function.__code__ = encode(body, function.__code__, unseen=body[1:])
    return function


handle = _assembled(  # ``error`` is the exception being handled from now on; returns the one that was before
    "handle", ["error"], ("LOAD_FAST", "error"), ("PUSH_EXC_INFO", None), ("POP_TOP", None), ("RETURN_VALUE", None))
unhandle = _assembled(  # goes back to the exception that was being handled before
    "unhandle", ["previous"], ("LOAD_FAST", "previous"), ("POP_EXCEPT", None), ("LOAD_CONST", None), ("RETURN_VALUE", None))
reraise = _assembled(  # raises ``error`` as it is, its context untouched
    "reraise", ["error"], ("LOAD_FAST", "error"), ("RERAISE", 0))
matches = _assembled(  # whether ``except kinds`` would catch ``error``
    "matches", ["error", "kinds"], ("LOAD_FAST", "error"), ("LOAD_FAST", "kinds"), ("CHECK_EXC_MATCH", None), *_RETURN_TOP)
if hasattr(builtins, "ExceptionGroup"):
    matches_group = _assembled(  # (what ``except* kinds`` leaves, what it takes) of ``error``
        "matches_group", ["error", "kinds"], ("LOAD_FAST", "error"), ("LOAD_FAST", "kinds"), ("CHECK_EG_MATCH", None),
        ("BUILD_TUPLE", 2), ("RETURN_VALUE", None))
    unhandled = _assembled(  # what an ``except*`` statement raises in the end
        "unhandled", ["group", "raised"], ("LOAD_FAST", "group"), ("LOAD_FAST", "raised"), ("INTRINSIC", "prep_reraise_star"),
        ("RETURN_VALUE", None))
enter = _assembled(  # (``__exit__``, what ``__enter__()`` returns) of a context manager
    "enter", ["manager"], ("LOAD_FAST", "manager"), ("BEFORE_WITH", None), ("BUILD_TUPLE", 2), ("RETURN_VALUE", None))
enter_async = _assembled(
    "enter_async", ["manager"], ("LOAD_FAST", "manager"), ("BEFORE_ASYNC_WITH", None), ("BUILD_TUPLE", 2), ("RETURN_VALUE", None))
match_sequence = _assembled(
    "match_sequence", ["subject"], ("LOAD_FAST", "subject"), ("MATCH_SEQUENCE", None), *_RETURN_TOP)
match_mapping = _assembled(
    "match_mapping", ["subject"], ("LOAD_FAST", "subject"), ("MATCH_MAPPING", None), *_RETURN_TOP)
match_keys = _assembled(
    "match_keys", ["subject", "keys"], ("LOAD_FAST", "subject"), ("LOAD_FAST", "keys"), ("MATCH_KEYS", None), ("SWAP", 2),
    ("POP_TOP", None), *_RETURN_TOP)


merge = _assembled(  # into the keywords of a call of ``function``, each of which may be there only once
    "merge", ["function", "keywords", "more"], ("LOAD_FAST", "function"), ("LOAD_CONST", None), ("LOAD_FAST", "keywords"),
    ("LOAD_FAST", "more"), ("DICT_MERGE", 1), ("POP_TOP", None), ("POP_TOP", None), ("POP_TOP", None), ("LOAD_CONST", None),
    ("RETURN_VALUE", None))


@_unseen
def match_class(subject: Any, cls: Any, names: tuple, positional: int) -> Any:
    """The attributes that a class pattern takes of ``subject``, None where it does not match."""
    found = _MATCHERS.get(positional)
    if found is None:
        found = _MATCHERS[positional] = _assembled(
            "match_class", ["subject", "cls", "names"], ("LOAD_FAST", "subject"), ("LOAD_FAST", "cls"), ("LOAD_FAST", "names"),
            ("MATCH_CLASS", positional), ("RETURN_VALUE", None))
    return found(subject, cls, names)


_MATCHERS: dict[int, Any] = {}


@_unseen
def import_from(module: Any, name: str) -> Any:
    """What ``from module import name`` binds."""
    found = _assembled("import_from", ["module"], ("LOAD_FAST", "module"), ("IMPORT_FROM", name), *_RETURN_TOP)
    return found(module)


@_unseen
def value_of(cell: Any, name: str) -> Any:
    """The value of the variable ``name``, whose cell ``cell`` is. UnboundLocalError if it has none."""
    return _of_variable(("LOAD_DEREF", name), ("RETURN_VALUE", None))(cell)


@_unseen
def unbind(cell: Any, name: str) -> None:
    """``del name``, of which ``cell`` is the cell. UnboundLocalError if it has no value."""
    _of_variable(("DELETE_DEREF", name), ("LOAD_CONST", None), ("RETURN_VALUE", None))(cell)


@functools.cache
def _of_variable(*operations: tuple[str, Any]) -> Any:
    """A function of a cell, with which the operations' variable begins."""
    name = operations[0][1]
    return _assembled(name, ["__cell"], ("LOAD_FAST", "__cell"), ("STORE_CELL", name), *operations, cells=(name,))


@_unseen
def advance(iterator: Any) -> Any:
    """The next item of an iterator, END where it has none."""
    return next(iterator, END)


@_unseen
def leave(exit: Any, error: BaseException) -> Any:
    """Calls ``__exit__`` for an exception."""
    return exit(type(error), error, error.__traceback__)


def function(code: Any, closure: tuple, defaults: tuple | None = None, kwdefaults: dict | None = None,
             annotations: tuple = ()) -> FunctionType:
    """A function of the caller's globals with the very cells of ``closure``. ``annotations``: names and values in turn."""
    made = FunctionType(code, sys._getframe(1).f_globals, code.co_name, defaults, closure)
    made.__qualname__ = qualified_name(code)
    made.__kwdefaults__ = kwdefaults
    made.__annotations__ = dict(zip(annotations[::2], annotations[1::2], strict=True))
    return made
