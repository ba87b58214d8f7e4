"""Functions and classes of the standard library that need the trace: functools, inspect, operator, weakref, enum."""

from __future__ import annotations

import enum
import functools
import importlib.util
import inspect
import operator
import os
import sys
import types
import typing
import weakref
from typing import Any

from ..errors import GraphBreak, UserRaise
from ..interp.letting_go import may_have_died
from ..interp.state import realize, user_error
from ..model.dispatch import CLASSES, constructs, handles
from ..model.guards import Condition
from ..model.source import pinned
from ..model.value import (
    MISSING,
    NONE,
    ConstantVariable,
    ExceptionVariable,
    LazyVariable,
    MethodVariable,
    ObjectVariable,
    TracebackVariable,
    TupleVariable,
    VariableTracker,
)
from ..polyfills import dispatching
from . import calls, core, iteration, lookup, making, operators
from .class_checks import handle_issubclass, is_class
from .wrapping import wrap_class, wrap_pinned

_DISPATCH: Any = functools.singledispatch(len).dispatch.__code__  # type: ignore[attr-defined]
calls.REPLACED[_DISPATCH] = dispatching.dispatch
calls.WHOLE.add(_DISPATCH)


@handles(dispatching.tells_of_itself)
def tells_of_itself(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    raise GraphBreak("untraceable_call", "a singledispatch function with a cache of the program's own")


@handles(dispatching.nearest)
def nearest(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    classes: list[Any] = [realize(a, tx.state) for a in args]
    if not all(map(is_class, classes)):
        raise GraphBreak("untraceable_call", "a singledispatch function asked for something other than a class")
    cls, *known = classes
    for one in known:
        handle_issubclass(tx, [cls, one], {})  # guards the answer
    by_class = {one.value: one for one in known}
    try:
        return functools._find_impl(cls.value, by_class)  # type: ignore[attr-defined]
    except RuntimeError:
        raise GraphBreak("raised_exception", f"a singledispatch function has no best implementation for a {cls.value.__name__}") from None


@handles(typing.cast)
def handle_cast(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    return args[1]


@handles(os.fspath)
def handle_fspath(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    path = args[0]
    if isinstance(path, ConstantVariable) and isinstance(path.value, (str, bytes)):
        return path
    method = core.special_method(tx, path, "__fspath__") if isinstance(path, ObjectVariable) and path.payload is None else None
    told = realize(calls.call(tx, method, [], {}), tx.state) if method is not None else path
    if not isinstance(told, ConstantVariable) or not isinstance(told.value, (str, bytes)):
        raise GraphBreak("untraceable_call", f"os.fspath() of a {path.python_type().__name__}")
    return told


class _NothingHandled(Condition):
    """Guard: who calls the frame handles no exception."""

    __name__ = "no_exception_is_handled"
    key = None

    def __call__(self, _: Any) -> bool:
        error = sys.exc_info()[1]
        return error is None or isinstance(error, GraphBreak)  # of the very capture that tries the guard


def _handled(tx: Any) -> ExceptionVariable | None:
    """The exception that the program handles where it asks (_PyErr_GetTopmostException)."""
    if tx.state.exceptions:
        handled = realize(tx.state.exceptions[-1], tx.state)
        if not isinstance(handled, ExceptionVariable):
            raise GraphBreak("introspection", "the handled exception, which was made outside of the trace, is asked for")
        return handled
    if sys.exc_info()[1] is not None:
        raise GraphBreak("introspection", "the exception that the caller handles is asked for")
    tx.state.guards.add(pinned(sys), "PY", _NothingHandled())
    return None


@handles(sys.exc_info)
def handle_exc_info(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    handled = _handled(tx)
    if handled is None:
        return TupleVariable([NONE, NONE, NONE])
    return TupleVariable([wrap_class(tx, handled.python_type()), handled, TracebackVariable(handled)])


def handle_exception(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    return _handled(tx) or NONE


if hasattr(sys, "exception"):  # from 3.11 on
    handles(sys.exception)(handle_exception)


@handles(importlib.import_module)
def import_module(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    """Of a module that is loaded already, as the statement (importlib._bootstrap._gcd_import)."""
    given = [a.value if isinstance(a, ConstantVariable) else MISSING for a in (*args, *kwargs.values())]
    if kwargs.keys() - {"package"} or [type(value) for value in given] not in ([str], [str, str], [str, type(None)]):
        raise GraphBreak("io_call", "importlib.import_module() of something other than a name")
    try:
        name = importlib.util.resolve_name(*given, *[None] * (2 - len(given)))
    except ImportError as error:
        raise GraphBreak("raised_exception", f"importlib.import_module(): {error}") from None
    return core.import_module(tx, name, ("*",), 0)


@handles(functools.reduce)
def handle_reduce(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    iterator = iteration.get_iter(tx, args[1])
    total = args[2] if len(args) > 2 else iteration.next_item(tx, iterator)
    if total is None:
        raise UserRaise(user_error(TypeError, "reduce() of empty iterable with no initial value"))
    while (item := iteration.next_item(tx, iterator)) is not None:
        total = calls.call(tx, args[0], [total, item], {})
    return total


@handles(inspect.signature)
def handle_signature(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    """Of a function or class from outside: a fresh object that nobody can tell from another one for the same function."""
    asked: Any = args[0]
    fn: Any
    if isinstance(asked, ObjectVariable) and type(asked.value) is type and not kwargs:
        fn, bound = _initializer(tx, asked.value), True
    else:
        fn, bound = (asked.func, True) if type(asked) is MethodVariable else (asked, False)
    fn = realize(fn, tx.state)
    passed: list[Any] = []  # what only wraps another function
    while True:
        value: Any = fn.value if isinstance(fn, ObjectVariable) else None
        plain = issubclass(type(value), types.FunctionType) and not fn.attrs and not kwargs
        if not plain or "__signature__" in value.__dict__ or value in passed:
            raise GraphBreak("introspection", "inspect.signature() of something else than a plain function or class")
        root = tx.state.guards.pin(fn.source, value)
        own = root.child("FDICT")
        tx.state.guards.add(own.child("KEY", "__signature__"), "ABSENT")
        if "__wrapped__" not in value.__dict__:
            break
        passed.append(value)
        fn = realize(LazyVariable(value.__dict__["__wrapped__"], own.child("KEY", "__wrapped__")), tx.state)
    tx.state.guards.add(own.child("KEY", "__wrapped__"), "ABSENT")
    tx.state.guards.add(root.child("FCODE"), "ID", value.__code__)
    for part in ("__defaults__", "__kwdefaults__", "__annotations__"):
        entries = getattr(value, part)
        field = root.function_field(part)
        tx.state.guards.add(field, "ID", entries)
        if type(entries) is dict:
            tx.state.guards.add(field, "TYPE", dict)
            tx.state.guards.add(field, "KEYS", tuple(entries))
            for name, entry in entries.items():
                tx.state.guards.add(field.child("KEY", name), "ID", entry)
    made = inspect.signature(types.MethodType(value, object()) if bound else value)
    tx.state.guards.made[id(made)] = made
    return wrap_pinned(tx, made)


def _initializer(tx: Any, cls: type) -> VariableTracker:
    """The method whose signature is that of a class which leaves ``__call__`` to ``type`` and ``__new__`` to ``object``."""
    init = lookup.mro_lookup(tx, cls, "__init__")
    plain = lookup.mro_lookup(tx, cls, "__new__") is object.__new__ and not any(
        lookup.mro_lookup(tx, cls, name) is not MISSING for name in ("__signature__", "__wrapped__"))
    return wrap_pinned(tx, init) if plain and isinstance(init, types.FunctionType) else NONE


class _Referent:
    """Accessor: what a weak reference refers to."""

    __name__ = "referent"

    def __call__(self, reference: Any) -> Any:
        return reference()


REFERENT = _Referent()


def call_weakref(tx: Any, fn: ObjectVariable) -> VariableTracker:
    """``reference()``."""
    if fn.source is None or fn.value is MISSING:
        raise GraphBreak("untraceable_call", "a weak reference made in the trace")
    referent = fn.value()
    if referent is not None and may_have_died(tx.state, referent):
        raise GraphBreak("untraceable_call", "a weak reference to what may have died in the trace")
    return realize(LazyVariable(referent, fn.source.child("PYCALL", REFERENT)), tx.state)


class _Reference:
    """Accessor: the weak reference without a callback, of which an object has one (CPython: weakref___new__)."""

    __name__ = "reference"

    def __call__(self, obj: Any) -> Any:
        return weakref.ref(obj)


REFERENCE = _Reference()


@constructs(weakref.ref)
def make_weakref(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    """Of an object from outside: as if the reference had been there already."""
    referent = realize(args[0], tx.state) if len(args) == 1 and not kwargs else NONE
    value = getattr(referent, "value", MISSING)
    if cls is not weakref.ref or referent.source is None or value is MISSING or not type(value).__weakrefoffset__:
        raise GraphBreak("untraceable_call", "a weak reference made in the trace")
    return tx.state.builder.wrap(weakref.ref(value), referent.source.child("PYCALL", REFERENCE))


calls.WEAKREF.append(call_weakref)


@handles(inspect.stack, inspect.currentframe)
def handle_inspect(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    raise GraphBreak("introspection", "the inspect module")


for _fn in (operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
            operator.matmul, operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift, operator.lt,
            operator.le, operator.gt, operator.ge, operator.eq, operator.ne, operator.neg, operator.pos, operator.invert,
            operator.is_, operator.is_not, operator.not_, operator.getitem, operator.iadd, operator.isub, operator.imul,
            operator.itruediv, operator.imatmul):
    handles(_fn)(lambda tx, args, kwargs, fn=_fn: operators.apply(tx, fn, args))
for _fn in (operator.contains,):
    handles(_fn)(lambda tx, args, kwargs: operators.contains(tx, args[1], args[0]))


_QUIET_MISSING = {enum.Enum.__dict__["_missing_"].__func__, enum.Flag.__dict__["_missing_"].__func__}


def enum_call(tx: Any, cls: Any, args: list, kwargs: dict) -> VariableTracker:
    """Color(1): a look-up that gives one of the class's members. Other calls make a class."""
    if len(args) != 1 or kwargs or not cls._member_map_:
        raise GraphBreak("untraceable_call", f"{cls.__name__}() that makes a class")
    if isinstance(args[0], ObjectVariable) and type(args[0].value) is cls:
        return args[0]
    value = core.need_constant(args[0], "an enum's value")
    if value not in cls._value2member_map_ and cls._missing_.__func__ not in _QUIET_MISSING:
        raise GraphBreak("untraceable_call", f"{cls.__name__}._missing_")
    known, look_up = value in cls._value2member_map_, _Member(value)
    try:
        member = cls(value)
    except ValueError as error:
        tx.state.guards.add(pinned(cls).child("PYCALL", look_up), "EQ", None)
        raise UserRaise(user_error(ValueError, *error.args)) from None
    if known:
        tx.state.guards.add(pinned(cls).child("PYCALL", look_up), "ID", member)
    return wrap_pinned(tx, member)


class _Member:
    """Accessor: what an enum's table has for a value."""

    __name__ = "member"

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, cls: Any) -> Any:
        return cls._value2member_map_.get(self.value)


@handles(type.__call__)
def handle_type_call(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    """``super().__call__(...)`` in a metaclass."""
    if not args or not is_class(args[0]) or args[0].value is type or args[0].value in CLASSES:
        raise GraphBreak("untraceable_call", "type.__call__ of something else than a class of the program")
    return making.construct(tx, args[0].value, args[1:], kwargs)


CLASSES[enum.EnumMeta] = enum_call
