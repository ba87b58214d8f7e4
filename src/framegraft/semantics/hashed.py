"""Dicts and sets: what lies under a key, and what guards say of keys that were asked for."""

from __future__ import annotations

import collections
import enum
import types
import weakref
from typing import Any

from .._native import type_name
from ..errors import GraphBreak, UserRaise
from ..interp.state import realize, user_error
from ..model.dispatch import TENSOR, specialised
from ..model.value import (
    BuiltinMethodVariable,
    ConstantVariable,
    DequeVariable,
    DictVariable,
    FunctionVariable,
    LazyVariable,
    ListVariable,
    ObjectVariable,
    SetVariable,
    SliceVariable,
    TensorVariable,
    TupleVariable,
    VariableTracker,
    constant,
)
from . import lookup, members
from .wrapping import CONSTANT_TYPES, SET_ITEMS


def payload_of(tracker: VariableTracker) -> VariableTracker:
    """The list, tuple, dict or set inside an instance of a subclass; any other tracker itself."""
    if isinstance(tracker, ObjectVariable) and tracker.payload is not None:
        return tracker.payload
    return tracker

PINNED = (type, types.BuiltinFunctionType, types.MethodWrapperType, types.ModuleType, enum.Enum)  # from outside always guarded by identity


def is_nan(value: Any) -> bool:
    """Whether a constant is a float or complex number that is not equal to itself: only its identity tells it from others."""
    return isinstance(value, (float, complex)) and value != value


def holds_nan(key: Any) -> bool:
    """Whether what ``hash_key`` gave is or has a nan somewhere."""
    return any(map(holds_nan, key)) if type(key) in (tuple, frozenset) else is_nan(key)


def pin_nan(tx: Any, tracker: ConstantVariable) -> None:
    """Guards a number that is not equal to itself by its identity, where it comes from outside."""
    if tracker.source is not None and is_nan(tracker.value):
        tx.state.guards.add(tracker.source, "ID", tracker.value)


def slot_wrapper(tracker: VariableTracker) -> Any:
    """The method of a slot that a tracker stands for, ``torch.Tensor.ndim.__get__``: each look-up makes an equal one. Or None."""
    if isinstance(tracker, ObjectVariable):
        return tracker.value if type(tracker.value) is types.MethodWrapperType else None
    owner = tracker.obj if isinstance(tracker, BuiltinMethodVariable) and tracker.name == "__get__" else None
    return owner.value.__get__ if isinstance(owner, ObjectVariable) and type(owner.value) in _OF_CLASS else None  # type: ignore[attr-defined]


_OF_CLASS = (types.GetSetDescriptorType, types.MemberDescriptorType)


def hash_key(tx: Any, key: VariableTracker) -> Any:
    """A Python object that hashes and compares as the tracked one does."""
    key = specialised(key)
    if isinstance(key, ConstantVariable):
        pin_nan(tx, key)
        return key.value
    if isinstance(key, TupleVariable):
        return tuple(hash_key(tx, realize(i, tx.state)) for i in key.items)
    if isinstance(key, SetVariable) and key.cls is frozenset:
        return frozenset(key.items)
    if isinstance(key, ObjectVariable):
        value = key.value
        if issubclass(type(value), PINNED):
            return value
        if issubclass(type(value), types.FunctionType) or lookup.mro_lookup(tx, key.cls, "__hash__") in BY_IDENTITY:
            if is_missing(value):
                return key
            if key.source is not None and key.source.access != "CONST":
                tx.state.guards.keys.setdefault(type(value), {})[key.source] = None
            return value
        if members.has_in_c(tx, key, "__hash__", "__eq__"):
            plain = members.plain_value(key)
            if plain is not None and not is_nan(plain.value):
                return plain.value
        if isinstance(key.payload, TupleVariable) and all(
                lookup.mro_lookup(tx, key.cls, name) is getattr(tuple, name) for name in ("__hash__", "__eq__")):
            return hash_key(tx, key.payload)
        own = OWN_KEY[0](tx, key)
        if own is not None:
            return own
    if isinstance(key, (TensorVariable, FunctionVariable)):
        return key
    if isinstance(key, BuiltinMethodVariable) and (wrapped := slot_wrapper(key)) is not None:
        return wrapped
    if isinstance(key, (ListVariable, DictVariable, SetVariable, DequeVariable, SliceVariable)):
        raise UserRaise(user_error(TypeError, f"unhashable type: '{type_name(key.python_type())}'"))
    raise GraphBreak("unsupported_builtin_method", f"a {key.python_type().__name__} as a key")


def element_key(tx: Any, key: VariableTracker) -> Any:
    """As ``hash_key``, for what is looked for in a set: a set is taken for a frozenset (CPython: ``set_contains``, ``set_remove``)."""
    key = realize(key, tx.state)
    if isinstance(key, SetVariable) and key.cls is not frozenset:
        raise GraphBreak("unsupported_builtin_method", "a set that is looked for in a set")
    return hash_key(tx, key)


