"""From real objects to trackers: guards of what a value is, and trackers of constants."""

from __future__ import annotations

import collections
import enum
import functools
import gc
import inspect
import types
import typing
from typing import Any

from ..errors import GraphBreak
from ..interp.state import realize
from ..model.dispatch import HANDLERS, TENSOR, specialised, unknown
from ..model.source import Source, pinned
from ..model.value import (
    MISSING,
    BuiltinMethodVariable,
    CellVariable,
    ConstantVariable,
    DequeVariable,
    DictVariable,
    LazyVariable,
    ListVariable,
    MethodVariable,
    ObjectVariable,
    SetVariable,
    SliceVariable,
    SuperVariable,
    TupleVariable,
    VariableTracker,
    constant,
)
from . import lookup, outside, recording

CONSTANT_TYPES = frozenset(
    (type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented), types.CodeType)
)
NUMBERS_AND_TEXTS = (int, float, complex, str, bytes)  # constants of which there may be several that are equal
BUILTIN_FUNCTIONS = (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType,
                     types.MethodWrapperType, types.ClassMethodDescriptorType, types.GetSetDescriptorType,
                     types.MemberDescriptorType)


def plain_bytes(value: bytes) -> bytes:
    return bytes.__getitem__(value, slice(None))


PLAIN_VALUES: dict[type, Any] = {int: int.__int__, float: float.__float__, str: str.__str__, bytes: plain_bytes}  # of subclasses' instances


def wrap_constant(value: Any) -> VariableTracker:
    """Tracker of an object that is the same in every run: code constants, builtins, pinned objects."""
    cls = type(value)
    if cls in CONSTANT_TYPES or TENSOR.is_constant_type(cls) or cls is range:
        return constant(value)
    if cls is tuple:
        return TupleVariable([wrap_constant(v) for v in value])
    if cls is frozenset:
        made = SetVariable({v: constant(v) for v in value}, cls=frozenset, order=value)
        made.as_is = True
        return made
    if cls is slice:
        return SliceVariable([wrap_constant(v) for v in (value.start, value.stop, value.step)])
    return ObjectVariable(value, cls, pinned(value))


STAND_INS: set[type] = set()  # classes in Python that do what one in C does: the program never sees them


def wrap_class(tx: Any, cls: type) -> VariableTracker:
    if cls in STAND_INS:
        raise GraphBreak("introspection", "the class of an object that stands for one made in C")
    return wrap_pinned(tx, cls)


def wrap_pinned(tx: Any, value: Any) -> VariableTracker:
    """Tracker of an object whose identity is already assured, one for each object."""
    state = tx.state
    found = _known(state, value)
    if found is None:
        found = wrap_constant(value)
        if isinstance(found, ObjectVariable):
            state.by_id[id(value)] = found
            state.keep_alive.append(value)
    return found


def _known(state: Any, value: Any) -> VariableTracker | None:
    """The tracker of this very object. A repeated block has only noted where its objects are (tensor.blocks)."""
    found = state.by_id.get(id(value))
    if type(found) is LazyVariable:
        del state.by_id[id(value)]
        found = realize(found, state)
    return found


def need_constant_deep(tracker: VariableTracker) -> Any:
    """The Python value of constants and tuples, lists, slices of them; a graph break for anything else."""
    tracker = specialised(tracker)
    if isinstance(tracker, ConstantVariable):
        return tracker.value
    if isinstance(tracker, LazyVariable) and tracker.tracker is not None:
        return need_constant_deep(tracker.tracker)
    if isinstance(tracker, TupleVariable):
        return tuple(need_constant_deep(i) for i in tracker.items)
    if isinstance(tracker, SetVariable) and tracker.cls is frozenset:
        return frozenset(need_constant_deep(i) for i in tracker.items.values())
    if isinstance(tracker, ObjectVariable) and tracker.source is not None and tracker.source.access == "CONST":
        return tracker.value
    raise GraphBreak("untraceable_call", f"a {type(tracker).__name__} where a constant is needed")


