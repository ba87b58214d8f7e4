"""Attributes of instances: object.__getattribute__, the instance's ``__dict__``, and the descriptor protocol."""

from __future__ import annotations

import collections
import functools
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

from .. import _native
from ..errors import GraphBreak, UserRaise
from ..interp.state import realize
from ..model.value import (
    MISSING,
    BuiltinMethodVariable,
    DictVariable,
    LazyVariable,
    MethodVariable,
    ObjectVariable,
    TupleVariable,
    VariableTracker,
    constant,
)
from . import calls, class_attributes, class_writes, lookup, storing
from .hashed import dict_get, payload_of
from .wrapping import wrap_class, wrap_pinned


def instance_dict_attr(tx: Any, obj: ObjectVariable, name: str) -> Any:
    """The instance dict's entry, MISSING if there is none; its presence or absence is guarded."""
    found = obj.attrs.get(name)
    if found is not None:
        return found
    if obj.namespace is not None:
        entry = calls.operators.containers.dict_get(tx, obj.namespace, constant(name))
        return MISSING if entry is None else entry
    if obj.value is MISSING:
        return MISSING
    if not obj.cls.__dictoffset__ and _native.namespace_of(obj.value) is not None:
        raise GraphBreak("unsupported_attribute", f"the attributes of a {obj.cls.__name__}, kept in C")
    namespace = _native.namespace_of(obj.value)
    if type(namespace) is not dict:
        return MISSING
    assert obj.source is not None
    source = obj.source.namespace(obj.value).child("KEY", name)
    if name in namespace:
        tx.state.guards.present(source)
        return LazyVariable(namespace[name], source)
    tx.state.guards.add(source, "ABSENT")
    return MISSING


def instance_attr(tx: Any, obj: ObjectVariable, name: str) -> VariableTracker:
    cls = obj.cls
    getattribute = lookup.mro_lookup(tx, cls, "__getattribute__")
    if isinstance(getattribute, types.FunctionType):
        return or_fallback(tx, obj, name, lambda: calls.call(tx, MethodVariable(wrap_pinned(tx, getattribute), obj), [constant(name)], {}))
    generic = any(cls is kind for kind in (types.UnionType, types.GenericAlias))  # not ``==``, which a metaclass may define
    if generic and obj.source is not None and name in ("__args__", "__origin__", "__parameters__"):
        if cls is not types.UnionType:
            tx.state.guards.pin(obj.source, obj.value)
        return LazyVariable(getattr(obj.value, name), obj.source.child("ATTR", name))
    if getattribute is _LOCAL_GETATTRIBUTE and obj.source is not None and lookup.mro_lookup(tx, cls, "__init__") is object.__init__:
        return _thread_local_attr(tx, obj, name)
    if getattribute is not object.__getattribute__ and not _is_generic(cls):
        raise GraphBreak("unsupported_attribute", f"the attributes of a {cls.__name__}, which C code looks up in a way of its own")
    return generic_get_attr(tx, obj, name)


_LOCAL_GETATTRIBUTE: Any = threading.local.__dict__["__getattribute__"]


class _LocalDict:
    """Accessor: the attributes that a ``threading.local`` has in this thread."""

    __name__ = "local_dict"

    def __call__(self, local: Any) -> Any:
        return _LOCAL_GETATTRIBUTE(local, "__dict__")


_LOCAL_DICT = _LocalDict()


def _thread_local_attr(tx: Any, obj: ObjectVariable, name: str) -> VariableTracker:
    """local_getattro: object.__getattribute__ with that dict."""
    if name == "__dict__" or lookup.mro_lookup(tx, obj.cls, "__getattr__") is not MISSING:
        raise GraphBreak("unsupported_attribute", f"{name} of a {obj.cls.__name__}, or one with a __getattr__")
    on_class = lookup.mro_lookup(tx, obj.cls, name)
    if on_class is MISSING or not lookup.is_data(tx, type(on_class)):
        found = dict_get(tx, local_dict(tx, obj), constant(name))
        if found is not None:
            return found
        if on_class is MISSING:
            raise lookup.attribute_error(obj, name)
    return generic_get_attr(tx, obj, name)


def local_dict(tx: Any, obj: ObjectVariable) -> Any:
    """The attributes that a ``threading.local`` from outside has in this thread, which are made where there were none."""
    assert obj.source is not None
    return realize(LazyVariable(_LOCAL_DICT(obj.value), obj.source.child("PYCALL", _LOCAL_DICT)), tx.state)


