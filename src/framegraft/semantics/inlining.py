"""Calls of Python functions inlined: their arguments bound, a frame of their own."""

from __future__ import annotations

import functools
import types
from typing import Any

from ..bytecode.code import note_name, qualified_name, replace_code
from ..errors import GraphBreak, UserRaise
from ..interp import frame as frames
from ..interp.state import user_error
from ..model.value import MISSING, CellVariable, ConstantVariable, DictVariable, GeneratorVariable, TupleVariable, VariableTracker

Args = list[VariableTracker]
Kwargs = dict[str, VariableTracker]
MAX_DEPTH = 180
LOOKS_AT_FRAME: list[Any] = []  # set by run.convert: (code) -> whether it may see that its frame is not a real one


def run_inline(tx: Any, code: Any, scope: Any, bound: Kwargs, closure: list, fn: Any, waiting: bool = False) -> VariableTracker:
    if len(tx.state.frames) > MAX_DEPTH:
        raise GraphBreak("recursion", f"more than {MAX_DEPTH} calls deep")
    if LOOKS_AT_FRAME[0](code):
        raise GraphBreak("introspection", f"{qualified_name(code)} may look at its own frame")
    inner = frames.InstructionTranslator(tx.state, code, scope)
    start_frame(inner, code, bound, closure)
    inner.fn = fn
    inner.breakable = waiting
    if code.co_flags & frames.CO_GENERATOR:
        inner.breakable = False
        if fn is not None:
            note_name(fn)
        if fn is not None and (fn.__name__, fn.__qualname__) != (code.co_name, qualified_name(code)):
            raise GraphBreak("untraceable_call", "a generator of a function that was given another name")
        made = GeneratorVariable(inner)
        tx.state.generators.append(made)
        return made
    if code.co_flags & (frames.CO_COROUTINE | frames.CO_ASYNC_GENERATOR):
        raise GraphBreak("untraceable_call", "a coroutine")
    depth = len(tx.state.exceptions)
    try:
        return inner.run()[1]
    finally:
        del tx.state.exceptions[depth:]


def start_frame(inner: Any, code: Any, bound: Kwargs, closure: list) -> None:
    """Lay bound arguments and closure cells out as the frame's locals (CPython: initialize_locals, MAKE_CELL)."""
    if code.co_cellvars:
        for name in code.co_cellvars:
            inner.cells[name] = CellVariable(bound.pop(name, MISSING))
    inner.cells.update(zip(code.co_freevars, closure, strict=True))
    inner.locals = bound
    if code.co_argcount:
        first = code.co_varnames[0]
        inner.first_arg = bound.get(first)
        if inner.first_arg is None and first in inner.cells:
            inner.first_arg = inner.cells[first].contents


@functools.lru_cache(maxsize=1000)
def _stub(code: types.CodeType) -> types.CodeType:
    """A function body that does nothing, with the same parameters."""
    nothing = (lambda: None).__code__
    kept = code.co_flags & (frames.CO_VARARGS | frames.CO_VARKEYWORDS)
    return replace_code(
        nothing, co_argcount=code.co_argcount, co_posonlyargcount=code.co_posonlyargcount, co_kwonlyargcount=code.co_kwonlyargcount,
        co_nlocals=code.co_argcount + code.co_kwonlyargcount + kept.bit_count(), co_flags=nothing.co_flags | kept,
        co_varnames=code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + kept.bit_count()],
        co_name=code.co_name, co_qualname=qualified_name(code))


def _mismatch(code: types.CodeType, name: str, args: Args, kwargs: Kwargs, defaults: Args, kwdefaults: Kwargs) -> UserRaise:
    """The TypeError that the interpreter words for such a call."""
    stub = types.FunctionType(_stub(code), {}, code.co_name, tuple(defaults))
    stub.__qualname__ = name
    stub.__kwdefaults__ = dict(kwdefaults)
    try:
        stub(*args, **kwargs)
    except TypeError as error:
        return UserRaise(user_error(TypeError, *error.args))
    raise AssertionError(f"the call of {name} fits its parameters")


def bind_arguments(
    tx: Any, code: Any, name: str, args: Args, kwargs: Kwargs, defaults: Args, kwdefaults: Kwargs
) -> Kwargs:
    """Arguments by parameter name; a mismatch is the traced program's TypeError, which eager words best."""
    count, kwonly = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames
    bound: Kwargs = dict(zip(names[:count], args, strict=False))
    position = count + kwonly
    if code.co_flags & frames.CO_VARARGS:
        bound[names[position]] = TupleVariable(list(args[count:]))
        position += 1
    elif len(args) > count:
        raise _mismatch(code, name, args, kwargs, defaults, kwdefaults)
    extra: Kwargs = {}
    allowed = names[code.co_posonlyargcount : count + kwonly]
    for key, value in kwargs.items():
        if key in allowed:
            if key in bound:
                raise _mismatch(code, name, args, kwargs, defaults, kwdefaults)
            bound[key] = value
        else:
            extra[key] = value
    if code.co_flags & frames.CO_VARKEYWORDS:
        bound[names[position]] = DictVariable({k: (ConstantVariable(k), v) for k, v in extra.items()})
    elif extra:
        raise _mismatch(code, name, args, kwargs, defaults, kwdefaults)
    for index in range(len(args), count):
        key = names[index]
        if key not in bound:
            offset = index - (count - len(defaults))
            if offset < 0:
                raise _mismatch(code, name, args, kwargs, defaults, kwdefaults)
            bound[key] = defaults[offset]
    for key in names[count : count + kwonly]:
        if key not in bound:
            if key not in kwdefaults:
                raise _mismatch(code, name, args, kwargs, defaults, kwdefaults)
            bound[key] = kwdefaults[key]
    return bound
