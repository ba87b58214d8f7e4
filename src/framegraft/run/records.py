"""What the process has captured so far: breaks, graphs, resume functions, hooks."""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable
from typing import Any

from ..errors import GraphBreak

BREAKS: list[tuple[GraphBreak, types.CodeType]] = []
STATS: dict[str, int] = {"graphs": 0, "graph_ops": 0, "graph_breaks": 0}
WARNED: set[types.CodeType] = set()
CONVERSIONS: weakref.WeakKeyDictionary[types.CodeType, int] = weakref.WeakKeyDictionary()  # entries made, dead ones too
_HOOKS: list[Callable[[types.CodeType, types.CodeType], types.CodeType | None]] = []


def note_break(broken: GraphBreak, code: types.CodeType) -> None:
    broken.__traceback__ = broken.__context__ = broken.__cause__ = None  # its frames hold the objects of the program
    BREAKS.append((broken, code))
    STATS["graph_breaks"] += 1


def note_graph(module: Any) -> None:
    STATS["graphs"] += 1
    STATS["graph_ops"] += sum(n.op.startswith("call_") for n in module.graph.nodes)


def clear() -> None:
    BREAKS.clear()
    WARNED.clear()
    CONVERSIONS.clear()
    for key in STATS:
        STATS[key] = 0


def register_bytecode_hook(hook: Callable[[types.CodeType, types.CodeType], types.CodeType | None]) -> Any:
    """Call ``hook(old_code, new_code)`` for each transformed code; a code object that it returns is used instead.

    Returns a handle with ``remove()``.
    """
    if not callable(hook):
        raise TypeError(f"hook must be callable (old_code, new_code) -> code | None, not {type(hook).__name__}")
    _HOOKS.append(hook)
    return _Handle(hook)


class _Handle:
    def __init__(self, hook: Any) -> None:
        self._hook = hook

    def remove(self) -> None:
        if self._hook in _HOOKS:
            _HOOKS.remove(self._hook)


def apply_bytecode_hooks(old: types.CodeType, new: types.CodeType) -> types.CodeType:
    for hook in _HOOKS:
        replaced = hook(old, new)
        if replaced is not None:
            new = replaced
    return new
