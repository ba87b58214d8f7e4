"""Bytecode that rebuilds tracked values: loads from their sources, the graph's outputs, or a fresh construction."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import torch

from ..bytecode.ir import Instruction
from ..errors import GraphBreak
from ..interp.state import realize
from ..interp.unwind import PreviousException
from ..model.source import Source, instr, name_of
from ..model.value import (
    MISSING,
    BuiltinMethodVariable,
    CellVariable,
    ChangingVariable,
    CombinedIteratorVariable,
    ConstantVariable,
    DequeVariable,
    DictVariable,
    ExceptionVariable,
    FunctionVariable,
    GeneratorVariable,
    IteratorVariable,
    LazyVariable,
    ListVariable,
    MethodVariable,
    ObjectVariable,
    SetVariable,
    SliceVariable,
    SuperVariable,
    SymbolicVariable,
    TensorVariable,
    TracebackVariable,
    TupleVariable,
    VariableTracker,
)
from ..semantics.constructors import PartialVariable
from ..semantics.dict_methods import ViewVariable
from ..semantics.getters import GetterVariable
from ..semantics.lazy import LazyIteratorVariable
from ..semantics.started import rest_of
from ..semantics.wrapping import NUMBERS_AND_TEXTS
from ..tensor.arrays import ArrayVariable
from ..tensor.hooks import LaterHandleVariable
from ..tensor.numpy import SCALARS as NUMPY_SCALARS
from ..tensor.subclasses import to_subclass
from .loads import LOAD_SOURCES, need_no_pins
from .numbers import load_number
from .resume import Suspended

LITERALS = (type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented), types.CodeType)


#: How to build an object that was born in the trace, by the class of its tracker: (codegen, tracker) emits it and names it.
BUILDERS: dict[type, Callable[[Codegen, Any], None]] = {}


def builds(*kinds: type) -> Callable[[Callable], Callable]:
    """Registers a builder for trackers of these classes."""

    def register(builder: Callable) -> Callable:
        BUILDERS.update(dict.fromkeys(kinds, builder))
        return builder

    return register


class Unreconstructible(GraphBreak):
    """A live value that bytecode cannot rebuild; the trace must stop before the value is made."""

    def __init__(self, what: str) -> None:
        super().__init__("unreconstructible_value", what)


class Codegen:
    """Emits instructions into ``out``. Values used more than once live in temporaries."""

    def __init__(self, state: Any, names: Any) -> None:
        self.state = state
        self.out: list[Instruction] = []
        self.names = names  # install(name hint, object) -> global name in the frame's globals
        self.temps: dict[int, str] = {}
        self.shared: set[int] = set()  # ids of trackers that are needed in several places
        self.counter = 0
        self.graph_outputs: dict[int, str] = {}
        self.dressed: set[int] = set()  # tensors of the graph that have got the attributes which the program gave them
        self.classed: set[int] = set()  # those that are of their class
        self.keep: list = []
        self.pins: dict[int, str] = {}

    # -- little helpers

    def emit(self, *instructions: Instruction) -> None:
        self.out.extend(instructions)

    def op(self, name: str, arg: Any = None) -> None:
        self.out.append(instr(name, arg))

    def temp(self) -> str:
        self.counter += 1
        return f"__temp_{self.counter}"

    def load_pinned(self, obj: Any) -> list[Instruction]:
        if type(obj) in LITERALS:
            return [instr("LOAD_CONST", obj)]
        if id(obj) in self.state.stand_ins:
            raise Unreconstructible(f"{name_of(obj, '__qualname__') or 'a part'} of a class made in the trace")
        if issubclass(type(obj), (types.ModuleType, type, types.FunctionType, types.BuiltinFunctionType)):
            builtins = self.state.root.scope.real.get("__builtins__")
            namespace = builtins if isinstance(builtins, dict) else getattr(builtins, "__dict__", {})
            name = name_of(obj)
            if namespace.get(name) is obj and name not in self.state.root.scope.real and name not in self.state.root.scope.stores:
                return [instr("LOAD_GLOBAL", name)]
        name = self.pins.get(id(obj))
        if name is None:
            hint = name_of(obj) or str(type(obj).__name__)
            name = self.pins[id(obj)] = self.names("__" + "".join(c if c.isalnum() else "_" for c in hint), obj)
            self.keep.append(obj)
        return [instr("LOAD_GLOBAL", name)]

    def load_object(self, obj: Any) -> None:
        self.emit(*self.load_pinned(obj))

    def call(self, npos: int) -> None:
        self.op("CALL", (npos, ()))

    # -- values

    def load(self, tracker: VariableTracker) -> None:
        """Push the object that ``tracker`` stands for."""
        if isinstance(tracker, LazyVariable):
            if tracker.tracker is None and not self.stands_in(tracker.source):
                self.load_source(tracker.source)
                return
            tracker = realize(tracker, self.state)
        name = self.temps.get(id(tracker))
        if name is not None:
            self.op("LOAD_FAST", name)
            return
        if isinstance(tracker, ConstantVariable):
            self.load_constant(tracker)
            return
        if isinstance(tracker, TensorVariable):
            output = self.graph_outputs.get(id(tracker))
            if output is not None:
                self.give_class(tracker, output)
                self.op("LOAD_FAST", output)
                self.dress(tracker, output)
            else:
                self.load_source(tracker.source)
            return
        if tracker.source is not None:
            self.load_source(tracker.source)
            return
        if isinstance(tracker, SymbolicVariable):
            load_number(self, tracker)
            return
        self.construct(tracker)

    def give_class(self, tracker: TensorVariable, output: str) -> None:
        """Make a tensor of the graph one of the class that the program made it one of, when it is first used."""
        if tracker.made_as is None or id(tracker) in self.classed:
            return
        self.classed.add(id(tracker))
        self.load_object(to_subclass)
        self.op("LOAD_FAST", output)
        self.load_object(tracker.cls)
        self.op("LOAD_CONST", tracker.made_as)
        self.call(3)
        self.op("STORE_FAST", output)

    def dress(self, tracker: TensorVariable, output: str) -> None:
        """Give a tensor that the graph made the attributes that the program gave it, when it is first used."""
        leaf = id(tracker.fake) in self.state.graph.leaves
        if tracker.source is not None or not tracker.attrs and not leaf or id(tracker) in self.dressed:
            return
        self.dressed.add(id(tracker))
        if leaf:  # a compiler's graph may not have marked it
            self.op("LOAD_FAST", output)
            self.op("LOAD_ATTR", "requires_grad_")
            self.call(0)
            self.op("POP_TOP")
        for name, value in tracker.attrs.items():
            self.load(value)
            self.op("LOAD_FAST", output)
            self.op("STORE_ATTR", name)

    def load_source(self, source: Source | None) -> None:
        assert source is not None, "a value from outside without a source"
        if source.access == "CELL" or source.root().access in ("STATE", "NONE", "FN"):
            raise Unreconstructible(source.name)
        self.emit(*source.emit(self.load_pinned))

    def load_sources(self, sources: list[Source]) -> None:
        if need_no_pins(sources):
            self.op(LOAD_SOURCES, sources)
        else:
            for source in sources:
                self.load_source(source)

    def load_constant(self, tracker: ConstantVariable) -> None:
        if type(tracker) is ChangingVariable:
            self.load_source(tracker.source)
            return
        value = tracker.value
        kind = type(value)
        if kind in (*NUMBERS_AND_TEXTS, range) and tracker.source is not None and not _small(value) and not self.stands_in(tracker.source):
            self.load_source(tracker.source)  # keeps the identity of the object
        elif kind is float and value != value:
            self.load_object(value)  # constants of code do not keep a nan the same object
        elif kind in LITERALS:
            self.op("LOAD_CONST", value)
        elif kind is range:
            self.load_object(range)
            for part in (value.start, value.stop, value.step):
                self.op("LOAD_CONST", part)
            self.call(3)
            self.store_temp(tracker)
        elif kind is torch.Size:
            self.load_object(torch.Size)
            self.op("LOAD_CONST", tuple(value))
            self.call(1)
        elif kind in NUMPY_SCALARS and tracker.source is not None:
            self.load_source(tracker.source)
        elif kind in NUMPY_SCALARS:  # each call of the program makes a new one
            self.load_object(kind)
            self.op("LOAD_CONST", value.item())
            self.call(1)
        else:
            self.load_object(value)

    def stands_in(self, source: Source | None) -> bool:
        """Whether what lies there belongs to a class that is made in each call."""
        root = source.root() if source is not None and self.state.stand_ins else None
        return root is not None and root.access == "CONST" and id(root.key) in self.state.stand_ins

    def store_temp(self, tracker: VariableTracker) -> None:
        """Name the value on top of the stack as ``tracker`` and leave it there."""
        name = self.temps[id(tracker)] = self.temp()
        self.keep.append(tracker)
        self.op("COPY", 1)
        self.op("STORE_FAST", name)

    def closed(self, tracker: VariableTracker, depth: int) -> bool:
        """Whether what cannot change was built while its parts were, through a cycle: then that one stays, instead of the
        ``depth`` parts on top of the stack."""
        name = self.temps.get(id(tracker))
        if name is None:
            return False
        for _ in range(depth):
            self.op("POP_TOP")
        self.op("LOAD_FAST", name)
        return True

    def construct(self, tracker: VariableTracker) -> None:
        """Build an object that was born in the trace; it is named first, so that cycles close."""
        builder = BUILDERS.get(type(tracker))
        if builder is None:
            raise Unreconstructible(f"a {tracker.python_type().__name__}")
        builder(self, tracker)

    def load_many(self, trackers: list) -> None:
        for item in trackers:
            self.load(item)


def _small(value: Any) -> bool:
    return type(value) is int and -5 <= value <= 256 or type(value) is str and len(value) <= 1


def refers_to(tracker: Any, target: Any, seen: set) -> bool:
    """Whether ``target`` can be reached from inside ``tracker`` (a cycle)."""
    for child in children(tracker):
        if child is target:
            return True
        if id(child) not in seen:
            seen.add(id(child))
            if refers_to(child, target, seen):
                return True
    return False


def children(tracker: Any) -> list:
    """Trackers that a rebuilt object refers to."""
    if isinstance(tracker, LazyVariable):
        return [] if tracker.tracker is None else [tracker.tracker]
    if isinstance(tracker, TensorVariable):
        return list(tracker.attrs.values()) if tracker.source is None else []
    if isinstance(tracker, ListVariable):
        return list(tracker.appended)
    if isinstance(tracker, (TupleVariable, SliceVariable, DequeVariable)):
        return list(tracker.items)
    if isinstance(tracker, DictVariable):
        owner = [tracker.owner] if tracker.owner is not None else []
        return [*owner, *(x for pair in tracker.items.values() for x in pair)]
    if isinstance(tracker, SetVariable):
        return list(tracker.items.values())
    if isinstance(tracker, ViewVariable):
        return [tracker.holder]
    if isinstance(tracker, TracebackVariable):
        return [tracker.of]
    if isinstance(tracker, ArrayVariable):
        return [tracker.tensor] if tracker.source is None else []
    if isinstance(tracker, ObjectVariable):
        found = [a for a in tracker.attrs.values() if a is not MISSING]
        return [*found, *(p for p in (tracker.payload, tracker.namespace) if p is not None)]
    if isinstance(tracker, FunctionVariable):
        extra = [x for x in (tracker.defaults, tracker.kwdefaults, tracker.annotations) if x is not None]
        return [*tracker.closure, *extra, *tracker.attrs.values()]
    if isinstance(tracker, CellVariable):
        return [] if tracker.contents is MISSING else [tracker.contents]
    if isinstance(tracker, GetterVariable):
        return [*tracker.given, *tracker.named.values()]
    if isinstance(tracker, PartialVariable):
        return [tracker.func, *tracker.args, *tracker.kwargs.values(), *tracker.attrs.values()]
    if isinstance(tracker, MethodVariable):
        return [tracker.func, tracker.obj]
    if isinstance(tracker, (BuiltinMethodVariable, SuperVariable)):
        return [tracker.obj]
    if isinstance(tracker, IteratorVariable):
        return [tracker.origin, tracker.holder] if tracker.origin is not None else tracker.items[tracker.index :]  # type: ignore[list-item]
    if isinstance(tracker, CombinedIteratorVariable):
        return [*tracker.iterators, *([tracker.fn] if tracker.fn is not None else [])]
    if isinstance(tracker, ExceptionVariable):
        extra = [x for x in (tracker.cause, tracker.context) if x is not MISSING and x is not None]
        return [*tracker.args, *tracker.attrs.values(), *extra]
    if isinstance(tracker, PreviousException):
        return [tracker.current]
    if isinstance(tracker, LaterHandleVariable):
        return [tracker.tensor, tracker.hook]
    if isinstance(tracker, LazyIteratorVariable):
        rest = rest_of(tracker) if tracker.started else None
        return [*tracker.args, *tracker.kwargs.values()] if rest is None else [*rest.args, *rest.kwargs.values()]
    if isinstance(tracker, GeneratorVariable):
        return [] if tracker.finished or tracker.running else Suspended(tracker.frame, tracker.started).values
    return []
