"""Variable trackers: what the interpreter's stack and locals hold in place of the real objects.

A tracker stands for exactly one object of the traced program: two names hold the same tracker if and only if they would
hold the same object. Trackers of mutable objects carry the object's current contents; what differs from frame entry is
replayed by ``emit.effects``.
"""

from __future__ import annotations

import collections
import types
from typing import Any

from .source import Source


class _Missing:
    def __repr__(self) -> str:
        return "<missing>"


MISSING: Any = _Missing()


class VariableTracker:
    """Base of all trackers; ``source`` is None for objects born in the trace."""

    __slots__ = ("source",)
    source: Source | None

    def python_type(self) -> type:
        raise NotImplementedError(type(self).__name__)


class LazyVariable(VariableTracker):
    """A value that nobody has looked at: it costs no guard until ``realize``."""

    __slots__ = ("value", "tracker")

    def __init__(self, value: Any, source: Source) -> None:
        self.value = value
        self.source = source
        self.tracker: VariableTracker | None = None


def looked_at(tracker: VariableTracker) -> VariableTracker:
    """The tracker behind a lazy one, if anything has looked at its value."""
    return tracker.tracker or tracker if isinstance(tracker, LazyVariable) else tracker


class ConstantVariable(VariableTracker):
    """An immutable value that the trace may fold; guarded by value when it came from outside."""

    __slots__ = ("value",)

    def __init__(self, value: Any, source: Source | None = None) -> None:
        self.value = value
        self.source = source

    def python_type(self) -> type:
        return type(self.value)

    def __repr__(self) -> str:
        return f"ConstantVariable({self.value!r})"


class ChangingVariable(ConstantVariable):
    """A value that changes from call to call, and is a constant only where something asks for it.

    ``number``: the symbol that operations of tensors take for it. ``settle``: called once, guards the value.
    """

    __slots__ = ("number", "_cls", "_real", "_settle", "_constant")

    def __init__(self, value: Any, source: Source, number: Any, settle: Any) -> None:
        self._cls, self._real, self.source, self.number = type(value), value, source, number
        self._settle = settle
        self._constant: ConstantVariable | None = None

    def constant(self) -> ConstantVariable:
        if self._constant is None:
            self._settle()
            self._constant = ConstantVariable(self._real, self.source)
        return self._constant

    @property
    def value(self) -> Any:  # type: ignore[override]
        return self.constant().value

    def python_type(self) -> type:
        return self._cls

    def __repr__(self) -> str:
        return f"ChangingVariable({self._real!r})"


NONE = ConstantVariable(None)
TRUE = ConstantVariable(True)
FALSE = ConstantVariable(False)


def constant(value: Any) -> ConstantVariable:
    if value is None:
        return NONE
    if value is True:
        return TRUE
    if value is False:
        return FALSE
    return ConstantVariable(value)


class SymbolicVariable(VariableTracker):
    """A number that differs from call to call: ``value`` is torch's SymInt, SymFloat or SymBool, ``cls`` int, float or bool.

    ``recipe`` is (function, trackers) for numbers that the symbols' expression does not give exactly: floats, truth values.
    """

    __slots__ = ("cls", "node", "recipe", "value")

    def __init__(self, value: Any, cls: type, source: Source | None = None, recipe: Any = None) -> None:
        self.value = value
        self.cls = cls
        self.source = source
        self.recipe = recipe
        self.node: Any = None  # in the graph, once it is used there

    def python_type(self) -> type:
        return self.cls

    def __repr__(self) -> str:
        return f"SymbolicVariable({self.value!r})"


class TensorVariable(VariableTracker):
    """A tensor: its node in the graph, and its fake twin that carries shape, dtype, device and autograd state.

    ``made_as``: of one that the trace has made a tensor of a class of the program's, whether grad mode was on, or "detached"; else None.
    """

    __slots__ = ("node", "fake", "cls", "value", "attrs", "made_as")

    def __init__(self, node: Any, fake: Any, cls: type, source: Source | None = None, value: Any = None) -> None:
        self.node = node
        self.fake = fake
        self.cls = cls
        self.source = source
        self.value = value
        self.attrs: dict[str, VariableTracker] = {}
        self.made_as: bool | str | None = None

    def python_type(self) -> type:
        return self.cls


