"""Graphs that change their inputs, behind compilers that look at the inputs of one call.

AOTAutograd makes a graph functional. It looks which inputs share memory at compilation, and takes the others for apart in
every call to come. Guards on addresses would fail all the time; so the addresses are compared here, at the call, and where
an input that the graph changes overlaps another one, the graph runs as it was captured, operation by operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule

from ..native.private import is_dense
from ..tensor.wrappers import is_wrapper, plain_parts
from .registry import Compiler, call_backend
from .tracing import own_copy


def compile_changing(compiler: Compiler, gm: GraphModule, inputs: Sequence[Any], changed: Sequence[int]) -> Callable[..., Any]:
    """As ``call_backend``, for a graph that changes the inputs marked in ``changed``; 2: but for their version counters.

    Inputs are tensors and numbers.
    """
    captured = own_copy(gm)
    tensors = [i for i, value in enumerate(inputs) if isinstance(value, torch.Tensor)]
    wraps = any(is_wrapper(type(inputs[i])) for i in tensors)
    parts, kinds = zip(*((part, changed[i]) for i in tensors for part in plain_parts(inputs[i])), strict=True)
    memory = Memory(parts, kinds, len(tensors) < len(inputs) or _has_symbols(gm))
    shown = list(inputs)
    if not memory.apart(parts):
        if wraps:
            return captured.forward
        shown = [_apart(t) if isinstance(t, torch.Tensor) else t for t in inputs]
    compiled = call_backend(compiler, gm, shown)
    if isinstance(getattr(compiled, "__self__", None), GraphModule):
        return compiled  # runs the operations in order
    hidden = [i for i, kind in enumerate(changed) if kind == 2]
    called = _Uncounted(compiled, hidden) if hidden else compiled
    plain = len(tensors) == len(inputs) and not wraps
    return _Checked(called, captured.forward, memory, None if plain else tensors)


def _parts(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Those that have memory: of wrappers, what they hold."""
    return [part for tensor in tensors for part in plain_parts(tensor)]


def _has_symbols(gm: GraphModule) -> bool:
    return any("extents" in n.meta for n in gm.graph.nodes if n.op == "placeholder")


class Memory:
    """Where the tensors among a graph's inputs lie.

    Args:
        inputs: the tensors.
        changed: which of them the graph changes.
        dynamic: their sizes differ from call to call; otherwise every call is guarded on shapes and strides.
    """

    def __init__(self, inputs: Sequence[torch.Tensor], changed: Sequence[int], dynamic: bool = False) -> None:
        self._spans = [_span(t) for t in inputs]
        self._dynamic = dynamic
        self._changed = [i for i, c in enumerate(changed) if c]
        self._is_changed = [bool(c) for c in changed]
        self._good: list[int] = [0] * len(inputs)  # addresses that were found apart; 0: nowhere

    def apart(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Whether no changed input overlaps another input."""
        starts = [t.data_ptr() for t in tensors]
        good, spans = self._good, self._spans
        if self._dynamic and (now := [_span(t) for t in tensors]) != spans:
            spans = self._spans = now
            good = [0] * len(starts)
        if starts == good:
            return True
        moved = [i for i, start in enumerate(starts) if start != good[i]]
        for i in moved:
            start, end = starts[i], starts[i] + spans[i]
            for j in range(len(starts)) if self._is_changed[i] else self._changed:
                if starts[j] < end and start < starts[j] + spans[j] and i != j and start and starts[j]:
                    self._good = [0] * len(starts)
                    return False
        self._good = starts
        return True


def _span(t: torch.Tensor) -> int:
    """Bytes from the first to the last element."""
    if not t.numel():
        return 0
    return (sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True)) + 1) * t.element_size()


def _apart(t: torch.Tensor) -> torch.Tensor:
    """A tensor like ``t`` in memory of its own, for a compiler to look at."""
    with torch.inference_mode(t.is_inference()), torch.no_grad():
        copy = torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device)
        if is_dense(t):
            copy.copy_(t)
    if t.requires_grad:
        copy.requires_grad_()
        if not t.is_leaf:
            functions: Any = torch._C._functions  # type: ignore[attr-defined]
            copy = functions.DelayedError("backward through the example input of a compilation", 1)(copy)
    return copy


class _Uncounted:
    """Sets version counters back after a call: what eager kernels write without counting is written by operations that count.

    batch_norm writes its running statistics so. A gradient through an earlier call in eval mode has saved them, and autograd
    would take the compiled graph's write for a mistake of the program.
    """

    def __init__(self, compiled: Callable[..., Any], hidden: list[int]) -> None:
        self._compiled = compiled
        self._hidden = hidden

    def __call__(self, *inputs: Any) -> Any:
        written = tuple(inputs[i] for i in self._hidden)
        versions = tuple(t._version for t in written)
        outputs = self._compiled(*inputs)
        torch._C._autograd._unsafe_set_version_counter(written, versions)  # type: ignore[attr-defined]
        return outputs


class _Checked:
    def __init__(
        self, compiled: Callable[..., Any], captured: Callable[..., Any], memory: Memory, tensors: list[int] | None
    ) -> None:
        self._compiled = compiled
        self._captured = captured
        self._memory = memory
        self._tensors = tensors  # which inputs are tensors; None: all, and none of them holds others

    def __call__(self, *inputs: Any) -> Any:
        tensors = inputs if self._tensors is None else _parts([inputs[i] for i in self._tensors])
        return self._compiled(*inputs) if self._memory.apart(tensors) else self._captured(*inputs)
