"""Graphs that AOTAutograd should have in parts, one after the other.

It makes one node of the autograd graph out of a graph. Eager mode would have several that know nothing of each other where a
tensor is detached in between: a backward pass through one leaves the others alone, and may be followed by one through another (a
GAN's step). What is made in inference mode is made by a compiled graph only if that runs in inference mode as a whole. And ``lstm``
and its kin are better left to their kernels: AOTAutograd unrolls them, or fails, as it does with those of fused optimizers.

Cuts are only made between operations, never in another order, and only where parts share nothing but values.
"""

from __future__ import annotations

import contextlib
import dataclasses
import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from .. import config
from ..tensor.fake import DATA_DEPENDENT
from ..tensor.leaves import parameter
from ..tensor.modes import SWITCHES, enter_inference_mode, leave_inference_mode
from ..tensor.rebound import rebind
from ..tensor.running import RECURRENT
from ..unheard import Unheard
from .unused import is_total, memory_of, with_unused, without_unused, written_tensor

Compile = Callable[[GraphModule, Sequence[Any]], Callable[..., Any]]

_EAGER = -1
_CHANGED = "has been modified by an inplace operation"  # torch/csrc/autograd/saved_variable.cpp
_FOUND = "Error detected in "  # torch/csrc/autograd/anomaly_mode.cpp: AOTAutograd switches that mode on, and the error is caught
_MAX_PARTS = 8
_FUSED = frozenset(fn for name, fn in vars(torch).items() if name.startswith("_fused_") and name.endswith("_"))  # of optimizers


