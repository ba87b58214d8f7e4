"""Wrapper subclasses: tensors that hold other tensors and say in Python what each operation does with them (``__torch_dispatch__``).

They are what ``torch.utils._python_dispatch.is_traceable_wrapper_subclass`` tells: ``__tensor_flatten__`` names the tensors inside and
gives a context, from which, and with fake tensors in their place, ``__tensor_unflatten__`` makes the fake twin. Operations are nodes of
the graph like those of other tensors. Here they run on the twins, so that the class itself tells what they give; in the graph they run
on the program's own tensors, or AOTAutograd takes them apart.
"""

from __future__ import annotations

import dataclasses
import enum
import types
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from ..errors import GraphBreak
from ..model.guards import Condition
from ..model.source import Source, pinned
from ..model.value import MISSING, LazyVariable, ObjectVariable, TensorVariable, VariableTracker, constant
from ..semantics import lookup
from ..semantics.wrapping import CONSTANT_TYPES
from .fake import FakeTensor, to_fake, with_history

PARTS = ("__tensor_flatten__", "__tensor_unflatten__")  # what makes a class one of wrappers
_FUNCTION: Any = torch.Tensor.__torch_function__
_ATOMS = (*CONSTANT_TYPES, torch.dtype, torch.device, torch.layout, torch.memory_format)


def is_wrapper(cls: type) -> bool:
    """Whether tensors of a class are made of others."""
    return all(hasattr(cls, name) for name in PARTS) and not issubclass(cls, FakeTensor)


def keeps_functions(cls: Any) -> bool:
    """Whether functions of torch do with such tensors what they do with others: ``__torch_function__`` is Tensor's, or switched off."""
    found = cls.__torch_function__
    return found is torch._C._disabled_torch_function_impl or getattr(found, "__func__", None) is _FUNCTION.__func__


class Unknown(Exception):
    pass


def kept(value: Any) -> Any:
    """A copy that the program cannot change. Unknown where nothing is known of a part's equality."""
    cls = type(value)
    if cls in _ATOMS or issubclass(cls, type) or is_known(cls):
        return value
    if cls is dict:
        return {kept(key): kept(item) for key, item in value.items()}
    if cls in (list, tuple, torch.Size):
        return cls(map(kept, value))
    if cls in (set, frozenset):
        return frozenset(map(kept, value))
    if issubclass(cls, tuple) and hasattr(cls, "_make"):
        return cls._make(map(kept, value))  # type: ignore[attr-defined]
    if dataclasses.is_dataclass(cls) and hasattr(value, "__dict__"):
        return cls, {name: kept(item) for name, item in vars(value).items() if name not in _MEMOS}
    raise Unknown(cls.__name__)


_MEMOS = frozenset(("_hash",))  # of DTensorSpec


def _is_of_distributed(cls: type) -> bool:
    """Meshes and placements of torch.distributed: nobody changes one, and they have an equality of their own."""
    return cls.__module__.startswith(("torch.distributed.", "torch._C._distributed")) and cls.__name__ in _COMPARED


def is_known(cls: type) -> bool:
    """Whether objects of a class are the same for good."""
    return issubclass(cls, enum.Enum) or _is_of_distributed(cls)


_COMPARED = ("DeviceMesh", "Replicate", "Shard", "Partial", "_StridedShard", "_MaskPartial")


def is_same(a: Any, before: Any) -> bool:
    """Whether ``a`` is still as ``kept`` has found it. It tells 1 from True and 0.0 from -0.0."""
    cls = type(a)
    if dataclasses.is_dataclass(cls) and not _is_of_distributed(cls) and type(before) is tuple:
        return cls is before[0] and is_same({name: item for name, item in vars(a).items() if name not in _MEMOS}, before[1])
    if cls in (set, frozenset):
        return a == before
    if cls is not type(before):
        return False
    if cls is dict:
        return a.keys() == before.keys() and all(is_same(item, before[key]) for key, item in a.items())
    if issubclass(cls, (list, tuple)):
        return len(a) == len(before) and all(map(is_same, a, before))
    return repr(a) == repr(before) if cls in (float, complex) else a is before or bool(a == before)


class _Flattens(Condition):
    """Guard: a wrapper names the same tensors inside, in the same context."""

    __name__ = "flattens_alike"

    def __init__(self, names: list[str], context: Any) -> None:
        self.names, self.context = list(names), kept(context)
        self.key = id(self)

    def __call__(self, value: Any) -> bool:
        with torch._C.DisableTorchFunctionSubclass():
            names, context = value.__tensor_flatten__()
        return list(names) == self.names and is_same(context, self.context)


def flatten(value: Any) -> tuple[dict[str, torch.Tensor], Any]:
    """The tensors inside of one, by name, and the context."""
    with torch._C.DisableTorchFunctionSubclass():
        names, context = value.__tensor_flatten__()
        return {name: getattr(value, name) for name in names}, context


