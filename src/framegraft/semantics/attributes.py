"""Attribute access on trackers: who answers for an object, and what functions, modules and builtin types answer."""

from __future__ import annotations

import functools
import types
from typing import Any

from .._native import namespace_of
from ..errors import GraphBreak, UserRaise
from ..interp.state import need_constant, realize, user_error
from ..model.dispatch import METHODS, TENSOR, handles, specialised
from ..model.source import pinned
from ..model.value import (
    MISSING,
    NONE,
    BuiltinMethodVariable,
    CellVariable,
    ChangingVariable,
    CombinedIteratorVariable,
    ConstantVariable,
    DequeVariable,
    DictVariable,
    ExceptionVariable,
    FunctionVariable,
    GeneratorVariable,
    IteratorVariable,
    LazyVariable,
    ListVariable,
    MethodVariable,
    ObjectVariable,
    SetVariable,
    SliceVariable,
    SuperVariable,
    SymbolicVariable,
    TensorVariable,
    TupleVariable,
    VariableTracker,
    constant,
)
from . import calls, class_attributes, exception_attributes, instances, lookup, names
from .hashed import dict_set
from .wrapping import CONSTANT_TYPES, wrap_class, wrap_constant

BUILTIN_LIKE = (ListVariable, TupleVariable, DictVariable, SetVariable, DequeVariable, SliceVariable, IteratorVariable,
                CombinedIteratorVariable, GeneratorVariable, CellVariable)


def attribute_name(name: VariableTracker) -> str:
    value = need_constant(name, "the name of an attribute")
    if not isinstance(value, str):
        raise GraphBreak("raised_exception", f"a {type(value).__name__} as the name of an attribute")
    return value


def get_attr(tx: Any, obj: VariableTracker, name: str) -> VariableTracker:
    """``obj.name``. An AttributeError that comes out is told where (CPython: PyObject_GetAttr)."""
    try:
        return _get_attr(tx, obj, name)
    except UserRaise as raised:
        error = raised.value
        if isinstance(error, ExceptionVariable) and issubclass(error.cls, AttributeError):
            if "name" not in error.attrs and "obj" not in error.attrs:
                error.attrs.update(name=constant(name), obj=obj)
        raise


def _get_attr(tx: Any, obj: VariableTracker, name: str) -> VariableTracker:
    if type(obj) is SymbolicVariable:
        if obj.cls is int and name in ("real", "numerator"):
            return obj
        if isinstance(obj.cls.__dict__.get(name), (types.MethodDescriptorType, types.WrapperDescriptorType)):
            return BuiltinMethodVariable(name, obj)
        if not lookup.defines(obj.cls, name):
            raise lookup.attribute_error(obj, name)
        obj = specialised(obj)
    if isinstance(obj, TensorVariable):
        return TENSOR.get_attr(tx, obj, name)
    if isinstance(obj, ObjectVariable):
        value = obj.value
        if id(type(value)) in TENSOR.lazy:
            TENSOR.load(value, name)
        if issubclass(type(value), type):
            return class_attributes.class_attr(tx, obj, value, name)
        if issubclass(type(value), types.ModuleType) and type(value).__getattribute__ is types.ModuleType.__getattribute__:
            if type(value) is not types.ModuleType:
                on_class = lookup.mro_lookup(tx, type(value), name)
                if on_class is not MISSING and not lookup.defines(types.ModuleType, name):
                    lookup.guard_kind(tx, type(value), name, on_class)
                    if lookup.is_data(tx, type(on_class)):
                        return instances.bind(tx, on_class, obj, type(value), name)
            return _module_attr(tx, obj, value, name)
        if issubclass(type(value), types.FunctionType):
            return _real_function_attr(tx, obj, value, name)
        return instances.instance_attr(tx, obj, name)
    if isinstance(obj, ConstantVariable):
        if type(obj) is ChangingVariable and name == "item":
            return BuiltinMethodVariable(name, obj)
        return _constant_attr(tx, obj, name)
    if isinstance(obj, SuperVariable):
        return class_attributes.super_attr(tx, obj, name)
    if name == "__class__":
        return wrap_class(tx, obj.python_type())
    if isinstance(obj, BUILTIN_LIKE):
        if isinstance(obj, SliceVariable) and name in ("start", "stop", "step"):
            return obj.items[("start", "stop", "step").index(name)]
        if isinstance(obj, DequeVariable) and name == "maxlen":
            return constant(obj.maxlen)
        return _builtin_attr(obj, name)
    if isinstance(obj, MethodVariable):
        if type(obj) is MethodVariable and name == "__self__":
            return obj.obj
        if type(obj) is MethodVariable and name == "__func__":
            return obj.func
        if type(obj) is not MethodVariable:
            return _partial_attr(obj, name)
        if lookup.defines(types.MethodType, name) and name != "__doc__":
            return BuiltinMethodVariable(name, obj)
        return get_attr(tx, realize(obj.func, tx.state), name)
    if isinstance(obj, FunctionVariable):
        return _function_attr(tx, obj, name)
    if isinstance(obj, ExceptionVariable):
        return exception_attributes.exception_attr(tx, obj, name)
    if (type(obj), name) in METHODS:
        return BuiltinMethodVariable(name, obj)
    raise GraphBreak("unsupported_attribute", f"{obj.python_type().__name__}.{name}")