def is_plain_local(tx: Any, obj: ObjectVariable, name: str) -> bool:
    """Whether it is a ``threading.local`` from outside whose attribute of that name lies in this dict, whoever sets or deletes it."""
    if obj.source is None or not issubclass(obj.cls, threading.local) or name == "__dict__":
        return False
    on_class = lookup.mro_lookup(tx, obj.cls, name)
    return (on_class is MISSING or not lookup.is_data(tx, type(on_class))) and (
        lookup.mro_lookup(tx, obj.cls, "__init__") is object.__init__) and all(
        lookup.mro_lookup(tx, obj.cls, method) is threading.local.__dict__[method] for method in _LOCAL_METHODS)


_LOCAL_METHODS = ("__getattribute__", "__setattr__", "__delattr__")


@functools.cache
def _is_generic(cls: type) -> bool:
    """Whether ``__getattribute__``, defined in C, is object's own function under another name."""
    owner = next(base for base in cls.__mro__ if "__getattribute__" in base.__dict__)
    return _native.generic_getattr(owner) or owner is types.ModuleType or owner is type


def generic_get_attr(tx: Any, obj: ObjectVariable, name: str, fallback: bool = True) -> VariableTracker:
    """object.__getattribute__, then ``__getattr__``."""
    cls = obj.cls
    stored = class_writes.written(tx, cls, name)
    if stored is not MISSING or type(lookup.peek(cls, name)) is int:
        own = instance_dict_attr(tx, obj, name)
        if own is not MISSING:
            lookup.record(tx, cls, name)
            return own
        if stored is MISSING:
            stored = class_writes.number(tx, cls, name)
        if stored is not MISSING:
            return class_writes.of_instance(stored, obj)
    on_class = class_writes.found(tx, cls, name)
    if on_class is _CLASS_OF:
        return wrap_class(tx, cls)
    kind = type(on_class)
    if name == "__dict__" and isinstance(on_class, (types.GetSetDescriptorType, types.MemberDescriptorType)):
        return instance_dict(tx, obj)
    if on_class is not MISSING:
        lookup.guard_kind(tx, cls, name, on_class)
    own = MISSING if on_class is not MISSING and lookup.is_data(tx, kind) else instance_dict_attr(tx, obj, name)
    if own is not MISSING:
        return own
    if on_class is not MISSING:
        return or_fallback(tx, obj, name, lambda: bind(tx, on_class, obj, cls, name), fallback)
    found = _fallback(tx, obj, name) if fallback else MISSING
    if found is MISSING:  # the error is no variable here: its traceback would keep it, and the program's frames, alive
        raise lookup.attribute_error(obj, name)
    return found  # type: ignore[return-value]


def or_fallback(tx: Any, obj: ObjectVariable, name: str, look: Callable[[], VariableTracker], fallback: bool = True) -> VariableTracker:
    """``__getattr__`` where the look-up raises AttributeError (CPython: slot_tp_getattr_hook)."""
    try:
        return look()
    except UserRaise as raised:
        missing = fallback and issubclass(raised.value.python_type(), AttributeError)
        found = _fallback(tx, obj, name) if missing else MISSING
        if found is MISSING:
            raise
        return found  # type: ignore[return-value]


_CLASS_OF = object.__dict__["__class__"]


def tells_own_class(tx: Any, obj: VariableTracker) -> bool:
    """Whether code of the program says what ``obj.__class__`` is, or another object (a weak proxy's)."""
    if not isinstance(obj, ObjectVariable) or issubclass(obj.cls, type):
        return False
    if obj.cls in weakref.ProxyTypes:
        return True
    return lookup.is_python(tx, obj.cls, "__getattribute__") or (
        lookup.mro_lookup(tx, obj.cls, "__class__") is not _CLASS_OF)


def _fallback(tx: Any, obj: ObjectVariable, name: str) -> Any:
    """What ``__getattr__`` gives for an attribute that is not there; MISSING where there is no such method."""
    hook = lookup.mro_lookup(tx, obj.cls, "__getattr__")
    if hook is MISSING:
        return MISSING
    if not isinstance(hook, types.FunctionType):
        raise GraphBreak("unsupported_attribute", f"{obj.cls.__name__}.__getattr__ is no Python function")
    quick = MODULE_GETATTR.get(hook)
    if quick is not None:
        found = quick(tx, obj, name)
        return MISSING if found is None else found
    return calls.call(tx, MethodVariable(wrap_pinned(tx, hook), obj), [constant(name)], {})


