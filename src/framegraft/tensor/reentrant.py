"""``torch.utils.checkpoint`` with ``use_reentrant=True``: what is the same as without it, and what is not.

CheckpointFunction runs the function without grad mode, and anew with it, on detached arguments, in the backward pass.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx.node import map_aggregate

from ..errors import GraphBreak
from ..interp.regions import pure
from ..interp.state import realize
from ..model.value import ConstantVariable, TensorVariable, TupleVariable, VariableTracker
from ..semantics import calls

_RESTORED = ("call_count", "switches", "may_raise", "outer", "unwound", "leaving")


def run_in_both_modes(tx: Any, fn: VariableTracker, args: list) -> VariableTracker:
    """What ``fn`` gives, with its operations in the graph; GraphBreak where autograd would see something else than in eager mode."""
    args = [realize(arg, tx.state) for arg in args]
    tensors = [arg for arg in args if isinstance(arg, TensorVariable)]
    graph = tx.state.graph
    if graph.body is not None:
        raise _refused("in a function that torch calls")
    if not any(arg.fake.requires_grad for arg in tensors):
        raise _refused("and no argument that requires a gradient")
    first = _rehearse(tx, fn, args)
    before = set(graph.graph.nodes)
    result = realize(calls.call(tx, fn, args, {}), tx.state)
    made = [node for node in graph.graph.nodes if node not in before]
    if first != _shown(made, result):
        raise _refused("of what depends on grad mode")
    around = {used for node in made for used in node.all_input_nodes} - set(made) | {node for node in made if node.op == "placeholder"}
    _check_around(around - {arg.node for arg in tensors})
    _check_results(result, set(made) - around, [*around, *(arg.node for arg in tensors)])
    return result


def _refused(why: str) -> GraphBreak:
    return GraphBreak("untraceable_call", f"torch.utils.checkpoint with use_reentrant=True {why}")


def _rehearse(tx: Any, fn: VariableTracker, args: list) -> tuple[Any, ...]:
    """What it does without grad mode. Its operations are thrown away."""
    state, graph = tx.state, tx.state.graph
    nodes, rescued, caught = set(graph.graph.nodes), state.rescued, state.caught
    kept = {name: getattr(graph, name) for name in _RESTORED}
    torch._C._set_grad_enabled(False)
    try:
        with pure(state, "torch.utils.checkpoint"):
            result = realize(calls.call(tx, fn, args, {}), state)
    finally:
        torch._C._set_grad_enabled(True)
    made = [node for node in graph.graph.nodes if node not in nodes]
    shown = _shown(made, result)
    for node in reversed(made):
        if node.op != "placeholder":
            graph.graph.erase_node(node)
    for name, value in kept.items():
        setattr(graph, name, value)
    state.rescued, state.caught = rescued, caught
    return shown


def _shown(made: list, result: VariableTracker) -> tuple[Any, ...]:
    """Equal for equal operations, in the same order, whose results are used in the same way."""
    operations = [node for node in made if node.op != "placeholder" and node.target is not torch._C._set_grad_enabled]
    if any(node.op == "get_attr" for node in operations):
        raise _refused("of a function that torch calls")
    places = {node: f"%{index}" for index, node in enumerate(operations)}

    def place(node: torch.fx.Node) -> str:
        return places[node] if node in places else node.name

    shown = [(node.op, node.target, [place(used) for used in node.all_input_nodes], _without_names(node)) for node in operations]
    return shown, [(type(item), place(item.node) if isinstance(item, TensorVariable) else None) for item in _items(result)]


def _without_names(node: torch.fx.Node) -> str:
    """Its arguments as text, the nodes among them told apart only."""
    places = {used: index for index, used in enumerate(node.all_input_nodes)}
    return repr(map_aggregate((node.args, node.kwargs), lambda arg: f"%{places[arg]}" if isinstance(arg, torch.fx.Node) else repr(arg)))


def _items(result: VariableTracker) -> list[VariableTracker]:
    items = result.items if type(result) is TupleVariable else [result]
    for item in items:
        if not isinstance(item, TensorVariable) and not (isinstance(item, ConstantVariable) and item.value is None):
            raise _refused(f"that gives a {item.python_type().__name__}")
    return items


def _check_around(nodes: set) -> None:
    """Gradients of other tensors than the arguments are added up where these are, which autograd can do for leaves alone."""
    for node in nodes:
        value = node.meta.get("example_value")
        if isinstance(value, torch.Tensor) and value.requires_grad and not (node.op == "placeholder" and value.is_leaf):
            raise _refused("of a function that uses a tensor with a gradient from around it")


def _check_results(result: VariableTracker, own: set, older: list) -> None:
    """Each is a tensor of its own, and those of floating-point numbers require a gradient."""
    values = [node.meta.get("example_value") for node in older]
    seen = {value.untyped_storage()._cdata for value in values if isinstance(value, torch.Tensor)}
    for item in _items(result):
        if not isinstance(item, TensorVariable):
            continue
        memory = item.fake.untyped_storage()._cdata
        differs = item.fake.requires_grad != (item.fake.is_floating_point() or item.fake.is_complex())
        if item.node not in own or memory in seen or differs:
            raise _refused("whose result is no tensor of its own, or has no gradient")
        seen.add(memory)
