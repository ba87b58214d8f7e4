"""Bytecode that rebuilds tracked values: loads from their sources, the graph's outputs, or a fresh construction."""

from __future__ import annotations

import collections
import functools
import sys
import types
from typing import Any

import torch

from .. import _native
from ..bytecode.code import qualified_name, replace_code
from ..bytecode.ir import Instruction
from ..errors import GraphBreak
from ..interp.unwind import PreviousException
from ..model.source import GenericGetter, Source, instr
from ..model.value import (
    MISSING,
    BuiltinMethodVariable,
    CellVariable,
    CombinedIteratorVariable,
    ConstantVariable,
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
    SizeVariable,
    SliceVariable,
    SuperVariable,
    SymbolicVariable,
    TensorVariable,
    TracebackVariable,
    TupleVariable,
    VariableTracker,
)
from ..semantics.constructors import PartialVariable
from ..semantics.lazy import LazyIteratorVariable
from ..semantics.methods import ViewVariable
from ..semantics.wrapping import NUMBERS_AND_TEXTS
from ..tensor.numpy import SCALARS as NUMPY_SCALARS
from ..tensor.torchops import StructVariable
from .numbers import load_number
from .resume import Suspended

GENERIC_DICT = GenericGetter("__dict__")
LITERALS = (type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented), types.CodeType)


class Unreconstructible(GraphBreak):
    """A live value that bytecode cannot rebuild; the trace must stop before the value is made."""

    def __init__(self, what: str) -> None:
        super().__init__("unreconstructible_value", what)


def new_exception(cls: type, args: tuple, attrs: dict, cause: Any, context: Any, trace: tuple) -> BaseException:
    """Called by transformed code: an exception that the trace made.

    trace: where it was raised and what it passed, innermost first: (code, line); None is the calling frame's code.
    """
    made = cls.__new__(cls, *args)
    for base in cls.__mro__:
        init = base.__dict__.get("__init__")
        if isinstance(init, types.WrapperDescriptorType):  # the one written in C: StopIteration's keeps ``value``
            init(made, *args)
            break
    complete_exception(made, attrs, cause, sys.exc_info()[1] if context is None and trace else context)
    here = sys._getframe(1)
    for code, line in trace:  # the interpreter relies on a caught exception having a traceback
        frame = here if code is None else _frame_of(code)
        BaseException.__setattr__(made, "__traceback__", types.TracebackType(made.__traceback__, frame, -1, line))
    return made


def complete_exception(made: BaseException, attrs: dict, cause: Any, context: Any) -> None:
    """What an exception refers to; called by transformed code where that leads back to the exception."""
    cls = type(made)
    for name, value in attrs.items():
        if isinstance(getattr(cls, name, None), types.MemberDescriptorType):
            BaseException.__setattr__(made, name, value)
        else:
            made.__dict__[name] = value
    if cause is not MISSING:
        BaseException.__setattr__(made, "__cause__", cause)
    if context is not None:
        BaseException.__setattr__(made, "__context__", context)


@functools.lru_cache(maxsize=1000)
def _stub(code: types.CodeType) -> types.CodeType:
    stub = replace_code(_RAISE, co_filename=code.co_filename, co_name=code.co_name, co_qualname=qualified_name(code),
                          co_firstlineno=code.co_firstlineno)
    _native.set_skip(stub, None, True)
    return stub


def _frame_of(code: types.CodeType) -> types.FrameType:
    """A frame that stands for one of ``code`` in a traceback: calls that were traced into have none."""
    try:
        types.FunctionType(_stub(code), {})()
    except NotImplementedError as error:
        trace = error.__traceback__
        assert trace is not None and trace.tb_next is not None
        return trace.tb_next.tb_frame
    raise AssertionError("the stub returned")


def _raise() -> None:
    raise NotImplementedError


_RAISE = _raise.__code__


def new_iterator(items: Any, index: int) -> Any:
    """Called by transformed code: an iterator over a list or tuple that stands at ``index``."""
    return _standing_at(iter(items), items, index, index)


def new_reversed(items: Any, index: int) -> Any:
    """Called by transformed code: reversed(items) that gives the item at ``index`` next, none where that is -1."""
    return _standing_at(reversed(items), items, index, index + 1)


