"""When a graph fails: the frame once more, as it was written, in eager mode."""

from __future__ import annotations

import contextlib
import random
import types
from typing import Any

from .. import _native
from ..bytecode.code import parameter_count
from ..tensor import seeds
from ..tensor.modes import forget_casts


class Plan:
    """What is needed to run the frame as it was written. ``handled``: the program may catch the error and go on."""

    __name__ = "plan"

    def __init__(self, code: types.CodeType, scope: dict, handled: bool, modes: Any) -> None:
        count = parameter_count(code)
        # Parameters as the interpreter lays them out: *args and **kwargs are plain ones here.
        flags = code.co_flags & ~0x0C  # CO_VARARGS, CO_VARKEYWORDS
        self.code = code.replace(co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=flags)
        self.scope = scope
        self.handled = handled
        self.modes = modes
        _native.set_skip(self.code, True)


def raise_on(failure: BaseException, modes: Any = None, *unused: Any) -> None:
    """Called by transformed code, and as ``run_eager``, where the frame cannot run again: its graph has changed something.

    ``modes``: torch's switches as they are to be when the frame is left.
    """
    if modes is not None:
        modes.restore()
        forget_casts()
    try:
        raise failure
    finally:
        del failure  # a frame of its own traceback holds it


def leave_and_raise(failure: BaseException, modes: Any, *exits: Any) -> None:
    """As ``raise_on``, for a failure inside of blocks that were entered before the frame was; none of their exits ends an exception."""
    try:
        modes.restore()
        with contextlib.ExitStack() as blocks:
            blocks.callback(forget_casts)
            for leave in reversed(exits):
                blocks.push(leave)
            raise failure
    finally:
        del failure


def release(runs_anew: bool, failure: BaseException, *locks: Any) -> None:
    """Called by transformed code for locks that the program has released, or would where the failure leaves it."""
    if not runs_anew or not isinstance(failure, Exception):
        for lock in locks:
            lock.release()


def run_eager(failure: BaseException, plan: Plan, closure: tuple, *args: Any) -> Any:
    """Called by transformed code with what its graph raised. Returns what the frame returns, or raises what it raises.

    Where eager mode raises nothing, the failure is the backend's own; it is raised, unless the program handles errors.
    """
    try:
        if not isinstance(failure, Exception):
            raise failure
        plan.modes.restore()
        fn = types.FunctionType(plan.code, plan.scope, plan.code.co_name, None, closure)
        old = _native.set_mode(2, None, None)
        try:
            result = fn(*args)
        finally:
            _native.set_mode(*old)
        if not plan.handled:
            raise_on(failure)
        return result
    finally:
        del failure  # a frame of its own traceback holds it


def run_eager_with(states: seeds.States, failure: BaseException, plan: Plan, closure: tuple, *args: Any) -> Any:
    """As ``run_eager``, for a graph that draws random numbers; ``states`` is what the generators' states were before it."""
    seeds.put_back(states)
    return run_eager(failure, plan, closure, *args)


def generators(*used: random.Random) -> list[tuple[random.Random, Any]]:
    """Called by transformed code that draws random numbers: the states of Python's generators before it."""
    return [(one, one.getstate()) for one in dict.fromkeys(used)]


def put_back(known: list[tuple[random.Random, Any]]) -> None:
    for one, state in known:
        one.setstate(state)


AROUND = frozenset(fn.__code__ for fn in (raise_on, leave_and_raise, release, run_eager, run_eager_with))  # nothing of the program's
