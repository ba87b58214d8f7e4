"""Functions that are handed to torch (``torch.func.grad(f)``, ``torch.cond``): each becomes a graph of its own in the graph.

The body of such a function is traced where torch calls it, on the tensors that torch calls it with; tensors of the program
that it uses besides its arguments become further inputs of its graph. It may change nothing but what it makes itself.
"""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Iterable
from typing import Any

import torch
import torch.fx
from torch.utils import _pytree as pytree

from ..errors import GraphBreak
from ..interp.regions import left_behind, pure
from ..interp.state import realize
from ..model.value import (
    ConstantVariable,
    DictVariable,
    ListVariable,
    ObjectVariable,
    SymbolicVariable,
    TensorVariable,
    TupleVariable,
    VariableTracker,
    constant,
)
from ..semantics import calls, containers, iteration, making


class Body:
    """The graph of a function while it is traced.

    ``lifted`` are nodes of the graph around it, by which its last inputs are known; ``given`` those of its first ones, where the
    function sees there the very tensors that it may find around itself.
    """

    def __init__(self, parent: Any) -> None:
        self.parent = parent
        self.graph = torch.fx.Graph()
        self.modules: dict[str, torch.fx.GraphModule] = {}
        self.lifted: dict[torch.fx.Node, torch.fx.Node] = {}
        self.given: dict[torch.fx.Node, TensorVariable] = {}
        self.count = 0
        self._last: torch.fx.Node | None = None

    def input(self, value: torch.Tensor, known: torch.fx.Node | None = None) -> TensorVariable:
        if known is not None:
            known = self._around(known)
            if known in self.given:
                return self.given[known]
        made = TensorVariable(self._placeholder(value), value, torch.Tensor)
        if known is not None:
            self.given[known] = made
        return made

    def _around(self, node: torch.fx.Node) -> torch.fx.Node:
        """What stands for a node in the graph around this one."""
        return node if self.parent is None else self.parent.own(node)

    def _placeholder(self, value: Any) -> torch.fx.Node:
        first = next(iter(self.graph.nodes), None)
        where: Any = contextlib.nullcontext()
        if self._last is not None:
            where = self.graph.inserting_after(self._last)
        elif first is not None:
            where = self.graph.inserting_before(first)
        with where:
            self.count += 1
            self._last = self.graph.placeholder(f"arg_{self.count}")
        self._last.meta["example_value"] = value
        return self._last

    def own(self, node: torch.fx.Node) -> torch.fx.Node:
        """The node itself, or the input that stands for one of a graph around this one."""
        if node.graph is self.graph:
            return node
        node = self._around(node)
        if node in self.given:
            return self.given[node].node
        found = self.lifted.get(node)
        if found is None:
            found = self.lifted[node] = self._placeholder(node.meta.get("example_value"))
        return found

    def take(self, nodes: Iterable[torch.fx.Node]) -> None:
        """Make these nodes the last inputs, in their order; all that are lifted must be among them."""
        for node in [self.own(n) for n in nodes]:
            if self._last is not None and node is not self._last:
                self._last.append(node)
                self._last = node

    def module(self, outputs: Iterable[torch.fx.Node], single: bool = False) -> torch.fx.GraphModule:
        found = tuple(self.own(n) for n in outputs)
        self.graph.output(found[0] if single else found)
        self.graph.lint()
        return torch.fx.GraphModule(self.modules, self.graph)


def as_structure(tx: Any, tracker: VariableTracker) -> Any:
    """Lists, tuples and dicts as they are, tensors as their trackers, constants as themselves; other trackers as they are.

    Numbers that differ from call to call are constants here (``Symbols.fixed``).
    """
    tracker = realize(tracker, tx.state)
    if isinstance(tracker, ConstantVariable):
        return tracker.value
    if isinstance(tracker, SymbolicVariable):
        return tx.state.graph.symbols.fixed(tracker)
    if isinstance(tracker, ListVariable) and tracker.pytype is list:
        return [as_structure(tx, i) for i in tracker.items]
    if type(tracker) is TupleVariable:
        return tuple(as_structure(tx, i) for i in tracker.items)
    inside = tracker.payload if isinstance(tracker, ObjectVariable) and tracker.cls is collections.OrderedDict else tracker
    if isinstance(inside, DictVariable) and inside.cls is dict:
        pairs = iteration.complete(tx, inside).items()
        made = {k: as_structure(tx, v) for k, (_, v) in pairs}
        return made if inside is tracker else collections.OrderedDict(made)
    return tracker


