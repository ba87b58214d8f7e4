"""What operators and builtin functions ask of a tensor's class. A graph does what torch's methods do; a program may put others there."""

from __future__ import annotations

import builtins
import math
import operator
import types
from typing import Any

import torch

from ..errors import GraphBreak
from ..model.dispatch import TENSOR
from ..model.value import MISSING, TensorVariable, VariableTracker
from ..semantics import lookup
from .subclasses import PLAIN


def _of_torch(cls: type) -> dict[str, Any]:
    """What ``_PyType_Lookup`` finds in a class, but for what a program put there before this was imported."""
    found = {name: value for base in reversed(cls.__mro__) for name, value in base.__dict__.items()}
    return {name: value for name, value in found.items()
            if not isinstance(value, types.FunctionType) or value.__module__.partition(".")[0] == "torch"}


def _methods() -> dict[Any, tuple[str, ...]]:
    found: dict[Any, tuple[str, ...]] = {}
    for name in ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and", "or", "xor"):
        fn = getattr(operator, f"__{name}__")
        found[fn] = f"__{name}__", f"__r{name}__"
        found[getattr(operator, f"__i{name}__")] = f"__i{name}__", *found[fn]
    for one, other in (("lt", "gt"), ("le", "ge"), ("eq", "eq"), ("ne", "ne")):
        for name in (one, other):
            found[getattr(operator, name)] = f"__{one}__", f"__{other}__"
    for fn in (operator.neg, operator.pos, operator.invert, operator.abs, operator.index, operator.getitem, operator.setitem,
               builtins.abs, builtins.round, builtins.len, builtins.iter, builtins.int, builtins.float, builtins.complex, builtins.bool,
               math.trunc, math.floor, math.ceil):
        found[fn] = f"__{fn.__name__}__",
    found[builtins.divmod] = "__divmod__", "__rdivmod__"
    found[builtins.pow] = found[operator.pow]
    return found


_OF_TORCH = {cls: _of_torch(cls) for cls in PLAIN}
METHODS = _methods()  # operator or builtin function -> the special methods that it may call


def check(tx: Any, tensor: VariableTracker, *names: str) -> None:
    """Breaks where one of these attributes of the tensor's class is not torch's; that it is, is guarded."""
    if not isinstance(tensor, TensorVariable) or not issubclass(tensor.cls, torch.Tensor):
        return
    own = _OF_TORCH.get(tensor.cls, _OF_TORCH[torch.Tensor])
    for name in names:
        if lookup.mro_lookup(tx, tensor.cls, name) is not own.get(name, MISSING):
            raise GraphBreak("unsupported_attribute", f"{tensor.cls.__name__}.{name}, which is not torch's own")


def check_operands(tx: Any, fn: Any, args: list) -> None:
    """The same for what an operator or builtin function asks of its arguments."""
    names = METHODS.get(fn)
    if names is not None:
        for arg in args:
            check(tx, arg, *names)


TENSOR.check_class = check
