"""Cases from torch's databases of operators: each sample as a function, method, in-place and ``out=`` call, and as an operator."""

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.testing._internal.autograd_function_db import autograd_function_db
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.custom_op_db import custom_op_db
from torch.testing._internal.hop_db import hop_db

from .check import Case, copied

DATABASES = {"op_db": op_db, "autograd_function_db": autograd_function_db, "custom_op_db": custom_op_db, "hop_db": hop_db}
DTYPES = (torch.float32, torch.int64, torch.bool, torch.complex64)
UNDEFINED = ("empty", "resize_", "resize_as_", "_unsafe_masked_index")  # results with memory as it was found


def function(op: Any, sample: Any) -> tuple[Callable, tuple]:
    def call(x, args, kwargs):
        return op(x, *args, **kwargs)

    return call, (sample.input, tuple(sample.args), dict(sample.kwargs))


def method(name: str, sample: Any) -> tuple[Callable, tuple]:
    def call(x, args, kwargs):
        return getattr(x, name)(*args, **kwargs)

    return call, (sample.input, tuple(sample.args), dict(sample.kwargs))


def on_copy(op: Any, sample: Any) -> tuple[Callable, tuple]:
    """In-place variants, on what is no leaf of autograd."""

    def call(x, args, kwargs):
        y = x.clone()
        z = op(y, *args, **kwargs)
        return z, y

    return call, (sample.input, tuple(sample.args), dict(sample.kwargs))


def with_out(op: Any, sample: Any, how: str) -> tuple[Callable, tuple] | None:
    x, args, kwargs = copied((sample.input, tuple(sample.args), dict(sample.kwargs)))
    with torch.no_grad():
        result = op(x, *args, **kwargs)
    parts = (result,) if isinstance(result, torch.Tensor) else tuple(result)
    if not parts or not all(type(p) is torch.Tensor and p.layout is torch.strided for p in parts):
        return None

    def target(p: torch.Tensor) -> torch.Tensor:
        if how == "empty":
            return torch.empty(0, dtype=p.dtype)
        if how == "strided":
            return torch.zeros((*p.shape, 2), dtype=p.dtype)[..., 0]
        return torch.zeros(p.shape, dtype=p.dtype)

    out = target(parts[0]) if isinstance(result, torch.Tensor) else tuple(target(p) for p in parts)

    def call(x, args, kwargs, out):
        result = op(x, *args, **kwargs, out=out)
        return result, result is out, out

    return call, (sample.input, tuple(sample.args), dict(sample.kwargs), out)


def variants(op: Any, sample: Any, requires_grad: bool) -> Iterator[tuple[str, Callable[[], Any]]]:
    """(name of the variant, function that gives (program, arguments))."""
    yield "function", lambda: function(op.get_op(), sample)
    if not isinstance(sample.input, torch.Tensor):
        return
    attribute = getattr(op.get_method(), "__name__", "")
    if attribute and getattr(torch.Tensor, attribute, None) is op.get_method():
        yield "method", lambda: method(attribute, sample)
    in_place = op.get_inplace()
    if in_place is not None:
        yield "in-place", lambda: on_copy(in_place, sample)
        name = getattr(in_place, "__name__", "")
        if getattr(torch.Tensor, name, None) is in_place:
            yield "in-place on the input", lambda: method(name, sample)
    for title, fn in (("operator", op.operator_variant), ("in-place operator", op.inplace_operator_variant)):
        if fn is not None:
            yield title, lambda fn=fn: (function if title == "operator" else on_copy)(fn, sample)
    if op.supports_out and not requires_grad:
        for how in ("fitting", "empty", "strided"):
            yield f"out= {how}", lambda how=how: with_out(op.get_op(), sample, how)


def full_name(op: Any) -> str:
    return op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")


def names(database: str) -> list[str]:
    return [full_name(op) for op in DATABASES[database]]


def samples_of(op: Any, dtype: torch.dtype, requires_grad: bool) -> list:
    torch.manual_seed(0)
    random.seed(0)
    try:
        return list(op.sample_inputs("cpu", dtype, requires_grad=requires_grad))
    except Exception:
        return []  # the database says that it has some, and cannot make them


def pick(items: list, count: int | None, key: str) -> list:
    """All items or ``count`` of them, always the same ones."""
    if count is None or len(items) <= count:
        return items
    return [items[i] for i in sorted(random.Random(key).sample(range(len(items)), count))]


def cases(database: str, names: set[str] | None = None, count: int | None = None, errors: bool = True) -> Iterator[Case]:
    """Cases of one database; ``count`` samples of each operator and dtype at most."""
    for op in DATABASES[database]:
        full = full_name(op)
        if names is not None and full not in names:
            continue
        yield from of_operator(op, full, count)
        if errors and op.error_inputs_func is not None:
            yield from bad_inputs(op, full)


def of_operator(op: Any, full: str, count: int | None) -> Iterator[Case]:
    supported = op.supported_dtypes("cpu")
    chosen = [d for d in DTYPES if d in supported] or list(supported)[:1]
    undefined = any(word in op.name for word in UNDEFINED)
    for dtype, requires_grad in itertools.product(chosen, (False, True)):
        if requires_grad and not (op.supports_autograd and dtype in (torch.float32, torch.complex64)):
            continue
        if requires_grad and dtype not in op.supported_backward_dtypes("cpu"):
            continue
        samples = samples_of(op, dtype, requires_grad)
        for index, sample in pick(list(enumerate(samples)), count, full):
            for variant, build in variants(op, sample, requires_grad):
                name = f"{full} {str(dtype)[6:]}{' grad' if requires_grad else ''} {variant} #{index}"
                make = fresh(build)
                if make is not None:
                    yield Case(name, make, requires_grad, undefined)


def fresh(build: Callable[[], Any]) -> Any:
    try:
        made = build()
    except Exception:
        return None  # out= of a sample that raises
    if made is None:
        return None
    fn, args = made
    return lambda wrap: (wrap(fn), copied(args), None)


def bad_inputs(op: Any, full: str) -> Iterator[Case]:
    try:
        torch.manual_seed(0)
        found = list(op.error_inputs("cpu"))
    except Exception:
        return
    for index, error in enumerate(found):
        sample = error.sample_input
        if "device" in str(sample.kwargs) and "cuda" in str(sample.kwargs):
            continue
        yield Case(f"{full} error #{index}", fresh(lambda sample=sample: function(op.get_op(), sample)))
