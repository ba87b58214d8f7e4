"""Attribute access on trackers: CPython's object.__getattribute__, type.__getattribute__, super, module attributes."""

from __future__ import annotations

import collections
import functools
import types
from typing import Any

from .. import _native
from ..errors import GraphBreak, UserRaise
from ..interp.state import need_constant, realize, user_error
from ..model.dispatch import TENSOR, specialised
from ..model.source import pinned
from ..model.value import (
    MISSING,
    NONE,
    BuiltinMethodVariable,
    CellVariable,
    CombinedIteratorVariable,
    ConstantVariable,
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
    TracebackVariable,
    TupleVariable,
    VariableTracker,
    constant,
)
from . import calls
from .containers import dict_get
from .wrapping import CONSTANT_TYPES, wrap_class, wrap_constant, wrap_pinned

BUILTIN_LIKE = (ListVariable, TupleVariable, DictVariable, SetVariable, SliceVariable, IteratorVariable,
                CombinedIteratorVariable, GeneratorVariable, CellVariable)
_STATIC_FLAG = 1 << 9  # Py_TPFLAGS_HEAPTYPE


def mro_lookup(tx: Any, cls: type, name: str) -> Any:
    """_PyType_Lookup, recorded as a guard when some class of the MRO can change. MISSING where nothing is found."""
    found: Any = MISSING
    for base in cls.__mro__:
        namespace = base.__dict__
        if name in namespace:
            found = namespace[name]
            break
    if cls.__flags__ & _STATIC_FLAG:
        tx.state.guards.class_lookup(cls, name, _native.MISSING if found is MISSING else found)
    return found


def attribute_error(obj: VariableTracker, name: str) -> UserRaise:
    text = f"'{obj.python_type().__name__}' object has no attribute '{name}'"
    return UserRaise(user_error(AttributeError, text, name=constant(name), obj=obj))


def defines(cls: type, name: str) -> bool:
    """Whether instances of a builtin class have an attribute of that name from their class: hasattr() would ask ``type``, too."""
    return any(name in base.__dict__ for base in cls.__mro__)


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
        if callable(getattr(obj.cls, name, None)) and not isinstance(getattr(obj.cls, name), type):
            return BuiltinMethodVariable(name, obj)
        obj = specialised(obj)
    if isinstance(obj, TensorVariable):
        return TENSOR.get_attr(tx, obj, name)
    if isinstance(obj, ObjectVariable):
        value = obj.value
        if issubclass(type(value), type):
            return _class_attr(tx, obj, value, name)
        if issubclass(type(value), types.ModuleType) and type(value).__getattribute__ is types.ModuleType.__getattribute__:
            if type(value) is not types.ModuleType:
                on_class = mro_lookup(tx, type(value), name)
                if on_class is not MISSING and name not in types.ModuleType.__dict__ and name not in object.__dict__:  # type: ignore[operator]
                    raise GraphBreak("unsupported_attribute", f"{name}, defined by the class of a module")
            return _module_attr(tx, obj, value, name)
        if issubclass(type(value), types.FunctionType):
            return _real_function_attr(tx, obj, value, name)
        return instance_attr(tx, obj, name)
    if isinstance(obj, ConstantVariable):
        return _constant_attr(tx, obj, name)
    if isinstance(obj, SuperVariable):
        return _super_attr(tx, obj, name)
    if name == "__class__":
        return wrap_class(tx, obj.python_type())
    if isinstance(obj, BUILTIN_LIKE):
        if isinstance(obj, SliceVariable) and name in ("start", "stop", "step"):
            return obj.items[("start", "stop", "step").index(name)]
        return _builtin_attr(obj, name)
    if isinstance(obj, MethodVariable):
        if type(obj) is MethodVariable and name == "__self__":
            return obj.obj
        if type(obj) is MethodVariable and name == "__func__":
            return obj.func
        if type(obj) is not MethodVariable:
            return _partial_attr(obj, name)
        if defines(types.MethodType, name) and name != "__doc__":
            return BuiltinMethodVariable(name, obj)
        return get_attr(tx, realize(obj.func, tx.state), name)
    if isinstance(obj, FunctionVariable):
        return _function_attr(tx, obj, name)
    if isinstance(obj, ExceptionVariable):
        return _exception_attr(tx, obj, name)
    raise GraphBreak("unsupported_attribute", f"{obj.python_type().__name__}.{name}")


_METHODS = (types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType, types.BuiltinFunctionType,
            classmethod)


