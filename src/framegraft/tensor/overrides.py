"""``__torch_function__`` of tensors' classes, traced as the Python that it is (torch/overrides.py, torch/_tensor.py).

Whether torch asks it, in which order of classes, and with which function and arguments depends on the operation: on its parser in
C++, or on what it does in Python first. So torch itself is asked: the operation is called with probes in the place of the tensors,
whose classes are related as the program's are, write down what they are given.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.overrides as torch_overrides
from torch.utils._device import DeviceContext

from ..errors import GraphBreak, UserRaise
from ..interp.state import realize
from ..model.dispatch import HANDLERS, TENSOR, constructs, handles, method, specialised
from ..model.value import (
    MISSING,
    NONE,
    ConstantVariable,
    DictVariable,
    ListVariable,
    ObjectVariable,
    SizeVariable,
    SliceVariable,
    SymbolicVariable,
    TensorVariable,
    TupleVariable,
    VariableTracker,
    constant,
)
from ..semantics import attributes, calls, lookup
from ..semantics.iteration import complete, get_iter, unpack_iterable
from ..semantics.wrapping import CONSTANT_TYPES, wrap_pinned
from . import conversions, subclasses, torchops, wrappers
from .running import StructVariable

_C: Any = torch._C
_SLOTS = (types.MethodDescriptorType, types.WrapperDescriptorType)
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodWrapperType, *_SLOTS)
_ASKED: dict[int, Any] = {}  # functions that torch documents as overridable, by id
_READ = (bool, int, float, complex, str, repr, format, divmod)  # what torchops breaks the graph at
_DEFAULT: Any = torch.Tensor.__torch_function__.__func__  # type: ignore[attr-defined]
# Torch's functions that look at nothing but the class of a tensor.
_BLIND = frozenset(map(id, (_DEFAULT, torch.is_tensor, torch.is_storage, torch_overrides.has_torch_function,
                            torch_overrides.has_torch_function_unary, torch_overrides.has_torch_function_variadic,
                            _C._has_torch_function, _C._has_torch_function_unary, _C._has_torch_function_variadic,
                            _C._push_on_torch_function_stack, _C._pop_torch_function_stack, _C.DisableTorchFunctionSubclass)))


def _overridable() -> dict[int, Any]:
    if not _ASKED:
        _ASKED.update((id(fn), fn) for fn in torch_overrides.get_testing_overrides())
        _ASKED[id(torch_overrides.handle_torch_function)] = torch_overrides.handle_torch_function
    return _ASKED


# -- what torch would ask


class _ProbeMode(torch_overrides.TorchFunctionMode):
    """Stands for the innermost mode."""

    def __init__(self, probes: _Probes) -> None:
        super().__init__()
        self.probes = probes

    def __torch_function__(self, *args: Any, **kwargs: Any) -> Any:
        return self.probes.write(None, args, kwargs)


class _Probes:
    """Probes for the arguments of one call, and what they have written down: (class, arguments, keyword arguments)."""

    def __init__(self, tx: Any) -> None:
        self.tx = tx
        self.known: dict[int, tuple[Any, VariableTracker]] = {}
        self.classes: dict[type, type] = {}  # class of the program -> class of its probes
        self.seen: list[tuple[type | None, tuple, dict]] = []  # None: the mode
        self.turn = 0  # how many of them answer NotImplemented, before one answers with a mark

    def make_classes(self, classes: list[type]) -> None:
        for cls in sorted(set(classes), key=lambda cls: len(cls.__mro__)):
            bases: list[type] = []
            for base in cls.__mro__[1:]:
                if base in self.classes and not any(issubclass(b, self.classes[base]) for b in bases):
                    bases.append(self.classes[base])
            above = tuple(bases) or (torch.Tensor if issubclass(cls, torch.Tensor) else object,)
            self.classes[cls] = type(cls.__name__, above, {"__torch_function__": self._writing(cls)})

    def _writing(self, cls: type) -> Any:
        return classmethod(lambda _, *args, **kwargs: self.write(cls, args, kwargs))

    def write(self, cls: type | None, args: tuple, kwargs: dict) -> Any:
        self.seen.append((cls, args, kwargs))
        return _ANSWER if len(self.seen) > self.turn else NotImplemented

    def asked(self, run: Callable[..., Any], args: list, kwargs: dict) -> Iterator[tuple[Any, list, dict]]:
        """What ``run`` asks the probes for these arguments, one class after the other."""
        given, named = [self.probe(a) for a in args], {k: self.probe(v) for k, v in kwargs.items()}
        for turn in range(_MOST_TURNS):
            self.seen.clear()
            self.turn = turn
            mode = _ProbeMode(self) if self.tx.state.function_modes else contextlib.nullcontext()
            with _C.DisableTorchFunctionSubclass() if self.tx.state.overrides_off else _C._EnableTorchFunction(), mode:
                try:
                    result = run(*given, **named)
                except Exception:  # a TypeError: all have answered NotImplemented
                    return
            if len(self.seen) != turn + 1 or result is not _ANSWER and run is not torch.Tensor.__setitem__:
                return
            cls, seen, words = self.seen[turn]
            yield cls, [self.tracker(a) for a in seen], {k: self.tracker(v) for k, v in words.items()}

    def probe(self, tracker: VariableTracker) -> Any:
        """What stands for a tracker; the same for the same one, for an argument may be given twice."""
        tracker = realize(tracker, self.tx.state)
        made = self._made(tracker)
        self.known.setdefault(id(made), (made, tracker))
        return made

    def _made(self, tracker: VariableTracker) -> Any:
        for made, known in self.known.values():
            if known is tracker:
                return made
        if isinstance(tracker, TensorVariable):
            return self._tensor(tracker)
        if subclasses.is_asked(tracker):
            return self.classes[tracker.python_type()]()
        if type(tracker) is ConstantVariable:
            return tracker.value
        if isinstance(tracker, SymbolicVariable) and tracker.cls in (int, float):
            return tracker.cls(100_000 + len(self.known))
        if isinstance(tracker, SliceVariable):
            return slice(*map(self.probe, tracker.items))
        if type(tracker) is ListVariable and tracker.pytype is list:
            return [self.probe(i) for i in tracker.items]
        if type(tracker) is TupleVariable:
            return tuple(self.probe(i) for i in tracker.items)
        if isinstance(tracker, ObjectVariable) and isinstance(tracker.value, (type, *_FUNCTIONS)):
            return tracker.value
        raise GraphBreak("input_subclass", f"a {tracker.python_type().__name__} as an argument beside a tensor with a __torch_function__")

    def _tensor(self, tracker: TensorVariable) -> torch.Tensor:
        made = torch.empty(0, device="meta")
        return torch.Tensor._make_subclass(self.classes[tracker.cls], made) if tracker.cls in self.classes else made

    def tracker(self, value: Any) -> VariableTracker:
        """The other way round, for what torch has made of the arguments."""
        known = self.known.get(id(value))
        if known is not None:
            return known[1]
        if type(value) in CONSTANT_TYPES or TENSOR.is_constant_type(type(value)):
            return constant(value)
        if type(value) is tuple:
            return TupleVariable([self.tracker(v) for v in value])
        if type(value) is list:
            return ListVariable([self.tracker(v) for v in value])
        if type(value) is dict and all(type(key) is str for key in value):
            return DictVariable({k: (constant(k), self.tracker(v)) for k, v in value.items()})
        if isinstance(value, type):
            return wrap_pinned(self.tx, next((real for real, probe in self.classes.items() if probe is value), value))
        if isinstance(value, _FUNCTIONS):
            return wrap_pinned(self.tx, value)
        raise GraphBreak("input_subclass", f"a {type(value).__name__} given to __torch_function__")


def _live_classes(tx: Any, trackers: Any) -> list[type]:
    """Classes of live tensors and of other objects that torch asks, among trackers and in lists and tuples of them."""
    found: list[type] = []
    for lazy in trackers:
        tracker = realize(lazy, tx.state)
        if isinstance(tracker, TensorVariable):
            if subclasses.is_live(tracker.cls):
                found.append(tracker.cls)
        elif subclasses.is_asked(tracker):
            lookup.mro_lookup(tx, tracker.python_type(), "__torch_function__")
            found.append(tracker.python_type())
        elif isinstance(tracker, (ListVariable, TupleVariable)) and not isinstance(tracker, SizeVariable):
            found += _live_classes(tx, tracker.items)
        elif isinstance(tracker, DictVariable) and tracker.source is None:
            found += _live_classes(tx, [value for _, value in tracker.items.values()])
    return found


_ANSWER: Any = object()


def _asked(tx: Any, run: Callable[..., Any], classes: list[type], args: list, kwargs: dict) -> Iterator[tuple[type | None, list, dict]]:
    """What torch asks for ``run(*args, **kwargs)``, in turn, while the answer is NotImplemented: (class, arguments, keyword arguments).

    Nothing where it does not ask, or goes on with the answer: then the call is more than what a class is asked.
    """
    probes = _Probes(tx)
    try:
        probes.make_classes(classes)
        yield from probes.asked(run, args, kwargs)
    finally:
        probes.__dict__.clear()  # its classes are in cycles, and hold it


_MOST_TURNS = 10


def _ask_and_answer(tx: Any, fn: Any, classes: list[type], args: list, kwargs: dict) -> VariableTracker:
    """What the first class says that has something to say (torch.overrides.handle_torch_function)."""
    if tx.state.function_modes:
        tx.state.outside += 1  # for blocks: a mode may be another one the next time
    if tx.state.graph.body is not None:
        raise GraphBreak("input_subclass", "a tensor with a __torch_function__ in a function that torch calls")
    for cls, seen, words in _asked(tx, fn, classes, args, kwargs):
        try:
            given = realize(_of_mode(tx, seen, words) if cls is None else _of_class(tx, cls, seen, words), tx.state)
        except UserRaise:  # which operators take for NotImplemented, where it is a TypeError
            raise GraphBreak("raised_exception", "from __torch_function__") from None
        if not isinstance(given, ConstantVariable) or given.value is not NotImplemented:
            return NONE if fn is torch.Tensor.__setitem__ else given
    raise GraphBreak("input_subclass", f"{getattr(fn, '__name__', fn)}, about which no __torch_function__ is asked, or says anything")


def _of_class(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    found = lookup.mro_lookup(tx, cls, "__torch_function__")
    if type(found) is not classmethod:
        raise GraphBreak("input_subclass", f"{cls.__name__}.__torch_function__, which is no class method")
    return calls.call(tx, wrap_pinned(tx, found.__func__), [wrap_pinned(tx, cls), *args], kwargs)


def _of_mode(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    """The innermost mode is left while it answers (torch.overrides._pop_mode_temporarily)."""
    modes = tx.state.function_modes
    mode = modes.pop()
    try:
        return calls.call(tx, attributes.get_attr(tx, mode, "__torch_function__"), args, kwargs)
    finally:
        modes.append(mode)


# -- where it is asked


def _module(fn: Any) -> str:
    return getattr(fn, "__module__", None) or ""


def _is_torchs(fn: Any) -> bool:
    if isinstance(fn, _SLOTS):
        return issubclass(fn.__objclass__, _C.TensorBase)
    if isinstance(fn, types.MethodWrapperType):
        return _attribute(fn) is not None
    if isinstance(fn, (types.FunctionType, types.BuiltinFunctionType, type, torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return id(fn) in _overridable() or _module(fn).partition(".")[0] == "torch" or torchops.kind(fn) != ""
    return False


def _may_be_asked(fn: Any) -> bool:
    """Whether torch may ask a class before it does anything else, so that a call with probes does no harm."""
    return (isinstance(fn, (types.MethodWrapperType, *_SLOTS)) or id(fn) in _overridable() or _asks_first(fn)
            or isinstance(fn, types.BuiltinFunctionType) and torchops.kind(fn) in ("graph", "factory"))


def _asks_first(fn: Any) -> bool:
    """Whether this is a method of Tensor's in Python that begins with the question."""
    return type(fn) is types.FunctionType and fn.__module__ == "torch._tensor" and fn.__code__.co_names[:1] in _QUESTIONS


