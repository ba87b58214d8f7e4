"""Builders of instances, functions, methods and exceptions."""

from __future__ import annotations

import collections
import functools
import operator
import types
from typing import Any

from .._native import namespace_of
from ..model.source import instr
from ..model.value import (
    MISSING,
    BuiltinMethodVariable,
    CellVariable,
    DictVariable,
    ExceptionVariable,
    FunctionVariable,
    ListVariable,
    MethodVariable,
    ObjectVariable,
    SetVariable,
    SuperVariable,
    TracebackVariable,
    TupleVariable,
)
from ..semantics import lookup, making
from ..semantics.constructors import PartialVariable
from ..semantics.dict_methods import ViewVariable
from ..semantics.getters import GetterVariable
from ..semantics.randoms import RandomVariable
from ..semantics.wrapping import STAND_INS
from ..tensor.arrays import ArrayVariable
from ..tensor.hooks import LaterHandleVariable
from ..tensor.inference import InferenceVariable
from ..tensor.modes import ENTERED
from ..tensor.running import StructVariable
from ..tensor.transforms import TransformVariable
from .codegen import Codegen, Unreconstructible, builds, refers_to
from .made import complete_exception, new_exception, new_function, new_inference_mode, new_random, new_traceback


def _attributes(cg: Codegen, attrs: dict) -> None:
    """A dict display of attributes by name."""
    for name, value in attrs.items():
        cg.op("LOAD_CONST", name)
        cg.load(value)
    cg.op("BUILD_MAP", len(attrs))


@builds(ArrayVariable)
def _array(cg: Codegen, t: ArrayVariable) -> None:
    """The array, or the number, that shares the memory of the graph's tensor."""
    assert t.tensor is not None
    cg.load(t.tensor)
    cg.op("LOAD_ATTR", "numpy")
    cg.call(0)
    if t.scalar:
        cg.op("LOAD_CONST", ())
        cg.emit(instr("APPLY", (operator.getitem, 2)))
    elif t.owns():
        cg.op("LOAD_ATTR", "copy")
        cg.op("LOAD_CONST", "K")
        cg.call(1)
    elif t.fresh or t.root is not t:  # its base is an array, too, and only that of Tensor.numpy() a tensor
        cg.op("LOAD_CONST", ...)
        cg.emit(instr("APPLY", (operator.getitem, 2)))
    cg.store_temp(t)


@builds(RandomVariable)
def _random(cg: Codegen, t: RandomVariable) -> None:
    cg.load_object(new_random)
    cg.load_object(t.real.getstate())
    cg.call(1)
    cg.store_temp(t)


@builds(ObjectVariable, ViewVariable, StructVariable)
def _object(cg: Codegen, t: ObjectVariable) -> None:
    if t.value is not MISSING:
        cg.load_object(t.value)
        return
    if isinstance(t, ViewVariable):
        cg.load(t.holder)
        cg.op("LOAD_ATTR", t.kind)
        cg.call(0)
        return
    if isinstance(t, StructVariable) or t.cls is types.MappingProxyType:
        cg.load_object(t.cls)
        cg.load(t.payload)  # type: ignore[arg-type]
        cg.call(1)
        cg.store_temp(t)
        return
    if t.cls is types.SimpleNamespace:
        cg.load_object(t.cls)
        cg.call(0)
        cg.store_temp(t)
        if t.namespace is not None:
            _namespace(cg, t, t.namespace)
        for attr, value in t.attrs.items():
            cg.load(value)
            cg.op("LOAD_FAST", cg.temps[id(t)])
            cg.op("STORE_ATTR", attr)
        return
    if t.cls in STAND_INS:
        raise Unreconstructible("an object that stands for one made in C")
    if t.cls in making.TRACE_ONLY:
        raise Unreconstructible(f"a {t.cls.__name__} made in the trace")
    payload = t.payload
    base = next(b for b in t.cls.__mro__ if b in making.MAKERS or b.__module__ in ("builtins", "collections") and not _is_python_class(b))
    cg.load_object(base)
    cg.op("LOAD_ATTR", "__new__")
    cg.load_object(t.cls)
    if isinstance(payload, TupleVariable):
        cg.load(payload)
        if cg.closed(t, 3):
            return
        cg.call(2)
    else:
        cg.call(1)
    cg.store_temp(t)
    name = cg.temps[id(t)]
    if isinstance(payload, ListVariable):
        for item in payload.items:
            cg.load_object(list)
            cg.op("LOAD_ATTR", "append")
            cg.op("LOAD_FAST", name)
            cg.load(item)
            cg.call(2)
            cg.op("POP_TOP")
    elif isinstance(payload, DictVariable):
        setter = collections.OrderedDict if issubclass(t.cls, collections.OrderedDict) else dict
        for key, value in payload.items.values():
            cg.load_object(setter)
            cg.op("LOAD_ATTR", "__setitem__")
            cg.op("LOAD_FAST", name)
            cg.load(key)
            cg.load(value)
            cg.call(3)
            cg.op("POP_TOP")
    elif isinstance(payload, SetVariable):
        raise Unreconstructible(f"a {t.cls.__name__}")
    if t.namespace is not None:
        _namespace(cg, t, t.namespace)
    if not t.attrs:
        return
    plain = _stores_plainly(cg, t.cls)
    for attr, value in t.attrs.items():
        if plain:
            cg.load(value)
            cg.op("LOAD_FAST", name)
            cg.op("STORE_ATTR", attr)
            continue
        cg.load_object(object)
        cg.op("LOAD_ATTR", "__setattr__")
        cg.op("LOAD_FAST", name)
        cg.op("LOAD_CONST", attr)
        cg.load(value)
        cg.call(3)
        cg.op("POP_TOP")


