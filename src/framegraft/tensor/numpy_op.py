"""One call of a NumPy function as an operation of torch: ``torch.ops.framegraft.numpy_call(arrays, call)``.

The kernel calls the function itself, on arrays that share the tensors' memory: results are NumPy's own, bit for bit, with NumPy's
warnings. Shape propagation asks NumPy, too: it calls the function on ones. So only functions can be called in this way whose
results have a shape and a dtype that do not depend on values, and share no memory with arguments.

``call`` spells the function and its arguments; it is a literal, so that compilers may keep graphs from process to process.
"""

from __future__ import annotations

import ast
import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._mode_utils import no_dispatch

MOST_ELEMENTS = 1 << 23  # of the arguments and results of one call: shape propagation makes them
FUNCTIONS: dict[str, Any] = {}  # by their names in a call; filled by the function in LEARN
LEARN: list[Callable[[], None]] = []  # set by arrays.py, which builds on this file

_ARRAY, _SCALAR, _TUPLE, _DTYPE, _NUMBER, _FLOAT = "array", "scalar", "tuple", "dtype", "number", "float"


def array(index: int, scalar: bool) -> tuple:
    """The argument that is tensor number ``index``, as an array or as the NumPy scalar in it."""
    return (_SCALAR if scalar else _ARRAY, index)


def literal(value: Any) -> Any:
    """A constant argument in a call. TypeError for one that has no form there."""
    numpy: Any = sys.modules["numpy"]
    if type(value) is float:
        return value if value - value == 0.0 else (_FLOAT, str(value))
    if type(value) in (int, bool, str, type(None)):
        return value
    if type(value) is tuple:
        return (_TUPLE, [literal(v) for v in value])
    if type(value) is list:
        return [literal(v) for v in value]
    if isinstance(value, numpy.generic) and is_named(value.dtype):
        return (_NUMBER, value.dtype.name, value.tobytes())
    if isinstance(value, numpy.dtype) or type(value) is type and issubclass(value, numpy.generic):
        dtype = numpy.dtype(value)
        if is_named(dtype):
            return (_DTYPE, dtype.name)
    raise TypeError(type(value).__name__)


def is_named(dtype: Any) -> bool:
    """Whether the dtype is the one that NumPy makes of its name. ``longlong`` and ``int64`` have one name, as have both byte orders."""
    try:
        return same_dtype(sys.modules["numpy"].dtype(dtype.name), dtype)
    except TypeError:
        return False


def same_dtype(dtype: Any, other: Any) -> bool:
    return dtype == other and dtype.num == other.num


def tuple_of(items: list) -> tuple:
    return (_TUPLE, items)


@functools.lru_cache(maxsize=4096)
def _parsed(call: str) -> tuple[str, list, dict]:
    return ast.literal_eval(call)


def _filled(value: Any, arrays: list) -> Any:
    numpy: Any = sys.modules["numpy"]
    if type(value) is list:
        return [_filled(v, arrays) for v in value]
    if type(value) is not tuple:
        return value
    kind, content, *more = value
    if kind == _ARRAY:
        return arrays[content]
    if kind == _SCALAR:
        return arrays[content][()]
    if kind == _TUPLE:
        return tuple(_filled(v, arrays) for v in content)
    if kind == _FLOAT:
        return float(content)
    if kind == _DTYPE:
        return numpy.dtype(content)
    return numpy.frombuffer(more[0], dtype=content)[0]


def _run(call: str, tensors: Any) -> Any:
    if not FUNCTIONS:
        LEARN[0]()
    name, args, kwargs = _parsed(call)
    given = [t.numpy() for t in tensors]
    return FUNCTIONS[name](*_filled(args, given), **{k: _filled(v, given) for k, v in kwargs.items()})


@functools.lru_cache(maxsize=4096)
def inferred(call: str, described: tuple) -> tuple[bool, tuple, tuple, torch.dtype]:
    """Whether the call gives a scalar, and shape, strides (in elements) and dtype of what it gives.

    described: shape, strides and dtype of each tensor. ValueError where NumPy refuses the call, or gives what is no new array.
    """
    numpy: Any = sys.modules["numpy"]
    with no_dispatch(), torch._C.DisableTorchFunction(), warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        tensors = [torch.empty_strided(shape, strides, dtype=dtype).fill_(1) for shape, strides, dtype in described]
        try:
            made = _run(call, tensors)
        except Exception as error:
            raise ValueError(f"{type(error).__name__}: {error}") from None
        if type(made) is not numpy.ndarray and not isinstance(made, numpy.generic):
            raise ValueError(f"it gives a {type(made).__name__}")
        if any(numpy.may_share_memory(made, t.numpy()) for t in tensors) or made.size > MOST_ELEMENTS:
            raise ValueError("its result is a view, or large")
        try:
            result = torch.from_numpy(numpy.asarray(made))
            same = result.numpy().strides == numpy.asarray(made).strides and same_dtype(result.numpy().dtype, made.dtype)
        except (TypeError, ValueError):
            same = False
        if not same:
            raise ValueError(f"no tensor is like its result, of dtype {made.dtype}")
        return isinstance(made, numpy.generic), tuple(result.shape), result.stride(), result.dtype


def describe(tensors: Any) -> tuple:
    """What shape propagation goes by. ValueError for tensors that are no arrays, or large ones, or of unknown sizes."""
    found = []
    for t in tensors:
        if t.device.type != "cpu" or t.layout is not torch.strided:
            raise ValueError("a tensor that is not in memory")
        sizes, strides = tuple(map(int, t.shape)), tuple(map(int, t.stride()))  # symbols are fixed by that
        if t.numel() > MOST_ELEMENTS:
            raise ValueError("a large array")
        found.append((sizes, strides, t.dtype))
    return tuple(found)


def _kernel(arrays: list[torch.Tensor], call: str) -> torch.Tensor:
    return torch.from_numpy(sys.modules["numpy"].asarray(_run(call, arrays)))


def _fake(arrays: list[torch.Tensor], call: str) -> torch.Tensor:
    _, shape, strides, dtype = inferred(call, describe(arrays))
    return torch.empty_strided(shape, strides, dtype=dtype)


_LIBRARIES: list[Any] = []  # an operation lives as long as the library that has defined it


@functools.cache
def operation() -> Callable[..., torch.Tensor]:
    """The operation, defined when it is first asked for: that takes some milliseconds."""
    library = torch.library.Library("framegraft", "FRAGMENT")
    _LIBRARIES.append(library)
    library.define("numpy_call(Tensor[] arrays, str call) -> Tensor")
    library.impl("numpy_call", _kernel, "CompositeExplicitAutograd")
    torch.library.register_fake("framegraft::numpy_call", _fake, lib=library)
    return torch.ops.framegraft.numpy_call.default
