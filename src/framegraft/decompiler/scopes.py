"""Names: which are local, global or free, and what must be declared for the compiler to see them so."""

from __future__ import annotations

import ast
import keyword
from typing import TYPE_CHECKING, Any

from ..errors import DecompileError
from .inlined import inlined_name

if TYPE_CHECKING:
    from .walker import Walker

CO_OPTIMIZED, CO_VARARGS, CO_VARKEYWORDS, CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR = 0x1, 0x4, 0x8, 0x20, 0x80, 0x200
CO_FUTURE_ANNOTATIONS = 0x1000000


def parameter_count(code: Any) -> int:
    return code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & CO_VARARGS) + bool(code.co_flags & CO_VARKEYWORDS)


class Scopes:
    """The walker's part for names."""

    def init_scopes(self: Walker) -> None:  # type: ignore[misc]
        code = self.code
        stem = code.co_name.lstrip("_")
        outer = self.parent.private if self.parent else ""
        self.private = outer if code.co_flags & CO_OPTIMIZED else f"_{stem}__" if stem else ""  # prefix of mangled names
        self.is_function = bool(code.co_flags & CO_OPTIMIZED)
        self.bound: set[str] = set(code.co_varnames[: parameter_count(code)])
        self.global_stores: set[str] = set()
        self.free_stores: set[str] = set()
        self.names_seen: set[str] = set()
        self.cell_names = set(code.co_cellvars)  # variables that the source must have, for functions inside to refer to

    def cells_used(self: Walker) -> set[str]:  # type: ignore[misc]
        """Variables that instructions refer to by their cells, but for those whose cells are given."""
        used = {inst.arg for inst in self.g.insts if inst.op.endswith(("_DEREF", "_CLOSURE"))} & set(self.code.co_cellvars)
        return used - {inst.arg for inst in self.g.insts if inst.op == "STORE_CELL"}

    def name(self: Walker, name: str) -> str:  # type: ignore[misc]
        """A name as the source has it; DecompileError for one that cannot stand there."""
        self.names_seen.add(name)
        name = self.unmangled(inlined_name(name))
        if name in (".0", ".type_params") or name.isidentifier() and not keyword.iskeyword(name):
            return name
        if name in ("None", "True", "False"):
            raise DecompileError(f"a variable is named {name}")
        raise DecompileError(f"{name!r} is no name that source can have")

    def unmangled(self: Walker, name: str) -> str:  # type: ignore[misc]
        """``__x`` for ``_Class__x`` inside of a class."""
        if self.private and name.startswith(self.private) and not name.endswith("__"):
            return name[len(self.private) - 2 :]
        return name

    def note_store(self: Walker, inst: Any) -> None:  # type: ignore[misc]
        op, name = inst.op, inst.arg
        if op.endswith("_GLOBAL"):
            self.global_stores.add(name)
        elif op.endswith("_DEREF") and name in self.code.co_freevars:
            self.free_stores.add(name)
        else:
            self.bound.add(name)

    def const_index(self: Walker, value: Any) -> int:  # type: ignore[misc]
        for at, item in enumerate(self.code.co_consts):
            if item is value:
                return at
        raise DecompileError("a constant without a literal")

    def declarations(self: Walker) -> list[ast.stmt]:  # type: ignore[misc]
        """``global`` and ``nonlocal`` statements, and the declaration of locals that are never stored."""
        code = self.code
        out: list[ast.stmt] = []
        globals_ = set(self.global_stores)
        loaded_globals, loaded_locals, used = set(), set(), set()
        for inst in self.g.insts:
            op = inst.op
            if op == "LOAD_GLOBAL":
                loaded_globals.add(inst.arg)
            elif op == "LOAD_FAST":
                loaded_locals.add(inst.arg)
            elif op.endswith(("_DEREF", "_CLOSURE")):
                used.add(inst.arg)
        outer = self.parent
        while outer is not None:
            if outer.is_function:
                globals_ |= loaded_globals & outer.local_names()
            outer = outer.parent
        if globals_:
            out.append(ast.Global(sorted(self.name(n) for n in globals_)))
        free = set(self.free_stores)
        if self.is_function:
            implied = {"__class__", "__classdict__"} if "super" in loaded_globals | loaded_locals | used else {"__classdict__"}
            free |= {n for n in code.co_freevars if n not in used and n not in implied}
        if free:
            out.append(ast.Nonlocal(sorted(self.name(n) for n in free)))
        if self.is_function:
            for name in sorted(self.never_bound(loaded_locals)):
                out.append(ast.AnnAssign(ast.Name(self.name(name), ast.Store()), ast.Constant(None), None, 1))
        return out

    def never_bound(self: Walker, loaded: set[str]) -> set[str]:  # type: ignore[misc]
        """Locals (``loaded``, and those with cells) that no statement binds."""
        return (loaded | self.cell_names) - self.bound - set(map(inlined_name, self.bound))

    def local_names(self: Walker) -> set[str]:  # type: ignore[misc]
        code = self.code
        return {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
