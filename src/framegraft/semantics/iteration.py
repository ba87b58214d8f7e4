"""Iterators: iter(), next(), unpacking, generators that run inside the trace."""

from __future__ import annotations

import collections
import types
from collections.abc import Iterator
from typing import Any

from .._native import type_name
from ..errors import GraphBreak, UserRaise
from ..interp.state import realize, set_context, user_error
from ..model.dispatch import TENSOR
from ..model.value import (
    NONE,
    AskedIterator,
    CombinedIteratorVariable,
    ConstantVariable,
    DequeVariable,
    DictVariable,
    ExceptionVariable,
    GeneratorVariable,
    IteratorVariable,
    ListVariable,
    ObjectVariable,
    SetVariable,
    TensorVariable,
    TupleVariable,
    VariableTracker,
    constant,
)
from . import attributes, calls, hashed, members
from .containers import FAST_ITEMS, ITERATE
from .hashed import complete, payload_of
from .operators import apply
from .outside import OutsideIteratorVariable

ITERATORS = (IteratorVariable, CombinedIteratorVariable, GeneratorVariable, OutsideIteratorVariable)


BY_NUMBER: list[Any] = []  # (tx, obj) -> an iterator over an object that has only __getitem__; set by lazy.py


def get_iter(tx: Any, obj: VariableTracker) -> VariableTracker:
    """iter(obj)."""
    if isinstance(obj, ITERATORS):
        return obj
    holder = obj
    if isinstance(obj, ObjectVariable):
        if issubclass(type(obj.value), type):
            return _checked(tx, realize(calls.call(tx, _need(tx, attributes.special_method(tx, obj, "__iter__"), obj), [], {}), tx.state))
        method = attributes.special_method(tx, obj, "__iter__")
        inner = payload_of(obj)
        plain = members.plain_value(obj) if issubclass(obj.cls, (str, bytes)) else None
        if plain is not None and members.has_in_c(tx, obj, "__iter__"):
            return get_iter(tx, plain)
        if method is not None and (inner is obj or not calls.is_builtin_method(method)):
            return _checked(tx, realize(calls.call(tx, method, [], {}), tx.state))
        if isinstance(inner, DictVariable) and issubclass(obj.cls, collections.OrderedDict):
            return iterate_dict(tx, inner, holder=obj)
        if method is None and inner is obj:
            if attributes.special_method(tx, obj, "__getitem__") is None:
                raise UserRaise(user_error(TypeError, f"'{type_name(obj.cls)}' object is not iterable"))
            return BY_NUMBER[0](tx, obj)
        obj = inner
    if isinstance(obj, TensorVariable):
        given = TENSOR.overridden(tx, iter, [obj], {}) if tx.state.overriding else None
        if given is not None:
            return given
        TENSOR.check_class(tx, obj, "__iter__")
        return IteratorVariable(TENSOR.call_method(tx, obj, "unbind", [constant(0)], {}).items, None, type(iter(())))
    if isinstance(obj, (ListVariable, TupleVariable)):
        # A list may change while it is iterated: share the items, don't copy them.
        return IteratorVariable(obj.items, obj, type(iter([] if isinstance(obj, ListVariable) else ()))).within(holder)
    if isinstance(obj, DictVariable):
        return iterate_dict(tx, obj, holder=holder)
    if isinstance(obj, SetVariable):
        return IteratorVariable(hashed.ordered_items(obj), obj, type(iter(set()))).within(holder)
    if isinstance(obj, DequeVariable):
        return calls.call_method(tx, obj, "__iter__", [], {})
    if isinstance(obj, ConstantVariable):
        try:
            values = list(obj.value)
        except TypeError as error:
            raise UserRaise(user_error(TypeError, *error.args)) from None
        return IteratorVariable([constant(v) for v in values], obj, type(iter(obj.value)))
    raise GraphBreak("unsupported_iterator", f"iter() of a {obj.python_type().__name__}")


def _checked(tx: Any, made: VariableTracker) -> VariableTracker:
    """What ``__iter__`` gave, if it is an iterator (CPython: PyObject_GetIter)."""
    if not isinstance(made, ITERATORS) and attributes.special_method(tx, made, "__next__") is None:
        raise UserRaise(user_error(TypeError, f"iter() returned non-iterator of type '{type_name(made.python_type())}'"))
    return made


