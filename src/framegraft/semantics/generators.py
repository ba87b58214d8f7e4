"""throw() and close() of generators: where one waits for another iterator (``yield from``), that one is asked first."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .._native import type_name
from ..errors import GraphBreak, UserRaise
from ..interp.state import realize, set_context, user_error
from ..model.value import NONE, ConstantVariable, ExceptionVariable, GeneratorVariable, ObjectVariable, TupleVariable, VariableTracker
from . import attributes, calls, iteration
from .class_checks import is_class


def awaited(tx: Any, generator: GeneratorVariable) -> VariableTracker | None:
    """The iterator that a suspended generator waits for in a ``yield from`` (_PyGen_yf)."""
    if not generator.started or generator.finished or generator.running:
        return None
    frame = generator.frame
    if frame.inst.op != "YIELD_VALUE" or frame.instructions[frame.inst.index - 1].op != "SEND":
        return None
    return realize(frame.stack[-1], tx.state)


def throw(tx: Any, generator: GeneratorVariable, given: list[VariableTracker]) -> tuple[bool, VariableTracker]:
    """gen_throw: (False, yielded) or (True, returned). ``given`` is an exception, or its class and what to make one of it with."""
    inner = awaited(tx, generator)
    if inner is None:
        return iteration.resume(tx, generator, NONE, _exception(tx, given))
    cls: Any = given[0].value if is_class(given[0]) else given[0].python_type()  # type: ignore[attr-defined]
    if issubclass(cls, GeneratorExit):
        try:
            _close_iterator(tx, generator, inner)
        except UserRaise as raised:
            return iteration.resume(tx, generator, NONE, raised.value)
        return iteration.resume(tx, generator, NONE, _exception(tx, given))
    try:
        if type(inner) is GeneratorVariable:
            with _running(generator):
                done, value = throw(tx, inner, given)
        else:
            method = _method(tx, inner, "throw")
            if method is None:
                return iteration.resume(tx, generator, NONE, _exception(tx, given))
            with _running(generator):
                done, value = False, realize(calls.call(tx, method, given, {}), tx.state)
    except UserRaise as raised:
        if not iteration.stops(raised):
            return iteration.resume(tx, generator, NONE, raised.value)
        done, value = True, calls.value_of_stop(tx, raised.value)
    return _after(tx, generator, value) if done else (False, value)


def close(tx: Any, generator: GeneratorVariable) -> tuple[bool, VariableTracker]:
    """gen_close, as far as the generator tells: (True, returned), or the exception that it ends with."""
    inner = awaited(tx, generator)
    leave: VariableTracker | None = None
    if inner is not None:
        try:
            _close_iterator(tx, generator, inner)
        except UserRaise as raised:
            leave = raised.value
    if leave is None:
        leave = ExceptionVariable(GeneratorExit, [])
        set_context(tx.state, leave)
    done, value = iteration.resume(tx, generator, NONE, leave)
    if not done:
        raise UserRaise(user_error(RuntimeError, "generator ignored GeneratorExit"))
    return done, value


def _close_iterator(tx: Any, generator: GeneratorVariable, inner: VariableTracker) -> None:
    """gen_close_iter"""
    with _running(generator):
        if type(inner) is not GeneratorVariable:
            method = _method(tx, inner, "close")
            if method is not None:
                calls.call(tx, method, [], {})
        elif inner.started and not inner.finished:
            try:
                close(tx, inner)
            except UserRaise as raised:
                if not issubclass(raised.value.python_type(), (GeneratorExit, StopIteration)):
                    raise
        else:
            inner.finished = True


def _after(tx: Any, generator: GeneratorVariable, value: VariableTracker) -> tuple[bool, VariableTracker]:
    """Go on behind a ``yield from`` whose iterator has ended."""
    tx.state.changed(generator)
    frame = generator.frame
    frame.stack.pop()
    frame.jump(frame.instructions[frame.inst.index - 1].target)
    return iteration.resume(tx, generator, value)


@contextlib.contextmanager
def _running(generator: GeneratorVariable) -> Iterator[None]:
    generator.running = True
    try:
        yield
    finally:
        generator.running = False


def _method(tx: Any, obj: VariableTracker, name: str) -> VariableTracker | None:
    """_PyObject_LookupAttr"""
    if not isinstance(obj, ObjectVariable):
        if hasattr(obj.python_type(), name):
            raise GraphBreak("unsupported_iterator", f"{name}() of a {obj.python_type().__name__}")
        return None
    try:
        return realize(attributes.get_attr(tx, obj, name), tx.state)
    except UserRaise as raised:
        if issubclass(raised.value.python_type(), AttributeError):
            return None
        raise GraphBreak("unsupported_iterator", f"a {obj.cls.__name__} that raises an error where {name} is looked up") from None


def _exception(tx: Any, given: list[VariableTracker]) -> VariableTracker:
    """The exception of (type, value, traceback), as PyErr_NormalizeException makes it."""
    error, value = given[0], given[1] if len(given) > 1 else NONE
    alone = isinstance(value, ConstantVariable) and value.value is None
    if issubclass(error.python_type(), BaseException):
        if not alone:
            raise UserRaise(user_error(TypeError, "instance exception may not have a separate value"))
        return error
    if not is_class(error) or not issubclass(error.value, BaseException):  # type: ignore[attr-defined]
        name = type_name(error.python_type())
        raise UserRaise(user_error(TypeError, f"exceptions must be classes or instances deriving from BaseException, not {name}"))
    if alone:
        return realize(calls.call(tx, error, [], {}), tx.state)
    if issubclass(value.python_type(), BaseException):
        return value
    items = value.items if isinstance(value, TupleVariable) else [value]
    return realize(calls.call(tx, error, list(items), {}), tx.state)