def _builtin_attr(obj: VariableTracker, name: str) -> VariableTracker:
    """An attribute of a list, dict, generator or the like, which have none of their own."""
    cls = obj.python_type()
    found = next((base.__dict__[name] for base in cls.__mro__ if name in base.__dict__), MISSING)
    if found is MISSING:
        raise attribute_error(obj, name)
    if isinstance(found, _METHODS):
        return BuiltinMethodVariable(name, obj)
    if type(found) in CONSTANT_TYPES:
        return constant(found)  # __doc__, the __hash__ of what has none
    raise GraphBreak("unsupported_attribute", f"{cls.__name__}.{name}")


def _partial_attr(obj: Any, name: str) -> VariableTracker:
    """functools.partial made in the trace."""
    if name == "func":
        return obj.func
    if name == "args":
        return TupleVariable(list(obj.args))
    if name == "__call__":
        return BuiltinMethodVariable(name, obj)
    raise GraphBreak("unsupported_attribute", f"{obj.python_type().__name__}.{name}")


def _constant_attr(tx: Any, obj: ConstantVariable, name: str) -> VariableTracker:
    if name == "__class__":
        return wrap_class(tx, type(obj.value))
    try:
        found = getattr(obj.value, name)
    except AttributeError:
        raise attribute_error(obj, name) from None
    if type(found) in CONSTANT_TYPES or TENSOR.is_constant_type(type(found)):
        return constant(found)
    if callable(found):
        return BuiltinMethodVariable(name, obj)
    if isinstance(found, tuple):
        return wrap_constant(found)
    raise GraphBreak("unsupported_attribute", f"{type(obj.value).__name__}.{name}")


def _module_attr(tx: Any, obj: ObjectVariable, module: types.ModuleType, name: str) -> VariableTracker:
    found = obj.attrs.get(name)
    if found is not None and found is not MISSING:
        return found
    namespace = module.__dict__
    root = tx.state.guards.pin(obj.source, module) if obj.source is not None else pinned(module)
    tx.state.guards.add(root, "TYPE", type(module))
    source = root.child("DICT").child("KEY", name)
    if found is not MISSING and name in namespace:
        tx.state.guards.present(source)
        return LazyVariable(namespace[name], source)
    if name in ("__dict__", "__class__"):
        raise GraphBreak("unsupported_attribute", f"module attribute {module.__name__}.{name}")
    tx.state.guards.add(source, "ABSENT")
    if type(module) is not types.ModuleType:
        on_class = mro_lookup(tx, type(module), name)
        if on_class is not MISSING:
            return bind(tx, on_class, obj, type(module), name)
        hook = mro_lookup(tx, type(module), "__getattr__")
        if isinstance(hook, types.FunctionType):
            return calls.call(tx, MethodVariable(wrap_pinned(tx, hook), obj), [constant(name)], {})
    hook = namespace.get("__getattr__")
    if hook is not None:
        return calls.call(tx, LazyVariable(hook, root.child("DICT").child("KEY", "__getattr__")), [constant(name)], {})
    tx.state.guards.add(root.child("DICT").child("KEY", "__getattr__"), "ABSENT")
    if defines(type(module), name):
        raise GraphBreak("unsupported_attribute", f"module attribute {module.__name__}.{name}")
    raise UserRaise(user_error(AttributeError, f"module '{module.__name__}' has no attribute '{name}'"))


