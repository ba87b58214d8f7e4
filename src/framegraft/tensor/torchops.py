"""Tensor operations: which callables go into the graph, and what they give, by running them on fake tensors."""

from __future__ import annotations

import contextlib
import operator
import types
from typing import Any

import torch
import torch.nn.functional as F

from .. import _native
from ..errors import GraphBreak, UserRaise
from ..interp.state import constant_value, need_constant, realize, user_error
from ..model.dispatch import TENSOR, TensorLayer, handles
from ..model.guards import Condition
from ..model.source import name_of
from ..model.value import (
    MISSING,
    NONE,
    BuiltinMethodVariable,
    ConstantVariable,
    ListVariable,
    MethodVariable,
    ObjectVariable,
    SymbolicVariable,
    TensorVariable,
    TupleVariable,
    VariableTracker,
    constant,
)
from ..semantics import attributes, calls, class_checks, hashed, lookup, members
from ..semantics.iteration import unpack_iterable
from ..semantics.wrapping import CONSTANT_TYPES, wrap_pinned
from . import devices, flattened, indexing, lazy_modules, leaves, numpy, special, subclasses, symbolic, wrappers
from .fake import FakeTensor
from .modes import guard_answer
from .policy import INT64
from .raising import note_errors
from .running import read, run_node
from .strides import tensor_of_strides

_C: Any = torch._C  # its stubs lack the private modules
CONSTANTS = (torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size, torch.finfo, torch.iinfo, _C._SDPBackend)
VALUES: set[type] = set()  # classes of others that are known by their value; filled by files that build on this one
_GRAPH_MODULES = ("torch.nn.functional", "torch.functional", "torch._C._nn", "torch.linalg", "torch.fft", "torch.special",
                  "torch._C._linalg", "torch._C._fft", "torch._C._special", "torch._C._VariableFunctions")
METADATA_CHANGING = frozenset(("resize_", "resize_as_", "set_", "unsqueeze_", "squeeze_", "transpose_", "t_", "swapaxes_",
                               "swapdims_", "as_strided_", "requires_grad_", "detach_", "rename_", "share_memory_",
                               "retain_grad", "backward", "register_hook", "register_post_accumulate_grad_hook",
                               "apply_", "map_", "map2_", "sparse_resize_", "pin_memory"))
_VIEWED_IN_PLACE = frozenset(("unsqueeze_", "squeeze_", "transpose_", "t_", "swapaxes_", "swapdims_"))
_AUTOGRAD = {"backward": "autograd_in_trace", "retain_grad": "autograd_in_trace", "register_hook": "hook_on_intermediate",
             "register_post_accumulate_grad_hook": "hook_on_intermediate"}
SCALARS = frozenset(("item", "tolist", "__bool__", "__int__", "__float__", "__index__", "__complex__", "__array__",
                     "data_ptr", "is_nonzero", "storage", "storage_type", "untyped_storage", "__dlpack__", "equal", "allclose", "cpu_",
                     "__contains__", "__repr__", "__str__", "__format__", "storage_offset", "__reduce_ex__",
                     "__deepcopy__", "is_set_to", "_typed_storage", "element_size_"))
# Methods that tell a constant which the graph's guards assure. Others tell what a fake tensor does not know.
_TOLD = frozenset(("is_same_size", "size", "stride", "dim", "numel", "is_contiguous"))
_SETTING = frozenset(("__setattr__", "__delattr__", "__setstate__", "__init__"))
METADATA = frozenset(("shape", "dtype", "device", "layout", "ndim", "requires_grad", "is_leaf", "is_cuda", "is_cpu",
                      "is_sparse", "is_quantized", "is_meta", "itemsize", "nbytes", "is_mps", "is_xpu",
                      "is_mkldnn", "is_nested", "is_sparse_csr", "retains_grad", "output_nr", "is_inference_"))
GUARDED_METADATA = frozenset(("shape", "dtype", "device", "layout", "ndim", "requires_grad", "itemsize", "nbytes"))
METADATA_METHODS = frozenset(("size", "dim", "numel", "stride", "is_contiguous", "is_floating_point", "is_complex",
                              "ndimension", "nelement", "element_size", "get_device", "type_", "is_signed", "dim_order",
                              "is_inference", "is_conj", "is_neg", "has_names", "__len__", "is_shared_"))
