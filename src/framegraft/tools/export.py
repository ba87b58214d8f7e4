"""``framegraft.export``: one FX graph of a whole function, with flat inputs and outputs, and what it relies on."""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx
from torch.utils import _pytree as pytree

from .. import _native, api
from ..errors import ExportError, Unsupported, describe_break
from ..run import records


def _refuse_changes(entries: list) -> None:
    for entry in entries:
        if entry.info.changes:
            raise ExportError(f"the function changes objects outside of the graph: {', '.join(entry.info.changes)}")


@dataclass(frozen=True)
class ExportResult:
    """What ``export`` gives.

    Attributes:
        graph_module: one placeholder for each leaf of ``(args, kwargs)`` in the order of ``in_spec``, parameters and buffers
            as attributes; it returns the leaves of the result as a tuple.
        guards: what must hold for the graph to stand for the function, as Python expressions.
        in_spec, out_spec: pytree specs of ``(args, kwargs)`` and of the result.
    """

    graph_module: torch.fx.GraphModule
    guards: list[str]
    in_spec: pytree.TreeSpec
    out_spec: pytree.TreeSpec

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graph on arguments of the same structure as those of the export. Guards are not checked."""
        leaves, spec = pytree.tree_flatten((args, kwargs))
        if spec != self.in_spec:
            raise ExportError(f"arguments of the structure {spec}, where the graph was exported for {self.in_spec}")
        return pytree.tree_unflatten(list(self.graph_module(*leaves)), self.out_spec)


class _Recorder:
    """A backend that computes nothing: its graph's outputs are empty tensors, known by their identity.

    They must not get into objects of the program: where the transformed code would change some, the graph raises.
    """

    def __init__(self) -> None:
        self.code: Any = None
        self.module: Any = None
        self.inputs: tuple = ()
        self.outputs: list = []

    def __call__(self, module: torch.fx.GraphModule, example_inputs: list) -> Callable[..., Any]:
        self.module = module

        def give(*inputs: Any) -> list:
            _refuse_changes(self.entries())
            self.inputs = inputs
            values = [node.meta["example_value"] for node in module.graph.output_node().args[0]]  # type: ignore[union-attr]
            self.outputs = [torch.empty_strided(v.shape, v.stride(), dtype=v.dtype, device=v.device) for v in values]
            return self.outputs

        return give

    def entries(self) -> list:
        return [e for e in _native.cache_entries(self.code) if e.ctx.compiler is self]



def export(fn: Any, *args: Any, **kwargs: Any) -> ExportResult:
    """Capture ``fn(*args, **kwargs)`` as one graph. Nothing is computed, unless the graph breaks.

    Shapes are those of the arguments; arguments that are no tensors are constants of the graph.

    Raises:
        ExportError: the graph breaks (the error lists every break, for which ``fn`` is run once), the function changes
            Python objects, or it returns something that is neither a tensor of the graph nor a constant.
    """
    leaves, in_spec = pytree.tree_flatten((args, kwargs))
    recorder = _Recorder()
    target = api.innermost_fn(fn) if isinstance(fn, (_native.CompiledFunction, types.MethodType)) else fn
    if isinstance(fn, types.MethodType):
        args = (fn.__self__, *args)
    if isinstance(target, api.OptimizedModule):
        target = target._orig_mod
    compiled = api.compile(target, backend=recorder, fullgraph=True, dynamic=False)
    code = api.innermost_fn(compiled).__code__
    recorder.code = code
    try:
        result = compiled(*args, **kwargs)
    except Unsupported as first:
        raise ExportError(_breaks(target, args, kwargs, first)) from None
    finally:
        entries = recorder.entries()
        for made in entries:
            _native.remove_entry(code, made)
    _refuse_changes(entries)
    if not entries or recorder.module is None:
        raise ExportError("no operation on tensors was captured")
    entry = entries[0]
    results, out_spec = pytree.tree_flatten(result)
    module = _flat(recorder, leaves, results)
    return ExportResult(module, list(entry.info.check_fn.code_parts), in_spec, out_spec)


def _breaks(target: Any, args: tuple, kwargs: dict, first: Unsupported) -> str:
    """All breaks of one run, as text."""
    before = len(records.BREAKS)
    api.compile(target, backend="eager")(*args, **kwargs)
    found = [describe_break(b.reason, b.detail, b.user_stack) for b in records.BREAKS[before:]] or [str(first)]
    return "\n".join([f"the function is no single graph; {len(found)} graph break(s):", *found])


def _flat(recorder: _Recorder, leaves: list, results: list) -> torch.fx.GraphModule:
    """The captured graph with a placeholder for each leaf of the arguments, and other inputs as attributes."""
    graph, root = torch.fx.Graph(), torch.nn.Module()
    places = [graph.placeholder(f"arg_{i}") for i in range(len(leaves))]
    known: dict[int, Any] = {}
    for leaf, place in zip(leaves, places, strict=True):
        if isinstance(leaf, torch.Tensor):
            known.setdefault(id(leaf), place)
    nodes: dict[Any, Any] = {}
    inputs = iter(recorder.inputs)
    for node in recorder.module.graph.nodes:
        if node.op == "placeholder":
            value = next(inputs)
            if id(value) not in known:
                known[id(value)] = graph.get_attr(_attach(root, node.name, value))
            nodes[node] = known[id(value)]
            nodes[node].meta.update(node.meta)
        elif node.op == "output":
            for output, value in zip(node.args[0], recorder.outputs, strict=True):
                known[id(value)] = nodes[output]
        else:
            nodes[node] = graph.node_copy(node, lambda n: nodes[n])
    graph.output(tuple(_result(value, known) for value in results))
    graph.lint()
    return torch.fx.GraphModule(root, graph, class_name="Exported")


def _attach(root: torch.nn.Module, name: str, value: Any) -> str:
    if isinstance(value, torch.nn.Parameter):
        root.register_parameter(name, value)
    else:
        root.register_buffer(name, value)
    return name


def _result(value: Any, known: dict[int, Any]) -> Any:
    if isinstance(value, torch.Tensor):
        if id(value) in known:
            return known[id(value)]
        raise ExportError("the function returns a tensor that is no part of the graph")
    if value is None or isinstance(value, (bool, int, float, str, torch.dtype, torch.device)):
        return value
    raise ExportError(f"the function returns a {type(value).__name__}, which is neither a tensor nor a constant")
