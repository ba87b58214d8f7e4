"""``torch.autograd.Function``: one node that calls ``apply``, after a rehearsal of ``forward``.

The rehearsal traces ``forward`` and throws its operations away: it records what forward relies on, and breaks the graph
where forward does what one node cannot hold (side effects, printing, branches on values).
"""

from __future__ import annotations

from typing import Any

import torch

from ..errors import GraphBreak
from ..interp.regions import needed_trackers, pure, reachable
from ..interp.state import realize
from ..model.dispatch import handles
from ..model.value import (
    MISSING,
    NONE,
    DictVariable,
    ListVariable,
    ObjectVariable,
    TensorVariable,
    TupleVariable,
    VariableTracker,
    constant,
)
from ..native.private import FUNCTION_APPLY
from ..semantics import attributes, calls, lookup
from .arguments import FunctionArguments
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
    given = FunctionArguments(tx, inputs)
    check_changes(tx.state, f"{cls.__name__}.apply", [cls, *given.build([None] * len(given.values))])
    shared = _shared(tx.state, inputs)
    kept = _rehearse(tx, args[0], cls, inputs)
    if any(id(value) in kept for value in shared):
        raise GraphBreak("untraceable_call", f"a container that {cls.__name__}.forward keeps, and that is held elsewhere, too")
    given.check_kept(kept)
    return run_node(tx, "call_function", _target(cls, given), [*given.others, *given.values], {})


def _target(cls: Any, given: FunctionArguments) -> Any:
    """A plain function for the node: FX prints a bound ``apply`` as if it were torch's own. It puts the functions in their places."""
    places, count = given.places, len(given.others)

    def apply(*args: Any) -> Any:
        arguments = list(args[:count])
        for place, made in zip(places, given.build(args[count:]), strict=True):
            arguments.insert(place, made)
        return cls.apply(*arguments)

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
    known = needed_trackers(state)
    return [value for value in found if value.source is not None or id(value) in known]


def _rehearse(tx: Any, owner: Any, cls: type, inputs: list) -> dict[int, VariableTracker]:
    """Trace ``forward``. Gives what it keeps for ``backward``, or returns."""
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
        kept = reachable([*context.attrs.values(), context.namespace, result])
    finally:
        torch._C._set_grad_enabled(grad)
    graph.call_count, graph.switches, graph.may_raise = before[:3]
    for node in reversed(list(graph.graph.nodes)):
        if node not in before[3] and node.op != "placeholder":
            graph.graph.erase_node(node)
    return kept
