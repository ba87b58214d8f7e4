"""Subclasses of dict from ``collections``: what their methods give is of their own class, and a defaultdict fills itself."""

from __future__ import annotations

import collections
import operator
from typing import Any

from ..errors import GraphBreak, UserRaise
from ..interp.state import need_constant, realize, user_error
from ..model.dispatch import constructs, handles, method
from ..model.value import MISSING, NONE, ConstantVariable, DictVariable, ObjectVariable, TupleVariable, VariableTracker, constant
from . import attributes, calls, containers, hashed, iteration, making, operators, storing
from .constructors import update_dict
from .functions import is_callable


@method(ObjectVariable, "copy", "__copy__")
def copy(tx: Any, obj: ObjectVariable, args: list, kwargs: dict) -> VariableTracker | None:
    if not isinstance(obj.payload, DictVariable) or args:
        return None
    return containers.like(tx, obj, containers.copied(tx, obj))


@method(ObjectVariable, "move_to_end")
def move_to_end(tx: Any, obj: ObjectVariable, args: list, kwargs: dict) -> VariableTracker | None:
    """OrderedDict.move_to_end, of one that the trace has made where that is to the front."""
    last = need_constant(args[1] if len(args) > 1 else kwargs.get("last", constant(True)), "last")
    payload = obj.payload
    if not isinstance(payload, DictVariable) or not last and payload.source is not None:
        return None
    if hashed.dict_get(tx, payload, args[0]) is not None:
        order = hashed.complete(tx, payload)
        if hashed.hash_key(tx, args[0]) == next(reversed(order) if last else iter(order)):
            return NONE  # iterators go on
    value = hashed.dict_delete(tx, payload, args[0])
    if value is None:
        raise UserRaise(containers.key_error(args[0]))
    hashed.dict_set(tx, payload, args[0], value)
    if not last:
        entries = list(payload.items.items())
        payload.items = dict([entries[-1], *entries[:-1]])
    return NONE


@method(ObjectVariable, "popitem")
def popitem(tx: Any, obj: ObjectVariable, args: list, kwargs: dict) -> VariableTracker | None:
    """OrderedDict.popitem; other dicts take no argument."""
    last = need_constant(args[0] if args else kwargs.get("last", constant(True)), "last")
    if not issubclass(obj.cls, collections.OrderedDict) or not isinstance(obj.payload, DictVariable):
        return None
    entries = list(hashed.complete(tx, obj.payload).values())
    if not entries:
        raise UserRaise(user_error(KeyError, "dictionary is empty"))
    key, value = entries[-1 if last else 0]
    hashed.dict_delete(tx, obj.payload, key)
    return TupleVariable([key, value])


@method(ObjectVariable, "__getitem__")
def getitem(tx: Any, obj: ObjectVariable, args: list, kwargs: dict) -> VariableTracker | None:
    """dict.__getitem__ of an instance of a subclass."""
    return containers.dict_subscript(tx, obj, args[0]) if isinstance(obj.payload, DictVariable) else None


@method(ObjectVariable, "pop")
def pop(tx: Any, obj: ObjectVariable, args: list, kwargs: dict) -> VariableTracker | None:
    """OrderedDict.pop, which asks for the key's hash though it is empty; then it is dict's."""
    if issubclass(obj.cls, collections.OrderedDict) and isinstance(obj.payload, DictVariable):
        hashed.hash_key(tx, args[0] if args else kwargs["key"])
    return None


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


making.INITIALISERS[collections.defaultdict] = initialise
making.MAPPING_BASES.add(collections.defaultdict)


@handles(collections._count_elements)  # type: ignore[attr-defined]
def count_elements(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    """What Counter.update counts with; a subclass of dict with other ways of getting and setting is asked by its methods."""
    mapping, one = args[0], constant(1)
    payload = hashed.payload_of(mapping)
    if not isinstance(payload, DictVariable) or mapping.python_type() not in (dict, collections.Counter):
        raise GraphBreak("untraceable_call", f"counting into a {mapping.python_type().__name__}")
    for item in iteration.drawn(tx, args[1]):
        item = realize(item, tx.state)
        before = hashed.dict_get(tx, payload, item)
        total = one if before is None else operators.apply(tx, operator.add, [realize(before, tx.state), one])
        hashed.dict_set(tx, payload, item, realize(total, tx.state))
    return NONE


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


calls.CHECK_ITEMS.append(containers.check_own_items)
