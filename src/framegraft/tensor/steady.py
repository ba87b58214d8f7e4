"""Functions that are traced now and called later, in a backward pass: what they look at must be what they will find then.

No guard holds between a call and its backward pass: the program may set a global, store a variable anew or append to a list in
between, and eager mode's hook sees that. So a function is steady only if nothing that it reads can change: its own arguments,
constants and tensors of variables that are stored no more, and functions of torch that tell nothing of torch's state.
"""

from __future__ import annotations

import builtins
import math
import operator
import types
from collections.abc import Iterator
from typing import Any

import torch

from ..bytecode.flow import reachable
from ..interp.frame import instructions_of
from ..interp.regions import known_trackers
from ..interp.state import GlobalScope, realize
from ..model.value import (
    MISSING,
    CellVariable,
    ConstantVariable,
    FunctionVariable,
    LazyVariable,
    ObjectVariable,
    SymbolicVariable,
    TensorVariable,
    TupleVariable,
    VariableTracker,
)
from ..semantics.wrapping import CONSTANT_TYPES

_STORES = ("STORE_DEREF", "DELETE_DEREF")
#: Instructions that look at something of which the walk knows nothing.
_OPAQUE = frozenset(("IMPORT_NAME", "IMPORT_FROM", "LOAD_NAME", "LOAD_BUILD_CLASS", "LOAD_SUPER_ATTR"))
_BUILTINS = frozenset((
    "abs", "all", "any", "bool", "complex", "dict", "divmod", "enumerate", "filter", "float", "int", "isinstance", "len", "list", "map",
    "max", "min", "pow", "range", "reversed", "round", "set", "slice", "sorted", "str", "sum", "tuple", "zip", "ValueError", "TypeError",
    "RuntimeError", "AssertionError"))
_LIBRARIES = (torch, torch.nn, torch.nn.functional, torch.functional, torch.linalg, torch.fft, torch.special, math)
_PROPERTIES = frozenset(("shape", "dtype", "device", "ndim", "layout", "T", "mT", "H", "mH", "real", "imag"))
#: Beginnings of what tells of torch's state, or changes it; and what begins so and does not.
_ASKING = ("is_", "get_", "set_", "are_", "_", "initial_", "seed", "default_generator", "manual_seed")
_TELLING = frozenset((
    "is_tensor", "is_floating_point", "is_complex", "is_signed", "is_contiguous", "is_same_size", "is_grad_enabled", "set_grad_enabled"))


def is_steady(tx: Any, fn: VariableTracker) -> bool:
    """Whether a call of ``fn`` at any later time does what a call now would do (grad mode is left to the caller)."""
    return _Walk(tx).function(realize(fn, tx.state))


def holds_what_stays(tx: Any, fn: FunctionVariable) -> bool:
    """Whether the variables around a function of the trace are stored no more, and hold nothing that can change."""
    return _Walk(tx, looks_around=True).function(fn)


def may_be_stored_later(tx: Any, fn: VariableTracker) -> bool:
    """Whether the frames of the trace may store a variable around a function anew behind the current call."""
    cells = fn.closure if isinstance(fn, FunctionVariable) else []
    if isinstance(fn, ObjectVariable) and fn.source is not None and type(fn.value) is types.FunctionType:
        source = fn.source.child("FCLOSURE")  # behind a break, the trace meets a function of its own as one from outside
        cells = [realize(LazyVariable(cell, source.child("ITEM", i)), tx.state) for i, cell in enumerate(fn.value.__closure__ or ())]
    return any(isinstance(cell, CellVariable) and _Walk(tx).is_stored_later(cell) for cell in cells)


def tells_none(tx: Any, fn: VariableTracker) -> bool:
    """Whether a steady function may find that it was given None and go on, where another fails."""
    walk = _Walk(tx)
    walk.function(realize(fn, tx.state))
    codes = [seen.code if isinstance(seen, FunctionVariable) else getattr(seen.value, "__code__", None) for seen in walk.seen.values()]
    return any(_compares_with_none(inst) for code in codes if code is not None for inst in _instructions(code))


def _compares_with_none(inst: Any) -> bool:
    if inst.op == "LOAD_GLOBAL":
        return inst.arg in ("isinstance", "type")
    return inst.op == "POP_JUMP_IF" and "none" in inst.arg or inst.op == "APPLY" and inst.arg[0] in (operator.is_, operator.is_not)


