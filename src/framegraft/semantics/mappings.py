"""Subclasses of dict from ``collections``: what their methods give is of their own class, and a defaultdict fills itself."""

from __future__ import annotations

import collections
from typing import Any

from ..errors import GraphBreak, UserRaise
from ..interp.state import realize, user_error
from ..model.dispatch import constructs, method
from ..model.value import MISSING, NONE, ConstantVariable, DictVariable, ObjectVariable, VariableTracker
from . import attributes, calls, containers, hashed, storing
from .constructors import update_dict
from .functions import is_callable


@method(ObjectVariable, "copy", "__copy__")
def copy(tx: Any, obj: ObjectVariable, args: list, kwargs: dict) -> VariableTracker | None:
    if not isinstance(obj.payload, DictVariable) or args:
        return None
    return containers.like(tx, obj, DictVariable(dict(hashed.complete(tx, obj.payload))))


@constructs(collections.defaultdict)
def make_defaultdict(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    made = ObjectVariable(MISSING, cls)
    made.payload = DictVariable({})
    tx.state.dirty += 1
    initialise(tx, made, args, kwargs)
    return made


def initialise(tx: Any, obj: ObjectVariable, args: list, kwargs: dict) -> None:
    """defaultdict.__init__"""
    assert isinstance(obj.payload, DictVariable)
    if args and not (isinstance(args[0], ConstantVariable) and args[0].value is None) and not is_callable(tx, args[0]):
        raise UserRaise(user_error(TypeError, "first argument must be callable or None"))
    storing.store_attr(tx, obj, "default_factory", realize(args[0], tx.state) if args else NONE)
    update_dict(tx, obj.payload, args[1:], kwargs)


calls.INITIALISERS[collections.defaultdict] = initialise
calls.MAPPING_BASES.add(collections.defaultdict)


@method(VariableTracker, "__missing__")
def missing(tx: Any, obj: VariableTracker, args: list, kwargs: dict) -> VariableTracker:
    """defaultdict.__missing__"""
    if not isinstance(obj, ObjectVariable) or not issubclass(obj.cls, collections.defaultdict):
        raise GraphBreak("unsupported_builtin_method", f"{obj.python_type().__name__}.__missing__")
    factory = realize(attributes.get_attr(tx, obj, "default_factory"), tx.state)
    if isinstance(factory, ConstantVariable) and factory.value is None:
        raise UserRaise(containers.key_error(args[0]))
    value = calls.call(tx, factory, [], {})
    containers.set_item(tx, obj, args[0], value)
    return value