_METHODS = (types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType, types.BuiltinFunctionType,
            classmethod)


def _builtin_attr(obj: VariableTracker, name: str) -> VariableTracker:
    """An attribute of a list, dict, generator or the like, which have none of their own."""
    cls = obj.python_type()
    found = next((base.__dict__[name] for base in cls.__mro__ if name in base.__dict__), MISSING)
    if found is MISSING:
        raise lookup.attribute_error(obj, name)
    if isinstance(found, _METHODS):
        return BuiltinMethodVariable(name, obj)
    if type(found) in CONSTANT_TYPES:
        return constant(found)  # __doc__, the __hash__ of what has none
    raise GraphBreak("unsupported_attribute", f"{cls.__name__}.{name}")


def _partial_attr(obj: Any, name: str) -> VariableTracker:
    """functools.partial made in the trace, or what is like one."""
    if obj.python_type() is not functools.partial:
        raise GraphBreak("unsupported_attribute", f"{obj.python_type().__name__}.{name}")
    if name in obj.attrs:
        return obj.attrs[name]
    if name == "func":
        return obj.func
    if name == "args":
        return TupleVariable(list(obj.args))
    if name == "keywords":
        return DictVariable({k: (constant(k), v) for k, v in obj.kwargs.items()})
    return _builtin_attr(obj, name)


def _constant_attr(tx: Any, obj: ConstantVariable, name: str) -> VariableTracker:
    if name == "__class__":
        return wrap_class(tx, type(obj.value))
    try:
        found = getattr(obj.value, name)
    except AttributeError:
        raise lookup.attribute_error(obj, name) from None
    if type(found) in CONSTANT_TYPES or TENSOR.is_constant_type(type(found)):
        return constant(found)
    if callable(found):
        return BuiltinMethodVariable(name, obj)
    if isinstance(found, tuple):
        return wrap_constant(found)
    raise GraphBreak("unsupported_attribute", f"{type(obj.value).__name__}.{name}")


def _module_attr(tx: Any, obj: ObjectVariable, module: types.ModuleType, name: str, fallback: bool = True) -> VariableTracker:
    """module_getattro, then the ``__getattr__`` of a class that is derived from that of modules."""
    found = obj.attrs.get(name)
    if found is not None and found is not MISSING:
        return found
    namespace = namespace_of(module)  # a class derived from that of modules may answer for itself
    scope = tx.state.scopes.get(id(namespace))
    if scope is not None and name in scope.stores:
        raise GraphBreak("unsupported_attribute", f"{name} of a module, which the trace has set as a global")
    root = tx.state.guards.pin(obj.source, module) if obj.source is not None else pinned(module)
    tx.state.guards.add(root, "TYPE", type(module))
    source = root.child("DICT").child("KEY", name)
    if found is not MISSING and name in namespace:
        tx.state.guards.present(source)
        return LazyVariable(namespace[name], source)
    if name in ("__dict__", "__class__"):
        raise GraphBreak("unsupported_attribute", f"module attribute {namespace_of(module).get('__name__')}.{name}")
    tx.state.guards.add(source, "ABSENT")
    return instances.or_fallback(tx, obj, name, lambda: _module_fallback(tx, obj, module, name, root), fallback)


def _module_fallback(tx: Any, obj: ObjectVariable, module: types.ModuleType, name: str, root: Any) -> VariableTracker:
    """What is not in a module's ``__dict__``: of its class, or of its own ``__getattr__``."""
    on_class: Any = lookup.mro_lookup(tx, type(module), name)
    if on_class is _MODULE_GETATTRIBUTE:
        return BuiltinMethodVariable(name, obj, on_class)
    if on_class is not MISSING:
        if type(module) is types.ModuleType:
            raise GraphBreak("unsupported_attribute", f"module attribute {namespace_of(module).get('__name__')}.{name}")
        return instances.bind(tx, on_class, obj, type(module), name)
    hook = namespace_of(module).get("__getattr__")
    if hook is not None:
        return calls.call(tx, LazyVariable(hook, root.child("DICT").child("KEY", "__getattr__")), [constant(name)], {})
    tx.state.guards.add(root.child("DICT").child("KEY", "__getattr__"), "ABSENT")
    raise UserRaise(user_error(AttributeError, f"module '{namespace_of(module).get('__name__')}' has no attribute '{name}'"))