class ListVariable(VariableTracker):
    """A list (also the payload of list subclasses).

    ``look``: for a list from outside, gives the trackers of what is in it, and guards its length. It is called when
    ``items`` is first asked for; appending does not ask. ``seen``: what it gave. ``filled``: there was something in it after
    some change.
    """

    __slots__ = ("_items", "_look", "seen", "value", "mutated", "filled")
    pytype: type = list

    def __init__(self, items: list, source: Source | None = None, value: Any = None, look: Any = None) -> None:
        self._items = items
        self._look = look
        self.seen: list[VariableTracker] = []
        self.source = source
        self.value = value
        self.mutated = False
        self.filled = False

    @property
    def items(self) -> list:
        if self._look is not None:
            look, self._look = self._look, None
            self.seen = look()
            self._items[:0] = self.seen
        return self._items

    @property
    def unseen(self) -> bool:
        """Whether nothing depends on what the list held at frame entry."""
        return self._look is not None

    @property
    def appended(self) -> list:
        """All items that are known without looking."""
        return self._items

    def extend(self, items: list) -> None:
        self._items.extend(items)

    def python_type(self) -> type:
        return self.pytype


class TupleVariable(VariableTracker):
    """A tuple; immutable, its items may be anything."""

    __slots__ = ("items",)

    def __init__(self, items: list, source: Source | None = None) -> None:
        self.items = items
        self.source = source

    def python_type(self) -> type:
        return tuple


class SizeVariable(TupleVariable):
    """A torch.Size some of whose items are symbolic."""

    __slots__ = ("cls",)

    def __init__(self, items: list, cls: type, source: Source | None = None) -> None:
        super().__init__(items, source)
        self.cls = cls

    def python_type(self) -> type:
        return self.cls


class SliceVariable(VariableTracker):
    __slots__ = ("items",)

    def __init__(self, items: list, source: Source | None = None) -> None:
        self.items = items
        self.source = source

    def python_type(self) -> type:
        return slice


class DictVariable(VariableTracker):
    """A dict: ``items`` maps a hashable key to (key tracker, value tracker).

    ``value`` is the real dict for one from outside; entries are then wrapped when asked for, and ``complete`` tells
    whether all of them (and their order) have been observed. ``cleared``: the program has emptied it; what is there came after that.
    """

    __slots__ = ("items", "value", "mutated", "complete", "deleted", "cleared", "cls", "fetched", "owner", "changes")

    def __init__(self, items: dict, source: Source | None = None, value: Any = None, cls: type = dict) -> None:
        self.items: dict[Any, tuple[VariableTracker, VariableTracker]] = items
        self.source = source
        self.value = value
        self.mutated = False
        self.complete = value is None
        self.deleted: set = set()
        self.cleared = False
        self.fetched: dict[Any, VariableTracker] = {}  # entries of the real dict as they were found
        self.cls = cls
        self.owner: ObjectVariable | None = None  # the object whose __dict__ it is
        self.changes = 0

    def python_type(self) -> type:
        return self.cls


class SetVariable(VariableTracker):
    """A set or frozenset: ``items`` maps what hashes and compares as the item does to its tracker.

    ``order``: a real set of those keys that has been through the same operations, and so gives them in the order that the
    program's set does; None where that is not known. ``log``: what was done to it, from the empty set on if the trace
    has made it, as (method, tracker); None where that is not known.
    """

    __slots__ = ("items", "value", "mutated", "cls", "changes", "order", "log", "as_is")

    def __init__(self, items: dict, source: Source | None = None, value: Any = None, cls: type = set, order: Any = None) -> None:
        self.changes = 0
        self.order = order
        from_empty = cls is set and order is not None and not items
        self.log: Any = [] if source is not None or from_empty else None
        self.as_is = value is not None  # ``items`` have the real set's order, while nothing changes
        self.items: dict[Any, VariableTracker] = items
        self.source = source
        self.value = value
        self.mutated = False
        self.cls = cls

    def python_type(self) -> type:
        return self.cls


