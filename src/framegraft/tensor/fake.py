"""Fake tensors: shape propagation without running anything.

``CaptureMode`` is torch's FakeTensorMode built without its constructor, because that constructor imports all of
``torch._dynamo`` (1.3 s) to read two settings.
"""

from __future__ import annotations

import builtins
import contextlib
import logging
import sys
import types
from collections.abc import Callable
from typing import Any

import torch
import torch._functorch.config as functorch_config
from torch._subclasses import fake_tensor as ft
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorConverter, FakeTensorMode
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode

from . import kernels, shapes
from .twin import META, twin


class _LazyTorch:
    """torch, but reading a setting of torch._dynamo does not import it: while it is not loaded, the defaults hold."""

    def __getattr__(self, name: str) -> Any:
        if name == "_dynamo" and "torch._dynamo" not in sys.modules:
            return _UNLOADED
        return getattr(torch, name)


class _FakeTensorGlobals(dict):
    """The globals of torch's fake_tensor.py, with ``_LazyTorch`` for torch."""

    def __missing__(self, name: str) -> Any:
        return getattr(ft, name) if hasattr(ft, name) else getattr(builtins, name)


_UNLOADED = types.SimpleNamespace(config=types.SimpleNamespace(_custom_ops_profile=None))
_QUIET = logging.Logger("framegraft.fake", logging.CRITICAL + 1)  # eager mode tells the program of errors, if there are any
_GLOBALS = _FakeTensorGlobals(torch=_LazyTorch(), log=_QUIET, __builtins__=builtins, __name__=ft.__name__)


class CaptureConverter(FakeTensorConverter):
    """Torch's, but for tensors that an operation of the trace makes of Python numbers (``torch.tensor(3.0)``).

    It knows tensors by where they are, which takes a twentieth of the time of torch's counters.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._fakes: dict[int, Any] = {}  # id of a tensor -> its twin
        self._kept: list[torch.Tensor] = []  # these tensors

    def _get_memo(self, t: torch.Tensor) -> Any:
        return self._fakes.get(id(t))

    def set_tensor_memo(self, t: torch.Tensor, v: Any) -> None:
        self._fakes[id(t)] = v
        self._kept.append(t)

    def from_real_tensor(self, fake_mode: Any, t: torch.Tensor, make_constant: bool = False, *more: Any, **named: Any) -> Any:
        if type(t) is not torch.Tensor or t.layout is not torch.strided or t.requires_grad or t.is_quantized or t.is_inference():
            return super().from_real_tensor(fake_mode, t, make_constant, *more, **named)
        fake = self._get_memo(t)
        if fake is None:
            fake = _fake_base(fake_mode, t, constant=t if make_constant else None)
            self.set_tensor_memo(t, fake)
        if make_constant:
            self.add_constant_storage_mapping(fake)
        return fake


    def forget(self) -> None:
        """Let go of the program's tensors: one that is weakly referenced cannot be swapped (``torch.utils.swap_tensors``)."""
        self._fakes.clear()
        self._kept.clear()
        forget_tensors(self)


def forget_tensors(converter: FakeTensorConverter) -> None:
    """Drop torch's own notes, which are weak references to tensors."""
    converter.meta_converter.tensor_memo.clear()
    converter.meta_converter.describer.lookup_tensor.clear()


