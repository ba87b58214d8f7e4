"""Operations whose results nobody uses, which AOTAutograd would leave out.

Eager mode runs them: they draw random numbers, and raise on the values of their tensors (an index out of range, a singular
matrix). So their results become outputs of the graph that AOTAutograd gets, without gradients, and are dropped behind it.
Operations that do neither may go.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node

from .tracing import own_copy

# Besides views and what torch tags as elementwise: neither random nor particular about values.
_TOTAL = frozenset(
    "addmm all amax amin any arange argmax argmin avg_pool1d avg_pool2d avg_pool3d baddbmm bfloat16 bmm bool clone contiguous conv1d "
    "conv2d conv3d cumsum double empty empty_like eye float full full_like half int layer_norm linear log_softmax logsumexp long "
    "masked_fill matmul max mean min mm new_empty new_full new_ones new_tensor new_zeros norm ones ones_like prod softmax std sum "
    "tensor to type_as var where zeros zeros_like".split())


def with_unused(gm: GraphModule) -> tuple[GraphModule, int]:
    """A graph with these results as further outputs, and how many there are; ``gm`` itself where there are none."""
    dead = _dead(gm)
    kept: list[Node] = []
    covered: set[Node] = set()
    for node in reversed(dead):
        value = _result(node)
        if value is None or is_total(node) or node in covered:
            continue
        kept.append(node)
        waiting = [node]
        while waiting:  # what it is computed from runs with it
            for used in waiting.pop().all_input_nodes:
                if used not in covered:
                    covered.add(used)
                    waiting.append(used)
    if not kept:
        return gm, 0
    names = {node.name for node in kept}
    copy = own_copy(gm)
    output = copy.graph.output_node()
    copied = [node for node in copy.graph.nodes if node.name in names]
    results: Any = output.args[0]
    output.args = ((*results, *map(_detached, copied)),)
    copy.recompile()
    return copy, len(kept)


def without_unused(compiled: Callable[..., Any], count: int) -> Callable[..., Any]:
    """``compiled`` less its last ``count`` outputs."""
    return lambda *inputs: compiled(*inputs)[:-count]


def _detached(node: Node) -> Node:
    """A node for the tensor that ``node`` makes or writes to, behind it: in its part, if the graph is cut in parts."""
    graph, path = node.graph, _result(node)
    assert path is not None
    found, value = path
    with graph.inserting_before(node.next):
        for index in () if isinstance(value, torch.Tensor) else (0,):
            found, value = graph.call_function(operator.getitem, (found, index)), value[index]
            found.meta["example_value"] = value
        made = graph.call_method("detach", (found,))
    made.meta["example_value"] = value.detach()
    return made


def _result(node: Node) -> tuple[Node, Any] | None:
    """The tensor, or tuple with one in front, that an operation makes, with its node: for ``y[i] = z`` that of ``y``."""
    owner = written_tensor(node) or node
    value = owner.meta.get("example_value")
    first = value[0] if isinstance(value, (tuple, list)) and value else value
    return (owner, value) if isinstance(first, torch.Tensor) else None


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    for part in value if isinstance(value, (tuple, list)) else (value,):
        if isinstance(part, torch.Tensor):
            yield part


def memory_of(node: Node) -> set[int]:
    """Which storages hold the tensors that a node stands for."""
    found = set()
    for tensor in _tensors(node.meta.get("example_value")):
        try:
            found.add(tensor.untyped_storage()._cdata)
        except (NotImplementedError, RuntimeError):  # sparse ones have none
            continue
    return found


def _dead(gm: GraphModule) -> list[Node]:
    """The operations that no output and no write to something alive needs, in order."""
    calls = [n for n in gm.graph.nodes if n.op in ("call_function", "call_method", "call_module")]
    if all(n.users for n in calls):
        return []
    alive: set[Node] = set()
    memory: set[int] = set()

    def reach(node: Node) -> None:
        waiting = [node]
        while waiting:
            found = waiting.pop()
            if found not in alive:
                alive.add(found)
                memory.update(memory_of(found))
                waiting.extend(found.all_input_nodes)

    for node in gm.graph.nodes:
        if node.op not in ("call_function", "call_method", "call_module"):
            reach(node)
    before = -1
    while before != len(alive):
        before = len(alive)
        for node in calls:
            written = written_tensor(node)
            if node not in alive and written is not None and (written in alive or memory_of(written) & memory):
                reach(node)
    return [n for n in calls if n not in alive]


def written_inputs(gm: GraphModule) -> set[int]:
    """The numbers of the placeholders that the backward pass may not find as they were, unnoticed by autograd.

    Their memory is written to in operations on tensors that require a gradient, or by way of their `data`; or they have other memory
    behind the graph.
    """
    written: set[int] = set()
    apart: set[int] = set()  # memory under version counters that are not those of the inputs
    for node in gm.graph.nodes:
        if node.target is getattr and node.args[1] == "data":
            apart |= memory_of(node)
        tensor = written_tensor(node)
        if tensor is None:
            continue
        memory = memory_of(tensor)
        if memory & apart or any(t.requires_grad for n in node.all_input_nodes for t in _tensors(n.meta.get("example_value"))):
            written |= memory
    placeholders = enumerate(n for n in gm.graph.nodes if n.op == "placeholder")
    return {i for i, n in placeholders if n.meta.get("loses_memory") or memory_of(n) & written}


def written_tensor(node: Node) -> Node | None:
    """The tensor that an operation changes in place; the operation itself where its ``out=`` is no single tensor."""
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    inplace = name.endswith("_") and not name.endswith("__") or node.target is operator.setitem or (
        getattr(node.target, "__module__", "") == "_operator" and name.startswith("i") and name[1:] in _INPLACE)
    if not inplace and node.kwargs.get("out") is None:
        return None
    first = node.kwargs.get("out") or (node.args[0] if node.args else node.kwargs.get("input") or node.kwargs.get("self"))
    return first if isinstance(first, Node) else node


_INPLACE = frozenset(("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift"))


def is_total(node: Node) -> bool:
    """Whether an operation returns a result whatever the values of its tensors are, and always the same."""
    if node.op == "call_module":
        return False
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    operands = [t for n in node.all_input_nodes for t in _tensors(n.meta.get("example_value"))]
    if node.target is operator.getitem:
        return all(n is node.args[0] for n in node.all_input_nodes)
    if node.target is getattr or name in _TOTAL:
        return True
    views, elementwise = _kind(name.removesuffix("_"))
    return views or elementwise and all(t.is_floating_point() or t.is_complex() or t.dtype == torch.bool for t in operands)


@functools.cache
def _kind(name: str) -> tuple[bool, bool]:
    """Whether all overloads of an operator of ATen are views; whether all are elementwise and repeatable."""
    packet = getattr(torch.ops.aten, name, None)
    overloads: Sequence[Any] = [] if packet is None else [getattr(packet, o) for o in packet.overloads()]
    functional = [o for o in overloads if not any(a.is_out for a in o._schema.arguments) and _gives_tensor(o)]
    if not functional:
        return False, False
    tags = torch.Tag
    return (all(o.is_view for o in functional),
            all(tags.pointwise in o.tags and tags.nondeterministic_seeded not in o.tags for o in functional))


def _gives_tensor(overload: Any) -> bool:
    """Not one of the overloads for Python's numbers and lists, which TorchScript has."""
    returns = overload._schema.returns
    return bool(returns) and str(returns[0].type) in ("Tensor", "List[Tensor]")
