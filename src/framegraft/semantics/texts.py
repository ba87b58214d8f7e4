"""What str() and repr() say of trackers."""

from __future__ import annotations

import collections
import enum
import types
from typing import Any

from .._native import type_name
from ..errors import GraphBreak, UserRaise
from ..interp.state import realize, user_error
from ..model.dispatch import constructs, specialised
from ..model.value import (
    ConstantVariable,
    DequeVariable,
    DictVariable,
    ExceptionVariable,
    ListVariable,
    MethodVariable,
    ObjectVariable,
    SetVariable,
    SliceVariable,
    TupleVariable,
    VariableTracker,
    constant,
)
from . import attributes, calls, class_checks, core, folding, hashed, iteration, lookup, members
from .dict_methods import ViewVariable
from .wrapping import wrap_pinned


def text_of(tx: Any, fn: Any, name: str, obj: VariableTracker) -> VariableTracker:
    obj = specialised(obj)
    if isinstance(obj, ConstantVariable):
        return folding.fold(fn, [obj])
    if class_checks.is_class(obj):
        return _class_text(tx, fn, obj)
    if isinstance(obj, ObjectVariable):
        if fn is str and lookup.mro_lookup(tx, obj.cls, "__str__") is not object.__str__:
            name = "__str__"
        if obj.payload is None and members.has_in_c(tx, obj, name, "__repr__"):
            return constant(fn(obj.value))
        if issubclass(type(obj.value), enum.Enum) and isinstance(lookup.mro_lookup(tx, obj.cls, name), types.WrapperDescriptorType):
            return constant(fn(obj.value))  # what the members keep in C
        plain = obj.payload is not None and not lookup.is_python(tx, obj.cls, name)
        method = None if plain else attributes.special_method(tx, obj, name)
        if method is not None and not calls.is_builtin_method(method):
            text = realize(calls.call(tx, method, [], {}), tx.state)
            if not issubclass(text.python_type(), str):
                said = f"{name} returned non-string (type {type_name(text.python_type())})"
                raise UserRaise(user_error(TypeError, said))
            return text
    if isinstance(obj, ExceptionVariable):
        return _exception_text(tx, fn, obj)
    if isinstance(obj, (ListVariable, TupleVariable)):
        try:
            value = core.need_constant_deep(TupleVariable(obj.items))
        except GraphBreak:
            return constant(_nested_text(tx, fn, obj, ()))
        return constant(fn(list(value) if isinstance(obj, ListVariable) else obj.python_type()(value)))
    return constant(_nested_text(tx, fn, obj, ())) if _is_container(obj) else _break_text(fn, obj)


_SEQUENCES = (ListVariable, TupleVariable, DequeVariable, SliceVariable)
_CONTAINERS = (*_SEQUENCES, DictVariable, SetVariable, ViewVariable)
_OWN_DICTS = (collections.OrderedDict, collections.defaultdict)
_TELLS_PAIRS = "[" in repr(collections.OrderedDict(a=1))  # before CPython 3.12


def _is_container(obj: VariableTracker) -> bool:
    return type(obj) in _CONTAINERS or type(obj) is ObjectVariable and obj.cls in _OWN_DICTS


