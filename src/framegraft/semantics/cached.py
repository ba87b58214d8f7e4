"""Functions with a cache (``functools.lru_cache``), which are asked, now and by the guards, as the program would ask them."""

from __future__ import annotations

import builtins
import ctypes
import functools
import gc
import logging
import math
import operator
import types
import weakref
from typing import Any

import torch

from ..errors import GraphBreak, UserRaise
from ..interp.regions import pure
from ..interp.state import realize
from ..model.dispatch import TENSOR, specialised
from ..model.value import ConstantVariable, LazyVariable, ObjectVariable, SizeVariable, TupleVariable, VariableTracker
from . import calls, lookup
from .inlining import Args, Kwargs
from .wrapping import wrap_pinned

# Objects that live as long as the program: an entry may keep them.
CACHE_ARGUMENTS = (type, types.FunctionType, types.ModuleType, logging.Logger)
_FORGOTTEN = object()
_MARK = next(v for v in gc.get_referents(functools.lru_cache(abs)) if type(v) is object)  # what a key has before its keywords
_ATOMS = (type(None), bool, int, float, complex, str, bytes)
_BUILTINS = vars(builtins)
# Modules and builtins that give the same for the same numbers, whatever the program does.
_UNCHANGING = (math, operator, abs, bool, divmod, enumerate, float, int, len, list, max, min, pow, range, reversed, round, sorted, str, sum,
               tuple, zip)


class _CachedCall:
    """Accessor: what a function with a cache gives for these arguments. ``pure``: its body may run to find that out.

    It keeps no object alive of which the program may let go. Without that object the cache is not asked; nor is it given an
    answer about one, which would hold it.
    """

    def __init__(self, fn: Any, table: _Table, args: list, kwargs: dict, objects: list, pure: bool) -> None:
        self.table = table
        weak = {id(o): _Weak(o) for o in objects}
        self.args = [_weakly(a, weak) for a in args]
        self.kwargs = {k: _weakly(v, weak) for k, v in kwargs.items()}
        self.weak = bool(objects)
        self.pure = pure and not objects
        self.__name__ = f"{fn.__name__}[cached]"

    def __call__(self, fn: Any) -> Any:
        args, kwargs = self.args, self.kwargs
        if self.weak:
            try:
                args, kwargs = [_strongly(a) for a in args], {k: _strongly(v) for k, v in kwargs.items()}
            except ReferenceError:
                return _FORGOTTEN
        return fn(*args, **kwargs) if self.pure or self.table.has(fn, args, kwargs) else _FORGOTTEN


class _Weak(weakref.ref):
    """An object among the arguments that the cache knows by its identity."""

    __slots__ = ()


class _Compound(tuple):
    """A tuple among the arguments with such objects in it."""

    __slots__ = ()


def _weakly(value: Any, weak: dict[int, _Weak]) -> Any:
    if type(value) is not tuple:
        return weak.get(id(value), value)
    parts = [_weakly(v, weak) for v in value]
    return value if all(a is b for a, b in zip(parts, value, strict=True)) else _Compound(parts)


def _strongly(value: Any) -> Any:
    if type(value) is _Compound:
        return tuple([_strongly(v) for v in value])
    if type(value) is not _Weak:
        return value
    if (alive := value()) is None:
        raise ReferenceError
    return alive


class _Table:
    """The dict behind a function with a cache, which keeps one and the same as long as it lives (CPython: lru_cache_object).

    Asking the garbage collector for it takes longer the more answers there are, and whoever held it would hold what the
    program has let go of: so its address is kept, and followed only where the function is still there.
    """

    __slots__ = ("of", "at", "typed")

    def __init__(self, fn: Any) -> None:
        self.of = weakref.ref(fn)
        *_, table = (v for v in gc.get_referents(fn) if type(v) is dict and v is not fn.__dict__)  # answers come first
        self.at = ctypes.py_object.from_buffer(ctypes.c_size_t(id(table)))
        self.typed = fn.cache_parameters()["typed"]

    def has(self, fn: Any, args: list, kwargs: dict) -> bool:
        """Whether a call would find its answer in the cache (CPython: lru_cache_make_key)."""
        if self.of() is not fn:
            return False
        key: Any = tuple(args)
        if kwargs:
            key += (_MARK, *(part for item in kwargs.items() for part in item))
        if self.typed:
            key += (*map(type, args), *map(type, kwargs.values()))
        elif len(key) == 1 and type(key[0]) in (int, str):
            key = key[0]
        return key in self.at.value


