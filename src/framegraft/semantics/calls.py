"""Calls: who handles a callable, binding of arguments, inlining of Python functions, instances of user classes."""

from __future__ import annotations

import collections
import functools
import operator
import types
import weakref
from typing import Any

from .. import _native
from .._native import type_name
from ..errors import GraphBreak, UserRaise
from ..interp.state import realize, user_error
from ..model.dispatch import HANDLERS, METHODS, TENSOR, specialised, unknown
from ..model.source import BUILTINS, Source, pinned
from ..model.value import (
    MISSING,
    NONE,
    BuiltinMethodVariable,
    CellVariable,
    ChangingVariable,
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
    SizeVariable,
    SliceVariable,
    SymbolicVariable,
    TensorVariable,
    TupleVariable,
    VariableTracker,
    constant,
)
from . import arity, attributes, folding, iteration, lookup, members, operators, truth
from .hashed import complete, payload_of
from .inlining import Args, Kwargs, bind_arguments, run_inline
from .wrapping import PLAIN_VALUES, known_by_parts, need_constant_deep, wrap_constant, wrap_pinned

WEAKREF: list[Any] = []  # set by library.py, which builds on this file
CACHED: list[Any] = []  # set by cached.py, as well
CHECK_ITEMS: list[Any] = []  # set by mappings.py, as well
MAKING: list[Any] = []  # (call_class, new_object), set by making.py


def call(tx: Any, fn: VariableTracker, args: Args, kwargs: Kwargs) -> VariableTracker:
    """The value of a call. ``state.waiting``, set just before, is handed on to the one call whose value is the answer."""
    state = tx.state
    waiting, state.waiting = state.waiting, False
    fn = realize(fn, state)
    if isinstance(fn, ObjectVariable):
        return _call_object(tx, fn, args, kwargs, waiting)
    if isinstance(fn, MethodVariable):
        state.waiting = waiting
        with_bound = getattr(fn, "with_bound", None)
        if with_bound is not None:  # functools.partial made in the trace
            return call(tx, fn.func, *with_bound(args, kwargs))
        return call(tx, fn.func, [fn.obj, *args], kwargs)
    if isinstance(fn, FunctionVariable):
        return _inline_born(tx, fn, args, kwargs, waiting)
    if isinstance(fn, BuiltinMethodVariable):
        if isinstance(fn.descriptor, (types.MethodDescriptorType, types.WrapperDescriptorType)):
            handler = HANDLERS.get(id(fn.descriptor))
            if handler is not None:
                return handler(tx, *realize_all(tx, [fn.obj, *args], kwargs))
            return _unbound_method(tx, fn.descriptor, [fn.obj, *args], kwargs, bound=True)
        return call_method(tx, realize(fn.obj, tx.state), fn.name, args, kwargs)
    raise GraphBreak("untraceable_call", f"a {fn.python_type().__name__} called")


def ask(tx: Any, obj: VariableTracker, method: VariableTracker, args: Args, answers: bool = True) -> VariableTracker:
    """The call of a method by which ``obj`` does what is asked of it. Where an instruction of the program asks, its frame only waits
    for the value, or where that is no answer, for the end."""
    waiting = tx.breakable and tx.asked is obj and tx.inst.op in _ASKING
    tx.state.waiting, tx.drops = waiting, not answers
    return call(tx, method, args, {})


_ASKING = frozenset(("APPLY", "STORE_SUBSCR", "DELETE_SUBSCR", "STORE_ATTR"))


def truth_of(tx: Any, value: VariableTracker) -> bool:
    return truth.truth(tx, value)


def is_builtin_method(method: VariableTracker) -> bool:
    return isinstance(method, BuiltinMethodVariable)


