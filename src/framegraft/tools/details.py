"""What explain, the report and the dumped files show of a conversion, as plain data.

``Collector`` listens while it is switched on and looks at each entry as it is made: what its guards expect and what they
cost can only be told then, because the engine keeps no objects of the program.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import _native, events
from ..bytecode.encode import in_order
from ..errors import GraphBreak, StackEntry, describe_break, source_line
from ..model.guards import Guard
from ..model.program import ProgramBuilder
from ..reasons import reason as look_up_reason
from ..run import records

_TIMED_FOR = 2e-4  # seconds that the cost of a group of guards is measured for, and
_ROUNDS = 4  # the least number of measurements
_LEAST = 0.01  # nanoseconds that a guard is taken to cost where its group is too quick to be measured
_ALIASING = "aliasing"


@dataclass
class GuardDetail:
    """One guard: the check as an expression, what it expects, and the user's line that needed it."""

    code: str
    check: str
    source: str
    group: str
    expected: str
    cause: str


@dataclass
class GuardGroup:
    """Guards on one root of the frame. ``nanoseconds``: their share of what one pass over all guards costs, None where it was
    not measured."""

    name: str
    count: int
    nanoseconds: float | None = None


_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_MODULE_CALL = os.path.join("torch", "nn", "modules", "module.py")


def user_frames(stack: Sequence[StackEntry]) -> list[StackEntry]:
    """A stack without the frames through which torch and this package call modules, unless there is nothing else."""
    return [e for e in stack if not e[0].startswith(_HERE) and not e[0].endswith(_MODULE_CALL)] or list(stack)


@dataclass
class Break:
    """One graph break in words. ``stack`` entries are (file, line, function), outermost first."""

    reason: str
    detail: str
    why: str
    hint: str
    stack: list[tuple[str, int, str]]
    source: list[list[str]]  # for each entry of the stack the line of code, and one with carets where they are known
    text: str

    @classmethod
    def of(cls, broken: GraphBreak) -> Break:
        known = look_up_reason(broken.reason)
        shown = user_frames(broken.user_stack)
        stack = [(file, line, name) for file, line, name in shown]
        return cls(
            broken.reason, broken.detail, known.why, known.hint, stack, [source_line(e) for e in shown],
            describe_break(broken.reason, broken.detail, shown),
        )


@dataclass
class Recompilation:
    """A call that fitted no entry: what the entry used last expected (``was``), what it met (``now``), the line that cared.

    ``index`` counts the entries of the function, ``number`` the conversions of the process; ``parent`` made that entry.
    """

    name: str
    filename: str
    line: int
    index: int
    number: int
    parent: int
    guard: str
    was: str
    now: str
    cause: str


@dataclass
class Detail:
    """What a collector saw of one conversion."""

    guards: list[GuardDetail] = field(default_factory=list)
    groups: list[GuardGroup] = field(default_factory=list)
    nanoseconds: float | None = None
    lines: records.Lines = field(default_factory=set)
    module: Any = None
    inputs: list[str] = field(default_factory=list)
    code: Any = None


class Collector(events.Listener):
    """Keeps a ``Detail`` for the number of each conversion. ``with Collector() as c: ...``."""

    wants_lines = True

    def __init__(self, measure: bool = True) -> None:
        self.details: dict[int, Detail] = {}
        self.captures: list[records.Capture] = []
        self.infos: list[Any] = []  # alive as long as the collector
        self._measure = measure

    def __enter__(self) -> Collector:
        events.subscribe(self)
        return self

    def __exit__(self, *exc_info: Any) -> None:
        events.unsubscribe(self)

    def detail(self, capture: records.Capture) -> Detail:
        return self.details.setdefault(capture.number, Detail())

    def capture_started(self, event: events.CaptureStarted) -> None:
        self.captures.append(event.capture)

    def graph_compiled(self, event: events.GraphCompiled) -> None:
        detail = self.detail(event.capture)
        detail.module = event.module
        detail.inputs = [records.describe(value) for value in event.inputs]

    def entry_made(self, event: events.EntryMade) -> None:
        detail, entry, args, fn = self.detail(event.capture), event.entry, event.args, event.fn
        detail.lines = event.lines
        detail.code = in_order(entry.code)
        detail.guards = [guard_detail(g) for g in event.guards]
        self.infos.append(entry.info)
        groups: dict[str, list[Guard]] = {}
        for guard, shown in zip(event.guards, detail.guards, strict=True):
            groups.setdefault(shown.group, []).append(guard)
        detail.nanoseconds = _cost(entry.program, args, fn) if self._measure else None
        shares = _shares(groups, detail.nanoseconds, args, fn)
        detail.groups = [GuardGroup(name, len(members), shares.get(name)) for name, members in groups.items()]


def _shares(groups: dict[str, list[Guard]], total: float | None, args: tuple, fn: Any) -> dict[str, float]:
    """What each group has of the ``total`` nanoseconds, in proportion to what it costs by itself. Without a total nothing.

    By themselves the groups cost more than together, where they get to the same objects: those on aliasing would walk to each
    tensor that others have checked, and without the checks of the objects on the way, which let the core skip what has not
    changed. They cost what the pass costs less without them.
    """
    if total is None:
        return {}
    alone: dict[str, float] = {}
    for name, members in groups.items():
        if name != _ALIASING:
            alone[name] = _cost_of(members, args, fn)
    if _ALIASING in groups:
        others = [guard for name, members in groups.items() if name != _ALIASING for guard in members]
        alone[_ALIASING] = max(0.0, total - _cost_of(others, args, fn))
    weights = {name: alone[name] + _LEAST * len(members) for name, members in groups.items()}
    return {name: total * weight / sum(weights.values()) for name, weight in weights.items()}


