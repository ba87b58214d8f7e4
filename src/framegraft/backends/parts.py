"""Graphs that AOTAutograd should have in parts, one after the other.

It makes one node of the autograd graph out of a graph. Eager mode would have several that know nothing of each other where a
tensor is detached in between: a backward pass through one leaves the others alone, and may be followed by one through another (a
GAN's step). And ``lstm`` and its kin are better left to their kernels: AOTAutograd unrolls them, or fails.

Cuts are only made between operations, never in another order, and only where parts share nothing but values.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from ..tensor.modes import SWITCHES

Compile = Callable[[GraphModule, Sequence[Any]], Callable[..., Any]]

_EAGER = -1
_MAX_PARTS = 8
_RECURRENT = frozenset((torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu))


def compile_parts(gm: GraphModule, example_inputs: Sequence[Any], compile_one: Compile) -> Callable[..., Any]:
    """``compile_one`` of the graph, or of each of its parts."""
    labels = _labels(gm)
    runs = _runs(gm, labels)
    if not 1 < len(runs) <= _MAX_PARTS or not _separable(gm, runs):
        recurrent = _EAGER in labels.values()
        if recurrent and len(runs) == 1:
            return gm.forward
        with _unrolled() if recurrent else contextlib.nullcontext():
            return compile_one(gm, example_inputs)
    made = _Parts(gm, list(example_inputs))
    for label, nodes in runs:
        cut = {node for node, other in labels.items() if other not in (label, _EAGER) and label != _EAGER}
        made.add(nodes, cut, None if label == _EAGER else compile_one)
    return made


@contextlib.contextmanager
def _unrolled() -> Iterator[None]:
    """torch's decomposition of ``lstm`` is for inference with oneDNN, and goes by the wrong tensor to know whether it is."""
    enabled: bool = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(enabled)


def _value(node: Node) -> Any:
    return node.meta.get("example_value")


def _differentiable(node: Node) -> bool:
    value = _value(node)
    return any(isinstance(v, torch.Tensor) and v.requires_grad for v in (value if isinstance(value, (list, tuple)) else (value,)))


def _labels(gm: GraphModule) -> dict[Node, int]:
    """What each operation on tensors that require gradients belongs to; empty where the graph has no two of these."""
    roots: dict[Node, Node] = {}

    def root(node: Node) -> Node:
        while roots[node] is not node:
            node = roots[node]
        return node

    outputs: Any = gm.graph.output_node().args[0]
    if not any(isinstance(o, Node) and _differentiable(o) for o in outputs):
        return {}
    eager = [n for n in gm.graph.nodes if n.target in _RECURRENT]
    for node in gm.graph.nodes:
        if node.op not in ("placeholder", "output") and _differentiable(node):
            roots[node] = node
            for used in node.all_input_nodes:
                if used in roots:
                    roots[root(used)] = node
    ends = {root(o) for o in outputs if isinstance(o, Node) and o in roots}
    if len(ends) < 2 and not eager:
        return {}
    numbers = {end: number for number, end in enumerate(ends)}
    labels = {node: numbers[root(node)] for node in roots if root(node) in numbers}
    return {**labels, **dict.fromkeys(eager, _EAGER)}


def _runs(gm: GraphModule, labels: dict[Node, int]) -> list[tuple[int, list[Node]]]:
    """The operations in order, cut where the label changes; those without one stay with their neighbours."""
    runs: list[tuple[int, list[Node]]] = []
    current: int | None = None
    for node in gm.graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        label = labels.get(node)
        if node.target is operator.getitem and isinstance(node.args[0], Node) and isinstance(_value(node.args[0]), (list, tuple)):
            label = None if runs and node.args[0] in runs[-1][1] else label
        elif label is None and current == _EAGER:
            label = current = None
            runs.append((_EAGER - 1, []))
        if not runs or label is not None and current is not None and label != current:
            runs.append((_EAGER - 1 if label is None else label, []))
        elif label is not None and current is None and label == _EAGER:
            runs.append((label, []))
        elif label is not None and current is None:
            runs[-1] = (label, runs[-1][1])
        current = label if label is not None else current
        runs[-1][1].append(node)
    return runs


def _separable(gm: GraphModule, runs: list[tuple[int, list[Node]]]) -> bool:
    """Whether parts share nothing but values: no switches of torch, nothing written that another part sees."""
    part = {node: i for i, (_, nodes) in enumerate(runs) for node in nodes}
    for node, mine in part.items():
        if node.op == "get_attr" or node.target in SWITCHES:
            return False
        for used in node.all_input_nodes:
            crossing = used in part and part[used] != mine
            if crossing and not isinstance(_value(used), (torch.Tensor, torch.SymInt)):
                return False
        written = _written(node)
        if written is not None and (written.op != "placeholder" or any(part.get(user) != mine for user in written.users)):
            return False
    return True


def _written(node: Node) -> Node | None:
    """The tensor that an operation changes in place."""
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    inplace = name.endswith("_") and not name.endswith("__") or node.target is operator.setitem or (
        getattr(node.target, "__module__", "") == "_operator" and name.startswith("i") and name[1:] in _INPLACE)
    if not inplace and node.kwargs.get("out") is None:
        return None
    first = node.kwargs.get("out") or node.args[0]
    return first if isinstance(first, Node) else node


_INPLACE = frozenset(("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift"))


class _Parts:
    """Calls part after part: values are kept in slots, the inputs of the graph first."""

    def __init__(self, gm: GraphModule, examples: list[Any]) -> None:
        self._gm = gm
        self._examples = examples
        self._slots: dict[Node, int] = {n: i for i, n in enumerate(n for n in gm.graph.nodes if n.op == "placeholder")}
        self._steps: list[tuple[Callable[..., Any], list[int], list[int]]] = []
        self._results: list[Any] = list(gm.graph.output_node().args[0])  # type: ignore[arg-type]

    def add(self, nodes: list[Node], cut: set[Node], compile_one: Compile | None) -> None:
        """One more part, which has nothing to do with gradients of ``cut``; without ``compile_one`` it runs as it is."""
        inside = set(nodes)
        takes = list(dict.fromkeys(u for n in nodes for u in n.all_input_nodes if u not in inside))
        gives = [n for n in nodes if n in self._results or any(user not in inside and user.op != "output" for user in n.users)]
        graph = Graph()
        known = {}
        for used in takes:
            known[used] = graph.placeholder(used.name, type_expr=used.type)
            known[used].meta = dict(used.meta)
            if used in cut:
                known[used].meta["example_value"] = _value(used).detach()
        for node in nodes:
            known[node] = graph.node_copy(node, lambda n: known[n])
        graph.output(tuple(known[n] for n in gives))
        part = GraphModule(self._gm, graph, class_name=type(self._gm).__name__)
        part.meta = dict(self._gm.meta)
        examples = [_value(known[n]) if n in cut else self._examples[self._slots[n]] for n in takes]
        run = part.forward if compile_one is None else compile_one(part, examples)
        self._steps.append((run, [self._slots[n] for n in takes], [i for i, n in enumerate(takes) if n in cut]))
        for node in gives:
            self._slots[node] = len(self._examples)
            self._examples.append(_value(node))

    def __call__(self, *inputs: Any) -> tuple:
        values = list(inputs)
        for run, takes, cut in self._steps:
            given = [values[i] for i in takes]
            for i in cut:
                given[i] = given[i].detach()
            values.extend(run(*given))
        return tuple(values[self._slots[r]] if isinstance(r, Node) else r for r in self._results)
