"""Setting and deleting attributes: CPython's object.__setattr__ and __delattr__."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

from .._native import namespace_of, type_name
from ..errors import GraphBreak, UserRaise
from ..interp.state import realize, user_error
from ..model.dispatch import TENSOR
from ..model.value import (
    MISSING,
    ConstantVariable,
    DictVariable,
    ExceptionVariable,
    FunctionVariable,
    MethodVariable,
    ObjectVariable,
    TensorVariable,
    VariableTracker,
    constant,
)
from . import calls, class_attributes, class_writes, exception_attributes, hashed, instances, lookup
from .wrapping import wrap_pinned


def set_attr(tx: Any, obj: VariableTracker, name: str, value: VariableTracker) -> None:
    if isinstance(obj, TensorVariable):
        TENSOR.set_attr(tx, obj, name, realize(value, tx.state))
        return
    if isinstance(obj, ExceptionVariable):
        exception_attributes.set_exception_attr(tx, obj, name, value)
        return
    if isinstance(obj, FunctionVariable):
        if lookup.defines(types.FunctionType, name):
            _check_function_attr(obj, name, realize(value, tx.state))
        tx.state.changed(obj)
        obj.attrs[name] = value
        return
    if isinstance(obj, MethodVariable) and obj.python_type() is functools.partial and not lookup.defines(functools.partial, name):
        tx.state.changed(obj)
        obj.attrs[name] = value  # type: ignore[attr-defined]
        return
    if not isinstance(obj, ObjectVariable):
        raise GraphBreak("unsupported_mutation", f"setting {obj.python_type().__name__}.{name}")
    if issubclass(type(obj.value), type):
        setter = lookup.mro_lookup(tx, obj.cls, "__setattr__")
        if isinstance(setter, types.FunctionType):
            calls.ask(tx, obj, MethodVariable(wrap_pinned(tx, setter), obj), [constant(name), value], answers=False)
        elif setter is type.__setattr__:
            class_writes.set_class_attr(tx, obj, name, value)
        else:
            raise GraphBreak("unsupported_mutation", f"setting {obj.cls.__name__}.{name}, which has a __setattr__ of its own")
        return
    if issubclass(type(obj.value), (types.FunctionType, types.ModuleType)):
        if name.startswith("__") or lookup.is_python(tx, obj.cls, "__setattr__"):
            raise GraphBreak("unsupported_mutation", f"setting {name} of a function or module")
        if isinstance(obj.value, types.ModuleType):
            on_class = lookup.mro_lookup(tx, obj.cls, name)
            if on_class is not MISSING and lookup.is_data(tx, type(on_class)):
                raise GraphBreak("unsupported_mutation", f"setting {name} of a module, a data descriptor of the module's class")
            _check_scope(tx, obj.value, name)
            tx.state.written[id(namespace_of(obj.value))] = obj
        store_attr(tx, obj, name, value)
        return
    setter = lookup.mro_lookup(tx, obj.cls, "__setattr__")
    if isinstance(setter, types.FunctionType):
        quick = MODULE_SETATTR.get(setter)
        if quick is None or not quick(tx, obj, name, value):
            calls.ask(tx, obj, MethodVariable(wrap_pinned(tx, setter), obj), [constant(name), value], answers=False)
        return
    if instances.is_plain_local(tx, obj, name):
        hashed.dict_set(tx, instances.local_dict(tx, obj), constant(name), value)
        return
    if setter is not object.__setattr__ and not _keeps_generic(obj.cls):
        raise GraphBreak("unsupported_mutation", f"setting {obj.cls.__name__}.{name}, which has a __setattr__ of its own")
    generic_set_attr(tx, obj, name, value)


def _check_function_attr(fn: FunctionVariable, name: str, value: VariableTracker) -> None:
    """What CPython keeps of a function in C, as far as it takes any such value (Objects/funcobject.c)."""
    text = value.value if isinstance(value, ConstantVariable) and type(value.value) is str else None
    if name == "__name__" and text is not None:
        fn.name = text
    elif name == "__qualname__" and text is not None:
        fn.qualname = text
    elif name not in ("__doc__", "__module__") and not (name == "__annotations__" and isinstance(value, DictVariable)):
        raise GraphBreak("unsupported_mutation", f"setting {name} of a function made in the trace")


def _check_scope(tx: Any, module: types.ModuleType, name: str) -> None:
    """The trace must not have set the name as a global of the module's functions: changes are replayed each on its own."""
    scope = tx.state.scopes.get(id(namespace_of(module)))
    if scope is not None and name in scope.stores:
        raise GraphBreak("unsupported_mutation", f"{name} set as a global and as an attribute of a module")


