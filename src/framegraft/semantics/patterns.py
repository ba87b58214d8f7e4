"""Regular expressions on texts that are constants (CPython: Lib/re/__init__.py, Modules/_sre/sre.c): the real ones are asked.

A match stays in the trace: eager mode makes a new one in each call.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

from ..errors import GraphBreak
from ..interp.state import realize
from ..model.dispatch import handles, method
from ..model.source import pinned
from ..model.value import MISSING, NONE, ConstantVariable, ObjectVariable, VariableTracker, constant
from . import containers, folding, making, members

_ASKED = ("search", "match", "fullmatch", "findall", "split", "sub", "subn")
_TOLD = ("group", "groups", "start", "end", "span", "expand", "__getitem__")


class MatchVariable(ObjectVariable):
    """What a pattern has found."""

    __slots__ = ("match",)

    def __init__(self, match: re.Match) -> None:
        super().__init__(MISSING, re.Match)
        self.match = match


def _plain(args: list) -> list | None:
    """Constants, also those in instances of subclasses; None where there is something else."""
    found = [a if type(a) is ConstantVariable else members.plain_value(a) for a in args]
    return None if any(f is None for f in found) else found


def _asked(tx: Any, pattern: Any, name: str, args: list, kwargs: dict) -> VariableTracker | None:
    plain, named = _plain(args), _plain(list(kwargs.values()))
    if plain is None or named is None or pattern.flags & re.LOCALE:
        return None
    found: list = []

    def ask(*values: Any, **words: Any) -> Any:
        told = _quietly(lambda: getattr(pattern, name)(*values, **words))
        if isinstance(told, re.Match):
            found.append(told)
            return None
        return told

    answer = folding.fold(ask, plain, {key: value.value for key, value in zip(kwargs, named, strict=True)})
    return MatchVariable(found[0]) if found else answer


def _quietly(ask: Callable[[], Any]) -> Any:
    """What eager mode warns of at the program's line breaks the graph."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return ask()
        except Warning as warned:
            raise GraphBreak("untraceable_call", f"a regular expression that warns: {warned}") from None


def _compiled(text: Any, flags: Any = 0) -> re.Pattern:
    if isinstance(flags, int) and flags & re.DEBUG:
        raise GraphBreak("print_call", "re.compile with re.DEBUG")
    return _quietly(lambda: re.compile(text, flags))


def _registers(name: str) -> None:
    @method(ObjectVariable, name)
    def asked(tx: Any, obj: ObjectVariable, args: list, kwargs: dict) -> VariableTracker | None:
        if type(obj.value) is not re.Pattern:
            return None
        tx.state.guards.pin(obj.source or pinned(obj.value), obj.value)
        return _asked(tx, obj.value, name, args, kwargs)

    @handles(getattr(re, name))
    def of_module(tx: Any, args: list, kwargs: dict) -> VariableTracker:
        """``re.search(pattern, text)`` and the like, with texts as patterns; flags are an enum's members."""
        first = realize(args[0], tx.state) if args else NONE
        if not kwargs and len(args) > 1 and isinstance(first, ObjectVariable) and type(first.value) is re.Pattern:
            tx.state.guards.pin(first.source or pinned(first.value), first.value)
            answer = _asked(tx, first.value, name, args[1:], {})
        else:
            plain = _plain(args[:1])
            count = 3 if name in ("sub", "subn") else 2
            if plain is None or not plain or len(args) != count or kwargs:
                raise GraphBreak("untraceable_call", f"re.{name} of something other than constants")
            made = folding.fold(_compiled, plain)
            answer = _asked(tx, made.value, name, args[1:], {})  # type: ignore[attr-defined]
        if answer is None:
            raise GraphBreak("untraceable_call", f"re.{name} of something other than constants")
        return answer


for _name in _ASKED:
    _registers(_name)


@handles(re.compile)
def make_pattern(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    plain = _plain(args)
    if not plain or kwargs:
        raise GraphBreak("untraceable_call", "re.compile of something other than constants")
    return folding.fold(_compiled, plain)


def _tells(name: str) -> None:
    @method(MatchVariable, name)
    def told(tx: Any, obj: MatchVariable, args: list, kwargs: dict) -> VariableTracker | None:
        plain, named = _plain(args), _plain(list(kwargs.values()))
        if plain is None or named is None:
            return None
        return folding.fold(getattr(obj.match, name), plain, {key: value.value for key, value in zip(kwargs, named, strict=True)})


for _name in _TOLD:
    _tells(_name)


@method(MatchVariable, "groupdict")
def groupdict(tx: Any, obj: MatchVariable, args: list, kwargs: dict) -> VariableTracker | None:
    if args or kwargs:
        return None
    made = making.call_class(tx, dict, [], {})
    for key, value in obj.match.groupdict().items():
        containers.set_item(tx, made, constant(key), constant(value))
    return made
