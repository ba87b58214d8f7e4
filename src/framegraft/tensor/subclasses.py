"""Subclasses of torch.Tensor that can be captured: they add attributes and methods, but replace none of Tensor's own.

Most kinds of parameters switch ``__torch_function__`` off. Their operations are those of plain tensors, and backends may treat them
as such. The others are called live here: their ``__torch_function__``, which may be Tensor's, is traced (overrides.py), and graphs
and backends see plain tensors in their place.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

from .. import _native
from ..errors import GraphBreak
from ..interp.state import realize
from ..model.source import pinned
from ..model.value import MISSING, LazyVariable, ListVariable, ObjectVariable, TensorVariable, TupleVariable, VariableTracker
from ..semantics import instances, lookup
from . import wrappers

_C: Any = torch._C
PLAIN = frozenset((torch.Tensor, torch.nn.Parameter, torch.nn.Buffer))
NAMES = frozenset(dir(torch.Tensor)) | {"__getattr__", "__set_name__", "__get__", "__set__", "__delete__"}
# What a class may define for itself: it is made outside of the trace, or the tracer breaks where the method is called.
_OWN = frozenset(("__new__", "__init__", "__module__", "__doc__", "__dict__", "__weakref__", "__torch_function__", "__repr__",
                  "__annotations__", "__orig_bases__", "__parameters__", "__init_subclass__", "__class_getitem__",
                  "__static_attributes__", "__firstlineno__"))  # of CPython 3.13, which each class has
_GUARDED = tuple(sorted(NAMES - _OWN | {"__torch_function__"}))


def is_live(cls: type) -> bool:
    """Whether torch asks ``cls.__torch_function__`` (C++: check_has_torch_function), which may do other than Tensor's does."""
    if cls in PLAIN or cls.__torch_function__ is _C._disabled_torch_function_impl:  # type: ignore[attr-defined]
        return False
    return not (wrappers.is_wrapper(cls) and wrappers.keeps_functions(cls))


def is_captured(state: Any, cls: type) -> bool:
    """Whether tensors of this class can be captured; guarded."""
    if cls in PLAIN:
        return True
    known = state.graph.classes
    if cls not in known:
        known[cls] = _is_captured(state, cls)
    return known[cls]


def _is_captured(state: Any, cls: type) -> bool:
    if type(cls) not in _METACLASSES:
        return False
    wraps = wrappers.is_wrapper(cls)
    for base in cls.__mro__:
        if base in PLAIN:
            break
        if any(not (wraps and _may_wrapper_define(base, name)) for name in (base.__dict__.keys() & NAMES) - _OWN):
            return False
    state.guards.add(pinned(cls), "MRO", cls.__mro__)
    for name in (*wrappers.PARTS, *_GUARDED) if wraps else _GUARDED:
        found = lookup.peek(cls, name)
        state.guards.class_lookup(cls, name, _native.MISSING if found is MISSING else found)
    return True


def _may_wrapper_define(base: type, name: str) -> bool:
    """What no operator and no function of torch asks for, and no data descriptor, as those of a tensor's metadata are."""
    return name in ("__torch_dispatch__", "__setstate__") or not name.startswith("__") and not hasattr(type(base.__dict__[name]), "__set__")


_METACLASSES = (type(torch.Tensor), type(torch.nn.Parameter), type(torch.nn.Buffer))


def instance_attribute(tx: Any, obj: TensorVariable, name: str) -> VariableTracker | None:
    """What the program has set on this very tensor; None for nothing, which is guarded, too."""
    if name in obj.attrs:
        tx.state.outside += 1  # for blocks: nothing tells one tensor of the trace from another by its attributes
        return obj.attrs[name]
    if obj.value is None or obj.source is None:
        return None if tx.state.graph.mode.wrappers is None else wrappers.attribute(tx, obj, name)
    source = obj.source.namespace(obj.value).child("KEY", name)
    if name in obj.value.__dict__:
        tx.state.guards.present(source)
        return LazyVariable(obj.value.__dict__[name], source)
    tx.state.guards.add(source, "ABSENT")
    return None


def own_attribute(tx: Any, obj: TensorVariable, name: str, on_class: Any) -> VariableTracker | None:
    """What a class of the program's own defines under a name that Tensor does not have; None for other names."""
    if obj.cls in PLAIN or name in NAMES and not (wrappers.is_own(obj.cls, on_class, name) or wrappers.hides(obj, name)):
        return None
    if wrappers.is_slot(obj.cls, on_class):
        if obj.value is not None and obj.source is not None:
            return LazyVariable(getattr(obj.value, name), obj.source.child("ATTR", name))
        return wrappers.attribute(tx, obj, name)
    found = None if lookup.is_data(tx, type(on_class)) else instance_attribute(tx, obj, name)
    return found or instances.bind(tx, on_class, obj, obj.cls, name)


