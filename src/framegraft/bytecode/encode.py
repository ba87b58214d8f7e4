"""From canonical instructions to a code object of the running CPython."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable
from types import CodeType
from typing import Any

from .flow import NO_FALLTHROUGH, remove_unreachable, stack_depths, stack_effect
from .ir import Instruction
from .versions import VERSION

_VARARGS, _VARKEYWORDS = 0x04, 0x08  # CO_VARARGS, CO_VARKEYWORDS
_OPTIMIZED = 0x01  # CO_OPTIMIZED: a function
_LOCAL_OPS = frozenset(("LOAD_FAST", "STORE_FAST", "DELETE_FAST"))
_BY_VALUE = frozenset((int, str, bytes, bool, type(None), type(...)))


class Pool:
    """Constants, each once: told apart by exact type and value, and all but plain constants by identity."""

    def __init__(self, items: Iterable[Any] = ()) -> None:
        self.items: list[Any] = []
        self._index: dict[Any, int] = {}
        for item in items:
            self.add(item)

    def add(self, item: Any) -> int:
        key = (type(item), item) if type(item) in _BY_VALUE else _key(item)
        found = self._index.setdefault(key, len(self.items))
        if found == len(self.items):
            self.items.append(item)
        return found


class Names:
    """Names, each once."""

    def __init__(self, items: Iterable[str] = ()) -> None:
        self.index = {item: i for i, item in enumerate(items)}

    def add(self, item: str) -> int:
        return self.index.setdefault(item, len(self.index))


def _key(item: Any) -> Any:
    """A key that tells 0.0 from -0.0, 1 from True, and the same inside tuples; NaNs are told apart by identity."""
    kind = type(item)
    if kind in _BY_VALUE:
        return (kind, item)
    if kind is float and item == item:
        return (kind, item, math.copysign(1, item))
    if kind is complex and item == item:
        return (kind, item, math.copysign(1, item.real), math.copysign(1, item.imag))
    if kind is tuple:
        return (kind, tuple(_key(i) for i in item))
    return (kind, id(item))


class _Slots(dict):
    def __missing__(self, name: str) -> int:
        raise ValueError(f"no local, cell or free variable {name!r}")


class Layout:
    """The frame's slots: parameters and locals, cells that are no parameters, free variables; and the code's flags."""

    def __init__(
        self, locals_: Collection[str], params: Collection[str], cells: tuple, frees: tuple, no_make_cell: Collection[str], flags: int,
        entry: Instruction | None = None,
    ) -> None:
        self.entry = entry  # where the frame begins to be visible; None: at its start
        self.locals = locals_
        self.params = params
        self.flags = flags
        self.cells = cells
        self.frees = frees
        self.no_make_cell = frozenset(no_make_cell)
        known = frozenset(locals_)
        slots = [*locals_, *(c for c in cells if c not in known), *frees]
        self.slots = _Slots((name, i) for i, name in enumerate(slots))


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
    unseen: Collection[Instruction] = (),
) -> CodeType:
    """A code object that runs ``instructions``; what is not given comes from ``template``.

    ``argnames``: all parameters, positional, with no ``*args`` or ``**kwargs``. ``no_make_cell``: cell variables that the
    code installs with STORE_CELL. ``unseen``: instructions during which the frame is none for those who walk the stack
    (``sys._getframe``, ``f_back``, tracebacks, the level of a warning). Unreachable instructions are left
    out and ``index`` is filled in anew; nothing else of the instructions changes. ValueError for code that cannot be encoded,
    as ``verify`` would say.
    """
    body = remove_unreachable(instructions)
    if not body:
        raise ValueError("no instructions to encode")
    entry = None
    if unseen and VERSION.hides:
        body, entry = _moved_ahead(body, unseen)
    cells = template.co_cellvars if cellvars is None else tuple(cellvars)
    frees = template.co_freevars if freevars is None else tuple(freevars)
    made_anew = dict.fromkeys(inst.arg for inst in body if inst.op == "MAKE_CELL")
    cells += tuple(name for name in made_anew if name not in cells and name not in frees)
    no_make_cell = {*no_make_cell, *made_anew}
    flags = template.co_flags if flags is None else flags
    first = template.co_firstlineno if firstlineno is None else firstlineno
    if argnames is None:
        counts = template.co_argcount, template.co_posonlyargcount, template.co_kwonlyargcount
        stars = bool(template.co_flags & _VARARGS) + bool(template.co_flags & _VARKEYWORDS)
        params = list(template.co_varnames[: counts[0] + counts[2] + stars])
    else:
        counts, params = (len(argnames), 0, 0), list(argnames)
        flags &= ~(_VARARGS | _VARKEYWORDS)
    locals_ = Names(params)
    for inst in body:
        if inst.op in _LOCAL_OPS:
            locals_.add(inst.arg)
    varnames = tuple(locals_.index)
    # A function's first constant is its docstring.
    consts = Pool(template.co_consts[:1] if template.co_flags & _OPTIMIZED else ())
    names = Names()
    made = VERSION.assemble(body, Layout(varnames, params, cells, frees, no_make_cell, flags, entry), consts, names, first)
    fields = {
        "co_argcount": counts[0], "co_posonlyargcount": counts[1], "co_kwonlyargcount": counts[2], "co_nlocals": len(varnames),
        "co_flags": flags, "co_consts": tuple(consts.items), "co_names": tuple(names.index), "co_varnames": varnames,
        "co_name": template.co_name if name is None else name, "co_firstlineno": first, "co_freevars": frees, "co_cellvars": cells,
        "co_qualname": VERSION.qualname(template) if qualname is None else qualname,
    }
    return VERSION.replace(template, **{**fields, **made._asdict()})


def hiding(code: CodeType, functions: Collection[str]) -> CodeType:
    """``code`` whose frame is not seen either (see ``encode``) while it calls what has one of these names. Itself if it calls none."""
    if not VERSION.hides:
        return code
    instructions = VERSION.decode(code)
    found = _calls(instructions, functions)
    known = [inst for inst in instructions if 0 <= inst.offset < instructions[0].offset]
    return _anew(code, instructions, [*known, *found]) if found else code


def in_order(code: CodeType) -> CodeType:
    """``code`` with ``unseen`` calls where they were given, for people to read: it does the same. Itself if it has none."""
    if not VERSION.hides:
        return code
    instructions = VERSION.decode(code)
    offsets = [inst.offset for inst in instructions if inst.offset >= 0]
    return code if offsets == sorted(offsets) else _anew(code, instructions, ())


def _anew(code: CodeType, instructions: list[Instruction], unseen: Collection[Instruction]) -> CodeType:
    """``code`` with all its constants: some of them may be there to stay alive."""
    made = encode(instructions, code, unseen=unseen)
    kept = {id(const) for const in made.co_consts}
    return made.replace(co_consts=(*made.co_consts, *(const for const in code.co_consts if id(const) not in kept)))


def _moved_ahead(body: list[Instruction], unseen: Collection[Instruction]) -> tuple[list[Instruction], Instruction | None]:
    """The body with the ``unseen`` in front, and the instruction with which it begins now.

    CPython takes a frame that has not come to its code's RESUME for one that is still being set up, and shows it to nobody.
    """
    moved = set(map(id, unseen))
    if not any(id(inst) in moved for inst in body):
        return body, None
    first = _jump(body[0], body[0])
    ahead, rest, before = [first], [], first
    for inst in body:
        if id(inst) in moved and inst is not body[0]:
            if id(before) not in moved and before.op not in NO_FALLTHROUGH:
                rest.append(_jump(inst, inst))
            ahead.append(inst)
        else:
            if id(before) in moved and before.op not in NO_FALLTHROUGH:
                ahead.append(_again(inst) if inst.op == "RETURN_VALUE" else _jump(inst, before))
            rest.append(inst)
        before = inst
    return remove_unreachable([*ahead, *rest]), body[0]


def _calls(body: list[Instruction], functions: Collection[str]) -> list[Instruction]:
    """Calls of functions that variables of these names hold."""
    found: list[Instruction] = []
    loads = [inst for inst in body if inst.op in ("LOAD_GLOBAL", "LOAD_FAST") and inst.arg in functions]
    depths: list[Any] = stack_depths(body) if loads else []
    for load in loads:
        depth = depths[load.index]
        calls = (i for i in body[load.index + 1 :] if i.op == "CALL" and depths[i.index] == depth + 1 - stack_effect(i, False))
        found.extend(itertools.islice(calls, 1))
    return found


def _jump(target: Instruction, like: Instruction) -> Instruction:
    jump = _again(like)
    jump.op, jump.arg, jump.target = "JUMP", None, target
    return jump


def _again(inst: Instruction) -> Instruction:
    made = Instruction(inst.op, inst.arg)
    made.positions, made.handler = inst.positions, inst.handler
    return made