def _stores_plainly(cg: Codegen, cls: type) -> bool:
    """Whether setting an attribute is object.__setattr__, which has been traced; guarded."""
    if "__setattr__" in cg.state.class_writes or lookup.peek(cls, "__setattr__") is not object.__setattr__:
        return False
    lookup.record(cg, cls, "__setattr__")
    return True


@builds(InferenceVariable)
def _inference(cg: Codegen, t: InferenceVariable) -> None:
    """An object that has been left. One that is entered here gets its ``__init__``, which enters it, with the other modes."""
    cg.load_object(new_inference_mode)
    left = all(entry is not t.entry for entry, _ in ENTERED.stack)
    cg.op("LOAD_CONST", t.mode if left else None)
    cg.call(1)
    cg.store_temp(t)


def _namespace(cg: Codegen, t: ObjectVariable, namespace: DictVariable) -> None:
    """Fill the new object's ``__dict__``, which the program may hold, too."""
    cg.load_object(namespace_of)
    cg.op("LOAD_FAST", cg.temps[id(t)])
    cg.call(1)
    cg.store_temp(namespace)
    cg.op("POP_TOP")
    for key, value in namespace.items.values():
        cg.load(value)
        cg.op("LOAD_FAST", cg.temps[id(namespace)])
        cg.load(key)
        cg.op("STORE_SUBSCR")


def _is_python_class(cls: type) -> bool:
    return bool(cls.__flags__ & lookup.HEAP_TYPE)


@builds(FunctionVariable)
def _function(cg: Codegen, t: FunctionVariable) -> None:
    cells = [c for c in t.closure if c.source is None and id(c) not in cg.temps]
    for cell in cells:
        cg.load(cell)
        cg.op("POP_TOP")
    if id(t) in cg.temps:  # a recursive function: building its cell has built it
        cg.op("LOAD_FAST", cg.temps[id(t)])
        return
    cg.load_object(new_function)
    cg.op("LOAD_CONST", t.code)
    cg.load_object(t.globals_of.real)
    cg.op("LOAD_CONST", t.name)
    cg.op("LOAD_CONST", t.qualname)
    for part in (t.defaults, t.kwdefaults):
        if part is None:
            cg.op("LOAD_CONST", None)
        else:
            cg.load(part)
    if t.closure:
        cg.load_many(t.closure)
        cg.op("BUILD_TUPLE", len(t.closure))
    else:
        cg.op("LOAD_CONST", None)
    cg.op("BUILD_MAP", 0)
    if t.annotations is None:
        cg.op("LOAD_CONST", None)
    else:
        cg.load(t.annotations)
    cg.call(9)
    cg.store_temp(t)
    for attr, value in t.attrs.items():
        cg.load(value)
        cg.op("LOAD_FAST", cg.temps[id(t)])
        cg.op("STORE_ATTR", attr)


@builds(CellVariable)
def _cell(cg: Codegen, t: CellVariable) -> None:
    cg.load_object(types.CellType)
    cg.call(0)
    cg.store_temp(t)
    if t.contents is not MISSING:
        cg.load(t.contents)
        cg.op("LOAD_FAST", cg.temps[id(t)])
        cg.op("STORE_ATTR", "cell_contents")


@builds(MethodVariable)
def _method(cg: Codegen, t: MethodVariable) -> None:
    if t.in_c is not None:
        cg.load_object(t.func.value.__get__)  # type: ignore[attr-defined]
    else:
        cg.load_object(types.MethodType)
        cg.load(t.func)
    cg.load(t.obj)
    cg.call(1 if t.in_c is not None else 2)
    cg.store_temp(t)