def _standing_at(made: Any, items: Any, index: int, size: int) -> Any:
    """``made``, an iterator over ``items``, at ``index``; the list has, or will have when it is changed after this, ``size`` items."""
    missing = size - len(items)
    if missing > 0:  # __setstate__ would stop at the list's end
        items.extend([None] * missing)
    made.__setstate__(index)
    if missing > 0:
        del items[-missing:]
    return made


def new_dict_iterator(mapping: dict, index: int, view: str, backwards: bool) -> Any:
    """Called by transformed code: an iterator over a dict, or a view of it, that has given ``index`` items."""
    viewed = getattr(mapping, view)() if view else mapping
    made = reversed(viewed) if backwards else iter(viewed)
    for _ in range(index):
        next(made)
    return made


def new_function(code: Any, scope: dict, name: str, qualname: str, defaults: Any, kwdefaults: Any, closure: Any, attrs: dict,
                 annotations: Any) -> Any:
    """Called by transformed code: a function that the trace made."""
    made = types.FunctionType(code, scope, name, defaults, closure)
    made.__qualname__ = qualname
    made.__kwdefaults__ = kwdefaults
    if annotations is not None:
        made.__annotations__ = annotations if isinstance(annotations, dict) else dict(
            zip(annotations[::2], annotations[1::2], strict=True))
    made.__dict__.update(attrs)
    return made


def new_generator(code: Any, scope: dict, args: tuple, started: bool, finished: bool, name: str, qualname: str) -> Any:
    """Called by transformed code: a generator that the trace made, where it stood."""
    made = types.FunctionType(code, scope)(*args)
    made.__name__, made.__qualname__ = name, qualname
    if finished:
        made.close()
    elif started:
        next(made)  # to the yield of its prologue
    return made


class Codegen:
    """Emits instructions into ``out``. Values used more than once live in temporaries."""

    def __init__(self, state: Any, names: Any) -> None:
        self.state = state
        self.out: list[Instruction] = []
        self.names = names  # install(name hint, object) -> global name in the frame's globals
        self.temps: dict[int, str] = {}
        self.counter = 0
        self.graph_outputs: dict[int, str] = {}
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
        if isinstance(obj, types.ModuleType | type | types.FunctionType | types.BuiltinFunctionType):
            builtins = self.state.root.scope.real.get("__builtins__")
            namespace = builtins if isinstance(builtins, dict) else getattr(builtins, "__dict__", {})
            name = getattr(obj, "__name__", "")
            if namespace.get(name) is obj and name not in self.state.root.scope.real and name not in self.state.root.scope.stores:
                return [instr("LOAD_GLOBAL", name)]
        name = self.pins.get(id(obj))
        if name is None:
            hint = getattr(obj, "__name__", type(obj).__name__)
            name = self.pins[id(obj)] = self.names("__" + "".join(c if c.isalnum() else "_" for c in str(hint)), obj)
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
            if tracker.tracker is None:
                self.load_source(tracker.source)
                return
            tracker = tracker.tracker
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
                self.op("LOAD_FAST", output)
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

    def load_source(self, source: Source | None) -> None:
        assert source is not None, "a value from outside without a source"
        if source.access == "CELL" or source.root().access in ("STATE", "NONE", "FN"):
            raise Unreconstructible(source.name)
        self.emit(*source.emit(self.load_pinned))

    def load_constant(self, tracker: ConstantVariable) -> None:
        value = tracker.value
        kind = type(value)
        if kind in (*NUMBERS_AND_TEXTS, range) and tracker.source is not None and not _small(value):
            self.load_source(tracker.source)  # keeps the identity of the object
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
        builder = _BUILDERS.get(type(tracker))
        if builder is None:
            raise Unreconstructible(f"a {tracker.python_type().__name__}")
        builder(self, tracker)

    def load_many(self, trackers: list) -> None:
        for item in trackers:
            self.load(item)


def _small(value: Any) -> bool:
    return type(value) is int and -5 <= value <= 256 or type(value) is str and len(value) <= 1


def _list(cg: Codegen, t: ListVariable) -> None:
    if _refers_to(t, t, set()):
        cg.op("BUILD_LIST", 0)
        cg.store_temp(t)
        for item in t.items:
            cg.load(item)
            cg.op("LIST_APPEND", 1)
        return
    if len(t.items) > 2 and all(type(i) is ConstantVariable and i.source is None and type(i.value) in LITERALS for i in t.items):
        cg.op("BUILD_LIST", 0)
        cg.op("LOAD_CONST", tuple(i.value for i in t.items))
        cg.op("LIST_EXTEND", 1)
    else:
        cg.load_many(t.items)
        cg.op("BUILD_LIST", len(t.items))
    cg.store_temp(t)