MODULE_GETATTR: dict[Any, Any] = {}  # Python __getattr__ functions with a native meaning (torch.nn.Module's)


def instance_dict(tx: Any, obj: ObjectVariable) -> VariableTracker:
    """``obj.__dict__``; from now on the object's attributes live there."""
    if obj.namespace is not None:
        return obj.namespace
    slots = {n: v for n, v in obj.attrs.items() if is_slot(tx, obj, n)}
    changed = {n: v for n, v in obj.attrs.items() if n not in slots}
    if obj.value is MISSING:
        namespace = DictVariable({})
    else:
        if issubclass(type(obj.value), (types.FunctionType, types.ModuleType, type)) or type(_native.namespace_of(obj.value)) is not dict:
            raise GraphBreak("unsupported_attribute", f"the __dict__ of a {obj.cls.__name__}")
        assert obj.source is not None
        found = realize(LazyVariable(_native.namespace_of(obj.value), obj.source.namespace(obj.value)), tx.state)
        if not isinstance(found, DictVariable) or found.owner is None and id(found) in tx.state.mutated:  # attributes were read without it
            raise GraphBreak("unsupported_attribute", f"the __dict__ of a {obj.cls.__name__}")
        namespace = found
    obj.namespace = namespace
    namespace.owner = obj
    tx.state.namespaces.append(namespace)
    obj.attrs.clear()
    obj.attrs.update(slots)
    for name, value in changed.items():
        if value is MISSING:
            calls.operators.containers.dict_delete(tx, namespace, constant(name))
        else:
            calls.operators.containers.dict_set(tx, namespace, constant(name), value)
    return namespace


def is_slot(tx: Any, obj: ObjectVariable, name: str) -> bool:
    return isinstance(lookup.mro_lookup(tx, obj.cls, name), types.MemberDescriptorType)


_TUPLE_GETTER = type(collections.namedtuple("_Sample", "x").__dict__["x"])  # noqa: PYI024


