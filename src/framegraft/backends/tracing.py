"""The surroundings in which torch's own compilers expect to be called: a TracingContext with the graph's fake mode."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch._functorch import config as functorch_config
from torch._guards import TracingContext, tracing
from torch._library.custom_ops import CustomOpDef
from torch._ops import OpOverload, OpOverloadPacket
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx import Graph, GraphModule

from ..tensor.fake import forget_tensors, left_its_base, to_fake
from ..tensor.wrappers import is_wrapper, plain_parts, twin
from .registry import SURROUNDINGS


def fake_mode_of(gm: GraphModule) -> FakeTensorMode | None:
    """The mode of the fake tensors that the nodes carry, in the inputs of the graph or, where these are numbers, behind them; or None."""
    for node in gm.graph.nodes:
        value = node.meta.get("example_value")
        for part in plain_parts(value) if isinstance(value, torch.Tensor) else ():
            if isinstance(part, FakeTensor):
                return part.fake_mode
    return None


@contextmanager
def backend_context(gm: GraphModule, shape_env: Callable[[], Any] | None = None) -> Iterator[None]:
    """A TracingContext for one compilation; ``shape_env`` makes a ShapeEnv for a graph without symbols.

    The fake mode is a fresh one on the graph's ShapeEnv: tracing may have changed the metadata of its fake inputs in
    place (``x.t_()``), and the compiler must see the inputs as they are at entry. A context that is there already and
    belongs to the same fake mode or ShapeEnv is kept.
    """
    mode = fake_mode_of(gm)
    if mode is None:
        yield
        return
    current = TracingContext.try_get()
    if current is not None and current.fake_mode is not None:
        theirs = current.fake_mode
        if theirs is mode or (mode.shape_env is not None and theirs.shape_env is mode.shape_env):
            yield
            return
    fresh = _fresh_mode(mode, shape_env)
    try:
        with tracing(TracingContext(fresh)):
            yield
    finally:
        forget_tensors(fresh.fake_tensor_converter)  # what is compiled keeps the mode


def settings_for(gm: GraphModule) -> Any:
    """A context with settings of torch's partitioner that the graph needs.

    It takes no two calls for one, where that can be told from the results: it merges equal operations on equal inputs, and knows
    only some of those that draw random numbers (``rand_ops`` of torch/_functorch/compile_utils.py): two ``randn_like(x)`` or
    ``gumbel_softmax(x)`` gave the same noise. What an operator of the program gives, it gives to each call.

    Regions of torch.utils.checkpoint in a graph without gradients are left as they are: a pass that looks for a backward pass in
    such a graph, where ours have none, refuses regions that draw random numbers.
    """
    drawn = "random" in gm.meta.get("unrepeatable", "")
    settings = {"cse": False} if drawn or any(map(is_operator_of_program, gm.graph.nodes)) else {}
    if hasattr(functorch_config, _REMAT) and any("recompute" in node.meta for node in gm.graph.nodes):
        settings[_REMAT] = False
    return functorch_config.patch(settings) if settings else nullcontext()


_REMAT = "remat_using_tags_for_fwd_loss_bwd_graph"


def is_operator_of_program(node: Any) -> bool:
    """A custom operator, in one of the forms in which a graph may call it."""
    target = node.target
    if isinstance(target, CustomOpDef):
        return True
    name = target.name() if isinstance(target, OpOverload) else str(target) if isinstance(target, OpOverloadPacket) else "aten::"
    return not name.startswith(("aten", "prim"))


def _fresh_mode(mode: FakeTensorMode, shape_env: Callable[[], Any] | None) -> FakeTensorMode:
    if mode.shape_env is None and shape_env is not None:
        return FakeTensorMode(shape_env=shape_env(), static_shapes=True, allow_non_fake_inputs=mode.allow_non_fake_inputs)
    return FakeTensorMode(
        shape_env=mode.shape_env, static_shapes=mode.static_shapes, allow_non_fake_inputs=mode.allow_non_fake_inputs
    )


def has_float_symbols(gm: GraphModule) -> bool:
    """Whether the graph was made with Python floats that change from call to call."""
    mode = fake_mode_of(gm)
    env = None if mode is None else mode.shape_env
    return env is not None and any(not symbol.is_integer for symbol in env.backed_var_to_val)


def refused_floats(error: BaseException | None) -> set[str]:
    """The symbols that a compiler cannot take as inputs of this graph, if it says so when it fails."""
    if type(error).__name__ != "TensorifyScalarRestartAnalysis":
        return set()
    state = sys.modules["torch.fx.passes._tensorify_python_scalars"].TensorifyState  # it notes in a global what it wants
    names = set(state.force_specializations)
    state.clear()
    return names


def symbolic_inputs(gm: GraphModule, example_inputs: Sequence[Any]) -> list[Any]:
    """The example inputs as a compiler should see them: in a graph with symbols, fake tensors with the graph's symbols.

    They belong to the fake mode of the present TracingContext: call it inside of ``backend_context``. Left to itself a
    compiler would make symbols of its own, which the guards know nothing of.
    """
    context = TracingContext.try_get()
    mode = None if context is None else context.fake_mode
    if mode is None:
        return list(example_inputs)
    placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
    made = []
    for node, value in zip(placeholders, example_inputs, strict=True):
        if isinstance(value, FakeTensor):
            value = value if value.fake_mode is mode else _stand_in(mode, value)
        elif isinstance(value, torch.Tensor) and is_wrapper(type(value)):
            value = twin(mode, value, node.meta.get("extents")) if mode.shape_env is not None else value
        elif isinstance(value, torch.Tensor) and (mode.shape_env is not None or left_its_base(value) or _has_gradient(value)):
            value = to_fake(mode, value, node.meta.get("extents"))
            if "carries" in node.meta:
                value.item_memo = node.meta["carries"]
        made.append(value)
    return made


@contextmanager
def _shapes_known(gm: GraphModule, example_inputs: Sequence[Any]) -> Iterator[None]:
    """Torch's compilers, where a compiler of the user's hands the graph on to one, find the graph's symbols for the real inputs.

    Left to themselves they would take the sizes of these for constants.
    """
    placeholders = gm.graph.find_nodes(op="placeholder")
    if not any("extents" in n.meta or isinstance(n.meta.get("example_value"), torch.SymInt) for n in placeholders):
        yield
        return
    with backend_context(gm):
        twins = symbolic_inputs(gm, example_inputs)  # the mode remembers whose they are, as long as they live
        yield
        del twins


SURROUNDINGS.append(_shapes_known)


def _has_gradient(value: torch.Tensor) -> bool:
    """AOTAutograd would copy the gradient, which is none of its business, and may be one for other data: ``p.data = ...``."""
    return type(value) in (torch.Tensor, torch.nn.Parameter) and value.is_leaf and value.requires_grad and value.grad is not None


def _stand_in(mode: FakeTensorMode, value: torch.Tensor) -> torch.Tensor:
    """What one part of a graph hands to the next, as ``mode`` sees it."""
    with mode:
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device,
                                   requires_grad=value.requires_grad)


def own_copy(gm: GraphModule) -> GraphModule:
    """A copy whose graph a compiler may rewrite; parameters and constants are shared with the original."""
    graph = Graph()
    values: dict[Any, Any] = {}
    result = graph.graph_copy(gm.graph, values)
    output = graph.output(result)
    output.meta = dict(gm.graph.output_node().meta)
    copy = GraphModule(gm, graph, class_name=type(gm).__name__)
    copy.meta = dict(gm.meta)
    return copy
