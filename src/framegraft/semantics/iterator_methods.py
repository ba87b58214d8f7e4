"""Methods of iterators and of generators on trackers."""

from __future__ import annotations

from typing import Any

from ..errors import UserRaise
from ..interp.state import user_error
from ..model.dispatch import method
from ..model.value import (
    NONE,
    CombinedIteratorVariable,
    ConstantVariable,
    GeneratorVariable,
    IteratorVariable,
    VariableTracker,
)
from . import generators, iteration


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
    return _generator_result(*generators.throw(tx, obj, args))


@method(GeneratorVariable, "close")
def generator_close(tx: Any, obj: GeneratorVariable, args: list, kwargs: dict) -> VariableTracker:
    if obj.finished or not obj.started:
        obj.finished = True
        return NONE
    try:
        _, value = generators.close(tx, obj)
    except UserRaise as raised:
        if issubclass(raised.value.python_type(), (GeneratorExit, StopIteration)):
            return NONE
        raise
    return value if _CLOSE_GIVES else NONE