def _made_by_call(cg: Codegen, t: Any, cls: type, args: list, kwargs: dict) -> None:
    cg.load_object(cls)
    cg.load_many(args)
    cg.op("BUILD_TUPLE", len(args))
    _attributes(cg, kwargs)
    cg.op("CALL_EX", True)
    cg.store_temp(t)


@builds(PartialVariable)
def _partial(cg: Codegen, t: PartialVariable) -> None:
    _made_by_call(cg, t, functools.partial, [t.func, *t.args], t.kwargs)
    for attr, value in t.attrs.items():
        cg.load(value)
        cg.op("LOAD_FAST", cg.temps[id(t)])
        cg.op("STORE_ATTR", attr)


@builds(TransformVariable)
def _transform(cg: Codegen, t: TransformVariable) -> None:
    cg.load_object(t.make)
    cg.load(t.args[-1])
    cg.call(1)
    cg.store_temp(t)


@builds(GetterVariable)
def _getter(cg: Codegen, t: GetterVariable) -> None:
    _made_by_call(cg, t, t.cls, t.given, t.named)


@builds(BuiltinMethodVariable)
def _builtin_method(cg: Codegen, t: BuiltinMethodVariable) -> None:
    if t.descriptor is not None:  # the object may not be asked: a ``__getattribute__`` of the program is where this may run
        cg.load_object(t.descriptor.__get__)
        of_class = isinstance(t.descriptor, types.ClassMethodDescriptorType)
        if of_class:
            cg.op("LOAD_CONST", None)
        cg.load(t.obj)
        cg.call(1 + of_class)
    else:
        cg.load(t.obj)
        cg.op("LOAD_ATTR", t.name)
    if id(t) in cg.shared:  # else a call may take the method and the object apart
        cg.store_temp(t)


@builds(SuperVariable)
def _super(cg: Codegen, t: SuperVariable) -> None:
    cg.load_object(super)
    cg.load_object(t.start)
    cg.load(t.obj)
    cg.call(2)
    cg.store_temp(t)


@builds(TracebackVariable)
def _traceback(cg: Codegen, t: TracebackVariable) -> None:
    now = getattr(t.of, "trace", t.trace)
    if now[: len(t.trace)] == t.trace:
        cg.load(t.of)
        cg.op("LOAD_ATTR", "__traceback__")
        for _ in now[len(t.trace) :]:  # links that it has got since
            cg.op("LOAD_ATTR", "tb_next")
    else:  # the exception was given another one
        cg.load_object(new_traceback)
        _trace(cg, t.trace)
        cg.call(1)
        cg.store_temp(t)


def _trace(cg: Codegen, trace: list[tuple[Any, int]]) -> None:
    root = cg.state.root.code
    cg.op("LOAD_CONST", tuple((None if code is root else code, line) for code, line in trace))


@builds(ExceptionVariable)
def _exception(cg: Codegen, t: ExceptionVariable) -> None:
    if any(refers_to(arg, t, set()) for arg in t.args):
        raise Unreconstructible("an exception with itself among its arguments")
    cg.load_object(new_exception)
    cg.load_object(t.cls)
    cg.load_many(t.args)
    cg.op("BUILD_TUPLE", len(t.args))
    cyclic = refers_to(t, t, set())
    if cyclic:
        cg.op("BUILD_MAP", 0)
        cg.load_object(MISSING)
        cg.load_object(MISSING)
    else:
        _references(cg, t)
    _trace(cg, t.trace)
    cg.call(6)
    cg.store_temp(t)
    if cyclic:
        cg.load_object(complete_exception)
        cg.load(t)
        _references(cg, t)
        cg.call(4)
        cg.op("POP_TOP")


def _references(cg: Codegen, t: ExceptionVariable) -> None:
    _attributes(cg, t.attrs)
    if t.cause is MISSING:
        cg.load_object(MISSING)
    else:
        cg.load(t.cause)
    if t.context is None:  # what is handled where the trace began, if it has been raised
        cg.load_object(MISSING)
    else:
        cg.load(t.context)


@builds(LaterHandleVariable)
def _handle(cg: Codegen, t: LaterHandleVariable) -> None:
    if t not in cg.state.hooked:
        raise Unreconstructible("the handle of a hook that was removed")
    earlier = cg.state.hooked[: cg.state.hooked.index(t)]
    if any(other.tensor is t.tensor and id(other) not in cg.temps for other in earlier):  # they are called in their order
        raise Unreconstructible("the handle of a hook on a tensor that has an earlier one, which comes later here")
    cg.load_object(t.call)
    cg.load(t.tensor)
    cg.load(t.hook)
    if id(t) in cg.temps:
        raise Unreconstructible("a hook that holds its own handle")
    cg.call(2)
    cg.store_temp(t)
