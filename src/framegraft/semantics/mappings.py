"""Subclasses of dict from ``collections``: what their methods give is of their own class, and a defaultdict fills itself."""

from __future__ import annotations

import collections
import operator
from collections.abc import Iterator
from typing import Any

from ..errors import GraphBreak, UserRaise
from ..interp.state import need_constant, realize, user_error
from ..model.dispatch import constructs, handles, method
from ..model.value import MISSING, NONE, ConstantVariable, DictVariable, ObjectVariable, TupleVariable, VariableTracker, constant
from . import attributes, calls, containers, hashed, iteration, lookup, making, operators, storing
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
    if hashed.dict_get(tx, payload, args[0]) is None:
        raise UserRaise(containers.key_error(args[0]))
    order = hashed.complete(tx, payload)
    hashable = hashed.hash_key(tx, args[0])
    if hashable == next(reversed(order) if last else iter(order)):
        return NONE  # iterators go on
    key, value = order[hashable]
    hashed.dict_delete(tx, payload, key)
    hashed.dict_set(tx, payload, key, value)
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
        key = args[0] if args else kwargs.get("key")
        if key is not None:
            hashed.hash_key(tx, key)
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


@handles(collections.defaultdict.__init__)
def initialise_again(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    """The same called by the program: ``super().__init__(list)``."""
    if not args or not isinstance(args[0], ObjectVariable) or not issubclass(args[0].cls, collections.defaultdict):
        raise GraphBreak("raised_exception", "defaultdict.__init__ of something else")
    initialise(tx, args[0], args[1:], kwargs)
    return NONE


making.INITIALISERS[collections.defaultdict] = initialise
making.MAPPING_BASES.add(collections.defaultdict)


@constructs(collections.OrderedDict)
def make_ordered_dict(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    made = ObjectVariable(MISSING, cls)
    made.payload = DictVariable({})
    update_ordered(tx, made, args, kwargs)
    return made


@method(ObjectVariable, "__init__")
def initialise_ordered(tx: Any, obj: ObjectVariable, args: list, kwargs: dict) -> VariableTracker | None:
    """OrderedDict.__init__; those of other dicts are dict's, but for a defaultdict's, which is not known here from dict's own."""
    if issubclass(obj.cls, collections.defaultdict):
        raise GraphBreak("unsupported_builtin_method", f"{obj.cls.__name__}.__init__ of an instance that is there")
    if issubclass(obj.cls, collections.OrderedDict) and len(args) > 1:
        raise UserRaise(user_error(TypeError, f"expected at most 1 arguments, got {len(args)}"))
    return update(tx, obj, args, kwargs)


@method(ObjectVariable, "update")
def update(tx: Any, obj: ObjectVariable, args: list, kwargs: dict) -> VariableTracker | None:
    """OrderedDict.update; that of other dicts is dict's."""
    if not issubclass(obj.cls, collections.OrderedDict) or not isinstance(obj.payload, DictVariable):
        return None
    update_ordered(tx, obj, args, kwargs)
    return NONE


def update_ordered(tx: Any, obj: ObjectVariable, args: list, kwargs: dict) -> None:
    """mutablemapping_update"""
    assert isinstance(obj.payload, DictVariable)
    if len(args) > 1:
        raise UserRaise(user_error(TypeError, f"update() takes at most 1 positional argument ({len(args)} given)"))
    for key, value in _entries(tx, args[0]) if args else ():
        hashed.dict_set(tx, obj.payload, key, value)
    for name, value in kwargs.items():
        hashed.dict_set(tx, obj.payload, constant(name), value)


def _entries(tx: Any, source: VariableTracker) -> Iterator[tuple[VariableTracker, VariableTracker]]:
    """mutablemapping_update_arg: unlike a dict, it asks for a key's value before it asks for the next key."""
    inner = hashed.payload_of(source)
    asked = ("__iter__", "keys", "__getitem__")
    if isinstance(inner, DictVariable) and (inner is source or not any(lookup.is_python(tx, source.python_type(), n) for n in asked)):
        yield from list(hashed.complete(tx, inner).values())
        return
    keys = attributes.special_method(tx, source, "keys")
    if keys is not None:
        for key in iteration.drawn(tx, realize(calls.call(tx, keys, [], {}), tx.state)):
            key = realize(key, tx.state)
            yield key, containers.get_item(tx, source, key)
        return
    if attributes.special_method(tx, source, "items") is not None:
        raise GraphBreak("unsupported_builtin_method", "OrderedDict.update() of an object with items() and without keys()")
    for pair in iteration.drawn(tx, source):
        yield _pair(tx, realize(pair, tx.state))


def _pair(tx: Any, pair: VariableTracker) -> tuple[VariableTracker, VariableTracker]:
    """mutablemapping_add_pairs: it draws one item more than it needs, and says otherwise than a dict what is wrong."""
    both: list[VariableTracker] = []
    for item in iteration.drawn(tx, pair):
        both.append(realize(item, tx.state))
        if len(both) > 2:
            raise UserRaise(user_error(ValueError, "too many values to unpack (expected 2)"))
    if len(both) < 2:
        raise UserRaise(user_error(ValueError, "need more than 1 value to unpack" if both else "need more than 0 values to unpack"))
    return both[0], both[1]


making.INITIALISERS[collections.OrderedDict] = initialise_ordered
making.MAPPING_BASES.add(collections.OrderedDict)


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
