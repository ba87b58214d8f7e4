"""Instances of classes: calls of classes, ``__new__`` and ``__init__``."""

from __future__ import annotations

import builtins
import types
from typing import Any

from .._native import type_name
from ..errors import GraphBreak, UserRaise
from ..interp.exits import returns_only
from ..interp.state import realize, user_error
from ..model.dispatch import CLASSES, TENSOR
from ..model.value import (
    MISSING,
    NONE,
    ConstantVariable,
    DictVariable,
    ExceptionVariable,
    ListVariable,
    ObjectVariable,
    SetVariable,
    TupleVariable,
    VariableTracker,
)
from . import arity, calls, class_attributes, instances, iteration, lookup
from .calls import call, call_method, realize_all
from .inlining import Args, Kwargs
from .wrapping import wrap_pinned


def call_class(tx: Any, cls: type, args: Args, kwargs: Kwargs, waiting: bool = False) -> VariableTracker:
    """``cls(...)``: what the metaclass makes of it; where that is type.__call__, ``__new__``, then ``__init__``."""
    handler = CLASSES.get(cls)
    if handler is not None:
        args, kwargs = realize_all(tx, args, kwargs)
        arity.check(cls, len(args), kwargs)
        return handler(tx, cls, args, kwargs)
    meta_call = lookup.mro_lookup(tx, lookup.metaclass(tx, cls), "__call__")
    if isinstance(meta_call, types.FunctionType):
        owner = next(base for base in type(cls).__mro__ if "__call__" in base.__dict__)  # type: ignore
        if owner in CLASSES:
            return CLASSES[owner](tx, cls, *realize_all(tx, args, kwargs))
        tx.state.waiting = waiting
        return call(tx, wrap_pinned(tx, meta_call), [wrap_pinned(tx, cls), *args], kwargs)
    if not isinstance(meta_call, types.WrapperDescriptorType):  # a TypedDict's is dict
        return call(tx, instances.bind(tx, meta_call, wrap_pinned(tx, cls), type(cls), "__call__"), args, kwargs)
    return construct(tx, cls, args, kwargs, waiting)


def construct(tx: Any, cls: type, args: Args, kwargs: Kwargs, waiting: bool = False) -> VariableTracker:
    """type.__call__ itself."""
    whole = TENSOR.construct(tx, cls, args, kwargs)
    if whole is not None:
        return whole
    new = lookup.mro_lookup(tx, cls, "__new__")
    target = wrap_pinned(tx, cls)
    if isinstance(new, types.BuiltinFunctionType):
        made = new_object(tx, new.__self__, [target, *args], kwargs)  # type: ignore[arg-type]
    else:
        made = call(tx, class_attributes.generic_class_attr(tx, target, cls, "__new__"), [target, *args], kwargs)  # type: ignore[arg-type]
    made = realize(made, tx.state)
    if not lookup.inherits(made.python_type(), cls):
        return made
    init = lookup.mro_lookup(tx, made.python_type(), "__init__")
    if isinstance(init, types.FunctionType):
        result = realize(_initialised(tx, made, init, args, kwargs, waiting), tx.state)
        if not (isinstance(result, ConstantVariable) and result.value is None):
            raise UserRaise(user_error(TypeError, f"__init__() should return None, not '{type_name(result.python_type())}'"))
    elif init is object.__init__ or isinstance(made, ExceptionVariable):
        pass  # object_init: object_new has checked the arguments
    elif isinstance(init, types.WrapperDescriptorType) and isinstance(made, ObjectVariable):
        initialise_payload(tx, made, args, kwargs)
    else:
        raise GraphBreak("untraceable_call", f"{cls.__name__}.__init__")
    return made


def _initialised(tx: Any, made: VariableTracker, init: types.FunctionType, args: Args, kwargs: Kwargs, waiting: bool) -> VariableTracker:
    """What ``__init__`` returns. While it runs, what its frame's caller waits for lies on the caller's stack."""
    if not waiting or not returns_only(init.__code__, None):
        return call(tx, wrap_pinned(tx, init), [made, *args], kwargs)
    tx.push(made)
    tx.state.waiting = tx.drops = True
    result = call(tx, wrap_pinned(tx, init), [made, *args], kwargs)
    tx.stack.pop()
    return result


def initialise_payload(tx: Any, obj: ObjectVariable, args: Args, kwargs: Kwargs) -> None:
    """list.__init__, dict.__init__, set.__init__ on an instance of a subclass."""
    inner = obj.payload
    calls.CHECK_ITEMS[0](tx, obj, "__init__", bool(args or kwargs))
    arity.check_method(obj.cls, "__init__", len(args), kwargs)
    own = next((INITIALISERS[base] for base in obj.cls.__mro__ if base in INITIALISERS), None)
    if own is not None:
        own(tx, obj, args, kwargs)
    elif isinstance(inner, (ListVariable, DictVariable, SetVariable)):
        call_method(tx, inner, "__init__", args, kwargs)
    elif inner is None and obj.cls.__init__ is not object.__init__:
        raise GraphBreak("untraceable_call", f"{obj.cls.__name__}.__init__")


