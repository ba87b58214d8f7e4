"""Functions, and others of which a graph's code cannot tell the type, as arguments of the program's own functions that a graph calls
(``autograd.Function.apply``, ``framegraft.allow_in_graph``): how the graph makes them anew in each call.

One from outside that is the same in each call is passed as it is. Others are copies: the same code, with what the variables around
it hold now, tensors among that as inputs of the node. Nobody can tell a copy while ``forward`` runs. One that is kept for the
backward pass must be a function that the trace has made, held by nobody else, whose variables are stored no more.

FX writes a torch.Size and a named tuple as a plain tuple, and the member of an IntEnum as a number: these are made anew, too, or, as an
enumeration's members, are the very objects.
"""

from __future__ import annotations

import enum
import types
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

import torch

from ..errors import GraphBreak
from ..interp.state import realize
from ..model.source import Source
from ..model.value import (
    CellVariable,
    ChangingVariable,
    ConstantVariable,
    DictVariable,
    FunctionVariable,
    LazyVariable,
    ListVariable,
    ObjectVariable,
    SizeVariable,
    SymbolicVariable,
    TensorVariable,
    TupleVariable,
    VariableTracker,
)
from .running import run_node

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
    """What the node has to make of ``inputs``: their ``places``, the ``others``, and the tensors and numbers, ``values``, that it takes."""

    def __init__(self, tx: Any, inputs: list) -> None:
        self.tx = tx
        self.values: list[VariableTracker] = []
        self.copies: dict[int, VariableTracker] = {}
        self.places = [i for i, a in enumerate(inputs) if self.is_made(a)]
        self.others = [a for i, a in enumerate(inputs) if i not in self.places]
        self.recipes = [self.recipe(inputs[i]) for i in self.places]

    def is_made(self, tracker: VariableTracker) -> bool:
        """Whether FX would hand over something else, or nothing at all, where it is an argument of the node."""
        tracker = realize(tracker, self.tx.state)
        if isinstance(tracker, ConstantVariable):
            return _holds_size(tracker.value)
        if isinstance(tracker, SizeVariable) or _is_function(tracker) or _is_named_tuple(tracker):
            return True
        if isinstance(tracker, (ListVariable, TupleVariable)):
            return any(map(self.is_made, tracker.items))
        return isinstance(tracker, DictVariable) and any(self.is_made(item) for _, item in tracker.items.values())

    def build(self, values: Sequence[Any]) -> list[Any]:
        return _build(self.recipes, values)

    def takes_back(self, fn: Any) -> Any:
        """A function for a node, which calls ``fn`` with the arguments in their places; ``fn`` itself where there is nothing to make."""
        places, count, recipes = self.places, len(self.others), self.recipes  # the graph must not hold the trace
        if not places:
            return fn

        def call(*args: Any, **kwargs: Any) -> Any:
            arguments = list(args[:count])
            for place, made in zip(places, _build(recipes, args[count:]), strict=True):
                arguments.insert(place, made)
            return fn(*arguments, **kwargs)

        call.__name__ = call.__qualname__ = getattr(fn, "__name__", "call")
        return call

    def recipe(self, tracker: VariableTracker) -> Recipe:
        tracker = realize(tracker, self.tx.state)
        if type(tracker) is ConstantVariable:
            value = tracker.value
            return lambda values, made: value
        if isinstance(tracker, (TensorVariable, SymbolicVariable, ChangingVariable)):
            place = len(self.values)
            self.values.append(tracker)
            return lambda values, made: values[place]
        if isinstance(tracker, (TupleVariable, ListVariable)):
            return self.sequence(tracker, tracker.python_type(), tracker.items)
        if _is_named_tuple(tracker):
            return self.sequence(tracker, tracker.cls, tracker.payload.items)
        if isinstance(tracker, DictVariable) and tracker.source is None and tracker.cls is dict:
            entries = {key: self.recipe(item) for key, (_, item) in tracker.items.items()}
            return lambda values, made: {key: item(values, made) for key, item in entries.items()}
        if isinstance(tracker, FunctionVariable):
            return self.copy(tracker)
        if _is_function(tracker):
            return self.from_outside(tracker)
        raise refusal(f"with a {tracker.python_type().__name__} in a variable around it")

    def sequence(self, tracker: VariableTracker, cls: Any, items: list[VariableTracker]) -> Recipe:
        recipes = [self.recipe(item) for item in items]
        if cls in (tuple, list, torch.Size):
            return lambda values, made: cls([item(values, made) for item in recipes])
        odd = id(cls) in self.tx.state.stand_ins or hasattr(cls, "n_sequence_fields")  # the latter is a struct sequence of C's
        plain = isinstance(tracker, ObjectVariable) and not tracker.attrs and tracker.namespace is None
        if odd or not plain or tracker.source is not None and cls.__dictoffset__:  # it may have attributes
            raise GraphBreak("untraceable_call", f"a {cls.__name__} as an argument of autograd.Function.apply")
        return lambda values, made: tuple.__new__(cls, [item(values, made) for item in recipes])

    def from_outside(self, fn: Any) -> Recipe:
        value, guards = fn.value, self.tx.state.guards
        if id(value) in self.tx.state.stand_ins:
            raise refusal("of a class made in the trace, or such a class,")
        if fn.source is None or fn.source.root().access not in ("ARG", "CELLOBJ") or type(value) is not types.FunctionType:
            guards.pin(fn.source or Source("CONST", value), value)
            return lambda values, made: value
        if not _Likewise(value)(value):  # maybe another one in each call
            raise refusal("that is a parameter, and has defaults or attributes,")
        guards.add(fn.source, "TYPE", types.FunctionType)
        guards.add(fn.source.child("FCODE"), "ID", value.__code__)
        guards.add(fn.source, "PY", _Likewise(value))
        cells = [realize(LazyVariable(cell, fn.source.child("FCLOSURE").child("ITEM", i)), self.tx.state)
                 for i, cell in enumerate(value.__closure__ or ())]
        return self.made_of(fn, value.__code__, value.__globals__, _names(value), cells)

    def copy(self, fn: FunctionVariable) -> Recipe:
        if fn.defaults is not None or fn.kwdefaults is not None or fn.annotations is not None or fn.attrs:
            raise refusal("with defaults or attributes")
        scope = fn.globals_of.real
        return self.made_of(fn, fn.code, scope, (fn.name, fn.qualname, scope.get("__name__"), None), fn.closure)

    def made_of(self, fn: VariableTracker, code: types.CodeType, scope: dict, names: tuple, cells: list) -> Recipe:
        known = id(fn)
        if known in self.copies:
            return lambda values, made: made[known]
        self.copies[known] = fn
        contents = [(id(cell), self.inside(cell)) for cell in cells]
        name, qualname, module, doc = names

        def make(values: Sequence[Any], made: dict[int, Any]) -> types.FunctionType:
            fresh = [made.setdefault(key, types.CellType()) for key, _ in contents]
            function = made[known] = types.FunctionType(code, scope, name, None, tuple(fresh))
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


