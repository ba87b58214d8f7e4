"""The ``torch`` that a graph's code finds under that name: it has the functions that were captured where the code names them.

A program may put others in their places (``torch.nn.functional.gelu = mine``), before the capture or between two calls. What it reads
there itself is guarded; a graph calls what the program called.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any

import torch

_CONSTANTS = (torch.dtype, torch.layout, torch.memory_format)


def _standing_for(original: Any, name: str) -> types.ModuleType:
    """An empty module that has all else from what it stands for."""
    module = types.ModuleType(name)
    module.__getattr__ = lambda attribute: getattr(original, attribute)  # type: ignore[method-assign]
    return module


def _new() -> types.ModuleType:
    module = _standing_for(torch, "torch")
    vars(module).update((name, value) for name, value in vars(torch).items() if isinstance(value, _CONSTANTS))
    return module


_SHARED = _new()


def bound_torch(functions: Mapping[Any, str]) -> types.ModuleType:
    """For code that calls the functions of the keys as ``torch.a.b``. One serves all graphs, but for names that stand for two."""
    if _bind(_SHARED, functions):
        return _SHARED
    module = _new()
    _bind(module, functions)
    return module


def _bind(root: types.ModuleType, functions: Mapping[Any, str]) -> bool:
    """False where a name is taken."""
    for function, text in functions.items():
        _, *path, name = text.split(".")
        if path[:1] == ["ops"]:  # torch makes these attributes, and keeps them
            continue
        module: Any = root
        for step in path:
            inner = vars(module).get(step)
            if inner is None:
                inner = _standing_for(getattr(module, step), step)
                vars(module)[step] = inner
            module = inner
        if vars(module).setdefault(name, function) is not function:
            return False
    return True
