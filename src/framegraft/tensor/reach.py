"""What real functions may look at that a graph calls: the program's changes are replayed only behind the graph."""

from __future__ import annotations

import builtins
import types
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from ..errors import GraphBreak
from ..model.value import CellVariable, ObjectVariable, TensorVariable
from ..semantics.wrapping import CONSTANT_TYPES

_LIBRARIES = frozenset(("torch", "numpy", "math", "builtins"))  # they look at nothing of the program's
_WRAPPERS = (staticmethod, classmethod, types.MethodType)


def check_changes(state: Any, name: str, functions: Iterable[Any]) -> None:
    """Break where ``functions``, called as ``name``, may look at something that the trace has changed."""
    changed = [tracker for tracker in state.mutated.values() if tracker.source is not None]
    stores = {id(scope.real): scope.stores for scope in state.scopes.values() if scope.stores}
    if (changed or stores) and _Reach(changed, stores).may_see(functions):
        raise GraphBreak("unsupported_mutation", f"a change before {name}, which may look at what has changed")


class _Reach:
    def __init__(self, changed: list[Any], stores: dict[int, dict[str, Any]]) -> None:
        self.objects = {id(t.value) for t in changed if isinstance(t, ObjectVariable)}
        self.cells = any(isinstance(t, CellVariable) for t in changed)
        self.tensors = any(isinstance(t, TensorVariable) for t in changed)
        self.stores = stores

    def may_see(self, values: Iterable[Any]) -> bool:
        """True for anything that is not known to look at nothing that has changed."""
        seen: set[int] = set()
        todo = list(values)
        while todo:
            value = todo.pop()
            if id(value) in seen:
                continue
            seen.add(id(value))
            if id(value) in self.objects:
                return True
            kind = type(value)
            if kind in CONSTANT_TYPES or kind in (torch.dtype, torch.device, types.BuiltinFunctionType) or _is_a_librarys(value):
                continue
            if kind in (tuple, frozenset):
                todo += value
            elif issubclass(kind, torch.Tensor):
                if self.tensors or kind not in (torch.Tensor, torch.nn.Parameter):
                    return True
            elif kind in _WRAPPERS:
                todo.append(value.__func__)
                if kind is types.MethodType:
                    todo.append(value.__self__)
            elif kind is types.FunctionType:
                if self.cells and value.__closure__:
                    return True
                names = set(_names(value.__code__))
                if not names.isdisjoint(self.stores.get(id(value.__globals__), ())):
                    return True
                todo += [value.__globals__[n] if n in value.__globals__ else getattr(builtins, n, None) for n in names]
                todo += [cell.cell_contents for cell in value.__closure__ or () if not _is_empty(cell)]
                todo += [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
            elif kind is type or kind is type(torch.autograd.Function):
                todo += [v for n, v in vars(value).items() if n not in ("__dict__", "__weakref__")]
                todo += value.__bases__
            else:
                return True
        return False


def _is_a_librarys(value: Any) -> bool:
    if type(value) is types.ModuleType:
        return value.__name__.partition(".")[0] in _LIBRARIES
    named = isinstance(value, (type, types.FunctionType))
    return named and str(value.__module__).partition(".")[0] in _LIBRARIES


def _is_empty(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is cell
    except ValueError:
        return True


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for const in code.co_consts:
        if type(const) is types.CodeType:
            yield from _names(const)
