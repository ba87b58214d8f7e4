"""How many arguments builtins and other functions with a handler take, so that no handler sees a call that CPython refuses: such
a call breaks the graph.

From ``inspect.signature`` where the builtin has one; CPython's argument parsing of the others is in the tables.
"""

from __future__ import annotations

import collections
import functools
import inspect
import itertools
import types
import weakref
from typing import Any

from ..errors import GraphBreak
from .lookup import HEAP_TYPE

MANY = 1 << 30
Limits = tuple[int, int, frozenset[str] | None]  # fewest, most positional arguments; names, None for any

_GENERATOR = types.GeneratorType
_KNOWN: dict[Any, tuple[int, int]] = {
    getattr: (2, 3), iter: (1, 2), next: (1, 2), vars: (0, 1), dir: (0, 1), functools.reduce: (2, 3),
    str: (0, 3), int: (0, 2), bool: (0, 1), bytes: (0, 3), set: (0, 1), frozenset: (0, 1), range: (1, 3), slice: (1, 3), type: (1, 3),
    super: (0, 2), filter: (2, 2), map: (2, MANY), staticmethod: (1, 1), classmethod: (1, 1), functools.partial: (1, MANY),
    types.MappingProxyType: (1, 1), weakref.ref: (1, 2), itertools.islice: (2, 4), types.SimpleNamespace: (0, 0),
    str.format_map: (2, 2), collections.OrderedDict: (0, 1), dict: (0, 1), max: (1, MANY), min: (1, MANY),
    list.__getitem__: (2, 2), dict.__getitem__: (2, 2), set.__contains__: (2, 2), dict.pop: (2, 3), dict.keys: (1, 1), dict.values: (1, 1),
    dict.items: (1, 1), dict.update: (1, 2), dict.clear: (1, 1), dict.copy: (1, 1), set.add: (2, 2), set.discard: (2, 2),
    set.clear: (1, 1), set.copy: (1, 1), set.symmetric_difference: (2, 2), set.symmetric_difference_update: (2, 2), set.issubset: (2, 2),
    set.issuperset: (2, 2), set.isdisjoint: (2, 2), set.remove: (2, 2), set.pop: (1, 1), frozenset.copy: (1, 1),
    frozenset.symmetric_difference: (2, 2), frozenset.issubset: (2, 2), frozenset.issuperset: (2, 2), frozenset.isdisjoint: (2, 2),
    frozenset.__contains__: (2, 2), _GENERATOR.send: (2, 2), _GENERATOR.throw: (2, 4), _GENERATOR.close: (1, 1),
}
_KNOWN[collections.defaultdict.__missing__] = (2, 2)
_deque = collections.deque
_KNOWN |= {
    _deque.append: (2, 2), _deque.appendleft: (2, 2), _deque.extend: (2, 2), _deque.extendleft: (2, 2), _deque.pop: (1, 1),
    _deque.popleft: (1, 1), _deque.clear: (1, 1), _deque.reverse: (1, 1), _deque.rotate: (1, 2), _deque.copy: (1, 1),
    _deque.__copy__: (1, 1), _deque.insert: (3, 3), _deque.remove: (2, 2), _deque.count: (2, 2), _deque.index: (2, 4),
    _deque.__reversed__: (1, 1),
}
_KNOWN[range.__reversed__] = (1, 1)
for _view in ({}.keys(), {}.values(), {}.items()):
    _KNOWN[type(_view).__reversed__] = (1, 1)
_NAMED: dict[Any, frozenset[str] | None] = {
    str: frozenset(("object", "encoding", "errors")), int: frozenset(("base",)), bytes: frozenset(("source", "encoding", "errors")),
    functools.partial: None, types.SimpleNamespace: None, collections.OrderedDict: None, dict: None, dict.update: None,
    max: frozenset(("key", "default")), min: frozenset(("key", "default")), itertools.repeat: frozenset(("object", "times")),
    itertools.product: frozenset(("repeat",)), itertools.zip_longest: frozenset(("fillvalue",)), zip: frozenset(("strict",)),
    type: None,
}


@functools.lru_cache(maxsize=2000)
def _limits(fn: Any) -> Limits | None:
    if fn in _KNOWN or fn in _NAMED:
        least, most = _KNOWN.get(fn, (0, MANY))
        return least, most, _NAMED.get(fn, frozenset())
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (ValueError, TypeError):
        return None
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    least = sum(p.default is p.empty for p in positional)
    most = MANY if any(p.kind is p.VAR_POSITIONAL for p in parameters) else len(positional)
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return least, most, None
    return least, most, frozenset(p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY))


def check(fn: Any, count: int, kwargs: dict) -> None:
    """Break the graph where ``fn`` refuses so many positional arguments, or these names."""
    try:
        limits = _limits(fn)
    except TypeError:  # not hashable
        return
    if limits is None:
        return
    least, most, names = limits
    missing = count < least and count + len(kwargs) < least
    if missing or count > most or names is not None and not names.issuperset(kwargs):
        raise GraphBreak("raised_exception", f"{getattr(fn, '__qualname__', fn)}() called with arguments that it does not take")


def check_method(cls: type, name: str, count: int, kwargs: dict) -> None:
    fn = getattr(cls, name, None)
    if name == "__init__":  # takes what the class takes
        builtin = next(b for b in cls.__mro__ if not b.__flags__ & HEAP_TYPE)
        if builtin in (list, dict, set):
            check(builtin, count, kwargs)
        return
    if isinstance(fn, types.MethodDescriptorType | types.WrapperDescriptorType):
        check(fn, count + 1, kwargs)
