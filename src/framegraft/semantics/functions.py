"""Builtin functions on trackers. Names and errors follow CPython's bltinmodule.c."""

from __future__ import annotations

import functools
import math
import operator
import sys
import types
from typing import Any

from .._native import type_name
from ..errors import GraphBreak, UserRaise
from ..interp.state import realize, user_error
from ..model.dispatch import TENSOR, handles, settled, specialised
from ..model.source import Source
from ..model.value import (
    MISSING,
    NONE,
    ConstantVariable,
    DequeVariable,
    DictVariable,
    ListVariable,
    ObjectVariable,
    SetVariable,
    SymbolicVariable,
    TensorVariable,
    TupleVariable,
    VariableTracker,
    constant,
)
from . import attributes, calls, core, folding, hashed, iteration, lookup, members, operators, storing, texts, truth


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
    name = core.attribute_name(args[1])
    if args[0].python_type() is functools.partial and lookup.defines(functools.partial, name):
        return constant(True)  # asking for __dict__ would make one
    try:
        attributes.get_attr(tx, args[0], name)
    except UserRaise as raised:
        if issubclass(raised.value.python_type(), AttributeError):
            return constant(False)
        raise
    return constant(True)


@handles(setattr)
def handle_setattr(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    storing.set_attr(tx, args[0], core.attribute_name(args[1]), args[2])
    return NONE


@handles(delattr)
def handle_delattr(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    storing.del_attr(tx, args[0], core.attribute_name(args[1]))
    return NONE


@handles(callable)
def handle_callable(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    return constant(is_callable(tx, args[0]))


def is_callable(tx: Any, obj: VariableTracker) -> bool:
    return lookup.mro_lookup(tx, realize(obj, tx.state).python_type(), "__call__") is not MISSING


@handles(len)
def handle_len(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    return truth.length(tx, args[0])


@handles(operator.length_hint)
def handle_length_hint(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    if all(type(a) is ConstantVariable for a in args):
        return folding.fold(operator.length_hint, args)
    if not isinstance(args[0], (ListVariable, TupleVariable, SetVariable, DictVariable, DequeVariable)):
        raise GraphBreak("unsupported_iterator", f"length_hint() of a {args[0].python_type().__name__}")
    if len(args) > 1 and args[1].python_type() is not int:
        raise GraphBreak("raised_exception", "length_hint() with something other than an int")
    return truth.length(tx, args[0])


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
            raise UserRaise(user_error(TypeError, f"'{type_name(args[0].python_type())}' object is not an iterator"))
        try:
            item = iteration.advance(tx, args[0])
        except UserRaise as raised:
            if len(args) == 1 or not iteration.stops(raised):
                raise
            item = None
        if item is not None:
            return item
        error = user_error(StopIteration)
    if len(args) > 1:
        return args[1]
    raise UserRaise(error)


def _numbers(tx: Any, fn: Any, args: list, kwargs: dict) -> VariableTracker:
    """min and max (CPython: min_max): each item is compared, by what the key function makes of it, before the next is asked for."""
    if len(args) > 1 and "default" in kwargs:
        text = f"Cannot specify a default for {fn.__name__}() with multiple positional arguments"
        raise UserRaise(user_error(TypeError, text))
    key = kwargs.get("key")
    if isinstance(key, ConstantVariable) and key.value is None:
        key = None
    plain: list[VariableTracker] = []  # the comparison of numbers can wait
    leader: Ranked | None = None
    for item in iteration.drawn(tx, args[0]) if len(args) == 1 else args:
        plain.append(realize(item, tx.state))
        if leader is not None or key is not None or not isinstance(plain[-1], (ConstantVariable, SymbolicVariable)):
            leader, plain = _leader(tx, fn, key, leader, plain), []
    if plain:
        return _of_numbers(tx, fn, plain)
    if leader is not None:
        return leader[0]
    if "default" in kwargs:
        return kwargs["default"]
    return folding.fold(fn, [constant("")])  # raises what this version of CPython says of nothing


Ranked = tuple[VariableTracker, VariableTracker]  # an item and what is compared


def _leader(tx: Any, fn: Any, key: VariableTracker | None, leader: Ranked | None, items: list) -> Ranked:
    better = operator.gt if fn is max else operator.lt
    for item in items:
        rank = item if key is None else realize(calls.call(tx, key, [item], {}), tx.state)
        if leader is None or truth.truth(tx, operators.apply(tx, better, [rank, leader[1]])):
            leader = item, rank
    assert leader is not None
    return leader


def _of_numbers(tx: Any, fn: Any, items: list) -> VariableTracker:
    if any(type(i) is SymbolicVariable for i in items):
        best = TENSOR.symbolic(tx, fn, items)
        if best is not None:
            return best
    if all(type(i) is ConstantVariable for i in items):
        try:
            best = fn([i.value for i in items])
        except TypeError as error:
            raise UserRaise(user_error(TypeError, *error.args)) from None
        return next(i for i in items if i.value is best)
    return _leader(tx, fn, None, None, items)[0]


@handles(max)
def handle_max(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    return _numbers(tx, max, args, kwargs)


@handles(min)
def handle_min(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    return _numbers(tx, min, args, kwargs)


@handles(sum)
def handle_sum(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    """builtin_sum_impl: each item is added before the next is asked for; as long as there are only numbers, that can wait."""
    total = args[1] if len(args) > 1 else kwargs.get("start", constant(0))
    if isinstance(total, ConstantVariable) and isinstance(total.value, (str, bytes)):
        iteration.get_iter(tx, args[0])
        return _sum_of_numbers([], total)  # refuses that
    plain: list | None = [] if _is_number(total) else None
    for item in iteration.drawn(tx, args[0]):
        item = realize(item, tx.state)
        if plain is not None and _is_number(item):
            plain.append(item)
            continue
        if plain is not None:
            total, plain = _sum_of_numbers(plain, total), None
        total = realize(operators.apply(tx, operator.add, [total, item]), tx.state)
    return total if plain is None else _sum_of_numbers(plain, total)


def _is_number(tracker: VariableTracker) -> bool:
    return type(tracker) is ConstantVariable and type(tracker.value) in (bool, int, float, complex)


def _sum_of_numbers(items: list, total: Any) -> VariableTracker:
    return folding.fold(lambda: sum([i.value for i in items], total.value), [])


@handles(math.prod)
def handle_prod(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    total = kwargs.get("start", constant(1))
    for item in iteration.drawn(tx, args[0]):
        total = realize(operators.apply(tx, operator.mul, [total, realize(item, tx.state)]), tx.state)
    return total


@handles(any)
def handle_any(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    iterator = iteration.get_iter(tx, args[0])
    while (item := iteration.next_item(tx, iterator)) is not None:
        if truth.truth(tx, item):
            return constant(True)
    return constant(False)


@handles(all)
def handle_all(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    iterator = iteration.get_iter(tx, args[0])
    while (item := iteration.next_item(tx, iterator)) is not None:
        if not truth.truth(tx, item):
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
    if keys and (all(_compares_in_python(tx, k) for k in keys) or all(type(k) is ListVariable for k in keys)):
        proxies = [_Compared(tx, k) for k in keys]
        return [items[i] for i in sorted(range(len(items)), key=proxies.__getitem__, reverse=reverse)]
    try:
        ranks = _ranks(tx, keys)
        order = sorted(range(len(items)), key=ranks.__getitem__, reverse=reverse)
    except TypeError as error:
        raise UserRaise(user_error(TypeError, *error.args)) from None
    return [items[i] for i in order]


def _ranks(tx: Any, keys: list[VariableTracker]) -> list:
    """Python values that are in the same order as the keys."""
    if len(keys) < 2:
        return [None] * len(keys)  # nothing is compared
    if all(isinstance(k, TupleVariable) and k.items for k in keys):
        # tuples with different first items are compared by these alone: sorted(named.items()) looks at no value
        first = [calls.plain_value(tx, realize(k.items[0], tx.state)) for k in keys]  # type: ignore[attr-defined]
        if all(type(f) is str for f in first) and len(set(first)) == len(first):
            return first
    return [core.need_constant_deep(members.plain_value(k) or k if members.has_in_c(tx, k, "__lt__", "__gt__") else k) for k in keys]


def _compares_in_python(tx: Any, key: VariableTracker) -> bool:
    if not isinstance(key, ObjectVariable) or key.payload is not None:
        return False
    return lookup.is_python(tx, key.cls, "__lt__")


class _Compared:
    """Stands for an object while it is sorted: list.sort asks for nothing but ``<``."""

    __slots__ = ("key", "tx")

    def __init__(self, tx: Any, key: VariableTracker) -> None:
        self.tx = tx
        self.key = key

    def __lt__(self, other: _Compared) -> bool:
        try:
            return calls.truth_of(self.tx, realize(operators.apply(self.tx, operator.lt, [self.key, other.key]), self.tx.state))
        except UserRaise:
            raise GraphBreak("raised_exception", "an error in the middle of a sort") from None


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
    return operators.apply(tx, divmod, args)


@handles(pow)
def handle_pow(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    if len(args) == 2:
        return operators.apply(tx, operator.pow, args)
    if not all(isinstance(a, (ConstantVariable, SymbolicVariable, TensorVariable)) for a in args):
        raise GraphBreak("untraceable_call", "pow() of three objects")
    result = _dunder(tx, pow, "__pow__", args)
    if isinstance(result, ConstantVariable) and result.value is NotImplemented:
        kinds = ", ".join(f"'{a.python_type().__name__}'" for a in args)
        raise UserRaise(user_error(TypeError, f"unsupported operand type(s) for ** or pow(): {kinds}"))
    return result


def _dunder(tx: Any, fn: Any, name: str, args: list) -> VariableTracker:
    args = [settled(a) for a in args]
    if any(type(a) is SymbolicVariable for a in args):
        result = TENSOR.symbolic(tx, fn, args)
        if result is not None:
            return result
        args = [specialised(a) for a in args]
    if all(type(a) is ConstantVariable for a in args):
        return folding.fold(fn, args)
    if any(isinstance(a, TensorVariable) for a in args):
        return operators.TENSOR.call(tx, fn, args, {})
    method = attributes.special_method(tx, args[0], name)
    if method is None:
        name = type_name(args[0].python_type())
        text = f"type {name} doesn't define __round__ method" if fn is round else f"bad operand type for {fn.__name__}(): '{name}'"
        raise UserRaise(user_error(TypeError, text))
    return calls.call(tx, method, args[1:], {})


@handles(repr)
def handle_repr(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    return texts.text_of(tx, repr, "__repr__", args[0])


@handles(hash)
def handle_hash(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    args = [specialised(a) for a in args]
    if type(args[0]) is ConstantVariable:
        if hashed.is_nan(args[0].value):
            raise GraphBreak("introspection", "hash() of a nan, which is its object's")
        return folding.fold(hash, args)
    inner = hashed.payload_of(args[0])
    if isinstance(inner, (TupleVariable, SetVariable)) and _hashes_its_items(tx, args[0]):
        key = hashed.hash_key(tx, inner)
        if hashed.has_told_hash(key) and not hashed.holds_nan(key):
            return constant(hash(key))
    if members.has_in_c(tx, args[0], "__hash__"):
        return handle_hash(tx, [members.plain_value(args[0])], kwargs)
    if isinstance(args[0], (TensorVariable, ObjectVariable)):
        method = lookup.mro_lookup(tx, args[0].cls, "__hash__")
        if isinstance(method, types.FunctionType):
            return _checked_hash(calls.call(tx, attributes.special_method(tx, args[0], "__hash__"), [], {}), tx)  # type: ignore[arg-type]
        if method is object.__hash__ and isinstance(args[0], ObjectVariable) and args[0].payload is None and _stays(args[0]):
            tx.state.guards.pin(args[0].source or Source("CONST", args[0].value), args[0].value)
            return constant(object.__hash__(args[0].value))
    raise GraphBreak("introspection", "hash() of an object")


def _hashes_its_items(tx: Any, obj: VariableTracker) -> bool:
    """Whether it is a tuple or frozenset, or an instance of a subclass that hashes as these do."""
    if isinstance(obj, ObjectVariable):
        return lookup.mro_lookup(tx, obj.cls, "__hash__") in (tuple.__hash__, frozenset.__hash__)
    return not isinstance(obj, SetVariable) or obj.cls is frozenset


def _stays(obj: ObjectVariable) -> bool:
    """Whether an object is not made by the trace, and is no parameter, which may be another one in each call."""
    return obj.value is not MISSING and (obj.source is None or obj.source.base is not None or issubclass(type(obj.value), type))


def _checked_hash(told: VariableTracker, tx: Any) -> VariableTracker:
    """slot_tp_hash: an int that fits, and is not -1."""
    told = specialised(realize(told, tx.state))
    if not issubclass(told.python_type(), int):
        raise UserRaise(user_error(TypeError, "__hash__ method should return an integer"))
    number = int(core.need_constant(told, "a hash"))
    number = number if -sys.maxsize <= number <= sys.maxsize else hash(number)
    return constant(-2 if number == -1 else number)


@handles(vars)
def handle_vars(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    if len(args) != 1 or not isinstance(args[0], ObjectVariable):
        raise GraphBreak("introspection", "vars()")
    return realize(attributes.get_attr(tx, args[0], "__dict__"), tx.state)


@handles(id)
def handle_id(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    """The place of an object from outside, which is guarded to be that very object. Arguments that are tensors differ from call to call."""
    obj = args[0]
    value = getattr(obj, "value", MISSING)
    constants = value is MISSING or value is None or isinstance(obj, (ConstantVariable, SymbolicVariable))
    if obj.source is None or constants or isinstance(obj, TensorVariable) and obj.source.access == "ARG":
        raise GraphBreak("introspection", "id() of an object of the trace, of a constant or of an argument")
    tx.state.guards.pin(obj.source, value)
    return constant(id(value))


@handles(globals, locals, dir, exec, eval)
def handle_introspection(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    raise GraphBreak("introspection", "globals(), locals(), vars(), dir(), exec() or eval()")


@handles(print)
def handle_print(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    raise GraphBreak("print_call", f"print({', '.join(f'{name}=...' for name in kwargs)})")