class _Walk:
    def __init__(self, tx: Any, looks_around: bool = False) -> None:
        self.tx = tx
        self.looks_around = looks_around  # names and attributes have the meaning that they will have
        self.seen: dict[int, Any] = {}

    def function(self, fn: VariableTracker) -> bool:
        if id(fn) in self.seen:
            return True
        self.seen[id(fn)] = fn
        if isinstance(fn, FunctionVariable):
            given = [value for value in (fn.defaults, fn.kwdefaults) if value is not None]
            around = self.looks_around or _looks_at_little(fn.code, fn.globals_of)
            return around and not fn.attrs and all(map(self.value, given)) and all(map(self.cell, fn.closure))
        value = fn.value if isinstance(fn, ObjectVariable) else None
        if self.looks_around and value is not MISSING:
            return True  # the very object
        if type(value) is types.BuiltinFunctionType:
            return _is_librarys(value)
        if type(value) is not types.FunctionType or value.__closure__ or value.__dict__:
            return False
        given = [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
        scope = self.tx.state.scopes.get(id(value.__globals__))
        return all(type(v) in CONSTANT_TYPES for v in given) and _looks_at_little(value.__code__, scope or value.__globals__)

    def value(self, tracker: VariableTracker) -> bool:
        tracker = realize(tracker, self.tx.state)
        if isinstance(tracker, (ConstantVariable, SymbolicVariable)):
            return True
        if isinstance(tracker, TensorVariable):
            return tracker.cls in (torch.Tensor, torch.nn.Parameter)
        if type(tracker) is TupleVariable:
            return all(map(self.value, tracker.items))
        return self.function(tracker)

    def cell(self, cell: CellVariable) -> bool:
        held = cell.source is None and isinstance(cell.contents, VariableTracker)
        return held and not self.is_stored_later(cell) and self.value(cell.contents)

    def is_stored_later(self, cell: CellVariable) -> bool:
        """Whether a frame or function of the trace may still store the variable."""
        state = self.tx.state
        for frame in [*state.frames, *(g.frame for g in state.generators if not g.finished)]:
            for name, held in frame.cells.items():
                if held is cell and (_stores_ahead(frame, name) or _stores_inside(frame.code, name)):
                    return True
        holders = [*known_trackers(state).values(), *self.seen.values()]
        return any(isinstance(fn, FunctionVariable) and any(
            held is cell and (_stores(fn.code, name) or _stores_inside(fn.code, name))
            for name, held in zip(fn.code.co_freevars, fn.closure, strict=False)) for fn in holders)


def _stores_ahead(frame: Any, name: str) -> bool:
    """Whether the rest of a frame that waits for the current call may store the variable."""
    ahead = (frame.instructions[index] for index in reachable(frame.instructions, [frame.ip, frame.inst.index]))
    return any(inst.op in _STORES and inst.arg == name for inst in ahead)


def _stores(code: types.CodeType, name: str) -> bool:
    return any(inst.op in _STORES and inst.arg == name for inst in instructions_of(code))


def _stores_inside(code: types.CodeType, name: str) -> bool:
    """Whether a function that is made in the code, or in such a function, stores the variable of the code's."""
    inner = [const for const in code.co_consts if type(const) is types.CodeType and name in const.co_freevars]
    return any(_stores(const, name) or _stores_inside(const, name) for const in inner)


def _looks_at_little(code: types.CodeType, scope: GlobalScope | dict[str, Any]) -> bool:
    """Whether all names and attributes in the code, and in functions that it makes, are of the few whose meaning stays."""
    found, stored = (scope.real, scope.stores) if isinstance(scope, GlobalScope) else (scope, {})
    for inst in _instructions(code):
        if inst.op in _OPAQUE or inst.op.startswith(("LOAD_FROM_DICT", "LOAD_LOCALS")):
            return False
        if inst.op == "LOAD_GLOBAL":
            name = inst.arg
            if name in stored:
                return False
            if name in found:
                if not _is_librarys(found[name]):
                    return False
            elif name not in _BUILTINS or not hasattr(builtins, name):
                return False
        elif inst.op == "LOAD_ATTR" and not _tells_nothing(inst.arg):
            return False
    return True


def _instructions(code: types.CodeType) -> Iterator[Any]:
    yield from instructions_of(code)
    for const in code.co_consts:
        if type(const) is types.CodeType:
            yield from _instructions(const)


def _is_librarys(value: Any) -> bool:
    """A module of torch's operations, or one of these."""
    if type(value) is types.ModuleType:
        return any(value is library for library in _LIBRARIES)
    if isinstance(value, (torch.dtype, torch.device)):
        return True
    name = getattr(value, "__name__", None)
    if not callable(value) or not isinstance(name, str) or not _tells_nothing(name):
        return False
    return any(vars(library).get(name) is value for library in _LIBRARIES)


def _tells_nothing(name: str) -> bool:
    """Whether what has this name, in a library or of a tensor, is a function of its arguments, or a property that stays."""
    if name in _PROPERTIES or name in _TELLING:
        return True
    if name.startswith(_ASKING):
        return False
    found = [vars(library)[name] for library in _LIBRARIES if name in vars(library)]
    found += [getattr(torch.Tensor, name)] if hasattr(torch.Tensor, name) else []
    return bool(found) and all(callable(v) or isinstance(v, (torch.dtype, float)) or any(v is m for m in _LIBRARIES) for v in found)
