"""What happens while programs are captured, as typed events on one bus.

The engine publishes; logs, ``explain``, reports, dumped files, repro folders and FRAMEGRAFT_TRACE listen. A listener defines a
method for each kind of event that it wants, named as the event's ``kind``:

    class Slow(framegraft.events.Listener):
        def phase_ended(self, event):
            if event.seconds > 1:
                print(event.capture.name, event.phase, event.seconds)

    with framegraft.events.listening(Slow()):
        ...

Events come in the order of the fields of ``KINDS`` within a capture; those of one capture may lie inside of another's, when a
capture runs code that is captured in turn. What a listener raises comes out of the capture.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

if TYPE_CHECKING:
    from types import CodeType

    from .errors import GraphBreak


@dataclass(slots=True, eq=False)
class Event:
    """Something that happened to ``capture``, the conversion of one frame (``run.records.Capture``)."""

    kind: ClassVar[str] = ""
    capture: Any


@dataclass(slots=True, eq=False)
class CaptureStarted(Event):
    """Before a frame is looked at. ``args`` are the flat parameters that ``fn`` is called with."""

    kind = "capture_started"
    fn: Any
    args: tuple


@dataclass(slots=True, eq=False)
class Recompiled(Event):
    """The frame has ``entries`` that do not fit the call; ``capture.recompile`` tells why."""

    kind = "recompiled"
    fn: Any
    args: tuple
    entries: list


@dataclass(slots=True, eq=False)
class PhaseEnded(Event):
    """``phase`` is one of ``records.PHASES``; a frame that is traced more than once has several of a name."""

    kind = "phase_ended"
    phase: str
    seconds: float


@dataclass(slots=True, eq=False)
class GraphBroken(Event):
    """The graph ends at ``broken``, or the whole frame is left in eager mode because of it."""

    kind = "graph_broken"
    broken: GraphBreak


@dataclass(slots=True, eq=False)
class GraphTraced(Event):
    """A graph is complete and goes to the backend. ``module`` is a ``torch.fx.GraphModule``."""

    kind = "graph_traced"
    name: str
    module: Any


@dataclass(slots=True, eq=False)
class GraphCompiled(Event):
    """The backend gave ``compiled`` for the graph. A listener may put another callable in its place."""

    kind = "graph_compiled"
    name: str
    module: Any
    inputs: list[Any]
    compiled: Any


@dataclass(slots=True, eq=False)
class EntryMade(Event):
    """The frame has a new entry. ``lines`` are those that were traced for it, each with its code, if somebody wants them."""

    kind = "entry_made"
    entry: Any
    guards: Sequence[Any]
    lines: set[tuple[CodeType, int]]
    fn: Any
    args: tuple


@dataclass(slots=True, eq=False)
class CaptureFailed(Event):
    """A backend or Framegraft itself failed; the frame has not run yet. ``suppressed``: it runs in eager mode now.

    ``graph`` is (name, module, inputs) of the graph that the backend failed on, else None. A listener may append to ``notes``
    what the warning should add.
    """

    kind = "capture_failed"
    error: BaseException
    suppressed: bool
    fn: Any
    args: tuple
    graph: tuple[str, Any, list[Any]] | None
    compiler: Any
    notes: list[str]


@dataclass(slots=True, eq=False)
class CaptureEnded(Event):
    """The conversion is over; ``capture.outcome`` tells how."""

    kind = "capture_ended"


KINDS: dict[str, type[Event]] = {
    cls.kind: cls
    for cls in (CaptureStarted, Recompiled, PhaseEnded, GraphBroken, GraphTraced, GraphCompiled, EntryMade, CaptureFailed, CaptureEnded)
}


class Listener:
    """Hears of the events that it has methods for. ``wants_lines``: the engine notes each traced line for it, which costs time."""

    wants_lines = False
    is_permanent = False  # the package's own, which are always subscribed

    def on(self, event: Event) -> None:
        method = getattr(self, event.kind, None)
        if method is not None:
            method(event)


_listeners: list[Listener] = []
_L = TypeVar("_L", bound=Listener)


def subscribe(listener: _L) -> _L:
    """Tell ``listener`` of what happens from now on. Returns it."""
    _listeners.append(listener)
    return listener


def unsubscribe(listener: Listener) -> None:
    """ValueError if it was not subscribed."""
    _listeners.remove(listener)


@contextlib.contextmanager
def listening(listener: _L) -> Iterator[_L]:
    """``with listening(listener): ...``."""
    subscribe(listener)
    try:
        yield listener
    finally:
        unsubscribe(listener)


def publish(event: Event) -> None:
    """Tell all listeners, in the order in which they came."""
    for listener in tuple(_listeners):
        listener.on(event)


def listeners() -> list[Listener]:
    """Those that are subscribed, without the package's own that always are."""
    return [listener for listener in _listeners if not listener.is_permanent]


def lines_wanted() -> bool:
    return any(listener.wants_lines for listener in _listeners)


__all__ = [
    "KINDS", "CaptureEnded", "CaptureFailed", "CaptureStarted", "EntryMade", "Event", "GraphBroken", "GraphCompiled", "GraphTraced",
    "Listener", "PhaseEnded", "Recompiled", "listening", "publish", "subscribe", "unsubscribe",
]