def _is_traced(fn: Any) -> bool:
    """Whether this is a function in Python in which others are asked about (``torch.nn.functional.sigmoid`` calls ``Tensor.sigmoid``)."""
    return type(fn) is types.FunctionType and id(fn) not in HANDLERS and not _may_be_asked(fn)


def _traced(tx: Any, fn: Any, args: list, kwargs: dict) -> VariableTracker:
    return calls.inline_call(tx, wrap_pinned(tx, fn), fn, args, kwargs)  # type: ignore[arg-type]


_QUESTIONS = (("has_torch_function_unary",), ("has_torch_function",), ("has_torch_function_variadic",))


def overridden(tx: Any, fn: Any, args: list, kwargs: dict) -> VariableTracker | None:
    """The call of a function; None where no class has a say in it, and the call goes on as that of plain tensors."""
    if fn is iter:
        return _iterated(tx, args)
    if not _is_torchs(fn):
        return None
    classes = _live_classes(tx, [*args, *kwargs.values()])
    modes = tx.state.function_modes
    if not classes and not modes or id(fn) in _BLIND:
        return _as_method(tx, fn, args, kwargs)
    if not _may_be_asked(fn):
        if _is_traced(fn):
            return _traced(tx, fn, args, kwargs) if TENSOR.takes(fn, args, kwargs) else None
        raise GraphBreak("input_subclass", f"{getattr(fn, '__name__', fn)} near a __torch_function__")
    if tx.state.overrides_off and not modes:
        return _as_method(tx, fn, args, kwargs)
    return _ask_and_answer(tx, fn, classes, args, kwargs)


