"""Structural snapshots of any Python state, with aliasing, so that two runs of one program can be compared.

`Snapshot` walks objects in a fixed order and numbers every mutable object, tensor and storage at its first visit: two
snapshots are equal exactly where the values, the exact types and the identity structure are equal.
"""

import collections
import copy
import enum
import itertools
import random
import types
from typing import Any

import numpy as np
import torch

_PLAIN = (bool, int, str, bytes, type(None), type(Ellipsis), type(NotImplemented))
_REPR = (torch.dtype, torch.device, torch.layout, torch.memory_format, range, types.UnionType, *np.sctypeDict.values())
_ITERATORS = tuple(type(iter(v)) for v in ([], (), {}, set(), "", range(0), {}.items(), {}.values(), b"", reversed([])))
_ITERATORS += (zip, map, filter, enumerate, itertools.count, itertools.chain, itertools.cycle, itertools.repeat)
_SKIPPED_ATTRIBUTES = {"_compiled_call_impl", "__weakref__", "__notes__"}


def tensor_values(t: torch.Tensor) -> str:
    """The values of a tensor as text that tells -0.0 from 0.0 and knows nan."""
    with torch.no_grad():
        if t.device.type == "meta":
            return "meta"
        dense = t.detach() if t.layout == torch.strided else torch.Tensor.to_dense(t.detach())
        plain = dense.as_subclass(torch.Tensor)
        if plain.numel() > 64:
            flat = plain.resolve_conj().reshape(-1)
            flat = torch.view_as_real(flat).reshape(-1) if flat.is_complex() else flat
            return f"{flat[:8].tolist()!r}... bytes {hash(flat.contiguous().view(torch.uint8).cpu().numpy().tobytes())}"
        return repr(plain.tolist())


def has_identity(value: Any) -> bool:
    """Whether a program could rely on which object it is: not so for constants and immutable containers of them."""
    if type(value) in (tuple, frozenset, torch.Size):
        return any(has_identity(v) for v in value)
    if type(value) is slice:
        return any(has_identity(v) for v in (value.start, value.stop, value.step))
    return not isinstance(value, (*_PLAIN, *_REPR, float, complex, type, enum.Enum))