def _cost_of(guards: list[Guard], args: tuple, fn: Any) -> float:
    return _cost(_native.GuardProgram(ProgramBuilder(guards).build()), args, fn) or 0.0


def _cost(program: Any, args: tuple, fn: Any) -> float | None:
    """Nanoseconds of one check that holds, less those of the call itself."""
    if not program.check(args, fn):
        return None
    return max(0.0, _timed(program, args, fn) - _timed(_NOTHING, args, fn))


def _timed(program: Any, args: tuple, fn: Any) -> float:
    """The least of several measurements: others run on the machine, too."""
    check, best, stop, rounds = program.check, float("inf"), time.perf_counter() + _TIMED_FOR, 0
    while True:
        start = time.perf_counter()
        for _ in range(20):
            check(args, fn)
        now = time.perf_counter()
        best = min(best, now - start)
        rounds += 1
        if now > stop and rounds >= _ROUNDS:
            return best / 20 * 1e9


_NOTHING = _native.GuardProgram([])


def guard_detail(guard: Guard) -> GuardDetail:
    return GuardDetail(guard.code(), guard.check, guard.source.name, _group(guard), _expected(guard), guard.cause)


def from_text(check_fn: Any) -> list[GuardDetail]:
    """What is known of the guards of an entry that no collector saw."""
    causes = [text[len(code) + 4 :] for code, text in zip(check_fn.code_parts, check_fn.verbose_code_parts, strict=True)]
    return [GuardDetail(code, "", "", "", "", cause) for code, cause in zip(check_fn.code_parts, causes, strict=True)]


def _group(guard: Guard) -> str:
    if guard.check in ("NOALIAS", "ALIAS"):
        return _ALIASING
    if guard.check == "STATE":
        return "torch's modes"
    path = [guard.source]
    while path[-1].base is not None:
        path.append(path[-1].base)
    root = path[-1]
    if root.access == "GLOBALS" and len(path) > 1:
        return path[-2].name
    if guard.check == "TYPEVER" or root.access == "CONST":
        return f"class {root.name}" if isinstance(root.key, type) else root.name
    return root.name


def _expected(guard: Guard) -> str:
    payload = guard.payload
    if guard.check in ("ID", "TYPE", "EQ"):
        return records.describe(payload)
    if guard.check == "TENSOR":
        return repr(payload)
    if guard.check == "TYPEVER":
        return ", ".join(f"{name}: {records.describe(found)}" for name, found in payload)
    return ""


_MEANING = {
    "ID": "{source} is the very object that was captured ({expected})",
    "TYPE": "{source} is of exactly this class ({expected})",
    "EQ": "the value is a constant of the graph",
    "LEN": "the length decided what was traced",
    "KEYS": "keys and their order decided what was traced",
    "HASKEY": "the key was found there",
    "NOKEY": "the key was looked for and not found",
    "ABSENT": "it was looked for and not found",
    "PRESENT": "it was found",
    "TYPEVER": "these names were looked up in the class and its bases",
    "SUBCLASS": "isinstance() or issubclass() was asked, which registered classes decide",
    "METHOD": "{source} is this method of an object, whichever that is",
    "TENSOR": "the graph is for tensors of this kind and shape",
    "STATE": "the graph is for these modes of torch (grad, autocast, defaults)",
    "NOALIAS": "the graph takes these for distinct objects",
    "ALIAS": "the graph takes these for one object",
    "PY": "what this function says decided what was traced",
}


def meaning(guard: GuardDetail) -> str:
    """Why a guard is there, in words."""
    return _MEANING.get(guard.check, "the capture relied on it").format(source=guard.source, expected=guard.expected)


def recompilation(capture: records.Capture, collector: Collector | None) -> Recompilation | None:
    """Why ``capture`` was made although the function had entries; None if it is the first."""
    why = capture.recompile
    if why is None:
        return None
    was, now = why.guard, why.found
    known = collector.details.get(why.parent) if collector is not None else None
    guard = next((g for g in known.guards if g.code == why.guard), None) if known is not None else None
    if guard is not None and guard.expected:
        was = guard.expected
    if was.startswith("check_tensor("):
        was = was.partition(", ")[2].removesuffix(")")
    fields = differing_fields(was, now)
    if fields is not None:
        was, now = fields
    elif " == " in was and guard is None:
        was = was.partition(" == ")[2]
    return Recompilation(capture.name, capture.filename, capture.resume or capture.line, capture.index,
                         capture.number, why.parent, why.guard, was, now, why.cause)


def differing_fields(was: str, now: str) -> tuple[str, str] | None:
    """The parts of two descriptions of tensors that differ; None if they are no such descriptions."""
    if "DispatchKeySet(" not in was or "DispatchKeySet(" not in now:
        return None
    pairs = [(a, b) for a, b in zip(_fields(was), _fields(now), strict=False) if a != b]
    return (", ".join(a for a, _ in pairs), ", ".join(b for _, b in pairs)) if pairs else None


def _fields(text: str) -> list[str]:
    """Split at the commas that stand in no bracket."""
    parts, depth, last = [], 0, 0
    for at, char in enumerate(text):
        depth += (char in "([") - (char in ")]")
        if char == "," and not depth:
            parts.append(text[last:at].strip())
            last = at + 1
    return [*parts, text[last:].strip()]