@functools.cache
def _keeps_generic(cls: type) -> bool:
    """Whether ``__setattr__``, defined in C, is that of a class whose attributes the trace knows to set."""
    owner = next(base for base in cls.__mro__ if "__setattr__" in base.__dict__)
    return owner in (BaseException, functools.partial, types.SimpleNamespace)


MODULE_SETATTR: dict[Any, Any] = {}


def generic_set_attr(tx: Any, obj: ObjectVariable, name: str, value: VariableTracker) -> None:
    """object.__setattr__."""
    on_class = lookup.mro_lookup(tx, obj.cls, name)
    if on_class is not MISSING and lookup.is_plain(tx, on_class, property, "__set__"):
        fset = lookup.accessor(on_class, "fset")  # type: ignore[arg-type]
        if fset is None:
            raise GraphBreak("raised_exception", f"property {name} has no setter")
        calls.ask(tx, obj, wrap_pinned(tx, fset), [obj, value], answers=False)
        return
    if _is_slot(on_class):
        store_attr(tx, obj, name, value)
        return
    if on_class is not MISSING and hasattr(type(on_class), "__set__"):
        setter = lookup.mro_lookup(tx, type(on_class), "__set__")
        if isinstance(setter, types.FunctionType):
            descriptor = class_attributes.class_value(tx, obj.cls, name, on_class)
            calls.ask(tx, obj, wrap_pinned(tx, setter), [descriptor, obj, value], answers=False)
            return
        raise GraphBreak("unsupported_mutation", f"setting {obj.cls.__name__}.{name}")
    if on_class is not MISSING and lookup.mro_lookup(tx, type(on_class), "__delete__") is not MISSING:
        raise GraphBreak("raised_exception", f"{obj.cls.__name__}.{name} can be deleted, and not be set")
    if not has_instance_dict(obj):
        raise _refused(obj, name, _NO_ROOM if on_class is MISSING else _READ_ONLY)
    store_attr(tx, obj, name, value)


def _refusal(act: Callable[[Any], None], **namespace: Any) -> tuple[str, bool]:
    """What the running CPython says of an attribute that cannot be set or deleted, and whether the error knows object and name."""
    try:
        act(type("{cls}", (), namespace)())
    except AttributeError as error:
        return str(error), error.name is not None
    raise AssertionError("an object let its attributes be changed")


def _set(obj: Any) -> None:
    setattr(obj, "{name}", None)


def _delete(obj: Any) -> None:
    delattr(obj, "{name}")


_ATTRIBUTE = {"{name}": None, "__slots__": ()}
_NO_ROOM, _READ_ONLY = _refusal(_set, __slots__=()), _refusal(_set, **_ATTRIBUTE)
_GONE, _NONE_TO_DELETE, _NOT_TO_DELETE = _refusal(_delete), _refusal(_delete, __slots__=()), _refusal(_delete, **_ATTRIBUTE)


def _refused(obj: ObjectVariable, name: str, words: tuple[str, bool]) -> UserRaise:
    text, named = words
    members: dict[str, VariableTracker] = {"name": constant(name), "obj": obj} if named else {}
    return UserRaise(user_error(AttributeError, text.format(cls=type_name(obj.cls), name=name), **members))


def has_instance_dict(obj: ObjectVariable) -> bool:
    return obj.cls.__dictoffset__ != 0


def store_attr(tx: Any, obj: ObjectVariable, name: str, value: VariableTracker) -> None:
    if obj.namespace is None and obj.value is not MISSING and id(namespace_of(obj.value)) in tx.state.by_id:
        raise GraphBreak("unsupported_mutation", f"setting {name} of an object whose __dict__ the trace holds")
    if obj.namespace is not None and not instances.is_slot(tx, obj, name):
        calls.operators.containers.dict_set(tx, obj.namespace, constant(name), value)
        return
    if id(obj) in tx.state.own_key_of:
        raise GraphBreak("unsupported_mutation", f"setting {name} of an object that is a key")
    if obj.value is not MISSING and obj.source is None:
        raise GraphBreak("unsupported_mutation", f"setting {name} of an object that cannot be reached again")
    obj.attrs[name] = value
    tx.state.mark_mutated(obj)