def _key_of(tx: Any, d: DictVariable, key: VariableTracker) -> Any:
    """``hash_key``; in a dict from outside the very object is looked for, where its class compares by identity."""
    hashed = hash_key(tx, key)
    parts = [key] if d.value is not None else []
    while parts:
        part = realize(parts.pop(), tx.state)
        if isinstance(items := payload_of(part), TupleVariable):
            parts += items.items
        elif isinstance(part, SetVariable):
            parts += part.items.values()
        elif id(part) in tx.state.own_key_of:
            raise GraphBreak("unsupported_builtin_method", f"a {part.python_type().__name__} as a key of a dict made outside of the trace")
        elif isinstance(part, ObjectVariable) and part.source is not None and part.source in tx.state.guards.keys.get(type(part.value), ()):
            tx.state.guards.add(part.source, "ID", part.value)
    return hashed


def is_missing(value: Any) -> bool:
    return type(value).__name__ == "_Missing"


def dict_get(tx: Any, d: DictVariable, key: VariableTracker) -> VariableTracker | None:
    """Value of a key, None where there is none."""
    hashed = _key_of(tx, d, key)
    found = d.items.get(hashed)
    if found is not None:
        return found[1]
    if d.complete or hashed in d.deleted:
        return None
    assert d.source is not None
    if issubclass(type(hashed), VariableTracker):
        return _get_by_object(tx, d, hashed)
    if not dict.__contains__(d.value, hashed):
        tx.state.guards.add(d.source, "NOKEY", hashed)
        return None
    value = LazyVariable(dict.__getitem__(d.value, hashed), d.source.entry(d.value, hashed))
    if not _is_compound(hashed) and not isinstance(key, ObjectVariable):
        raise GraphBreak("unsupported_builtin_method", "a compound key of a dict made outside of the trace")
    tx.state.guards.add(d.source, "HASKEY", hashed)
    d.items[hashed] = (key, value)
    d.fetched[hashed] = value
    return value


class _ValueOf:
    """Accessor: the value of an object in a dict that knows it by its identity. It keeps nothing alive."""

    def __init__(self, key: Any, name: str) -> None:
        self.key = weakref.ref(key)
        self.__name__ = f"value_of[{name}]"

    def __call__(self, value: dict) -> Any:
        return dict.__getitem__(value, self.key())


class _Holds:
    """Guard: whether an object is a key of a dict."""

    def __init__(self, key: Any, name: str, present: bool) -> None:
        self.key = weakref.ref(key)
        self.present = present
        self.__name__ = f"{'' if present else 'not '}has_key[{name}]"

    def __call__(self, value: dict) -> bool:
        return dict.__contains__(value, self.key()) is self.present


def _get_by_object(tx: Any, d: DictVariable, key: VariableTracker) -> VariableTracker | None:
    """Look-up of a tensor from outside in a dict from outside, as optimizers keep their state."""
    real = getattr(key, "value", None)
    if real is None or key.source is None or type(d.value) not in (dict, collections.defaultdict):
        if isinstance(key, TensorVariable) and key.source is None:
            return None  # made in the trace: no dict from outside has it
        raise GraphBreak("unsupported_builtin_method", f"look-up of a {key.python_type().__name__} in a dict made outside of the trace")
    tx.state.guards.pin(key.source, real)
    present = dict.__contains__(d.value, real)
    tx.state.guards.add(d.source, "PY", _Holds(real, key.source.name, present))  # type: ignore[arg-type]
    if not present:
        return None
    value = LazyVariable(dict.__getitem__(d.value, real), d.source.child("PYCALL", _ValueOf(real, key.source.name)))  # type: ignore[union-attr]
    d.items[key] = (key, value)
    d.fetched[key] = value
    return value


def _is_plain_key(key: Any) -> bool:
    """A constant, or a tuple of constants and classes: looking it up runs no code of the program."""
    if type(key) is tuple:
        return all(_is_plain_key(k) or isinstance(k, type) and _is_compared_by_identity(type(k)) for k in key)
    return type(key) in CONSTANT_TYPES or TENSOR.is_constant_type(type(key))


def _is_compound(key: Any) -> bool:
    """A plain key, or one with frozensets of plain keys in it."""
    if type(key) in (tuple, frozenset):
        return all(_is_compound(k) or isinstance(k, type) and _is_compared_by_identity(type(k)) for k in key)
    return _is_plain_key(key)


def _is_compared_by_identity(meta: type) -> bool:
    return meta.__hash__ is type.__hash__ and meta.__eq__ is type.__eq__


