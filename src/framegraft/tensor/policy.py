"""Which sizes and numbers of the inputs become symbols: those marked by the user, and those that were seen to change."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Any

import torch

from ..model.source import Source

INT64 = (-(1 << 63), (1 << 63) - 1)
FIXED_FLOATS = "<floats are fixed>"
TENSOR_FLOATS = "<floats are tensors>"
ANY = "any"  # in place of a value that is a symbol
FIXED = "fixed"  # in place of a value that the compiler takes for a constant


_STRICT, _WEAK = _DYNAMIC = ("_dynamo_dynamic_indices", "_dynamo_weak_dynamic_indices")


@dataclasses.dataclass
class Plan:
    """What of one tensor becomes symbols: dimensions, and limits (lowest, highest; None for none) of some of them."""

    sizes: set[int]
    strides: set[int]
    unbacked: set[int] = dataclasses.field(default_factory=set)
    strict: set[int] = dataclasses.field(default_factory=set)  # an error where the program needs one particular size
    ranges: dict[int, tuple[int | None, int | None]] = dataclasses.field(default_factory=dict)


class Policy:
    """Decides for one capture; ``seen`` is what the capture leaves for those to come.

    Args:
        dynamic: as ``framegraft.compile`` takes it.
        earlier: what earlier captures of the same code left.
    """

    def __init__(self, dynamic: bool | None, earlier: Iterable[dict[str, Any]], config: Any) -> None:
        self.dynamic = True if dynamic is None and config.dynamic_shapes else dynamic
        self.earlier = list(earlier) if dynamic is None and config.automatic_dynamic_shapes or self.dynamic else []
        self.specialize_int = config.specialize_int
        self.specialize_float = config.specialize_float or any(FIXED_FLOATS in e for e in self.earlier)
        self.tensor_floats = any(TENSOR_FLOATS in e for e in self.earlier)
        self.seen: dict[str, Any] = {}
        self._names: dict[Source, str] = {}
        self._fixed: set[Source] = set()
        self._marks: dict[Source, dict[str, Any]] = {}  # of tensors inside of others

    def spare_compiler(self, how: str) -> None:
        """For a compiler that cannot have floats everywhere, now and in captures to come.

        Args:
            how: ``TENSOR_FLOATS``, operations take tensors instead (``floats.py``); ``FIXED_FLOATS``, no float becomes a symbol.
        """
        self.seen[how] = True
        self.tensor_floats |= how == TENSOR_FLOATS
        self.specialize_float |= how == FIXED_FLOATS

    def fix(self, sources: set[Source]) -> None:
        """The compiler makes code for each value of these floats: they are no symbols from now on, and in captures to come."""
        self._fixed |= sources
        for source in sources & self._names.keys():
            self.seen[self._names[source]] = (float, FIXED)

    def _name(self, source: Source) -> str:
        """The source's name; pinned objects of one class share theirs, so that the n-th of them gets a number."""
        name = text = source.name
        count = 1
        while name in self.seen:
            count += 1
            name = f"{text}#{count}"
        return name

    def number(self, value: int | float, source: Source) -> bool:
        """Whether an int or float from outside becomes a symbol."""
        if self.dynamic is False:
            return False
        name = self._names[source] = self._name(source)
        integer = type(value) is int
        wanted = bool(self.dynamic) and integer and value not in (0, 1) and _is_argument(source)
        for before in self.earlier:
            old = before.get(name)
            if old is not None and type(old) is tuple and old[0] is type(value) and (old[1] is ANY or old[1] != value):
                wanted = True
        fixed = source in self._fixed or any(before.get(name) == (float, FIXED) for before in self.earlier)
        if not integer and (fixed or not fits(value)):
            wanted = False
        wanted = wanted and not (self.specialize_int if integer else self.specialize_float)
        self.seen[name] = (type(value), FIXED if fixed else ANY if wanted else value)
        return wanted

    def mark_inside(self, part: torch.Tensor, source: Source, whole: torch.Tensor, place: Source) -> None:
        """The marks of a tensor that holds others count for those of the same shape, too: its sizes are theirs.

        Whether one of them may be a constant is asked of the outer one. (torch.compile's own mark_dynamic marks what is inside, too.)
        """
        marks, outer = part.__dict__, self._marks.get(place, whole.__dict__)
        dynamic = {d for of in (marks, outer) for name in _DYNAMIC for d in of.get(name) or ()}
        if dynamic and part.shape == whole.shape:
            self._marks[source] = {**marks, _STRICT: set(), _WEAK: dynamic}

    def tensor(self, tensor: torch.Tensor, source: Source) -> Plan | None:
        """What of a tensor becomes symbols, None for nothing."""
        marks: Any = self._marks.get(source, tensor.__dict__)
        marked = marks.get(_STRICT) or marks.get("_dynamo_unbacked_indices") or marks.get(_WEAK)
        if self.dynamic is False and not marked or isinstance(tensor, torch.nn.Parameter) and not marked:
            return None
        rank = tensor.dim()
        name = self._name(source)
        plan = Plan(set(), set())
        if self.dynamic:
            plan.sizes.update(range(rank))
        for before in self.earlier:
            old = before.get(name)
            if isinstance(old, list) and len(old) == 2 * rank:
                plan.sizes.update(i for i in range(rank) if old[i] is ANY or old[i] != tensor.shape[i])
                plan.strides.update(i for i in range(rank) if old[rank + i] is ANY or old[rank + i] != tensor.stride(i))
        _apply_marks(plan, marks, rank)
        plan.sizes = {i for i in plan.sizes if tensor.shape[i] not in (0, 1)}
        sizes = [ANY if i in plan.sizes or i in plan.unbacked else n for i, n in enumerate(tensor.shape)]
        self.seen[name] = [*sizes, *(ANY if i in plan.strides else n for i, n in enumerate(tensor.stride()))]
        return plan if plan.sizes or plan.unbacked or plan.strides else None


class SymbolInput:
    """An input of the graph that is a number; among the graph's inputs it stands where tensors have their trackers."""

    def __init__(self, node: Any, source: Source, value: Any) -> None:
        self.node = node
        self.source = source
        self.value = value


def fits(value: Any) -> bool:
    """Whether a Python number can be a symbol. Zeros have a sign, which guards do not see; ShapeEnv's symbols are real numbers,
    which nan and the infinities are not.
    """
    return INT64[0] <= value <= INT64[1] if type(value) is int else math.isfinite(value) and value != 0.0


def _is_argument(source: Source) -> bool:
    """Whether a number is an argument itself, or an item of one."""
    while source.access in ("ITEM", "KEY") and source.base is not None:
        source = source.base
    return source.access == "ARG"


def _apply_marks(plan: Plan, marks: dict[str, Any], rank: int) -> None:
    """What ``mark_dynamic`` and its relatives left on the tensor, ours or torch's."""

    def dims(name: str) -> set[int]:
        return {d % rank for d in marks.get(name) or () if -rank <= d < rank}

    plan.sizes |= dims(_WEAK)
    plan.sizes -= dims("_dynamo_static_indices")
    plan.strict = dims(_STRICT)
    plan.sizes |= plan.strict
    plan.unbacked = dims("_dynamo_unbacked_indices") | dims("_dynamo_strict_unbacked_indices")
    plan.sizes -= plan.unbacked
    for limits in marks.get("_dynamo_dynamic_range") or ():
        if limits.min is not None or limits.max is not None:
            plan.ranges[limits.dim % rank] = (limits.min, limits.max)
    for dim, (low, high) in (marks.get("_dynamo_unbacked_bounds") or {}).items():
        plan.ranges[dim % rank] = (low, high)