class VariableBuilder:
    """Wraps the objects that a frame reaches, recording what the trace relies on."""

    def __init__(self, state: Any) -> None:
        self.state = state

    def wrap(self, value: Any, source: Source) -> VariableTracker:
        state, guards = self.state, self.state.guards
        cls = type(value)
        if cls in CONSTANT_TYPES:
            if cls is types.CodeType:
                guards.add(source, "ID", value)
            elif (cls is int or cls is float) and (number := TENSOR.number(state, value, source)) is not None:
                return number
            else:
                guards.add(source, "EQ", value)
            return ConstantVariable(value, source) if cls in NUMBERS_AND_TEXTS else constant(value)
        known = _known(state, value)
        if known is not None:
            if known.source is not None and known.source != source:
                guards.add(source, "ALIAS", (source, known.source))
            elif state.blocks is not None and state.blocks.ways:
                state.blocks.reached(source)
            return known
        tracker = TENSOR.wrap(self, value, source) or self._wrap_object(value, cls, source)
        if not isinstance(tracker, ConstantVariable):
            state.by_id[id(value)] = tracker
            state.keep_alive.append(value)
        return tracker

    def _wrap_object(self, value: Any, cls: type, source: Source) -> VariableTracker:
        guards = self.state.guards
        if cls is types.ModuleType or issubclass(cls, (type, types.ModuleType)) or cls in BUILTIN_FUNCTIONS:
            if cls is types.BuiltinFunctionType and not _is_module_level(value):
                return self._bound_builtin(value, source)
            guards.pin(source, value)
            return ObjectVariable(value, cls, source)
        if issubclass(type(value), enum.Enum) or cls in (functools._lru_cache_wrapper, SPECIAL_FORM):
            guards.pin(source, value)
            return ObjectVariable(value, cls, source)
        if cls is types.FunctionType:
            return self._function(value, source)
        if cls is types.MethodType:
            guards.add(source, "TYPE", cls)
            func = LazyVariable(value.__func__, source.child("MFUNC"))
            return MethodVariable(func, LazyVariable(value.__self__, source.child("MSELF")), source)
        guards.add(source, "TYPE", cls)
        base = next((base for base in PLAIN_VALUES if issubclass(cls, base)), None)
        if base is not None:
            plain = PLAIN_VALUES[base]
            guards.add(source.child("PYCALL", plain), "EQ", plain(value))
            return ObjectVariable(value, cls, source)
        if cls is types.CellType:
            try:
                contents: Any = LazyVariable(value.cell_contents, source.child("CELLVAL"))
            except ValueError:
                guards.add(source.child("CELLVAL"), "ABSENT")
                contents = MISSING
            return CellVariable(contents, source)
        if cls is types.UnionType:  # made anew wherever it is written
            guards.add(source, "PY", _UnionIs(value))
            return ObjectVariable(value, types.UnionType, source)  # type: ignore[arg-type]
        if cls is range:
            guards.add(source, "PY", _RangeIs(value))
            return ConstantVariable(value, source)
        if cls is slice:
            return SliceVariable([self.wrap(getattr(value, n), source.child("ATTR", n)) for n in ("start", "stop", "step")], source)
        if cls is types.MappingProxyType:
            tracker = ObjectVariable(value, cls, source)
            tracker.payload = self.proxied(value, source)
            return tracker
        if cls is super and value.__self__ is not None:
            return self._super(value, source)
        if cls in outside.KINDS:
            return outside.wrap_iterator(self.state, value, source)
        if cls is collections.deque:
            guards.add(source, "PY", _DequeIs(value))
            items: list = [LazyVariable(v, source.child("PYCALL", _At(i))) for i, v in enumerate(value)]
            return DequeVariable(items, value.maxlen, source, value)
        payload = self._payload(value, cls, source)
        if payload is not None and cls in (list, tuple, dict, set, frozenset):
            return payload
        if id(value) in HANDLERS:  # a callable of a library's own class, known by its identity
            guards.pin(source, value)
        tracker = ObjectVariable(value, cls, source)
        tracker.payload = payload
        return tracker

    def proxied(self, value: types.MappingProxyType, source: Source) -> DictVariable:
        """What a mappingproxy shows."""
        inner = self.wrap(_PROXIED(value), source.child("PROXIED", _PROXIED))
        if isinstance(inner, ObjectVariable) and inner.cls is collections.OrderedDict:
            inner = inner.payload  # type: ignore[assignment]
        if not isinstance(inner, DictVariable):
            raise GraphBreak("unsupported_attribute", f"a mappingproxy of a {type(_PROXIED(value)).__name__}")
        return inner

    def _payload(self, value: Any, cls: type, source: Source) -> VariableTracker | None:
        guards = self.state.guards
        if issubclass(type(value), (list, tuple)):
            base = list if issubclass(type(value), list) else tuple
            if base is list:
                recording.check(value)

            def look() -> list:
                length = base.__len__(value)
                guards.add(source, "LEN", length)
                return [LazyVariable(base.__getitem__(value, i), source.item(value, i)) for i in range(length)]

            return ListVariable([], source, value, look) if base is list else TupleVariable(look(), source)
        if issubclass(type(value), dict):
            if id(value) in self.state.scopes:
                raise GraphBreak("introspection", "a globals dict used as a value")
            return DictVariable({}, source, value, dict)
        if issubclass(type(value), (set, frozenset)):
            base_cls = lookup.container_type(value)
            held = list(base_cls.__iter__(value))
            guards.add(source, "PY", _SetIs(value))
            if all(type(v) in CONSTANT_TYPES or type(v) is type for v in held):
                items = {v: wrap_class(self, v) if type(v) is type else constant(v) for v in held}
            else:
                listed = source.child("PYCALL", _listed)
                items = SET_ITEMS[0](self, held, [listed.child("ITEM", i) for i in range(len(held))])
            return SetVariable(items, source, value, base_cls)
        return None

    def _super(self, value: Any, source: Source) -> VariableTracker:
        start = _SUPER_START(value)
        self.state.guards.pin(source.child("PYCALL", _SUPER_START), start)
        tracker = SuperVariable(start, LazyVariable(_SUPER_OBJECT(value), source.child("PYCALL", _SUPER_OBJECT)))
        tracker.source = source
        return tracker

    def _bound_builtin(self, value: Any, source: Source) -> VariableTracker:
        owner = value.__self__
        if owner is None or issubclass(type(owner), (type, types.ModuleType)) or type(owner).__name__.startswith(("PyCapsule", "pybind11")):
            self.state.guards.pin(source, value)
            return ObjectVariable(value, type(value), source)
        descriptor = next((c.__dict__[value.__name__] for c in type(owner).__mro__ if value.__name__ in c.__dict__), None)
        if type(descriptor) is types.MethodDescriptorType and descriptor.__get__(owner) == value:
            self.state.guards.add(source, "METHOD", descriptor)
            method = BuiltinMethodVariable(value.__name__, self.wrap(owner, source.child("ATTR", "__self__")))
            method.source = source
            return method
        raise unknown(f"a bound method {value.__qualname__} made outside of the trace", type(owner).__module__,
                      otherwise="unsupported_builtin_method")

    def _function(self, value: types.FunctionType, source: Source) -> VariableTracker:
        guards = self.state.guards
        if known_by_parts(value, source):
            guards.add(source, "TYPE", types.FunctionType)
            guards.add(source.child("FCODE"), "ID", value.__code__)
            if value.__code__.co_flags & inspect.CO_NESTED or id(value.__globals__) in self.state.scopes:  # of a function that is traced
                guards.add(source.child("FGLOBALS"), "PY", _GlobalsAre(value.__globals__))
            else:
                guards.pin(source, value)
        else:
            guards.pin(source, value)
        return ObjectVariable(value, types.FunctionType, source)