def _class_attr(tx: Any, obj: ObjectVariable, cls: type, name: str) -> VariableTracker:
    """type.__getattribute__."""
    meta = type(cls)
    if name in ("__name__", "__qualname__", "__module__"):
        return constant(getattr(cls, name))
    if name == "__class__":
        return wrap_class(tx, meta)
    if name in ("__mro__", "__bases__"):
        if name == "__mro__":
            guard_mro(tx, cls)
        else:
            tx.state.guards.add(pinned(cls).child("ATTR", name), "PY", _Same(cls.__bases__))
        return wrap_constant(getattr(cls, name))
    if meta is not type:
        on_meta = mro_lookup(tx, meta, name)
        if on_meta is not MISSING and _is_data(tx, type(on_meta)):
            return bind(tx, on_meta, obj, meta, name)
    else:
        on_meta = MISSING
    found = mro_lookup(tx, cls, name)
    if found is MISSING:
        if meta is type and defines(type, name):
            return _type_member(tx, obj, cls, name)
        if on_meta is not MISSING:
            return bind(tx, on_meta, obj, meta, name)
        if mro_lookup(tx, meta, "__getattr__") is not MISSING:
            return calls.call(tx, bind(tx, mro_lookup(tx, meta, "__getattr__"), obj, meta, name), [constant(name)], {})
        text = f"type object '{cls.__name__}' has no attribute '{name}'"
        raise UserRaise(user_error(AttributeError, text))
    if isinstance(found, staticmethod):
        return wrap_pinned(tx, found.__func__)
    if isinstance(found, classmethod):
        return _class_method(tx, found, obj, name)
    if isinstance(found, (types.FunctionType, property, types.MemberDescriptorType)) or callable(found):
        if not hasattr(type(found), "__get__") or isinstance(found, (types.FunctionType, property,
                                                                     types.MemberDescriptorType)):
            return _class_value(tx, cls, name, found)
        try:
            value = getattr(cls, name)
        except AttributeError:
            raise attribute_error(obj, name) from None
        return wrap_pinned(tx, value) if value is found or _is_stable(value) else _unbound(tx, cls, name, value)
    if _is_descriptor(tx, type(found)):
        return bind(tx, found, NONE, cls, name, owner=obj)
    return _class_value(tx, cls, name, found)