VIEWS = frozenset(("T", "H", "mT", "mH", "real", "imag", "data"))
FACTORIES = frozenset(("zeros", "ones", "empty", "full", "arange", "linspace", "logspace", "eye", "rand", "randn", "randint",
                       "randperm", "tensor", "as_tensor", "scalar_tensor", "zeros_like", "tril_indices", "triu_indices",
                       "complex", "polar", "hann_window", "hamming_window", "empty_strided", "normal", "asarray",
                       "bartlett_window", "blackman_window", "kaiser_window", "from_numpy_", "range"))
_REFUSED = frozenset(("manual_seed", "seed", "save", "load", "compile", "set_grad_enabled", "no_grad", "is_tensor",
                      "equal", "allclose", "is_nonzero", "nonzero_", "from_numpy", "from_file", "set_default_dtype"))
# Of torch.nn.functional: they call a function of the program, or raise for some values. They are traced into.
_IN_PYTHON = frozenset(("triplet_margin_with_distance_loss", "gaussian_nll_loss"))


_GETTERS = ("_get_", "_is_", "_len_", "_has_")


def _read_state(tx: Any, fn: Any) -> VariableTracker:
    """A setting of torch, kept in C: folded, and guarded by asking again."""
    value = fn()
    if value is not None and type(value) not in (bool, int, float, str, torch.dtype):
        raise GraphBreak("untraceable_call", f"{fn.__name__}() gives a {type(value).__name__}")
    guard_answer(tx, fn, value)
    return constant(value)


class Tensors(TensorLayer):
    """The interpreter's door to this layer."""

    def __init__(self) -> None:
        self._graph_functions: dict[int, tuple[Any, str]] = {}

    def is_singleton_type(self, cls: type) -> bool:
        return cls in (torch.dtype, torch.layout, torch.memory_format)

    def is_constant_type(self, cls: type) -> bool:
        return cls in CONSTANTS or cls in numpy.SCALARS or cls in VALUES

    def kind(self, fn: Any) -> str:
        """How a callable is treated: 'graph', 'factory', or '' (not this layer's)."""
        found = self._graph_functions.get(id(fn))
        if found is not None:
            return found[1]
        kind = _classify(fn)
        if kind or type(fn) is types.BuiltinFunctionType and isinstance(fn.__self__, types.ModuleType):
            self._graph_functions[id(fn)] = (fn, kind)  # lives as long as torch or its module; a program's object must not
        return kind

    def takes(self, fn: Any, args: list, kwargs: dict) -> bool:
        if type(fn) is torch.jit.ScriptFunction:
            return True
        kind = self.kind(fn)
        return kind == "factory" or kind == "graph" or kind == "getter" and not args and not kwargs

    def wrap(self, builder: Any, value: Any, source: Any) -> VariableTracker | None:
        return wrap_torch(builder, value, source)

    def call(self, tx: Any, fn: Any, args: list, kwargs: dict) -> VariableTracker:
        if type(fn) is torch.jit.ScriptFunction:
            return call_scripted(tx, fn, args, kwargs)
        if self.kind(fn) == "getter":
            return _read_state(tx, fn)
        if _is_overridden(tx.state, args, kwargs):
            given = OVERRIDES["call"](tx, fn, args, kwargs)
            if given is not None:
                return given
        special.check_operands(tx, fn, args)
        return call_torch(tx, fn, args, kwargs)

    def with_device(self, tx: Any, fn: Any, args: list, kwargs: dict) -> dict:
        return devices.with_device(tx, fn, args, kwargs)

    def is_block(self, value: Any) -> bool:
        return issubclass(type(value), torch.nn.Module)  # which asks the program nothing

    def block(self, tx: Any, fn: Any, args: list, kwargs: dict, go: Any) -> VariableTracker:
        return tx.state.blocks.call(tx, fn, args, kwargs, go)

    def call_method(self, tx: Any, obj: TensorVariable, name: str, args: list, kwargs: dict) -> VariableTracker:
        if _is_overridden(tx.state, args, kwargs):
            given = OVERRIDES["method"](tx, obj, name, args, kwargs)
            if given is not None:
                return given
        return call_tensor_method(tx, obj, name, args, kwargs)

    def get_attr(self, tx: Any, obj: TensorVariable, name: str) -> VariableTracker:
        if tx.state.overriding:
            given = OVERRIDES["attribute"](tx, obj, name)
            if given is not None:
                return given
        return tensor_attr(tx, obj, name)

    def set_attr(self, tx: Any, obj: TensorVariable, name: str, value: VariableTracker) -> None:
        special.check(tx, obj, "__setattr__")
        tx.state.outside += 1
        if tx.state.overriding and name in subclasses.NAMES and (subclasses.is_live(obj.cls) or tx.state.function_modes):
            raise GraphBreak("unsupported_mutation", f"setting {name} of a {obj.cls.__name__}")
        if obj.cls not in subclasses.PLAIN and wrappers.hides(obj, name):
            raise GraphBreak("unsupported_mutation", f"setting {name} of a {obj.cls.__name__}, which may be part of what it is made of")
        setter = ATTRIBUTES.get(name)
        if setter is not None:
            setter[1](tx, obj, value)
        elif subclasses.may_be_set(tx, obj.cls, name) and not name.startswith("_dynamo"):
            obj.attrs[name] = value
            tx.state.mark_mutated(obj)
        else:
            raise GraphBreak("unsupported_mutation", f"setting an attribute of a tensor: {name}")

    def number(self, state: Any, value: Any, source: Any) -> VariableTracker | None:
        found = state.graph.number(value, source)
        if found is not None:
            state.guards.add(source, "TYPE", type(value))
            if type(value) is int:
                state.guards.add(source, "RANGE", INT64)
        return found

    def symbolic(self, tx: Any, fn: Any, args: list) -> VariableTracker | None:
        if numpy.SCALARS and any(isinstance(a, ConstantVariable) and type(a.value) in numpy.SCALARS for a in args):
            return None
        symbolic.assume_whole(tx, fn, args)
        return symbolic.compute(tx.state.graph.symbols, fn, args)

    def specialise(self, tracker: SymbolicVariable) -> VariableTracker:
        return symbolic.specialise(tracker)

    def truth(self, tx: Any, value: VariableTracker) -> bool:
        if isinstance(value, SymbolicVariable):
            return symbolic.truth(value)
        raise GraphBreak("data_dependent_branch", "a branch on the value of a tensor")


