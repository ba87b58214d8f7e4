"""Methods of iterators and of generators on trackers."""

from __future__ import annotations

from typing import Any

from ..errors import UserRaise
from ..interp.state import realize, set_context, user_error
from ..model.dispatch import method
from ..model.value import (
    NONE,
    CombinedIteratorVariable,
    ConstantVariable,
    ExceptionVariable,
    GeneratorVariable,
    IteratorVariable,
    TupleVariable,
    VariableTracker,
)
from . import (
    calls,
    iteration,
)
from .class_checks import is_class


@method(IteratorVariable, "__iter__")
@method(CombinedIteratorVariable, "__iter__")
@method(GeneratorVariable, "__iter__")
def iterator_iter(tx: Any, obj: VariableTracker, args: list, kwargs: dict) -> VariableTracker:
    return obj


@method(IteratorVariable, "__next__")
@method(CombinedIteratorVariable, "__next__")
@method(GeneratorVariable, "__next__")
def iterator_next(tx: Any, obj: VariableTracker, args: list, kwargs: dict) -> VariableTracker:
    item = iteration.advance(tx, obj)
    if item is None:
        raise UserRaise(user_error(StopIteration))
    return item


def _returns() -> Any:
    try:
        yield
    except GeneratorExit:
        return 1


def _close_gives() -> bool:
    """Whether close() gives what the generator returns: since CPython 3.13."""
    generator = _returns()
    next(generator)
    return generator.close() is not None


_CLOSE_GIVES = _close_gives()


def _generator_result(done: bool, value: VariableTracker) -> VariableTracker:
    if not done:
        return value
    error = user_error(StopIteration)
    if not (isinstance(value, ConstantVariable) and value.value is None):
        error.args = [value]
    raise UserRaise(error)


@method(GeneratorVariable, "send")
def generator_send(tx: Any, obj: GeneratorVariable, args: list, kwargs: dict) -> VariableTracker:
    return _generator_result(*iteration.resume(tx, obj, args[0]))


@method(GeneratorVariable, "throw")
def generator_throw(tx: Any, obj: GeneratorVariable, args: list, kwargs: dict) -> VariableTracker:
    error = args[0]
    if is_class(error):  # (type, value, traceback), as _gen_throw and PyErr_NormalizeException take it
        value = args[1] if len(args) > 1 else NONE
        if isinstance(value, ConstantVariable) and value.value is None:
            error = realize(calls.call(tx, error, [], {}), tx.state)
        elif issubclass(value.python_type(), BaseException):
            error = value
        else:
            items = value.items if isinstance(value, TupleVariable) else [value]
            error = realize(calls.call(tx, error, list(items), {}), tx.state)
    return _generator_result(*iteration.resume(tx, obj, NONE, error))


@method(GeneratorVariable, "close")
def generator_close(tx: Any, obj: GeneratorVariable, args: list, kwargs: dict) -> VariableTracker:
    if obj.finished or not obj.started:
        obj.finished = True
        return NONE
    leave = ExceptionVariable(GeneratorExit, [])
    set_context(tx.state, leave)
    try:
        done, value = iteration.resume(tx, obj, NONE, leave)
    except UserRaise as raised:
        if issubclass(raised.value.python_type(), (GeneratorExit, StopIteration)):
            return NONE
        raise
    if done:
        return value if _CLOSE_GIVES else NONE
    raise UserRaise(user_error(RuntimeError, "generator ignored GeneratorExit"))
