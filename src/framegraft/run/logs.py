"""The logs' listener: what ``FRAMEGRAFT_LOGS`` and ``set_logs`` switch on is printed as it happens."""

from __future__ import annotations

import dis
import io
from collections.abc import Callable
from types import CodeType
from typing import Any

import torch

from .. import events, log
from ..bytecode.encode import in_order
from ..errors import Unsupported, source_line
from ..interp.frame import origin_of
from . import recompiles

CODE_NOTES: list[Callable[[CodeType], str]] = []  # what the bytecode log adds to a modified code


class Logs(events.Listener):
    """Always subscribed; an artifact that is switched off costs one look-up."""

    is_permanent = True

    def on(self, event: events.Event) -> None:
        with log.compile_id(event.capture.frame, event.capture.index):
            super().on(event)

    def recompiled(self, event: events.Recompiled) -> None:
        if log.enabled("recompiles"):
            code = event.fn.__code__
            for reason in recompiles.reasons(event.fn, event.entries, event.args):
                log.artifact("recompiles").debug("Recompiling function %s in %s:%s\n%s", code.co_name, code.co_filename,
                                                 code.co_firstlineno, reason)

    def graph_traced(self, event: events.GraphTraced) -> None:
        module = event.module
        if log.enabled("graph"):
            log.artifact("graph").debug("%s\n%s", event.name, log.graph_table(module.graph))
        if log.enabled("graph_code"):
            log.artifact("graph_code").debug("%s\n%s", event.name, module.code)
        if log.enabled("graph_sizes"):
            log.artifact("graph_sizes").debug("%s\n%s", event.name, "\n".join(_sizes(module.graph)))

    def graph_broken(self, event: events.GraphBroken) -> None:
        if log.enabled("graph_breaks"):
            log.artifact("graph_breaks").debug("%s", Unsupported.from_break(event.broken))

    def entry_made(self, event: events.EntryMade) -> None:
        if log.enabled("bytecode"):
            _log_code(event.fn.__code__, in_order(event.entry.code))
        if log.enabled("guards"):
            log.artifact("guards").debug("GUARDS:\n%s", "\n".join(g.code() for g in event.guards))


def _sizes(graph: Any) -> list[str]:
    """A line for each value of a graph that has a shape."""
    values = [(node.name, node.meta.get("example_value")) for node in graph.nodes]
    return [f"{name}: {tuple(value.shape)}" for name, value in values if issubclass(type(value), torch.Tensor)]


def _log_code(code: CodeType, new_code: CodeType) -> None:
    for title, shown in (("ORIGINAL", code), ("MODIFIED", new_code)):
        text = io.StringIO()
        dis.dis(shown, file=text)
        log.artifact("bytecode").debug(
            "%s BYTECODE %s %s line %s\n%s", title, code.co_name, origin_of(code).co_filename, code.co_firstlineno, text.getvalue())
    for note in CODE_NOTES:
        log.artifact("bytecode").debug("%s", note(new_code))


def watch() -> Callable[[Any, Any], None] | None:
    """What is called with each frame and instruction as they are traced, None where nothing of it is logged."""
    if not log.enabled("trace_source") and not log.enabled("trace_bytecode"):
        return None
    last: tuple[CodeType, int] | None = None

    def note(frame: Any, inst: Any) -> None:
        nonlocal last
        line = inst.positions[0] if inst.positions else None
        if log.enabled("trace_source") and line and (frame.code, line) != last:
            last = (frame.code, line)
            place = (frame.code.co_filename, line, frame.code.co_name)
            log.artifact("trace_source").debug("TRACE %s:%s in %s\n  %s", *place, "".join(source_line(place)[:1]))
        if log.enabled("trace_bytecode"):
            arg = "" if inst.arg is None or inst.target is not None else repr(inst.arg)[:80]
            log.artifact("trace_bytecode").debug("TRACE %s %s %s", inst.op, arg, [type(item).__name__ for item in frame.stack[-6:]])

    return note


events.subscribe(Logs())
