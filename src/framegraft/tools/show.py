"""Explanations for the terminal."""

from __future__ import annotations

import collections
import os
from typing import Any

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from ..run import records


def seconds(value: float) -> str:
    return f"{value:.2f} s" if value >= 1 else f"{value * 1e3:.1f} ms" if value >= 1e-3 else f"{value * 1e6:.0f} us"


def nanoseconds(value: float | None) -> str:
    return "" if value is None else f"{value:.0f} ns" if value < 1e4 else f"{value / 1e3:.0f} us"


def place(filename: str, line: int) -> str:
    """file:line, from the working directory if that is shorter."""
    near = os.path.relpath(filename) if os.path.isabs(filename) else filename
    return f"{near if len(near) < len(filename) else filename}:{line}"


def near(cause: str) -> str:
    filename, _, line = cause.rpartition(":")
    return place(filename, int(line)) if filename and line.isdigit() else cause


def count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def table(*columns: str) -> Table:
    made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim")
    for name in columns:
        right = name.startswith(">")
        made.add_column(name.strip(">"), justify="right" if right else "left", no_wrap=right, overflow="fold")
    return made


def explanation(e: Any) -> Group:
    head = Text()
    head.append(count(e.graph_count, "graph"), "bold")
    head.append(f", {count(e.op_count, 'operation')}, ")
    head.append(count(e.graph_break_count, "graph break"), "bold red" if e.graph_break_count else "bold green")
    head.append(f", {count(e.guard_count, 'guard')}, {count(len(e.recompiles), 'recompile')}")
    parts: list[Any] = [head]
    if e.coverage is not None:
        parts.append(_coverage(e.coverage))
    if e.captures:
        parts += [title("Captured"), _captures(e.captures)]
    if e.breaks:
        parts.append(title("Breaks"))
        times: dict[str, int] = collections.Counter(b.text for b in e.breaks)
        once = {b.text: b for b in e.breaks}
        parts += [_break(number, once[text], times[text]) for number, text in enumerate(once, 1)]
    if e.guard_groups:
        parts += [title("Guards"), _guards(e)]
    if e.recompiles:
        parts += [title("Recompiles"), _recompiles(e.recompiles)]
    if e.captures:
        parts += [title("Time to capture"), _phases(e)]
    return Group(*parts)


def title(text: str) -> Text:
    return Text(f"\n{text}", style="bold cyan")


def _coverage(c: Any) -> Text:
    good = "green" if c.by_count > 0.9 else "yellow" if c.by_count > 0.5 else "red"
    text = Text(f"captured {c.captured} of {count(c.total, 'operation')} that ran: ")
    text.append(f"{c.by_count:.0%}", f"bold {good}")
    text.append(f", {c.by_time:.0%} of their time ({seconds(c.captured_seconds)} of {seconds(c.total_seconds)})")
    return text


_OUTCOMES = {"entry": ("captured", "green"), "eager": ("runs in eager mode", "red"), "error": ("failed", "red")}


def _captures(captures: list[records.Capture]) -> Table:
    made = table("function", "where", "graph", ">operations", ">guards", ">time", "")
    for c in captures:
        word, style = _OUTCOMES[c.outcome]
        if c.broken is not None and c.outcome == "entry":
            word, style = f"breaks: {c.broken.reason}", "yellow"
        elif c.outcome == "entry" and not c.graph:
            word, style = "no tensor operation", "dim"
        name = c.name + (" (resumed)" if c.resume else "") + (f" #{c.index + 1}" if c.index else "")
        made.add_row(name, place(c.filename, c.resume or c.line), c.graph, str(c.op_count), str(c.guard_count),
                     seconds(sum(c.phases.values())), Text(word, style))
    return made


def _break(number: int, b: Any, times: int) -> Text:
    text = Text("\n" if number > 1 else "")
    text.append(f"{number}. {b.reason}", "bold red")
    text.append(f": {b.detail}" if b.detail else "")
    text.append(f"  ({times} times)\n" if times > 1 else "\n", "dim")
    for (filename, line, function), source in zip(b.stack, b.source, strict=True):
        text.append(f"   {place(filename, line)} in {function}\n", "dim")
        for row, style in zip(source, ("", "red"), strict=False):
            text.append(f"      {row}\n", style)
    text.append("   Why:  ", "dim")
    text.append(f"{b.why}\n")
    text.append("   Hint: ", "dim")
    text.append(b.hint)
    return text


def _guards(e: Any) -> Table:
    made = table("about", ">guards", ">cost of a call")
    for group in e.guard_groups[:12]:
        made.add_row(group.name, str(group.count), nanoseconds(group.nanoseconds))
    rest = e.guard_groups[12:]
    if rest:
        made.add_row(f"{len(rest)} more", str(sum(g.count for g in rest)), nanoseconds(sum(g.nanoseconds or 0.0 for g in rest)))
    made.add_row(Text("all together", "bold"), str(e.guard_count), nanoseconds(e.guard_nanoseconds))
    return made


def _recompiles(recompiles: list[Any]) -> Table:
    made = table("function", "failed guard", "was", "is", "asked for by")
    for r in recompiles:
        guard = r.guard if len(r.guard) <= 60 else f"{r.guard.partition(', ')[0]}, ...)" if "(" in r.guard else f"{r.guard[:57]}..."
        made.add_row(f"{r.name} #{r.index + 1}", guard, r.was, r.now, near(r.cause))
    return made


def _phases(e: Any) -> Table:
    made = table("phase", ">time", ">share")
    for phase, spent in e.phases.items():
        made.add_row(phase, seconds(spent), f"{spent / e.compile_seconds:.0%}" if e.compile_seconds else "")
    made.add_row(Text("all", "bold"), seconds(e.compile_seconds), "")
    return made