def _is_seen(tx: Any, obj: TensorVariable) -> bool:
    """Whether somebody sees what is done to a tensor."""
    return bool(tx.state.function_modes) or not tx.state.overrides_off and subclasses.is_live(obj.cls)


def _iterated(tx: Any, args: list) -> VariableTracker | None:
    """Tensor.__iter__, which is shown to no class, but calls methods that are."""
    obj = realize(args[0], tx.state) if args else NONE
    if not isinstance(obj, TensorVariable) or not _is_seen(tx, obj):
        return None
    dims = realize(TENSOR.call_method(tx, obj, "dim", [], {}), tx.state)
    if not isinstance(dims, ConstantVariable) or type(dims.value) is not int or not dims.value:
        raise GraphBreak("unsupported_iterator", f"a {obj.cls.__name__} of no dimension")
    return get_iter(tx, realize(TENSOR.call_method(tx, obj, "unbind", [constant(0)], {}), tx.state))


def _operator(tx: Any, fn: Any, args: list, kwargs: dict) -> VariableTracker | None:
    """The same for what ``TENSOR.call`` is asked for: operators, and builtins that ask an object."""
    modes = tx.state.function_modes
    if tx.state.overrides_off and not modes:
        return None
    classes = _live_classes(tx, [*args, *kwargs.values()])
    if not classes and not modes:
        return None
    if fn in _READ:
        raise GraphBreak("tensor_item", f"{fn.__name__}() of a tensor")
    if _is_traced(fn):
        return _traced(tx, fn, args, kwargs)
    fn = torch.Tensor.__len__ if fn is len else fn  # len() wants a number
    return _ask_and_answer(tx, fn, classes, args, kwargs)


