"""Calls of loggers: those below the logger's level do nothing, which is guarded; others break the graph, and keep their order."""

from __future__ import annotations

import logging
from typing import Any

from ..errors import GraphBreak
from ..interp.state import need_constant, realize
from ..model.dispatch import handles
from ..model.value import NONE, LazyVariable, ObjectVariable, VariableTracker
from . import lookup, truth

_LEVELS = {logging.Logger.debug: logging.DEBUG, logging.Logger.info: logging.INFO, logging.Logger.warning: logging.WARNING,
           logging.Logger.error: logging.ERROR, logging.Logger.exception: logging.ERROR, logging.Logger.critical: logging.CRITICAL}


class _Enabled:
    """Accessor: whether a logger passes records of a level on."""

    def __init__(self, level: int) -> None:
        self.level = level
        self.__name__ = f"enabled_for_{level}"

    def __call__(self, logger: logging.Logger) -> bool:
        return logging.Logger.isEnabledFor(logger, self.level)


def _is_enabled(tx: Any, logger: VariableTracker, level: int) -> VariableTracker:
    known = isinstance(logger, ObjectVariable) and issubclass(logger.cls, logging.Logger) and logger.source is not None
    if not known or lookup.mro_lookup(tx, logger.cls, "isEnabledFor") is not logging.Logger.isEnabledFor:  # type: ignore[attr-defined]
        raise GraphBreak("untraceable_call", f"a {logger.python_type().__name__}, which is no plain logger")
    if tx.state.outside and _is_changed(tx, logger.value):  # type: ignore[attr-defined]
        raise GraphBreak("untraceable_call", f"whether a {logger.python_type().__name__} is enabled, behind changes of it or its parents")
    ask = _Enabled(level)
    return realize(LazyVariable(ask(logger.value), logger.source.child("PYCALL", ask)), tx.state)  # type: ignore[attr-defined]


def _is_changed(tx: Any, logger: Any) -> bool:
    """Whether the trace has changed what the logger's answer hangs on: nothing of that is made yet."""
    changed = {id(getattr(tracker, "value", None)) for tracker in tx.state.mutated.values()}
    while logger is not None:
        asked = vars(logger)
        manager = getattr(logger, "manager", None)
        if changed & set(map(id, (logger, asked, asked.get("_cache"), manager, getattr(manager, "__dict__", None)))):
            return True
        logger = asked.get("parent")
    return False


@handles(logging.Logger.isEnabledFor)
def handle_is_enabled(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    return _is_enabled(tx, args[0], need_constant(args[1], "a level"))


def _silent(method: Any, level: int) -> None:
    @handles(method)
    def log(tx: Any, args: list, kwargs: dict) -> VariableTracker:
        if truth.truth(tx, _is_enabled(tx, args[0], level)):
            raise GraphBreak("untraceable_call", f"logging.Logger.{method.__name__} of the standard library {', '.join(kwargs)}".rstrip())
        return NONE


for _method, _level in _LEVELS.items():
    _silent(_method, _level)
