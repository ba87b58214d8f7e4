"""Pickles that hold the program's own functions, classes and modules by value, so that they can be read without the program.

What is installed (the standard library, site-packages) stays a reference. Of a module of the program only those variables are
kept that the functions name.
"""

from __future__ import annotations

import dataclasses
import importlib
import io
import marshal
import os
import pathlib
import pickle
import sysconfig
import types
from typing import Any

_INSTALLED = tuple({sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_OF_CLASS = (types.GetSetDescriptorType, types.MemberDescriptorType)


def is_installed(module_name: str | None) -> bool:
    """Whether another process can import the module as this one did."""
    if module_name is None or module_name == "__main__":
        return False
    try:
        module = importlib.import_module(module_name)
    except Exception:
        return False
    path = getattr(module, "__file__", None)
    return path is None or path.startswith(_INSTALLED) or module_name.startswith("framegraft.")


class Pickler(pickle.Pickler):
    """Raises what ``pickle`` does for objects that cannot be pickled (files, locks, generators)."""

    def reducer_override(self, obj: Any) -> Any:
        rule = _RULES.get(type(obj))
        if rule is not None:
            return rule(obj)
        if isinstance(obj, type) and not is_installed(obj.__module__):
            return _class(obj)
        return NotImplemented


def dumps(value: Any) -> bytes:
    out = io.BytesIO()
    Pickler(out, pickle.HIGHEST_PROTOCOL).dump(value)
    return out.getvalue()


def loads(data: bytes) -> Any:
    """As ``pickle.loads``: it runs what the data say, so load only what you trust."""
    _modules.clear()
    try:
        return pickle.loads(data)
    finally:
        _modules.clear()


def load(path: str | os.PathLike[str]) -> Any:
    """``loads`` of a file."""
    return loads(pathlib.Path(path).read_bytes())


# --- writing ---------------------------------------------------------------------------------------------------------


def _function(fn: types.FunctionType) -> Any:
    if is_installed(fn.__module__) and "<" not in fn.__qualname__:
        return NotImplemented
    names = _names(fn.__code__)
    scope = {name: fn.__globals__[name] for name in names if name in fn.__globals__}
    scope = {name: _Part(value, names) if _is_own_module(value) else value for name, value in scope.items()}
    state = (scope, fn.__defaults__, fn.__kwdefaults__, fn.__qualname__, fn.__doc__, dict(fn.__dict__))
    return _make_function, (fn.__code__, fn.__name__, fn.__module__, fn.__closure__), state, None, None, _fill_function


def _names(code: types.CodeType) -> set[str]:
    found = set(code.co_names)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            found |= _names(const)
    return found


def _is_own_module(value: Any) -> bool:
    return isinstance(value, types.ModuleType) and not is_installed(value.__name__)


class _Part:
    """A module of the program, and the names of what is wanted of it."""

    def __init__(self, module: types.ModuleType, names: set[str]) -> None:
        self.module, self.names = module, names

    def __reduce__(self) -> Any:
        kept = {n: v for n, v in vars(self.module).items() if n in self.names and not n.startswith("__")}
        kept = {n: _Part(v, self.names) if _is_own_module(v) else v for n, v in kept.items()}
        return _make_module, (self.module.__name__,), kept, None, None, _fill_module


def _class(cls: type) -> Any:
    body = {n: v for n, v in vars(cls).items() if n not in ("__dict__", "__weakref__", "__doc__") and not isinstance(v, _OF_CLASS)}
    slots = {"__slots__": body.pop("__slots__")} if "__slots__" in body else {}
    told = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    return _make_class, (type(cls), cls.__name__, cls.__bases__, slots | told), body, None, None, _fill_class


def _cell(cell: types.CellType) -> Any:
    try:
        return _make_cell, (), cell.cell_contents, None, None, _fill_cell
    except ValueError:
        return _make_cell, ()


def _module(module: types.ModuleType) -> Any:
    return (importlib.import_module, (module.__name__,)) if is_installed(module.__name__) else _Part(module, set(vars(module))).__reduce__()


_RULES: dict[type, Any] = {
    types.FunctionType: _function,
    types.CodeType: lambda code: (marshal.loads, (marshal.dumps(code),)),
    types.CellType: _cell,
    types.ModuleType: _module,
    property: lambda p: (property, (p.fget, p.fset, p.fdel, p.__doc__)),
    staticmethod: lambda method: (staticmethod, (method.__func__,)),
    classmethod: lambda method: (classmethod, (method.__func__,)),
    types.MappingProxyType: lambda proxy: (_make_proxy, (dict(proxy),)),
    type(dataclasses.MISSING): lambda mark: (getattr, (dataclasses, "MISSING")),
    type(dataclasses._FIELD): lambda mark: (getattr, (dataclasses, mark.name)),  # type: ignore[attr-defined]
}

# --- reading ---------------------------------------------------------------------------------------------------------

_modules: dict[str, types.ModuleType] = {}  # of the pickle that is being read


def _make_module(name: str) -> types.ModuleType:
    return _modules.setdefault(name, types.ModuleType(name))


def _fill_module(module: types.ModuleType, kept: dict[str, Any]) -> None:
    vars(module).update(kept)


def _make_function(code: types.CodeType, name: str, module: str, closure: tuple | None) -> types.FunctionType:
    scope = vars(_make_module(module))
    scope.setdefault("__builtins__", importlib.import_module("builtins"))
    return types.FunctionType(code, scope, name, None, closure)


def _fill_function(fn: types.FunctionType, state: tuple) -> None:
    scope, fn.__defaults__, fn.__kwdefaults__, fn.__qualname__, fn.__doc__, more = state
    fn.__globals__.update(scope)
    fn.__dict__.update(more)


def _make_class(meta: Any, name: str, bases: tuple, body: dict[str, Any]) -> type:
    return meta(name, bases, body)


def _fill_class(cls: type, body: dict[str, Any]) -> None:
    for name, value in body.items():
        if name not in ("__module__", "__qualname__"):
            type.__setattr__(cls, name, value)


def _make_proxy(value: dict) -> types.MappingProxyType:
    return types.MappingProxyType(value)


def _make_cell() -> types.CellType:
    return types.CellType()


def _fill_cell(cell: types.CellType, value: Any) -> None:
    cell.cell_contents = value