def _method(tx: Any, obj: TensorVariable, name: str, args: list, kwargs: dict) -> VariableTracker | None:
    """The same for a method that Tensor has."""
    classes = _live_classes(tx, [obj, *args, *kwargs.values()])
    modes = tx.state.function_modes
    if not classes and not modes or name == "as_subclass":
        return None
    if tx.state.overrides_off and not modes:
        special = name in torchops.METHODS or name in torchops.METADATA_CHANGING or name == "type"
        if special and subclasses.is_live(obj.cls) and not wrappers.is_wrapper(obj.cls):
            raise GraphBreak("input_subclass", f"{obj.cls.__name__}.{name}")
        return None
    run = getattr(torch.Tensor, name, None)
    if run is None or not _may_be_asked(run):
        raise GraphBreak("input_subclass", f"{obj.cls.__name__}.{name}")
    return _ask_and_answer(tx, run, classes, [obj, *args], kwargs)


_DATA = (types.GetSetDescriptorType, types.MemberDescriptorType, property)
_UNSEEN = ("__class__", "__dict__", "__weakref__")  # of every object: torch does not see them


def _of_attribute(tx: Any, obj: TensorVariable, name: str) -> VariableTracker | None:
    """The same for an attribute that Tensor has."""
    live = subclasses.is_live(obj.cls)
    if not live and not tx.state.function_modes or name in _UNSEEN or not isinstance(_on_tensor(name), _DATA):
        return None
    if not _is_seen(tx, obj):
        # Guards on what a tensor's attribute gives would ask its class, in each call.
        known = name in torchops.GUARDED_METADATA or name in torchops.VIEWS or obj.source is None and name in torchops.METADATA
        if not known:
            raise GraphBreak("unsupported_attribute", f"{obj.cls.__name__}.{name}")
        return None

    def get(probe: Any) -> Any:
        return getattr(probe, name)

    return _ask_and_answer(tx, get, [obj.cls] if live else [], [obj], {})


def _on_tensor(name: str) -> Any:
    return next((cls.__dict__[name] for cls in torch.Tensor.__mro__ if name in cls.__dict__), MISSING)