_NO_INSTANCES, _ABSTRACT = 1 << 7, 1 << 20  # Py_TPFLAGS_DISALLOW_INSTANTIATION, Py_TPFLAGS_IS_ABSTRACT


def new_object(tx: Any, owner: type, args: Args, kwargs: Kwargs) -> VariableTracker:
    """``owner.__new__(cls, ...)`` of a builtin type."""
    target = realize(args[0], tx.state) if args else NONE
    if not (isinstance(target, ObjectVariable) and issubclass(type(target.value), type)):
        raise GraphBreak("untraceable_call", "__new__ without a class")
    cls = target.value
    maker = next((b for b in cls.__mro__ if "__new__" in b.__dict__ and not b.__flags__ & lookup.HEAP_TYPE), object)
    if not issubclass(cls, owner) or maker is not owner or cls.__flags__ & _NO_INSTANCES:
        raise GraphBreak("raised_exception", f"{owner.__name__}.__new__({cls.__name__})")
    if owner is not object and cls is owner and cls in CLASSES:
        return call_class(tx, cls, args[1:], kwargs)
    if issubclass(cls, BaseException):
        if issubclass(cls, PECULIAR_EXCEPTIONS):
            raise GraphBreak("untraceable_call", f"{cls.__name__}, an exception that keeps its arguments in C")
        if kwargs and not lookup.is_python(tx, cls, "__init__"):
            if not set(kwargs) <= set().union(*(EXCEPTION_MEMBERS.get(base, ()) for base in cls.__mro__)):
                if issubclass(cls, (NameError, AttributeError)):
                    raise GraphBreak("raised_exception", f"{cls.__name__} with the keyword arguments {', '.join(kwargs)}")
                raise UserRaise(user_error(TypeError, f"{type_name(cls)}() takes no keyword arguments"))
            made = ExceptionVariable(cls, list(args[1:]))
            made.attrs.update(kwargs)
            return made
        return ExceptionVariable(cls, list(args[1:]))
    if lookup.mro_lookup(tx, cls, "__del__") is not MISSING:
        raise GraphBreak("finaliser", f"a {cls.__name__} is made")
    made = ObjectVariable(MISSING, cls)
    tx.state.dirty += 1
    if owner is object:
        if len(args) > 1 or kwargs:
            _check_excess(tx, cls)
        lookup.mro_lookup(tx, cls, "__abstractmethods__")
        if cls.__flags__ & _ABSTRACT:
            raise GraphBreak("raised_exception", f"{cls.__name__} is abstract")
        return made
    if owner is tuple:
        if (len(args) > 2 or kwargs) and cls.__init__ is object.__init__:
            arity.check(tuple, len(args) - 1, kwargs)
        made.payload = TupleVariable(iteration.unpack_iterable(tx, realize(args[1], tx.state)) if len(args) > 1 else [])
    elif owner is list:
        made.payload = ListVariable([])
    elif issubclass(owner, dict) and owner in MAPPING_BASES:
        made.payload = DictVariable({})
    elif owner is set:
        made.payload = SetVariable({}, order=set())
    elif owner in STRUCT_SEQUENCES and len(args) == 2 and not kwargs:
        return STRUCT_SEQUENCES[owner](tx, cls, iteration.unpack_iterable(tx, realize(args[1], tx.state)))
    elif owner in MAKERS:
        return MAKERS[owner](tx, cls, args[1:], kwargs)
    else:
        raise GraphBreak("untraceable_call", f"{owner.__name__}.__new__")
    return made


def _check_excess(tx: Any, cls: type) -> None:
    """object_new with arguments: they are meant for ``__init__``."""
    if lookup.mro_lookup(tx, cls, "__new__") is not object.__new__:
        raise UserRaise(user_error(TypeError, "object.__new__() takes exactly one argument (the type to instantiate)"))
    if lookup.mro_lookup(tx, cls, "__init__") is object.__init__:
        raise UserRaise(user_error(TypeError, f"{type_name(cls)}() takes no arguments"))


STRUCT_SEQUENCES: dict[type, Any] = {}  # named tuples made in C -> (tx, class, items) -> one of them
MAKERS: dict[type, Any] = {}  # other classes in C -> what their __new__(class, ...) gives: (tx, class, args, kwargs)
MAPPING_BASES: set[type] = {dict}
TRACE_ONLY: set[type] = set()  # classes whose objects, made in a trace, stay in it
# Keyword arguments of exceptions' own __init__, which it keeps as attributes in C.
EXCEPTION_MEMBERS = {NameError: ("name",), AttributeError: ("name", "obj")}
# Exceptions whose __new__ or __init__ do more than to keep ``args``.
PECULIAR_EXCEPTIONS = (OSError, ImportError, SyntaxError, UnicodeDecodeError, UnicodeEncodeError, UnicodeTranslateError,
                       SystemExit, *([_GROUP] if (_GROUP := getattr(builtins, "BaseExceptionGroup", None)) else []))
INITIALISERS: dict[type, Any] = {}  # builtin class -> its __init__(tx, obj, args, kwargs), where it is not just an update

calls.MAKING[:] = [call_class, new_object]