_BACKWARDS = type(reversed([]))
_DEQUE_BACKWARDS = type(reversed(collections.deque()))
_DICT_ITERATORS = {"": type(iter({})), "values": type(iter({}.values())), "items": type(iter({}.items()))}
_ORDERED_ITERATOR = type(iter(collections.OrderedDict()))
_REVERSED_ITERATORS = {"": type(reversed({})), "values": type(reversed({}.values())), "items": type(reversed({}.items()))}


def iterate_dict(tx: Any, d: DictVariable, view: str = "", backwards: bool = False,
                 holder: VariableTracker | None = None) -> IteratorVariable:
    """An iterator over a dict (the contents of ``holder``), its values or its items, which sees what happens to the dict."""
    keys = [key for key, _ in complete(tx, d).values()]
    kind = (_REVERSED_ITERATORS if backwards else _DICT_ITERATORS)[view]
    if holder is not None and issubclass(holder.python_type(), collections.OrderedDict):
        kind = _ORDERED_ITERATOR  # odictiter_new, for all of them
    return IteratorVariable(keys[::-1] if backwards else keys, d, kind, view).within(holder or d)


def _need(tx: Any, method: VariableTracker | None, obj: VariableTracker) -> VariableTracker:
    if method is None:
        raise UserRaise(user_error(TypeError, f"'{type_name(obj.python_type())}' object is not iterable"))
    return method


def next_item(tx: Any, iterator: VariableTracker) -> VariableTracker | None:
    """The next item, None when the iterator is exhausted."""
    try:
        return advance(tx, iterator)
    except UserRaise as raised:
        if stops(raised):
            return None
        raise


def stops(raised: UserRaise) -> bool:
    return issubclass(raised.value.python_type(), StopIteration)


def advance(tx: Any, iterator: VariableTracker) -> VariableTracker | None:
    """As ``next_item``, but a StopIteration that the program raises (in a ``__next__``, in a function of map()) goes on (tp_iternext)."""
    if isinstance(iterator, IteratorVariable):
        if isinstance(iterator.origin, (DictVariable, SetVariable)) and iterator.origin.changes != iterator.changes:
            _check_unchanged(iterator, iterator.origin)
        if isinstance(iterator.origin, DequeVariable):
            return _next_of_deque(tx, iterator, iterator.origin)
        if iterator.kind is _BACKWARDS:
            return _next_backwards(tx, iterator)
        if iterator.index < len(iterator.items):
            tx.state.changed(iterator)
            iterator.index += 1
            item = iterator.items[iterator.index - 1]
            if not iterator.view:
                return item
            assert isinstance(iterator.origin, DictVariable)
            key, value = iterator.origin.items[hashed.hash_key(tx, item)]
            return value if iterator.view == "values" else TupleVariable([key, value])
        if isinstance(iterator.origin, ListVariable):
            _let_go(iterator)
        return None
    if isinstance(iterator, CombinedIteratorVariable):
        tx.state.changed(iterator)
        return _next_combined(tx, iterator)
    if isinstance(iterator, OutsideIteratorVariable):
        return iterator.next_item(tx.state)
    if isinstance(iterator, GeneratorVariable):
        done, value = resume(tx, iterator, NONE)
        return None if done else value
    if isinstance(iterator, ObjectVariable):
        method = attributes.special_method(tx, iterator, "__next__")
        if method is None:
            raise UserRaise(user_error(TypeError, f"'{type_name(iterator.cls)}' object is not an iterator"))
        return calls.call(tx, method, [], {})
    raise GraphBreak("unsupported_iterator", f"next() of a {iterator.python_type().__name__}")


def _let_go(iterator: IteratorVariable) -> None:
    """At its end an iterator lets go of the list: what is added to that comes too late."""
    iterator.items, iterator.index, iterator.origin, iterator.holder = [], 0, None, None


def _next_backwards(tx: Any, iterator: IteratorVariable) -> VariableTracker | None:
    """listreviter_next: the item at its place, one further down each time; no more items where the list has become shorter."""
    place = len(iterator.items) - 1 - iterator.index
    if not isinstance(iterator.origin, ListVariable) or not 0 <= place < len(iterator.origin.items):
        _let_go(iterator)
        return None
    tx.state.changed(iterator)
    iterator.index += 1
    return iterator.origin.items[place]