class CaptureMode(FakeTensorMode):
    """A FakeTensorMode with static shapes, as its constructor would leave it with default settings."""

    def __init__(self) -> None:  # noqa: D107 - see the class
        TorchDispatchMode.__init__(self)
        self.allow_fallback_kernels = True
        self.propagate_real_tensors = False
        self.fake_tensor_converter = CaptureConverter(copy_data=False, export=False)
        self.static_shapes = True
        self.allow_scalar_outputs = False
        self._allow_unsafe_data_ptr_access = functorch_config.fake_tensor_allow_unsafe_data_ptr_access
        self.allow_meta = functorch_config.fake_tensor_allow_meta
        self.cache_enabled = True
        self.cache_crosscheck_enabled = False
        self.allow_non_fake_inputs = False
        self.in_kernel_invocation = False
        self.enter_stack = []
        self.shape_env = None
        self._stack_trace = []
        self._stack = None
        self._mode_key = torch._C._TorchDispatchModeKey.FAKE
        import torch.nested._internal.nested_tensor as nested  # noqa: PLC0415 - heavy, and only its counter is needed

        self.nt_tensor_id_initial_count = nested._tensor_id_counter
        self.nt_tensor_id_counter = self.nt_tensor_id_initial_count
        self.has_unbacked = False  # some size may be unknown even in this call
        self.twins: dict[torch.device, dict[str, Any]] = {}  # twin.py's
        self._answer: FakeTensor | None = None  # what the next operation gives, whichever it is
        self.random = False  # whether an operation drew random numbers
        self.effects = 0  # how many operations drew some, or wrote to tensors as their schemas say
        # id(fake) -> writes to it that an eager kernel keeps from the version counter, as batch_norm's of its statistics
        self.uncounted: dict[int, int] = {}
        # With wrapper subclasses in the trace: trackers of what they hold, by the id of the fake or of another object. Else None.
        self.wrappers: dict[int, Any] | None = None
        self.shielded = False  # some of them has a __torch_function__ that was traced: graphs do not ask it
        self.expanded: set[int] = set()  # the storages of inputs that have several elements in one place
        # The storages that operations write to: `x.data.add_(1)` does not count up x's version. Kept, so that no other takes their place.
        self.written: dict[int, Any] = {}

    def __enter__(self) -> CaptureMode:
        """As torch's, without the flags that only torch.compile and modes of other kinds ask for."""
        before = torch._C._unset_dispatch_mode(self._mode_key)
        torch._C._set_dispatch_mode(self)
        self.enter_stack.append(before)  # type: ignore[arg-type]
        return self

    def __exit__(self, *exc_info: object) -> None:
        before: Any = self.enter_stack.pop()
        torch._C._unset_dispatch_mode(self._mode_key)
        if before is not None:
            torch._C._set_dispatch_mode(before)

    def forget(self) -> None:
        """Let go of the program's tensors: the graph's nodes hold fakes, and these the mode."""
        self.fake_tensor_converter.forget()
        if self.wrappers is not None:
            self.wrappers.clear()

    def use_symbols(self, env: Any, holds: Callable[[Any], bool]) -> None:
        """From now on sizes may be symbols of ``env``. ``holds``: whether a comparison of sizes does, whatever the data says."""
        self.shape_env = env
        self.holds = holds
        self.static_shapes = False
        self.allow_scalar_outputs = env.allow_scalar_outputs
        self.cache_enabled = False  # an answer from the cache would not repeat the guards that it took

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """False: torch would wrap ``__torch_dispatch__`` in what imports torch._dynamo at the first operation."""
        return False

    def record(self, fake: FakeTensor, operand: FakeTensor) -> FakeTensor:
        """``fake``, new and of no operation so far, as autograd leaves the result of one that it records for ``operand``.

        Autograd does that for an operation which costs it least; who made the result, no rule and no program can ask a fake one.
        The mode is in force.
        """
        if not (fake.dtype.is_floating_point or fake.dtype.is_complex):
            return fake
        self._answer = fake
        try:
            return torch.neg(operand)  # type: ignore[return-value]
        finally:
            self._answer = None

    def __torch_dispatch__(self, func: Any, classes: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is _DEVICE and type(args[0]) is FakeTensor:  # composite operations in C++ ask again and again
            return META if self.in_kernel_invocation else args[0].fake_device
        if self.wrappers is not None and any(cls is not FakeTensor for cls in classes):
            return NotImplemented  # which class it is says what becomes of it
        if self._answer is not None and func is _RECORDED:
            return self._answer
        named = kwargs or {}
        known = _KNOWN.get(func)
        if known is None:
            known = _KNOWN[func] = _kind_of(func), _written_by(func), torch.Tag.nondeterministic_seeded in func.tags, func.is_view
        kind, written, seeded, view = known
        if view and type(args[0]) is FakeTensor and args[0].is_inference() and not torch.is_inference_mode_enabled():
            with torch.inference_mode():  # it gives an inference tensor, which torch's fake mode forgets
                return self.__torch_dispatch__(func, classes, args, kwargs)
        if written and not _reads_statistics(func, args, named):
            self._note_written(written, args, named, kind or "out" in named)
        inferred = NotImplemented if self.has_unbacked else shapes.infer(self, func, args, named)
        if inferred is not NotImplemented:
            return inferred
        kernels.check(func, args, named)
        if seeded and not _drops_nothing(func, args, named):
            self.note_random()
        return self._in_place(kind, func, classes, args, named) if kind else self.dispatch(func, classes, args, named)

    def note_random(self) -> None:
        """An operation draws random numbers."""
        self.random = True
        self.effects += 1

    def _note_written(self, written: tuple, args: tuple, kwargs: dict, in_place: Any) -> None:
        """Kernels refuse most writes to tensors that have several elements in one place; compilers write to a copy, or to all of it."""
        self.effects += 1
        for index, name in written:
            value = args[index] if index < len(args) else kwargs.get(name)
            for target in value if isinstance(value, (list, tuple)) else (value,):
                if type(target) is not FakeTensor:
                    continue
                if in_place and (is_expanded(target) or self.expanded and target.untyped_storage()._cdata in self.expanded):
                    raise RuntimeError("a write to a tensor that has several elements in one place of memory")
                if target.layout is torch.strided:
                    storage = target.untyped_storage()
                    self.written[storage._cdata] = storage
                    if in_place:
                        _refuse_overlap(target, storage, [*args, *kwargs.values()])

    def _in_place(self, kind: str, func: Any, classes: Any, args: tuple, kwargs: dict) -> Any:
        """As torch's, but a tensor keeps its shape: torch's decompositions let a fake one grow where a real one raises."""
        target = args[0]
        shape = target.shape
        if kind == "pointwise" and len({len(shape), *(len(a.shape) for a in args if isinstance(a, torch.Tensor))}) == 1 and all(
                a.shape is shape or self._equal(a.shape, shape) for a in args if isinstance(a, torch.Tensor)):
            return self.dispatch(func, classes, args, kwargs)
        caching, self.cache_enabled = self.cache_enabled, False  # its answers would not change the shape again
        try:
            result = self.dispatch(func, classes, args, kwargs)
        finally:
            self.cache_enabled = caching
        fits = len(target.shape) == len(shape)
        fits = fits and (self._equal(target.shape, shape) or self.has_unbacked and _checked(target.shape, shape))
        if not fits:
            raise RuntimeError(f"output with shape {list(shape)} doesn't match the broadcast shape {list(target.shape)}")
        return result

    def _equal(self, shape: Any, other: Any) -> bool:
        """Of two shapes of one length: whether they are certainly equal."""
        holds = self.holds if self.has_unbacked else bool
        return all(a is b or holds(a == b) for a, b in zip(shape, other, strict=True))

    # Torch's own code, which reads torch._dynamo.config for each operation that its cache does not know.
    _dispatch_impl = types.FunctionType(
        FakeTensorMode._dispatch_impl.__code__, _GLOBALS, "_dispatch_impl",
        FakeTensorMode._dispatch_impl.__defaults__, FakeTensorMode._dispatch_impl.__closure__,
    )


def _refuse_overlap(target: FakeTensor, storage: torch.UntypedStorage, operands: list) -> None:
    """Kernels refuse to write to a tensor of which another operand is a part (MemoryOverlap.cpp); compilers read that one from a copy."""
    for given in operands:
        for other in given if isinstance(given, (list, tuple)) else (given,):
            if other is target or type(other) is not FakeTensor or other.layout is not torch.strided:
                continue
            if other.untyped_storage()._cdata == storage._cdata and _overlap(_extent(target), _extent(other)):
                raise RuntimeError("a write to a tensor of which another operand holds a part")


def _extent(tensor: FakeTensor) -> tuple[Any, Any, tuple] | None:
    """Where a tensor begins and ends in its storage, and how it lies there; None where it has gaps, or the sizes are not known."""
    sizes = (*tensor.shape, *tensor.stride(), tensor.storage_offset())
    if not all(type(size) is int for size in sizes) or not tensor.numel():
        return None
    dense = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size != 1 and stride != dense:
            return None
        dense *= size
    begin = tensor.storage_offset() * tensor.itemsize
    return begin, begin + tensor.nbytes, tensor.stride()


def _overlap(one: tuple[Any, Any, tuple] | None, other: tuple[Any, Any, tuple] | None) -> bool:
    return one is not None and other is not None and one != other and one[0] < other[1] and other[0] < one[1]


def _checked(shape: Any, other: Any) -> bool:
    """Whether two shapes of sizes that the data decides may be equal: the graph checks that they are."""
    try:
        for a, b in zip(shape, other, strict=True):
            torch._check(a == b)
    except RuntimeError:
        return False
    return True


_DEVICE = torch.ops.prim.device.default
_RECORDED = torch.ops.aten.neg.default  # what CaptureMode.record() lets autograd record
# operation -> "pointwise", "other", or "" where it is none that works in place; positions and names of all that it writes to;
# whether it may draw random numbers; whether it gives a view
_KNOWN: dict[Any, tuple[str, tuple[tuple[int, str], ...], bool, bool]] = {}
_RESHAPING = frozenset(("resize_", "resize_as_", "set_", "squeeze_", "unsqueeze_", "transpose_", "t_", "swapaxes_", "swapdims_",
                        "as_strided_", "rename_", "detach_", "resize_as_sparse_", "sparse_resize_", "sparse_resize_and_clear_"))


def _kind_of(func: Any) -> str:
    """Operations that write to their first argument and leave its shape alone."""
    name = func._schema.name.partition("::")[2]
    if not name.endswith("_") or name.endswith("__") or not func._schema.is_mutable or name in _RESHAPING:
        return ""
    first = func._schema.arguments[0]
    if first.alias_info is None or not first.alias_info.is_write or not isinstance(first.type, torch.TensorType):
        return ""
    return "pointwise" if torch.Tag.pointwise in func.tags else "other"


def _written_by(func: Any) -> tuple[tuple[int, str], ...]:
    return tuple((i, a.name) for i, a in enumerate(func._schema.arguments) if a.alias_info is not None and a.alias_info.is_write)


def _reads_statistics(func: Any, args: tuple, kwargs: dict) -> bool:
    """Whether this is a batch norm in eval mode: its schema says that it writes to its statistics, which only training does."""
    return func is _BATCH_NORM and not (args[5] if len(args) > 5 else kwargs["training"])


_BATCH_NORM = torch.ops.aten._native_batch_norm_legit.default


def _drops_nothing(func: Any, args: tuple, kwargs: dict) -> bool:
    """Whether a call of an operation with dropout inside draws no random number."""
    for index, argument in enumerate(func._schema.arguments):
        if argument.name in ("dropout_p", "train", "dropout"):
            value = args[index] if index < len(args) else kwargs.get(argument.name, argument.default_value)
            if not value:
                return True
    return False


def is_expanded(tensor: torch.Tensor) -> bool:
    return any(type(stride) is int and not stride and size != 1 for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


DATA_DEPENDENT = (
    ft.DataDependentOutputException,
    ft.DynamicOutputShapeException,
    ft.UnsupportedOperatorException,
)


def to_fake(mode: Any, tensor: torch.Tensor, extents: Any = None) -> Any:
    """The fake twin of a strided ``tensor``, a view of its base's twin where it is a view.

    ``extents`` (``symbols.Extents``) gives it symbolic sizes and strides.

    As torch's MetaConverter makes it, without descriptions for its log, without ``.grad``, and without torch._dynamo, which
    that one imports for every tensor.
    """
    memo = mode.fake_tensor_converter
    known = memo._get_memo(tensor)
    if known is not None:
        return known
    make = _fake_view if tensor._is_view() else _fake_base
    if tensor.is_inference() is torch.is_inference_mode_enabled() and _FUNCTORCH.maybe_current_level() is None:
        fake = make(mode, tensor, extents)
    else:  # the contexts cost more than the fake tensor
        with torch.inference_mode(tensor.is_inference()), _outside_of_transforms():
            fake = make(mode, tensor, extents)
    if issubclass(type(tensor), torch.nn.Parameter):
        fake._is_param = True
    if getattr(tensor, "_is_buffer", False):
        fake._is_buffer = True
    memo.set_tensor_memo(tensor, fake)
    return fake


def _outside_of_transforms() -> Any:
    """Inputs belong to the program, also where a function that torch.func transforms is the first to look at one."""
    if _FUNCTORCH.maybe_current_level() is None:
        return contextlib.nullcontext()
    from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack  # noqa: PLC0415 - loaded by the transform

    return temporarily_clear_interpreter_stack()


_FUNCTORCH: Any = torch._C._functorch  # type: ignore[attr-defined]


def _extents(tensor: torch.Tensor, extents: Any) -> tuple[Any, Any]:
    return (tensor.shape, tensor.stride()) if extents is None else (extents.sizes, extents.strides)


def _unguarded(mode: Any, extents: Any) -> Any:
    """What is done to make an input guards nothing: it is as it is."""
    return contextlib.nullcontext() if extents is None else mode.shape_env.suppress_guards()


def _bytes_of(tensor: torch.Tensor) -> int:
    """How large the storage is that a tensor with these sizes and strides is made with."""
    if tensor.is_contiguous():
        return tensor.nbytes
    return (sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.stride(), strict=True)) + 1) * tensor.itemsize