def _refers_to(tracker: Any, target: Any, seen: set) -> bool:
    """Whether ``target`` can be reached from inside ``tracker`` (a cycle)."""
    for child in children(tracker):
        if child is target:
            return True
        if id(child) not in seen:
            seen.add(id(child))
            if _refers_to(child, target, seen):
                return True
    return False


def children(tracker: Any) -> list:
    """Trackers that a rebuilt object refers to."""
    if isinstance(tracker, LazyVariable):
        return [] if tracker.tracker is None else [tracker.tracker]
    if isinstance(tracker, ListVariable):
        return list(tracker.appended)
    if isinstance(tracker, (TupleVariable, SliceVariable)):
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
    if isinstance(tracker, ObjectVariable):
        found = [a for a in tracker.attrs.values() if a is not MISSING]
        return [*found, *(p for p in (tracker.payload, tracker.namespace) if p is not None)]
    if isinstance(tracker, FunctionVariable):
        extra = [x for x in (tracker.defaults, tracker.kwdefaults, tracker.annotations) if x is not None]
        return [*tracker.closure, *extra, *tracker.attrs.values()]
    if isinstance(tracker, CellVariable):
        return [] if tracker.contents is MISSING else [tracker.contents]
    if isinstance(tracker, PartialVariable):
        return [tracker.func, *tracker.args, *tracker.kwargs.values()]
    if isinstance(tracker, MethodVariable):
        return [tracker.func, tracker.obj]
    if isinstance(tracker, (BuiltinMethodVariable, SuperVariable)):
        return [tracker.obj]
    if isinstance(tracker, IteratorVariable):
        return [tracker.origin] if tracker.origin is not None else tracker.items[tracker.index :]
    if isinstance(tracker, CombinedIteratorVariable):
        return [*tracker.iterators, *([tracker.fn] if tracker.fn is not None else [])]
    if isinstance(tracker, ExceptionVariable):
        extra = [x for x in (tracker.cause, tracker.context) if x is not MISSING and x is not None]
        return [*tracker.args, *tracker.attrs.values(), *extra]
    if isinstance(tracker, PreviousException):
        return [tracker.current]
    if isinstance(tracker, LazyIteratorVariable):
        return [*tracker.args, *tracker.kwargs.values()]
    if isinstance(tracker, GeneratorVariable):
        return [] if tracker.finished or tracker.running else Suspended(tracker.frame, tracker.started).values
    return []


def _tuple(cg: Codegen, t: TupleVariable) -> None:
    cg.load_many(t.items)
    if cg.closed(t, len(t.items)):
        return
    cg.op("BUILD_TUPLE", len(t.items))
    if t.items:
        cg.store_temp(t)


def _size(cg: Codegen, t: SizeVariable) -> None:
    cg.load_object(t.cls)
    cg.load_many(t.items)
    cg.op("BUILD_TUPLE", len(t.items))
    cg.call(1)
    cg.store_temp(t)


def _slice(cg: Codegen, t: SliceVariable) -> None:
    cg.load_many(t.items)
    cg.op("BUILD_SLICE", 3)
    cg.store_temp(t)


def _dict(cg: Codegen, t: DictVariable) -> None:
    if t.owner is not None:
        cg.load(t.owner)
        cg.op("POP_TOP")
        cg.op("LOAD_FAST", cg.temps[id(t)])
        return
    cg.op("BUILD_MAP", 0)
    cg.store_temp(t)
    for key, value in t.items.values():
        cg.load(key)
        cg.load(value)
        cg.op("MAP_ADD", 1)


def _set(cg: Codegen, t: SetVariable) -> None:
    cg.load_object(t.cls)
    cg.load_many(list(t.items.values()))
    if cg.closed(t, len(t.items) + 1):
        return
    cg.op("BUILD_LIST", len(t.items))
    cg.call(1)
    cg.store_temp(t)


