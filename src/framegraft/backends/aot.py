"""AOTAutograd without a compiler behind it: functional forward and backward graphs, run by the interpreter of torch.

They tell whether a fault is in AOTAutograd or in what comes after, and they are the quickest way to capture training.

What a functional graph writes to its inputs it writes at its end. Where it fails before, the graph runs as it was captured: it
fails at the same operation, behind the writes that eager mode has done by then.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._functorch._aot_autograd.utils import make_boxed_func
from torch._functorch.aot_autograd import aot_module_simplified
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.fx import GraphModule, Node
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from ..tensor import seeds
from .eager import warn_ignored
from .parts import compile_parts
from .tracing import backend_context, own_copy, settings_for, symbolic_inputs
from .twice import twice_differentiable
from .unused import written_inputs, written_tensor


def boxed_nop(gm: GraphModule, example_inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
    """A compiler for AOTAutograd that runs the graph as it is, by the boxed calling convention."""
    return make_boxed_func(gm.forward)


def aot_autograd(gm: GraphModule, example_inputs: Sequence[Any], **settings: Any) -> Callable[..., Any]:
    """Run AOTAutograd on ``gm``; a graph none of whose inputs requires grad is compiled for inference.

    ``settings`` are those of ``aot_module_simplified``; ``fw_compiler`` is the default for the other two compilers.
    """
    forward = settings.setdefault("fw_compiler", boxed_nop)
    settings.setdefault("bw_compiler", forward)
    settings.setdefault("inference_compiler", forward)
    settings.setdefault("keep_inference_input_mutations", True)

    def one(part: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        written = written_inputs(part) if "partition_fn" in settings else set()
        given = {**settings, "partition_fn": refusing(settings["partition_fn"], written)} if written else settings
        with backend_context(part, ShapeEnv if _calls_operators_of_graphs(part) else None):
            try:
                with settings_for(part):
                    made = aot_module_simplified(part, symbolic_inputs(part, inputs), **given)
            except SavesWhatItWrites:
                return part.forward
            compiled = twice_differentiable(made, part)
        writes_at_its_end = settings["inference_compiler"] is forward is boxed_nop
        return _Writing(compiled, part) if writes_at_its_end and any(map(written_tensor, part.graph.nodes)) else compiled

    return compile_parts(gm, example_inputs, one, apart=True)


class SavesWhatItWrites(Exception):
    pass


def refusing(partition: Callable[..., Any], written: set[int]) -> Callable[..., Any]:
    """``partition``, which must not have the inputs with these numbers saved for the backward pass.

    The new values are copied into them behind the functional graph, and the backward pass would find them changed; eager mode saves
    what it needs of such a tensor before it writes.
    """

    def parted(joint: GraphModule, inputs: Any, *, num_fwd_outputs: int, **more: Any) -> Any:
        forward, backward = partition(joint, inputs, num_fwd_outputs=num_fwd_outputs, **more)
        placeholders = [n for n in forward.graph.nodes if n.op == "placeholder"]
        saved: Any = forward.graph.output_node().args[0]
        sources = {_viewed(node) for node in saved[num_fwd_outputs:] if isinstance(node, Node)}
        if any(placeholders[i] in sources for i in written):
            raise SavesWhatItWrites
        return forward, backward

    return parted


def _viewed(node: Node) -> Node:
    """What a node is a view of; itself if of nothing."""
    while node.target is operator.getitem or isinstance(node.target, torch._ops.OpOverload) and node.target.is_view:
        viewed = node.args[0]
        assert isinstance(viewed, Node)
        node = viewed
    return node


def _calls_operators_of_graphs(gm: GraphModule) -> bool:
    """Some (``while_loop``) make symbols while they are traced."""
    return any(isinstance(node.target, torch._ops.HigherOrderOperator) for node in gm.graph.nodes)


def aot_eager(
    gm: GraphModule,
    example_inputs: Sequence[Any],
    *,
    fw_compiler: Callable[..., Any] = boxed_nop,
    bw_compiler: Callable[..., Any] = boxed_nop,
    **ignored: Any,
) -> Callable[..., Any]:
    """Forward and backward graphs through AOTAutograd, each run as it is.

    ``fw_compiler`` and ``bw_compiler`` take ``(gm, example_inputs)`` and return a boxed callable.
    """
    warn_ignored("aot_eager", ignored)
    return aot_autograd(
        gm,
        example_inputs,
        fw_compiler=fw_compiler,
        bw_compiler=bw_compiler,
        partition_fn=min_cut_rematerialization_partition,
    )


class _Writing:
    """A compiled graph that writes to its inputs, at its end."""

    def __init__(self, compiled: Callable[..., Any], gm: GraphModule) -> None:
        self._compiled = compiled
        self._captured = own_copy(gm).forward
        drawing = "random" in gm.meta.get("unrepeatable", "")
        self._drawing = (seeds.devices_of(n.meta.get("example_value") for n in gm.graph.nodes) or ()) if drawing else ()

    def __call__(self, *inputs: Any) -> Any:
        counted = tuple(i for i in inputs if isinstance(i, torch.Tensor) and not i.is_inference())
        versions = tuple(t._version for t in counted)
        random = seeds.states(self._drawing)
        try:
            return self._compiled(*inputs)
        except Exception as error:
            failure = error
        try:
            torch._C._autograd._unsafe_set_version_counter(counted, versions)  # type: ignore[attr-defined]  # AOTAutograd counts first
            seeds.put_back(random)
            self._captured(*inputs)
            raise failure  # of the compiled graph alone
        finally:
            del failure  # a frame of its own traceback holds it