class DequeVariable(VariableTracker):
    """A collections.deque; ``maxlen`` is None or an int.

    ``seen``: what was in it first. ``changes`` counts what iterators do not survive. They do not mind other items at the same
    places: those in ``replaced``.
    """

    __slots__ = ("items", "seen", "maxlen", "value", "mutated", "changes", "replaced")

    def __init__(self, items: list, maxlen: int | None, source: Source | None = None, value: Any = None) -> None:
        self.items = items
        self.seen = list(items)
        self.maxlen = maxlen
        self.source = source
        self.value = value
        self.mutated = False
        self.changes = 0
        self.replaced: set[int] = set()

    def python_type(self) -> type:
        return collections.deque


class ObjectVariable(VariableTracker):
    """Any other object. ``value`` is the real one, or MISSING for an object born in the trace.

    ``attrs`` holds the attributes that differ from the real object's dict (MISSING for deleted ones); once the program
    has taken ``__dict__``, that is ``namespace``, and ``attrs`` holds only slots. ``payload``: the contents of an instance
    of a subclass of list, tuple, dict or set.
    """

    __slots__ = ("value", "cls", "attrs", "namespace", "payload", "new_args")

    def __init__(self, value: Any, cls: type, source: Source | None = None) -> None:
        self.value = value
        self.cls = cls
        self.source = source
        self.attrs: dict[str, VariableTracker] = {}
        self.namespace: DictVariable | None = None
        self.payload: VariableTracker | None = None
        self.new_args: list[VariableTracker] = []

    def python_type(self) -> type:
        return self.cls

    def __repr__(self) -> str:
        return f"ObjectVariable({self.cls.__name__}, {self.value!r:.60})"


class FunctionVariable(VariableTracker):
    """A Python function made inside the trace."""

    __slots__ = ("code", "globals_of", "defaults", "kwdefaults", "closure", "annotations", "attrs", "name", "qualname")

    def __init__(self, code: Any, globals_of: Any, qualname: str) -> None:
        self.code = code
        self.globals_of = globals_of  # the GlobalScope that the function runs in
        self.defaults: VariableTracker | None = None
        self.kwdefaults: VariableTracker | None = None
        self.closure: list[CellVariable] = []
        self.annotations: VariableTracker | None = None
        self.attrs: dict[str, VariableTracker] = {}
        self.name = code.co_name
        self.qualname = qualname
        self.source = None

    def python_type(self) -> type:
        return types.FunctionType


class MethodVariable(VariableTracker):
    """A bound method: ``func`` called with ``obj`` put in front."""

    __slots__ = ("func", "obj")

    def __init__(self, func: VariableTracker, obj: VariableTracker, source: Source | None = None) -> None:
        self.func = func
        self.obj = obj
        self.source = source

    @property
    def in_c(self) -> type | None:
        """The type of a method that ``super()`` has bound to a function written in C; None for all others."""
        return _BOUND_IN_C.get(type(getattr(self.func, "value", None)))

    def python_type(self) -> type:
        return self.in_c or types.MethodType


_BOUND_IN_C: dict[type, type] = {types.WrapperDescriptorType: types.MethodWrapperType, types.MethodDescriptorType: types.BuiltinMethodType}


class BuiltinMethodVariable(VariableTracker):
    """A method of a builtin type bound to a tracker: ``[].append``, ``x.sum``.

    ``descriptor``: what a class has for it, where the object's own look-up may not find that, or calls the program.
    """

    __slots__ = ("name", "obj", "descriptor")

    def __init__(self, name: str, obj: VariableTracker, descriptor: Any = None) -> None:
        self.name = name
        self.obj = obj
        self.descriptor = descriptor
        self.source = None

    def python_type(self) -> type:
        found = self.descriptor
        if found is None and type(self.obj) is not LazyVariable:
            found = next((base.__dict__[self.name] for base in self.obj.python_type().__mro__ if self.name in base.__dict__), None)
        return types.MethodWrapperType if isinstance(found, types.WrapperDescriptorType) else types.BuiltinMethodType


