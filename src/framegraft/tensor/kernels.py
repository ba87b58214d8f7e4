"""Which dtypes a kernel takes: fake tensors do not know, so the kernel is asked once, with small tensors of zeros.

A graph that fails at run time has lost what the program did before the operation that failed, if it cannot run twice. So an
operation that its kernel refuses breaks the graph, and eager mode words the error.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._mode_utils import no_dispatch
from torch.utils._pytree import tree_leaves, tree_map_only

_SYMBOLS = frozenset((torch.SymInt, torch.SymFloat, torch.SymBool))
_FEW = 1 << 14  # where there are more elements than this, all sizes are at most _SMALL
_SMALL = 2
_MANY = 1 << 20  # numbers may say how large the result is: above this nothing is asked
_ANSWERS: dict[tuple, str] = {}  # (operation, dtypes of its tensors ...) -> why not; "" where nothing is against it
_ASKABLE: dict[Any, bool] = {}  # operation -> whether it can be asked
_ABOUT_DTYPES = ("not implemented for", "dtype", "scalar type", "datatype", "data type", "not support", "can't be cast",
                 "floating-point", "floating point", "complex", "bool tensor", "Bool", "Integer division")


def check(func: Any, args: tuple, kwargs: dict) -> None:
    """Raises RuntimeError where the kernel of ``func`` would, for the dtypes of its arguments."""
    askable = _ASKABLE.get(func)
    if askable is None:
        askable = _ASKABLE[func] = _can_be_asked(func)
    if not askable:
        return
    key: list[Any] = [func]
    if not _describe(args, key) or kwargs and not _describe(kwargs.values(), key):
        return
    known = tuple(key)
    why = _ANSWERS.get(known)
    if why is None:
        why = _ANSWERS[known] = _ask(func, args, kwargs)
    if why:
        raise RuntimeError(why)


def _can_be_asked(func: Any) -> bool:
    """Operations of torch's own that compute: views and copies take any dtype."""
    return func.namespace == "aten" and not func.is_view and "copy" not in func._schema.name


def _describe(values: Iterable[Any], key: list[Any]) -> bool:
    """Appends what a kernel's answer may depend on; False where it cannot be asked."""
    for value in values:
        kind = type(value)
        if kind is FakeTensor:
            if value.fake_device.type != "cpu":
                return False
            key.append(value.dtype)
        elif kind in (tuple, list):
            if not _describe(value, key):
                return False
        elif kind in _SYMBOLS or isinstance(value, torch.Tensor):
            return False
        else:
            key.append(value if kind in (bool, torch.dtype, str) else kind)
    return True


def _ask(func: Any, args: tuple, kwargs: dict) -> str:
    leaves = tree_leaves((args, kwargs))
    fakes = [value for value in leaves if type(value) is FakeTensor]
    if not fakes or math.prod(abs(value) or 1 for value in leaves if type(value) is int) > _MANY:
        return ""
    few = all(type(size) is int for fake in fakes for size in fake.shape) and sum(math.prod(fake.shape) for fake in fakes) <= _FEW
    limit = _FEW if few else _SMALL

    def real(fake: FakeTensor) -> torch.Tensor:
        sizes = [size if type(size) is int and size < limit else limit for size in fake.shape]
        return torch.zeros(sizes, dtype=fake.dtype, device="cpu")

    random = torch.get_rng_state()
    with no_dispatch(), torch.no_grad():
        args, kwargs = tree_map_only(FakeTensor, real, (args, kwargs))
        try:
            func(*args, **kwargs)
        except (RuntimeError, NotImplementedError, TypeError, ValueError) as error:
            text = str(error)
            return text if any(word in text for word in _ABOUT_DTYPES) else ""  # the rest is about sizes, which are not these
        finally:
            torch.set_rng_state(random)
    return ""
