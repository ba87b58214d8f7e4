"""What a kernel takes: fake tensors do not know, so the kernel is asked once, with small tensors of zeros.

A graph that fails at run time has lost what the program did before the operation that failed, if it cannot run twice. So an
operation that its kernel refuses, for the dtypes of its tensors or for a number that these cannot hold, breaks the graph, and
eager mode words the error.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._mode_utils import no_dispatch
from torch.utils._pytree import tree_leaves, tree_map_only

from .seeds import is_recorded, put_back, states

_CPU = torch.device("cpu")
_SYMBOLS = frozenset((torch.SymInt, torch.SymFloat, torch.SymBool))
_LIMITS = (127, 255, 32767, 65504, (1 << 31) - 1, torch.finfo(torch.float32).max)  # of dtypes: numbers between two of them are alike
_FEW = 1 << 14  # above so many elements, only kernels that take any sizes are asked, with sizes of at most _SMALL
_SMALL = 2
_OF_MATRICES = frozenset(getattr(torch.ops.aten, name).default for name in ("mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "dot"))
_MANY = 1 << 20  # numbers may say how large the result is: above this nothing is asked
_PRIVATE = ("_", "mkldnn", "mkl", "onednn", "cudnn", "miopen", "fbgemm", "quantized", "sparse")
_SAFE = ("_softmax", "_log_softmax")
_ANSWERS: dict[tuple, str] = {}  # (operation, dtypes of its tensors ...) -> why not; "" where nothing is against it
_UNKNOWN: Any = object()
_NUMBERS: dict[Any, tuple[int, ...] | None] = {}  # operation -> which arguments are converted to a tensor's dtype; None: not asked
_ABOUT_DTYPES = ("not implemented for", "dtype", "scalar type", "datatype", "data type", "not support", "can't be cast",
                 "floating-point", "floating point", "complex", "bool tensor", "Bool", "Integer division", "without overflow")


def check(func: Any, args: tuple, kwargs: dict) -> None:
    """Raises RuntimeError where the kernel of ``func`` would, for the dtypes of its arguments."""
    numbers = _NUMBERS.get(func, _UNKNOWN)
    if numbers is _UNKNOWN:
        numbers = _NUMBERS[func] = _numbers(func)
    if numbers is None:
        return
    for index in numbers:
        if index < len(args) and type(args[index]) is torch.SymFloat:
            _check_range(args[index], args)
    key: list[Any] = [func]
    if not _describe(args, key) or kwargs and not _describe(kwargs.values(), key):
        return
    known = tuple(key)
    why = _ANSWERS.get(known)
    if why is None:
        why = _ask(func, args, kwargs)
        if why is not None:
            _ANSWERS[known] = why
    if why:
        raise RuntimeError(why)


def _numbers(func: Any) -> tuple[int, ...] | None:
    """Operations of torch's own that compute are asked: views and copies take any dtype.

    Of these, the public ones: what composite operations call in turn (mkldnn_rnn_layer, ...) trusts its caller, and may crash.
    """
    name = func._schema.name.removeprefix("aten::")
    if func.namespace != "aten" or func.is_view or "copy" in name or name.startswith(_PRIVATE) and name not in _SAFE:
        return None
    return tuple(i for i, argument in enumerate(func._schema.arguments) if "number" in str(argument.type))


def _check_range(number: Any, args: tuple) -> None:
    """Guards that a number that changes from call to call fits a tensor's dtype."""
    dtype = next((value.dtype for value in args if type(value) is FakeTensor), torch.get_default_dtype())
    if dtype.is_floating_point and dtype.itemsize < 8 and number.node.has_hint():
        limit = torch.finfo(dtype).max
        if number > limit or number < -limit:
            raise RuntimeError(f"a number that {dtype} may not hold")


def _describe(values: Iterable[Any], key: list[Any]) -> bool:
    """Appends what a kernel's answer may depend on; False where it cannot be asked."""
    for value in values:
        kind = type(value)
        if kind is FakeTensor:
            where = value.fake_device.type
            if where not in ("cpu", "cuda"):
                return False
            key.append(value.dtype if where == "cpu" else (value.dtype, value.fake_device))
        elif kind in (tuple, list):
            key.append(list)  # an empty one is something, too
            if not _describe(value, key):
                return False
        elif kind in _SYMBOLS or isinstance(value, torch.Tensor):
            return False
        else:
            key.append(value if kind in (bool, torch.dtype, str) else kind)
            if kind in (int, float) and abs(value) > _LIMITS[0]:
                key.append((value < 0, bisect.bisect(_LIMITS, abs(value)), kind is float and math.isinf(value)))
    return True


def _size(size: Any) -> int:
    """The size, or that of this call where it differs from call to call."""
    if type(size) is int:
        return size
    return size.node.hint if size.node.has_hint() else _FEW + 1


def _elements(fake: FakeTensor) -> int:
    return math.prod(map(_size, fake.shape))


def _ask(func: Any, args: tuple, kwargs: dict) -> str | None:
    """None: not asked, for the sizes that are given, which say nothing of the dtypes."""
    any_size = torch.Tag.pointwise in func.tags or func in _OF_MATRICES  # other kernels may rely on sizes that fit each other
    if not any_size and any(type(value) is FakeTensor and _elements(value) > _FEW for value in args):  # most of them end here
        return None
    leaves = tree_leaves((args, kwargs))
    fakes = [value for value in leaves if type(value) is FakeTensor]
    there = {fake.fake_device for fake in fakes if fake.fake_device.type != "cpu"}
    if there and (not any_size or not torch.cuda.is_initialized() or any(map(is_recorded, there))):
        return None  # a check of values that fails there takes the device down with it; and a CUDA graph would record the kernel
    if not fakes or math.prod(abs(value) or 1 for value in leaves if type(value) is int) > _MANY:
        return None
    few = sum(map(_elements, fakes)) <= _FEW
    if not few and not any_size:
        return None
    limit = _FEW if few else _SMALL

    def real(fake: FakeTensor) -> torch.Tensor:
        return torch.zeros([min(_size(size), limit) for size in fake.shape], dtype=fake.dtype, device=fake.fake_device)

    random = states((_CPU, *there))
    with no_dispatch(), torch.no_grad():
        args, kwargs = tree_map_only(FakeTensor, real, (args, kwargs))
        try:
            func(*args, **kwargs)
        except (RuntimeError, NotImplementedError, TypeError, ValueError) as error:
            text = str(error)
            return text if any(word in text for word in _ABOUT_DTYPES) else ""  # the rest is about sizes, which are not these
        finally:
            put_back(random)
    return ""
