"""Helpers for tests of programs that use Framegraft, and for its own."""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import torch
from torch.fx import GraphModule

from .backends.registry import call_backend, lookup_backend


class CompileCounter:
    """A backend that runs graphs as they are and counts: ``frame_count`` graphs, ``op_count`` calls in them."""

    def __init__(self) -> None:
        self.frame_count = 0
        self.op_count = 0

    def __call__(self, gm: GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        self.frame_count += 1
        self.op_count += sum("call" in node.op for node in gm.graph.nodes)
        return gm.forward

    def clear(self) -> None:
        self.frame_count = 0
        self.op_count = 0


class CompileCounterWithBackend(CompileCounter):
    """Counts, keeps the graphs in ``graphs``, and hands them on to ``backend`` (a name or a compiler)."""

    def __init__(self, backend: str | Callable[..., Any]) -> None:
        super().__init__()
        self.backend = backend
        self.graphs: list[GraphModule] = []

    def __call__(self, gm: GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        super().__call__(gm, example_inputs)
        self.graphs.append(gm)
        return call_backend(lookup_backend(self.backend), gm, example_inputs)

    def clear(self) -> None:
        super().clear()
        self.graphs = []


def same(a: Any, b: Any, *, exact: bool = True, rtol: float = 1e-4, atol: float = 1e-5) -> bool:
    """Deep equality of two results: types, shapes, dtypes, devices, strides, requires_grad, values. nan equals nan.

    Args:
        exact: values bit for bit (0.0 and -0.0 differ); else within ``rtol`` and ``atol``, with strides left out.

    Objects of other classes are compared by ``__dict__`` (and slots) if they do not define ``__eq__``.
    """
    return _Comparison(exact, rtol, atol).same(a, b)


class _Comparison:
    def __init__(self, exact: bool, rtol: float, atol: float) -> None:
        self.exact = exact
        self.rtol = rtol
        self.atol = atol
        self.busy: set[tuple[int, int]] = set()  # pairs under comparison: structures may be cyclic

    def same(self, a: Any, b: Any) -> bool:
        if type(a) is not type(b):
            return False
        if a is b:
            return True
        pair = (id(a), id(b))
        if pair in self.busy:
            return True
        self.busy.add(pair)
        try:
            return self.same_of_type(a, b)
        finally:
            self.busy.discard(pair)

    def same_of_type(self, a: Any, b: Any) -> bool:
        if isinstance(a, torch.Tensor):
            return self.same_tensor(a, b)
        if isinstance(a, float):
            return self.same_float(a, b)
        if isinstance(a, complex):
            return self.same_float(a.real, b.real) and self.same_float(a.imag, b.imag)
        if isinstance(a, (list, tuple, collections.deque)):
            return len(a) == len(b) and all(map(self.same, a, b)) and self.same_state(a, b)
        if isinstance(a, Mapping):
            # the order of a dict is part of its value
            return self.same(list(a.keys()), list(b.keys())) and self.same(list(a.values()), list(b.values()))
        if isinstance(a, AbstractSet):
            return a == b
        if isinstance(a, (range, slice, str, bytes, bytearray, int, type(None), type)):
            return bool(a == b)
        if isinstance(a, BaseException):
            return self.same(a.args, b.args)
        if isinstance(a, torch.nn.Module):
            return self.same(dict(a.state_dict()), dict(b.state_dict())) and a.training == b.training
        if type(a).__module__ == "numpy":
            return self.same_array(a, b)
        if dataclasses.is_dataclass(a) or type(a).__eq__ is object.__eq__:
            return bool(self.has_state(a)) and self.same_state(a, b)
        return bool(a == b)

    def same_tensor(self, a: torch.Tensor, b: torch.Tensor) -> bool:
        for attribute in ("shape", "dtype", "device", "layout", "requires_grad"):
            if getattr(a, attribute) != getattr(b, attribute):
                return False
        if a.layout is not torch.strided:
            return self.same_tensor(a.detach().to_dense(), b.detach().to_dense())
        x, y = a.detach(), b.detach()
        if not self.exact:
            if x.dtype.is_floating_point or x.dtype.is_complex:
                return torch.allclose(x, y, rtol=self.rtol, atol=self.atol, equal_nan=True)
            return torch.equal(x, y)
        return x.stride() == y.stride() and same_bits(x, y)

    def same_float(self, a: float, b: float) -> bool:
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        if self.exact:
            return a == b and math.copysign(1.0, a) == math.copysign(1.0, b)
        return math.isclose(a, b, rel_tol=self.rtol, abs_tol=self.atol)

    def same_array(self, a: Any, b: Any) -> bool:
        if not hasattr(a, "dtype"):
            return bool(a == b)
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        if a.dtype.kind == "O":
            return self.same(a.tolist(), b.tolist())
        return bool(a.tobytes() == b.tobytes())

    def has_state(self, obj: Any) -> bool:
        return hasattr(obj, "__dict__") or any("__slots__" in vars(c) for c in type(obj).__mro__)

    def same_state(self, a: Any, b: Any) -> bool:
        """Compare instance dicts and slots."""
        if not self.same(getattr(a, "__dict__", None), getattr(b, "__dict__", None)):
            return False
        missing = object()
        for cls in type(a).__mro__:
            slots = vars(cls).get("__slots__", ())
            for slot in (slots,) if isinstance(slots, str) else slots:
                if slot in ("__dict__", "__weakref__"):
                    continue
                x, y = getattr(a, slot, missing), getattr(b, slot, missing)
                if x is not y and not self.same(x, y):
                    return False
        return True


def same_bits(x: torch.Tensor, y: torch.Tensor) -> bool:
    """Equal values, told apart 0.0 and -0.0; any nan equals any nan."""
    if x.dtype.is_complex:
        return same_bits(torch.view_as_real(x.resolve_conj()), torch.view_as_real(y.resolve_conj()))
    if not x.dtype.is_floating_point:
        return torch.equal(x, y)
    nans = x.isnan()
    if not torch.equal(nans, y.isnan()):
        return False
    equal = (x == y) & (x.signbit() == y.signbit())
    return bool((equal | nans).all())