def _attributes(cg: Codegen, attrs: dict) -> None:
    """A dict display of attributes by name."""
    for name, value in attrs.items():
        cg.op("LOAD_CONST", name)
        cg.load(value)
    cg.op("BUILD_MAP", len(attrs))


def _object(cg: Codegen, t: ObjectVariable) -> None:
    if t.value is not MISSING:
        cg.load_object(t.value)
        return
    if isinstance(t, ViewVariable):
        cg.load(t.holder)
        cg.op("LOAD_ATTR", t.kind)
        cg.call(0)
        return
    if isinstance(t, StructVariable) or t.cls is types.MappingProxyType:
        cg.load_object(t.cls)
        cg.load(t.payload)  # type: ignore[arg-type]
        cg.call(1)
        cg.store_temp(t)
        return
    if t.cls is types.SimpleNamespace:
        cg.load_object(t.cls)
        cg.call(0)
        cg.store_temp(t)
        for attr, value in t.attrs.items():
            cg.load(value)
            cg.op("LOAD_FAST", cg.temps[id(t)])
            cg.op("STORE_ATTR", attr)
        return
    payload = t.payload
    base = next(b for b in t.cls.__mro__ if b.__module__ in ("builtins", "collections") and not _is_python_class(b))
    cg.load_object(base)
    cg.op("LOAD_ATTR", "__new__")
    cg.load_object(t.cls)
    if isinstance(payload, TupleVariable):
        cg.load(payload)
        if cg.closed(t, 3):
            return
        cg.call(2)
    else:
        cg.call(1)
    cg.store_temp(t)
    name = cg.temps[id(t)]
    if isinstance(payload, ListVariable):
        for item in payload.items:
            cg.load_object(list)
            cg.op("LOAD_ATTR", "append")
            cg.op("LOAD_FAST", name)
            cg.load(item)
            cg.call(2)
            cg.op("POP_TOP")
    elif isinstance(payload, DictVariable):
        setter = collections.OrderedDict if issubclass(t.cls, collections.OrderedDict) else dict
        for key, value in payload.items.values():
            cg.load_object(setter)
            cg.op("LOAD_ATTR", "__setitem__")
            cg.op("LOAD_FAST", name)
            cg.load(key)
            cg.load(value)
            cg.call(3)
            cg.op("POP_TOP")
    elif isinstance(payload, SetVariable):
        raise Unreconstructible(f"a {t.cls.__name__}")
    if t.namespace is not None:
        _namespace(cg, t, t.namespace)
    for attr, value in t.attrs.items():
        cg.load_object(object)
        cg.op("LOAD_ATTR", "__setattr__")
        cg.op("LOAD_FAST", name)
        cg.op("LOAD_CONST", attr)
        cg.load(value)
        cg.call(3)
        cg.op("POP_TOP")


def _namespace(cg: Codegen, t: ObjectVariable, namespace: DictVariable) -> None:
    """Fill the new object's ``__dict__``, which the program may hold, too."""
    cg.load_object(GENERIC_DICT)
    cg.op("LOAD_FAST", cg.temps[id(t)])
    cg.call(1)
    cg.store_temp(namespace)
    cg.op("POP_TOP")
    for key, value in namespace.items.values():
        cg.load(value)
        cg.op("LOAD_FAST", cg.temps[id(namespace)])
        cg.load(key)
        cg.op("STORE_SUBSCR")


def _is_python_class(cls: type) -> bool:
    return bool(cls.__flags__ & (1 << 9))


def _function(cg: Codegen, t: FunctionVariable) -> None:
    cells = [c for c in t.closure if c.source is None and id(c) not in cg.temps]
    for cell in cells:
        cg.load(cell)
        cg.op("POP_TOP")
    if id(t) in cg.temps:  # a recursive function: building its cell has built it
        cg.op("LOAD_FAST", cg.temps[id(t)])
        return
    cg.load_object(new_function)
    cg.op("LOAD_CONST", t.code)
    cg.load_object(t.globals_of.real)
    cg.op("LOAD_CONST", t.name)
    cg.op("LOAD_CONST", t.qualname)
    for part in (t.defaults, t.kwdefaults):
        if part is None:
            cg.op("LOAD_CONST", None)
        else:
            cg.load(part)
    if t.closure:
        cg.load_many(t.closure)
        cg.op("BUILD_TUPLE", len(t.closure))
    else:
        cg.op("LOAD_CONST", None)
    cg.op("BUILD_MAP", 0)
    if t.annotations is None:
        cg.op("LOAD_CONST", None)
    else:
        cg.load(t.annotations)
    cg.call(9)
    cg.store_temp(t)
    for attr, value in t.attrs.items():
        cg.load(value)
        cg.op("LOAD_FAST", cg.temps[id(t)])
        cg.op("STORE_ATTR", attr)


