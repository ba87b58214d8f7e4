"""Calls that make wrapper subclasses, or take them whole: one node of the graph, which does what the call does."""

from __future__ import annotations

import enum
import types
from typing import Any

import torch

from ..errors import GraphBreak
from ..interp.state import realize
from ..model.dispatch import TENSOR
from ..model.value import MISSING, ConstantVariable, ObjectVariable, TensorVariable, VariableTracker
from ..semantics import members
from . import subclasses, torchops, wrappers
from .apply_objects import ApplyArguments
from .arguments import Recipe
from .running import run_node


def _construct(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker | None:
    """``cls(...)`` of a wrapper subclass, as one node: what its constructor does, it does in the graph. None for other classes."""
    if torch.Tensor not in cls.__mro__ or cls in subclasses.PLAIN or not wrappers.is_wrapper(cls):
        return None
    given = [realize(a, tx.state) for a in (*args, *kwargs.values())]
    inside = [a for a in given if isinstance(a, TensorVariable)]
    if not inside or any(a.attrs for a in inside) or not subclasses.is_captured(tx.state, cls):
        return None
    if subclasses.is_live(cls):
        subclasses.begin(tx.state)
    with subclasses.switched_off(tx.state):
        return call_whole(tx, cls, args, kwargs)


def call_whole(tx: Any, fn: Any, args: list, kwargs: dict) -> VariableTracker:
    """One node that calls ``fn``, which makes or takes wrappers, with what the program passes."""
    wrappers.expect(tx.state)
    given = [realize(a, tx.state) for a in (*args, *kwargs.values())]
    for tensor in given:
        if isinstance(tensor, TensorVariable):  # which a new wrapper may hold
            tx.state.graph.mode.wrappers.setdefault(id(tensor.fake), tensor)
    arguments = _WrapperArguments(tx, given)
    target = arguments.takes_back(_with_names(fn, len(args), list(kwargs)))
    return run_node(tx, "call_function", target, [*arguments.others, *arguments.values], {})


def _with_names(fn: Any, positions: int, names: list[str]) -> Any:
    """The function, with its keyword arguments behind the others."""
    if not names and not fn.__module__.startswith("torch."):  # torch.fx would write a path that leads nowhere
        return fn

    def call(*given: Any) -> Any:
        return fn(*given[:positions], **dict(zip(names, given[positions:], strict=True)))

    call.__name__ = call.__qualname__ = fn.__name__
    return call


class _WrapperArguments(ApplyArguments):
    """Objects from outside are handed over themselves, which is guarded: the new tensor keeps them. Those that the trace has made, and
    that nobody can change, are made anew.
    """

    def __init__(self, tx: Any, inputs: list) -> None:
        super().__init__(tx, inputs, {}, {})

    def is_made(self, tracker: VariableTracker) -> bool:
        tracker = realize(tracker, self.tx.state)
        return _is_object(tracker) or _is_value(tracker) or super().is_made(tracker)

    def recipe(self, tracker: VariableTracker) -> Recipe:
        tracker = realize(tracker, self.tx.state)
        if not _is_object(tracker):
            return super().recipe(tracker)
        assert isinstance(tracker, ObjectVariable)
        if tracker.value is MISSING and _is_frozen(tracker.cls):
            return self.made_anew(tracker)
        if tracker.value is MISSING or tracker.source is None or tracker.attrs or id(tracker) in self.tx.state.mutated:
            raise GraphBreak("input_subclass", f"a wrapper made with a {tracker.python_type().__name__} that the trace has made or changed")
        self.tx.state.guards.pin(tracker.source, tracker.value)
        self.tx.state.graph.mode.wrappers[id(tracker.value)] = tracker
        value = tracker.value
        return lambda values, made: value


def _is_frozen(cls: type) -> bool:
    parameters = cls.__dict__.get("__dataclass_params__")
    return parameters is not None and parameters.frozen


def _is_value(tracker: VariableTracker) -> bool:
    return isinstance(tracker, ConstantVariable) and type(tracker.value) in torchops.VALUES


def _is_object(tracker: VariableTracker) -> bool:
    plain = type(tracker) is ObjectVariable and tracker.payload is None and members.plain_value(tracker) is None
    return plain and not issubclass(tracker.cls, (type, types.FunctionType, enum.Enum))  # type: ignore[attr-defined]


TENSOR.construct = _construct  # type: ignore[method-assign]
