"""What optimizers need: ``Tensor.grad``, scalars that are tensors while a step is compiled, and torch's helpers around a step.

A step's scalars (bias corrections, step sizes) come from a counter that is a tensor. In eager mode it is read as a Python
float; in the graph it is a 0-dimensional float64 tensor, which computes the same bits and takes no part in type promotion.
"""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch.optim.optimizer import _get_value, _stack_if_compiling, _use_grad_for_differentiable
from torch.utils import _foreach_utils

from ..errors import GraphBreak
from ..interp.state import realize
from ..model.dispatch import constructs, handles
from ..model.value import NONE, ConstantVariable, LazyVariable, ListVariable, TensorVariable, TupleVariable, VariableTracker, constant
from ..polyfills import optim as polyfills
from ..semantics import calls, containers, making
from ..semantics.wrapping import wrap_constant
from . import running, torchops
from .running import run_node

_C: Any = torch  # its operators have no stubs


def get_grad(tx: Any, obj: TensorVariable) -> VariableTracker:
    """``Tensor.grad`` of a leaf from outside: an input of the graph like any other, guarded to be there or not."""
    stored = obj.attrs.get("grad")
    if stored is not None:
        return stored
    if obj.value is None or obj.source is None:
        if obj.fake.requires_grad and not obj.fake.is_leaf:
            raise GraphBreak("autograd_in_trace", "Tensor.grad of a tensor that is no leaf")
        return NONE  # made in the trace, and backward() breaks the graph
    if not _is_leaf(obj):  # it may have been written to with a gradient
        raise GraphBreak("autograd_in_trace", "Tensor.grad of a tensor that is no leaf")
    return LazyVariable(obj.value.grad, obj.source.child("GRAD", "grad"))


def set_grad(tx: Any, obj: TensorVariable, value: VariableTracker) -> None:
    """``tensor.grad = value``, for values that eager mode takes (torch/csrc/autograd/python_variable.cpp, THPVariable_set_grad)."""
    value = realize(value, tx.state)
    nothing = isinstance(value, ConstantVariable) and value.value is None
    if nothing and obj.source is None:
        return  # made in the trace: it has none
    if obj.source is None or obj.value is None or not _is_leaf(obj):
        raise GraphBreak("unsupported_mutation", "Tensor.grad set on a tensor made in the trace, or no leaf")
    if isinstance(value, TensorVariable):
        mine, theirs = obj.fake, value.fake
        if mine.shape != theirs.shape or mine.dtype != theirs.dtype or mine.device != theirs.device or value is obj:
            raise GraphBreak("unsupported_mutation", "Tensor.grad set to a tensor that does not fit")
    elif not nothing:
        raise GraphBreak("unsupported_mutation", f"Tensor.grad set to a {value.python_type().__name__}")
    obj.attrs.pop("grad", None)  # it has to fit into what the data was set to before
    obj.attrs["grad"] = value
    tx.state.mark_mutated(obj)


def _is_leaf(obj: TensorVariable) -> bool:
    """Of one from outside. In the graph, what its data was set to is the result of a node."""
    return obj.value.is_leaf and (obj.fake.is_leaf or "data" in obj.attrs)


class NumberVariable(TensorVariable):
    """A 0-dimensional float64 tensor that stands for a Python float of eager mode."""

    __slots__ = ()


def _number(tracker: Any) -> NumberVariable:
    return NumberVariable(tracker.node, tracker.fake, tracker.cls)


