"""``framegraft.explain`` and ``framegraft.status``: what was captured, what was not and why, and what it costs."""

from __future__ import annotations

import dataclasses
import io
import types
from collections.abc import Callable
from typing import Any

from rich.console import Console

from .. import _native
from ..api import OptimizedModule, innermost_fn
from ..api import compile as compile_object
from ..run import records
from . import show
from .coverage import Coverage, Measure, in_range
from .details import Break, Collector, GuardGroup, Recompilation, recompilation


class Explanation:
    """What was found out. ``str`` gives plain text; ``rich.print`` and ``print()`` of this object give colours.

    Attributes:
        graphs: the ``torch.fx.GraphModule`` objects, in the order of capture; ``graph_count``, ``op_count`` their counts.
        breaks: a ``Break`` for each graph break; ``break_reasons`` the same as one line of text each.
        recompiles: a ``Recompilation`` for each call that fitted no entry of its function.
        guard_groups: guards by what they are about; ``guard_count`` is their sum.
        guard_nanoseconds: what all guards of one pass cost, None where they were not measured.
        coverage: operations captured out of all, None for ``status``.
        phases: seconds of each phase of the capture, ``compile_seconds`` their sum.
        captures: the records of all conversions.
        result: what the explained call returned.
    """

    def __init__(self, captures: list[records.Capture], collector: Collector | None, coverage: Coverage | None = None) -> None:
        self.captures = captures
        self.coverage = coverage
        self.result: Any = None
        self.graphs = [g for g in map(_module_of, captures) if g is not None]
        self.graph_count = sum(bool(c.graph) for c in captures)
        self.op_count = sum(c.op_count for c in captures)
        self.breaks = [Break.of(c.broken) for c in captures if c.broken is not None]
        self.graph_break_count = len(self.breaks)
        self.break_reasons = [str(c.broken) for c in captures if c.broken is not None]
        self.recompiles: list[Recompilation] = [r for c in captures if (r := recompilation(c, collector)) is not None]
        self.guard_count = sum(c.guard_count for c in captures)
        self.guard_groups = _merged(captures, collector)
        costs = [d.nanoseconds for d in collector.details.values() if d.nanoseconds is not None] if collector is not None else []
        self.guard_nanoseconds: float | None = sum(costs) if costs else None
        self.phases = {phase: sum(c.phases[phase] for c in captures) for phase in records.PHASES}
        self.compile_seconds = sum(self.phases.values())

    def __rich__(self) -> Any:
        return show.explanation(self)

    def __str__(self) -> str:
        text = io.StringIO()
        Console(file=text, width=118, color_system=None, force_terminal=False, legacy_windows=False, highlight=False).print(self)
        return "\n".join(line.rstrip() for line in text.getvalue().splitlines())

    __repr__ = __str__

    def as_dict(self) -> dict[str, Any]:
        """Everything but graphs and result, as JSON can hold it."""
        coverage = self.coverage
        return {
            "graphs": self.graph_count,
            "operations": self.op_count,
            "guards": self.guard_count,
            "guard_nanoseconds": self.guard_nanoseconds,
            "coverage": dataclasses.asdict(coverage) | {"by_count": coverage.by_count, "by_time": coverage.by_time} if coverage else None,
            "breaks": [dataclasses.asdict(b) for b in self.breaks],
            "guard_groups": [dataclasses.asdict(g) for g in self.guard_groups],
            "recompiles": [dataclasses.asdict(r) for r in self.recompiles],
            "phases": self.phases,
        }

    def print(self, console: Console | None = None) -> None:
        """Print in colours where the terminal has them."""
        (console or Console()).print(self)


def _module_of(capture: records.Capture) -> Any:
    info = capture.info()
    return None if info is None else info.graph_module


def _merged(captures: list[records.Capture], collector: Collector | None) -> list[GuardGroup]:
    groups: dict[str, GuardGroup] = {}
    for capture in captures:
        known = collector.details.get(capture.number) if collector is not None else None
        for group in known.groups if known is not None else []:
            found = groups.setdefault(group.name, GuardGroup(group.name, 0))
            found.count += group.count
            if group.nanoseconds is not None:
                found.nanoseconds = (found.nanoseconds or 0.0) + group.nanoseconds
    return sorted(groups.values(), key=lambda g: -(g.nanoseconds or 0.0))


def explain(fn: Any, *args: Any, **kwargs: Any) -> Any:
    """Call ``fn`` once, captured anew with graphs that run as they are, and tell what happened.

    ``explain(fn, *args, **kwargs)`` returns an ``Explanation``; ``explain(fn)`` a function of the arguments, for a ``fn``
    without parameters too: ``explain(fn)()``. The call is a real one, with all its effects. What ``fn`` was compiled for is
    left alone; an error of the call leaves this function as it is.
    """
    if not args and not kwargs:
        return _explainer(fn)
    return _explainer(fn)(*args, **kwargs)


def _explainer(fn: Any) -> Callable[..., Explanation]:
    def explained(*args: Any, **kwargs: Any) -> Explanation:
        def run_as_it_is(gm: Any, inputs: list) -> Any:
            return in_range(gm.forward)

        compiled = compile_object(_uncompiled(fn), backend=run_as_it_is)
        with Collector() as collector:
            try:
                with Measure() as measured:
                    result = compiled(*args, **kwargs)
            finally:
                _forget(collector)
        found = Explanation(collector.captures, collector, measured.coverage)
        found.result = result
        return found

    return explained


def _uncompiled(fn: Any) -> Any:
    if isinstance(fn, OptimizedModule):
        return fn._orig_mod
    if isinstance(fn, types.MethodType):
        return types.MethodType(innermost_fn(fn.__func__), fn.__self__)
    return innermost_fn(fn)


def _forget(collector: Collector) -> None:
    """Take the entries that were made for a look out of the caches, and out of ``status``."""
    made = {id(info) for info in collector.infos}
    for capture in collector.captures:
        code = capture.code()
        if code is None:
            continue
        for entry in _native.cache_entries(code):
            if id(entry.info) in made:
                _native.remove_entry(code, entry)
    records.forget(collector.captures)


def status() -> Explanation:
    """What the process has captured since it started, or since the last ``reset``."""
    return Explanation(list(records.CAPTURES), None)