def with_history(fake: Any) -> Any:
    """What stands for a tensor that is no leaf; nothing is known of what it was made of."""
    return torch._C._functions.DelayedError("backward through the example input of a capture", 1)(fake)  # type: ignore[attr-defined]


def _fake_base(mode: Any, tensor: torch.Tensor, extents: Any = None, constant: torch.Tensor | None = None) -> Any:
    fake = _fake_values(mode, tensor, extents, constant)
    if tensor.requires_grad:
        fake.requires_grad = True
        if not tensor.is_leaf:
            fake = with_history(fake)
    return fake


def _fake_values(mode: Any, tensor: torch.Tensor, extents: Any, constant: torch.Tensor | None = None) -> Any:
    """A twin without gradient."""
    size, stride = _extents(tensor, extents)
    with no_dispatch(), _unguarded(mode, extents):
        meta = torch.empty_strided(size, stride, dtype=tensor.dtype, device=META)
        real_bytes = tensor.untyped_storage().nbytes()
        if tensor.storage_offset() or extents is None and real_bytes != _bytes_of(tensor):
            meta.set_(torch.UntypedStorage(real_bytes, device=META), tensor.storage_offset(), size, stride)
        if tensor.is_conj():
            torch._C._set_conj(meta, True)
        if tensor.is_neg():
            torch._C._set_neg(meta, True)
        return twin(mode, meta, tensor.device) if constant is None else FakeTensor(mode, meta, tensor.device, constant)