def _nested_text(tx: Any, fn: Any, obj: VariableTracker, inside: tuple) -> str:
    """repr() of a container and of what it holds; ``inside``: the containers around it."""
    if not _is_container(obj):
        return core.need_constant(text_of(tx, repr, "__repr__", obj), "a text")
    if fn not in (str, repr) or any(obj is other for other in inside):
        return _break_text(fn, obj)

    def text(item: VariableTracker) -> str:
        return _nested_text(tx, fn, realize(item, tx.state), (*inside, obj))

    name = obj.python_type().__name__
    held = obj.payload if type(obj) is ObjectVariable else obj
    if isinstance(held, DictVariable):
        pairs = [(text(key), text(value)) for key, value in list(hashed.complete(tx, held).values())]
        return _dict_text(tx, obj, name, pairs)
    items = list(obj.items) if isinstance(obj, _SEQUENCES) else iteration.unpack_iterable(tx, obj)
    parts = ", ".join([text(i) for i in items])
    if isinstance(obj, ListVariable):
        return f"[{parts}]"
    if isinstance(obj, TupleVariable):
        return f"({parts},)" if len(obj.items) == 1 else f"({parts})"
    if isinstance(obj, SetVariable):
        return f"{name}()" if not items else f"{{{parts}}}" if obj.cls is set else f"{name}({{{parts}}})"
    if isinstance(obj, DequeVariable):
        return f"{name}([{parts}])" if obj.maxlen is None else f"{name}([{parts}], maxlen={obj.maxlen})"
    return f"{name}({parts})" if isinstance(obj, SliceVariable) else f"{name}([{parts}])"


def _dict_text(tx: Any, obj: VariableTracker, name: str, pairs: list[tuple[str, str]]) -> str:
    whole = "{" + ", ".join(f"{key}: {value}" for key, value in pairs) + "}"
    if obj.python_type() is collections.defaultdict:
        factory = realize(attributes.get_attr(tx, obj, "default_factory"), tx.state)
        return f"{name}({core.need_constant(text_of(tx, repr, '__repr__', factory), 'a text')}, {whole})"
    if obj.python_type() is not collections.OrderedDict:
        return whole
    if _TELLS_PAIRS:
        whole = "[" + ", ".join(f"({key}, {value})" for key, value in pairs) + "]"
    return f"{name}({whole if pairs else ''})"


def _exception_text(tx: Any, fn: Any, obj: ExceptionVariable) -> VariableTracker:
    """What str() and repr() of an exception say (CPython: BaseException_str, BaseException_repr, KeyError_str)."""
    name = "__str__" if fn is str else "__repr__"
    own = lookup.mro_lookup(tx, obj.cls, name)
    if isinstance(own, types.FunctionType):
        text = realize(calls.call(tx, MethodVariable(wrap_pinned(tx, own), obj), [], {}), tx.state)
        return text if text.python_type() is str else _break_text(fn, obj)
    args = [realize(a, tx.state) for a in obj.args]
    slot = own.__objclass__ if isinstance(own, types.WrapperDescriptorType) else None
    if fn is str and slot in (BaseException, AttributeError, NameError, KeyError):
        if len(args) == 1:
            return text_of(tx, repr if slot is KeyError else str, "__repr__", args[0])
        return text_of(tx, str, "__repr__", TupleVariable(args)) if args else constant("")
    if fn is repr and slot is BaseException:
        whole = core.need_constant(text_of(tx, repr, "__repr__", TupleVariable(args)), "a text")
        return constant(obj.cls.__name__ + (whole[:-2] + ")" if len(args) == 1 else whole))
    return _break_text(fn, obj)


def _class_text(tx: Any, fn: Any, obj: Any) -> VariableTracker:
    if lookup.mro_lookup(tx, type(obj.value), "__repr__") is not type.__repr__:
        return _break_text(fn, obj)
    root = tx.state.guards.pin(obj.source, obj.value)
    for part in ("__module__", "__qualname__"):
        tx.state.guards.add(root.child("ATTR", part), "EQ", getattr(obj.value, part))
    return constant(fn(obj.value))


def _break_text(fn: Any, obj: VariableTracker) -> Any:
    raise GraphBreak("untraceable_call", f"{fn.__name__}() of a {obj.python_type().__name__}")


@constructs(str)
def make_str(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    if len(args) > 1 or kwargs:
        named = {k: core.need_constant(v, k) for k, v in kwargs.items()}
        return folding.fold(str, [constant(core.need_constant(a, "an argument of str()")) for a in args], named)
    if not args:
        return constant("")
    return text_of(tx, str, "__repr__", args[0])