def complete(tx: Any, d: DictVariable) -> dict[Any, tuple[VariableTracker, VariableTracker]]:
    """All entries in order; for a real dict this guards its keys."""
    if d.complete:
        return d.items
    assert d.source is not None
    guards = tx.state.guards
    known = d.items
    items: dict[Any, tuple[VariableTracker, VariableTracker]] = {}
    for key in dict.keys(d.value):
        if type(key) not in CONSTANT_TYPES and _asks_program(key):  # else this very code, and the guards, would ask it
            raise GraphBreak("unsupported_iterator", f"a dict with a {type(key).__name__} as a key")
    if issubclass(type(d.value), collections.OrderedDict):  # its order is its own, not the dict's inside
        keys = list(collections.OrderedDict.keys(d.value))
        guards.add(d.source, "KEYS", tuple(keys))
    else:
        keys = list(dict.keys(d.value))
        guards.add(d.source, "KEYS", tuple(keys))
        if any(type(k) is float for k in keys):
            guards.add(d.source, "PY", _KeysAre(keys))
    for index, key in enumerate(keys):
        if key in d.deleted:
            continue
        found = known.pop(key, None)  # by an equal key, perhaps: True for 1
        if found is not None:
            value = found[1]
        else:
            value = d.fetched[key] = LazyVariable(dict.__getitem__(d.value, key), d.source.entry(d.value, key))
        if type(key) in CONSTANT_TYPES or TENSOR.is_constant_type(type(key)):
            tracker: VariableTracker = constant(key)
        else:
            tracker = realize(LazyVariable(key, d.source.child("MAPKEYAT", index)), tx.state)
            hashed = hash_key(tx, tracker)
            if hashed is not key and not (hashed == key and _is_compound(key)):  # its items are guarded
                raise GraphBreak("unsupported_iterator", f"a dict with a {type(key).__name__} as a key")
        items[key] = (tracker, value)
    items.update(known)
    d.items = items
    d.complete = True
    return items


def _asks_program(key: Any) -> bool:
    """Whether hashing or comparing a key runs code of the program: such a key of a dict from outside must not be looked up."""
    if type(key) is tuple or type(key) is frozenset:
        return any(map(_asks_program, key))
    own = (getattr(type(key), name) for name in ("__hash__", "__eq__"))
    return any(isinstance(method, types.FunctionType) and not _is_known(method) for method in own)


def _is_known(method: types.FunctionType) -> bool:
    """Methods of enums, tensors and others of torch that hash and compare without asking the program."""
    return method.__module__ == "enum" or method.__module__.partition(".")[0] == "torch"


def set_items(tx: Any, held: list, sources: list) -> dict[Any, VariableTracker]:
    """For a set from outside: trackers of items that are no constants, under what they are looked up by."""
    items = {}
    for item, source in zip(held, sources, strict=True):
        if type(item) in CONSTANT_TYPES:
            items[item] = constant(item)
            continue
        if _asks_program(item):
            raise GraphBreak("unsupported_iterator", f"a set with a {type(item).__name__}, made outside of the trace")
        tracker = realize(LazyVariable(item, source), tx.state)
        hashed = hash_key(tx, tracker)
        if hashed is not item and not (hashed == item and _is_compound(item)):
            raise GraphBreak("unsupported_iterator", f"a set with a {type(item).__name__}, made outside of the trace")
        items[hashed] = tracker
    return items


SET_ITEMS.append(set_items)


class _KeysAre:
    """Guard: the same keys in the order of iteration, with the sign of zeros."""

    __name__ = "keys_are"

    def __init__(self, keys: list) -> None:
        self.keys = [(type(k), repr(k) if type(k) is float else k) for k in keys]

    def __call__(self, value: dict) -> bool:
        return [(type(k), repr(k) if type(k) is float else k) for k in value.keys()] == self.keys


def changing(tx: Any, d: Any, seen: bool = True) -> None:
    """A container is being written to; ``seen``: in a way that its iterators notice."""
    if d.source is not None:
        if d.source.access in ("DICT", "BASEDICT", "FDICT", "FGLOBALS", "GLOBALS") and getattr(d, "owner", None) is None:
            raise GraphBreak("unsupported_mutation", "writing to the __dict__ of an object or to a globals dict")
        tx.state.mark_mutated(d)
    else:
        tx.state.changed(d)
    d.mutated = True
    if isinstance(d, ListVariable):
        d.filled = d.filled or bool(d.appended)
    elif seen:
        d.changes += 1


def dict_set(tx: Any, d: VariableTracker, key: VariableTracker, value: VariableTracker) -> None:
    d = payload_of(d)
    assert isinstance(d, DictVariable)
    present = dict_get(tx, d, key) is not None
    hashed = _key_of(tx, d, key)
    changing(tx, d)
    d.items[hashed] = (d.items[hashed][0] if present else key, value)


