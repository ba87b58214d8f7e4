"""Globals, builtins, closure cells, imports."""

from __future__ import annotations

import builtins
import sys
import types
from typing import Any

from ..errors import GraphBreak, UserRaise
from ..interp.state import GlobalScope, user_error
from ..model.source import Source
from ..model.value import MISSING, CellVariable, LazyVariable, ObjectVariable, VariableTracker, constant
from .wrapping import wrap_pinned


def lookup_global(tx: Any, scope: GlobalScope, name: str) -> VariableTracker | None:
    """Value of a global or builtin name, None where there is none (CPython: LOAD_GLOBAL's two dict look-ups)."""
    stored = scope.stores.get(name)
    check_written(tx, scope.real, name)
    if stored is MISSING:
        return _builtin(tx, scope, name)
    if stored is not None:
        return stored
    guards = tx.state.guards
    source = scope.source.child("KEY", name)
    if name in scope.real:
        guards.present(source)
        return LazyVariable(scope.real[name], source)
    guards.add(source, "ABSENT")
    return _builtin(tx, scope, name)


def check_written(tx: Any, names: Any, name: str) -> None:
    """A global or builtin is not looked up where the trace has set it as an attribute of its module."""
    module = tx.state.written.get(id(names))
    if module is not None and name in module.attrs:
        raise GraphBreak("unsupported_attribute", f"the global {name}, which the trace has set as an attribute of its module")


def _builtin(tx: Any, scope: GlobalScope, name: str) -> VariableTracker | None:
    names = scope.real.get("__builtins__", MISSING)
    if isinstance(names, types.ModuleType):
        names = names.__dict__
    if names is MISSING:
        raise GraphBreak("unsupported_attribute", "globals without __builtins__")
    check_written(tx, names, name)
    source = scope.builtins_source.child("KEY", name)
    if name not in names:
        tx.state.guards.add(source, "ABSENT")
        return None
    tx.state.guards.present(source)
    return LazyVariable(names[name], source)


def delete_global(tx: Any, scope: GlobalScope, name: str) -> None:
    """``del name`` of a global: builtins don't count (CPython: DELETE_GLOBAL)."""
    stored = scope.stores.get(name)
    check_written(tx, scope.real, name)
    source = scope.source.child("KEY", name)
    if stored is MISSING or stored is None and name not in scope.real:
        if stored is None:
            tx.state.guards.add(source, "ABSENT")
        raise UserRaise(user_error(NameError, f"name '{name}' is not defined", name=constant(name)))
    if name in scope.real:
        tx.state.guards.present(source)
        scope.stores[name] = MISSING
    else:
        tx.state.guards.add(source, "ABSENT")
        del scope.stores[name]
    tx.state.changed(None)


def load_global(tx: Any, scope: GlobalScope, name: str) -> VariableTracker:
    found = lookup_global(tx, scope, name)
    if found is None:
        raise UserRaise(user_error(NameError, f"name '{name}' is not defined", name=constant(name)))
    return found


def cell_contents(tx: Any, cell: CellVariable) -> Any:
    contents = cell.contents
    if isinstance(contents, LazyVariable) and contents.source is not None and contents.source.access == "CELLVAL":
        tx.state.guards.present(contents.source)
    return contents


def store_cell(tx: Any, cell: CellVariable, value: Any) -> None:
    cell.contents = value
    cell.mutated = True
    tx.state.changed(cell)
    if cell.source is not None:
        tx.state.mark_mutated(cell)


def _package(tx: Any) -> str:
    """What relative imports of a frame start at (CPython: resolve_name)."""
    scope = tx.scope
    package = MISSING if "__package__" in scope.stores else scope.real.get("__package__")
    check_written(tx, scope.real, "__package__")
    if type(package) is not str:
        raise GraphBreak("io_call", "a relative import in a frame whose globals name no package")
    tx.state.guards.add(scope.source.child("KEY", "__package__"), "EQ", package)
    return package


def _check_importing(tx: Any) -> None:
    """That imports are CPython's, and that the trace has changed nothing that they look at."""
    found = _builtin(tx, tx.scope, "__import__")
    if not isinstance(found, LazyVariable) or found.value is not _IMPORT or type(_IMPORT) is not types.BuiltinFunctionType:
        raise GraphBreak("io_call", "an import by another function than CPython's")
    tx.state.guards.add(found.source, "ID", _IMPORT)
    if id(tx.state.by_id.get(id(sys.modules))) in tx.state.mutated:
        raise GraphBreak("io_call", "an import behind a change of sys.modules")


_IMPORT: Any = builtins.__import__


def import_module(tx: Any, name: str, fromlist: Any, level: int) -> VariableTracker:
    """An import of a module that is loaded already; any other import runs code and breaks the graph."""
    _check_importing(tx)
    if level:
        package = _package(tx)
        name = ".".join(package.split(".")[: len(package.split(".")) - level + 1] + ([name] if name else []))
    full = sys.modules.get(name)
    top = full if fromlist else sys.modules.get(name.partition(".")[0])
    if full is None or top is None:
        raise GraphBreak("io_call", f"import of {name}, which is not loaded")
    if any(part != "*" and part not in full.__dict__ for part in fromlist or ()) and "__path__" in full.__dict__:
        raise GraphBreak("io_call", f"import of a part of {name}, which may have to be loaded")
    loaded = Source("CONST", sys.modules)
    tx.state.guards.add(loaded.child("KEY", name), "ID", full)
    if top is not full:
        tx.state.guards.add(loaded.child("KEY", name.partition(".")[0]), "ID", top)
    tracker = wrap_pinned(tx, top)
    assert isinstance(tracker, ObjectVariable)
    return tracker