def _attribute(fn: Any) -> str | None:
    """The attribute of which ``torch.Tensor.shape.__get__`` and the like are the getter."""
    if fn.__name__ != "__get__" or not isinstance(fn.__self__, _DATA):
        return None
    return next((name for name in subclasses.NAMES if _on_tensor(name) is fn.__self__), None)


def _as_method(tx: Any, fn: Any, args: list, kwargs: dict) -> VariableTracker | None:
    """What torch gives to ``__torch_function__`` as functions: getters, and Tensor's methods in Python. None for any other."""
    obj = realize(args[0], tx.state) if args else NONE
    if not isinstance(obj, TensorVariable):
        return None
    if isinstance(fn, types.MethodWrapperType):
        return TENSOR.get_attr(tx, obj, _attribute(fn))
    if isinstance(fn, types.FunctionType) and _module(fn) == "torch._tensor" and _on_tensor(fn.__name__) is fn:
        return TENSOR.call_method(tx, obj, fn.__name__, args[1:], kwargs)
    return None


TENSOR.overridden = overridden
torchops.OVERRIDES.update(call=_operator, method=_method, attribute=_of_attribute)


# -- Tensor.__torch_function__


_NAMES = ("cls", "func", "types", "args", "kwargs")


@handles(_DEFAULT)
def default(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    """What a class inherits: the function without any ``__torch_function__``, and tensors that it gives become those of the class."""
    given = {**dict(zip(_NAMES, args, strict=False)), **kwargs}
    if len(given) < 3 or len(args) > len(_NAMES) or given.keys() - set(_NAMES):
        raise GraphBreak("raised_exception", "Tensor.__torch_function__ with other arguments")
    cls = _class(tx, given["cls"])
    if not all(lookup.inherits(cls, _class(tx, t)) for t in unpack_iterable(tx, realize(given["types"], tx.state))):
        return constant(NotImplemented)
    func = realize(given["func"], tx.state)
    real = getattr(func, "value", MISSING)
    operands = unpack_iterable(tx, realize(given.get("args", TupleVariable([])), tx.state))
    before = next(iter(reversed(tx.state.graph.graph.nodes)), None)
    with subclasses.switched_off(tx.state):
        result = realize(calls.call(tx, func, operands, _named(tx, given.get("kwargs", NONE))), tx.state)
    if real is not MISSING and _is_nowrap(real):
        return result
    return _convert(tx, result, cls, _new_nodes(tx, before) if real is not MISSING and _is_torchs(real) else frozenset())


def _class(tx: Any, tracker: VariableTracker) -> type:
    cls = getattr(realize(tracker, tx.state), "value", None)
    if not isinstance(cls, type):
        raise GraphBreak("input_subclass", "Tensor.__torch_function__ with something other than classes")
    return cls


def _named(tx: Any, tracker: VariableTracker) -> dict:
    tracker = realize(tracker, tx.state)
    if isinstance(tracker, ConstantVariable) and tracker.value is None:
        return {}
    if not isinstance(tracker, DictVariable):
        raise GraphBreak("input_subclass", "Tensor.__torch_function__ with keyword arguments that are no dict")
    return {key.value: value for key, value in complete(tx, tracker).values()}  # type: ignore[attr-defined]


def _is_nowrap(fn: Any) -> bool:
    return isinstance(fn, types.MethodWrapperType) and fn in torch_overrides.get_default_nowrap_functions()


def _new_nodes(tx: Any, before: Any) -> frozenset:
    """The nodes of the graph behind one."""
    found = []
    for node in reversed(tx.state.graph.graph.nodes):
        if node is before:
            break
        found.append(node)
    return frozenset(found)


def _convert(tx: Any, result: VariableTracker, cls: type, new: frozenset) -> VariableTracker:
    """torch._tensor._convert. ``new``: nodes whose tensors nobody else has."""
    if cls is torch.Tensor:
        return result
    if isinstance(result, TensorVariable):
        return result if issubclass(result.cls, cls) else conversions.as_subclass(tx, result, cls, new)
    if isinstance(result, StructVariable) and isinstance(result.payload, TupleVariable):
        made = StructVariable(MISSING, result.cls)
        made.payload = TupleVariable([_convert(tx, realize(i, tx.state), cls, new) for i in result.payload.items])
        return made
    if type(result) is TupleVariable or type(result) is ListVariable and result.pytype is list:
        items = [_convert(tx, realize(i, tx.state), cls, new) for i in result.items]
        return TupleVariable(items) if type(result) is TupleVariable else ListVariable(items)
    if isinstance(result, SizeVariable) or not issubclass(result.python_type(), (tuple, list)) or isinstance(result, ConstantVariable):
        return result
    raise GraphBreak("input_subclass", f"an operation that gives a {result.python_type().__name__}")


# -- switched off


class SwitchedOffVariable(ObjectVariable):
    """A ``torch._C.DisableTorchFunctionSubclass`` made in the trace, or a ``DisableTorchFunction``, which switches modes off, too."""

    __slots__ = ()


@constructs(_C.DisableTorchFunctionSubclass, _C.DisableTorchFunction)
def make_switched_off(tx: Any, cls: Any, args: list, kwargs: dict) -> VariableTracker:
    if args or kwargs:
        raise GraphBreak("raised_exception", f"{cls.__name__}() with arguments")
    return SwitchedOffVariable(MISSING, cls)


@method(SwitchedOffVariable, "__enter__")
def switch_off(tx: Any, obj: VariableTracker, args: list, kwargs: dict) -> VariableTracker:
    if tx.inst.op != "BEFORE_WITH" or tx.state.graph.body is not None:
        raise GraphBreak("unsupported_context", "__torch_function__ switched off by something other than a with statement")
    if obj.python_type() is _C.DisableTorchFunction:
        if tx.state.function_modes or tx.state.devices or tx.state.graph.watches_devices:
            raise GraphBreak("unsupported_context", "a TorchFunctionMode that is switched off")
        tx.state.modes_off += 1
    _switch(tx.state, 1)
    return NONE


@method(SwitchedOffVariable, "__exit__")
def switch_on(tx: Any, obj: VariableTracker, args: list, kwargs: dict) -> VariableTracker:
    tx.state.modes_off -= obj.python_type() is _C.DisableTorchFunction
    _switch(tx.state, -1)
    return NONE


def _switch(state: Any, by: int) -> None:
    """Blocks look at what is switched off themselves."""
    outside = state.outside
    state.changed(None)
    state.outside = outside
    state.overrides_off += by


@handles(_C._is_torch_function_all_disabled)
def is_all_disabled(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    if tx.state.overrides_before and not tx.state.modes_off:
        raise GraphBreak("unsupported_context", "__torch_function__ switched off outside of the trace: whether modes are is not known")
    return constant(bool(tx.state.modes_off))


@handles(_C._is_torch_function_enabled)
def is_enabled(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    """Guarded in every entry, as it is at frame entry."""
    return constant(not tx.state.overrides_off)


# -- modes

_AUTOCAST = frozenset((torch.autocast.__enter__.__code__, torch.autocast.__exit__.__code__))


@handles(_C._is_torch_function_mode_enabled)
def has_modes(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    """Autocast looks for a mode of torch.export's, and does nothing with others."""
    modes = tx.state.function_modes or tx.state.devices
    return constant(bool(modes) and not tx.state.modes_off and tx.code not in _AUTOCAST)


@handles(_C._len_torch_function_stack)
def count_modes(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    return constant(len(tx.state.function_modes) + len(tx.state.devices))


@handles(_C._get_function_stack_at)
def mode_at(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    at, modes = specialised(args[0]), tx.state.function_modes
    if tx.state.devices or not isinstance(at, ConstantVariable) or at.value not in range(len(modes)):
        raise GraphBreak("unsupported_context", "which modes are in force, under a default device")
    return modes[at.value]


@handles(_C._push_on_torch_function_stack)
def push_mode(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    """TorchFunctionMode.__enter__. The mode is entered in the trace alone: what it makes of the program's calls is in the graph."""
    mode, = args
    state = tx.state
    if not isinstance(mode, ObjectVariable) or not issubclass(mode.cls, torch_overrides.TorchFunctionMode) or (
            issubclass(mode.cls, DeviceContext)):
        raise GraphBreak("unsupported_context", f"a {mode.python_type().__name__} as a mode for functions")
    if state.graph.body is not None or state.devices or state.graph.watches_devices or state.modes_off:
        raise GraphBreak("unsupported_context", "a TorchFunctionMode in a function that torch calls, or under a default device")
    subclasses.begin(state)
    state.changed(None)
    state.function_modes.append(mode)
    return NONE


@handles(_C._pop_torch_function_stack)
def pop_mode(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    if not tx.state.function_modes:
        raise GraphBreak("unsupported_context", "a TorchFunctionMode left that was entered outside of the trace")
    tx.state.changed(None)
    return tx.state.function_modes.pop()
