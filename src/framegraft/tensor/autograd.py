"""``torch.autograd.Function``: one node that calls ``apply``, after a rehearsal of ``forward`` and ``backward``.

The rehearsal traces both and throws their operations away: it records what they rely on, and breaks the graph
where they do what one node cannot hold (side effects, printing, branches on values). AOTAutograd traces ``backward`` but once, with
what the program has when the graph is compiled.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import torch

from ..errors import GraphBreak, UserRaise
from ..interp.regions import needed_trackers, pure, reachable
from ..interp.state import realize
from ..model.dispatch import handles
from ..model.value import (
    MISSING,
    NONE,
    ConstantVariable,
    DictVariable,
    FunctionVariable,
    ListVariable,
    ObjectVariable,
    SymbolicVariable,
    TensorVariable,
    TupleVariable,
    VariableTracker,
    constant,
)
from ..native.private import FUNCTION_APPLY, function_apply
from ..semantics import attributes, calls, lookup, making
from ..semantics.wrapping import wrap_pinned
from . import apply_binding, stand_ins, symbolic
from .apply_objects import ApplyArguments, is_object
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


@handles(Context.save_for_backward)
def save_for_backward(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    args[0].attrs["saved_tensors"] = TupleVariable(list(args[1:]))
    return NONE


@handles(Context.mark_dirty)
def mark_dirty(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    args[0].attrs["dirty_tensors"] = TupleVariable(list(args[1:]))
    return NONE


def _new(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    """An instance of the program's class, which is deprecated: all that it is made for is its class's ``apply``."""
    return ObjectVariable(MISSING, cls)


making.MAKERS[torch._C._FunctionBase] = _new


@handles(FUNCTION_APPLY)
def apply_function(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    cls = getattr(args[0], "value", None)
    if not (isinstance(cls, type) and issubclass(cls, torch.autograd.Function)):
        raise GraphBreak("untraceable_call", "autograd.Function.apply without a class")
    bound = apply_binding.bind(tx, attributes.get_attr(tx, args[0], "forward"), args[1:], kwargs, _is_separate(tx, cls))
    inputs = [realize(a, tx.state) for a in bound]
    needed = needed_trackers(tx.state) if any(isinstance(i, _HELD) for i in inputs) else {}
    shared = _shared(tx.state, inputs, needed)
    kept, around = _rehearse(tx, args[0], cls, inputs)
    given = ApplyArguments(tx, inputs, needed, kept)
    check_changes(tx.state, f"{cls.__name__}.apply", [cls, *given.build([0] * len(given.values))])
    if any(id(value) in kept and not given.is_very(value) for value in shared):
        raise GraphBreak("untraceable_call", f"a container that {cls.__name__}.forward keeps, and that is held elsewhere, too")
    given.check_kept()
    return run_node(tx, "call_function", _target(cls, given, around), [*given.others, *given.values, *around], {})


def _target(cls: Any, given: ApplyArguments, around: list[TensorVariable]) -> Any:
    """A plain function for the node: FX prints a bound ``apply`` as if it were torch's own. It puts the functions in their places.

    ``around``: tensors that ``forward`` and ``backward`` find by themselves; the node's last arguments are what stands for them.
    """
    known = [id(tracker.value) for tracker in around]

    def apply(*args: Any) -> Any:
        return function_apply(cls, *args)  # ``cls.apply`` may be the program's, which has called torch's

    apply.__name__ = apply.__qualname__ = f"{cls.__name__}_apply"
    if not known:
        return given.takes_back(apply)

    def apply_around(*args: Any) -> Any:
        found = args[-len(known) :]
        seen = cls if type(found[0]) in stand_ins.PLAIN else stand_ins.seeing(cls, dict(zip(known, found, strict=True)))
        return given.takes_back(lambda *own: function_apply(seen, *own))(*args[: -len(known)])

    apply_around.__name__ = apply_around.__qualname__ = apply.__name__
    return apply_around


_HELD = (FunctionVariable, ListVariable, TupleVariable, DictVariable, ObjectVariable)  # what others may hold, too


def _shared(state: Any, inputs: list, needed: dict[int, VariableTracker]) -> list[VariableTracker]:
    """Containers and objects among the arguments that somebody else holds, too. The node hands over copies of them."""
    found, todo = [], list(inputs)
    while todo:
        value = realize(todo.pop(), state)
        if isinstance(value, (ListVariable, TupleVariable)):
            todo += value.items
        elif isinstance(value, DictVariable):
            todo += [item for _, item in value.items.values()]
        elif isinstance(value, ObjectVariable) and is_object(value):
            todo += [*value.attrs.values(), *([] if value.namespace is None else [value.namespace])]
        if isinstance(value, (ListVariable, DictVariable)) or is_object(value):
            if any(value is other for other in found):
                raise GraphBreak("untraceable_call", "a container that is passed twice to autograd.Function.apply")
            found.append(value)
    return [value for value in found if value.source is not None or id(value) in needed]


def _is_separate(tx: Any, cls: type) -> bool:
    """Whether ``setup_context`` gets the context, and ``forward`` none."""
    return lookup.mro_lookup(tx, cls, "setup_context") is not torch.autograd.function._SingleLevelFunction.__dict__.get(
        "setup_context", torch.autograd.Function.__dict__.get("setup_context"))


def _rehearse(tx: Any, owner: Any, cls: type, inputs: list) -> tuple[dict[int, VariableTracker], list[TensorVariable]]:
    """Trace ``forward``. Gives what it keeps for ``backward``, or returns, and the tensors from outside that are no arguments."""
    state = tx.state
    graph = state.graph
    context = ObjectVariable(MISSING, Context)
    needs = [constant(isinstance(i, TensorVariable) and i.fake.requires_grad) for i in inputs]
    context.attrs["needs_input_grad"] = TupleVariable(list(needs))
    for name in ("backward", "vjp", "jvp", "vmap", "generate_vmap_rule"):
        lookup.mro_lookup(tx, cls, name)
    separate = _is_separate(tx, cls)
    before = (graph.call_count, graph.switches, graph.may_raise, set(graph.graph.nodes))
    grad = torch.is_grad_enabled()
    torch._C._set_grad_enabled(False)
    try:
        with pure(state, f"{cls.__name__}.forward"):
            forward = attributes.get_attr(tx, owner, "forward")
            result = calls.call(tx, forward, inputs if separate else [context, *inputs], {})
            if separate:
                calls.call(tx, attributes.get_attr(tx, owner, "setup_context"), [context, TupleVariable(list(inputs)), result], {})
        goes_back = grad and any(need.value for need in needs)  # the context dies at once where it does not
        kept = reachable([*context.attrs.values(), context.namespace, result] if goes_back else [result])
        if goes_back:
            _check_dirty(state, context)
            _rehearse_backward(tx, owner, cls, context, inputs, result)
    finally:
        torch._C._set_grad_enabled(grad)
    graph.call_count, graph.switches, graph.may_raise = before[:3]
    made = [node for node in graph.graph.nodes if node not in before[3] and node.op != "placeholder"]
    if graph.symbols is not None:
        _fix_numbers(graph.symbols, made, inputs)
    around = _around(graph, made, inputs, result)
    for node in reversed(made):
        graph.graph.erase_node(node)
    return kept, around


def _check_dirty(state: Any, context: ObjectVariable) -> None:
    """Break where a write changes the history of another tensor, or gives one to a tensor that had none: AOTAutograd leaves that out."""
    dirty = realize(context.attrs.get("dirty_tensors", NONE), state)
    for tensor in (realize(item, state) for item in getattr(dirty, "items", ())):
        if isinstance(tensor, TensorVariable) and (tensor.fake._is_view() or not tensor.fake.requires_grad):
            raise GraphBreak("unsupported_mutation", "autograd.Function.forward, which marks a view as dirty, or what requires no gradient")


def _around(graph: Any, made: list, inputs: list, result: VariableTracker) -> list[TensorVariable]:
    """Inputs of the graph that the operations of a rehearsal use, and that are not given."""
    given = reachable(list(inputs))
    used = {node for operation in made for node in operation.all_input_nodes}
    found = [t for t in graph.inputs if isinstance(t, TensorVariable) and t.node in used and id(t) not in given]
    returned = reachable([result])
    for tensor in found:
        plain = tensor.cls in stand_ins.PLAIN and (tensor.fake.is_leaf or not tensor.fake.requires_grad)
        if not plain or id(tensor) in returned or graph.body is not None:
            raise GraphBreak("untraceable_call", "an autograd.Function that uses a tensor from around it otherwise than as an operand")
    return found


def _fix_numbers(symbols: Any, made: list, inputs: list) -> None:
    """Numbers that are no arguments are constants: AOTAutograd takes them as they are while it compiles."""
    given = [n for i in inputs if isinstance(i, SymbolicVariable) for n in symbols.numbers_in(i.value)]
    for node in made:
        for used in node.all_input_nodes:
            value = used.meta.get("carries", used.meta.get("example_value"))
            if isinstance(value, torch.types.py_sym_types):
                for number in symbols.numbers_in(value):
                    if not any(number is other for other in given):
                        symbolic.specialise(number)


_ONCE = torch.autograd.function.once_differentiable(lambda ctx: None).__code__  # type: ignore[attr-defined]


def _rehearse_backward(tx: Any, owner: Any, cls: type, context: ObjectVariable, inputs: list, result: VariableTracker) -> None:
    """Trace it with gradients like the results."""
    name = "backward" if lookup.mro_lookup(tx, cls, "backward") is not _DEFAULT_BACKWARD else "vjp"
    backward = realize(attributes.get_attr(tx, owner, name), tx.state)
    value = getattr(backward, "value", None)
    if type(value) is types.FunctionType and value.__code__ is _ONCE:
        backward = wrap_pinned(tx, value.__wrapped__)  # type: ignore[attr-defined]
    result = realize(result, tx.state)
    context.attrs.setdefault("saved_tensors", TupleVariable([]))
    try:
        with pure(tx.state, f"{cls.__name__}.{name}"):
            outputs = result.items if isinstance(result, TupleVariable) else [result]
            given = calls.call(tx, backward, [context, *(_gradient(tx, realize(output, tx.state)) for output in outputs)], {})
    except UserRaise as raised:
        kind = raised.value.python_type().__name__
        raise GraphBreak("raised_exception", f"{cls.__name__}.{name}, which may raise a {kind}") from None
    given = realize(given, tx.state)
    gradients = [realize(g, tx.state) for g in (given.items if isinstance(given, TupleVariable) else [given])]
    # AOTAutograd would refuse the whole graph for what eager mode refuses in the backward pass.
    symbols = tx.state.graph.symbols
    if not _are_taken(gradients, inputs, lambda size: symbols is not None and symbols.is_unbacked(size)):
        raise GraphBreak("raised_exception", f"{cls.__name__}.{name}, which gives other gradients than autograd takes")


def _are_taken(gradients: list, inputs: list, unknown: Callable[[Any], bool]) -> bool:
    """Whether there is one for each argument, of its shape but where the data decides one of the shapes."""
    if len(gradients) < len(inputs) or any(not _is_none(g) for g in gradients[len(inputs) :]):
        return False
    for gradient, argument in zip(gradients, inputs, strict=False):
        if isinstance(gradient, TensorVariable) and isinstance(argument, TensorVariable) and argument.fake.requires_grad:
            shape, wanted = tuple(gradient.fake.shape), tuple(argument.fake.shape)
            if not any(map(unknown, (*shape, *wanted))) and not _sums_to(shape, wanted):
                return False
    return True


def _is_none(tracker: VariableTracker) -> bool:
    return isinstance(tracker, ConstantVariable) and tracker.value is None


def _sums_to(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    own = shape[len(shape) - len(wanted) :]
    return len(shape) >= len(wanted) and all(want == size or want == 1 for size, want in zip(own, wanted, strict=True))


_DEFAULT_BACKWARD = lookup.peek(torch.autograd.Function, "backward")


def _gradient(tx: Any, output: VariableTracker) -> VariableTracker:
    if not isinstance(output, TensorVariable) or not (output.fake.is_floating_point() or output.fake.is_complex()):
        return NONE
    return run_node(tx, "call_function", torch.empty_like, [output], {})