def _cell(cg: Codegen, t: CellVariable) -> None:
    cg.load_object(types.CellType)
    cg.call(0)
    cg.store_temp(t)
    if t.contents is not MISSING:
        cg.load(t.contents)
        cg.op("LOAD_FAST", cg.temps[id(t)])
        cg.op("STORE_ATTR", "cell_contents")


def _method(cg: Codegen, t: MethodVariable) -> None:
    cg.load_object(types.MethodType)
    cg.load(t.func)
    cg.load(t.obj)
    cg.call(2)


def _partial(cg: Codegen, t: PartialVariable) -> None:
    cg.load_object(functools.partial)
    cg.load_many([t.func, *t.args])
    cg.op("BUILD_TUPLE", 1 + len(t.args))
    _attributes(cg, t.kwargs)
    cg.op("CALL_EX", True)
    cg.store_temp(t)


def _builtin_method(cg: Codegen, t: BuiltinMethodVariable) -> None:
    cg.load(t.obj)
    cg.op("LOAD_ATTR", t.name)


def _super(cg: Codegen, t: SuperVariable) -> None:
    cg.load_object(super)
    cg.load_object(t.start)
    cg.load(t.obj)
    cg.call(2)


def _iterator(cg: Codegen, t: IteratorVariable) -> None:
    origin = t.origin
    backwards = t.kind.__name__.startswith("dict_reverse")
    if t.kind.__name__ == "odict_iterator":
        raise Unreconstructible("an iterator over an OrderedDict")
    if isinstance(origin, (ListVariable, TupleVariable)) and origin.items is t.items:
        cg.load_object(new_iterator)
        cg.load(origin)
        cg.op("LOAD_CONST", t.index)
        cg.call(2)
    elif isinstance(origin, ConstantVariable) and isinstance(origin.value, range):
        rest = origin.value[t.index :]
        cg.load_object(iter)
        cg.load_object(range)
        for part in (rest.start, rest.stop, rest.step):
            cg.op("LOAD_CONST", part)
        cg.call(3)
        cg.call(1)
    elif isinstance(origin, DictVariable) and origin.cls is dict and all(
            a is b for (a, _), b in zip(origin.items.values(), t.items[::-1] if backwards else t.items, strict=False)) and (
            len(origin.items) == len(t.items)):
        if t.broken or origin.source is not None and origin.mutated:
            raise Unreconstructible("an iterator over a dict that has changed")
        cg.load_object(new_dict_iterator)
        cg.load(origin)
        for part in (t.index, t.view, backwards):
            cg.op("LOAD_CONST", part)
        cg.call(4)
    elif isinstance(origin, (DictVariable, SetVariable)) and (t.broken or origin.changes != t.changes):
        raise Unreconstructible("an iterator over a container that has changed")
    elif isinstance(origin, SetVariable):
        cg.load_object(new_dict_iterator)
        cg.load(origin)
        for part in (t.index, "", False):
            cg.op("LOAD_CONST", part)
        cg.call(4)
    elif isinstance(origin, ConstantVariable):
        cg.load_object(new_iterator)
        cg.load(origin)
        cg.op("LOAD_CONST", t.index)
        cg.call(2)
    elif t.view:
        raise Unreconstructible("an iterator over a view of a dict")
    elif t.kind in (type(reversed([])), type(reversed(()))) and origin is not None:
        if t.items != origin.items[::-1]:  # type: ignore[union-attr]
            raise Unreconstructible("a reversed iterator over a list that has changed")
        cg.load_object(new_reversed)
        cg.load(origin)  # type: ignore[arg-type]
        cg.op("LOAD_CONST", len(t.items) - 1 - t.index)
        cg.call(2)
    elif t.kind not in (type(iter([])), type(iter(()))):
        raise Unreconstructible(f"a {t.kind.__name__}")
    else:
        cg.load_object(iter)
        cg.load_many(t.items[t.index :])
        cg.op("BUILD_TUPLE" if t.kind is type(iter(())) else "BUILD_LIST", len(t.items) - t.index)
        cg.call(1)
    cg.store_temp(t)