_MODULE_GETATTRIBUTE: Any = types.ModuleType.__getattribute__


@handles(_MODULE_GETATTRIBUTE)
def handle_module_getattribute(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    if len(args) != 2 or kwargs or not isinstance(args[0], ObjectVariable) or not issubclass(type(args[0].value), types.ModuleType):
        raise GraphBreak("raised_exception", "the __getattribute__ of modules of something else")
    name = attribute_name(args[1])
    if type(args[0].value) is not types.ModuleType and not lookup.defines(types.ModuleType, name) and (
            lookup.mro_lookup(tx, args[0].cls, name) is not MISSING):
        raise GraphBreak("unsupported_attribute", f"{name}, defined by the class of a module")
    return _module_attr(tx, args[0], args[0].value, name, fallback=False)


def _real_function_attr(tx: Any, obj: ObjectVariable, value: types.FunctionType, name: str) -> VariableTracker:
    stored = obj.attrs.get(name)
    if stored is not None and stored is not MISSING:
        return stored
    assert obj.source is not None
    if name in ("__name__", "__qualname__", "__module__", "__doc__", "__code__", "__defaults__", "__kwdefaults__",
                "__closure__", "__annotations__"):
        return LazyVariable(getattr(value, name), obj.source.function_field(name))
    if name == "__class__":
        return wrap_class(tx, types.FunctionType)
    if name in ("__dict__", "__globals__"):
        raise GraphBreak("introspection", f"function.{name}")
    if lookup.defines(types.FunctionType, name):
        return BuiltinMethodVariable(name, obj)
    source = obj.source.child("FDICT").child("KEY", name)
    if stored is None and name in value.__dict__:
        tx.state.guards.present(source)
        return LazyVariable(value.__dict__[name], source)
    tx.state.guards.add(source, "ABSENT")
    raise lookup.attribute_error(obj, name)


def _function_attr(tx: Any, obj: FunctionVariable, name: str) -> VariableTracker:
    if name in obj.attrs:
        return obj.attrs[name]
    if name in ("__name__", "__qualname__"):
        return constant(obj.name if name == "__name__" else obj.qualname)
    if name == "__code__":
        return constant(obj.code)
    if name == "__defaults__":
        return obj.defaults or NONE
    if name == "__module__" and "__name__" in obj.globals_of.real and "__name__" not in obj.globals_of.stores:
        return names.load_global(tx, obj.globals_of, "__name__")
    if name == "__doc__":
        doc = obj.code.co_consts[0] if obj.code.co_consts else None
        return constant(doc if isinstance(doc, str) else None)
    if name == "__annotations__":
        return _annotations(tx, obj)
    if name == "__kwdefaults__":
        return obj.kwdefaults or NONE
    if lookup.defines(types.FunctionType, name):
        raise GraphBreak("unsupported_attribute", f"{name} of a function made in the trace")
    raise lookup.attribute_error(obj, name)


def _annotations(tx: Any, obj: FunctionVariable) -> VariableTracker:
    """The function's dict of annotations, which CPython, too, makes when it is first asked for (func_get_annotation_dict)."""
    made = obj.annotations
    if made is not None and not isinstance(made, TupleVariable):
        return made
    tx.state.changed(obj)
    obj.annotations = DictVariable({})
    pairs = [] if made is None else made.items  # names and values in turn, as the instruction has taken them
    for name, value in zip(pairs[::2], pairs[1::2], strict=True):
        dict_set(tx, obj.annotations, realize(name, tx.state), value)
    return obj.annotations


def special_method(tx: Any, obj: VariableTracker, name: str) -> VariableTracker | None:
    """A method looked up on the type, as the interpreter does for operators; None where the type has none."""
    if isinstance(obj, ObjectVariable):
        found = lookup.mro_lookup(tx, obj.cls, name)
        if found is MISSING:
            return None
        if found is None:
            raise GraphBreak("raised_exception", f"{obj.cls.__name__}.{name} is None: each slot has its own error for that")
        return instances.bind(tx, found, obj, obj.cls, name)
    if lookup.defines(obj.python_type(), name):
        return BuiltinMethodVariable(name, obj)
    return None