def left_its_base(tensor: torch.Tensor) -> bool:
    """Whether a view or its base has got other memory since it was made (``view.data = other``): then they share nothing but autograd."""
    return tensor.layout is torch.strided and tensor._is_view() and not torch._C._is_alias_of(tensor, tensor._base)  # type: ignore[attr-defined]


def _fake_view(mode: Any, tensor: torch.Tensor, extents: Any = None) -> Any:
    """Views share requires_grad and version with their base, so they must be views of one fake base, too."""
    if tensor._base.layout is not torch.strided:  # type: ignore[union-attr] - values() of a sparse tensor: as if they were no view
        return _fake_base(mode, tensor, extents)
    if left_its_base(tensor):
        return _fake_base(mode, tensor, extents)
    base: Any = to_fake(mode, tensor._base)  # type: ignore[arg-type]
    if base.dtype != tensor.dtype or base.is_conj() != tensor.is_conj() or base.is_neg() != tensor.is_neg():
        base = _other_base(mode, tensor, base, extents)
    place = (*_extents(tensor, extents), tensor.storage_offset())
    with _unguarded(mode, extents):
        return _view_of(mode, base, tensor, place)


def _other_base(mode: Any, tensor: torch.Tensor, base: Any, extents: Any) -> Any:
    """For view_as_real, view(dtype) and conj(): a base of the view's own kind, which shares nothing with the base's twin.

    By it autograd knows which writes it refuses, those to views of leaves among them.
    """
    other = _fake_values(mode, tensor, extents)
    if not base.requires_grad or not (tensor.is_floating_point() or tensor.is_complex()):
        return other
    other.requires_grad = True
    return other if base.is_leaf else with_history(other)


def _view_of(mode: Any, base: Any, tensor: torch.Tensor, place: tuple) -> Any:
    if tensor.is_leaf:  # made without autograd; requires_grad may have been set on it since
        with torch.no_grad():
            fake = base.as_strided(*place)
        if not base.requires_grad:  # else it is as its base
            fake.requires_grad = tensor.requires_grad
    elif base.requires_grad:
        with torch.enable_grad():
            fake = base.as_strided(*place)
    else:  # a view of a leaf view of the base
        with torch.no_grad():
            between = base.view(base.shape)
        between.requires_grad = True
        with torch.enable_grad():
            fake = between.as_strided(*place)
    autograd: Any = torch._C._autograd  # type: ignore[attr-defined]
    autograd._set_creation_meta(fake, autograd._get_creation_meta(tensor))
    return fake


__all__ = ["DATA_DEPENDENT", "CaptureMode", "FakeTensor", "left_its_base", "to_fake"]
