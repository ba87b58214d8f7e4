"""Graphs that change their inputs, behind compilers that look at the inputs of one call.

AOTAutograd makes a graph functional. It looks which inputs share memory at compilation, and takes the others for apart in
every call to come. Guards on addresses would fail all the time; so the addresses are compared here, at the call, and where
an input that the graph changes overlaps another one, the graph runs as it was captured, operation by operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._prims_common import is_non_overlapping_and_dense_or_false
from torch.fx import GraphModule

from .registry import Compiler, call_backend
from .tracing import own_copy


def compile_changing(compiler: Compiler, gm: GraphModule, inputs: Sequence[torch.Tensor], changed: Sequence[int]) -> Callable[..., Any]:
    """As ``call_backend``, for a graph that changes the inputs marked in ``changed``; 2: but for their version counters."""
    captured = own_copy(gm)
    memory = Memory(inputs, changed)
    shown = list(inputs) if memory.apart([t.data_ptr() for t in inputs]) else [_apart(t) for t in inputs]
    compiled = call_backend(compiler, gm, shown)
    if isinstance(getattr(compiled, "__self__", None), GraphModule):
        return compiled  # runs the operations in order
    hidden = [i for i, kind in enumerate(changed) if kind == 2]
    return _Checked(_Uncounted(compiled, hidden) if hidden else compiled, captured.forward, memory)


class Memory:
    """Where the inputs of a graph lie. Shapes and strides never change: every call is guarded on them."""

    def __init__(self, inputs: Sequence[torch.Tensor], changed: Sequence[int]) -> None:
        self._spans = [_span(t) for t in inputs]
        self._changed = [i for i, c in enumerate(changed) if c]
        self._is_changed = [bool(c) for c in changed]
        self._good: list[int] = [0] * len(inputs)  # addresses that were found apart; 0: nowhere

    def apart(self, starts: list[int]) -> bool:
        """Whether no changed input overlaps another input, for inputs at these addresses."""
        good = self._good
        if starts == good:
            return True
        moved = [i for i, start in enumerate(starts) if start != good[i]]
        spans = self._spans
        for i in moved:
            start, end = starts[i], starts[i] + spans[i]
            for j in range(len(starts)) if self._is_changed[i] else self._changed:
                if starts[j] < end and start < starts[j] + spans[j] and i != j and start and starts[j]:
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
        if is_non_overlapping_and_dense_or_false(t):
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
    def __init__(self, compiled: Callable[..., Any], captured: Callable[..., Any], memory: Memory) -> None:
        self._compiled = compiled
        self._captured = captured
        self._memory = memory

    def __call__(self, *inputs: Any) -> Any:
        if self._memory.apart([t.data_ptr() for t in inputs]):
            return self._compiled(*inputs)
        return self._captured(*inputs)