def _is_overridden(state: Any, args: list, kwargs: dict) -> bool:
    """Whether a class may have a say in a call: an object that is no tensor has one where it is first given to torch."""
    if not state.overriding and subclasses.asks_objects(state, (*args, *kwargs.values())):
        subclasses.begin(state)
    return state.overriding


OVERRIDES: dict[str, Any] = {}  # "call", "method", "attribute": what TENSOR.overridden is for calls; filled by overrides.py


hashed.BY_IDENTITY += [torch._ops.OpOverload.__hash__, torch._ops.OpOverloadPacket.__hash__]


def _classify(fn: Any) -> str:
    name = name_of(fn)
    if name is None:
        return ""
    if isinstance(fn, (types.BuiltinFunctionType, torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        owner = getattr(fn, "__self__", None)
        module = getattr(fn, "__module__", None) or ""
        if isinstance(fn, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
            return "graph"
        if name in _REFUSED or name == "__new__" or "quantize" in name and "fake" not in name:
            return ""
        if name.startswith(_GETTERS) and fn.__module__ == "torch._C" or module == "torch._C" and name.startswith(_GETTERS):
            return "getter"
        if getattr(_C._VariableFunctions, name, None) is fn or getattr(torch, name, None) is fn and _is_variable_function(owner):
            return "factory" if name in FACTORIES else "graph"
        if module in _GRAPH_MODULES or getattr(_C._nn, name, None) is fn:
            return "graph"
        for space in (_C._linalg, _C._fft, _C._special):
            if any(value is fn for value in vars(space).values()):
                return "graph"
        return ""
    if isinstance(fn, types.FunctionType):
        if fn.__module__ in ("torch.nn.functional", "torch.functional") and not name.startswith("__"):
            if name in _IN_PYTHON:
                return ""
            if name in ("_in_projection_packed",) or getattr(F, name, None) is fn or getattr(torch.functional, name, None) is fn:
                return "graph"
        return ""
    if type(fn).__name__ == "boolean_dispatch" or (isinstance(fn, types.BuiltinMethodType)):
        return "graph"
    return ""


def _is_variable_function(owner: Any) -> bool:
    return isinstance(owner, type) and owner.__name__.startswith("_VariableFunctions")


def wrap_torch(builder: Any, value: Any, source: Any) -> VariableTracker | None:
    state = builder.state
    if issubclass(type(value), torch.Tensor):
        return _wrap_tensor(state, value, source)
    cls = type(value)
    if cls in (torch.dtype, torch.layout, torch.memory_format):
        state.guards.add(source, "ID", value)
        return constant(value)
    if cls in (torch.device, _C._SDPBackend) or cls in VALUES:
        state.guards.add(source, "EQ", value)
        return constant(value)
    if cls in (torch.finfo, torch.iinfo):
        state.guards.add(source, "TYPE", cls)
        state.guards.add(source.child("ATTR", "dtype"), "EQ", value.dtype)
        return constant(value)
    if cls is torch.Size:
        state.guards.add(source, "EQ", value)
        return constant(value)
    if cls is torch.jit.ScriptFunction:
        state.guards.pin(source, value)
        return ObjectVariable(value, cls, source)
    if cls is torch.Generator or issubclass(type(value), torch.jit.ScriptModule):
        raise GraphBreak("untraceable_call", f"a {cls.__name__}")
    return numpy.wrap(state, value, source)


def _wrap_tensor(state: Any, value: torch.Tensor, source: Any) -> VariableTracker:
    cls = type(value)
    lazy_modules.wait_for_shape(value)
    if not subclasses.is_captured(state, cls):
        raise GraphBreak("input_subclass", f"a tensor of class {cls.__name__}")
    wraps = cls not in subclasses.PLAIN and wrappers.is_wrapper(cls)
    live = subclasses.is_live(cls)
    if live:
        subclasses.begin(state)
    if value.layout is not torch.strided or value.is_nested or value.is_quantized:
        raise GraphBreak("sparse_or_complex_layout", f"a tensor of layout {value.layout}")
    if issubclass(type(value), FakeTensor) or _C._functorch.is_functorch_wrapped_tensor(value):
        raise GraphBreak("input_subclass", "a fake or transformed tensor")
    late = _native.grad_is_late(value)
    if late and (live or torch.is_grad_enabled() or not MADE_WITHOUT_GRAD(value)):  # looking at it any closer would change what it is
        raise GraphBreak("fake_tensor_failure", "a view whose base was written to with a gradient since")
    try:
        value.is_leaf  # noqa: B018 - it may raise: the view of a result, made in no_grad mode and written to
    except RuntimeError:
        raise GraphBreak("fake_tensor_failure", "a view of ambiguous history") from None
    graph = state.graph
    extents = _guard_metadata(state, value, source, live)
    state.guards.tensors.append(source)
    if wraps:
        extents = wrappers.prepare(state, value, source, extents, _guard_metadata)
    made = graph.add_input(value, source, extents)
    if wraps:
        flattened.guard(state, made)
    if late:
        state.guards.add(source, "PY", MADE_WITHOUT_GRAD)
        graph.leaves[id(made.fake)] = made.fake
    return made


def _guard_metadata(state: Any, value: torch.Tensor, source: Any, live: bool = False) -> Any:
    """Guard what a tensor is; the symbols that sizes and strides are, None where they are constants."""
    graph = state.graph
    if source in graph.extents:
        return graph.extents[source]
    plan = None if graph.policy is None or live else graph.policy.tensor(value, source)
    extents = graph.extents[source] = None if plan is None else graph.use_symbols().extents(value, source, plan)
    state.guards.add(source, "TENSOR", state.tensor_spec(value, None if extents is None else extents.free))
    return extents


class _MadeWithoutGrad(Condition):
    """Guard: a view was made in no_grad mode, and its base has not been written to since. It requires a gradient if that one does."""

    __name__ = "made_without_grad"
    key = None

    def __call__(self, value: torch.Tensor) -> bool:
        try:
            return _C._autograd._get_creation_meta(value) == _C._autograd.CreationMeta.NO_GRAD_MODE and value.is_leaf
        except RuntimeError:  # autograd cannot tell what it is a view of now
            return False


MADE_WITHOUT_GRAD = _MadeWithoutGrad()


# -- running an operation on fakes


def call_torch(tx: Any, fn: Any, args: list, kwargs: dict) -> VariableTracker:
    if fn in (bool, int, float, complex):
        if fn in (int, float) and tx.state.graph.data_numbers and len(args) == 1:
            number = symbolic.read_number(tx, args[0], f"__{fn.__name__}__")
            if number is None and fn is int and (number := symbolic.read_number(tx, args[0], "__float__")) is not None:
                number = TENSOR.symbolic(tx, fn, [number])
            if number is not None:
                return number
        raise GraphBreak("tensor_item", f"{fn.__name__}() of a tensor")
    if fn is len:
        return symbolic.wrap_value(args[0].fake.shape[0]) if args[0].fake.dim() else _len_of_scalar()
    if fn in (str, repr, format, divmod):
        raise GraphBreak("tensor_item", f"{fn.__name__}() of a tensor")
    name = getattr(fn, "__name__", "")
    if name == "detach_" and fn is torch.detach_ and len(args) == 1 and not kwargs:
        return METHODS[name](tx, args[0], [], {})
    if name in ("detach_", "set_", "resize_", "requires_grad_"):
        raise GraphBreak("unsupported_mutation", name)
    if fn in (torch.tensor, torch.as_tensor) and len(args) == 1:
        filled = _of_numbers(tx, fn, args, kwargs)
        if filled is not None:
            return filled
    if fn in (torch.tensor, torch.as_tensor) and len(args) == 1 and kwargs.keys() <= {"dtype", "device"} and type(args[0]) in AS_TENSOR:
        device, dtype = (need_constant(kwargs[name], f"a {name}") if name in kwargs else None for name in ("device", "dtype"))
        return moved(tx, AS_TENSOR[type(args[0])](tx, fn, args[0]), device, dtype)
    if fn in (torch.tensor, torch.as_tensor) and len(args) == 1 and kwargs.keys() <= {"device"} and isinstance(args[0], ConstantVariable):
        dtype = _NUMPY_DTYPES.get(args[0].python_type().__name__) if args[0].python_type() in numpy.SCALARS else None
        if dtype is not None:
            return run_node(tx, "call_function", torch.tensor, [constant(args[0].value.item())], {"dtype": constant(dtype), **kwargs})
    if fn in (torch.tensor, torch.as_tensor, torch.asarray) and args and _has_tensor(tx, args[0], top=True):
        return OF_LIST[0](tx, fn, args, kwargs)
    if any(isinstance(v, FunctionLike) for v in (*args, *kwargs.values())):
        raise GraphBreak("untraceable_call", f"{name} with a function as an argument")
    _user_operator(tx, fn, args)
    return run_node(tx, "call_function", fn, args, kwargs)


def moved(tx: Any, made: VariableTracker, device: Any, dtype: torch.dtype | None = None) -> VariableTracker:
    """A tensor of the CPU with the dtype and on the device that are asked for; None for those that it has."""
    asked = [constant(device)] if device is not None and torch.device(device).type != "cpu" else []
    asked += [constant(dtype)] if dtype is not None else []
    return run_node(tx, "call_method", "to", [made, *asked], {}) if asked else made


# Of the tensors that torch makes of NumPy's scalars.
_NUMPY_DTYPES = {name: getattr(torch, name) for name in ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8")}
_NUMPY_DTYPES |= dict.fromkeys(("bool_", "bool"), torch.bool)

OF_LIST: list[Any] = []  # (tx, fn, args, kwargs) -> torch.tensor() of a list with tensors; this and the next two set by literal.py
OF_NUMBERS: list[Any] = []  # (tx, fn, args, kwargs) -> the same of a list with symbolic numbers, or None
AS_TYPE: list[Any] = []  # (tx, tensor, args, kwargs) -> what Tensor.type() gives, or None


def call_scripted(tx: Any, fn: Any, args: list, kwargs: dict) -> VariableTracker:
    """A function of TorchScript: one node that calls it as it is. Its operations show when it runs, on fake tensors too."""

    def scripted(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    scripted.__name__ = scripted.__qualname__ = f"scripted_{fn.name}"  # as FX prints it
    note_errors(tx.state, fn.name, True)
    return run_node(tx, "call_function", scripted, args, kwargs)


def _of_numbers(tx: Any, fn: Any, args: list, kwargs: dict) -> VariableTracker | None:
    """A tensor of symbolic numbers, which torch's constructors would read; None for anything else."""
    if tx.state.graph.symbols is None:
        return None
    return _filled(tx, args[0], kwargs) if isinstance(args[0], SymbolicVariable) else OF_NUMBERS[0](tx, fn, args, kwargs)


def _filled(tx: Any, number: SymbolicVariable, kwargs: dict) -> VariableTracker | None:
    """``torch.tensor(number)``, which would read the symbol, as ``torch.full``; None where that might not be the same."""
    dtype = kwargs.get("dtype", NONE)
    if kwargs.keys() - {"dtype", "device"} or not isinstance(dtype, ConstantVariable) or number.cls is bool:
        return None
    if dtype.value not in (None, torch.int64, torch.float32, torch.float64) or dtype.value is torch.int64 and number.cls is float:
        return None
    chosen = dtype.value or (torch.int64 if number.cls is int else torch.get_default_dtype())
    return run_node(tx, "call_function", torch.full, [TupleVariable([]), number], {**kwargs, "dtype": constant(chosen)})


FunctionLike = (MethodVariable, BuiltinMethodVariable)


def _user_operator(tx: Any, fn: Any, args: list) -> None:
    for arg in args:
        if type(arg) in AS_TENSOR and fn in indexing.BY_KEY:
            continue
        if isinstance(arg, ObjectVariable) and arg.payload is None and not issubclass(type(arg.value), type) and (
                not members.leaves_to_tensors(tx, arg, getattr(fn, "__name__", fn))):
            raise GraphBreak("untraceable_call", f"a {arg.cls.__name__} as an argument of a tensor operation")


def _len_of_scalar() -> Any:
    raise UserRaise(user_error(TypeError, "len() of a 0-d tensor"))


def _has_tensor(tx: Any, tracker: VariableTracker, top: bool = False) -> bool:
    tracker = realize(tracker, tx.state)
    if isinstance(tracker, TensorVariable):
        return not top
    return isinstance(tracker, (ListVariable, TupleVariable)) and any(_has_tensor(tx, i) for i in tracker.items)


def _may_be_viewed_in_place(tx: Any, obj: TensorVariable) -> bool:
    """Not an argument; nor, for AOTAutograd loses its shape, a tensor with a gradient."""
    return obj.source is None and type(obj.fake) is FakeTensor and not obj.fake.requires_grad


def call_tensor_method(tx: Any, obj: TensorVariable, name: str, args: list, kwargs: dict) -> VariableTracker:
    if name in SCALARS:
        number = symbolic.read(tx, obj, name) if tx.state.graph.data_numbers and not args and not kwargs else None
        if number is not None:
            return number
        raise GraphBreak("tensor_item", f"Tensor.{name}()")
    if name in _SETTING:
        raise GraphBreak("unsupported_mutation", f"Tensor.{name}()")
    if name == "requires_grad_" and not kwargs and _requires_already(obj, args):
        return obj
    if name in METHODS:
        return METHODS[name](tx, obj, args, kwargs)
    if name == "requires_grad_" and not kwargs and leaves.may_become(tx, obj, args):
        return leaves.make(tx, obj)
    if name == "type" and (retyped := AS_TYPE[0](tx, obj, args, kwargs)) is not None:
        return retyped
    if name in METADATA_CHANGING and not (name in _VIEWED_IN_PLACE and _may_be_viewed_in_place(tx, obj)):
        raise GraphBreak(_AUTOGRAD.get(name, "unsupported_mutation"), f"Tensor.{name}()")
    if name in METADATA_METHODS:
        values = [a.value for a in args if isinstance(a, ConstantVariable)]
        named = {k: v.value for k, v in kwargs.items() if isinstance(v, ConstantVariable)}
        if len(values) == len(args) and len(named) == len(kwargs):
            asked = tensor_of_strides(obj, [*values, *named.values()]) if name == "stride" and obj.source is None else obj.fake
            try:
                return symbolic.wrap_value(getattr(asked, name)(*values, **named))
            except (IndexError, TypeError, RuntimeError) as error:
                raise GraphBreak("fake_tensor_failure", str(error)) from None
    if name in ("__iter__",):
        return attributes.calls.iteration.get_iter(tx, obj)
    on_class = lookup.mro_lookup(tx, obj.cls, name)
    if isinstance(on_class, types.FunctionType) and (name == "__hash__" or on_class.__module__ not in ("torch._tensor", "torch._refs")):
        return calls.call(tx, wrap_pinned(tx, on_class), [obj, *args], kwargs)
    if name == "type" and not args and not kwargs and obj.fake.device.type in ("cpu", "cuda") and obj.fake.layout is torch.strided:
        return constant(obj.fake.type())
    if name == "new_tensor" and any(_has_tensor(tx, a) for a in args) or name == "type" and not args:
        raise GraphBreak("untraceable_call", f"Tensor.{name}()")
    if name == "new_tensor" and len(args) == 1 and type(obj.fake) is FakeTensor and obj.fake.device.type != "meta":
        filled = _of_numbers(tx, torch.tensor, args, {"dtype": constant(obj.fake.dtype), "device": constant(obj.fake.device), **kwargs})
        if filled is not None:
            return filled
    if name == "__setitem__":
        run_node(tx, "call_function", operator.setitem, [obj, *args], kwargs)
        return NONE
    if name == "__getitem__":
        return run_node(tx, "call_function", operator.getitem, [obj, *args], kwargs)
    _user_operator(tx, name, args)
    if name == "new" and len(args) == 1 and realize(args[0], tx.state).python_type() is torch.Size:
        args = _sizes_alone(tx, args[0])
    if kwargs and name in REWRITTEN:
        other = REWRITTEN[name](tx, name, [obj, *args], kwargs)
        if other is not None:
            name, args, kwargs = *other, {}
    made = run_node(tx, "call_method", name, [obj, *args], kwargs)
    if isinstance(made, ConstantVariable) and made.value is not None and name not in _TOLD:
        raise GraphBreak("unsupported_attribute", f"Tensor.{name}()")
    return made


def _sizes_alone(tx: Any, size: VariableTracker) -> list:
    """The arguments of ``x.new(size)`` one by one: a graph's code has a tuple in the place of a torch.Size, which would be data."""
    items = unpack_iterable(tx, size)
    if not items:
        raise GraphBreak("untraceable_call", "Tensor.new() of no dimension")
    return items


def _requires_already(obj: TensorVariable, args: list) -> bool:
    """Whether ``requires_grad_`` changes nothing; what a tensor from outside requires is guarded anyway.

    Of one that autograd has recorded, it sets a flag that nobody sees. Inside of functions that torch.func transforms, it is refused.
    """
    if torch._C._functorch.maybe_current_level() is not None:  # type: ignore[attr-defined]
        return False
    wanted = args[0] if args else constant(True)
    return isinstance(wanted, ConstantVariable) and wanted.value is obj.fake.requires_grad and (wanted.value or obj.fake.is_leaf)


METHODS: dict[str, Any] = {}  # name -> (tx, tensor, args, kwargs), filled by files that build on this one
AS_TENSOR: dict[type, Any] = {}  # class of tracker -> (tx, torch.tensor or torch.as_tensor, tracker), filled likewise
ATTRIBUTES: dict[str, tuple[Any, Any]] = {}  # name -> (getter, setter), filled by files that build on this one
REWRITTEN: dict[str, Any] = {}  # method -> (tx, name, [self, ...], kwargs) -> (method, arguments) without keywords, None as it is


def tensor_attr(tx: Any, obj: TensorVariable, name: str) -> VariableTracker:
    if name == "__class__":
        return wrap_pinned(tx, obj.cls)
    special.check(tx, obj, "__getattribute__")
    if name in METADATA:
        special.check(tx, obj, name)
        if name == "nbytes" and tx.state.graph.symbols is not None:  # torch's own refuses symbols
            return symbolic.wrap_value(obj.fake.numel() * obj.fake.itemsize)
        value = getattr(obj.value if name == "is_leaf" and "data" in obj.attrs else obj.fake, name)
        if obj.source is not None and name not in GUARDED_METADATA:
            if obj.value is not None and getattr(obj.value, name) != value:  # changed in the trace, or unknown to fake tensors
                raise GraphBreak("unsupported_attribute", f"Tensor.{name}")
            tx.state.guards.add(obj.source.child("ATTR", name), "EQ", value)
        return symbolic.wrap_value(value)
    on_class = lookup.mro_lookup(tx, obj.cls, name)
    if on_class is MISSING:
        found = subclasses.instance_attribute(tx, obj, name)
        if found is None:
            special.check(tx, obj, "__getattr__")
            raise lookup.attribute_error(obj, name)
        return found
    found = subclasses.own_attribute(tx, obj, name, on_class)
    if found is not None:
        return found
    if name in VIEWS:
        return read(tx, obj, name)
    if name in ATTRIBUTES:
        return ATTRIBUTES[name][0](tx, obj)
    if name == "grad_fn" and (not obj.fake.requires_grad or constant_value(tensor_attr(tx, obj, "is_leaf")) is True):
        return NONE
    if lookup.is_plain(tx, on_class, property) and on_class.fget is not None and on_class.fget.__module__ != "torch._tensor":
        return calls.call(tx, wrap_pinned(tx, on_class.fget), [obj], {})
    if isinstance(on_class, (types.GetSetDescriptorType, property)):
        raise GraphBreak("unsupported_attribute", f"Tensor.{name}")
    if type(on_class) in CONSTANT_TYPES:
        return constant(on_class)
    if not callable(on_class) and not isinstance(on_class, (staticmethod, classmethod)):
        raise GraphBreak("unsupported_attribute", f"{obj.cls.__name__}.{name}, which is no method")
    return BuiltinMethodVariable(name, obj)


_layer = Tensors()
kind = _layer.kind
for _name in ("number", "symbolic", "specialise", "takes", "call", "get_attr", "set_attr", "call_method", "with_device", "truth",
              "wrap", "is_constant_type", "is_singleton_type", "block", "is_block"):
    setattr(TENSOR, _name, getattr(_layer, _name))


@handles(operator.setitem)
def setitem(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    attributes.calls.operators.containers.set_item(tx, *args)
    return NONE


def _item(tx: Any, obj: TensorVariable) -> VariableTracker:
    return run_node(tx, "call_method", "item", [obj], {})


def _part(tx: Any, obj: TensorVariable, index: int) -> VariableTracker:
    return run_node(tx, "call_function", operator.getitem, [obj, constant(index)], {})


symbolic.ITEM.append(_item)
symbolic.PART.append(_part)


@handles(torch.is_tensor)
def is_tensor(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    if isinstance(args[0], TensorVariable):
        return constant(True)
    return class_checks.handle_isinstance(tx, [args[0], wrap_pinned(tx, torch.Tensor)], {})


@handles(torch.is_storage)
def is_storage(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    return constant(args[0].python_type() in torch._storage_classes)


def _asked(tx: Any, args: list, kwargs: dict, name: str) -> VariableTracker:
    given = [*args, *kwargs.values()]
    if len(given) != 1 or kwargs.keys() - {"input"} or not isinstance(given[0], TensorVariable):
        raise GraphBreak("untraceable_call", f"{name}() of other than one tensor")
    return call_tensor_method(tx, given[0], name, [], {})


@handles(torch.is_floating_point)
def is_floating_point(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    return _asked(tx, args, kwargs, "is_floating_point")


@handles(torch.is_complex)
def is_complex(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    return _asked(tx, args, kwargs, "is_complex")


@handles(torch.numel)
def numel(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    return _asked(tx, args, kwargs, "numel")


def _load(obj: Any, name: str) -> None:
    """Torch loads an operator, an overload or a namespace of operators when it is first asked for, and keeps it."""
    if name not in vars(obj) and not name.startswith("__"):
        with contextlib.suppress(AttributeError):
            getattr(obj, name)


TENSOR.load = _load
TENSOR.lazy = frozenset(map(id, (torch._ops._Ops, torch._ops._OpNamespace, torch._ops.OpOverloadPacket)))
