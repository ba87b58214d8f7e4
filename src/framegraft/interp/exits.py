"""What the exit of a ``with`` statement does where an exception passes, as far as its code tells.

One that ends the exception, raises another one or notes it must run where a graph fails inside of the block. One that only sets a
mode of torch back need not: that is done for all of them. Where the block was entered before a break, the object is there and its
exit can be called; only one that may end the exception is in the way then.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import threading
import types
from typing import Any

from ..bytecode.flow import reachable
from ..model.value import (
    BuiltinMethodVariable,
    FunctionVariable,
    GeneratorVariable,
    MethodVariable,
    ObjectVariable,
    VariableTracker,
)
from .frame import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR, instructions_of

_BY_GENERATOR: Any = contextlib._GeneratorContextManager.__exit__.__code__
_LOCKS = (type(threading.Lock()), type(threading.RLock()))
_IDLE = ("RESUME", "NOP", "LOAD_CONST", "RETURN_VALUE", "COPY_FREE_VARS", "MAKE_CELL")


def may_mind(leave: VariableTracker) -> bool:
    """False only for ``__exit__`` methods that are known to let an exception pass, and to do nothing of their own.

    ``leave`` is the bound method.
    """
    return _may(leave, minds=True)


def may_end(leave: VariableTracker) -> bool:
    """False only for ``__exit__`` methods that are known not to end an exception."""
    return _may(leave, minds=False)


def _may(leave: VariableTracker, minds: bool) -> bool:
    if isinstance(leave, BuiltinMethodVariable):
        return False  # those that a trace calls belong to locks and modes of torch's
    function, obj = _parts(leave)
    if getattr(_real(function), "__objclass__", None) in _LOCKS:
        return False
    code = function.code if isinstance(function, FunctionVariable) else getattr(_real(function), "__code__", None)
    if not isinstance(code, types.CodeType):
        return True
    if code is _BY_GENERATOR:
        body = _generator(obj)
        return body is None or (_has_handlers(body[0]) if minds and not _is_torchs(body[1]) else _ends_exceptions(body[0]))
    scope = function.globals_of.real if isinstance(function, FunctionVariable) else _real(function).__globals__
    return not returns_only(code, None, False) or minds and not _is_torchs(scope) and not _does_nothing(code)


def _real(value: Any) -> Any:
    return getattr(value, "value", None) if isinstance(value, VariableTracker) else value


def _parts(leave: VariableTracker) -> tuple[Any, Any]:
    """Function and object of a bound method."""
    if isinstance(leave, MethodVariable):
        return leave.func, leave.obj
    method = _real(leave)
    if isinstance(method, types.BuiltinMethodType):
        return getattr(type(method.__self__), method.__name__, None), method.__self__
    return (method.__func__, method.__self__) if isinstance(method, types.MethodType) else (None, None)


def _generator(manager: Any) -> tuple[types.CodeType, dict[str, Any]] | None:
    """Code and globals of the generator that a manager made by ``contextlib.contextmanager`` runs."""
    generator = manager.attrs.get("gen") if isinstance(manager, ObjectVariable) else None
    if isinstance(generator, GeneratorVariable):
        return generator.frame.code, generator.frame.scope.real
    generator = vars(_real(manager)).get("gen") if isinstance(_real(manager), contextlib._GeneratorContextManager) else None
    if not isinstance(generator, types.GeneratorType) or generator.gi_frame is None:
        return None
    return generator.gi_code, generator.gi_frame.f_globals


def _is_torchs(scope: dict[str, Any]) -> bool:
    return str(scope.get("__name__")).partition(".")[0] == "torch"


@functools.lru_cache(256)
def _does_nothing(code: types.CodeType) -> bool:
    return all(inst.op in _IDLE for inst in instructions_of(code))


@functools.lru_cache(256)
def returns_only(code: types.CodeType, *values: bool | None) -> bool:
    """Whether each ``return`` of a function gives one of these."""
    if code.co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR):
        return False
    instructions = instructions_of(code)
    targets = {id(inst.target) for inst in instructions}
    return all(
        before.op == "LOAD_CONST" and any(before.arg is value for value in values) and id(inst) not in targets
        for before, inst in itertools.pairwise(instructions) if inst.op == "RETURN_VALUE")


@functools.lru_cache(256)
def _ends_exceptions(code: types.CodeType) -> bool:
    """Whether some way leads from a handler of a generator to its end."""
    instructions = instructions_of(code)
    handlers = [inst.handler.target.index for inst in instructions if inst.handler is not None]
    return any(instructions[index].op == "RETURN_VALUE" for index in reachable(instructions, handlers))


@functools.lru_cache(256)
def _has_handlers(code: types.CodeType) -> bool:
    """Whether a generator's code handles exceptions, but for the StopIteration that CPython makes a RuntimeError of."""
    instructions = instructions_of(code)
    targets = {inst.handler.target.index for inst in instructions if inst.handler is not None}
    return any(instructions[index].op != "CALL_INTRINSIC_1" for index in targets)