def may_be_set(tx: Any, cls: type, name: str) -> bool:
    """Whether an attribute of that name goes into a tensor's own dict (CPython: _PyObject_GenericSetAttrWithDict)."""
    on_class = lookup.mro_lookup(tx, cls, name)
    if on_class is MISSING:
        return True
    lookup.guard_kind(tx, cls, name, on_class)
    return name not in NAMES and not lookup.is_data(tx, type(on_class))


# -- live ones

DETACHED = "detached"


def is_asked(tracker: VariableTracker) -> bool:
    """Whether torch asks an object that is no tensor (C++: check_has_torch_function)."""
    cls = tracker.cls if type(tracker) is ObjectVariable and tracker.payload is None else None
    return cls is not None and not issubclass(cls, type) and any("__torch_function__" in base.__dict__ for base in cls.__mro__)


def asks_objects(state: Any, trackers: Iterable[VariableTracker]) -> bool:
    """Whether there is such an object among the arguments of a function of torch, or in lists and tuples of them."""
    return any(is_asked(realize(t, state)) or isinstance(t, (ListVariable, TupleVariable)) and asks_objects(state, t.items)
               for t in trackers)


def begin(state: Any) -> None:
    """Called before anything is asked of a live tensor: from now on the tracer's own questions are plain ones."""
    if state.graph.body is not None:
        raise GraphBreak("input_subclass", "a tensor with a __torch_function__ in a function that torch calls")
    if not state.overriding:
        state.overriding = True
        state.shield = _C.DisableTorchFunctionSubclass()
        state.shield.__enter__()


def end(state: Any) -> None:
    """Let torch ask ``__torch_function__`` again."""
    if getattr(state, "shield", None) is not None:
        state.shield.__exit__(None, None, None)
        state.shield = None


@contextlib.contextmanager
def switched_off(state: Any) -> Iterator[None]:
    """The trace asks no class."""
    state.overrides_off += 1
    try:
        yield
    finally:
        state.overrides_off -= 1


def finish(state: Any) -> None:
    """Called when the trace is complete, and before backends run."""
    if state.overriding:
        for source, tensor in state.graph.changed_with_gradient():
            if is_live(type(tensor)):  # what autograd makes of that, guards would have to ask of the tensor
                raise GraphBreak("unsupported_mutation", f"{source.name}, a {type(tensor).__name__} that requires a gradient")
    end(state)


def _is_hidden(cls: type) -> bool:
    """Whether graphs get plain tensors in the place of those of a class; compilers take parameters of any class as they are."""
    if wrappers.is_wrapper(cls):
        return False
    return is_live(cls) or cls not in PLAIN and not issubclass(cls, (torch.nn.Parameter, torch.nn.Buffer))


def as_plain(value: Any) -> Any:
    """What graphs and backends get for one of their inputs: of a hidden tensor, the plain one with the same memory and history."""
    cls = type(value)
    if not issubclass(cls, torch.Tensor) or not _is_hidden(cls):
        return value
    return to_subclass(value, torch.Tensor, True)


def taking_plain(compiled: Callable[..., Any], inputs: Sequence[Any], shielded: bool) -> Callable[..., Any]:
    """The compiled graph, for a caller that has the program's tensors. ``shielded``: it asks no ``__torch_function__``."""
    if shielded:
        compiled = _asking_nobody(compiled)
    places = [i for i, tracker in enumerate(inputs) if isinstance(tracker, TensorVariable) and _is_hidden(tracker.cls)]
    if not places:
        return compiled

    def call(*given: Any) -> Any:
        values = list(given)
        for place in places:
            values[place] = to_subclass(values[place], torch.Tensor, True)
        return compiled(*values)

    return call


def shield(wanted: bool) -> Any:
    """A context in which torch asks no ``__torch_function__``, or none."""
    return _C.DisableTorchFunctionSubclass() if wanted else contextlib.nullcontext()


def _asking_nobody(compiled: Callable[..., Any]) -> Callable[..., Any]:
    def call(*given: Any) -> Any:
        with _C.DisableTorchFunctionSubclass():
            return compiled(*given)

    return call


def to_subclass(tensor: torch.Tensor, cls: type, grad: bool | str) -> torch.Tensor:
    """``tensor.as_subclass(cls)``, which no code of a class sees, with grad mode on or off. Transformed code calls it, too.

    ``grad``: DETACHED for ``Tensor._make_subclass``.
    """
    before = torch.is_grad_enabled()
    with _C.DisableTorchFunctionSubclass():
        if isinstance(grad, str):
            return torch.Tensor._make_subclass(cls, tensor)  # type: ignore[arg-type]
        torch._C._set_grad_enabled(grad)
        try:
            return torch.Tensor.as_subclass(tensor, cls)  # type: ignore[arg-type]
        finally:
            torch._C._set_grad_enabled(before)
