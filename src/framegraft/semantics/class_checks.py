"""isinstance() and issubclass(), with the hooks of metaclasses."""

from __future__ import annotations

import abc
import types
import typing
from typing import Any

from ..errors import GraphBreak, UserRaise
from ..interp.state import realize, user_error
from ..model.dispatch import handles
from ..model.source import pinned
from ..model.value import ConstantVariable, ObjectVariable, TupleVariable, VariableTracker, constant
from . import attributes, calls, instances, lookup, truth
from .wrapping import wrap_pinned


def is_class(tracker: VariableTracker) -> bool:
    return isinstance(tracker, ObjectVariable) and issubclass(type(tracker.value), type)


@handles(isinstance)
def handle_isinstance(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    obj, classes = args
    return constant(_instance_of(tx, obj, obj.python_type(), classes, "__instancecheck__"))


@handles(issubclass)
def handle_issubclass(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    cls, classes = args
    if not is_class(cls):
        if not isinstance(cls, ConstantVariable):
            raise GraphBreak("untraceable_call", f"issubclass() of a {cls.python_type().__name__}, which may have __bases__")
        raise UserRaise(user_error(TypeError, "issubclass() arg 1 must be a class"))
    return constant(_instance_of(tx, cls, cls.value, classes, "__subclasscheck__"))


def is_instance(tx: Any, obj: VariableTracker, classes: tuple[type, ...]) -> bool:
    return any(_instance_of(tx, obj, obj.python_type(), wrap_pinned(tx, cls), "__instancecheck__") for cls in classes)


def _instance_of(tx: Any, obj: VariableTracker, cls: type, classes: VariableTracker, hook: str) -> bool:
    if isinstance(classes, TupleVariable):
        return any(_instance_of(tx, obj, cls, realize(c, tx.state), hook) for c in classes.items)
    if isinstance(classes, ObjectVariable) and issubclass(type(classes.value), types.UnionType):
        parts = (type(None) if part is None else part for part in classes.value.__args__)
        return any(_instance_of(tx, obj, cls, wrap_pinned(tx, part), hook) for part in parts)
    if isinstance(classes, ObjectVariable) and type(classes.value) in _ALIASES and classes.source is not None:
        alias: Any = classes.value
        tx.state.guards.pin(classes.source, alias)
        asked = alias.__args__ if type(alias) is _ALIASES[0] else (alias.__origin__,)
        return any(_instance_of(tx, wrap_pinned(tx, cls), cls, wrap_pinned(tx, c), "__subclasscheck__") for c in asked)
    if not is_class(classes):
        if not isinstance(classes, ConstantVariable):
            raise GraphBreak("untraceable_call", f"isinstance() with a {classes.python_type().__name__}, which may have __bases__")
        what = "isinstance() arg 2 must be a type, a tuple of types" if hook == "__instancecheck__" else (
            "issubclass() arg 2 must be a class, a tuple of classes")
        raise UserRaise(user_error(TypeError, what + ", or a union"))
    target = classes.value  # type: ignore[attr-defined]
    if hook == "__instancecheck__" and cls is target:
        return True
    check = lookup.mro_lookup(tx, lookup.metaclass(tx, target), hook)
    quick = INSTANCE_CHECKS.get(check)
    if quick is not None:
        return quick(tx, obj, cls, target, hook)
    if isinstance(check, types.FunctionType) and check.__module__ != "typing":
        return truth.truth(tx, calls.call(tx, wrap_pinned(tx, check), [classes, obj], {}))
    if check is not type.__dict__[hook]:
        raise GraphBreak("untraceable_call", f"{type(target).__name__}.{hook}")
    lookup.guard_bases(tx, cls)
    if issubclass(cls, target):
        return True
    if hook == "__subclasscheck__" or not instances.tells_own_class(tx, obj):
        return False
    told = realize(attributes.get_attr(tx, obj, "__class__"), tx.state)  # CPython: object_isinstance
    return is_class(told) and lookup.inherits(told.value, target)  # type: ignore[attr-defined]


INSTANCE_CHECKS: dict[Any, Any] = {}
# Of typing; they ask the classes that they stand for whether the object's own class is derived from them.
_ALIASES: Any = (type(typing.Union[int, str]), *map(type, (typing.List, typing.Tuple, typing.Callable)))  # noqa: UP006, UP007


def refuse_own_class(tx: Any, obj: VariableTracker, target: type) -> None:
    """Checks of a metaclass believe what an object says of its class."""
    if instances.tells_own_class(tx, obj):
        raise GraphBreak("untraceable_call", f"isinstance() of an object with a __class__ of its own and {target.__name__}")


def _abc_check(tx: Any, obj: VariableTracker, cls: type, target: type, hook: str) -> bool:
    """ABCMeta.__instancecheck__ and __subclasscheck__: registrations are seen through the ABC cache token, guarded."""
    check = lookup.mro_lookup(tx, type(target), "__subclasscheck__")  # which __instancecheck__ calls
    if check is not abc.ABCMeta.__dict__["__subclasscheck__"]:
        raise GraphBreak("untraceable_call", f"{type(target).__name__}.__subclasscheck__")
    if hook == "__instancecheck__":
        refuse_own_class(tx, obj, target)
    return is_subclass(tx, cls, target, hook)


def _check(target: Any, cls: type) -> bool:
    return abc.ABCMeta.__subclasscheck__(target, cls)


# A protocol with data members refuses issubclass(), unless it is abc that asks, for isinstance(): typing looks at the caller's module.
_check_as_abc = types.FunctionType(_check.__code__, {"__name__": "abc", "abc": abc})


def is_subclass(tx: Any, cls: type, target: Any, hook: str = "__instancecheck__") -> bool:
    """What ABCMeta tells about the two, guarded; ``target`` may be a protocol with data members, too."""
    try:
        found = (_check_as_abc if hook == "__instancecheck__" else _check)(target, cls)
    except Exception as error:  # of a hook of the class
        raise GraphBreak("raised_exception", f"issubclass({cls.__name__}, {target.__name__}): {type(error).__name__}") from None
    tx.state.guards.add(pinned(target), "SUBCLASS", (cls, found))
    return found


for _name in ("__instancecheck__", "__subclasscheck__"):
    INSTANCE_CHECKS[abc.ABCMeta.__dict__[_name]] = _abc_check
