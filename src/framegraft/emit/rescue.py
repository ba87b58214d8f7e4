"""When a graph fails: the frame once more, as it was written, in eager mode."""

from __future__ import annotations

import types
from typing import Any

from .. import _native


class Plan:
    """What is needed to run the frame as it was written. ``handled``: the program may catch the error and go on."""

    __name__ = "plan"

    def __init__(self, code: types.CodeType, scope: dict, handled: bool, modes: Any) -> None:
        count = flat_arguments(code)
        # Parameters as the interpreter lays them out: *args and **kwargs are plain ones here.
        flags = code.co_flags & ~0x0C  # CO_VARARGS, CO_VARKEYWORDS
        self.code = code.replace(co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=flags)
        self.scope = scope
        self.handled = handled
        self.modes = modes
        _native.set_skip(self.code, None, True)


def flat_arguments(code: types.CodeType) -> int:
    stars = bool(code.co_flags & 4) + bool(code.co_flags & 8)
    return code.co_argcount + code.co_kwonlyargcount + stars


def run_eager(failure: BaseException, plan: Plan, closure: tuple, *args: Any) -> Any:
    """Called by transformed code with what its graph raised. Returns what the frame returns, or raises what it raises.

    Where eager mode raises nothing, the failure is the backend's own; it is raised, unless the program handles errors.
    """
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
        raise failure
    return result
