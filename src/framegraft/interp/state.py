"""What one trace shares between all its frames: the graph, the guards, the tracked objects and their changes."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from ..errors import GraphBreak, Place, format_stack
from ..model.dispatch import specialised
from ..model.guards import GuardSet
from ..model.source import Source
from ..model.value import MISSING, NONE, ConstantVariable, ExceptionVariable, LazyVariable, VariableTracker


class GlobalScope:
    """The globals of a function: the real dict, where it is found, and what the trace stored there."""

    __slots__ = ("real", "source", "builtins_source", "stores", "renewed")

    def __init__(self, real: dict, source: Source, builtins_source: Source) -> None:
        self.real = real
        self.source = source
        self.builtins_source = builtins_source
        self.stores: dict[str, Any] = {}
        self.renewed: set[str] = set()  # names that were deleted and set again: they are the dict's last ones

    def store(self, name: str, value: Any) -> None:
        if self.stores.get(name) is MISSING:
            del self.stores[name]
            self.renewed.add(name)
        self.stores[name] = value


class TraceState:
    """The mutable heart of a trace."""

    def __init__(self, graph: Any, config: Any) -> None:
        self.graph = graph
        self.config = config
        self.max_steps: int = config.max_trace_steps
        self.max_idle: int = config.max_idle_steps
        self.grew_at = 0  # the step at which the graph last grew
        self.next_check = min(self.max_steps, self.max_idle)
        self.force_break_at: int | None = config.force_break_at
        self.guards = GuardSet()
        self.by_id: dict[int, VariableTracker] = {}
        self.keep_alive: list = []
        self.scopes: dict[int, GlobalScope] = {}
        self.mutated: dict[int, VariableTracker] = {}
        self.namespaces: list[Any] = []  # dicts that are the __dict__ of an object, which they know
        self.released: list[VariableTracker] = []  # locks that are let go behind the graph
        self.hooked: list[Any] = []  # hooks that tensors from outside get behind the graph: tensor.hooks
        self.warned: list[tuple] = []  # warnings that the program is given behind the graph: semantics.warned
        self.draws: list[Any] = []  # of random numbers, in front of the graph: semantics.drawing
        self.catching: list[Any] = []  # blocks in which warnings are filtered, outermost first: semantics.catching
        self.written: dict[int, Any] = {}  # modules of which the trace has set attributes, by the id of their __dict__
        self.class_writes: dict[str, dict[type, Any]] = {}  # attributes of classes that the trace has set: semantics.class_writes
        self.class_numbers: dict[tuple[type, str], Any] = {}  # ints that classes keep, as symbols
        self.own_keys: dict[int, list[Any]] = {}  # what stands for objects with their own __hash__, by hash: semantics.own_keys
        self.own_key_of: dict[int, Any] = {}  # the same by the tracker's id
        self.dirty = 0
        self.root: Any = None
        self.depth = 0
        self.frames: list = []
        self.builder: Any = None
        self.exceptions: list = []  # what sys.exception() would give, innermost last
        self.generators: list = []  # made in the trace
        self.telling: list = []  # trackers of what lay on the stacks of frames that go on, and tells when it dies: letting_go.py
        self.traced_calls = 0
        self.steps = 0
        self.lines: set[tuple[CodeType, int]] | None = None  # what was traced, while somebody wants to know
        self.watch: Callable[[Any, Any], None] | None = None  # called with each frame and instruction that is traced
        self.stop_at: dict[int, GraphBreak] = {}  # steps before which the trace ends
        self.points: list[int] = []  # steps before which it could end
        self.waiting = False  # a CALL is about to be made whose value is all that its frame waits for
        self.known_bases: set[type] = set()
        self.stand_ins: dict[int, Any] = {}  # classes made for the trace, each in the place of one of every call; and their functions
        self.parameters: list[str] = []  # of the root frame, as the interpreter lays them out
        self.arguments: list[LazyVariable] = []  # their values
        self.pure = ""  # the region that is traced, in which nothing from outside may be changed: regions.py
        self.older: dict[int, VariableTracker] = {}  # what was there before the region
        self.replays = False  # the region may change it, but for torch's state: its changes are made behind the graph like others
        self.changes = 0  # of what was there before such regions
        self.caught = False  # an operation stands where the program would catch what it raises
        self.rescued = False  # so does one that may raise, depending on the values in its tensors
        self.outside = 0  # changes to what is reached from outside of the trace
        self.held: frozenset[int] = frozenset()  # trackers of the trace's own objects that are reached so, too
        self.devices: list[Any] = []  # the default devices in force, the last one counts
        self.devices_before: tuple = ((), False, False)  # what holds at frame entry: tensor.devices
        self.own_devices: Any = None  # gives the context in which what holds at frame entry does
        self.default_device: list[Any] = []  # what the program has set it to
        self.blocks: Any = None  # what repeated calls of modules are made of, where that is looked for
        self.overriding = False  # there is a tensor whose class has a say in what torch's functions do: tensor.overrides
        self.function_modes: list[VariableTracker] = []  # TorchFunctionModes that the trace has entered, innermost last
        self.overrides_off = 0  # how often that is switched off here
        self.modes_off = 0  # how often modes for functions are, too
        self.overrides_before = 0  # and at frame entry
        self.rescue = True  # such operations are allowed: if the graph fails, the frame runs in eager mode
        self.guards.where = self.where

    def where(self) -> str:
        """The user's line that is being executed, as file:line."""
        if not self.frames:
            return ""
        frame = self.frames[-1]
        return f"{frame.code.co_filename}:{frame.line()}"

    def user_stack(self) -> list[Place]:
        return [f.place() for f in self.frames]

    def stack_trace(self) -> str:
        """For ``node.meta``: the lines that are being executed, outermost first; with their code while somebody listens."""
        if self.lines is not None:
            return format_stack([(f.code.co_filename, f.line(), f.code.co_name) for f in self.frames])
        return self.stack_lines().removesuffix("\n")

    def stack_lines(self) -> str:
        """A line for each frame, in a traceback's words; what callers share is made once."""
        lines = ""
        for frame in self.frames:
            told = frame.told
            if told is None or told[0] is not frame.inst or told[1] is not lines:
                here = f'File "{frame.code.co_filename}", line {frame.line()}, in {frame.code.co_name}\n'
                told = frame.told = (frame.inst, lines, lines + here)
            lines = told[2]
        return lines

    def changed(self, tracker: VariableTracker | None) -> None:
        """Note a change of an object; None: of something that is always older than the trace."""
        self.dirty += 1
        self.outside += tracker is None or tracker.source is not None or id(tracker) in self.held
        if self.pure and (tracker is None or tracker.source is not None or id(tracker) in self.older):
            if tracker is None or not self.replays:
                raise GraphBreak("unsupported_mutation", f"a side effect inside of {self.pure}")
            self.changes += 1

    def mark_mutated(self, tracker: VariableTracker) -> None:
        self.changed(tracker)
        self.mutated.setdefault(id(tracker), tracker)

    def over_limit(self) -> None:
        """Called at step ``next_check``: whether the trace has gone on for too long."""
        if self.steps > self.max_steps:
            raise GraphBreak("untraceable_call", f"more than {self.max_steps} instructions in one trace")
        if self.steps > self.grew_at + self.max_idle:
            raise self._idle()
        self.next_check = min(self.max_steps, self.grew_at + self.max_idle)

    def marks(self) -> tuple:
        """What tells whether the trace has observed or done anything since."""
        return self.steps, self.dirty, self.graph.call_count, self.guards.count(), len(self.generators)

    def _idle(self) -> GraphBreak:
        """A long loop over plain Python. It runs in eager mode, with as little around it as can be.

        It is the loop of the innermost frame that has run for most of the time: that one's caller makes the call for real.
        Where that is the frame being captured, the trace ends behind its last tensor operation, or is given up.
        """
        broken = GraphBreak("untraceable_call", f"more than {self.max_idle} instructions without a tensor operation")
        level = max(i for i, frame in enumerate(self.frames) if not i or self.steps - frame.begun > self.max_idle // 2)
        callers = self.frames[:level]
        if callers and all(frame.breakable for frame in callers):
            broken.frames = callers
            return broken
        broken.at = next((point for point in self.points if point > self.grew_at), 0) if self.grew_at else 0
        if not broken.at:
            broken.reason = "skipped_frame"
        return broken

    def traced(self) -> None:
        """Let go of what only tracing asks for: the collector, which runs again while the graph is compiled, would walk through it."""
        del self.blocks, self.by_id  # who asks for them after all is told so

    def release(self) -> None:
        """Let go of the program's objects at once, not when the garbage collector comes by."""
        for namespace in self.namespaces:
            namespace.owner = None
        for scope in self.scopes.values():
            scope.stores.clear()  # functions among these know their globals
        self.graph.release()
        self.root.__dict__.clear()
        self.__dict__.clear()

    def scope(self, real: dict, source: Source, builtins_source: Source) -> GlobalScope:
        found = self.scopes.get(id(real))
        if found is None:
            found = self.scopes[id(real)] = GlobalScope(real, source, builtins_source)
        return found


def realize(tracker: VariableTracker, state: TraceState) -> VariableTracker:
    """The tracker behind a lazy one; looking at a value is what records its guards."""
    if type(tracker) is LazyVariable:
        inner = tracker.tracker
        if inner is None:
            inner = tracker.tracker = state.builder.wrap(tracker.value, tracker.source)
        elif state.blocks is not None and state.blocks.ways:
            state.blocks.reached(tracker.source)
        return inner
    return tracker


def user_error(cls: type, *args: Any, **members: VariableTracker) -> Any:
    """The exception that the traced program would see, ready to be raised as UserRaise(...).

    members: attributes that the interpreter sets on it, as ``name`` and ``obj`` of an AttributeError.
    """
    made = ExceptionVariable(cls, [ConstantVariable(a) for a in args])
    made.attrs.update(members)
    return made


def set_context(state: TraceState, value: VariableTracker) -> None:
    """The exception being handled becomes the new one's ``__context__`` (CPython: _PyErr_SetObject)."""
    handled = state.exceptions[-1] if state.exceptions else None
    if handled is None or handled is value or not isinstance(value, ExceptionVariable):
        return
    link = slow = handled
    step = False
    while isinstance(link, ExceptionVariable) and link.context is not None:
        if link.context is value:
            link.context = NONE
            break
        link = link.context
        if link is slow:  # a cycle that the program has made
            break
        if step:
            slow = slow.context  # type: ignore[union-attr]
        step = not step
    value.context = handled


def constant_value(tracker: VariableTracker) -> Any:
    """The value of a constant tracker, MISSING for any other."""
    return tracker.value if isinstance(tracker, ConstantVariable) else MISSING


def need_constant(tracker: VariableTracker, what: str) -> Any:
    tracker = specialised(tracker)
    if isinstance(tracker, ConstantVariable):
        return tracker.value
    raise GraphBreak("untraceable_call", f"{what} is not a constant")


def line_of(positions: Any) -> int:
    return positions[0] if positions and positions[0] else 0


class _Room:
    """How many have asked for more room, and the program's own limit, which is for all threads."""

    lock = threading.Lock()
    inside = 0
    before = 0


@contextlib.contextmanager
def recursion_room() -> Iterator[None]:
    """Tracing nests a handful of Python frames per traced frame, and the program may be near its limit."""
    with _Room.lock:
        if _Room.inside == 0:
            _Room.before = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_Room.before, 20_000))
        _Room.inside += 1
    try:
        yield
    finally:
        with _Room.lock:
            _Room.inside -= 1
            if _Room.inside == 0:
                sys.setrecursionlimit(_Room.before)
