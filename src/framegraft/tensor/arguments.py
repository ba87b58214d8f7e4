"""Functions as arguments of ``autograd.Function.apply``: how the graph makes them anew in each call.

One from outside that is the same in each call is passed as it is. Others are copies: the same code, with what the variables around
it hold now, tensors among that as inputs of the node. Nobody can tell a copy while ``forward`` runs. One that is kept for the
backward pass must be a function that the trace has made, held by nobody else, whose variables are stored no more.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import GraphBreak
from ..interp.regions import needed_trackers
from ..interp.state import realize
from ..model.source import Source
from ..model.value import (
    CellVariable,
    ChangingVariable,
    ConstantVariable,
    FunctionVariable,
    LazyVariable,
    ObjectVariable,
    SymbolicVariable,
    TensorVariable,
    TupleVariable,
    VariableTracker,
)
from . import steady

_AS_THEY_ARE = (types.FunctionType, types.BuiltinFunctionType, type)

Recipe = Callable[[Sequence[Any], dict[int, Any]], Any]  # (values of ``FunctionArguments.values``, what was made so far) -> the object


class _Likewise:
    """Guard: a function that has nothing but its code and variables around it, under the same names."""

    __name__ = "plain_function_like"

    def __init__(self, like: types.FunctionType) -> None:
        self.names = _names(like)

    def __call__(self, fn: types.FunctionType) -> bool:
        return not fn.__dict__ and not fn.__defaults__ and not fn.__kwdefaults__ and not fn.__annotations__ and _names(fn) == self.names


def _names(fn: types.FunctionType) -> tuple:
    return (fn.__name__, fn.__qualname__, fn.__module__, fn.__doc__)


class FunctionArguments:
    """The functions among ``inputs``: their ``places``, the ``others``, and the tensors and numbers, ``values``, that making them takes."""

    def __init__(self, tx: Any, inputs: list) -> None:
        self.tx = tx
        self.values: list[VariableTracker] = []
        self.copies: dict[int, VariableTracker] = {}
        self.places = [i for i, a in enumerate(inputs) if _is_function(a)]
        self.others = [a for a in inputs if not _is_function(a)]
        self.recipes = [self.recipe(inputs[i]) for i in self.places]
        self.needed = needed_trackers(tx.state) if self.copies else {}

    def build(self, values: Sequence[Any]) -> list[Any]:
        made: dict[int, Any] = {}
        return [recipe(values, made) for recipe in self.recipes]

    def check_kept(self, kept: dict[int, VariableTracker]) -> None:
        """Break where ``forward`` keeps a copy that differs from the original, or will."""
        for fn in self.copies.values():
            if id(fn) in kept and (id(fn) in self.needed or not isinstance(fn, FunctionVariable)):
                raise _refusal("that is kept for the backward pass, and held elsewhere, too,")
            if id(fn) in kept and isinstance(fn, FunctionVariable) and not steady.holds_what_stays(self.tx, fn):
                raise _refusal("that is kept for the backward pass, and whose variables may change before,")

    def recipe(self, tracker: VariableTracker) -> Recipe:
        tracker = realize(tracker, self.tx.state)
        if type(tracker) is ConstantVariable:
            value = tracker.value
            return lambda values, made: value
        if isinstance(tracker, (TensorVariable, SymbolicVariable, ChangingVariable)):
            place = len(self.values)
            self.values.append(tracker)
            return lambda values, made: values[place]
        if type(tracker) is TupleVariable:
            items = [self.recipe(i) for i in tracker.items]
            return lambda values, made: tuple([item(values, made) for item in items])
        if isinstance(tracker, FunctionVariable):
            return self.copy(tracker)
        if _is_function(tracker):
            return self.from_outside(tracker)
        raise _refusal(f"with a {tracker.python_type().__name__} in a variable around it")

    def from_outside(self, fn: Any) -> Recipe:
        value, guards = fn.value, self.tx.state.guards
        if id(value) in self.tx.state.stand_ins:
            raise _refusal("of a class made in the trace, or such a class,")
        if fn.source is None or fn.source.root().access not in ("ARG", "CELLOBJ") or type(value) is not types.FunctionType:
            guards.pin(fn.source or Source("CONST", value), value)
            return lambda values, made: value
        if not _Likewise(value)(value):  # maybe another one in each call
            raise _refusal("that is a parameter, and has defaults or attributes,")
        guards.add(fn.source, "TYPE", types.FunctionType)
        guards.add(fn.source.child("FCODE"), "ID", value.__code__)
        guards.add(fn.source, "PY", _Likewise(value))
        cells = [realize(LazyVariable(cell, fn.source.child("FCLOSURE").child("ITEM", i)), self.tx.state)
                 for i, cell in enumerate(value.__closure__ or ())]
        return self.made_of(fn, value.__code__, value.__globals__, _names(value), cells)

    def copy(self, fn: FunctionVariable) -> Recipe:
        if fn.defaults is not None or fn.kwdefaults is not None or fn.annotations is not None or fn.attrs:
            raise _refusal("with defaults or attributes")
        scope = fn.globals_of.real
        return self.made_of(fn, fn.code, scope, (fn.name, fn.qualname, scope.get("__name__"), None), fn.closure)

    def made_of(self, fn: VariableTracker, code: types.CodeType, scope: dict, names: tuple, cells: list) -> Recipe:
        if id(fn) in self.copies:
            return lambda values, made: made[id(fn)]
        self.copies[id(fn)] = fn
        contents = [(id(cell), self.inside(cell)) for cell in cells]
        name, qualname, module, doc = names

        def make(values: Sequence[Any], made: dict[int, Any]) -> types.FunctionType:
            fresh = [made.setdefault(key, types.CellType()) for key, _ in contents]
            function = made[id(fn)] = types.FunctionType(code, scope, name, None, tuple(fresh))
            function.__qualname__, function.__module__ = qualname, module
            if doc is not None:
                function.__doc__ = doc
            for cell, (_, recipe) in zip(fresh, contents, strict=True):
                if recipe is not None:
                    cell.cell_contents = recipe(values, made)
            return function

        return make

    def inside(self, cell: Any) -> Recipe | None:
        assert isinstance(cell, CellVariable)
        return self.recipe(cell.contents) if isinstance(cell.contents, VariableTracker) else None


def _is_function(tracker: VariableTracker) -> bool:
    return isinstance(tracker, FunctionVariable) or isinstance(tracker, ObjectVariable) and type(tracker.value) in _AS_THEY_ARE


def _refusal(what: str) -> GraphBreak:
    return GraphBreak("untraceable_call", f"a function {what} as an argument of autograd.Function.apply")