def plain_parts(value: torch.Tensor) -> Iterator[torch.Tensor]:
    """The tensors inside that hold no others; of any other tensor, itself."""
    if not is_wrapper(type(value)):
        yield value
        return
    for part in flatten(value)[0].values():
        if isinstance(part, torch.Tensor):
            yield from plain_parts(part)


def expect(state: Any) -> None:
    """From now on there may be wrappers among the trace's tensors."""
    mode = state.graph.mode
    if mode.wrappers is None:
        mode.wrappers = {}
    mode.shielded |= state.overriding


@dataclasses.dataclass
class Extents:
    """Those of a wrapper, and of the tensors inside; None: they are constants."""

    whole: Any
    inside: dict[str, Any]

    def are_symbols(self) -> bool:
        """Whether any of them is none."""
        return self.whole is not None or any(e.are_symbols() if isinstance(e, Extents) else e is not None for e in self.inside.values())


def _place(value: torch.Tensor, source: Source, name: str) -> Source:
    """Where a tensor is that a wrapper holds: where ``instance_attribute`` finds it, or where a property of its class does."""
    return source.namespace(value).child("KEY", name) if name in value.__dict__ else source.child("ATTR", name)


def prepare(state: Any, value: Any, source: Source, whole: Any, guard: Any) -> Extents | None:
    """Guard what a wrapper from outside is made of, and make its twin, which ``to_fake`` gives from then on.

    ``guard``: (state, tensor, source) -> its extents, guarded.
    """
    if state.graph.body is not None:
        raise GraphBreak("input_subclass", f"a {type(value).__name__} in a function that torch calls")
    if value._is_view() and (value.requires_grad or value._base.requires_grad):
        raise GraphBreak("input_subclass", f"a {type(value).__name__} that is a view with a gradient")
    extents = Extents(whole, _guard(state, value, source, guard))
    expose(state, value, source, extents)
    return extents if extents.are_symbols() else None


def expose(state: Any, value: torch.Tensor, source: Source, extents: Extents | None = None) -> None:
    """Make the twin of a wrapper whose parts are guarded, and tell where they are."""
    expect(state)
    fake = twin(state.graph.mode, value, extents)
    for name, held in (value.__dict__ | flatten(value)[0]).items():  # what operations may hand on
        of_twin = _held(fake, name)
        is_part = isinstance(held, torch.Tensor) and isinstance(of_twin, torch.Tensor)
        if is_part or type(held) not in CONSTANT_TYPES and of_twin is held:
            state.graph.mode.wrappers[id(of_twin)] = LazyVariable(held, _place(value, source, name))


def _guard(state: Any, value: Any, source: Source, guard: Any) -> dict[str, Any]:
    """Guard the tensors inside; gives their extents."""
    found = {}
    try:
        parts = flatten(value)[0]
    except Exception as error:
        raise GraphBreak("input_subclass", f"a {type(value).__name__} that does not tell what it is made of: {error!r}") from None
    for name, part in parts.items():
        inner = _place(value, source, name)
        if _is_of_distributed(type(part)):  # DTensor's mesh
            state.guards.pin(inner, part)
            continue
        wraps = isinstance(part, torch.Tensor) and is_wrapper(type(part))
        if not wraps and not (type(part) in _PLAIN and part.layout is torch.strided and not part.is_quantized):
            raise GraphBreak("input_subclass", f"a {type(value).__name__} that holds a {type(part).__name__}")
        if state.graph.policy is not None:
            state.graph.policy.mark_inside(part, inner, value, source)
        found[name] = guard(state, part, inner)
        if wraps:
            guard_context(state, part, inner)
            found[name] = Extents(found[name], _guard(state, part, inner, guard))
    return found


def guard_context(state: Any, value: Any, source: Source) -> None:
    """Guard what a wrapper from outside tells of itself, by asking it again."""
    parts, context = flatten(value)
    try:
        state.guards.add(source, "PY", _Flattens(list(parts), context))
    except Unknown as unknown:
        raise GraphBreak("input_subclass", f"a {type(value).__name__} with a {unknown} in its context") from None


_PLAIN = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)


def twin(mode: Any, value: Any, extents: Extents | None = None) -> Any:
    """The fake twin of a wrapper, of twins of what it holds; ``to_fake`` gives the same from then on."""
    known = mode.fake_tensor_converter._get_memo(value)
    if known is not None:
        return known
    cls = type(value)
    parts, context = flatten(value)
    whole, symbols = (None, {}) if extents is None else (extents.whole, extents.inside)
    inside = {name: _inside(mode, part, symbols.get(name)) for name, part in parts.items()}
    sizes = (value.shape, value.stride()) if whole is None else (torch.Size(whole.sizes), whole.strides)
    with mode, torch._C.DisableTorchFunctionSubclass(), torch.inference_mode(value.is_inference()):
        try:
            fake: Any = cls.__tensor_unflatten__(inside, context, *sizes)  # type: ignore[attr-defined]
            if fake.requires_grad is not value.requires_grad:
                fake.requires_grad_(value.requires_grad)
            if value.requires_grad and not value.is_leaf:
                fake = with_history(fake)
        except Exception as error:
            raise GraphBreak("input_subclass", f"a {cls.__name__} of which no fake one can be made: {error!r}") from None
        if type(fake) is not cls or _facts(fake) != _facts(value) or not _are_sizes(fake, *sizes):
            raise GraphBreak("input_subclass", f"a {cls.__name__} that is not what it is made of")
    if getattr(value, "_is_param", False):
        fake._is_param = True
    mode.fake_tensor_converter.set_tensor_memo(value, fake)
    return fake


