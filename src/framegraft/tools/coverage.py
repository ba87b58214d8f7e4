"""Coverage: how many of a run's tensor operations come from captured graphs, and how much of their time.

An operation is what the program, or a graph, calls: an event of torch's profiler that lies in no other operation. Those of
the capture itself do not count, nor do those of a backward pass, which belong to the forward operations.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.autograd import profiler_legacy
from torch.autograd.profiler import record_function

from .. import events

_RANGE = "framegraft::graph"
_AUTOGRAD: Any = torch._C._autograd  # type: ignore[attr-defined]
_BACKWARD = "autograd::engine"


@dataclass(frozen=True)
class Coverage:
    """Operations in graphs and in all; ``seconds`` is the time of both kinds, on the processor."""

    captured: int
    total: int
    captured_seconds: float
    total_seconds: float

    @property
    def by_count(self) -> float:
        """0 to 1; 1 where there were no operations at all."""
        return self.captured / self.total if self.total else 1.0

    @property
    def by_time(self) -> float:
        return self.captured_seconds / self.total_seconds if self.total_seconds else 1.0


def in_range(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """``compiled``, with its operations marked as those of a graph."""

    @functools.wraps(compiled, updated=())
    def run_marked(*args: Any) -> Any:
        with record_function(_RANGE):
            return compiled(*args)

    return run_marked


class Measure(events.Listener):
    """``with Measure() as m: ...``; then ``m.coverage``, None where a profiler ran already."""

    def __init__(self) -> None:
        self.coverage: Coverage | None = None
        self._depth = 0
        self._profile: Any = None

    def capture_started(self, event: events.CaptureStarted) -> None:
        self._depth += 1
        if self._depth == 1:
            _AUTOGRAD._enable_record_function(False)

    def capture_ended(self, event: events.CaptureEnded) -> None:
        self._depth -= 1
        if not self._depth:
            _AUTOGRAD._enable_record_function(True)

    def __enter__(self) -> Measure:
        if not _AUTOGRAD._profiler_enabled():
            events.subscribe(self)
            self._profile = profiler_legacy.profile()
            self._profile.__enter__()
        return self

    def __exit__(self, *exc_info: Any) -> None:
        if self._profile is not None:
            events.unsubscribe(self)
            self._profile.__exit__(*exc_info)
            self.coverage = _count(self._profile.function_events)


def _count(events: Any) -> Coverage:
    counts, times = [0, 0], [0.0, 0.0]
    for event in events:
        parent = event.cpu_parent
        if event.name == _RANGE or (parent is not None and parent.name != _RANGE) or event.name.startswith(_BACKWARD):
            continue
        captured = parent is not None
        counts[captured] += 1
        times[captured] += event.cpu_time_total * 1e-6
    return Coverage(counts[1], sum(counts), times[1], sum(times))