def realize_all(tx: Any, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
    state = tx.state
    return [realize(a, state) for a in args], {k: realize(v, state) for k, v in kwargs.items()}


def _realized(tx: Any, fn: Any, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
    """The arguments for a function of the engine's own, with the default device where that counts."""
    args, kwargs = realize_all(tx, args, kwargs)
    return args, TENSOR.with_device(tx, fn, args, kwargs) if tx.state.graph.watches_devices else kwargs


def _call_object(tx: Any, fn: ObjectVariable, args: Args, kwargs: Kwargs, waiting: bool) -> VariableTracker:
    value = fn.value
    if value is not MISSING:
        if tx.state.overriding:
            given = TENSOR.overridden(tx, value, args, kwargs)
            if given is not None:
                return given
        handler = HANDLERS.get(id(value))
        if handler is not None:
            args, kwargs = _realized(tx, value, args, kwargs)
            if issubclass(type(value), (types.BuiltinFunctionType, types.FunctionType)):
                arity.check(value, len(args), kwargs)
            return handler(tx, args, kwargs)
        if TENSOR.takes(value, args, kwargs):
            args, kwargs = _realized(tx, value, args, kwargs)
            return TENSOR.call(tx, value, args, kwargs)
        if issubclass(type(value), type):
            return MAKING[0](tx, value, args, kwargs, waiting)
        if issubclass(type(value), types.FunctionType):
            return inline_call(tx, fn, value, args, kwargs, waiting)
        if issubclass(type(value), (types.MethodDescriptorType, types.WrapperDescriptorType)):
            return _unbound_method(tx, value, args, kwargs)
        if issubclass(type(value), types.BuiltinFunctionType):
            return _builtin_function(tx, value, args, kwargs)
        if type(value) is functools._lru_cache_wrapper:
            return CACHED[0](tx, fn, value, args, kwargs)
        if type(value) is weakref.ref and not args and not kwargs:
            return WEAKREF[0](tx, fn)
        if type(value) is types.MethodWrapperType and fn.source is not None:
            owner = LazyVariable(value.__self__, fn.source.child("ATTR", "__self__"))
            slot = value.__objclass__.__dict__[value.__name__]  # of the class whose method it is, which the object's may override
            return call(tx, wrap_pinned(tx, slot), [owner, *args], kwargs)
        if issubclass(type(value), functools.partial) and is_plain_partial(tx, type(value)):
            return call_partial(tx, fn, args, kwargs, waiting)
        if type(value) is _native.CompiledFunction:  # compiled code inside of compiled code is a part of it
            tx.state.guards.pin(fn.source or pinned(value), value)
            tx.state.waiting = waiting
            return call(tx, wrap_pinned(tx, value.fn), args, kwargs)
    inner = STANDS_FOR.get(fn.cls)
    if inner is not None:
        tx.state.waiting = waiting
        return call(tx, inner(tx, fn), args, kwargs)
    if value is not MISSING and tx.state.blocks is not None and TENSOR.is_block(value):
        return TENSOR.block(tx, fn, args, kwargs, lambda: _call_instance(tx, fn, args, kwargs, waiting))
    return _call_instance(tx, fn, args, kwargs, waiting)


def _call_instance(tx: Any, fn: ObjectVariable, args: Args, kwargs: Kwargs, waiting: bool) -> VariableTracker:
    """``__call__`` of the object's class."""
    method = attributes.special_method(tx, fn, "__call__")
    if method is None:
        raise UserRaise(user_error(TypeError, f"'{type_name(fn.cls)}' object is not callable"))
    if is_builtin_method(method):
        raise unknown(f"a {fn.cls.__name__} called", fn.cls.__module__)
    tx.state.waiting = waiting
    return call(tx, method, args, kwargs)


def call_partial(tx: Any, fn: ObjectVariable, args: Args, kwargs: Kwargs, waiting: bool = False) -> VariableTracker:
    inner, bound, named = partial_parts(tx, fn)
    tx.state.waiting = waiting
    return call(tx, inner, [*bound, *args], {**named, **kwargs})


def is_plain_partial(tx: Any, cls: type) -> bool:
    """Whether a subclass of functools.partial leaves the call as it is: then tp_call is partial_call."""
    return cls is functools.partial or lookup.mro_lookup(tx, cls, "__call__") is functools.partial.__call__


def partial_parts(tx: Any, fn: ObjectVariable) -> tuple[VariableTracker, Args, Kwargs]:
    """Function, arguments and keyword arguments of a functools.partial from outside."""
    assert fn.source is not None
    if fn.cls is not functools.partial and any(lookup.mro_lookup(tx, fn.cls, n) is not functools.partial.__dict__[n] for n in _PARTS):
        raise GraphBreak("untraceable_call", f"a {fn.cls.__name__}, which says itself what a functools.partial keeps in C")
    bound = realize(LazyVariable(fn.value.args, fn.source.child("ATTR", "args")), tx.state)
    keywords = realize(LazyVariable(fn.value.keywords, fn.source.child("ATTR", "keywords")), tx.state)
    named = {k.value: v for k, v in iteration.complete(tx, keywords).values()}  # type: ignore[arg-type,attr-defined]
    return LazyVariable(fn.value.func, fn.source.child("ATTR", "func")), bound.items, named  # type: ignore[attr-defined]


_PARTS = ("func", "args", "keywords", "__getattribute__")


def _unbound_method(tx: Any, value: Any, args: Args, kwargs: Kwargs, bound: bool = False) -> VariableTracker:
    """A slot or method of a builtin type called through the class: ``dict.get(d, k)``, ``object.__init__(self)``.

    ``bound``: the program has called it through the object, whose class errors name.
    """
    if not args:
        raise GraphBreak("raised_exception", f"{value.__qualname__} without arguments")
    obj = realize(args[0], tx.state)
    if not issubclass(obj.python_type(), value.__objclass__):
        raise GraphBreak("raised_exception", f"{value.__qualname__} of a {obj.python_type().__name__}")
    if isinstance(obj, ConstantVariable) and all(isinstance(realize(a, tx.state), ConstantVariable) for a in args):
        plain: list[VariableTracker] = [constant(realize(a, tx.state).value) for a in args]  # type: ignore[attr-defined]
        return folding.fold(value, plain, {k: need_constant_deep(realize(v, tx.state)) for k, v in kwargs.items()})
    plainly = all(type(realize(a, tx.state)) is ConstantVariable for a in args[1:])
    if members.is_member(obj) and value.__objclass__ in PLAIN_VALUES and plainly:
        named = {k: need_constant_deep(realize(v, tx.state)) for k, v in kwargs.items()}
        return folding.fold(value, [constant(obj.value), *(realize(a, tx.state) for a in args[1:])], named)  # type: ignore[attr-defined]
    if (value.__objclass__ is dict and issubclass(obj.python_type(), collections.OrderedDict)
            and getattr(collections.OrderedDict, value.__name__, None) is not value):  # reading by key is dict's own
        raise GraphBreak("unsupported_builtin_method", f"{value.__qualname__} of an OrderedDict, which has an order of its own")
    if value.__objclass__ is object and not isinstance(obj, (ObjectVariable, ExceptionVariable)) and (
            getattr(obj.python_type(), value.__name__, None) is not value):
        raise GraphBreak("unsupported_builtin_method", f"{value.__qualname__} of a {obj.python_type().__name__}")
    return call_method(tx, obj, value.__name__, args[1:], kwargs, owner=value.__objclass__, bound=bound)


def _builtin_function(tx: Any, value: Any, args: Args, kwargs: Kwargs) -> VariableTracker:
    args, kwargs = realize_all(tx, args, kwargs)
    arity.check(value, len(args), kwargs)
    owner = value.__self__
    if isinstance(owner, type) and value.__name__ == "__new__":
        return MAKING[1](tx, owner, args, kwargs)
    module = getattr(owner, "__name__", None) if isinstance(owner, types.ModuleType) else None
    if module == "_operator":
        return operators.apply(tx, OPERATOR_ALIASES.get(value, value), args)
    if any(type(a) is SymbolicVariable or type(a) is ChangingVariable for a in (*args, *kwargs.values())):
        result = TENSOR.symbolic(tx, value, args) if not kwargs else None
        if result is not None:
            return result
        args, kwargs = [specialised(a) for a in args], {k: specialised(v) for k, v in kwargs.items()}
    if module in FOLDABLE_MODULES and value.__name__ not in IMPURE:
        if all(type(a) is ConstantVariable for a in args) and all(type(v) is ConstantVariable for v in kwargs.values()):
            return folding.fold(value, args, {k: v.value for k, v in kwargs.items()})  # type: ignore[attr-defined]
        if module == "math" and not kwargs:
            return folding.fold(value, [constant(plain_value(tx, _number(tx, a))) for a in args])
    known = CLASS_METHODS.get((owner, value.__name__)) if isinstance(owner, type) else None
    if known is not None:
        return known(tx, args, kwargs)
    if isinstance(owner, type) and issubclass(owner, dict) and value.__name__ == "fromkeys":
        return call_method(tx, wrap_pinned(tx, owner), "fromkeys", args, kwargs)
    if owner in (str, bytes, int, float, bool) and all(type(a) is ConstantVariable for a in (*args, *kwargs.values())):
        if (VariableTracker, value.__name__) in METHODS:
            return call_method(tx, wrap_constant(owner), value.__name__, args, kwargs)
        return folding.fold(value, args, {k: v.value for k, v in kwargs.items()})  # type: ignore[attr-defined]
    of_class = owner.__module__ if isinstance(owner, type) else ""
    raise unknown(f"{value.__module__ or ''}.{value.__qualname__}".lstrip("."), value.__module__, of_class)


NOT_PURE = frozenset(("__reduce__", "__reduce_ex__", "__enter__", "__exit__"))  # methods of constants; a torch.device is a context
_FORMATS = ("format", "format_map", "__format__", "__mod__", "__rmod__")  # methods of texts that ask their arguments for one
STANDS_FOR: dict[type, Any] = {}  # classes whose call is that of another object: (tx, object) -> that one
CLASS_METHODS: dict[tuple[type, str], Any] = {}  # class methods of builtin types: handler(tx, args, kwargs)
FOLDABLE_MODULES = frozenset(("builtins", "math", "_operator", "cmath", "_struct", "binascii"))
IMPURE = frozenset(("print", "input", "open", "exec", "eval", "globals", "locals", "vars", "dir", "id", "hash", "setattr",
                    "delattr", "compile", "breakpoint", "__import__", "__build_class__", "iter", "next", "sum"))
OPERATOR_ALIASES: dict[Any, Any] = {}


def call_method(
    tx: Any, obj: VariableTracker, name: str, args: Args, kwargs: Kwargs, owner: type | None = None, bound: bool = False
) -> VariableTracker:
    """A method of a builtin type."""
    args, kwargs = realize_all(tx, args, kwargs)
    if type(obj) is ChangingVariable:
        if name == "item" and not args and not kwargs:
            return obj.number
        obj = obj.constant()
    if type(obj) is SymbolicVariable:
        result = _operator_method(tx, obj, name, args) if not kwargs else None
        if result is not None:
            return result
        obj = specialised(obj)
    if isinstance(obj, TensorVariable):
        return TENSOR.call_method(tx, obj, name, args, kwargs)
    target = obj
    if isinstance(obj, ObjectVariable) and obj.payload is not None and (owner is not object):
        CHECK_ITEMS[0](tx, obj, name, bool(args or kwargs))
        target = payload_of(obj)
    if target is not obj:
        handler = METHODS.get((ObjectVariable, name))
        if handler is not None:
            arity.check_method(_method_owner(obj, None if bound else owner), name, len(args), kwargs)
            result = handler(tx, obj, args, kwargs)
            if result is not None:
                return result
    for cls in (type(target), *([TupleVariable] if type(target) is SizeVariable else []), VariableTracker):
        handler = METHODS.get((cls, name))
        if handler is not None:
            arity.check_method(_method_owner(target, None if bound else owner), name, len(args), kwargs)
            result = handler(tx, target if cls is not VariableTracker else obj, args, kwargs)
            if result is not None:
                if isinstance(result, IteratorVariable) and result.origin is target:
                    result.within(obj)
                return _of_subclass(obj, target) if result is target is not obj else result
    if isinstance(target, ConstantVariable) and name not in NOT_PURE:
        try:
            plain: list[VariableTracker] | None = [constant(plain_value(tx, a)) for a in args]
            named = {k: need_constant_deep(_realize_items(tx, v)) for k, v in kwargs.items()}
        except GraphBreak:
            plain = None
        if plain is not None:
            return folding.fold(getattr(target.value, name), plain, named)
    if members.has_in_c(tx, obj, name) and name not in NOT_PURE:
        given = args if name in _FORMATS else [members.plain_value(a) or a for a in args]
        try:
            values: list[Any] | None = [_slice(tx, a) if isinstance(a, SliceVariable) else plain_value(tx, a) for a in given]
        except GraphBreak:
            values = None
        if values is not None:
            named = {k: need_constant_deep(v) for k, v in kwargs.items()}
            return folding.fold(lambda: getattr(obj.value, name)(*values, **named), [])  # type: ignore[attr-defined]
    otherwise = "unsupported_iterator" if name in ("__iter__", "__next__") else "unsupported_builtin_method"
    raise unknown(f"{obj.python_type().__name__}.{name}", obj.python_type().__module__, otherwise=otherwise)


def _method_owner(obj: VariableTracker, owner: type | None) -> type:
    """The class whose method is called: the one that it was taken from, or the object's own."""
    cls = obj.python_type()
    return owner if owner is not None and owner in cls.__mro__ else cls


def _of_subclass(obj: VariableTracker, inner: VariableTracker) -> VariableTracker:
    """What a builtin's method gives that gives its object: of a subclass, a new one of the builtin class if it cannot change."""
    if isinstance(inner, SetVariable) and inner.cls is frozenset:
        return SetVariable(dict(inner.items), cls=frozenset, order=inner.order)
    return TupleVariable(list(inner.items)) if isinstance(inner, TupleVariable) else obj


def _operator_method(tx: Any, obj: SymbolicVariable, name: str, args: Args) -> VariableTracker | None:
    """``n.__add__(m)`` and the like of symbolic numbers."""
    fn = getattr(operator, name, None)
    if fn is None or len(args) > 1 or any(a.python_type() is not obj.cls for a in args):
        return None
    return TENSOR.symbolic(tx, fn, [obj, *args])


def _slice(tx: Any, tracker: SliceVariable) -> slice:
    return slice(*(plain_value(tx, realize(i, tx.state)) for i in tracker.items))


def _number(tx: Any, tracker: VariableTracker) -> VariableTracker:
    """What functions of ``math`` take an instance of a subclass of int or float for, that says nothing itself."""
    asked = ("__float__", "__index__", "__floor__", "__ceil__", "__trunc__")
    if issubclass(tracker.python_type(), (int, float)) and members.has_in_c(tx, tracker, *asked):
        return members.plain_value(tracker)  # type: ignore[return-value]
    return tracker


def plain_value(tx: Any, tracker: VariableTracker) -> Any:
    """``need_constant_deep``, with lists as new lists: for C functions that only read them, and whose result holds none of it."""
    if type(tracker) is ListVariable:
        return [plain_value(tx, realize(i, tx.state)) for i in tracker.items]
    if isinstance(tracker, (IteratorVariable, CombinedIteratorVariable, GeneratorVariable)):
        raise GraphBreak("untraceable_call", "an iterator where a constant is needed")
    return need_constant_deep(_realize_items(tx, tracker))


def _realize_items(tx: Any, tracker: VariableTracker) -> VariableTracker:
    if isinstance(tracker, TupleVariable):
        for item in tracker.items:
            _realize_items(tx, realize(item, tx.state))
    return tracker


# -- Python functions


def _inline_born(tx: Any, fn: FunctionVariable, args: Args, kwargs: Kwargs, waiting: bool) -> VariableTracker:
    defaults = realize(fn.defaults, tx.state).items if fn.defaults is not None else []  # type: ignore[attr-defined]
    kwdefaults: Kwargs = {}
    if fn.kwdefaults is not None:
        # behind a break, the dict is one from outside
        kwdefaults = {k: v for k, (_, v) in complete(tx, realize(fn.kwdefaults, tx.state)).items()}  # type: ignore[arg-type]
    bound = bind_arguments(tx, fn.code, fn.qualname, args, kwargs, defaults, kwdefaults)
    return run_inline(tx, fn.code, fn.globals_of, bound, fn.closure, None, waiting)


def _source_of(tx: Any, fn: ObjectVariable, value: types.FunctionType) -> Source:
    """Of a function whose code is assured."""
    source = fn.source or pinned(value)
    if source.access == "CONST" or not known_by_parts(value, source):
        source = tx.state.guards.pin(source, value)
        tx.state.guards.add(source.child("FCODE"), "ID", value.__code__)
    return source


def inline_call(
    tx: Any, fn: ObjectVariable, value: types.FunctionType, args: Args, kwargs: Kwargs, waiting: bool = False
) -> VariableTracker:
    """Trace into a Python function from outside."""
    inner, attribute = UNWRAP[0](value) if UNWRAP else (None, "")
    if inner is not None:
        source = tx.state.guards.pin(fn.source or pinned(value), value)
        tx.state.waiting = waiting
        return call(tx, LazyVariable(inner, source.child("ATTR", attribute)) if attribute else wrap_pinned(tx, inner), args, kwargs)
    other = REPLACED.get(value.__code__)
    if other is not None:
        source = _source_of(tx, fn, value)
        held = [LazyVariable(cell.cell_contents, source.child("FCLOSURE").child("ITEM", i).child("CELLVAL"))
                for i, cell in enumerate(value.__closure__ or ())]
        tx.state.waiting = waiting and value.__code__ not in WHOLE
        return call(tx, wrap_pinned(tx, other), [*held, *args], kwargs)
    reason = SKIP[0](value) if SKIP else None
    if reason is not None:
        raise GraphBreak(*reason)
    guards = tx.state.guards
    source = _source_of(tx, fn, value)
    defaults: Args = []
    default_values = value.__defaults__
    if default_values:
        base = source.child("FDEFAULTS")
        guards.add(base, "LEN", len(default_values))
        defaults = [LazyVariable(v, base.child("ITEM", i)) for i, v in enumerate(default_values)]
    elif len(args) < value.__code__.co_argcount:
        guards.add(source.child("FDEFAULTS"), *(("EQ", None) if default_values is None else ("LEN", 0)))
    kwdefaults: Kwargs = {}
    held = payload_of(tx.state.by_id.get(id(value.__kwdefaults__)))
    if isinstance(held, DictVariable) and held.mutated:
        kwdefaults = {k: v for k, (_, v) in complete(tx, held).items()}
    elif value.__code__.co_kwonlyargcount:
        kwdefaults = _keyword_defaults(tx, value, source.child("FKWDEFAULTS"), kwargs)
    code = value.__code__
    bound = bind_arguments(tx, code, value.__qualname__, args, kwargs, defaults, kwdefaults)
    closure: list[CellVariable] = []
    for index, cell in enumerate(value.__closure__ or ()):
        tracker = realize(LazyVariable(cell, source.child("FCLOSURE").child("ITEM", index)), tx.state)
        assert isinstance(tracker, CellVariable)
        closure.append(tracker)
    if value.__globals__ is tx.state.root.scope.real:
        scope = tx.state.root.scope
    else:
        scope = tx.state.scope(value.__globals__, source.child("FGLOBALS"), BUILTINS)
    return run_inline(tx, code, scope, bound, closure, value, waiting)


def _keyword_defaults(tx: Any, value: types.FunctionType, base: Source, given: Kwargs) -> Kwargs:
    """The defaults of those keyword-only parameters that get no argument. That there is one, or none, is guarded: nobody may look at it."""
    found: Kwargs = {}
    held, code = value.__kwdefaults__ or {}, value.__code__
    for name in code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]:
        if name in given:
            continue
        place = base.child("KEY", name)
        if name in held:
            found[name] = LazyVariable(held[name], place)
            tx.state.guards.present(place)
        else:
            tx.state.guards.add(place, "ABSENT")
    return found


REPLACED: dict[types.CodeType, Any] = {}  # code -> a function to trace instead, with what the closure holds in front
WHOLE: set[types.CodeType] = set()  # those of REPLACED inside of which no break may be: what runs in eager mode is the original
# Set by inside.py: (function) -> (what it only wraps for another tracer, or None; the attribute in which it keeps that, if it may change).
UNWRAP: list[Any] = []
SKIP: list[Any] = []  # set by inside.py: (function) -> None to inline, or (reason, detail)


def send(tx: Any, receiver: VariableTracker, value: VariableTracker) -> tuple[bool, VariableTracker]:
    """SEND: (True, result) when the receiver is exhausted, else (False, yielded)."""
    if type(receiver) is GeneratorVariable:
        return iteration.resume(tx, receiver, value)
    try:
        if not (isinstance(value, ConstantVariable) and value.value is None):  # not all iterators have send()
            return False, realize(call(tx, attributes.get_attr(tx, receiver, "send"), [value], {}), tx.state)
        item = iteration.advance(tx, receiver)
    except UserRaise as raised:
        if not iteration.stops(raised):
            raise
        return True, value_of_stop(tx, raised.value)
    return (True, NONE) if item is None else (False, item)


def value_of_stop(tx: Any, error: VariableTracker) -> VariableTracker:
    """What a StopIteration tells of the end (_PyGen_FetchStopIterationValue)."""
    if lookup.mro_lookup(tx, error.python_type(), "value") is not StopIteration.__dict__["value"]:
        raise GraphBreak("unsupported_iterator", "a StopIteration with a value of its own kind")
    return realize(attributes.get_attr(tx, error, "value"), tx.state)