_HELD = frozenset(("ARG", "CELLOBJ", "ITEM", "KEY", "CELLVAL", "FCLOSURE", "FDEFAULTS", "ATTR", "DICT", "MFUNC", "MSELF"))


def known_by_parts(value: types.FunctionType, source: Source) -> bool:
    """Functions reached through locals or cells may be made anew at each call, and so may those defined in functions that containers and
    objects in locals hold: these are guarded by their parts, not by identity. Those that the engine knows are never traced."""
    if source.root().access not in ("ARG", "CELLOBJ") or id(value) in HANDLERS or TENSOR.takes(value, [], {}):
        return False
    if source.access in ("ARG", "CELLVAL"):
        return True
    place: Source | None = source
    while place is not None and place.access in _HELD:
        place = place.base
    return place is None and value.__code__.co_flags & inspect.CO_NESTED != 0


def _member(cls: type, name: str) -> Any:
    """Accessor of a member kept in C, past attributes of the same name."""
    descriptor = cls.__dict__[name]

    def get(obj: Any) -> Any:
        return descriptor.__get__(obj)

    get.__name__ = name
    return get


_SUPER_START, _SUPER_OBJECT = _member(super, "__thisclass__"), _member(super, "__self__")


def _is_module_level(value: Any) -> bool:
    return issubclass(type(value.__self__), (types.ModuleType, type(None)))


