"""AOTAutograd without a compiler behind it: functional forward and backward graphs, run by the interpreter of torch.

They tell whether a fault is in AOTAutograd or in what comes after, and they are the quickest way to capture training.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch._functorch._aot_autograd.utils import make_boxed_func
from torch._functorch.aot_autograd import aot_module_simplified
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.fx import GraphModule

from .eager import warn_ignored
from .parts import compile_parts
from .tracing import backend_context, symbolic_inputs
from .twice import twice_differentiable


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
        with backend_context(part):
            return twice_differentiable(aot_module_simplified(part, symbolic_inputs(part, inputs), **settings), part)

    return compile_parts(gm, example_inputs, one)


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