@handles(_get_value)
def get_value(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    if isinstance(args[0], TensorVariable):
        fake = args[0].fake
        if fake.dim() or not fake.dtype.is_floating_point:
            raise GraphBreak("tensor_item", "a counter that is no 0-dimensional float tensor")
        tx.state.graph.has_numbers = True
        return _number(run_node(tx, "call_method", "double", [args[0]], {}))
    return args[0]


def compute(tx: Any, target: Any, args: list, run: Any) -> VariableTracker | None:
    """An operation with numbers among its arguments, where ``run(args)`` would not treat them as a Python float; None for others.

    What is computed of nothing but numbers is a number. Against a tensor without dimensions a float takes that tensor's
    precision, as it would not if it were a tensor; against others, neither has a say.
    """
    tensors = [a for a in args if isinstance(a, TensorVariable)]
    if tensors and all(type(t) is NumberVariable for t in tensors):
        made = run(args)
        return _number(made) if type(made) is TensorVariable and made.fake.dtype is torch.float64 and not made.fake.dim() else made
    if any(type(t) is NumberVariable for t in tensors):
        others = [t.fake for t in tensors if type(t) is not NumberVariable]
        if all(fake.dim() == 0 for fake in others):
            return run([_of_precision(tx, a, others[0].dtype) for a in args])
        return None
    name = target if isinstance(target, str) else getattr(target, "__name__", "")
    lists = [a for a in args if isinstance(a, ListVariable)]
    if name.startswith("_foreach_") and len(lists) > 1 and any(type(i) is NumberVariable for a in lists for i in a.items):
        firsts = [realize(i, tx.state) for i in lists[0].items]
        if all(isinstance(f, TensorVariable) and not f.fake.dim() for f in firsts):
            return run([a if not isinstance(a, ListVariable) else ListVariable([
                _of_precision(tx, i, f.fake.dtype) for i, f in zip(a.items, firsts, strict=True)]) for a in args])  # type: ignore[attr-defined]
    return None


def _of_precision(tx: Any, value: VariableTracker, dtype: torch.dtype) -> VariableTracker:
    if type(value) is not NumberVariable:
        return value
    real = dtype.to_real() if dtype.is_complex else dtype if dtype.is_floating_point else torch.get_default_dtype()
    return run_node(tx, "call_method", "to", [TensorVariable(value.node, value.fake, value.cls), constant(real)], {})


running.NUMBERS.append(compute)


def _without_scalar(tx: Any, name: str, args: list, kwargs: dict) -> tuple | None:
    """``x.addcdiv_(a, b, value=t)`` whose Python number is a tensor here: ``x.add_(a * t / b)``, in the order of the kernel.

    ``x.add_(y, alpha=t)`` has no such form: kernels multiply and add with one rounding.
    """
    scalar = kwargs.get("value")
    if not isinstance(scalar, TensorVariable) or scalar.fake.dim() or len(kwargs) != 1:
        return None
    if torch.is_grad_enabled() and any(isinstance(a, TensorVariable) and a.fake.requires_grad for a in args):
        raise GraphBreak("tensor_item", f"the number that {name} of tensors which require gradients takes")
    scaled = run_node(tx, "call_function", torch.mul, [args[1], scalar], {})
    scaled = run_node(tx, "call_function", torch.div if "div" in name else torch.mul, [scaled, args[2]], {})
    return ("add_" if name.endswith("_") else "add"), [scaled]


torchops.ATTRIBUTES["grad"] = get_grad, set_grad
for _name in ("addcdiv", "addcmul"):
    torchops.REWRITTEN[_name] = torchops.REWRITTEN[f"{_name}_"] = _without_scalar


@constructs(torch.autograd.profiler.record_function)
def record_function(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    """A label for profilers, which see the compiled graph instead."""
    return making.call_class(tx, contextlib.nullcontext, [], {})


calls.REPLACED[_use_grad_for_differentiable(lambda self: None).__code__] = polyfills.use_grad


@handles(_foreach_utils._group_tensors_by_device_and_dtype, torch._C._group_tensors_by_device_and_dtype)
def group_tensors(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    """Lists of tensors, sorted into groups by device and dtype of those in the first list."""
    lists = [containers.sequence_items(tx, realize(items, tx.state)) for items in containers.sequence_items(tx, args[0])]
    given = args[1] if len(args) > 1 else kwargs.get("with_indices", constant(False))
    indices = isinstance(given, ConstantVariable) and bool(given.value)
    groups: dict[tuple, tuple[list[list], list]] = {}
    for index, first in enumerate(lists[0]):
        first = realize(first, tx.state)
        if not isinstance(first, TensorVariable):
            raise GraphBreak("untraceable_call", "grouping of lists that hold something other than tensors")
        columns, places = groups.setdefault((first.fake.device, first.fake.dtype), ([[] for _ in lists], []))
        for column, items in zip(columns, lists, strict=True):
            if items:
                column.append(items[index])
        if indices:
            places.append(constant(index))
    made = making.call_class(tx, dict, [], {})
    for key, (columns, places) in groups.items():
        value = TupleVariable([ListVariable([ListVariable(column) for column in columns]), ListVariable(places)])
        containers.set_item(tx, made, wrap_constant(key), value)
    return made


@handles(_stack_if_compiling)
def stack_scalars(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    """A list of scalars, one for each parameter, stays a list: as one tensor, the kernels would have to read it back."""
    return args[0]


def _foreach_without_scalars(fn: Any, scale: Any) -> None:
    """``_foreach_addcdiv_(params, a, b, scalars)``, with the scalars as tensors, is ``params += a * scalars / b``."""
    plain = _C._foreach_add_ if fn.__name__.endswith("_") else _C._foreach_add

    @handles(fn)
    def rewritten(tx: Any, args: list, kwargs: dict) -> VariableTracker:
        if len(args) == 4 and not kwargs and isinstance(args[3], ListVariable):
            scalars = [realize(i, tx.state) for i in args[3].items]
            if scalars and all(isinstance(s, TensorVariable) for s in scalars):
                scaled = run_node(tx, "call_function", _C._foreach_mul, [args[1], args[3]], {})
                scaled = run_node(tx, "call_function", scale, [scaled, args[2]], {})
                return run_node(tx, "call_function", plain, [args[0], scaled], {})
        return torchops.call_torch(tx, fn, args, kwargs)


for _fn, _scale in ((_C._foreach_addcdiv_, _C._foreach_div), (_C._foreach_addcdiv, _C._foreach_div),
                    (_C._foreach_addcmul_, _C._foreach_mul), (_C._foreach_addcmul, _C._foreach_mul)):
    _foreach_without_scalars(_fn, _scale)