def _build(recipes: list[Recipe], values: Sequence[Any]) -> list[Any]:
    made: dict[int, Any] = {}
    return [recipe(values, made) for recipe in recipes]


def call_in_graph(tx: Any, fn: Any, args: list, kwargs: dict) -> VariableTracker:
    """One node that calls ``fn``, a function of the program's, with what the program passes."""
    given = FunctionArguments(tx, [realize(a, tx.state) for a in args])
    if any(map(given.is_made, kwargs.values())):
        raise GraphBreak("untraceable_call", f"{getattr(fn, '__name__', fn)} with a keyword argument that a graph's code cannot spell")
    return run_node(tx, "call_function", given.takes_back(fn), [*given.others, *given.values], kwargs)


def _is_function(tracker: VariableTracker) -> bool:
    """Or a class, or the member of an enumeration."""
    if isinstance(tracker, ObjectVariable):
        return type(tracker.value) in _AS_THEY_ARE or issubclass(type(tracker.value), enum.Enum)
    return isinstance(tracker, FunctionVariable)


def _is_named_tuple(tracker: VariableTracker) -> TypeGuard[Any]:
    """An instance of a class of tuples."""
    return isinstance(tracker, ObjectVariable) and isinstance(tracker.payload, TupleVariable)


def _holds_size(value: Any) -> bool:
    return type(value) is torch.Size or type(value) is tuple and any(map(_holds_size, value))


def refusal(what: str) -> GraphBreak:
    return GraphBreak("untraceable_call", f"a function {what} as an argument of autograd.Function.apply")