def _type_member(tx: Any, obj: ObjectVariable, cls: type, name: str) -> VariableTracker:
    """What ``type`` itself gives to classes."""
    found = mro_lookup(tx, type, name)
    if isinstance(found, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        return BuiltinMethodVariable(name, obj)
    if name == "__base__":
        guard_mro(tx, cls)
        return wrap_constant(cls.__base__)
    raise GraphBreak("unsupported_attribute", f"{cls.__name__}.{name}")


def _is_descriptor(tx: Any, kind: type) -> bool:
    return mro_lookup(tx, kind, "__get__") is not MISSING


def _is_data(tx: Any, kind: type) -> bool:
    """Whether a descriptor of this class goes before the instance's own attributes (CPython: PyDescr_IsData, tp_descr_get)."""
    if kind is types.FunctionType or not kind.__flags__ & _STATIC_FLAG:
        return defines(kind, "__get__") and (defines(kind, "__set__") or defines(kind, "__delete__"))
    if mro_lookup(tx, kind, "__get__") is MISSING:
        return False
    return mro_lookup(tx, kind, "__set__") is not MISSING or mro_lookup(tx, kind, "__delete__") is not MISSING


def _is_stable(value: Any) -> bool:
    return issubclass(type(value), (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType))


def _unbound(tx: Any, cls: type, name: str, value: Any) -> VariableTracker:
    if issubclass(type(value), types.BuiltinFunctionType):
        return wrap_pinned(tx, value)
    raise GraphBreak("unsupported_attribute", f"{cls.__name__}.{name}")


def _class_value(tx: Any, cls: type, name: str, found: Any) -> VariableTracker:
    """The identity of a value found on a class is guarded already; its contents are reached through it."""
    known = tx.state.by_id.get(id(found))
    if known is not None:
        return known
    if type(found) in CONSTANT_TYPES:
        return constant(found)
    source = pinned(cls).child("TYPEATTR", name)
    if isinstance(found, (types.FunctionType, type)) or callable(found):
        return wrap_pinned(tx, found)
    return LazyVariable(found, source)


def guard_bases(tx: Any, cls: type) -> None:
    """The trace has asked what ``cls`` inherits from: its MRO must stay."""
    if cls.__flags__ & _STATIC_FLAG and cls not in tx.state.known_bases:
        tx.state.known_bases.add(cls)
        guard_mro(tx, cls)


def guard_mro(tx: Any, cls: type) -> None:
    tx.state.guards.add(pinned(cls), "MRO", cls.__mro__)


class _Same:
    """Guard: a tuple of the very same objects."""

    __name__ = "same_items"

    def __init__(self, value: tuple) -> None:
        self.value = value

    def __call__(self, value: Any) -> bool:
        return len(value) == len(self.value) and all(a is b for a, b in zip(value, self.value, strict=True))


def namespace_of(value: Any) -> Any:
    """The real ``__dict__``, without running code of the program; None where there is none."""
    if issubclass(type(value), type):
        return type.__getattribute__(value, "__dict__")
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None


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
    if not obj.cls.__dictoffset__ and namespace_of(obj.value) is not None:
        raise GraphBreak("unsupported_attribute", f"the attributes of a {obj.cls.__name__}, kept in C")
    namespace = namespace_of(obj.value)
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
    getattribute = mro_lookup(tx, cls, "__getattribute__")
    if isinstance(getattribute, types.FunctionType):
        return calls.call(tx, MethodVariable(wrap_pinned(tx, getattribute), obj), [constant(name)], {})
    if cls in (types.UnionType, types.GenericAlias) and obj.source is not None and name in ("__args__", "__origin__", "__parameters__"):
        if cls is not types.UnionType:
            tx.state.guards.pin(obj.source, obj.value)
        return LazyVariable(getattr(obj.value, name), obj.source.child("ATTR", name))
    if getattribute is not object.__getattribute__ and not _is_generic(cls):
        raise GraphBreak("unsupported_attribute", f"the attributes of a {cls.__name__}, which C code looks up in a way of its own")
    return generic_get_attr(tx, obj, name)


@functools.cache
def _is_generic(cls: type) -> bool:
    """Whether ``__getattribute__``, defined in C, is object's own function under another name."""
    owner = next(base for base in cls.__mro__ if "__getattribute__" in base.__dict__)
    return _native.generic_getattr(owner) or owner is types.ModuleType or owner is type


def generic_get_attr(tx: Any, obj: ObjectVariable, name: str, fallback: bool = True) -> VariableTracker:
    """object.__getattribute__, then ``__getattr__``."""
    cls = obj.cls
    on_class = mro_lookup(tx, cls, name)
    if on_class is _CLASS_OF:
        return wrap_class(tx, cls)
    kind = type(on_class)
    if name == "__dict__" and isinstance(on_class, types.GetSetDescriptorType):
        return instance_dict(tx, obj)
    if on_class is not MISSING and _is_data(tx, kind):
        try:
            return bind(tx, on_class, obj, cls, name)
        except UserRaise as raised:
            found = MISSING
            if fallback and issubclass(raised.value.python_type(), AttributeError):
                found = _fallback(tx, obj, name)
            if found is MISSING:
                raise
            return found  # type: ignore[return-value]
    own = instance_dict_attr(tx, obj, name)
    if own is not MISSING:
        return own
    if on_class is not MISSING:
        return bind(tx, on_class, obj, cls, name)
    found = _fallback(tx, obj, name) if fallback else MISSING
    if found is MISSING:  # the error is no variable here: its traceback would keep it, and the program's frames, alive
        raise attribute_error(obj, name)
    return found  # type: ignore[return-value]


_CLASS_OF = object.__dict__["__class__"]


def tells_own_class(tx: Any, obj: VariableTracker) -> bool:
    """Whether code of the program says what ``obj.__class__`` is."""
    if not isinstance(obj, ObjectVariable) or issubclass(obj.cls, type):
        return False
    return isinstance(mro_lookup(tx, obj.cls, "__getattribute__"), types.FunctionType) or (
        mro_lookup(tx, obj.cls, "__class__") is not _CLASS_OF)


def _fallback(tx: Any, obj: ObjectVariable, name: str) -> Any:
    """What ``__getattr__`` gives for an attribute that is not there; MISSING where there is no such method."""
    hook = mro_lookup(tx, obj.cls, "__getattr__")
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
    slots = {n: v for n, v in obj.attrs.items() if _is_slot(tx, obj, n)}
    changed = {n: v for n, v in obj.attrs.items() if n not in slots}
    if obj.value is MISSING:
        namespace = DictVariable({})
    else:
        if issubclass(type(obj.value), (types.FunctionType, types.ModuleType, type)) or type(namespace_of(obj.value)) is not dict:
            raise GraphBreak("unsupported_attribute", f"the __dict__ of a {obj.cls.__name__}")
        assert obj.source is not None
        found = realize(LazyVariable(namespace_of(obj.value), obj.source.namespace(obj.value)), tx.state)
        if not isinstance(found, DictVariable):
            raise GraphBreak("unsupported_attribute", f"the __dict__ of a {obj.cls.__name__}")
        namespace = found
    obj.namespace = namespace
    namespace.owner = obj
    obj.attrs.clear()
    obj.attrs.update(slots)
    for name, value in changed.items():
        if value is MISSING:
            calls.operators.containers.dict_delete(tx, namespace, constant(name))
        else:
            calls.operators.containers.dict_set(tx, namespace, constant(name), value)
    return namespace


def _is_slot(tx: Any, obj: ObjectVariable, name: str) -> bool:
    return isinstance(mro_lookup(tx, obj.cls, name), types.MemberDescriptorType)


_TUPLE_GETTER = type(collections.namedtuple("_Sample", "x").__dict__["x"])  # noqa: PYI024


def bind(tx: Any, found: Any, obj: VariableTracker, cls: type, name: str, owner: Any = None) -> VariableTracker:
    """The descriptor protocol: what ``found``, an attribute of ``cls``, gives for the instance ``obj``."""
    kind = type(found)
    if kind is types.FunctionType or kind is _native.CompiledFunction:
        return MethodVariable(wrap_pinned(tx, found), obj)
    if kind is staticmethod:
        return wrap_pinned(tx, found.__func__)
    if kind is classmethod:
        return _class_method(tx, found, owner or wrap_class(tx, cls), name)
    if kind is property:
        if found.fget is None:
            raise GraphBreak("raised_exception", f"property {name} has no getter")  # its own name for itself is not to be seen
        return calls.call(tx, wrap_pinned(tx, found.fget), [obj], {})
    if isinstance(found, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        return BuiltinMethodVariable(name, obj)
    if isinstance(found, types.ClassMethodDescriptorType):
        return BuiltinMethodVariable(name, owner or wrap_class(tx, cls))
    if kind is _TUPLE_GETTER and isinstance(getattr(obj, "payload", None), TupleVariable):
        return obj.payload.items[found.__reduce__()[1][0]]  # type: ignore[attr-defined]
    if isinstance(found, (types.MemberDescriptorType, types.GetSetDescriptorType)):
        return _native_member(tx, found, obj, name)
    getter = mro_lookup(tx, kind, "__get__")
    if getter is MISSING:
        return _class_value(tx, cls, name, found)
    if isinstance(getter, types.FunctionType):
        owner = owner or wrap_class(tx, cls)
        return calls.call(tx, wrap_pinned(tx, getter), [_class_value(tx, cls, name, found), obj, owner], {})
    if isinstance(found, type) or isinstance(found, types.BuiltinFunctionType):
        return wrap_pinned(tx, found)
    raise GraphBreak("unsupported_attribute", f"descriptor {kind.__name__} at {cls.__name__}.{name}")


# CPython 3.9 to 3.12 bind what a class method wraps, if that is a descriptor; the others make a method of it.
_BINDS_WRAPPED = classmethod(property(lambda cls: 1)).__get__(None, object) == 1  # type: ignore[arg-type]


def _class_method(tx: Any, found: classmethod, owner: Any, name: str) -> VariableTracker:
    """cm_descr_get: what is wrapped is bound in its turn, to the class."""
    inner = found.__func__
    if not _BINDS_WRAPPED and type(inner) is not types.FunctionType:
        raise GraphBreak("unsupported_attribute", f"a class method of a {type(inner).__name__}")
    if type(inner) is types.FunctionType or not _is_descriptor(tx, type(inner)):
        return MethodVariable(wrap_pinned(tx, inner), owner)
    return bind(tx, inner, owner, owner.value, name, owner=owner)


_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class that has its slots from a class statement


def _native_member(tx: Any, found: Any, obj: VariableTracker, name: str) -> VariableTracker:
    """A slot or a C getter: read from the real object while the trace has not written it."""
    if isinstance(obj, ObjectVariable):
        stored = obj.attrs.get(name)
        if stored is not None and stored is not MISSING:
            return stored
        if obj.value is not MISSING and stored is None and obj.source is not None:
            try:
                value = object.__getattribute__(obj.value, name)
            except AttributeError:
                tx.state.guards.add(obj.source.attribute(obj.value, name), "ABSENT")
                raise attribute_error(obj, name) from None
            source = obj.source.attribute(obj.value, name)
            tx.state.guards.present(source)
            return LazyVariable(value, source)
        fields = getattr(obj.cls, "__match_args__", ())
        if isinstance(obj.payload, TupleVariable) and name in fields:  # a struct sequence (torch.return_types.max)
            return obj.payload.items[fields.index(name)]
        if isinstance(found, types.MemberDescriptorType) and obj.cls.__flags__ & _HEAP_TYPE:
            raise attribute_error(obj, name)
    raise GraphBreak("unsupported_attribute", f"{obj.python_type().__name__}.{name}")


def _real_function_attr(tx: Any, obj: ObjectVariable, value: types.FunctionType, name: str) -> VariableTracker:
    stored = obj.attrs.get(name)
    if stored is not None and stored is not MISSING:
        return stored
    assert obj.source is not None
    if name in ("__name__", "__qualname__", "__module__", "__doc__", "__code__", "__defaults__", "__kwdefaults__",
                "__closure__", "__annotations__"):
        return LazyVariable(getattr(value, name), obj.source.child("ATTR", name))
    if name == "__class__":
        return wrap_class(tx, types.FunctionType)
    if name in ("__dict__", "__globals__"):
        raise GraphBreak("introspection", f"function.{name}")
    if defines(types.FunctionType, name):
        return BuiltinMethodVariable(name, obj)
    source = obj.source.child("FDICT").child("KEY", name)
    if stored is None and name in value.__dict__:
        tx.state.guards.present(source)
        return LazyVariable(value.__dict__[name], source)
    tx.state.guards.add(source, "ABSENT")
    raise attribute_error(obj, name)


def _function_attr(tx: Any, obj: FunctionVariable, name: str) -> VariableTracker:
    if name in obj.attrs:
        return obj.attrs[name]
    if name in ("__name__", "__qualname__"):
        return constant(obj.name if name == "__name__" else obj.qualname)
    if name == "__code__":
        return constant(obj.code)
    if name == "__defaults__":
        return obj.defaults or NONE
    if name == "__doc__":
        doc = obj.code.co_consts[0] if obj.code.co_consts else None
        return constant(doc if isinstance(doc, str) else None)
    if defines(types.FunctionType, name):
        raise GraphBreak("unsupported_attribute", f"{name} of a function made in the trace")
    raise attribute_error(obj, name)


NAMING = (AttributeError, NameError)  # exceptions that tell in C members which name was looked for


def _exception_attr(tx: Any, obj: ExceptionVariable, name: str) -> VariableTracker:
    if isinstance(mro_lookup(tx, obj.cls, "__getattribute__"), types.FunctionType):
        raise GraphBreak("unsupported_attribute", f"{obj.cls.__name__} has its own __getattribute__")
    found = mro_lookup(tx, obj.cls, name)
    if isinstance(found, types.MemberDescriptorType) and found.__objclass__ in NAMING:
        return obj.attrs.get(name, NONE)
    if isinstance(found, types.GetSetDescriptorType | types.MemberDescriptorType):
        return _exception_member(obj, name)
    if isinstance(found, types.MethodDescriptorType):
        raise GraphBreak("unsupported_attribute", f"{obj.cls.__name__}.{name}")
    if found is not MISSING and hasattr(type(found), "__set__"):
        return bind(tx, found, obj, obj.cls, name)
    if name in obj.attrs:
        return obj.attrs[name]
    if found is not MISSING:
        return bind(tx, found, obj, obj.cls, name)
    hook = mro_lookup(tx, obj.cls, "__getattr__")
    if isinstance(hook, types.FunctionType):
        return calls.call(tx, MethodVariable(wrap_pinned(tx, hook), obj), [constant(name)], {})
    raise attribute_error(obj, name)


def _exception_member(obj: ExceptionVariable, name: str) -> VariableTracker:
    """What BaseException keeps in C."""
    if name == "args":
        return TupleVariable(list(obj.args))
    if name == "__cause__":
        return NONE if obj.cause is MISSING else obj.cause
    if name == "__suppress_context__":
        return constant(obj.cause is not MISSING)
    if name == "__traceback__":
        return TracebackVariable(obj) if obj.trace else NONE
    if name == "__context__" and (obj.context is not None or not obj.raised):
        return NONE if obj.context is None else obj.context
    if name == "value" and issubclass(obj.cls, StopIteration):
        return obj.args[0] if obj.args else NONE
    raise GraphBreak("unsupported_attribute", f"{obj.cls.__name__}.{name}")


def _set_exception_attr(tx: Any, obj: ExceptionVariable, name: str, value: VariableTracker) -> None:
    setter = mro_lookup(tx, obj.cls, "__setattr__")
    if isinstance(setter, types.FunctionType):
        calls.call(tx, MethodVariable(wrap_pinned(tx, setter), obj), [constant(name), value], {})
        return
    generic_set_exception_attr(tx, obj, name, value)


def generic_set_exception_attr(tx: Any, obj: ExceptionVariable, name: str, value: VariableTracker) -> None:
    """BaseException.__setattr__."""
    tx.state.changed(obj)
    found = mro_lookup(tx, obj.cls, name)
    if found is MISSING or not hasattr(type(found), "__set__"):
        obj.attrs[name] = value
        return
    value = realize(value, tx.state)
    if isinstance(found, types.MemberDescriptorType) and found.__objclass__ in NAMING:
        obj.attrs[name] = value
        return
    is_none = isinstance(value, ConstantVariable) and value.value is None
    if name == "__traceback__" and (is_none or isinstance(value, TracebackVariable)):
        obj.trace = [] if is_none else list(value.trace)  # type: ignore[attr-defined]
    elif name in ("__cause__", "__context__") and (is_none or issubclass(value.python_type(), BaseException)):
        if name == "__cause__":
            obj.cause = value
        else:
            obj.context = None if is_none else value
    elif isinstance(found, property) and found.fset is not None:
        calls.call(tx, wrap_pinned(tx, found.fset), [obj, value], {})
    else:
        raise GraphBreak("unsupported_mutation", f"setting {obj.cls.__name__}.{name}")


def _super_attr(tx: Any, obj: SuperVariable, name: str) -> VariableTracker:
    target = realize(obj.obj, tx.state)
    is_class = isinstance(target, ObjectVariable) and issubclass(type(target.value), type) and issubclass(target.value, obj.start)
    cls = target.value if is_class else target.python_type()  # type: ignore[attr-defined]
    guard_mro(tx, cls)
    mro = cls.__mro__
    for base in mro[mro.index(obj.start) + 1 :]:
        if name in base.__dict__:
            found = mro_lookup(tx, base, name)
            if is_class:
                if isinstance(found, types.FunctionType):
                    return wrap_pinned(tx, found)
                if isinstance(found, classmethod):
                    return _class_method(tx, found, target, name)
                if name == "__new__":
                    return wrap_pinned(tx, getattr(base, name))
                if isinstance(found, property):
                    return wrap_pinned(tx, found)
                if not isinstance(found, (types.WrapperDescriptorType, types.MethodDescriptorType)):
                    return bind(tx, found, NONE, cls, name, owner=target)
            if isinstance(found, types.ClassMethodDescriptorType):
                raise GraphBreak("unsupported_attribute", f"super().{name}, a class method written in C")
            if isinstance(found, (types.WrapperDescriptorType, types.MethodDescriptorType)):
                return MethodVariable(wrap_pinned(tx, found), target)
            return bind(tx, found, target, cls, name)
        mro_lookup(tx, base, name)
    raise UserRaise(user_error(AttributeError, f"'super' object has no attribute '{name}'"))


def special_method(tx: Any, obj: VariableTracker, name: str) -> VariableTracker | None:
    """A method looked up on the type, as the interpreter does for operators; None where the type has none."""
    if isinstance(obj, ObjectVariable):
        found = mro_lookup(tx, obj.cls, name)
        if found is MISSING or found is None:
            return None
        return bind(tx, found, obj, obj.cls, name)
    if defines(obj.python_type(), name):
        return BuiltinMethodVariable(name, obj)
    return None


def set_attr(tx: Any, obj: VariableTracker, name: str, value: VariableTracker) -> None:
    if isinstance(obj, TensorVariable):
        TENSOR.set_attr(tx, obj, name, realize(value, tx.state))
        return
    if isinstance(obj, ExceptionVariable):
        _set_exception_attr(tx, obj, name, value)
        return
    if isinstance(obj, FunctionVariable):
        if defines(types.FunctionType, name):
            raise GraphBreak("unsupported_mutation", f"setting {name} of a function made in the trace")
        tx.state.changed(obj)
        obj.attrs[name] = value
        return
    if not isinstance(obj, ObjectVariable) or issubclass(type(obj.value), type):
        raise GraphBreak("unsupported_mutation", f"setting {obj.python_type().__name__}.{name}")
    if issubclass(type(obj.value), (types.FunctionType, types.ModuleType)):
        if name.startswith("__") or isinstance(mro_lookup(tx, obj.cls, "__setattr__"), types.FunctionType):
            raise GraphBreak("unsupported_mutation", f"setting {name} of a function or module")
        store_attr(tx, obj, name, value)
        return
    setter = mro_lookup(tx, obj.cls, "__setattr__")
    if isinstance(setter, types.FunctionType):
        quick = MODULE_SETATTR.get(setter)
        if quick is None or not quick(tx, obj, name, value):
            calls.call(tx, MethodVariable(wrap_pinned(tx, setter), obj), [constant(name), value], {})
        return
    if not (isinstance(setter, types.WrapperDescriptorType) and setter.__name__ == "__setattr__"):
        raise GraphBreak("unsupported_mutation", f"setting {obj.cls.__name__}.{name}, which has a __setattr__ of its own")
    generic_set_attr(tx, obj, name, value)


MODULE_SETATTR: dict[Any, Any] = {}


def generic_set_attr(tx: Any, obj: ObjectVariable, name: str, value: VariableTracker) -> None:
    """object.__setattr__."""
    on_class = mro_lookup(tx, obj.cls, name)
    if isinstance(on_class, property):
        if on_class.fset is None:
            raise GraphBreak("raised_exception", f"property {name} has no setter")
        calls.call(tx, wrap_pinned(tx, on_class.fset), [obj, value], {})
        return
    if isinstance(on_class, types.MemberDescriptorType) and on_class.__objclass__.__flags__ & _HEAP_TYPE:
        store_attr(tx, obj, name, value)
        return
    if on_class is not MISSING and hasattr(type(on_class), "__set__"):
        setter = mro_lookup(tx, type(on_class), "__set__")
        if isinstance(setter, types.FunctionType):
            descriptor = _class_value(tx, obj.cls, name, on_class)
            calls.call(tx, wrap_pinned(tx, setter), [descriptor, obj, value], {})
            return
        raise GraphBreak("unsupported_mutation", f"setting {obj.cls.__name__}.{name}")
    if not has_instance_dict(obj):
        if on_class is not MISSING:
            raise UserRaise(user_error(AttributeError, f"'{obj.cls.__name__}' object attribute '{name}' is read-only"))
        raise UserRaise(user_error(AttributeError, _NO_ROOM.format(cls=obj.cls.__name__, name=name)))
    store_attr(tx, obj, name, value)


def _no_room() -> str:
    """What the running CPython says where an object without a ``__dict__`` gets an attribute that it has no slot for."""
    try:
        setattr(type("{cls}", (), {"__slots__": ()})(), "{name}", None)
    except AttributeError as error:
        return str(error)
    raise AssertionError("an object without slots took an attribute")


_NO_ROOM = _no_room()


def has_instance_dict(obj: ObjectVariable) -> bool:
    return obj.cls.__dictoffset__ != 0


def store_attr(tx: Any, obj: ObjectVariable, name: str, value: VariableTracker) -> None:
    if obj.namespace is None and obj.value is not MISSING and id(namespace_of(obj.value)) in tx.state.by_id:
        raise GraphBreak("unsupported_mutation", f"setting {name} of an object whose __dict__ the trace holds")
    if obj.namespace is not None and not _is_slot(tx, obj, name):
        calls.operators.containers.dict_set(tx, obj.namespace, constant(name), value)
        return
    if obj.value is not MISSING and obj.source is None:
        raise GraphBreak("unsupported_mutation", f"setting {name} of an object that cannot be reached again")
    obj.attrs[name] = value
    tx.state.mark_mutated(obj)


def del_attr(tx: Any, obj: VariableTracker, name: str) -> None:
    if not isinstance(obj, ObjectVariable) or issubclass(type(obj.value), (type, types.ModuleType, types.FunctionType)):
        raise GraphBreak("unsupported_mutation", f"deleting {obj.python_type().__name__}.{name}")
    deleter = mro_lookup(tx, obj.cls, "__delattr__")
    on_class = mro_lookup(tx, obj.cls, name)
    if isinstance(deleter, types.FunctionType) or (on_class is not MISSING and hasattr(type(on_class), "__set__")):
        raise GraphBreak("unsupported_mutation", f"deleting {obj.cls.__name__}.{name}")
    if instance_dict_attr(tx, obj, name) is MISSING:
        raise attribute_error(obj, name)
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
        entries: Any = instance_dict(tx, obj)  # which knows that what is set again comes last
        calls.operators.containers.dict_delete(tx, entries, constant(name))
        return
    else:
        obj.attrs[name] = MISSING
    tx.state.mark_mutated(obj)


def module_table_entry(tx: Any, obj: ObjectVariable, table: str, name: str) -> VariableTracker | None:
    """Entry of a dict that is an attribute of ``obj`` (torch.nn.Module's _parameters, _buffers, _modules)."""
    entries = instance_dict_attr(tx, obj, table)
    if entries is MISSING:
        return None
    entries = realize(entries, tx.state)
    if isinstance(entries, ObjectVariable) and entries.payload is not None:
        entries = entries.payload
    if not isinstance(entries, DictVariable):
        raise GraphBreak("unsupported_attribute", f"{table} is no dict")
    return dict_get(tx, entries, constant(name))