def _next_of_deque(tx: Any, iterator: IteratorVariable, origin: DequeVariable) -> VariableTracker | None:
    """dequeiter_next, dequereviter_next: an iterator of a deque that has changed has no items left. The first tells so again and again."""
    backwards = iterator.kind is _DEQUE_BACKWARDS
    ended = iterator.broken or iterator.index == len(iterator.items)
    if backwards and ended:
        return None
    if origin.changes != iterator.changes:
        iterator.broken = True
        raise UserRaise(user_error(RuntimeError, "deque mutated during iteration"))
    if ended:
        return None
    tx.state.changed(iterator)
    iterator.index += 1
    return origin.items[-iterator.index if backwards else iterator.index - 1]


def _check_unchanged(iterator: IteratorVariable, origin: Any) -> None:
    """dictiter_iternextkey and setiter_iternext: the size must stay; what a change of keys does depends on their hashes."""
    if issubclass(iterator.holder.python_type(), collections.OrderedDict):  # type: ignore[union-attr]
        raise GraphBreak("unsupported_iterator", "an OrderedDict that changes while it is iterated")
    if len(origin.items) != len(iterator.items) or iterator.broken:
        iterator.broken = True
        kind = "dictionary" if isinstance(origin, DictVariable) else "Set"
        raise UserRaise(user_error(RuntimeError, f"{kind} changed size during iteration"))
    if isinstance(origin, SetVariable):
        raise GraphBreak("unsupported_iterator", "a set that changes while it is iterated")
    now = list(origin.items.values())
    if iterator.kind in _REVERSED_ITERATORS.values():
        now.reverse()
    if any((a[0] if isinstance(a, tuple) else a) is not b for a, b in zip(now, iterator.items, strict=True)):
        raise GraphBreak("unsupported_iterator", "a container that changes its keys while it is iterated")
    iterator.changes = origin.changes


def _next_combined(tx: Any, it: CombinedIteratorVariable) -> VariableTracker | None:
    if it.kind is AskedIterator:
        return advance(tx, it.iterators[0])
    if it.kind is enumerate:
        item = advance(tx, it.iterators[0])
        if item is None:
            return None
        it.count += 1
        return TupleVariable([constant(it.count - 1), item])
    if it.kind is filter:
        while True:
            item = advance(tx, it.iterators[0])
            if item is None:
                return None
            keep = item if it.fn is None else calls.call(tx, it.fn, [item], {})
            if calls.truth_of(tx, keep):
                return item
    if not it.iterators:  # zip()
        return None
    items: list[VariableTracker] = []
    for index, inner in enumerate(it.iterators):
        item = next_item(tx, inner) if it.strict else advance(tx, inner)
        if item is None:
            if it.strict:
                _check_strict(tx, it, index)
            return None
        items.append(item)
    return TupleVariable(items) if it.kind is zip else calls.call(tx, it.fn, items, {})


def _check_strict(tx: Any, it: CombinedIteratorVariable, index: int) -> None:
    if index:
        plural = " " if index == 1 else "s 1-"
        raise UserRaise(user_error(ValueError, f"zip() argument {index + 1} is shorter than argument{plural}{index}"))
    for later, inner in enumerate(it.iterators[1:], 1):
        if next_item(tx, inner) is not None:
            plural = " " if later == 1 else "s 1-"
            raise UserRaise(user_error(ValueError, f"zip() argument {later + 1} is longer than argument{plural}{later}"))


def drawn(tx: Any, obj: VariableTracker, asked: bool = False) -> Iterator[VariableTracker]:
    """The items of an iterable one by one, for what does something with each before it asks for the next.

    What draws from a list sees what happens to the list meanwhile, as an iterator over it does. ``asked``: for what
    first asks how many there may be (list_extend, PySequence_Tuple).
    """
    if isinstance(obj, (ListVariable, TupleVariable)):
        yield from obj.items
        return
    iterator = get_iter(tx, obj)
    if asked:
        _ask_length(tx, obj)
    count = 0
    while (item := next_item(tx, iterator)) is not None:
        count += 1
        if count > 100_000:
            raise GraphBreak("unsupported_iterator", "an iterable of more than 100,000 items")
        yield item


def _ask_length(tx: Any, obj: VariableTracker) -> None:
    """PyObject_LengthHint: the answer only makes room, but the program is asked for it and may fail."""
    if isinstance(obj, GeneratorVariable):
        for sized in SIZED:
            obj = sized(tx, obj)
    if not isinstance(obj, ObjectVariable):
        return
    method = attributes.special_method(tx, obj, "__len__")
    if method is None:
        method = attributes.special_method(tx, obj, "__length_hint__")
    if method is None or calls.is_builtin_method(method):
        return
    try:
        told = realize(calls.call(tx, method, [], {}), tx.state)
    except UserRaise as raised:
        if issubclass(raised.value.python_type(), TypeError):
            raise GraphBreak("unsupported_iterator", f"a {obj.cls.__name__} that cannot say how many items it has") from None
        raise
    if type(told) is not ConstantVariable or type(told.value) is not int or not 0 <= told.value <= _ROOM:
        raise GraphBreak("unsupported_iterator", f"a {obj.cls.__name__} that says otherwise than with a number how many items it has")