def _inside(mode: Any, part: Any, extents: Any) -> Any:
    if not isinstance(part, torch.Tensor):
        return part
    return twin(mode, part, extents) if is_wrapper(type(part)) else to_fake(mode, part, extents)


def _are_sizes(tensor: torch.Tensor, sizes: Any, strides: Any) -> bool:
    """Which guards symbols."""
    return all(a == b for a, b in zip((*tensor.shape, *tensor.stride()), (*sizes, *strides), strict=True))


def _facts(tensor: torch.Tensor) -> tuple:
    return tensor.dim(), tensor.dtype, tensor.device, tensor.layout, tensor.requires_grad


def is_made_of_fakes(mode: Any, value: Any) -> bool:
    """Whether what an operation gave is a wrapper of tensors of the trace."""
    if type(value) is FakeTensor:
        return value.fake_mode is mode
    if _is_of_distributed(type(value)):
        return True
    if not is_wrapper(type(value)):
        return False
    try:
        return all(is_made_of_fakes(mode, part) for part in flatten(value)[0].values())
    except Exception:  # a class that takes an operation's result for one of its own, as Tensor.__torch_function__ does
        return False


def held(tensors: Iterable[TensorVariable]) -> list[tuple[TensorVariable, dict]]:
    """What the wrappers among the operands of an operation hold."""
    return [(t, dict(t.fake.__dict__)) for t in tensors if is_wrapper(t.cls)]


def check_held(before: list[tuple[TensorVariable, dict]], name: str) -> None:
    """Break where an operation has put something else into a wrapper: the program's own has it only behind the graph."""
    for tensor, old in before:
        now = tensor.fake.__dict__
        if any(now.get(key) is not value for key, value in old.items()):
            raise GraphBreak("unsupported_mutation", f"{name}, for which a {tensor.cls.__name__} is made of something else")


def settle_context(value: Any) -> None:
    """Sizes in the context that an operation has given a wrapper are constants: compilers take what is there for the same in each call."""
    _settle(flatten(value)[1])


def _settle(context: Any) -> None:
    if isinstance(context, torch.SymInt):
        int(context)
    elif isinstance(context, (list, tuple)):
        for item in context:
            _settle(item)
    elif isinstance(context, dict):
        _settle(list(context.values()))
    elif dataclasses.is_dataclass(context) and not isinstance(context, type):
        _settle(list(vars(context).values()) if hasattr(context, "__dict__") else [])


READ: list[Any] = []  # (tx, wrapper, name) -> what a node that reads a tensor inside gives; set by running.py, which builds on this file


def attribute(tx: Any, obj: TensorVariable, name: str) -> VariableTracker | None:
    """An attribute of a wrapper that the trace has made: a tensor inside, or a constant; None where it has none."""
    value = _held(obj.fake, name)
    if value is MISSING:
        return None
    known = tx.state.graph.mode.wrappers
    if isinstance(value, torch.Tensor) and id(value) not in known:
        known[id(value)] = READ[0](tx, obj, name)
    if id(value) in known:
        return known[id(value)]
    if type(value) in CONSTANT_TYPES or isinstance(value, (torch.dtype, torch.device, torch.Size)):
        return constant(value)
    if type(value).__module__.startswith("torch.distributed."):  # a description of the twin, which describes the tensor, too
        return known.setdefault(id(value), ObjectVariable(value, type(value), pinned(value)))
    raise GraphBreak("unsupported_attribute", f"{obj.cls.__name__}.{name}, a {type(value).__name__}")


def is_slot(cls: type, on_class: Any) -> bool:
    """Whether an attribute of a wrapper lies in a slot of its class."""
    return type(on_class) is types.MemberDescriptorType and is_wrapper(cls)


def _held(tensor: Any, name: str) -> Any:
    if name in getattr(tensor, "__dict__", ()):
        return tensor.__dict__[name]
    slot = lookup.peek(type(tensor), name)
    return slot.__get__(tensor) if type(slot) is types.MemberDescriptorType and slot.__objclass__ in type(tensor).__mro__ else MISSING


def hides(obj: TensorVariable, name: str) -> bool:
    """Whether a wrapper has an attribute that may have the name of one of Tensor's methods."""
    return is_wrapper(obj.cls) and name in getattr(obj.fake, "__dict__", ())


def is_own(cls: type, on_class: Any, name: str) -> bool:
    """Whether a wrapper's class has put something of its own in the place of one of Tensor's methods."""
    return on_class is not lookup.peek(torch.Tensor, name) and is_wrapper(cls)


