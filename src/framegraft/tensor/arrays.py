"""NumPy's arrays: a tensor of the graph seen as an array, arrays from outside, and what functions of NumPy make of them.

An array stands on a tensor of the graph that shares its memory. Views of arrays are views of the tensor; everything else is a node
that calls NumPy itself (``numpy_op``). An array that a node has made can be written to; writing to others breaks the graph, for eager
mode would not count up the version of a tensor that has the same memory.
"""

from __future__ import annotations

import functools
import inspect
import operator
import sys
import types
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from ..errors import GraphBreak
from ..interp.state import need_constant, realize
from ..model.dispatch import HANDLERS, METHODS, handles
from ..model.value import (
    MISSING,
    NONE,
    ConstantVariable,
    IteratorVariable,
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
from ..semantics import instances
from ..semantics.wrapping import need_constant_deep
from . import numpy, numpy_op, running, torchops
from .array_shapes import shaped_by_values
from .raising import note_errors

# Functions without an effect, whose results are new, and have shapes and dtypes that do not depend on values. Beside these: ufuncs.
FUNCTIONS = (
    "all any amax amin argmax argmin argsort around arange array average clip concatenate convolve copy cov cross cumprod cumsum "
    "diff dot einsum empty empty_like eye full full_like hstack identity inner interp isclose kron linspace max mean median min "
    "nan_to_num nanmax nanmean nanmin nansum ones ones_like outer pad percentile prod ptp quantile repeat roll round sort stack std sum "
    "tensordot tile trace tri tril triu var vdot vstack where zeros zeros_like linalg.norm column_stack corrcoef digitize dstack ediff1d "
    "geomspace isin logspace nancumprod nancumsum nanmedian nanpercentile nanprod nanquantile nanstd nanvar searchsorted take "
    "take_along_axis vander fft.fft fft.fft2 fft.fftfreq fft.fftn fft.fftshift fft.ifft fft.ifft2 fft.ifftn fft.ifftshift fft.irfft "
    "fft.rfft fft.rfftfreq").split()
_LIKE = frozenset(("empty_like", "full_like", "ones_like", "zeros_like"))
_MOST_GRIDS = 4
_METHODS = ("all any argmax argmin argsort clip copy cumprod cumsum dot flatten max mean min prod repeat round std sum trace var").split()
# Operators are not always the ufunc of their name: the power of an array of truths with 2 is its square, another dtype.
_OPERATORS = {name: getattr(operator, name if name not in ("and", "or") else f"{name}_")
              for name in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()}
_COMPARISONS = {name: getattr(operator, name) for name in "lt le gt ge eq ne".split()}
_UNARY = {name: getattr(operator, name) for name in "neg pos abs invert".split()}


class ArrayVariable(ObjectVariable):
    """An array, or one of NumPy's scalars that a node gives. From outside: ``tensor`` is None until the graph needs it.

    ``fresh``: a node has made its memory. ``root``: the array whose memory it has; ``shared``: others have that of this one.
    """

    __slots__ = ("tensor", "fresh", "_root", "shared")

    def __init__(self, cls: type, tensor: TensorVariable | None, value: Any = MISSING, source: Any = None, *, fresh: bool = False) -> None:
        super().__init__(value, cls, source)
        self.tensor = tensor
        self.fresh = fresh
        self._root: ArrayVariable | None = None  # itself: a reference would be a cycle, and hold the program's tensor
        self.shared = False

    @property
    def root(self) -> ArrayVariable:
        return self._root or self

    def owns(self) -> bool:
        """Whether the array is to have memory of its own behind the graph, in the same order: then nothing else there shares it."""
        if not self.fresh or self.root is not self or self.shared:
            return False
        array = _like(self.tensor.fake)  # type: ignore[union-attr]
        return array.copy(order="K").strides == array.strides

    def view(self, tensor: TensorVariable) -> ArrayVariable:
        """Another array with the same memory."""
        made = ArrayVariable(self.cls, tensor, fresh=self.fresh)
        made._root = self.root
        made._root.shared = True
        return made

    @property
    def scalar(self) -> bool:
        return self.cls.__name__ != "ndarray"


def _like(fake: Any) -> Any:
    """An array of any contents that lies as the tensor does."""
    return torch.empty_strided(tuple(map(int, fake.shape)), tuple(map(int, fake.stride())), dtype=fake.dtype).numpy()


def _dtype(dtype: torch.dtype) -> Any:
    """NumPy's dtype of arrays that share memory with tensors of ``dtype``; TypeError where there are none."""
    return torch.empty(0, dtype=dtype).numpy().dtype


class _AsTensor:
    """Accessor: the tensor that shares an array's memory; None where there is none, or where writing to it would be an error."""

    __name__ = "as_tensor"

    def __call__(self, array: Any) -> Any:
        try:
            tensor = torch.from_numpy(array) if array.flags.writeable else None
            return tensor if tensor is None or numpy_op.same_dtype(tensor.numpy().dtype, array.dtype) else None
        except (TypeError, ValueError):
            return None


_AS_TENSOR = _AsTensor()


def tensor_of(tx: Any, array: ArrayVariable) -> TensorVariable:
    """The tensor in the graph on which the array stands."""
    tx.state.graph.has_arrays = True
    if array.tensor is None:
        state, value = tx.state, _AS_TENSOR(array.value)
        if value is None or state.graph.body is not None or array.source is None:
            raise GraphBreak("numpy_call", f"an array of dtype {array.value.dtype}, or one that cannot be written to")
        source = array.source.child("PYCALL", _AS_TENSOR)
        state.guards.add(source, "TENSOR", state.tensor_spec(value, None))
        state.keep_alive.append(value)
        array.tensor = state.graph.add_input(value, source, None)
    return array.tensor


def wrap(state: Any, value: Any, source: Any) -> ArrayVariable:
    """An array from outside."""
    state.guards.add(source, "TYPE", type(value))
    return ArrayVariable(type(value), None, value, source)


# -- from tensors, and back


def of_tensor(tx: Any, obj: TensorVariable, args: list, kwargs: dict) -> VariableTracker:
    """``Tensor.numpy()``"""
    fake = obj.fake
    if set(kwargs) == {"force"} and type(force := need_constant(kwargs["force"], "force")) is bool and fake.device.type == "cpu":
        kwargs = {}
        if force and fake.requires_grad:
            obj = running.run_node(tx, "call_method", "detach", [obj], {})  # type: ignore[assignment]
            fake = obj.fake
    if args or kwargs or fake.requires_grad or type(fake) is not FakeTensor or fake.is_conj() or fake.is_neg():
        raise GraphBreak("tensor_item", "Tensor.numpy() of a tensor with a gradient or a pending operation, or with arguments")
    if tx.state.graph.body is not None or obj.cls not in (torch.Tensor, torch.nn.Parameter) or "data" in obj.attrs:
        raise GraphBreak("tensor_item", "Tensor.numpy() of a subclass, of a tensor whose data was set, or in a function given to torch")
    tx.state.graph.has_arrays = True
    _describe(tx, [obj])
    try:
        _dtype(fake.dtype)
    except TypeError:
        raise GraphBreak("numpy_call", f"NumPy has no {fake.dtype}") from None
    return ArrayVariable(_numpy().ndarray, obj)


torchops.METHODS["numpy"] = of_tensor


@handles(torch.from_numpy)
def from_numpy(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    if kwargs or len(args) != 1 or not isinstance(args[0], ArrayVariable) or args[0].scalar:
        raise GraphBreak("numpy_call", "torch.from_numpy() of something other than an array")
    array = args[0]
    tensor = tensor_of(tx, array)
    if array.source is None and not array.fresh:
        # It has the memory of a tensor that the program has, too, but eager mode counts changes of the two apart.
        raise GraphBreak("numpy_call", "torch.from_numpy() of a view of a tensor's memory")
    array.root.shared = True
    return running.run_node(tx, "call_method", "detach", [tensor], {})


def _as_tensor(tx: Any, fn: Any, array: ArrayVariable) -> VariableTracker:
    """``torch.tensor(array)`` and ``torch.as_tensor(array)``"""
    if fn is torch.as_tensor and not array.scalar:
        return from_numpy(tx, [array], {})
    if fn is not torch.tensor or array.scalar:
        raise GraphBreak("numpy_call", f"torch.{fn.__name__}() of a {array.cls.__name__}")
    made = call(tx, "array", [array], {})
    assert isinstance(made, ArrayVariable)
    return tensor_of(tx, made)  # the array itself is gone


torchops.AS_TENSOR[ArrayVariable] = _as_tensor


def _with_tensors(tx: Any, args: list) -> list:
    """The arguments of a tensor's indexing, with tensors for arrays of positions in the key (sequenceToVariable)."""
    obj, key, *value = args
    key = realize(key, tx.state)
    items = [realize(item, tx.state) for item in key.items] if type(key) is TupleVariable else [key]
    if not any(isinstance(item, ArrayVariable) for item in items):
        return args
    items = [_positions(tx, item) if isinstance(item, ArrayVariable) else item for item in items]
    return [obj, TupleVariable(items) if type(key) is TupleVariable else items[0], *value]


def _positions(tx: Any, array: ArrayVariable) -> VariableTracker:
    made: Any = _as_tensor(tx, torch.tensor, array)
    if made.fake.dtype not in (torch.int64, torch.bool) or not made.fake.dim():
        raise GraphBreak("numpy_call", "an array of something other than positions or truth values as an index of a tensor")
    return made


running.KEYS.append(_with_tensors)


# -- calls


def _numpy() -> Any:
    return sys.modules["numpy"]


def _describe(tx: Any, tensors: list) -> tuple:
    """Sizes that differ from call to call are constants where a break is none the better."""
    sizes = [n for t in tensors for n in (*t.fake.shape, *t.fake.stride())]
    symbols = tx.state.graph.symbols
    if any(type(n) is torch.SymInt and (not tx.state.graph.whole or symbols.is_unbacked(n)) for n in sizes):
        raise GraphBreak("numpy_call", "an array whose sizes differ from call to call")
    try:
        return numpy_op.describe([t.fake for t in tensors])
    except ValueError as error:
        raise GraphBreak("numpy_call", str(error)) from None


class _Spelling:
    """Arguments as a literal, and the tensors among them."""

    def __init__(self, tx: Any) -> None:
        self.tx = tx
        self.tensors: list[TensorVariable] = []

    def of(self, tracker: VariableTracker) -> Any:
        tracker = _known(self.tx, tracker)
        if isinstance(tracker, ArrayVariable):
            tensor = tensor_of(self.tx, tracker)
            if all(tensor is not t for t in self.tensors):
                self.tensors.append(tensor)
            return numpy_op.array(next(i for i, t in enumerate(self.tensors) if t is tensor), tracker.scalar)
        if type(tracker) is ListVariable:
            return [self.of(item) for item in tracker.items]
        if type(tracker) is TupleVariable or type(tracker) is SizeVariable:
            return numpy_op.tuple_of([self.of(item) for item in tracker.items])
        if isinstance(tracker, ConstantVariable) and type(tracker.value) is not torch.Size:
            value = tracker.value
        elif isinstance(tracker, ObjectVariable) and any(tracker.value is cls for cls in (int, float, bool)):
            value = _numpy().dtype(tracker.value)
        elif isinstance(tracker, ObjectVariable) and (tracker.cls is type or issubclass(tracker.cls, _numpy().dtype)):
            value = tracker.value
        else:
            raise GraphBreak("numpy_call", f"a NumPy function of a {tracker.python_type().__name__}")
        try:
            return numpy_op.literal(value)
        except TypeError as error:
            raise GraphBreak("numpy_call", f"a NumPy function of a {error}") from None


_CPU = torch.device("cpu")


def has_array(tracker: Any) -> bool:
    """Whether there is an array in the argument. ``tracker``: realized."""
    if isinstance(tracker, (ListVariable, TupleVariable)):
        return any(has_array(getattr(item, "tracker", None) or item) for item in tracker.items)
    return isinstance(tracker, ArrayVariable)


def call(tx: Any, name: str, args: list, kwargs: dict) -> VariableTracker:
    """The NumPy function ``name``, as a node."""
    if (name == "array" or name in _LIKE) and args and isinstance(args[0], TensorVariable):
        if name != "array" and not args[0].fake.is_contiguous():
            raise GraphBreak("numpy_call", f"numpy.{name}() of a tensor that does not lie in order, as the result does")
        args = [of_tensor(tx, args[0], [], {}), *args[1:]]  # what Tensor.__array__() gives
    if tx.state.graph.body is not None:
        raise GraphBreak("numpy_call", f"numpy.{name}() in a function given to torch")
    if tx.state.catching:
        raise GraphBreak("unsupported_context", f"numpy.{name}(), which may warn, inside of warnings.catch_warnings")
    place, overwrites = _place_of(name, "out"), _place_of(name, "overwrite_input")
    if "overwrite_input" in kwargs or overwrites is not None and len(args) > overwrites:
        raise GraphBreak("numpy_call", f"numpy.{name}() that may overwrite what it is given")
    if "out" in kwargs or place is not None and len(args) > place:
        return _call_into(tx, name, args, dict(kwargs), place)
    if _shaped_by_values(tx, name, args, kwargs):
        raise GraphBreak("numpy_call", f"numpy.{name}() with an array that says which shape or axis")
    spelling = _Spelling(tx)
    text = repr((name, [spelling.of(a) for a in args], {k: spelling.of(v) for k, v in kwargs.items()}))
    if not spelling.tensors:  # AOTAutograd knows what is written to what has come of its own tensors alone
        spelling.tensors.append(running.run_node(tx, "call_function", torch.empty, [constant(0)], {"device": constant(_CPU)}))  # type: ignore[arg-type]
    try:
        scalar, *_, dtype = numpy_op.inferred(text, _describe(tx, spelling.tensors))
    except ValueError as error:
        raise GraphBreak("numpy_call", f"numpy.{name}(): {error}") from None
    note_errors(tx.state, name, True)  # warnings may be errors
    made = running.run_node(tx, "call_function", numpy_op.operation(), [ListVariable(list(spelling.tensors)), constant(text)], {})
    assert isinstance(made, TensorVariable)
    return ArrayVariable(_dtype(dtype).type if scalar else _numpy().ndarray, made, fresh=not scalar)


def _shaped_by_values(tx: Any, name: str, args: list, kwargs: dict) -> bool:
    if name.startswith("operator.") or type(numpy_op.FUNCTIONS[name]) is _numpy().ufunc:
        return False

    def holds(tracker: Any, any_array: bool) -> bool:
        tracker = realize(tracker, tx.state)
        if isinstance(tracker, (ListVariable, TupleVariable)):
            return any(holds(item, any_array) for item in tracker.items)
        if not isinstance(tracker, ArrayVariable):
            return False
        fake = tensor_of(tx, tracker).fake
        return any_array or not (fake.dtype.is_floating_point or fake.dtype.is_complex) and fake.numel() == 1

    return shaped_by_values(name, args, kwargs, holds)


_OUT_OF_C = {"dot": 2, "concatenate": 2}


@functools.cache
def _place_of(name: str, parameter: str) -> int | None:
    """Which positional argument of a function is ``out``, or another one; None where it has none there."""
    fn = numpy_op.FUNCTIONS[name]
    if type(fn) is _numpy().ufunc:
        return fn.nin if parameter == "out" else None
    if not isinstance(getattr(fn, "__wrapped__", None), types.FunctionType):
        return _OUT_OF_C.get(name) if parameter == "out" else None
    names = [n for n, p in inspect.signature(fn).parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
    return names.index(parameter) if parameter in names else None


def _call_into(tx: Any, name: str, args: list, kwargs: dict, place: int | None) -> VariableTracker:
    """The call with an array for its result: one that it would give by itself, so that no loop or shape is another.

    A ufunc does not ask for the dtype of ``out``, and casts what it gives. A reduction computes in that dtype.
    """
    fn = numpy_op.FUNCTIONS[name]
    casting = "no"
    if place is not None and len(args) > place:
        if "out" in kwargs or len(args) > place + 1:
            raise GraphBreak("numpy_call", f"numpy.{name}() with arguments behind out")
        kwargs["out"] = args[place]
        args = args[:place]
    out = realize(kwargs.pop("out"), tx.state)
    if type(fn) is _numpy().ufunc:
        if type(out) is TupleVariable and len(out.items) == 1:
            out = realize(out.items[0], tx.state)
        casting = "same_kind" if fn.signature is None else "no"
        if "casting" in kwargs and casting != "no":
            casting = need_constant(realize(kwargs["casting"], tx.state), "casting")
    if out is NONE:
        return call(tx, name, args, kwargs)
    if name == "concatenate" and "dtype" in kwargs:
        raise GraphBreak("raised_exception", "numpy.concatenate() takes out or dtype, not both")
    if not isinstance(out, ArrayVariable) or out.scalar or "where" in kwargs:
        raise GraphBreak("numpy_call", f"numpy.{name}() into something other than an array, or into parts of one")
    made: Any = call(tx, name, args, kwargs)
    into, given = tensor_of(tx, out).fake, made.tensor.fake
    if casting == "no" and given.dtype != into.dtype or given.shape != into.shape or not into.is_contiguous():
        raise GraphBreak("numpy_call", f"numpy.{name}() into an array of another dtype, shape or order than its result")
    _write(tx, out, made, casting)
    return out


def _view(tx: Any, array: ArrayVariable, name: str, args: list) -> VariableTracker:
    if array.scalar:
        raise GraphBreak("numpy_call", f"{name} of a {array.cls.__name__}")
    made = running.run_node(tx, "call_method", name, [tensor_of(tx, array), *args], {})
    assert isinstance(made, TensorVariable)
    given = [need_constant(a, "a size") for a in args]
    _check_strides(made, getattr(_like(array.tensor.fake), _SAME.get(name, name))(*given))  # type: ignore[union-attr]
    return array.view(made)


_SAME = {"view": "reshape", "permute": "transpose", "transpose": "swapaxes"}  # methods of tensors and of arrays


def _check_strides(made: TensorVariable, wanted: Any) -> None:
    """GraphBreak where NumPy gives the view other strides: those of dimensions with fewer than two elements."""
    if _like(made.fake).strides != wanted.strides:
        raise GraphBreak("numpy_call", "a view with strides that NumPy chooses otherwise than torch")


# -- operators, methods, attributes


def _operator(name: str, mirrored: bool) -> Any:
    def method(tx: Any, obj: ArrayVariable, args: list, kwargs: dict) -> VariableTracker:
        args = [_known(tx, a) for a in args]
        if len(args) != 1 or kwargs or not isinstance(args[0], (ArrayVariable, ConstantVariable)):
            raise GraphBreak("numpy_call", f"numpy.{name} of {', '.join(a.python_type().__name__ for a in args)}")
        if isinstance(args[0], ConstantVariable) and type(args[0].value) not in (int, float, bool, *numpy.SCALARS):
            raise GraphBreak("numpy_call", f"numpy.{name} of a {args[0].python_type().__name__}")
        return call(tx, f"operator.{name}", [*args, obj] if mirrored else [obj, *args], {})

    return method


def _unary(name: str) -> Any:
    def method(tx: Any, obj: ArrayVariable, args: list, kwargs: dict) -> VariableTracker:
        return call(tx, f"operator.{name}", [obj], {})

    return method


def _own(name: str) -> Any:
    def method(tx: Any, obj: ArrayVariable, args: list, kwargs: dict) -> VariableTracker:
        return call(tx, f"ndarray.{name}", [obj, *args], kwargs)

    return method


def _in_place(name: str) -> Any:
    def method(tx: Any, obj: ArrayVariable, args: list, kwargs: dict) -> VariableTracker:
        made = METHODS[ArrayVariable, f"__{name}__"](tx, obj, args, kwargs)
        if obj.scalar:
            return made
        _write(tx, obj, made, "same_kind")
        return obj

    return method


def _write(tx: Any, target: ArrayVariable, value: ArrayVariable, casting: str) -> None:
    """``target[...] = value``"""
    if not target.fresh:
        raise GraphBreak("numpy_call", "an array from outside written to, or one that shares a tensor's memory")
    dtypes = [_dtype(tensor_of(tx, a).fake.dtype) for a in (value, target)]
    if not _numpy().can_cast(*dtypes, casting=casting):
        raise GraphBreak("raised_exception", f"a {dtypes[0]} written to an array of {dtypes[1]}")
    if dtypes[0] != dtypes[1] or value.scalar:
        value = call(tx, "array", [value, numpy.wrap_dtype(tx, dtypes[1])], {})  # type: ignore[assignment]
    running.run_node(tx, "call_method", "copy_", [target.tensor, value.tensor], {})


def _setitem(tx: Any, obj: ArrayVariable, args: list, kwargs: dict) -> VariableTracker:
    key, value = (realize(a, tx.state) for a in args)
    fake = tensor_of(tx, obj).fake
    if isinstance(value, ConstantVariable) and type(value.value) in (int, float, bool):
        value = call(tx, "array", [value, numpy.wrap_dtype(tx, _dtype(fake.dtype))], {})
    if not isinstance(value, ArrayVariable) or not obj.fresh:
        raise GraphBreak("numpy_call", "an array written to, or what cannot be an item of one")
    if isinstance(key, ArrayVariable):
        mask = tensor_of(tx, key).fake
        if mask.dtype is not torch.bool or mask.shape != fake.shape or tensor_of(tx, value).fake.dim():
            raise GraphBreak("numpy_call", "an array indexed with an array of numbers")
        chosen = call(tx, "array", [value, numpy.wrap_dtype(tx, _dtype(fake.dtype))], {})
        _write(tx, obj, call(tx, "where", [key, chosen, obj], {}), "no")  # type: ignore[arg-type]
        return NONE
    part = _part(tx, obj, key)
    _write(tx, ArrayVariable(obj.cls, part, fresh=True), value, "unsafe")
    return NONE


def _iterate(tx: Any, obj: ArrayVariable, args: list, kwargs: dict) -> VariableTracker:
    if obj.scalar or tensor_of(tx, obj).fake.dim() < 2:
        raise GraphBreak("numpy_call", "a loop over the numbers of an array")
    rows: list = [_getitem(tx, obj, [constant(i)], {}) for i in range(obj.tensor.fake.shape[0])]  # type: ignore[union-attr]
    return IteratorVariable(rows, None, type(iter(_numpy().zeros(1))))


def _astype(tx: Any, obj: ArrayVariable, args: list, kwargs: dict) -> VariableTracker:
    given = {**dict(zip(("dtype",), args, strict=False)), **kwargs}
    copy = realize(given.pop("copy", constant(True)), tx.state)
    known = len(args) + len(kwargs) == len(given) + ("copy" in kwargs) and "dtype" in given and not given.keys() - {"dtype", "casting"}
    if not known or not isinstance(copy, ConstantVariable) or type(copy.value) is not bool:
        raise GraphBreak("numpy_call", "ndarray.astype() with other arguments than a dtype, casting and copy")
    dtype = given.pop("dtype")
    if not copy.value and not obj.scalar and "casting" not in given and _is_dtype(tx, dtype, tensor_of(tx, obj).fake.dtype):
        return obj
    return call(tx, "ndarray.astype", [obj, dtype], given)


def _is_dtype(tx: Any, tracker: VariableTracker, dtype: torch.dtype) -> bool:
    try:
        return _numpy().dtype(numpy.dtype_like(realize(tracker, tx.state))) == _dtype(dtype)
    except TypeError:  # no dtype's name
        return False


def _fill(tx: Any, obj: ArrayVariable, args: list, kwargs: dict) -> VariableTracker:
    if len(args) != 1 or kwargs or obj.scalar:
        raise GraphBreak("numpy_call", "ndarray.fill() with other arguments than a number")
    return _setitem(tx, obj, [constant(...), args[0]], {})


def _sizes(tx: Any, args: list) -> list | None:
    """Sizes or dimensions, given one by one or in a tuple."""
    items = [realize(a, tx.state) for a in args]
    if len(items) == 1 and isinstance(items[0], (TupleVariable, ListVariable)):
        items = list(items[0].items)
    items = [_known(tx, i) for i in items]
    if not all(isinstance(i, ConstantVariable) and type(i.value) is int for i in items):
        return None
    return items


def _reshape(tx: Any, obj: ArrayVariable, args: list, kwargs: dict) -> VariableTracker:
    """A view where both NumPy and torch make one: of what lies in the order of its elements."""
    sizes = _sizes(tx, args)
    if kwargs or not sizes or not tensor_of(tx, obj).fake.is_contiguous() or 0 in obj.tensor.fake.shape:  # type: ignore[union-attr]
        raise GraphBreak("numpy_call", "ndarray.reshape() of an array that does not lie in order, or with an order")
    return _view(tx, obj, "view", sizes)


def _ravel(tx: Any, obj: ArrayVariable, args: list, kwargs: dict) -> VariableTracker:
    if args or kwargs:
        raise GraphBreak("numpy_call", "ndarray.ravel() with an order")
    return _reshape(tx, obj, [constant(-1)], {})


def _transpose(tx: Any, obj: ArrayVariable, args: list, kwargs: dict) -> VariableTracker:
    rank = tensor_of(tx, obj).fake.dim()
    dims = _sizes(tx, args) if args else [constant(d) for d in reversed(range(rank))]
    if kwargs or dims is None or len(dims) != rank:
        raise GraphBreak("numpy_call", "ndarray.transpose() with other arguments than all dimensions")
    return _view(tx, obj, "permute", dims) if rank > 1 else _view(tx, obj, "view", [constant(int(n)) for n in obj.tensor.fake.shape])  # type: ignore[union-attr]


def _swapaxes(tx: Any, obj: ArrayVariable, args: list, kwargs: dict) -> VariableTracker:
    if kwargs or len(args) != 2:
        raise GraphBreak("numpy_call", "ndarray.swapaxes() with keywords")
    return _view(tx, obj, "transpose", args)


def _parts(tx: Any, key: VariableTracker) -> list:
    return [_known(tx, i) for i in (key.items if isinstance(key, TupleVariable) else [key])]


def _known(tx: Any, part: VariableTracker) -> VariableTracker:
    """A number or a slice without symbols, anything else as it is."""
    part = realize(part, tx.state)
    if isinstance(part, SliceVariable):
        return SliceVariable([_known(tx, item) for item in part.items])
    return constant(tx.state.graph.symbols.fixed(part)) if type(part) is SymbolicVariable else part


def _part(tx: Any, obj: ArrayVariable, key: VariableTracker) -> TensorVariable:
    """The view that numbers and slices select."""
    tensor = tensor_of(tx, obj)
    if not all(map(_is_basic, _parts(tx, key))) or obj.scalar:
        raise GraphBreak("numpy_call", "an array indexed with something other than numbers and slices")
    made = running.run_node(tx, "call_function", operator.getitem, [tensor, key], {})
    assert isinstance(made, TensorVariable)
    return made


def _getitem(tx: Any, obj: ArrayVariable, args: list, kwargs: dict) -> VariableTracker:
    key = realize(args[0], tx.state)
    part, parts = _part(tx, obj, key), _parts(tx, key)
    numbers = [isinstance(p, ConstantVariable) and type(p.value) is int for p in parts]
    if all(numbers) and len(parts) == obj.tensor.fake.dim():  # type: ignore[union-attr] - one number, read out
        number = running.run_node(tx, "call_method", "clone", [part], {})
        assert isinstance(number, TensorVariable)
        return ArrayVariable(_dtype(part.fake.dtype).type, number)
    plain = tuple(need_constant_deep(p) if isinstance(p, ConstantVariable) else slice(*map(need_constant_deep, p.items)) for p in parts)
    _check_strides(part, _like(obj.tensor.fake)[plain])  # type: ignore[union-attr]
    return obj.view(part)


def _is_basic(part: VariableTracker) -> bool:
    if isinstance(part, ConstantVariable):
        return part.value is None or part.value is Ellipsis or type(part.value) is int
    if isinstance(part, SliceVariable):
        items = [getattr(i, "value", MISSING) for i in part.items]
        return all(i is None or type(i) is int for i in items) and (items[2] is None or items[2] > 0)
    return False


def _len(tx: Any, obj: ArrayVariable, args: list, kwargs: dict) -> VariableTracker:
    fake = tensor_of(tx, obj).fake
    if obj.scalar or not fake.dim():
        raise GraphBreak("raised_exception", "len() of an array without dimensions")
    return constant(int(fake.shape[0]))


def attribute(tx: Any, obj: ArrayVariable, name: str) -> VariableTracker | None:
    """An attribute that the tensor tells, None for others: methods are found as usual."""
    if name not in ("shape", "ndim", "size", "dtype", "T", "itemsize", "nbytes", "strides", "real"):
        return None
    fake = tensor_of(tx, obj).fake
    if name == "T":
        return _transpose(tx, obj, [], {})
    if name == "real":
        return None if fake.is_complex() or obj.scalar else obj
    if name == "strides":
        return TupleVariable([constant(int(n) * fake.dtype.itemsize) for n in fake.stride()])
    if name == "shape":
        return TupleVariable([constant(int(n)) for n in fake.shape])
    if name == "dtype":
        return numpy.wrap_dtype(tx, _dtype(fake.dtype))
    size = int(fake.numel())
    values = {"ndim": fake.dim(), "size": size, "itemsize": fake.dtype.itemsize, "nbytes": size * fake.dtype.itemsize}
    return constant(values[name])


def _traced(name: str, fold: Any) -> Any:
    def handler(tx: Any, args: list, kwargs: dict) -> VariableTracker:
        if fold is not None and not any(map(has_array, (*args, *kwargs.values()))):
            return fold(tx, args, kwargs)
        return call(tx, name, args, kwargs)

    return handler


def learn() -> None:
    """Called before each capture: registers what is known of NumPy's arrays, once NumPy is loaded."""
    numpy.learn()
    found: Any = sys.modules.get("numpy")
    if numpy_op.FUNCTIONS or not numpy.SCALARS:
        return
    table = {name: operator.attrgetter(name)(found) for name in FUNCTIONS}
    table |= {fn.__name__: fn for fn in vars(found).values() if type(fn) is found.ufunc and fn.nout == 1}
    for name, fn in table.items():
        HANDLERS[id(fn)] = _traced(name, HANDLERS.get(id(fn)))
        numpy.KNOWN[id(fn)] = fn
    numpy_op.FUNCTIONS.update(table)
    numpy_op.FUNCTIONS.update((f"operator.{name}", fn) for name, fn in (_OPERATORS | _COMPARISONS | _UNARY).items())
    numpy_op.FUNCTIONS.update((f"ndarray.{name}", getattr(found.ndarray, name)) for name in (*_METHODS, "astype"))
    for index in range(_MOST_GRIDS):
        numpy_op.FUNCTIONS[f"meshgrid.{index}"] = functools.partial(_grid, index)
    HANDLERS[id(found.meshgrid)] = _meshgrid
    numpy.KNOWN[id(found.meshgrid)] = found.meshgrid
    numpy.WRAPPERS[found.ndarray] = wrap
    HANDLERS[id(found.asarray)] = _asarray
    numpy.KNOWN[id(found.asarray)] = found.asarray


def _asarray(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    if len(args) == 1 and not kwargs and isinstance(args[0], TensorVariable):
        return of_tensor(tx, args[0], [], {})
    if args and isinstance(args[0], (ListVariable, TupleVariable)):
        return HANDLERS[id(_numpy().array)](tx, args, kwargs)  # which makes a new array, too
    if len(args) != 1 or kwargs or not isinstance(args[0], ArrayVariable):
        raise GraphBreak("numpy_call", "numpy.asarray() of something other than an array")
    return call(tx, "array", args, {}) if args[0].scalar else args[0]


def _grid(index: int, *arrays: Any, **options: Any) -> Any:
    return _numpy().meshgrid(*arrays, **options)[index]


def _meshgrid(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    """One call for each of what it gives."""
    if not 1 <= len(args) <= _MOST_GRIDS or kwargs.keys() - {"indexing", "sparse"} or not all(map(has_array, args)):
        raise GraphBreak("numpy_call", "numpy.meshgrid() of something other than arrays, or of many")
    made = [call(tx, f"meshgrid.{index}", args, kwargs) for index in range(len(args))]
    return (ListVariable if type(_numpy().meshgrid()) is list else TupleVariable)(made)


def _register() -> None:
    for name in _OPERATORS:
        METHODS[ArrayVariable, f"__{name}__"] = _operator(name, False)
        METHODS[ArrayVariable, f"__r{name}__"] = _operator(name, True)
        METHODS[ArrayVariable, f"__i{name}__"] = _in_place(name)
    for name in _COMPARISONS:
        METHODS[ArrayVariable, f"__{name}__"] = _operator(name, False)
    for name in _UNARY:
        METHODS[ArrayVariable, f"__{name}__"] = _unary(name)
    for name in _METHODS:
        METHODS[ArrayVariable, name] = _own(name)
    own = {"astype": _astype, "fill": _fill, "reshape": _reshape, "ravel": _ravel, "transpose": _transpose, "swapaxes": _swapaxes,
           "__getitem__": _getitem, "__setitem__": _setitem, "__iter__": _iterate, "__len__": _len}
    METHODS.update({(ArrayVariable, name): handler for name, handler in own.items()})


_register()
numpy_op.LEARN.append(learn)
instances.MEMBERS[ArrayVariable] = attribute
