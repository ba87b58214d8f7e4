"""From canonical instructions to a code object of the running CPython."""

from __future__ import annotations

from collections.abc import Collection
from types import CodeType
from typing import Any

from .flow import remove_unreachable
from .ir import Instruction
from .versions import assemble


class Pool:
    """Constants or names, each once. Constants are told apart by exact type and value; odd objects by identity."""

    def __init__(self, items: tuple = ()) -> None:
        self.items: list[Any] = []
        self._index: dict[Any, int] = {}
        for item in items:
            self.add(item)

    def add(self, item: Any) -> int:
        key = _key(item)
        found = self._index.get(key)
        if found is None:
            found = self._index[key] = len(self.items)
            self.items.append(item)
        return found


def _key(item: Any) -> Any:
    kind = type(item)
    if kind in (float, complex):
        return (kind, repr(item))
    if kind is tuple:
        return (kind, tuple(_key(i) for i in item))
    if kind in (int, str, bytes, bool, type(None), type(...)):
        return (kind, item)
    return (kind, id(item))


def encode(
    instructions: list[Instruction],
    template: CodeType,
    *,
    name: str | None = None,
    qualname: str | None = None,
    argnames: list[str] | None = None,
    cellvars: tuple | None = None,
    freevars: tuple | None = None,
    flags: int | None = None,
    firstlineno: int | None = None,
    no_make_cell: Collection[str] = (),
) -> CodeType:
    """A code object that runs ``instructions``; what is not given comes from ``template``.

    ``argnames``: all parameters, positional. ``no_make_cell``: cell variables that the code installs with STORE_CELL.
    """
    body = remove_unreachable(list(instructions))
    if not body:
        raise ValueError("no instructions to encode")
    cells = template.co_cellvars if cellvars is None else tuple(cellvars)
    frees = template.co_freevars if freevars is None else tuple(freevars)
    if argnames is None:
        argcount, posonly, kwonly = template.co_argcount, template.co_posonlyargcount, template.co_kwonlyargcount
        count = argcount + kwonly + bool(template.co_flags & 4) + bool(template.co_flags & 8)
        params = list(template.co_varnames[:count])
    else:
        argcount, posonly, kwonly, params = len(argnames), 0, 0, list(argnames)
    varnames = Pool(tuple(params))
    for inst in body:
        if inst.op in ("LOAD_FAST", "STORE_FAST", "DELETE_FAST"):
            varnames.add(inst.arg)
    layout = Layout(varnames.items, cells, frees, set(no_make_cell), template.co_flags if flags is None else flags)
    consts = Pool((template.co_consts[0],) if template.co_consts else ())
    names = Pool()
    first = template.co_firstlineno if firstlineno is None else firstlineno
    made = assemble(body, layout, consts, names, first)
    code_flags = layout.flags & ~0x10 | (0x10 if frees and layout.flags & 0x10 else 0)
    return template.replace(
        co_argcount=argcount, co_posonlyargcount=posonly, co_kwonlyargcount=kwonly, co_nlocals=len(varnames.items),
        co_stacksize=made.stacksize, co_flags=code_flags, co_code=made.code, co_consts=tuple(consts.items),
        co_names=tuple(names.items), co_varnames=tuple(varnames.items), co_filename=template.co_filename,
        co_name=template.co_name if name is None else name, co_qualname=template.co_qualname if qualname is None else qualname,
        co_firstlineno=first, co_linetable=made.linetable, co_exceptiontable=made.exceptiontable, co_freevars=frees,
        co_cellvars=cells,
    )


class Layout:
    """The frame's slots: locals, cells that are no parameters, free variables."""

    def __init__(self, varnames: list[str], cells: tuple, frees: tuple, no_make_cell: set[str], flags: int) -> None:
        self.flags = flags
        self.no_make_cell = no_make_cell
        self.cells = cells
        self.frees = frees
        self.fast = {n: i for i, n in enumerate(varnames)}
        plus = list(varnames) + [c for c in cells if c not in self.fast] + list(frees)
        self.plus = {n: i for i, n in enumerate(plus)}
        for index, free in enumerate(frees):
            self.plus[free] = len(plus) - len(frees) + index
