"""``torch.autograd.Function``: one node that calls ``apply``, after a rehearsal of ``forward``.

The rehearsal traces ``forward`` and throws its operations away: it records what forward relies on, and breaks the graph
where forward does what one node cannot hold (side effects, printing, branches on values).
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import torch

from ..errors import GraphBreak
from ..interp.regions import known_trackers, pure, reachable
from ..interp.state import realize
from ..model.dispatch import handles
from ..model.source import pinned
from ..model.value import (
    MISSING,
    NONE,
    DictVariable,
    FunctionVariable,
    ListVariable,
    ObjectVariable,
    TensorVariable,
    TupleVariable,
    VariableTracker,
    constant,
)
from ..native.private import FUNCTION_APPLY
from ..semantics import attributes, calls, lookup
from .reach import check_changes
from .running import run_node


class Context:
    """Stands for ``ctx`` in a rehearsal; what it is told concerns the real one only."""

    def save_for_backward(self, *tensors: Any) -> None: ...

    def save_for_forward(self, *tensors: Any) -> None: ...

    def mark_dirty(self, *tensors: Any) -> None: ...

    def mark_non_differentiable(self, *tensors: Any) -> None: ...

    def set_materialize_grads(self, value: bool) -> None: ...


for _name, _method in list(vars(Context).items()):
    if not _name.startswith("_"):
        handles(_method)(lambda tx, args, kwargs: NONE)


@handles(FUNCTION_APPLY)
def apply_function(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    cls = getattr(args[0], "value", None)
    if not (isinstance(cls, type) and issubclass(cls, torch.autograd.Function)) or kwargs:
        raise GraphBreak("untraceable_call", "autograd.Function.apply with keywords or without a class")
    inputs = [realize(a, tx.state) for a in args[1:]]
    functions = [(i, _maker(tx.state, a)) for i, a in enumerate(inputs) if _is_function(a)]
    check_changes(tx.state, f"{cls.__name__}.apply", [cls, *(make() for _, make in functions)])
    shared = _shared(tx.state, inputs)
    _rehearse(tx, args[0], cls, inputs, shared)
    given = [a for a in inputs if not _is_function(a)]
    return run_node(tx, "call_function", _target(cls, functions), given, {})


def _is_function(tracker: VariableTracker) -> bool:
    return isinstance(tracker, FunctionVariable) or isinstance(tracker, ObjectVariable) and type(tracker.value) is types.FunctionType


def _maker(state: Any, fn: Any) -> Callable[[], types.FunctionType]:
    """What gives the function that ``apply`` is called with: one from outside, or one that the trace has made for this call alone."""
    if isinstance(fn, ObjectVariable):
        if fn.source is not None and fn.source.access == "ARG":  # maybe another one in each call
            raise GraphBreak("untraceable_call", "a function that is a parameter as an argument of autograd.Function.apply")
        state.guards.pin(fn.source or pinned(fn.value), fn.value)
        value = fn.value
        return lambda: value
    if fn.closure or fn.defaults is not None or fn.kwdefaults is not None or fn.annotations is not None or fn.attrs:
        raise GraphBreak("untraceable_call", "a function with a closure or defaults as an argument of autograd.Function.apply")
    if id(fn) in known_trackers(state):
        raise GraphBreak("untraceable_call", "a function that is held elsewhere, too, as an argument of autograd.Function.apply")
    code, scope, name, qualname = fn.code, fn.globals_of.real, fn.name, fn.qualname

    def make() -> types.FunctionType:
        made = types.FunctionType(code, scope, name)
        made.__qualname__ = qualname
        return made

    return make


def _target(cls: Any, functions: list[tuple[int, Callable[[], types.FunctionType]]]) -> Any:
    """A plain function for the node: FX prints a bound ``apply`` as if it were torch's own. It puts ``functions`` in their places."""

    def apply(*args: Any) -> Any:
        given = list(args)
        for place, make in functions:
            given.insert(place, make())
        return cls.apply(*given)

    apply.__name__ = apply.__qualname__ = f"{cls.__name__}_apply"
    return apply


def _shared(state: Any, inputs: list) -> list[VariableTracker]:
    """Containers among the arguments that somebody else holds, too. The node hands over copies of them."""
    found, todo = [], list(inputs)
    while todo:
        value = realize(todo.pop(), state)
        if isinstance(value, (ListVariable, TupleVariable)):
            todo += value.items
        elif isinstance(value, DictVariable):
            todo += [item for _, item in value.items.values()]
        if isinstance(value, (ListVariable, DictVariable)):
            if any(value is other for other in found):
                raise GraphBreak("untraceable_call", "a container that is passed twice to autograd.Function.apply")
            found.append(value)
    if not found:
        return []
    known = known_trackers(state)
    return [value for value in found if value.source is not None or id(value) in known]


def _rehearse(tx: Any, owner: Any, cls: type, inputs: list, shared: list[VariableTracker]) -> None:
    state = tx.state
    graph = state.graph
    context = ObjectVariable(MISSING, Context)
    needs = [constant(isinstance(i, TensorVariable) and i.fake.requires_grad) for i in inputs]
    context.attrs["needs_input_grad"] = TupleVariable(list(needs))
    for name in ("backward", "vjp", "jvp", "vmap", "generate_vmap_rule"):
        lookup.mro_lookup(tx, cls, name)
    separate = lookup.mro_lookup(tx, cls, "setup_context") is not torch.autograd.function._SingleLevelFunction.__dict__.get(
        "setup_context", torch.autograd.Function.__dict__.get("setup_context"))
    before = (graph.call_count, graph.switches, graph.may_raise, set(graph.graph.nodes))
    grad = torch.is_grad_enabled()
    torch._C._set_grad_enabled(False)
    try:
        with pure(state, f"{cls.__name__}.forward"):
            forward = attributes.get_attr(tx, owner, "forward")
            result = calls.call(tx, forward, inputs if separate else [context, *inputs], {})
            if separate:
                calls.call(tx, attributes.get_attr(tx, owner, "setup_context"), [context, TupleVariable(list(inputs)), result], {})
        kept = reachable([*context.attrs.values(), context.namespace, result]) if shared else {}
        if any(id(value) in kept for value in shared):
            raise GraphBreak("untraceable_call", f"a container that {cls.__name__}.forward keeps, and that is held elsewhere, too")
    finally:
        torch._C._set_grad_enabled(grad)
    graph.call_count, graph.switches, graph.may_raise = before[:3]
    for node in reversed(list(graph.graph.nodes)):
        if node not in before[3] and node.op != "placeholder":
            graph.graph.erase_node(node)