class CellVariable(VariableTracker):
    """A closure cell; ``contents`` is MISSING while unset."""

    __slots__ = ("contents", "mutated")

    def __init__(self, contents: Any, source: Source | None = None) -> None:
        self.contents = contents
        self.source = source
        self.mutated = False

    def python_type(self) -> type:
        return types.CellType


class SuperVariable(VariableTracker):
    __slots__ = ("start", "obj")

    def __init__(self, start: type, obj: VariableTracker) -> None:
        self.start = start
        self.obj = obj
        self.source = None

    def python_type(self) -> type:
        return super


LIST_ITERATOR = type(iter([]))


class IteratorVariable(VariableTracker):
    """An iterator with a fixed list of items still to come (list, tuple, range, dict views, str).

    ``origin``: what it goes over, None for nothing that lasts. ``holder``: the same, or the instance of a subclass around it.
    """

    __slots__ = ("items", "index", "origin", "holder", "changes", "broken", "kind", "view")

    def __init__(self, items: list, origin: VariableTracker | None = None, kind: type = LIST_ITERATOR, view: str = "") -> None:
        self.items = items
        self.kind = kind
        self.view = view  # "values" or "items": what is given for the keys in ``items``
        self.index = 0
        self.origin = self.holder = origin
        self.changes = getattr(origin, "changes", 0)
        self.broken = False
        self.source = None

    def python_type(self) -> type:
        return self.kind

    def within(self, holder: VariableTracker) -> IteratorVariable:
        """The same, over what ``holder`` holds. A mappingproxy shows what is there without it."""
        if holder.python_type() is not types.MappingProxyType:
            self.holder = holder
        return self


class AskedIterator:
    """As the kind of a combined iterator: the only one in it, an object of the program whose ``__iter__`` has been asked."""


class CombinedIteratorVariable(VariableTracker):
    """enumerate, zip, map, filter over other iterators."""

    __slots__ = ("kind", "fn", "iterators", "count", "strict")

    def __init__(self, kind: type, iterators: list, fn: Any = None, count: int = 0, strict: bool = False) -> None:
        self.kind = kind
        self.iterators = iterators
        self.fn = fn
        self.count = count
        self.strict = strict
        self.source = None

    def python_type(self) -> type:
        return self.kind


class GeneratorVariable(VariableTracker):
    """A suspended generator made in the trace: its interpreter frame."""

    __slots__ = ("frame", "started", "finished", "running", "exceptions", "broken")

    def __init__(self, frame: Any) -> None:
        self.frame = frame
        self.started = False
        self.finished = False
        self.running = False
        self.broken = False
        self.exceptions: list = []  # those it was handling when it yielded
        self.source = None

    def python_type(self) -> type:
        return type(_ for _ in ())


class TracebackVariable(VariableTracker):
    """The traceback of an exception, with the places that it had passed by then; ``of`` is the exception."""

    __slots__ = ("of", "trace")

    def __init__(self, of: VariableTracker) -> None:
        self.of = of
        self.trace: list[tuple[Any, int]] = list(getattr(of, "trace", ()))
        self.source = None

    def python_type(self) -> type:
        return types.TracebackType


class ExceptionVariable(VariableTracker):
    """An exception made in the trace: class, args, and what ``raise ... from`` and handlers set on it."""

    __slots__ = ("cls", "args", "attrs", "cause", "context", "raised", "trace")

    def __init__(self, cls: type, args: list) -> None:
        self.cls = cls
        self.args = args
        self.attrs: dict[str, VariableTracker] = {}
        self.cause: Any = MISSING
        self.context: Any = None
        self.raised = False  # has a traceback
        self.trace: list[tuple[Any, int]] = []  # its traceback, innermost first: (code, line)
        self.source = None

    def python_type(self) -> type:
        return self.cls