class Snapshot:
    """Turns objects into nested tuples; one instance for all that is to be compared of one run."""

    def __init__(self) -> None:
        self.seen: dict[int, int] = {}
        self.storages: dict[int, int] = {}
        self.keep: list[Any] = []

    def __call__(self, value: Any) -> Any:
        return self.walk(value)

    def number(self, value: Any) -> tuple[int, bool]:
        """The number of an object and whether this is the first visit."""
        known = self.seen.get(id(value))
        if known is not None:
            return known, False
        self.keep.append(value)
        self.seen[id(value)] = len(self.seen)
        return self.seen[id(value)], True

    def walk(self, value: Any) -> Any:
        kind = type(value)
        if kind in _PLAIN:
            return (kind.__name__, value)
        if kind is float:
            return ("float", repr(value))
        if kind is complex:
            return ("complex", repr(value.real), repr(value.imag))
        if kind in _REPR:
            return (kind.__name__, repr(value))
        if isinstance(value, enum.Enum):
            return ("enum", str(value))
        if isinstance(value, type):
            return ("type", value.__qualname__)
        if isinstance(value, types.ModuleType):
            return ("module", value.__name__)
        if kind in (tuple, torch.Size) and not has_identity(value):
            return (kind.__name__, tuple(self.walk(v) for v in value))
        if kind is slice and not has_identity(value):
            return ("slice", repr(value))
        if kind is frozenset and not has_identity(value):
            return ("frozenset", tuple(sorted((self.walk(v) for v in value), key=repr)))
        if kind is types.BuiltinFunctionType and not hasattr(value.__self__, "__dict__"):
            return ("builtin", value.__qualname__)
        number, first = self.number(value)
        if not first:
            return ("same as", number)
        return (kind.__qualname__, number, *self.content(value))

    def content(self, value: Any) -> tuple:
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        if isinstance(value, BaseException):
            return (self.exception(value),)
        if isinstance(value, dict):
            items = tuple((self.walk(k), self.walk(v)) for k, v in dict.items(value))
            return (items, self.walk(getattr(value, "default_factory", None)), self.attributes(value))
        if isinstance(value, (list, tuple)):
            return (tuple(self.walk(v) for v in list(value)), self.attributes(value))
        if isinstance(value, collections.deque):
            return (tuple(self.walk(v) for v in value), value.maxlen)
        if isinstance(value, (set, frozenset)):
            plain = all(isinstance(v, (*_PLAIN, float)) for v in value)
            members = sorted((self.walk(v) for v in value), key=repr) if plain else [len(value)]
            return (tuple(members), self.attributes(value))
        if isinstance(value, types.FunctionType):
            cells = tuple(self.cell(c) for c in value.__closure__ or ())
            return (value.__qualname__, self.walk(value.__defaults__), self.walk(value.__kwdefaults__), cells)
        if isinstance(value, types.MethodType):
            return (self.walk(value.__func__), self.walk(value.__self__))
        if isinstance(value, slice):
            return (self.walk(value.start), self.walk(value.stop), self.walk(value.step))
        if isinstance(value, (bytearray,)):
            return (bytes(value),)
        if type(value) in _ITERATORS:
            return self.iterator(value)
        if isinstance(value, types.GeneratorType):
            return ("generator", value.__qualname__)
        if isinstance(value, (int, float, str)):
            base = next(b for b in (int, float, str) if isinstance(value, b))
            return ("subclass", repr(base.__repr__(value)), self.attributes(value))
        return (self.attributes(value),)

    def cell(self, cell: types.CellType) -> Any:
        try:
            return self.walk(cell.cell_contents)
        except ValueError:
            return "empty"

    def iterator(self, value: Any) -> tuple:
        """What is left of an iterator, without advancing it (an endless one by its repr)."""
        if isinstance(value, (itertools.count, itertools.repeat, itertools.cycle)):
            return (type(value).__name__,)
        try:
            return (tuple(self.walk(v) for v in itertools.islice(copy.copy(value), 100)),)
        except TypeError:
            return ("unreadable",)

    def attributes(self, value: Any) -> Any:
        found: dict[str, Any] = {}
        for cls in reversed(type(value).__mro__):
            slots = cls.__dict__.get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if name not in _SKIPPED_ATTRIBUTES and name != "__dict__":
                    private = name.startswith("__") and not name.endswith("__")
                    real = f"_{cls.__name__.lstrip('_')}{name}" if private else name
                    try:
                        found[name] = object.__getattribute__(value, real)
                    except AttributeError:
                        found[name] = "<unset>"
        try:
            found.update(object.__getattribute__(value, "__dict__"))
        except AttributeError:
            pass
        if isinstance(value, torch.nn.Module):  # the keys of hooks come from a counter of the process
            found = {k: list(v.values()) if "_hooks" in k and isinstance(v, dict) else v for k, v in found.items()}
        return tuple((k, self.walk(v)) for k, v in found.items() if k not in _SKIPPED_ATTRIBUTES)

    def tensor(self, t: torch.Tensor) -> tuple:
        with torch._C.DisableTorchFunctionSubclass():  # looking is no part of the program
            return self.facts(t)

    def facts(self, t: torch.Tensor) -> tuple:
        strided = t.layout == torch.strided
        storage = "none"
        if strided and t.device.type != "meta":
            key = t.untyped_storage()._cdata
            storage = self.storages.setdefault(key, len(self.storages))
        place = (tuple(t.stride()), t.storage_offset(), storage) if strided else (str(t.layout),)
        grad = self.walk(t.grad) if t.is_leaf and t.requires_grad else None
        extra = tuple((k, self.walk(v)) for k, v in getattr(t, "__dict__", {}).items() if not k.startswith("_dynamo"))  # AOTAutograd's
        facts = (str(t.dtype), tuple(t.shape), place, str(t.device), t.requires_grad, t.is_leaf)
        return (facts, tensor_values(t), grad, extra)

    def exception(self, error: BaseException) -> tuple:
        return (
            type(error).__qualname__,
            tuple(self.walk(a) for a in error.args),
            tuple(n for n in getattr(error, "__notes__", ()) if not str(n).startswith("Raised in a captured graph")),
            ("cause", self.walk(error.__cause__)),
            ("context", self.walk(error.__context__)),
            error.__suppress_context__,
            self.attributes(error),
        )


def global_state() -> tuple:
    """Process-wide state of torch, and of Python's generator, that no program may leave changed unseen."""
    return (
        ("grad", torch.is_grad_enabled()),
        ("inference", torch.is_inference_mode_enabled()),
        ("default dtype", str(torch.get_default_dtype())),
        ("deterministic", torch.are_deterministic_algorithms_enabled()),
        ("autocast", (torch.is_autocast_enabled("cpu"), torch.is_autocast_enabled("cuda"))),
        ("random", hash(torch.get_rng_state().numpy().tobytes())),
        ("random of Python's", hash(random.getstate())),
        *((("random there", hash(torch.cuda.get_rng_state().numpy().tobytes())),) if torch.cuda.is_initialized() else ()),
    )


def first_difference(expected: Any, got: Any, path: str = "") -> str | None:
    """Where two snapshots differ first, as text; None where they are equal."""
    if expected == got:
        return None
    if isinstance(expected, tuple) and isinstance(got, tuple):
        for index, (a, b) in enumerate(zip(expected, got, strict=False)):
            if a != b and (len(expected) == len(got) or isinstance(a, tuple)):
                return first_difference(a, b, f"{path}/{index}")
        shorter = min(len(expected), len(got))
        if shorter and expected[:shorter] == got[:shorter]:
            return f"at {path}/{shorter}:\n  eager    {str(expected[shorter:])[:600]}\n  captured {str(got[shorter:])[:600]}"
    return f"at {path or '/'}:\n  eager    {str(expected)[:600]}\n  captured {str(got)[:600]}"
