"""Where a value of the traced frame came from: a frozen path from a root of the frame to an object.

A source prints as the expression a reader would write (``L['x'].weight``), names the accessor by which the guard program
reaches the object, and can emit bytecode that loads the object again.
"""

from __future__ import annotations

import collections
import functools
import itertools
import operator
import types
from typing import Any

from .. import _native
from ..bytecode.ir import Instruction


def instr(op: str, arg: Any = None, target: Instruction | None = None) -> Instruction:
    """A synthesised instruction (no place in the user's source)."""
    inst = Instruction(op, arg)
    inst.target = target
    return inst


class Source(_native.Path):
    """One step of a path: ``base`` (None for roots), the guard accessor ``access`` and its argument ``key``.

    Hashable by value (of keys that are objects pinned, or called: by identity); two equal sources name the same object at
    frame entry.
    """

    __slots__ = ()
    base: Source | None

    def __repr__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        """The path as a Python expression over L (locals), G (globals), B (builtins), C (closure)."""
        name = self._name
        if name is None:
            name = self._name = _NAMES[self.access](self)
        return name

    def item(self, sequence: Any, index: int) -> Source:
        """Item ``index`` of the list or tuple at this source, whatever ``__getitem__`` its class has."""
        if type(sequence) in (list, tuple):
            return Source("ITEM", index, self)
        return Source("BASEITEM", (list if isinstance(sequence, list) else tuple, index), self)

    def entry(self, mapping: dict, key: Any) -> Source:
        """The value at ``key`` of the dict at this source, whatever ``__getitem__`` its class has."""
        return Source("KEY" if type(mapping) is dict else "BASEKEY", key, self)

    def namespace(self, obj: Any) -> Source:
        """The ``__dict__`` of the object at this source, whatever ``__getattribute__`` or ``__dict__`` its class has."""
        return Source("DICT" if _plain_access(obj) and _native.shows_namespace(obj) else "BASEDICT", None, self)

    def attribute(self, obj: Any, name: str) -> Source:
        """An attribute that C code keeps (a slot), whatever ``__getattribute__`` or ``__getattr__`` the class has."""
        plain = _plain_access(obj) and not any("__getattr__" in base.__dict__ for base in type(obj).__mro__)
        return Source("ATTR", name, self) if plain else Source("PYCALL", _generic_getter(name), self)

    def function_field(self, name: str) -> Source:
        """An attribute of the function at this source. What has an accessor of its own is read where the function keeps it:
        an attribute look-up raises an audit event, which may run code of somebody's."""
        access = _FUNCTION_ACCESS.get(name)
        return Source("ATTR", name, self) if access is None else Source(access, None, self)

    def emit(self, load_pinned: Any) -> list[Instruction]:
        """Instructions that push the object. ``load_pinned(obj)`` gives those for a pinned object."""
        return _EMITTERS[self.access](self, load_pinned)


def _plain_access(obj: Any) -> bool:
    return not isinstance(type.__getattribute__(type(obj), "__getattribute__"), types.FunctionType)


class GenericGetter:
    """Accessor: an attribute as ``object.__getattribute__`` finds it."""

    def __init__(self, name: str) -> None:
        self.attribute = name
        self.__name__ = f"object.__getattribute__[{name}]"

    def __call__(self, obj: Any) -> Any:
        return object.__getattribute__(obj, self.attribute)


@functools.cache
def _generic_getter(name: str) -> GenericGetter:
    return GenericGetter(name)


_FUNCTION_FIELDS = {
    "FCODE": "__code__",
    "FDEFAULTS": "__defaults__",
    "FKWDEFAULTS": "__kwdefaults__",
    "FCLOSURE": "__closure__",
    "FGLOBALS": "__globals__",
    "FNOTES": "__annotations__",
    "FDICT": "__dict__",
    "CELLVAL": "cell_contents",
    "MFUNC": "__func__",
    "MSELF": "__self__",
    "DICT": "__dict__",
    "GRAD": "grad",
}

_FUNCTION_ACCESS = {_FUNCTION_FIELDS[access]: access for access in ("FCODE", "FDEFAULTS", "FKWDEFAULTS", "FCLOSURE", "FGLOBALS", "FNOTES")}


def _base_name(source: Source) -> str:
    assert source.base is not None
    return source.base.name


