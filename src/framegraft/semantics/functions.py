"""Builtin functions and classes on trackers. Names and errors follow CPython's bltinmodule.c."""

from __future__ import annotations

import builtins
import collections
import copy
import enum
import functools
import inspect
import math
import operator
import types
import typing
import weakref
from typing import Any

from ..errors import GraphBreak, UserRaise
from ..interp.state import realize, user_error
from ..model.dispatch import CLASSES, TENSOR, constructs, handles, specialised
from ..model.value import (
    MISSING,
    NONE,
    BuiltinMethodVariable,
    CombinedIteratorVariable,
    ConstantVariable,
    DictVariable,
    ExceptionVariable,
    FunctionVariable,
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
from . import attributes, calls, containers, core, iteration, operators
from .wrapping import wrap_constant, wrap_pinned


def is_class(tracker: VariableTracker) -> bool:
    return isinstance(tracker, ObjectVariable) and issubclass(type(tracker.value), type)


@handles(isinstance)
def handle_isinstance(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    obj, classes = args
    return constant(_instance_of(tx, obj, obj.python_type(), classes, "__instancecheck__"))


@handles(issubclass)
def handle_issubclass(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    cls, classes = args
    if not is_class(cls):
        raise UserRaise(user_error(TypeError, "issubclass() arg 1 must be a class"))
    return constant(_instance_of(tx, cls, cls.value, classes, "__subclasscheck__"))


def _instance_of(tx: Any, obj: VariableTracker, cls: type, classes: VariableTracker, hook: str) -> bool:
    if isinstance(classes, TupleVariable):
        return any(_instance_of(tx, obj, cls, realize(c, tx.state), hook) for c in classes.items)
    if isinstance(classes, ObjectVariable) and issubclass(type(classes.value), types.UnionType):
        return issubclass(cls, classes.value)
    if not is_class(classes):
        what = "isinstance() arg 2 must be a type, a tuple of types" if hook == "__instancecheck__" else (
            "issubclass() arg 2 must be a class, a tuple of classes")
        raise UserRaise(user_error(TypeError, what + ", or a union"))
    target = classes.value  # type: ignore[attr-defined]
    if hook == "__instancecheck__" and cls is target:
        return True
    check = attributes.mro_lookup(tx, type(target), hook)
    quick = INSTANCE_CHECKS.get(check)
    if quick is not None:
        return quick(tx, obj, cls, target, hook)
    if check is not type.__dict__[hook]:
        raise GraphBreak("untraceable_call", f"{type(target).__name__}.{hook}")
    attributes.guard_bases(tx, cls)
    if issubclass(cls, target):
        return True
    if hook == "__subclasscheck__" or not attributes.tells_own_class(tx, obj):
        return False
    told = realize(attributes.get_attr(tx, obj, "__class__"), tx.state)  # CPython: object_isinstance
    return is_class(told) and issubclass(told.value, target)  # type: ignore[attr-defined]


INSTANCE_CHECKS: dict[Any, Any] = {}


def _abc_check(tx: Any, obj: VariableTracker, cls: type, target: type, hook: str) -> bool:
    """ABCMeta.__instancecheck__: registrations are seen through the ABC cache token, guarded."""
    if hook == "__instancecheck__" and attributes.tells_own_class(tx, obj):
        raise GraphBreak("untraceable_call", f"isinstance() of a {cls.__name__}, which has a __class__ of its own")
    tx.state.guards.add(wrap_constant(target).source.child("PYCALL", _AbcAnswer(cls, target)), "EQ", issubclass(cls, target))
    return issubclass(cls, target)


class _AbcAnswer:
    """Guard accessor: is ``cls`` a (virtual) subclass of the class?"""

    __name__ = "has_subclass"

    def __init__(self, cls: type, target: type) -> None:
        self.cls = cls

    def __call__(self, target: type) -> bool:
        return issubclass(self.cls, target)


import abc  # noqa: E402

for _name in ("__instancecheck__", "__subclasscheck__"):
    INSTANCE_CHECKS[abc.ABCMeta.__dict__[_name]] = _abc_check


@constructs(type)
def make_type(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    if len(args) != 1:
        raise GraphBreak("untraceable_call", "type() with three arguments")
    return wrap_pinned(tx, args[0].python_type())


@constructs(super)
def make_super(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    if args:
        if len(args) != 2 or not is_class(args[0]):
            raise GraphBreak("untraceable_call", "super() with other arguments than a class and an object")
        cls = args[0].value
        if not (issubclass(args[1].python_type(), cls) or is_class(args[1]) and issubclass(args[1].value, cls)):
            raise GraphBreak("raised_exception", "super() of an object of another class")
        return SuperVariable(cls, args[1])
    cell = tx.cells.get("__class__")
    if cell is None or tx.first_arg is None:
        raise UserRaise(user_error(RuntimeError, "super(): no arguments"))
    return SuperVariable(realize(cell.contents, tx.state).value, realize(tx.first_arg, tx.state))


@handles(getattr)
def handle_getattr(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    name = core.attribute_name(args[1])
    if len(args) == 2:
        return attributes.get_attr(tx, args[0], name)
    try:
        return attributes.get_attr(tx, args[0], name)
    except UserRaise as raised:
        if issubclass(raised.value.python_type(), AttributeError):
            return args[2]
        raise


@handles(hasattr)
def handle_hasattr(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    try:
        attributes.get_attr(tx, args[0], core.attribute_name(args[1]))
    except UserRaise as raised:
        if issubclass(raised.value.python_type(), AttributeError):
            return constant(False)
        raise
    return constant(True)


@handles(setattr)
def handle_setattr(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    attributes.set_attr(tx, args[0], core.attribute_name(args[1]), args[2])
    return NONE


@handles(delattr)
def handle_delattr(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    attributes.del_attr(tx, args[0], core.attribute_name(args[1]))
    return NONE


@handles(callable)
def handle_callable(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    obj = args[0]
    if isinstance(obj, ObjectVariable):
        return constant(attributes.mro_lookup(tx, obj.cls, "__call__") is not MISSING)
    return constant(isinstance(obj, (FunctionVariable, MethodVariable, BuiltinMethodVariable)))


@handles(len)
def handle_len(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    return operators.length(tx, args[0])


@handles(iter)
def handle_iter(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    if len(args) != 1:
        raise GraphBreak("untraceable_call", "iter() with a sentinel")
    return iteration.get_iter(tx, args[0])


@handles(next)
def handle_next(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    if isinstance(args[0], iteration.GeneratorVariable):
        done, value = iteration.resume(tx, args[0], NONE)
        if not done:
            return value
        error = user_error(StopIteration)
        if not (isinstance(value, ConstantVariable) and value.value is None):
            error.args = [value]
    else:
        if not isinstance(args[0], iteration.ITERATORS) and attributes.special_method(tx, args[0], "__next__") is None:
            raise UserRaise(user_error(TypeError, f"'{args[0].python_type().__name__}' object is not an iterator"))
        item = iteration.next_item(tx, args[0])
        if item is not None:
            return item
        error = user_error(StopIteration)
    if len(args) > 1:
        return args[1]
    raise UserRaise(error)


def _numbers(tx: Any, fn: Any, args: list, kwargs: dict) -> VariableTracker:
    """min and max."""
    items = iteration.unpack_iterable(tx, args[0]) if len(args) == 1 else args
    items = [realize(i, tx.state) for i in items]
    key = kwargs.get("key")
    if not items:
        if "default" in kwargs:
            return kwargs["default"]
        raise UserRaise(user_error(ValueError, f"{fn.__name__}() arg is an empty sequence"))
    if key is None and any(type(i) is SymbolicVariable for i in items):
        best = TENSOR.symbolic(tx, fn, items)
        if best is not None:
            return best
    if key is None and all(type(i) is ConstantVariable for i in items):
        values = [i.value for i in items]
        best = fn(values)
        return next(i for i in items if i.value is best)
    better = operator.gt if fn is max else operator.lt
    keyed = key is not None and not (isinstance(key, ConstantVariable) and key.value is None)
    best_item, best_key = None, None
    for item in items:
        rank = realize(calls.call(tx, key, [item], {}), tx.state) if keyed else item
        if best_item is None or operators.truth(tx, operators.apply(tx, better, [rank, best_key])):
            best_item, best_key = item, rank
    return best_item  # type: ignore[return-value]


@handles(max)
def handle_max(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    return _numbers(tx, max, args, kwargs)


@handles(min)
def handle_min(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    return _numbers(tx, min, args, kwargs)


@handles(sum)
def handle_sum(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    items = [realize(i, tx.state) for i in iteration.unpack_iterable(tx, args[0])]
    total = args[1] if len(args) > 1 else kwargs.get("start", constant(0))
    if all(type(i) is ConstantVariable for i in items) and type(total) is ConstantVariable:
        return operators.fold(lambda: sum([i.value for i in items], total.value), [])
    for item in items:
        total = realize(operators.apply(tx, operator.add, [total, item]), tx.state)
    return total


@handles(math.prod)
def handle_prod(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    total = kwargs.get("start", constant(1))
    for item in iteration.unpack_iterable(tx, args[0]):
        total = realize(operators.apply(tx, operator.mul, [total, realize(item, tx.state)]), tx.state)
    return total


@handles(any)
def handle_any(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    iterator = iteration.get_iter(tx, args[0])
    while (item := iteration.next_item(tx, iterator)) is not None:
        if operators.truth(tx, item):
            return constant(True)
    return constant(False)


@handles(all)
def handle_all(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    iterator = iteration.get_iter(tx, args[0])
    while (item := iteration.next_item(tx, iterator)) is not None:
        if not operators.truth(tx, item):
            return constant(False)
    return constant(True)


@handles(sorted)
def handle_sorted(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    return ListVariable(sort_items(tx, iteration.unpack_iterable(tx, args[0]), kwargs))


def sort_items(tx: Any, items: list, kwargs: dict) -> list:
    key = kwargs.get("key", NONE)
    reverse = core.need_constant(kwargs.get("reverse", constant(False)), "reverse")
    items = [realize(i, tx.state) for i in items]
    plain = isinstance(key, ConstantVariable) and key.value is None
    keys = items if plain else [realize(calls.call(tx, key, [i], {}), tx.state) for i in items]
    try:
        ranks = [core.need_constant_deep(k) for k in keys]
        order = sorted(range(len(items)), key=ranks.__getitem__, reverse=reverse)
    except TypeError as error:
        raise UserRaise(user_error(TypeError, *error.args)) from None
    return [items[i] for i in order]


@handles(abs)
def handle_abs(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    return _dunder(tx, abs, "__abs__", args)


@handles(round)
def handle_round(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    if len(args) == 1 and not kwargs and type(args[0]) is SymbolicVariable and args[0].cls is int:
        return args[0]
    return _dunder(tx, round, "__round__", [*args, *kwargs.values()])


@handles(divmod)
def handle_divmod(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    if any(type(a) is SymbolicVariable for a in args) and all(isinstance(a, (ConstantVariable, SymbolicVariable)) for a in args):
        return TupleVariable([operators.apply(tx, fn, args) for fn in (operator.floordiv, operator.mod)])
    return _dunder(tx, divmod, "__divmod__", args)


@handles(pow)
def handle_pow(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    if len(args) == 2:
        return operators.apply(tx, operator.pow, args)
    result = _dunder(tx, pow, "__pow__", args)
    if isinstance(result, ConstantVariable) and result.value is NotImplemented:
        kinds = ", ".join(f"'{a.python_type().__name__}'" for a in args)
        raise UserRaise(user_error(TypeError, f"unsupported operand type(s) for ** or pow(): {kinds}"))
    return result


def _dunder(tx: Any, fn: Any, name: str, args: list) -> VariableTracker:
    if any(type(a) is SymbolicVariable for a in args):
        result = TENSOR.symbolic(tx, fn, args)
        if result is not None:
            return result
        args = [specialised(a) for a in args]
    if all(type(a) is ConstantVariable for a in args):
        return operators.fold(fn, args)
    if any(isinstance(a, TensorVariable) for a in args):
        return operators.TENSOR.call(tx, fn, args, {})
    method = attributes.special_method(tx, args[0], name)
    if method is None:
        raise UserRaise(user_error(TypeError, f"bad operand type for {fn.__name__}(): '{args[0].python_type().__name__}'"))
    return calls.call(tx, method, args[1:], {})


@handles(repr)
def handle_repr(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    return _text(tx, repr, "__repr__", args[0])


@handles(hash)
def handle_hash(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    args = [specialised(a) for a in args]
    if type(args[0]) is ConstantVariable:
        return operators.fold(hash, args)
    if isinstance(args[0], ObjectVariable) and args[0].payload is None:
        method = attributes.mro_lookup(tx, args[0].cls, "__hash__")
        if isinstance(method, types.FunctionType):
            return calls.call(tx, attributes.special_method(tx, args[0], "__hash__"), [], {})  # type: ignore[arg-type]
    raise GraphBreak("introspection", "hash() of an object")


@handles(vars)
def handle_vars(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    if len(args) != 1 or not isinstance(args[0], ObjectVariable):
        raise GraphBreak("introspection", "vars()")
    return realize(attributes.get_attr(tx, args[0], "__dict__"), tx.state)


@handles(id, globals, locals, dir, exec, eval)
def handle_introspection(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    raise GraphBreak("introspection", "hash(), id(), globals(), locals(), vars(), dir(), exec() or eval()")


@handles(print)
def handle_print(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    raise GraphBreak("print_call", f"print({', '.join(f'{name}=...' for name in kwargs)})")


def _text(tx: Any, fn: Any, name: str, obj: VariableTracker) -> VariableTracker:
    obj = specialised(obj)
    if isinstance(obj, ConstantVariable):
        return operators.fold(fn, [obj])
    if is_class(obj):
        return _class_text(tx, fn, obj)
    if isinstance(obj, ObjectVariable) and obj.payload is None:
        if fn is str and attributes.mro_lookup(tx, obj.cls, "__str__") is not object.__str__:
            name = "__str__"
        if issubclass(type(obj.value), enum.Enum) and isinstance(attributes.mro_lookup(tx, obj.cls, name), types.WrapperDescriptorType):
            return constant(fn(obj.value))  # what the members keep in C
        method = attributes.special_method(tx, obj, name)
        if method is not None and not calls.is_builtin_method(method):
            text = realize(calls.call(tx, method, [], {}), tx.state)
            if not issubclass(text.python_type(), str):
                said = f"{name} returned non-string (type {text.python_type().__name__})"
                raise UserRaise(user_error(TypeError, said))
            return text
    if isinstance(obj, ExceptionVariable) and fn is str and type(obj.cls.__str__) is types.WrapperDescriptorType:
        if len(obj.args) == 1 and obj.cls.__str__ is BaseException.__str__:
            return _text(tx, str, "__repr__", realize(obj.args[0], tx.state))
    if isinstance(obj, (ListVariable, TupleVariable)):
        try:
            value = core.need_constant_deep(TupleVariable(obj.items))
        except GraphBreak:
            return _break_text(fn, obj)
        return constant(fn(list(value) if isinstance(obj, ListVariable) else obj.python_type()(value)))
    return _break_text(fn, obj)


def _class_text(tx: Any, fn: Any, obj: Any) -> VariableTracker:
    if attributes.mro_lookup(tx, type(obj.value), "__repr__") is not type.__repr__:
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
        return operators.fold(str, [constant(core.need_constant(a, "an argument of str()")) for a in args], named)
    if not args:
        return constant("")
    return _text(tx, str, "__repr__", args[0])


@constructs(int, float, bool, complex, bytes)
def make_number(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    if cls is bool:
        return constant(operators.truth(tx, args[0]) if args else False)
    if len(args) == 1 and not kwargs and type(args[0]) is SymbolicVariable:
        number = TENSOR.symbolic(tx, cls, args)
        if number is not None:
            return number
    args = [specialised(a) for a in args]
    if all(type(a) is ConstantVariable for a in args):
        return operators.fold(cls, args, {k: core.need_constant(v, k) for k, v in kwargs.items()})
    if isinstance(args[0], TensorVariable):
        return operators.TENSOR.call(tx, cls, args, kwargs)
    name = {int: "__int__", float: "__float__", complex: "__complex__", bytes: "__bytes__"}[cls]
    method = attributes.special_method(tx, args[0], name)
    if method is None or calls.is_builtin_method(method):
        raise GraphBreak("untraceable_call", f"{cls.__name__}() of a {args[0].python_type().__name__}")
    return calls.call(tx, method, [], {})


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
    result = SetVariable({}, cls=cls)
    result.grown = not args or not isinstance(containers.payload_of(args[0]), (SetVariable, DictVariable))
    for item in iteration.unpack_iterable(tx, args[0]) if args else []:
        item = realize(item, tx.state)
        result.items.setdefault(containers.hash_key(tx, item), item)
    return result


@constructs(dict)
def make_dict(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    result = DictVariable({})
    update_dict(tx, result, args, kwargs)
    return result


def update_dict(tx: Any, target: DictVariable, args: list, kwargs: dict) -> None:
    if args:
        source = args[0]
        inner = containers.payload_of(source)
        if isinstance(inner, DictVariable) or attributes.special_method(tx, source, "keys") is not None:
            pairs = containers.mapping_items(tx, source)
        else:
            pairs = []
            for pair in iteration.unpack_iterable(tx, source):
                both = iteration.unpack_iterable(tx, realize(pair, tx.state))
                if len(both) != 2:
                    raise GraphBreak("raised_exception", "dict() of items that are no pairs")
                pairs.append((realize(both[0], tx.state), both[1]))
        for key, value in pairs:
            containers.dict_set(tx, target, key, value)
    for name, value in kwargs.items():
        containers.dict_set(tx, target, constant(name), value)


@constructs(range)
def make_range(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    values = [containers.index_of(tx, a) for a in args]
    return operators.fold(range, [constant(v) for v in values])


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
    inner = containers.payload_of(args[0])
    if isinstance(inner, DictVariable):
        return iteration.iterate_dict(tx, inner, backwards=True)
    if isinstance(inner, ConstantVariable):
        try:
            values = reversed(inner.value)
        except TypeError as error:
            raise UserRaise(user_error(TypeError, *error.args)) from None
        if isinstance(inner.value, range):
            return iteration.get_iter(tx, constant(inner.value[::-1]))
        return IteratorVariable([constant(v) for v in values], None, type(values))
    if not isinstance(inner, (ListVariable, TupleVariable)):
        raise GraphBreak("unsupported_iterator", f"reversed() of a {args[0].python_type().__name__}")
    kind = type(reversed([] if isinstance(inner, ListVariable) else ()))
    return IteratorVariable(list(reversed(inner.items)), inner, kind)


@constructs(object)
def make_object(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    return ObjectVariable(MISSING, object)


@constructs(property, staticmethod, classmethod)
def make_descriptor(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    raise GraphBreak("untraceable_call", f"{cls.__name__} made in the trace")


@constructs(types.SimpleNamespace)
def make_namespace(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    made = ObjectVariable(MISSING, cls)
    made.attrs.update(kwargs)
    return made


@constructs(collections.OrderedDict)
def make_ordered_dict(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    made = ObjectVariable(MISSING, cls)
    made.payload = DictVariable({})
    update_dict(tx, made.payload, args, kwargs)
    return made


calls.MAPPING_BASES.add(collections.OrderedDict)


@constructs(functools.partial)
def make_partial(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    made = PartialVariable(args[0], list(args[1:]), dict(kwargs))
    return made


class PartialVariable(MethodVariable):
    """functools.partial made in the trace."""

    __slots__ = ("args", "kwargs")

    def __init__(self, func: VariableTracker, args: list, kwargs: dict) -> None:
        super().__init__(func, NONE)
        self.args = args
        self.kwargs = kwargs

    def python_type(self) -> type:
        return functools.partial


@handles(typing.cast)
def handle_cast(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    return args[1]


@handles(functools.reduce)
def handle_reduce(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    iterator = iteration.get_iter(tx, args[1])
    total = args[2] if len(args) > 2 else iteration.next_item(tx, iterator)
    if total is None:
        raise UserRaise(user_error(TypeError, "reduce() of empty iterable with no initial value"))
    while (item := iteration.next_item(tx, iterator)) is not None:
        total = calls.call(tx, args[0], [total, item], {})
    return total


@handles(copy.deepcopy)
def handle_deepcopy(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    if len(args) != 1 or kwargs:
        raise GraphBreak("untraceable_call", "copy.deepcopy with a memo")
    return duplicate(tx, args[0], {})


_ATOMIC = (types.FunctionType, type, types.ModuleType, types.BuiltinFunctionType, enum.Enum, property, range)
_DEFAULT_COPY = {"__deepcopy__": MISSING, "__copy__": MISSING, "__reduce_ex__": object.__reduce_ex__, "__reduce__": object.__reduce__,
                 "__setstate__": MISSING, "__getnewargs__": MISSING, "__getnewargs_ex__": MISSING, "__slots__": MISSING,
                 "__getstate__": getattr(object, "__getstate__", MISSING)}


def duplicate(tx: Any, obj: VariableTracker, memo: dict | None) -> VariableTracker:
    """copy.deepcopy, or copy.copy where ``memo`` is None, of what Lib/copy.py copies without calling the program."""
    obj = realize(obj, tx.state)
    if isinstance(obj, (ConstantVariable, SymbolicVariable, FunctionVariable)):
        return obj
    if isinstance(obj, ObjectVariable) and issubclass(type(obj.value), _ATOMIC):
        return obj
    if memo is not None and id(obj) in memo:
        return memo[id(obj)][0]

    def part(value: VariableTracker) -> VariableTracker:
        return value if memo is None else duplicate(tx, value, memo)

    def keep(made: Any) -> Any:
        if memo is not None:
            memo[id(obj)] = (made, obj)
        return made

    if isinstance(obj, ListVariable):
        made = keep(ListVariable([]))
        made.items.extend(part(i) for i in obj.items)
        return made
    if isinstance(obj, TupleVariable):
        items = [part(i) for i in obj.items]
        return obj if all(a is b for a, b in zip(items, obj.items, strict=True)) else TupleVariable(items)
    if isinstance(obj, DictVariable):
        made = keep(DictVariable({}))
        for key, value in list(containers.complete(tx, obj).values()):
            containers.dict_set(tx, made, realize(part(key), tx.state), part(value))
        return made
    if isinstance(obj, SetVariable):
        return SetVariable(dict(obj.items), cls=obj.cls)
    if isinstance(obj, ObjectVariable) and type(obj) is ObjectVariable and obj.payload is None and obj.cls.__flags__ & 1 << 9:
        return _duplicate_object(tx, obj, memo, part, keep)
    raise GraphBreak("untraceable_call", f"a copy of a {obj.python_type().__name__}")


def _duplicate_object(tx: Any, obj: ObjectVariable, memo: dict | None, part: Any, keep: Any) -> VariableTracker:
    cls = obj.cls
    own = attributes.mro_lookup(tx, cls, "__copy__" if memo is None else "__deepcopy__")
    if memo is None and isinstance(own, types.FunctionType):
        return calls.call(tx, wrap_pinned(tx, own), [obj], {})
    for name, default in _DEFAULT_COPY.items():
        if attributes.mro_lookup(tx, cls, name) is not default:
            raise GraphBreak("untraceable_call", f"a copy of a {cls.__name__}, which has its own {name}")
    made = keep(calls.new_object(tx, object, [wrap_pinned(tx, cls)], {}))
    namespace = attributes.instance_dict(tx, obj)
    for key, value in list(containers.complete(tx, realize(namespace, tx.state)).values()):  # type: ignore[arg-type]
        made.attrs[key.value] = part(value)  # type: ignore[attr-defined]
    return made


@handles(copy.copy)
def handle_copy(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    obj = args[0]
    return obj if isinstance(obj, TupleVariable) else duplicate(tx, obj, None)


@handles(inspect.signature)
def handle_signature(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    """Of a function from outside: a fresh object that nobody can tell from another one for the same function."""
    fn, bound = (args[0].func, True) if type(args[0]) is MethodVariable else (args[0], False)
    fn = realize(fn, tx.state)
    value = fn.value if isinstance(fn, ObjectVariable) else None
    if not issubclass(type(value), types.FunctionType) or fn.attrs or kwargs or "__wrapped__" in value.__dict__ or (
            "__signature__" in value.__dict__):
        raise GraphBreak("introspection", "inspect.signature() of something else than a plain function")
    root = tx.state.guards.pin(fn.source, value)
    tx.state.guards.add(root.child("FCODE"), "ID", value.__code__)
    for part in ("__defaults__", "__kwdefaults__", "__annotations__"):
        tx.state.guards.add(root.child("ATTR", part), "ID", getattr(value, part))
    for part in ("__wrapped__", "__signature__"):
        tx.state.guards.add(root.child("FDICT").child("KEY", part), "ABSENT")
    made = inspect.signature(types.MethodType(value, object()) if bound else value)
    tx.state.guards.made[id(made)] = made
    return wrap_pinned(tx, made)


@constructs(types.MappingProxyType)
def make_proxy(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    inner = containers.payload_of(args[0])
    if not isinstance(inner, DictVariable):
        raise GraphBreak("untraceable_call", f"a mappingproxy of a {args[0].python_type().__name__}")
    made = ObjectVariable(MISSING, cls)
    made.payload = inner
    return made


class _Referent:
    """Accessor: what a weak reference refers to."""

    __name__ = "referent"

    def __call__(self, reference: Any) -> Any:
        return reference()


REFERENT = _Referent()


def call_weakref(tx: Any, fn: ObjectVariable) -> VariableTracker:
    """``reference()``."""
    if fn.source is None or fn.value is MISSING:
        raise GraphBreak("untraceable_call", "a weak reference made in the trace")
    return realize(LazyVariable(fn.value(), fn.source.child("PYCALL", REFERENT)), tx.state)


@constructs(weakref.ref)
def make_weakref(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    raise GraphBreak("untraceable_call", "a weak reference made in the trace")


calls.WEAKREF.append(call_weakref)


@handles(inspect.stack, inspect.currentframe)
def handle_inspect(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    raise GraphBreak("introspection", "the inspect module")


for _fn in (operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
            operator.matmul, operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift, operator.lt,
            operator.le, operator.gt, operator.ge, operator.eq, operator.ne, operator.neg, operator.pos, operator.invert,
            operator.is_, operator.is_not, operator.not_, operator.getitem, operator.iadd, operator.isub, operator.imul,
            operator.itruediv, operator.imatmul):
    handles(_fn)(lambda tx, args, kwargs, fn=_fn: operators.apply(tx, fn, args))

for _fn in (operator.contains,):
    handles(_fn)(lambda tx, args, kwargs: operators.contains(tx, args[1], args[0]))


@constructs(operator.itemgetter, operator.attrgetter, operator.methodcaller)
def make_getter(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    raise GraphBreak("untraceable_call", f"operator.{cls.__name__} made in the trace")


_QUIET_MISSING = {enum.Enum.__dict__["_missing_"].__func__, enum.Flag.__dict__["_missing_"].__func__}


def enum_call(tx: Any, cls: Any, args: list, kwargs: dict) -> VariableTracker:
    """Color(1): a look-up that gives one of the class's members. Other calls make a class."""
    if len(args) != 1 or kwargs or not cls._member_map_:
        raise GraphBreak("untraceable_call", f"{cls.__name__}() that makes a class")
    if isinstance(args[0], ObjectVariable) and type(args[0].value) is cls:
        return args[0]
    value = core.need_constant(args[0], "an enum's value")
    if value not in cls._value2member_map_ and cls._missing_.__func__ not in _QUIET_MISSING:
        raise GraphBreak("untraceable_call", f"{cls.__name__}._missing_")
    known, look_up = value in cls._value2member_map_, _Member(value)
    try:
        member = cls(value)
    except ValueError as error:
        tx.state.guards.add(wrap_constant(cls).source.child("PYCALL", look_up), "EQ", None)
        raise UserRaise(user_error(ValueError, *error.args)) from None
    if known:
        tx.state.guards.add(wrap_constant(cls).source.child("PYCALL", look_up), "ID", member)
    return wrap_pinned(tx, member)


class _Member:
    """Accessor: what an enum's table has for a value."""

    __name__ = "member"

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, cls: Any) -> Any:
        return cls._value2member_map_.get(self.value)


CLASSES[enum.EnumMeta] = enum_call
BUILTIN_NAMES = tuple(vars(builtins))