_ROOM = 100_000
SIZED: list[Any] = []  # (tx, iterator) -> what it asks for its length, or the iterator; set by lazy.py


def unpack_iterable(tx: Any, obj: VariableTracker) -> list[VariableTracker]:
    """All items of an iterable, as list(obj) would collect them."""
    return list(drawn(tx, obj, asked=True))


def all_items(tx: Any, obj: VariableTracker) -> list[VariableTracker]:
    """The same, for what does not ask how many there may be."""
    return list(drawn(tx, obj))


def fast_items(tx: Any, obj: VariableTracker, otherwise: str) -> list[VariableTracker]:
    """PySequence_Fast: all items, and a text of the caller's own where iter(obj) raises a TypeError."""
    if not isinstance(obj, (ListVariable, TupleVariable)):
        try:
            obj = get_iter(tx, obj)
        except UserRaise as raised:
            if not issubclass(raised.value.python_type(), TypeError):
                raise
            raise UserRaise(user_error(TypeError, otherwise)) from None
    return unpack_iterable(tx, obj)


ITERATE.append(all_items)
FAST_ITEMS.append(fast_items)
hashed.ITERATE.append(all_items)
hashed.DRAW.append(drawn)


def _converts_at_once() -> bool:
    """Whether a StopIteration thrown into a generator that has not begun becomes a RuntimeError: until CPython 3.11."""
    try:
        (_ for _ in ()).throw(StopIteration)
    except (RuntimeError, StopIteration) as error:
        return isinstance(error, RuntimeError)


_CONVERTS_AT_ONCE = _converts_at_once()


def resume(tx: Any, generator: GeneratorVariable, value: VariableTracker, error: Any = None) -> tuple[bool, VariableTracker]:
    """Run a generator to its next yield: (False, yielded) or (True, returned)."""
    if generator.running:
        raise UserRaise(user_error(ValueError, "generator already executing"))
    if error is not None and not isinstance(error, ExceptionVariable):
        raise GraphBreak("raised_exception", "throw() of an exception made outside of the trace")
    if error is not None and not error.raised:
        error.raised = True  # throw() is no raise: only what the generator itself handles becomes a context (_PyErr_ChainStackItem)
        error.context = error.context or NONE
    if generator.finished:
        if error is not None:
            raise UserRaise(error)
        return True, NONE
    if not generator.started and error is None and not (isinstance(value, ConstantVariable) and value.value is None):
        raise UserRaise(user_error(TypeError, "can't send non-None value to a just-started generator"))
    tx.state.changed(generator)
    if generator.broken:
        raise GraphBreak("unsupported_iterator", f"a {generator.python_type().__name__} that has raised an error")
    frame = generator.frame
    if generator.started and error is None:
        frame.stack.append(value)
    begun = generator.started
    generator.started = True
    generator.running = True
    depth = len(tx.state.exceptions)
    tx.state.exceptions += generator.exceptions
    try:
        if error is not None:
            if generator.exceptions:
                set_context(tx.state, error)
            if not frame.handled(UserRaise(error)):
                raise UserRaise(error)
        kind, result = frame.run()
    except UserRaise as raised:
        if generator.python_type() is not types.GeneratorType:  # an iterator of itertools goes on after an error
            if issubclass(raised.value.python_type(), StopIteration):
                raise GraphBreak("unsupported_iterator", "StopIteration inside of an iterator of itertools") from None
            generator.broken = True
            raise
        generator.finished = True
        if issubclass(raised.value.python_type(), StopIteration) and (begun or error is None or _CONVERTS_AT_ONCE):
            failure = user_error(RuntimeError, "generator raised StopIteration")
            failure.cause = failure.context = raised.value
            failure.raised = True
            raise UserRaise(failure) from None
        raise
    finally:
        generator.running = False
        generator.exceptions = tx.state.exceptions[depth:]
        del tx.state.exceptions[depth:]
    if kind == "yield":
        return False, result
    generator.finished = True
    return True, result


def iterate_apply(tx: Any, obj: VariableTracker) -> VariableTracker:
    return apply(tx, iter, [obj])
