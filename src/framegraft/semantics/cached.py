"""Functions with a cache (``functools.lru_cache``), which are asked, now and by the guards, as the program would ask them."""

from __future__ import annotations

import builtins
import functools
import gc
import logging
import math
import operator
import types
from typing import Any

from ..errors import GraphBreak, UserRaise
from ..interp.regions import pure
from ..interp.state import realize
from ..model.dispatch import specialised
from ..model.value import ConstantVariable, LazyVariable, ObjectVariable, VariableTracker
from . import calls
from .inlining import Args, Kwargs
from .wrapping import wrap_pinned

# Objects that live as long as the program: an entry may keep them.
CACHE_ARGUMENTS = (type, types.FunctionType, types.ModuleType, logging.Logger)
_FORGOTTEN = object()
_ATOMS = (type(None), bool, int, float, complex, str, bytes)
_BUILTINS = vars(builtins)
# Modules and builtins that give the same for the same numbers, whatever the program does.
_UNCHANGING = (math, operator, abs, bool, divmod, enumerate, float, int, len, list, max, min, pow, range, reversed, round, sorted, str, sum,
               tuple, zip)


class _CachedCall:
    """Accessor: what a function with a cache gives for constants. ``pure``: its body may run to find that out."""

    def __init__(self, fn: Any, args: list, kwargs: dict, pure: bool) -> None:
        self.args = args
        self.kwargs = kwargs
        self.pure = pure
        self.__name__ = f"{fn.__name__}[cached]"

    def __call__(self, fn: Any) -> Any:
        return fn(*self.args, **self.kwargs) if self.pure or has_answer(fn, self.args, self.kwargs) else _FORGOTTEN


def has_answer(fn: Any, args: list, kwargs: dict) -> bool:
    """Whether a call would find its answer in the cache (CPython: lru_cache_make_key)."""
    typed = fn.cache_parameters()["typed"]
    mark = next((v for v in gc.get_referents(fn) if type(v) is object), None)
    key: Any = tuple(args)
    if kwargs:
        key += (mark, *(part for item in kwargs.items() for part in item))
    if typed:
        key += (*map(type, args), *map(type, kwargs.values()))
    elif len(key) == 1 and type(key[0]) in (int, str):
        key = key[0]
    return any(type(v) is dict and v is not fn.__dict__ and key in v for v in gc.get_referents(fn))


def call_cached(tx: Any, fn: ObjectVariable, value: Any, args: Args, kwargs: Kwargs) -> VariableTracker:
    args, kwargs = calls.realize_all(tx, args, kwargs)
    if fn.source is None:
        raise GraphBreak("unknown_c_function", "a function with a cache, made in the trace")
    plain = [_argument(tx, a) for a in args]
    named = {k: _argument(tx, v) for k, v in kwargs.items()}
    known = has_answer(value, plain, named)
    if not known:
        if (tx.state.outside or tx.state.graph.switches) and not _sees_no_change(tx, value.__wrapped__, plain, named):
            raise GraphBreak("unknown_c_function", f"{value.__name__}(), whose cache has no answer yet, behind changes that it may see")
        _prove_pure(tx, value, args, kwargs)
    ask = _CachedCall(value, plain, named, not known)
    try:
        answer = ask(value)
    except Exception as error:
        raise GraphBreak("raised_exception", f"{value.__name__}() raised {type(error).__name__}") from None
    return realize(LazyVariable(answer, fn.source.child("PYCALL", ask)), tx.state)  # asked also where nothing looks at the answer


def _argument(tx: Any, tracker: VariableTracker) -> Any:
    tracker = specialised(tracker)
    if type(tracker) is ConstantVariable:
        return tracker.value
    if isinstance(tracker, ObjectVariable) and tracker.source is not None and issubclass(type(tracker.value), CACHE_ARGUMENTS):
        tx.state.guards.pin(tracker.source, tracker.value)
        return tracker.value
    raise GraphBreak("unknown_c_function", "a function with a cache called with something other than constants")


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