def bind(tx: Any, found: Any, obj: VariableTracker, cls: type, name: str, owner: Any = None) -> VariableTracker:
    """The descriptor protocol: what ``found``, an attribute of ``cls``, gives for the instance ``obj``."""
    kind = type(found)
    if kind is types.FunctionType or kind is _native.CompiledFunction or kind is functools._lru_cache_wrapper:
        return MethodVariable(wrap_pinned(tx, found), obj)
    if lookup.is_plain(tx, found, staticmethod):
        return wrap_pinned(tx, lookup.wrapped(found))
    if lookup.is_plain(tx, found, classmethod):
        return class_attributes.class_method(tx, found, owner or wrap_class(tx, cls), name)
    if lookup.is_plain(tx, found, property):
        fget = lookup.accessor(found, "fget")
        if fget is None:
            raise GraphBreak("raised_exception", f"property {name} has no getter")  # its own name for itself is not to be seen
        return calls.call(tx, wrap_pinned(tx, fget), [obj], {})
    if isinstance(found, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        by_name = found.__name__ == name and not lookup.is_python(tx, cls, "__getattribute__")
        return BuiltinMethodVariable(name, obj) if by_name else BuiltinMethodVariable(found.__name__, obj, found)
    if isinstance(found, types.ClassMethodDescriptorType):
        return BuiltinMethodVariable(name, owner or wrap_class(tx, cls))
    if kind is _TUPLE_GETTER and isinstance(getattr(obj, "payload", None), TupleVariable):
        return obj.payload.items[found.__reduce__()[1][0]]  # type: ignore[attr-defined]
    if isinstance(found, (types.MemberDescriptorType, types.GetSetDescriptorType)):
        return _native_member(tx, found, obj, name)
    if kind is functools.cached_property and isinstance(obj, ObjectVariable) and found.attrname is not None:
        return _cached(tx, found, found.attrname, obj)
    getter = lookup.mro_lookup(tx, kind, "__get__")
    if getter is MISSING:
        return class_attributes.class_value(tx, cls, name, found)
    if isinstance(getter, types.FunctionType):
        owner = owner or wrap_class(tx, cls)
        return calls.call(tx, wrap_pinned(tx, getter), [class_attributes.class_value(tx, cls, name, found), obj, owner], {})
    if isinstance(found, type) or isinstance(found, types.BuiltinFunctionType):
        return wrap_pinned(tx, found)
    raise GraphBreak("unsupported_attribute", f"descriptor {kind.__name__} at {cls.__name__}.{name}")


def _cached(tx: Any, found: functools.cached_property, name: str, obj: ObjectVariable) -> VariableTracker:
    """functools.cached_property.__get__ of an instance that has not kept the value. The lock of CPython 3.11 shows nowhere else."""
    if not storing.has_instance_dict(obj):
        raise GraphBreak("raised_exception", f"a cached property of a {obj.cls.__name__}, which has no __dict__")
    value = calls.call(tx, wrap_pinned(tx, found.func), [obj], {})
    if instance_dict_attr(tx, obj, name) is MISSING:
        storing.store_attr(tx, obj, name, value)
    return value


def _native_member(tx: Any, found: Any, obj: VariableTracker, name: str) -> VariableTracker:
    """A slot or a C getter: read from the real object while the trace has not written it."""
    told = MEMBERS[type(obj)](tx, obj, name) if type(obj) in MEMBERS else None
    if told is not None:
        return told
    if isinstance(obj, ObjectVariable):
        stored = obj.attrs.get(name)
        if stored is not None and stored is not MISSING:
            return stored
        if obj.value is not MISSING and stored is None and obj.source is not None:
            if any(runs(obj.cls, name) for runs in RUN_PROGRAMS):
                raise GraphBreak("unsupported_attribute", f"{obj.cls.__name__}.{name}, which may call the program's hooks")
            try:
                value = object.__getattribute__(obj.value, name)
            except AttributeError:
                tx.state.guards.add(obj.source.attribute(obj.value, name), "ABSENT")
                if isinstance(found, types.MemberDescriptorType):
                    raise lookup.unset_slot(tx, obj, name) from None
                raise lookup.attribute_error(obj, name) from None
            except Exception as error:  # noqa: BLE001 - whatever a getter of C raises, the program gets it from that
                raise GraphBreak("raised_exception", f"{obj.cls.__name__}.{name} raises {type(error).__name__}") from None
            source = obj.source.attribute(obj.value, name)
            tx.state.guards.present(source)
            return LazyVariable(value, source)
        fields = getattr(obj.cls, "__match_args__", ())
        if isinstance(obj.payload, TupleVariable) and name in fields:  # a struct sequence (torch.return_types.max)
            return obj.payload.items[fields.index(name)]
        if isinstance(found, types.MemberDescriptorType) and obj.cls.__flags__ & lookup.HEAP_TYPE:
            raise lookup.unset_slot(tx, obj, name)
    raise GraphBreak("unsupported_attribute", f"{obj.python_type().__name__}.{name}")


RUN_PROGRAMS: list[Callable[[type, str], bool]] = []  # (class, name) -> whether code of the program may run where it is read
MEMBERS: dict[type, Any] = {}  # class of tracker -> (tx, object, name) -> the member, or None


def module_table_entry(tx: Any, obj: ObjectVariable, table: str, name: str) -> VariableTracker | None:
    """Entry of a dict that is an attribute of ``obj`` (torch.nn.Module's _parameters, _buffers, _modules)."""
    entries = _module_table(tx, obj, table)
    if entries is None:
        return None
    if not _is_plain_table(tx, entries):
        there = calls.truth_of(tx, calls.operators.contains(tx, constant(name), entries))
        return calls.operators.getitem(tx, entries, constant(name)) if there else None
    return dict_get(tx, payload_of(entries), constant(name))  # type: ignore[arg-type]


def has_plain_table(tx: Any, obj: ObjectVariable, table: str) -> bool:
    """Whether such a dict reads and writes as dict itself does; one that is not there does."""
    entries = _module_table(tx, obj, table)
    return entries is None or _is_plain_table(tx, entries) and (
        not isinstance(entries, ObjectVariable) or not lookup.is_python(tx, entries.cls, "__setitem__"))


def _module_table(tx: Any, obj: ObjectVariable, table: str) -> VariableTracker | None:
    entries = instance_dict_attr(tx, obj, table)
    if entries is MISSING:
        return None
    entries = realize(entries, tx.state)
    if not isinstance(payload_of(entries), DictVariable):
        raise GraphBreak("unsupported_attribute", f"{table} is no dict")
    return entries


def _is_plain_table(tx: Any, entries: VariableTracker) -> bool:
    """Whether ``in`` and ``[...]`` are dict's own: then what ``__missing__`` gives is not asked for."""
    return not isinstance(entries, ObjectVariable) or all(
        lookup.mro_lookup(tx, entries.cls, method) is dict.__dict__[method] for method in ("__contains__", "__getitem__"))
