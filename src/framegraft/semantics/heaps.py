"""heapq's and bisect's functions in C, as the polyfills that do the same. Arguments of other forms than the plain ones break the graph."""

from __future__ import annotations

import bisect
import heapq
from typing import Any

from ..errors import GraphBreak
from ..model.dispatch import handles
from ..model.value import NONE, ConstantVariable, ListVariable, TupleVariable, VariableTracker, constant
from ..polyfills import heaps as bodies
from . import calls, truth
from .wrapping import wrap_pinned


def _heap_function(fn: Any, body: Any, items: int) -> None:
    @handles(fn)
    def call(tx: Any, args: list, kwargs: dict) -> VariableTracker:
        if kwargs or len(args) != 1 + items or not isinstance(args[0], ListVariable):
            raise GraphBreak("unsupported_builtin_method", f"heapq.{fn.__name__}() of what is no plain list")
        if not args[0].items and fn in (heapq.heappop, heapq.heapreplace):
            raise GraphBreak("raised_exception", f"heapq.{fn.__name__}() of an empty heap")
        helpers = [wrap_pinned(tx, f) for f in (len, bodies.sift_down, bodies.sift_up)]
        return calls.call(tx, wrap_pinned(tx, body), [*helpers, *args], {})


_heap_function(heapq.heappush, bodies.heappush, 1)
_heap_function(heapq.heappop, bodies.heappop, 0)
_heap_function(heapq.heapreplace, bodies.heapreplace, 1)
_heap_function(heapq.heappushpop, bodies.heappushpop, 1)
_heap_function(heapq.heapify, bodies.heapify, 0)


def _place(tx: Any, fn: Any, body: Any, args: list, kwargs: dict) -> VariableTracker:
    if kwargs or not 2 <= len(args) <= 4 or not isinstance(args[0], (ListVariable, TupleVariable)):
        raise GraphBreak("unsupported_builtin_method", f"bisect.{fn.__name__}() with keywords, or of what is no list or tuple")
    lo, hi = [*args[2:], constant(0), NONE][:2] if len(args) == 2 else [*args[2:], NONE][:2]
    if isinstance(hi, ConstantVariable) and hi.value is None:
        hi = truth.length(tx, args[0])
    if not all(isinstance(n, ConstantVariable) and type(n.value) is int and n.value >= 0 for n in (lo, hi)):
        raise GraphBreak("raised_exception", f"bisect.{fn.__name__}() between other bounds than numbers from 0 on")
    return calls.call(tx, wrap_pinned(tx, body), [*args[:2], lo, hi], {})


def _bisect_function(fn: Any, insort: Any, body: Any) -> None:
    @handles(fn)
    def search(tx: Any, args: list, kwargs: dict) -> VariableTracker:
        return _place(tx, fn, body, args, kwargs)

    @handles(insort)
    def insert(tx: Any, args: list, kwargs: dict) -> VariableTracker:
        if not args or not isinstance(args[0], ListVariable):
            raise GraphBreak("unsupported_builtin_method", f"bisect.{insort.__name__}() into what is no plain list")
        place = _place(tx, insort, body, args, kwargs)
        return calls.call_method(tx, args[0], "insert", [place, args[1]], {})


_bisect_function(bisect.bisect_right, bisect.insort_right, bodies.bisect_right)
_bisect_function(bisect.bisect_left, bisect.insort_left, bodies.bisect_left)