SPECIAL_FORM = type(typing.Optional)  # of `typing.Optional`, and of `typing.Any` before CPython 3.11


class _Proxied:
    """Accessor: the dict behind a mappingproxy, which shows it to nobody but the garbage collector."""

    __name__ = "proxied"

    def __call__(self, proxy: Any) -> Any:
        return gc.get_referents(proxy)[0]


_PROXIED = _Proxied()


class _RangeIs:
    """Guard: the same range, with plain ints."""

    __name__ = "range_is"

    def __init__(self, value: range) -> None:
        self.parts = (value.start, value.stop, value.step)

    def __call__(self, value: range) -> bool:
        return (value.start, value.stop, value.step) == self.parts


class _UnionIs:
    """Guard: a union of the very same classes."""

    __name__ = "union_is"

    def __init__(self, value: types.UnionType) -> None:
        self.parts = value.__args__

    def __call__(self, value: types.UnionType) -> bool:
        return len(value.__args__) == len(self.parts) and all(a is b for a, b in zip(value.__args__, self.parts, strict=True))


class _DequeIs:
    """Guard: so many items, and the same limit."""

    def __init__(self, value: collections.deque) -> None:
        self.parts = len(value), value.maxlen
        self.__name__ = f"deque_of_{len(value)}"

    def __call__(self, value: collections.deque) -> bool:
        return (len(value), value.maxlen) == self.parts


class _At:
    """Accessor: an item of a deque."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.__name__ = f"item_{index}"

    def __call__(self, value: collections.deque) -> Any:
        return value[self.index]


def _listed(value: Any) -> list:
    """Accessor: the items of a set in their order."""
    return list(lookup.container_type(value).__iter__(value))


SET_ITEMS: list[Any] = []  # set by hashed.py: items of a set from outside that are no constants


class _SetIs:
    """Guard: the same constants and classes, of the same types, iterated in the same order; how many, for other items."""

    __name__ = "set_is"

    def __init__(self, value: Any) -> None:
        self.items = self._typed(value)

    def __call__(self, value: Any) -> bool:
        return self._typed(value) == self.items

    def _typed(self, value: Any) -> list[tuple[type, Any]]:
        return [(type(v), v) if type(v) in CONSTANT_TYPES or type(v) is type else (object, None) for v in _listed(value)]


class _GlobalsAre:
    """Guard: the function looks its globals up in this dict."""

    __name__ = "globals_are"

    def __init__(self, value: dict) -> None:
        self.value = value

    def __call__(self, value: Any) -> bool:
        return value is self.value