def call_cached(tx: Any, fn: ObjectVariable, value: Any, args: Args, kwargs: Kwargs) -> VariableTracker:
    args, kwargs = calls.realize_all(tx, args, kwargs)
    if fn.source is None:
        raise GraphBreak("unknown_c_function", "a function with a cache, made in the trace")
    objects: list[Any] = []
    plain = [_argument(tx, a, objects) for a in args]
    named = {k: _argument(tx, v, objects) for k, v in kwargs.items()}
    table = _Table(value)
    known = table.has(value, plain, named)
    if not known:
        if (tx.state.outside or tx.state.graph.switches) and not _sees_no_change(tx, value.__wrapped__, plain, named):
            raise GraphBreak("unknown_c_function", f"{value.__name__}(), whose cache has no answer yet, behind changes that it may see")
        _prove_pure(tx, value, args, kwargs)
    ask = _CachedCall(value, table, plain, named, objects, not known)
    try:
        with TENSOR.devices_of_program(tx):
            answer = value(*plain, **named)
    except Exception as error:
        raise GraphBreak("raised_exception", f"{value.__name__}() raised {type(error).__name__}") from None
    return realize(LazyVariable(answer, fn.source.child("PYCALL", ask)), tx.state)  # asked also where nothing looks at the answer


def _argument(tx: Any, tracker: VariableTracker, objects: list[Any]) -> Any:
    """The Python value of an argument; ``objects`` get those that the cache tells apart by their identity."""
    tracker = specialised(tracker)
    if type(tracker) is ConstantVariable:
        return tracker.value
    if isinstance(tracker, ObjectVariable) and tracker.source is not None and issubclass(type(tracker.value), CACHE_ARGUMENTS):
        tx.state.guards.pin(tracker.source, tracker.value)
        return tracker.value
    if type(tracker) in (TupleVariable, SizeVariable) and tracker.python_type() in (tuple, torch.Size):
        items = [_argument(tx, realize(i, tx.state), objects) for i in tracker.items]  # type: ignore[attr-defined]
        return tracker.python_type()(items)
    if isinstance(tracker, ObjectVariable) and tracker.source is not None and _is_known_by_identity(tx, tracker):
        tx.state.guards.add(tracker.source, "ID", tracker.value)
        objects.append(tracker.value)
        return tracker.value
    raise GraphBreak("unknown_c_function", "a function with a cache called with something other than constants")


def _is_known_by_identity(tx: Any, tracker: ObjectVariable) -> bool:
    """Whether a cache takes this object for itself only, and a weak reference to it can be had."""
    cls = tracker.cls
    return (type(tracker) is ObjectVariable and type(tracker.value) is cls and cls.__weakrefoffset__ != 0
            and lookup.mro_lookup(tx, cls, "__hash__") is object.__hash__ and lookup.mro_lookup(tx, cls, "__eq__") is object.__eq__)


def _sees_no_change(tx: Any, body: Any, args: list, kwargs: dict) -> bool:
    """Whether a call gives the same now, while the changes that the trace has made are still to be made, as behind them."""
    if not all(type(v) in _ATOMS for v in (*args, *kwargs.values())):
        return False
    changed = {id(getattr(tracker, "value", None)) for tracker in tx.state.mutated.values()}
    todo, seen = [body], {id(body)}
    while todo:
        fn = todo.pop()
        if type(fn) is not types.FunctionType or fn.__closure__ or id(fn) in changed:
            return False
        if not all(type(v) in _ATOMS for v in (*(fn.__defaults__ or ()), *(fn.__kwdefaults__ or {}).values())):
            return False
        scope = tx.state.scopes.get(id(fn.__globals__))
        for name in _names(fn.__code__):
            if scope is not None and (name in scope.stores or name in scope.renewed):
                return False
            found = fn.__globals__.get(name, _BUILTINS.get(name))
            if id(found) not in seen and type(found) not in _ATOMS and not any(found is v for v in _UNCHANGING):
                seen.add(id(found))
                todo.append(found)
    return True


def _names(code: types.CodeType) -> set[str]:
    """Names of globals in the code and in what is defined in it; those of attributes, too."""
    return set(code.co_names).union(*(_names(c) for c in code.co_consts if type(c) is types.CodeType))


def _prove_pure(tx: Any, value: functools._lru_cache_wrapper, args: Args, kwargs: Kwargs) -> None:
    """A body that has to run while the trace is made must do nothing but compute its answer: a trace of it shows that."""
    body = next((v for v in gc.get_referents(value) if v is value.__wrapped__), None)
    if body is None:
        raise GraphBreak("unknown_c_function", f"{value.__name__}(), with a cache, wraps something else than it says")
    graph = tx.state.graph
    before, count, random = set(graph.graph.nodes), graph.call_count, graph.mode.random
    try:
        with pure(tx.state, "a function with a cache"):
            calls.call(tx, wrap_pinned(tx, body), args, kwargs)
    except UserRaise as raised:
        raise GraphBreak("raised_exception", f"{value.__name__}() raises {raised.value.python_type().__name__}") from None
    except GraphBreak as broken:
        raise GraphBreak("unknown_c_function", f"{value.__name__}(), whose cache has no answer yet: {broken.detail}") from None
    made = [node for node in graph.graph.nodes if node not in before and node.op != "placeholder"]
    if made and graph.symbols is not None or graph.mode.random and not random:
        raise GraphBreak("unknown_c_function", f"{value.__name__}(), whose cache has no answer yet, works on tensors")
    for node in reversed(made):  # the body is about to run for real
        graph.graph.erase_node(node)
    graph.call_count = count


calls.CACHED.append(call_cached)
