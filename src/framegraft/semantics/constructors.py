"""Calls of builtin classes: what int(), str(), dict(), super() and the others make of trackers."""

from __future__ import annotations

import collections
import functools
import gc
import types
from collections.abc import Iterator
from typing import Any

from ..errors import GraphBreak, UserRaise
from ..interp.frame import origin_of
from ..interp.state import realize, user_error
from ..model.dispatch import METHODS, TENSOR, constructs, handles, specialised
from ..model.value import (
    MISSING,
    NONE,
    ChangingVariable,
    CombinedIteratorVariable,
    ConstantVariable,
    DequeVariable,
    DictVariable,
    FunctionVariable,
    IteratorVariable,
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
from . import attributes, calls, class_checks, containers, core, folding, hashed, iteration, lookup, members, operators, truth
from .wrapping import wrap_class


@constructs(type)
def make_type(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    if len(args) != 1:
        raise GraphBreak("untraceable_call", "type() with three arguments")
    return wrap_class(tx, args[0].python_type())


@constructs(super)
def make_super(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    if args:
        if len(args) != 2 or not class_checks.is_class(args[0]):
            raise GraphBreak("untraceable_call", "super() with other arguments than a class and an object")
        return _super_of(args[0].value, args[1])
    cell = tx.cells.get("__class__")
    if cell is None or tx.first_arg is None:
        raise UserRaise(user_error(RuntimeError, "super(): no arguments"))
    start: Any = realize(cell.contents, tx.state)
    return _super_of(start.value, first_argument(tx))


def _super_of(cls: type, obj: VariableTracker) -> SuperVariable:
    """CPython: supercheck. An object may also claim to be of the class, by its ``__class__``."""
    if not (lookup.inherits(obj.python_type(), cls) or class_checks.is_class(obj) and lookup.inherits(obj.value, cls)):  # type: ignore[attr-defined]
        raise GraphBreak("raised_exception", "super() of an object of another class")
    return SuperVariable(cls, obj)


def first_argument(tx: Any) -> VariableTracker:
    """What the first parameter is now, as super() takes it (CPython: super_init_without_args)."""
    name = origin_of(tx.code).co_varnames[0]
    now = tx.cells[name].contents if name in tx.cells else tx.locals.get(name, MISSING)
    if now is MISSING:
        raise UserRaise(user_error(RuntimeError, "super(): arg[0] deleted"))
    return realize(now, tx.state)


@constructs(int, float, bool, complex, bytes)
def make_number(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    if cls is bool:
        return constant(truth.truth(tx, args[0]) if args else False)
    if len(args) == 1 and not kwargs and type(args[0]) is SymbolicVariable:
        number = TENSOR.symbolic(tx, cls, args)
        if number is not None:
            return number
    if len(args) == 1 and not kwargs and type(args[0]) is ChangingVariable and args[0].number.python_type() is cls:
        return args[0].number
    args = [specialised(a) for a in args]
    if all(type(a) is ConstantVariable for a in args):
        return folding.fold(cls, args, {k: core.need_constant(v, k) for k, v in kwargs.items()})
    if args and isinstance(args[0], TensorVariable):
        return operators.TENSOR.call(tx, cls, args, kwargs)
    if len(args) != 1 or kwargs:
        raise GraphBreak("untraceable_call", f"{cls.__name__}() with other arguments than constants")
    name = {int: "__int__", float: "__float__", complex: "__complex__", bytes: "__bytes__"}[cls]
    text = cls is complex and issubclass(args[0].python_type(), str)  # a text is parsed, whatever methods it has
    method = None if text else attributes.special_method(tx, args[0], name)
    if method is None or calls.is_builtin_method(method):
        if text or members.has_in_c(tx, args[0], name, "__index__", "__trunc__"):
            return folding.fold(cls, [members.plain_value(args[0])])  # type: ignore[list-item]
        raise GraphBreak("untraceable_call", f"{cls.__name__}() of a {args[0].python_type().__name__}")
    number = realize(calls.call(tx, method, [], {}), tx.state)
    if number.python_type() is not cls:
        raise GraphBreak("raised_exception", f"{name} gives a {number.python_type().__name__}")
    return number


@constructs(list)
def make_list(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    return ListVariable(iteration.unpack_iterable(tx, args[0]) if args else [])


@constructs(tuple)
def make_tuple(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    if args and type(args[0]) is TupleVariable:
        return args[0]
    return TupleVariable(iteration.unpack_iterable(tx, args[0]) if args else [])


@constructs(set, frozenset)
def make_set(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    if cls is frozenset and args and isinstance(args[0], SetVariable) and args[0].cls is frozenset:
        return args[0]
    source = args[0] if args else ListVariable([])
    if isinstance(hashed.payload_of(source), SetVariable):
        source = hashed.payload_of(source)  # set_update_internal takes what is in it, whatever its own methods say
    items = ListVariable([])
    result = SetVariable({}, cls=cls)
    for item in iteration.drawn(tx, source):
        item = realize(item, tx.state)
        items.items.append(item)
        result.items.setdefault(hashed.hash_key(tx, item), item)
    whole = isinstance(hashed.payload_of(source), (SetVariable, DictVariable)) and not hashed.iterates_itself(tx, source)
    keys = hashed.shadow(tx, source if whole else items)
    result.order = None if keys is None else cls(keys)
    result.log = None
    return result


@constructs(dict)
def make_dict(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    result = DictVariable({})
    update_dict(tx, result, args, kwargs)
    return result


def update_dict(tx: Any, target: DictVariable, args: list, kwargs: dict) -> None:
    """dict_update_common: each entry as it comes, for its source may look at the dict."""
    for key, value in _entries(tx, args[0]) if args else ():
        hashed.dict_set(tx, target, key, value)
    for name, value in kwargs.items():
        hashed.dict_set(tx, target, constant(name), value)


def _entries(tx: Any, source: VariableTracker) -> Iterator[tuple[VariableTracker, VariableTracker]]:
    """The keys and values of a mapping, or of an iterable of pairs (dict_update_arg)."""
    if isinstance(hashed.payload_of(source), DictVariable) or attributes.special_method(tx, source, "keys") is not None:
        yield from containers.mapping_items(tx, source)
        return
    for index, pair in enumerate(iteration.drawn(tx, source)):
        key, value = _pair(tx, realize(pair, tx.state), index)
        yield realize(key, tx.state), value


def _pair(tx: Any, pair: VariableTracker, index: int) -> list[VariableTracker]:
    """PyDict_MergeFromSeq2"""
    try:
        both = iteration.fast_items(tx, pair, "")
    except UserRaise as raised:
        if not issubclass(raised.value.python_type(), TypeError):
            raise
        both = None
    if both is None:
        raise UserRaise(user_error(TypeError, f"cannot convert dictionary update sequence element #{index} to a sequence"))
    if len(both) != 2:
        raise UserRaise(user_error(ValueError, f"dictionary update sequence element #{index} has length {len(both)}; 2 is required"))
    return both


@constructs(range)
def make_range(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    values = [containers.index_of(tx, a) for a in args]
    return folding.fold(range, [constant(v) for v in values])


@constructs(slice)
def make_slice(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    items = list(args) if len(args) > 1 else [NONE, *args]
    return SliceVariable([*items, NONE] if len(items) == 2 else items)


@constructs(enumerate)
def make_enumerate(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    start = args[1] if len(args) > 1 else kwargs.get("start", constant(0))
    return CombinedIteratorVariable(enumerate, [iteration.get_iter(tx, args[0])], count=containers.index_of(tx, start))


@constructs(zip)
def make_zip(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    strict = core.need_constant(kwargs.get("strict", constant(False)), "strict")
    return CombinedIteratorVariable(zip, [iteration.get_iter(tx, a) for a in args], strict=strict)


@constructs(map)
def make_map(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    return CombinedIteratorVariable(map, [iteration.get_iter(tx, a) for a in args[1:]], fn=args[0])


@constructs(filter)
def make_filter(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    fn = None if isinstance(args[0], ConstantVariable) and args[0].value is None else args[0]
    return CombinedIteratorVariable(filter, [iteration.get_iter(tx, args[1])], fn=fn)


@constructs(reversed)
def make_reversed(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    method = attributes.special_method(tx, args[0], "__reversed__") if isinstance(args[0], ObjectVariable) else None
    if method is not None and not calls.is_builtin_method(method):
        return calls.call(tx, method, [], {})
    if isinstance(args[0], ObjectVariable) and method is None:
        asked = [lookup.is_python(tx, args[0].cls, name) for name in ("__len__", "__getitem__")]
        if any(asked) if isinstance(args[0].payload, TupleVariable) else args[0].payload is None and all(asked):  # tuples have them in C
            return REVERSED_SEQUENCE[0](tx, args[0])
    known = METHODS.get((type(args[0]), "__reversed__"))  # of a dict's view
    if method is not None and known is not None:
        return known(tx, args[0], [], {})
    inner = hashed.payload_of(args[0])
    if isinstance(inner, DictVariable):
        return iteration.iterate_dict(tx, inner, backwards=True, holder=args[0])
    if isinstance(inner, ConstantVariable):
        try:
            values = reversed(inner.value)
        except TypeError as error:
            raise UserRaise(user_error(TypeError, *error.args)) from None
        if isinstance(inner.value, range):
            return iteration.get_iter(tx, constant(inner.value[::-1]))
        return IteratorVariable([constant(v) for v in values], None, type(values))
    if isinstance(inner, (DequeVariable, TensorVariable)):
        return calls.call_method(tx, inner, "__reversed__", [], {})
    if not isinstance(inner, (ListVariable, TupleVariable)):
        raise GraphBreak("unsupported_iterator", f"reversed() of a {args[0].python_type().__name__}")
    kind = type(reversed([] if isinstance(inner, ListVariable) else ()))
    return IteratorVariable(list(reversed(inner.items)), inner, kind).within(args[0])


REVERSED_SEQUENCE: list[Any] = []  # set by lazy.py, which builds on this file


@constructs(object)
def make_object(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    return ObjectVariable(MISSING, object)


@constructs(property, staticmethod, classmethod)
def make_descriptor(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    raise GraphBreak("untraceable_call", f"{cls.__name__} made in the trace")


@constructs(types.MethodType)
def make_method(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    function = args[0] if len(args) == 2 and not kwargs else NONE
    made = isinstance(function, FunctionVariable)
    if not made and not (isinstance(function, ObjectVariable) and type(function.value) is types.FunctionType) or (
            isinstance(args[1], ConstantVariable) and args[1].value is None):
        raise GraphBreak("untraceable_call", "a method of something other than a function in Python and an object")
    return MethodVariable(function, args[1])


@constructs(types.SimpleNamespace)
def make_namespace(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    made = ObjectVariable(MISSING, cls)
    made.attrs.update(kwargs)
    return made


@constructs(functools.partial)
def make_partial(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    """partial_new: a plain partial of a plain partial is one of the inner function."""
    fn, bound, named = args[0], list(args[1:]), dict(kwargs)
    if lookup.mro_lookup(tx, fn.python_type(), "__call__") is MISSING:
        raise UserRaise(user_error(TypeError, "the first argument must be callable"))
    if fn.python_type() is not functools.partial and _is_taken_apart(tx, fn):
        raise GraphBreak("untraceable_call", "a functools.partial of an instance of a subclass, which may be taken apart")
    if isinstance(fn, ObjectVariable) and type(fn.value) is functools.partial and fn.source is not None and not fn.attrs:
        dressed = _HasDict(fn.value)
        tx.state.guards.add(fn.source, "PY", dressed)
        if dressed.present:
            return PartialVariable(fn, bound, named)
        outer = calls.partial_parts(tx, fn)
    elif type(fn) is PartialVariable and not fn.attrs:
        outer = fn.func, fn.args, fn.kwargs
    else:
        return PartialVariable(fn, bound, named)
    return PartialVariable(realize(outer[0], tx.state), [*outer[1], *bound], {**outer[2], **named})


@handles(functools.partial.__call__)
def call_partial(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    """partial_call: for methods ``__call__`` of subclasses that go on with it."""
    fn = args[0] if args else NONE
    if isinstance(fn, ObjectVariable) and isinstance(fn.value, functools.partial) and fn.source is not None:
        return calls.call_partial(tx, fn, args[1:], kwargs)
    if type(fn) is PartialVariable:
        return calls.call(tx, fn, args[1:], kwargs)
    raise GraphBreak("untraceable_call", f"functools.partial.__call__ of a {fn.python_type().__name__}")


class _OwnCall(functools.partial):
    def __call__(self) -> None:
        pass


_TAKES_ALL_APART = functools.partial(_OwnCall(len)).func is len  # from 3.13 on; before, only those that are called as a partial is


def _is_taken_apart(tx: Any, fn: VariableTracker) -> bool:
    cls = fn.python_type()
    return lookup.inherits(cls, functools.partial) and (_TAKES_ALL_APART or calls.is_plain_partial(tx, cls))


_BARE = len(gc.get_referents(functools.partial(len)))


class _HasDict:
    """Guard: whether a functools.partial has got a ``__dict__``, which asking for it would make."""

    __name__ = "has_dict"

    def __init__(self, value: functools.partial) -> None:
        self.present = self._ask(value)

    def _ask(self, value: functools.partial) -> bool:
        return len(gc.get_referents(value)) > _BARE

    def __call__(self, value: functools.partial) -> bool:
        return self._ask(value) is self.present


class PartialVariable(MethodVariable):
    """functools.partial made in the trace."""

    __slots__ = ("args", "attrs", "kwargs")

    def __init__(self, func: VariableTracker, args: list, kwargs: dict) -> None:
        super().__init__(func, NONE)
        self.attrs: dict[str, VariableTracker] = {}
        self.args = args
        self.kwargs = kwargs

    def python_type(self) -> type:
        return functools.partial

    def with_bound(self, args: list, kwargs: dict) -> tuple[list, dict]:
        """The arguments of ``func`` in a call with these."""
        return [*self.args, *args], {**self.kwargs, **kwargs}


@constructs(types.MappingProxyType)
def make_proxy(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    inner = hashed.payload_of(args[0])
    if not isinstance(inner, DictVariable) or inner is not args[0] and args[0].python_type() is not collections.OrderedDict:
        raise GraphBreak("untraceable_call", f"a mappingproxy of a {args[0].python_type().__name__}")
    made = ObjectVariable(MISSING, cls)
    made.payload = inner
    return made