def as_tracker(tx: Any, value: Any) -> VariableTracker:
    """The other way round."""
    if isinstance(value, VariableTracker):
        return value
    if type(value) is list:
        return ListVariable([as_tracker(tx, v) for v in value])
    if type(value) is tuple:
        return TupleVariable([as_tracker(tx, v) for v in value])
    if type(value) in (dict, collections.OrderedDict):
        made = making.call_class(tx, type(value), [], {})
        for key, item in value.items():
            containers.set_item(tx, made, constant(key), as_tracker(tx, item))
        return made
    if type(value) in (bool, int, float, complex, str, type(None), torch.dtype, torch.device):
        return constant(value)
    raise GraphBreak("untraceable_call", f"a {type(value).__name__} from a function that torch calls")


class Traced:
    """A function traced for torch: its body, the trackers of its results, and how these are put together."""

    def __init__(self, body: Body, outputs: list[TensorVariable], results: Any) -> None:
        self.body = body
        self.outputs = outputs
        self.results = results  # the structure, with fake tensors

    def module(self, single: bool = False) -> torch.fx.GraphModule:
        return self.body.module((t.node for t in self.outputs), single)

    @property
    def lifted(self) -> list[torch.fx.Node]:
        """Nodes of the graph around it that the body takes behind its arguments. Known once there is a module."""
        return list(self.body.lifted)


def tensors_of(structure: Any) -> list:
    return [leaf for leaf in pytree.tree_leaves(structure) if isinstance(leaf, torch.Tensor)]


def trace(
    tx: Any, name: str, fn: VariableTracker, args: Any, kwargs: Any, given: Iterable[torch.fx.Node] = (), replays: bool = False
) -> Traced:
    """Trace a call of ``fn`` with these structures, whose tensors are what torch would pass.

    ``given`` are the nodes of these tensors where torch passes the very tensors of the program. ``replays``: torch calls ``fn`` once for
    this call, and may have it change Python's objects.
    """
    graph, changes = tx.state.graph, tx.state.changes
    if tx.state.overriding:
        raise GraphBreak("input_subclass", "a tensor with a __torch_function__ near a function that torch calls")
    body = Body(graph.body)
    graph.body = body
    try:
        with pure(tx.state, f"the function given to {name}", replays) as older:
            nodes = iter(given)
            inside = pytree.tree_map(lambda v: body.input(v, next(nodes, None)) if isinstance(v, torch.Tensor) else v, (args, kwargs))
            positional = [as_tracker(tx, a) for a in inside[0]]
            named = {k: as_tracker(tx, v) for k, v in inside[1].items()}
            known = versions(tx)
            results = as_structure(tx, calls.call(tx, fn, positional, named))
            if any(value._version != version for value, version in known):
                raise GraphBreak("unsupported_mutation", f"the function given to {name} changes a tensor that it did not make")
        if tx.state.changes > changes and any(_is_of(body, tracker) for tracker in left_behind(tx.state, older).values()):
            raise GraphBreak("unsupported_mutation", f"the function given to {name} leaves tensors of its own in objects from outside")
        leaves = [leaf for leaf in pytree.tree_leaves(results) if isinstance(leaf, TensorVariable)]
        if any(isinstance(leaf, VariableTracker) and leaf not in leaves for leaf in pytree.tree_leaves(results)):
            raise GraphBreak("untraceable_call", f"the function given to {name} returns something other than tensors and constants")
        for leaf in leaves:
            body.own(leaf.node)
    finally:
        graph.body = body.parent
    return Traced(body, leaves, pytree.tree_map(lambda v: v.fake if isinstance(v, TensorVariable) else v, results))


def _is_of(body: Body, tracker: VariableTracker) -> bool:
    return isinstance(tracker, TensorVariable | SymbolicVariable) and tracker.node is not None and tracker.node.graph is body.graph


def versions(tx: Any) -> list[tuple[torch.Tensor, int]]:
    """Of the tensors that a function could change from within: all that were there before."""
    graph, body = tx.state.graph, tx.state.graph.body
    nodes = list(graph.root.nodes)
    while body is not None:
        nodes += body.graph.nodes
        body = body.parent
    found = [n.meta.get("example_value") for n in nodes]
    return [(v, v._version) for v in found if isinstance(v, torch.Tensor) and not v.is_inference()]