def _combined(cg: Codegen, t: CombinedIteratorVariable) -> None:
    cg.load_object(t.kind)
    if t.kind in (map, filter):
        if t.fn is None:
            cg.op("LOAD_CONST", None)
        else:
            cg.load(t.fn)
    cg.load_many(t.iterators)
    count = len(t.iterators) + (t.kind in (map, filter))
    if t.kind is enumerate:
        cg.op("LOAD_CONST", t.count)
        count += 1
    if t.kind is zip and t.strict:
        cg.op("LOAD_CONST", True)
        cg.op("CALL", (count, ("strict",)))
    else:
        cg.call(count)
    cg.store_temp(t)


def _traceback(cg: Codegen, t: TracebackVariable) -> None:
    cg.load(t.of)
    cg.op("LOAD_ATTR", "__traceback__")


def _exception(cg: Codegen, t: ExceptionVariable) -> None:
    if any(_refers_to(arg, t, set()) for arg in t.args):
        raise Unreconstructible("an exception with itself among its arguments")
    cg.load_object(new_exception)
    cg.load_object(t.cls)
    cg.load_many(t.args)
    cg.op("BUILD_TUPLE", len(t.args))
    cyclic = _refers_to(t, t, set())
    if cyclic:
        cg.op("BUILD_MAP", 0)
        cg.load_object(MISSING)
        cg.op("LOAD_CONST", None)
    else:
        _references(cg, t)
    root = cg.state.root.code
    cg.op("LOAD_CONST", tuple((None if code is root else code, line) for code, line in t.trace))
    cg.call(6)
    cg.store_temp(t)
    if cyclic:
        cg.load_object(complete_exception)
        cg.load(t)
        _references(cg, t)
        cg.call(4)
        cg.op("POP_TOP")


def _references(cg: Codegen, t: ExceptionVariable) -> None:
    _attributes(cg, t.attrs)
    if t.cause is MISSING:
        cg.load_object(MISSING)
    else:
        cg.load(t.cause)
    if t.context is None:
        cg.op("LOAD_CONST", None)
    else:
        cg.load(t.context)


def _lazy(cg: Codegen, t: LazyIteratorVariable) -> None:
    if t.started:
        raise Unreconstructible(f"an itertools.{t.cls.__name__} that the trace has started")
    cg.load_object(t.cls)
    cg.load_many(t.args)
    cg.load_many(list(t.kwargs.values()))
    cg.op("CALL", (len(t.args), tuple(t.kwargs)))
    cg.store_temp(t)


def _nothing() -> Any:
    return
    yield


def _generator(cg: Codegen, t: GeneratorVariable) -> None:
    if t.running or _refers_to(t, t, set()):
        raise Unreconstructible("a generator that is running, or refers to itself")
    code = t.frame.code
    cg.load_object(new_generator)
    if t.finished:
        cg.op("LOAD_CONST", _nothing.__code__)
        values = []
    else:
        suspended = Suspended(t.frame, t.started)
        values = suspended.values
        cg.op("LOAD_CONST", suspended.build())
    cg.load_object(t.frame.scope.real)
    cg.load_many(values)
    cg.op("BUILD_TUPLE", len(values))
    for part in (t.started, t.finished, code.co_name, qualified_name(code)):
        cg.op("LOAD_CONST", part)
    cg.call(7)
    cg.store_temp(t)


_BUILDERS: dict[type, Any] = {
    ListVariable: _list,
    TupleVariable: _tuple,
    SizeVariable: _size,
    SliceVariable: _slice,
    DictVariable: _dict,
    SetVariable: _set,
    ObjectVariable: _object,
    ViewVariable: _object,
    StructVariable: _object,
    FunctionVariable: _function,
    CellVariable: _cell,
    MethodVariable: _method,
    PartialVariable: _partial,
    BuiltinMethodVariable: _builtin_method,
    SuperVariable: _super,
    IteratorVariable: _iterator,
    CombinedIteratorVariable: _combined,
    ExceptionVariable: _exception,
    GeneratorVariable: _generator,
    LazyIteratorVariable: _lazy,
    TracebackVariable: _traceback,
}

__all__ = ["Codegen", "Unreconstructible", "children"]