def compile_parts(gm: GraphModule, example_inputs: Sequence[Any], compile_one: Compile, apart: bool = False) -> Callable[..., Any]:
    """``compile_one`` of the graph, or of each of its parts.

    With ``apart``, what depends on an output is in a later part than this output: else there is no way from one output of a graph
    to another, and gradients of that one, which a program may ask for, or hooks on it, get nothing.

    A part runs as it was captured where its backward pass makes tensors of sizes that the data decides: that of ``y[mask] = values``
    calls ``nonzero``, which AOTAutograd refuses where no symbols are made for such sizes. So it does where the graph changes what
    its backward pass needs: eager mode has the error in that pass, if there is one. And torch.fx cannot write the code of a graph
    that calls ``aten.random.from``.
    """

    def one(part: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        try:
            with Unheard(UserWarning, _FOUND):
                return compile_one(part, inputs)
        except (*DATA_DEPENDENT, SyntaxError):
            return part.forward
        except RuntimeError as error:
            if _CHANGED not in str(error):
                raise
            return part.forward

    extended, unused = with_unused(gm)
    compiled = _compile_parts(extended, example_inputs, one, apart)
    return without_unused(compiled, unused) if unused else compiled


def _compile_parts(gm: GraphModule, example_inputs: Sequence[Any], compile_one: Compile, apart: bool) -> Callable[..., Any]:
    labels = _labels(gm)
    starts = _bucket_starts(gm, example_inputs) if config.split_ddp_graphs else set()
    behind = _behind_outputs(gm) if apart else set()
    starts |= behind
    runs = _runs(gm, labels, starts)
    inference = any(n.target is enter_inference_mode for n in gm.graph.nodes)
    fits = len(runs) <= _MAX_PARTS + len(starts) and _separable(runs)
    if inference and not fits:
        return gm.forward
    if not inference and (len(runs) <= 1 or not fits):
        recurrent = any(n.target in RECURRENT for n in labels)
        kept = any(_makes_leaf(n) or _is_unknown(n) for n in labels)
        if recurrent and len(runs) == 1 or behind or kept or len({*labels.values()} - {_EAGER}) > 1:
            return gm.forward  # one node of the autograd graph would give gradients of zero where there are none, and only once
        with _unrolled() if recurrent else contextlib.nullcontext():
            return compile_one(gm, example_inputs)
    made = _Parts(gm, list(example_inputs))
    for run in runs:
        cut = {node for node, other in labels.items() if other not in (run.label, _EAGER) and run.label not in (None, _EAGER)}
        made.add(run.nodes, cut, None if run.label == _EAGER else compile_one, run.modes)
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
    unknown = dict.fromkeys(filter(_is_unknown, gm.graph.nodes), _EAGER)
    eager = [n for n in gm.graph.nodes if n.target in RECURRENT or _makes_leaf(n) or n in unknown]
    if not any(isinstance(o, Node) and _differentiable(o) for o in outputs) and not any(n.target is parameter for n in eager):
        return unknown
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


def _makes_leaf(node: Node) -> bool:
    return node.kwargs.get("requires_grad") is True or node.target is parameter


def _is_unknown(node: Node) -> bool:
    """Whether AOTAutograd fails on the operation, or leaves it out."""
    return node.target in _FUSED or _only_tells(node)


def _only_tells(node: Node) -> bool:
    target: Any = node.target
    if isinstance(target, torch._ops.OpOverload):
        schemas = [target._schema]
    elif isinstance(target, torch._ops.OpOverloadPacket):
        schemas = [getattr(target, name)._schema for name in target.overloads()]
    else:
        return False
    return all(not s.returns and not s.is_mutable for s in schemas) and not node.is_impure()


def _behind_outputs(gm: GraphModule) -> set[Node]:
    """The operations that follow an output on which a gradient of another output depends."""
    outputs: Any = gm.graph.output_node().args[0]
    given = {o for o in outputs if isinstance(o, Node) and o.op != "placeholder" and _differentiable(o)}
    if len(given) < 2:
        return set()
    starts: set[Node] = set()
    needed: set[Node] = set()  # differentiable operations that an output behind them depends on
    following: Node | None = None
    for node in reversed(gm.graph.nodes):
        if node.op in ("placeholder", "output"):
            continue
        if node in needed and node in given and following is not None:
            starts.add(following)
        if (node in needed or node in given) and _differentiable(node):
            needed.update(node.all_input_nodes)
        if not _takes_apart(node):
            following = node
    return starts


def _takes_apart(node: Node) -> bool:
    """Whether this takes one of an operation's several results."""
    return node.target is operator.getitem and isinstance(node.args[0], Node) and not isinstance(_value(node.args[0]), torch.Tensor)


def _bucket_starts(gm: GraphModule, example_inputs: Sequence[Any]) -> set[Node]:
    """Operations before which a bucket of gradients is full: the backward pass comes from the end of the graph."""
    distributed: Any = sys.modules.get("torch.nn.parallel.distributed")
    module = distributed.DistributedDataParallel._get_active_ddp_module() if distributed is not None else None
    if module is None:
        return set()
    ignored = module.parameters_to_ignore
    sizes = {id(p): p.numel() * p.element_size() for name, p in module.module.named_parameters() if p.requires_grad and name not in ignored}
    places = [n for n in gm.graph.nodes if n.op == "placeholder"]
    waiting = {n: sizes[id(p)] for n, p in zip(places, example_inputs, strict=True) if id(p) in sizes}
    limit = min(torch.distributed._DEFAULT_FIRST_BUCKET_BYTES, module.bucket_bytes_cap)  # type: ignore[attr-defined]
    starts, filled = set(), 0
    for node in reversed(gm.graph.nodes):
        for used in node.all_input_nodes if node.op.startswith("call_") else ():
            filled += waiting.pop(used, 0)
        if filled >= limit and waiting:
            starts.add(node)
            filled, limit = 0, module.bucket_bytes_cap
    return starts


@dataclasses.dataclass
class _Run:
    """Operations that follow each other; ``label`` as long as one of them has one."""

    label: int | None
    nodes: list[Node]
    modes: tuple[bool, ...] = ()  # inference modes that are entered around it


def _runs(gm: GraphModule, labels: dict[Node, int], starts: set[Node]) -> list[_Run]:
    """The operations in order, cut at ``starts`` and where the label changes; those without one stay with their neighbours."""
    runs: list[_Run] = []
    modes: tuple[bool, ...] = ()
    for node in gm.graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        if node.target in (enter_inference_mode, leave_inference_mode):
            modes = (*modes, node.args[0]) if node.target is enter_inference_mode else modes[:-1]
            continue
        label, last = labels.get(node), runs[-1] if runs else None
        if last is not None and _takes_apart(node) and node.args[0] in last.nodes:
            last.nodes.append(node)  # tuples stay inside
            continue
        if (last is None or node in starts or last.modes != modes or (label == _EAGER) != (last.label == _EAGER)
                or label is not None and last.label is not None and label != last.label):
            runs.append(_Run(label, [], modes))
        elif last.label is None:
            last.label = label
        runs[-1].nodes.append(node)
    return runs


def _separable(runs: list[_Run]) -> bool:
    """Whether parts share nothing but values: no switches of torch, nothing written that another part sees."""
    part = {node: i for i, run in enumerate(runs) for node in run.nodes}
    rebound = set().union(*(memory_of(node) for node in part if node.target is rebind))
    for node, mine in part.items():
        if node.op == "get_attr" or node.target in SWITCHES:
            return False
        for used in node.all_input_nodes:
            crossing = used in part and part[used] != mine
            if crossing and not isinstance(_value(used), (torch.Tensor, torch.SymInt)):
                return False
            if crossing and rebound and _differentiable(used) and memory_of(used) & rebound:
                return False  # AOTAutograd cannot make such a result anew
        written = written_tensor(node)
        if written is not None and not _stays_in(part, mine, written):
            return False
    return True


def _stays_in(part: dict[Node, int], mine: int, written: Node) -> bool:
    """Whether one part alone has to do with the memory of a tensor that it writes to; it may give it to the caller."""
    memory = memory_of(written)
    holders = [n for n in written.graph.nodes if n is written or memory_of(n) & memory]
    return bool(memory) and all(part.get(n, mine) == mine for n in holders) and all(
        part.get(user) == mine or user.op == "output" and holder.op != "placeholder" for holder in holders for user in holder.users)


def _in_modes(fn: Callable[..., Any], modes: tuple[bool, ...]) -> Callable[..., Any]:
    """``fn`` inside of these inference modes."""
    if not modes:
        return fn

    def inside(*args: Any) -> Any:
        with contextlib.ExitStack() as stack:
            for mode in modes:
                stack.enter_context(torch.inference_mode(mode))
            return fn(*args)

    return inside


class _Parts:
    """Calls part after part: values are kept in slots, the inputs of the graph first."""

    def __init__(self, gm: GraphModule, examples: list[Any]) -> None:
        self._gm = gm
        self._examples = examples
        self._slots: dict[Node, int] = {n: i for i, n in enumerate(n for n in gm.graph.nodes if n.op == "placeholder")}
        self._steps: list[tuple[Callable[..., Any], list[int], list[int]]] = []
        self._results: list[Any] = list(gm.graph.output_node().args[0])  # type: ignore[arg-type]

    def add(self, nodes: list[Node], cut: set[Node], compile_one: Compile | None, modes: tuple[bool, ...]) -> None:
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
        if all(is_total(n) and written_tensor(n) is None for n in nodes):
            part.meta["unrepeatable"] = ""  # the others draw the random numbers
        examples = [_value(known[n]) if n in cut else self._examples[self._slots[n]] for n in takes]
        run = part.forward if compile_one is None else _in_modes(compile_one, modes)(part, examples)
        self._steps.append((_in_modes(run, modes), [self._slots[n] for n in takes], [i for i, n in enumerate(takes) if n in cut]))
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