def _key_name(source: Source) -> str:
    base = source.base
    assert base is not None
    if base.access == "DICT" and isinstance(source.key, str) and source.key.isidentifier():
        return f"{_base_name(base)}.{source.key}"
    return f"{base.name}[{source.key!r}]"


def name_of(obj: Any, field: str = "__name__") -> str | None:
    """The name of a function, class, module or the like. None where there is none, or where code of the program would have to tell it."""
    if type(obj) is types.MethodType:
        obj = obj.__func__
    on_class = next((vars(base)[field] for base in type(obj).__mro__ if field in vars(base)), None)
    if hasattr(type(on_class), "__get__") and not isinstance(on_class, (types.GetSetDescriptorType, types.MemberDescriptorType)):
        return None
    try:
        found = object.__getattribute__(obj, field)
    except AttributeError:
        return None
    return found if type(found) is str else None


def _const_name(source: Source) -> str:
    obj = source.key
    return name_of(obj, "__qualname__") or name_of(obj) or f"<{type(obj).__name__}>"


_NAMES: dict[str, Any] = {
    "ARG": lambda s: f"L[{s.key[1]!r}]",
    "GLOBALS": lambda s: "G",
    "BUILTINS": lambda s: "B",
    "CELL": lambda s: f"C[{s.key[1]!r}]",
    "CELLOBJ": lambda s: f"C.cell({s.key[1]!r})",
    "FN": lambda s: "___fn",
    "CONST": _const_name,
    "KEY": _key_name,
    "ITEM": lambda s: f"{_base_name(s)}[{s.key}]",
    "BASEDICT": lambda s: f"namespace_of({_base_name(s)})",
    "BASEITEM": lambda s: f"{s.key[0].__name__}.__getitem__({_base_name(s)}, {s.key[1]})",
    "BASEKEY": lambda s: f"dict.__getitem__({_base_name(s)}, {s.key!r})",
    "TYPE": lambda s: f"type({_base_name(s)})",
    "TYPEATTR": lambda s: f"{_base_name(s)}.{s.key}",
    "RAWTYPEATTR": lambda s: f"{_base_name(s)}.__dict__[{s.key!r}]",
    "ATTR": lambda s: f"{_base_name(s)}.{s.key}",
    "MAPKEYAT": lambda s: f"list({_base_name(s)})[{s.key}]",
    "PYCALL": lambda s: f"{s.key.__name__}({_base_name(s)})",
    "SIZE": lambda s: f"{_base_name(s)}.size({s.key})",
    "STRIDE": lambda s: f"{_base_name(s)}.stride({s.key})",
    "PROXIED": lambda s: f"{s.key.__name__}({_base_name(s)})",
    "STATE": lambda s: "___global_state",
    "DRAWN": lambda s: s.key,
    "NONE": lambda s: "___frame",
}
for _access, _field in _FUNCTION_FIELDS.items():
    _NAMES[_access] = lambda s, field=_field: f"{_base_name(s)}.{field}"


def _emit_attr(name: str) -> Any:
    return lambda s, pin: [*s.base.emit(pin), instr("LOAD_ATTR", name)]


def _emit_key(s: Source, pin: Any) -> list[Instruction]:
    base = s.base
    assert base is not None
    if base.access == "GLOBALS":
        return [instr("LOAD_GLOBAL", s.key)]
    if base.access == "BUILTINS":
        return [instr("LOAD_GLOBAL", s.key)]
    if base.access == "FGLOBALS" and base.base is not None and base.base.access == "CONST":
        return [*pin(base.base.key.__globals__), *_load_key(s.key, pin), _getitem()]
    return [*base.emit(pin), *_load_key(s.key, pin), _getitem()]


def _load_key(key: Any, pin: Any) -> list[Instruction]:
    return [instr("LOAD_CONST", key)] if type(key) in (str, int, bool, float, bytes, type(None)) else pin(key)


def _getitem() -> Instruction:
    return instr("APPLY", (operator.getitem, 2))


def _emit_type(s: Source, pin: Any) -> list[Instruction]:
    assert s.base is not None
    return [*pin(type), *s.base.emit(pin), instr("CALL", (1, ()))]


def _emit_pycall(s: Source, pin: Any) -> list[Instruction]:
    assert s.base is not None
    return [*pin(s.key), *s.base.emit(pin), instr("CALL", (1, ()))]


