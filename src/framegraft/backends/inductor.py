"""The inductor backend: torch's compiler to C++ and Triton, through ``torch._inductor.compile_fx``."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch._inductor
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._inductor import config as inductor_config
from torch._inductor.compile_fx import compile_fx
from torch._inductor.custom_graph_pass import CustomPartitionerFn
from torch.fx import GraphModule
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from ..errors import ConfigError
from .aot import SavesWhatItWrites, refusing
from .parts import compile_parts
from .tracing import backend_context, has_float_symbols, own_copy, settings_for, symbolic_inputs
from .twice import twice_differentiable
from .unused import written_inputs


class _Refusing(CustomPartitionerFn):
    """Inductor's partitioner, or that of the settings, which must not have ``written`` inputs saved."""

    def __init__(self, partition: CustomPartitionerFn | None, written: set[int]) -> None:
        self._partition, self._written = partition, written

    def __call__(self, gm: GraphModule, joint_inputs: Sequence[object], **kwargs: Any) -> tuple[GraphModule, GraphModule]:
        partition = refusing(self._partition or min_cut_rematerialization_partition, self._written)
        return partition(gm, joint_inputs, **kwargs)

    def uuid(self) -> Any:
        """A part of the keys of inductor's caches, where graphs may lie that were partitioned otherwise."""
        inner = None if self._partition is None else self._partition.uuid()
        return f"framegraft 1: {sorted(self._written)} not saved, {inner}"


class InductorBackend:
    """torch's compiler to C++ and Triton, behind AOTAutograd; ``options`` are settings of ``torch._inductor.config``."""

    compiler_name = "inductor"

    def __init__(self, config_patches: Mapping[str, Any] | None = None) -> None:
        self.config_patches = dict(config_patches or {})

    def __call__(self, gm: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        return compile_parts(gm, example_inputs, self._compile)

    def _compile(self, gm: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        patches = self.config_patches
        if has_float_symbols(gm):
            # It may take a float for a constant. The ShapeEnv tells of that when the code is made, but not when it comes from a cache.
            patches = {**patches, "fx_graph_cache": False, "fx_graph_remote_cache": False}
        written = written_inputs(gm)
        if written:
            partition = patches.get("custom_partitioner_fn", inductor_config.custom_partitioner_fn)
            patches = {**patches, "custom_partitioner_fn": _Refusing(partition, written)}
        with backend_context(gm, ShapeEnv):  # without one, the caches on disk are passed by
            # compile_fx takes ownership of the graph and rewrites it
            inputs = symbolic_inputs(gm, example_inputs)
            try:
                with settings_for(gm):
                    compiled: Any = compile_fx(own_copy(gm), inputs, config_patches=patches or None)
            except SavesWhatItWrites:
                return gm.forward
        # It comes wrapped to keep the other frame evaluation hook out, at a cost per call; ours skips torch's frames.
        return twice_differentiable(getattr(compiled, "_torchdynamo_orig_callable", compiled), gm)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InductorBackend) and self.config_patches == other.config_patches

    def __hash__(self) -> int:
        return hash(tuple(sorted(self.config_patches)))

    def __repr__(self) -> str:
        return f"InductorBackend({self.config_patches or ''})"

    def configured(
        self, mode: str | None = None, options: Mapping[str, Any] | None = None, dynamic: bool | None = None
    ) -> InductorBackend:
        """This backend with a mode (a set of options that inductor names) or options of its configuration.

        Raises:
            ConfigError: unknown mode or option, or a value of the wrong type.
        """
        patches = dict(self.config_patches)
        if mode not in (None, "default"):
            modes = torch._inductor.list_mode_options()
            if mode not in modes:
                raise ConfigError(f"inductor has no mode {mode!r}; there are {', '.join(sorted(modes))}")
            patches.update(torch._inductor.list_mode_options(mode, dynamic))
        known = inductor_config.get_config_copy() if options else {}
        for key, value in (options or {}).items():
            name = key.replace("-", "_")
            if name not in known:
                near = difflib.get_close_matches(name, known, n=3)
                offer = f"did you mean {' or '.join(near)}? " if near else ""
                raise ConfigError(f"inductor has no option {key!r}; {offer}There are {', '.join(sorted(known))}")
            declared = inductor_config.get_type(name)  # type: ignore[attr-defined]
            if isinstance(declared, type) and not isinstance(value, declared):
                raise ConfigError(f"inductor's option {key} takes {declared.__name__}, not {type(value).__name__}")
            patches[name] = value
        return self if patches == self.config_patches else InductorBackend(patches)


inductor = InductorBackend()