def _call_deleter(tx: Any, obj: ObjectVariable, name: str, on_class: Any) -> bool:
    """``del obj.name`` by a property, or a descriptor written in Python; False for all other attributes."""
    if type(on_class) is property:
        if on_class.fdel is None:
            return False
        calls.call(tx, wrap_pinned(tx, on_class.fdel), [obj], {})
        return True
    deleter = lookup.mro_lookup(tx, type(on_class), "__delete__")
    if not isinstance(deleter, types.FunctionType):
        return False
    calls.call(tx, wrap_pinned(tx, deleter), [class_attributes.class_value(tx, obj.cls, name, on_class), obj], {})
    return True


def _is_slot(on_class: Any) -> bool:
    """Whether what a class has under some name is one of its ``__slots__``."""
    return isinstance(on_class, types.MemberDescriptorType) and bool(on_class.__objclass__.__flags__ & lookup.HEAP_TYPE)


def del_attr(tx: Any, obj: VariableTracker, name: str) -> None:
    if not isinstance(obj, ObjectVariable) or issubclass(type(obj.value), (types.ModuleType, types.FunctionType)):
        raise GraphBreak("unsupported_mutation", f"deleting {obj.python_type().__name__}.{name}")
    if issubclass(type(obj.value), type):
        if lookup.mro_lookup(tx, obj.cls, "__delattr__") is not type.__delattr__:
            raise GraphBreak("unsupported_mutation", f"deleting {obj.cls.__name__}.{name}, which has a __delattr__ of its own")
        class_writes.del_class_attr(tx, obj, name)
        return
    deleter = lookup.mro_lookup(tx, obj.cls, "__delattr__")
    if isinstance(deleter, types.FunctionType):
        calls.call(tx, wrap_pinned(tx, deleter), [obj, constant(name)], {})
        return
    if instances.is_plain_local(tx, obj, name):
        if hashed.dict_delete(tx, instances.local_dict(tx, obj), constant(name)) is None:
            raise _refused(obj, name, _GONE)
        return
    generic_del_attr(tx, obj, name)


def generic_del_attr(tx: Any, obj: ObjectVariable, name: str) -> None:
    """object.__delattr__."""
    on_class = lookup.mro_lookup(tx, obj.cls, name)
    if on_class is not MISSING and _call_deleter(tx, obj, name, on_class):
        return
    if obj.value is MISSING and name in obj.attrs and _is_slot(on_class):
        del obj.attrs[name]
        tx.state.mark_mutated(obj)
        return
    if on_class is not MISSING and hasattr(type(on_class), "__set__"):
        raise GraphBreak("unsupported_mutation", f"deleting {obj.cls.__name__}.{name}")
    if instances.instance_dict_attr(tx, obj, name) is MISSING:
        if has_instance_dict(obj):
            raise _refused(obj, name, _GONE)
        raise _refused(obj, name, _NONE_TO_DELETE if on_class is MISSING else _NOT_TO_DELETE)
    if obj.namespace is not None and name not in obj.attrs:
        calls.operators.containers.dict_delete(tx, obj.namespace, constant(name))
        return
    if obj.value is not MISSING and obj.source is not None and type(namespace := namespace_of(obj.value)) is dict:
        source = obj.source.namespace(obj.value).child("KEY", name)
        if name in namespace:
            tx.state.guards.present(source)
        else:
            tx.state.guards.add(source, "ABSENT")
    if obj.value is MISSING or name not in (namespace_of(obj.value) or ()):
        del obj.attrs[name]
    elif obj.cls.__dictoffset__ and type(namespace_of(obj.value)) is dict:
        obj.attrs.pop(name, None)
        entries: Any = instances.instance_dict(tx, obj)  # which knows that what is set again comes last
        calls.operators.containers.dict_delete(tx, entries, constant(name))
        return
    else:
        obj.attrs[name] = MISSING
    tx.state.mark_mutated(obj)