def _emit_item(s: Source, pin: Any) -> list[Instruction]:
    assert s.base is not None
    return [*s.base.emit(pin), instr("LOAD_CONST", s.key), _getitem()]


def _emit_base_getitem(s: Source, pin: Any) -> list[Instruction]:
    assert s.base is not None
    cls, key = (dict, s.key) if s.access == "BASEKEY" else s.key
    return [*pin(cls), instr("LOAD_ATTR", "__getitem__"), *s.base.emit(pin), *_load_key(key, pin), instr("CALL", (2, ()))]


def key_at(mapping: dict, index: int) -> Any:
    """Called by transformed code: the key at a place of a dict's order."""
    order: Any = collections.OrderedDict if isinstance(mapping, collections.OrderedDict) else dict
    return next(itertools.islice(order.__iter__(mapping), index, None))


def _emit_key_at(s: Source, pin: Any) -> list[Instruction]:
    assert s.base is not None
    return [*pin(key_at), *s.base.emit(pin), instr("LOAD_CONST", s.key), instr("CALL", (2, ()))]


_MRO: Any = type.__dict__["__mro__"].__get__  # what a metaclass says of the order is left aside
_NAMESPACE: Any = type.__dict__["__dict__"].__get__


def class_attribute(cls: type, name: str) -> Any:
    """Called by transformed code: what a class or a base of it has under a name, with no descriptor or metaclass asked."""
    return next(_NAMESPACE(base)[name] for base in _MRO(cls) if name in _NAMESPACE(base))


def _emit_class_attribute(s: Source, pin: Any) -> list[Instruction]:
    assert s.base is not None
    return [*pin(class_attribute), *s.base.emit(pin), instr("LOAD_CONST", s.key), instr("CALL", (2, ()))]


def _emit_extent(s: Source, pin: Any) -> list[Instruction]:
    assert s.base is not None
    method = "size" if s.access == "SIZE" else "stride"
    return [*s.base.emit(pin), instr("LOAD_ATTR", method), instr("LOAD_CONST", s.key), instr("CALL", (1, ()))]


# Accessors that only differ in the code that loads them -> what the guard program knows.
GUARD_ACCESS = {"RAWTYPEATTR": "TYPEATTR", "BASEDICT": "DICT", "BASEITEM": "ITEM", "BASEKEY": "KEY"}

_EMITTERS: dict[str, Any] = {
    "ARG": lambda s, pin: [instr("LOAD_FAST", s.key[1])],
    "CELL": lambda s, pin: [instr("LOAD_DEREF", s.key[1])],
    "DRAWN": lambda s, pin: [instr("LOAD_FAST", s.key)],  # what the frame has drawn of a generator of random numbers
    "CELLOBJ": lambda s, pin: [instr("LOAD_CLOSURE", s.key[1])],
    "CONST": lambda s, pin: pin(s.key),
    "KEY": _emit_key,
    "ITEM": _emit_item,
    "TYPE": _emit_type,
    "TYPEATTR": lambda s, pin: [*s.base.emit(pin), instr("LOAD_ATTR", s.key)],
    "RAWTYPEATTR": _emit_class_attribute,
    "ATTR": lambda s, pin: [*s.base.emit(pin), instr("LOAD_ATTR", s.key)],
    "PYCALL": _emit_pycall,
    "SIZE": _emit_extent,
    "STRIDE": _emit_extent,
    "PROXIED": _emit_pycall,
    "BASEITEM": _emit_base_getitem,
    "BASEDICT": lambda s, pin: [*pin(_native.namespace_of), *s.base.emit(pin), instr("CALL", (1, ()))],
    "BASEKEY": _emit_base_getitem,
    "MAPKEYAT": _emit_key_at,
}
for _access, _field in _FUNCTION_FIELDS.items():
    _EMITTERS[_access] = _emit_attr(_field)


def local(index: int, name: str) -> Source:
    return Source("ARG", (index, name))


def closure_cell(index: int, name: str) -> Source:
    return Source("CELLOBJ", (index, name))


GLOBALS = Source("GLOBALS")
BUILTINS = Source("BUILTINS")


def pinned(obj: Any) -> Source:
    """An object whose identity a guard assures: paths below it start at the object itself."""
    return Source("CONST", obj)
