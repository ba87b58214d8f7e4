"""AOTAutograd as inductor drives it, without inductor's code generation. Its own file: the import takes a second."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from torch._functorch import config as functorch_config
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._inductor.decomposition import select_decomp_table
from torch.fx import GraphModule

from .aot import aot_autograd
from .eager import warn_ignored


def aot_eager_decomp_partition(gm: GraphModule, example_inputs: Sequence[Any], **ignored: Any) -> Callable[..., Any]:
    """As ``aot_eager``, with inductor's decompositions and partitioner: all of inductor but its code generation."""
    warn_ignored("aot_eager_decomp_partition", ignored)
    with functorch_config.patch(unlift_effect_tokens=True):
        return aot_autograd(
            gm,
            example_inputs,
            decompositions=select_decomp_table(),
            partition_fn=functools.partial(min_cut_rematerialization_partition, compiler="inductor"),
            keep_inference_input_mutations=False,
        )