def dict_delete(tx: Any, d: DictVariable, key: VariableTracker) -> VariableTracker | None:
    """Remove a key; its value, or None where there was none."""
    found = dict_get(tx, d, key)
    if found is None:
        return None
    hashed = _key_of(tx, d, key)
    if isinstance(hashed, VariableTracker) and hashed in d.fetched:
        raise GraphBreak("unsupported_mutation", "a tensor taken out of a dict made outside of the trace")
    changing(tx, d)
    del d.items[hashed]
    if d.source is not None and dict.__contains__(d.value, hashed):
        d.deleted.add(hashed)
    return found


def ordered_items(s: SetVariable) -> list[VariableTracker]:
    """A set's items in the order of its iteration, which hangs on hashes and on how the set came to be."""
    if len(s.items) < 2 or s.as_is and not s.changes:
        return list(s.items.values())
    if s.order is None:
        raise GraphBreak("unsupported_iterator", "the order of a set that the trace has changed")
    return [s.items[key] for key in s.order]


def iterates_itself(tx: Any, obj: VariableTracker) -> bool:
    """Whether the class of an instance has an ``__iter__`` written in Python."""
    return isinstance(obj, ObjectVariable) and lookup.is_python(tx, obj.cls, "__iter__")


def shadow(tx: Any, operand: VariableTracker) -> Any:
    """For ``SetVariable.order``: an operand of a set's method, with keys for items; None where the order is not known."""
    inner = payload_of(operand)
    if isinstance(inner, SetVariable):
        return inner.order
    if inner is not operand and iterates_itself(tx, operand):
        return None  # by code of the program, which has run
    if isinstance(inner, DictVariable):
        keys = list(complete(tx, inner))
        return dict.fromkeys(keys) if all(map(has_steady_hash, keys)) else None
    if not isinstance(inner, (ListVariable, TupleVariable)):
        return None
    keys = [hash_key(tx, realize(i, tx.state)) for i in ITERATE[0](tx, operand)]
    return keys if all(map(has_steady_hash, keys)) else None


BY_IDENTITY: list[Any] = [object.__hash__]  # of classes without an __eq__; those of torch's operators are added
OWN_KEY: list[Any] = []  # set by own_keys.py, as well
ITERATE: list[Any] = []  # set by iteration.py, which builds on this file
DRAW: list[Any] = []  # likewise


def has_steady_hash(key: Any) -> bool:
    """Whether hashing and comparing it runs no code of the program and depends on nothing but the object."""
    if type(key) is frozenset:
        return all(map(_is_plain_key, key))
    return _is_plain_key(key) or isinstance(key, type) and _is_compared_by_identity(type(key))


class Told:
    """A key whose hash a method of the program has told."""

    __slots__ = ()


def has_told_hash(key: Any) -> bool:
    """Whether its hash is that of what the program has: a steady one, or one of parts that have such, or were asked for theirs."""
    return has_steady_hash(key) or isinstance(key, Told) or type(key) in (tuple, frozenset) and all(map(has_told_hash, key))


def reordered(s: SetVariable, method: str, *operands: Any) -> None:
    """Do to ``order`` what is done to the set."""
    if s.order is not None:
        known = all(o is not None for o in operands) and (method not in ("add", "discard") or has_steady_hash(operands[0]))
        if known:
            getattr(s.order, method)(*operands)
        else:
            s.order = None


def set_add(tx: Any, s: VariableTracker, item: VariableTracker) -> None:
    s = payload_of(s)
    assert isinstance(s, SetVariable)
    hashed = hash_key(tx, item)
    if hashed not in s.items:
        s.items[hashed] = item
        if s.order is not None:
            s.order = _with(s.order, hashed)
        if s.log is not None:
            s.log.append(("add", item))
        changing(tx, s)


def _with(order: set, key: Any) -> Any:
    if not has_steady_hash(key):
        return None
    order.add(key)
    return order


def set_update(tx: Any, s: VariableTracker, iterable: VariableTracker) -> None:
    """set.update of one iterable."""
    s = payload_of(s)
    assert isinstance(s, SetVariable)
    other = payload_of(iterable)
    # set_update_internal takes what is in them, whatever their own methods say; it makes room for all of it in advance.
    whole = isinstance(other, SetVariable) or type(iterable) is DictVariable
    order, log = s.order, s.log
    if whole:
        operand = shadow(tx, other)
        s.order = s.log = None
    for item in DRAW[0](tx, other if whole else iterable):
        set_add(tx, s, realize(item, tx.state))
    if whole:
        s.order = order if operand is not None else None
        if s.order is not None:
            s.order.update(operand)
        s.log = log
        if log is not None and isinstance(other, SetVariable) and operand is not None:
            log.append(("update", SetVariable(dict(other.items), cls=other.cls, order=operand.copy())))
        else:
            s.log = None
