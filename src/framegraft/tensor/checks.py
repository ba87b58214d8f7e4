"""What only the data can tell, and the program takes for granted: ``assert``, ``torch._check``, branches that only raise.

The trace goes on as if the condition held, and the graph checks it. Where it does not hold, the graph fails and the frame runs
anew in eager mode, which raises what the program raises. That needs a graph which may run twice; else the graph breaks.
"""

from __future__ import annotations

import operator
from typing import Any

import torch

from ..errors import GraphBreak, UserRaise
from ..interp.state import need_constant, realize, user_error
from ..model.dispatch import TENSOR, handles
from ..model.value import NONE, ConstantVariable, SymbolicVariable, TensorVariable, VariableTracker, constant
from ..semantics import calls, operators, truth
from ..semantics.functions import is_callable
from ..semantics.wrapping import wrap_constant
from . import symbolic
from .raising import WORDS, can_check, count_on_rescue
from .running import run_node

_C: Any = torch  # its private functions have no stubs
_KERNELS_WORDS = "Expected Tensor with single nonzero value, but got zero"  # where it is given none


def assume(tx: Any, value: VariableTracker, truth: bool) -> bool:
    """Whether ``bool(value)`` may be taken for ``truth``, which the graph checks from now on. False: nothing is done."""
    state = tx.state
    if not can_check(state):
        return False
    if isinstance(value, SymbolicVariable):
        if not state.graph.symbols.is_unbacked(value.value):
            return False
        _keep_number(tx, value, truth)
    elif isinstance(value, TensorVariable) and value.fake.numel() == 1 and value.fake.device.type != "meta":
        wanted = value if truth else run_node(tx, "call_function", torch.logical_not, [value], {})
        if value.fake.device.type != "cpu":  # on an accelerator a failing check would take the device down with it
            wanted = run_node(tx, "call_method", "cpu", [wanted], {})
        run_node(tx, "call_function", _C._assert_async, [wanted, constant(WORDS)], {})
    else:
        return False
    count_on_rescue(state)
    return True


TENSOR.assume = assume


def _keep_number(tx: Any, value: SymbolicVariable, truth: bool) -> None:
    if value.cls is not bool:
        value = SymbolicVariable(value.value != 0, bool, None, (operator.ne, operator.ne, [value, constant(0)]))
    if not truth:
        value = SymbolicVariable(torch.sym_not(value.value), bool, None, (operator.not_, torch.sym_not, [value]))
    symbolic.check(tx, value)


def _checker(function: Any, error: type[Exception]) -> None:
    @handles(function)
    def check(tx: Any, args: list, kwargs: dict) -> VariableTracker:
        given = dict(zip(("cond", "message"), args, strict=False)) | kwargs
        if isinstance(given["cond"], (ConstantVariable, SymbolicVariable)) and given["cond"].python_type() is not bool:
            raise GraphBreak("untraceable_call", f"torch.{function.__name__}() of a {given['cond'].python_type().__name__}")

        def fail() -> None:
            raise UserRaise(user_error(error, _message(tx, function, given.get("message", NONE))))

        return symbolic.check(tx, given["cond"], fail)


def _message(tx: Any, function: Any, message: VariableTracker) -> str:
    """What a failing check says: the text of what ``message()`` gives, or torch's own words."""
    if isinstance(message, ConstantVariable) and message.value is None:
        try:
            function(False)
        except Exception as error:
            return str(error)
    if not is_callable(tx, message):
        raise GraphBreak("raised_exception", "torch._check with a message that cannot be called")
    text = realize(calls.call(tx, wrap_constant(str), [calls.call(tx, message, [], {})], {}), tx.state)
    return need_constant(text, "the message of a check")


for _function, _error in ((torch._check, RuntimeError), (torch._check_value, ValueError), (torch._check_index, IndexError),
                          (torch._check_type, TypeError)):
    _checker(_function, _error)


@handles(torch._check_is_size)
def check_is_size(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    limit = args[2] if len(args) > 2 else kwargs.get("max", NONE)
    for fn, bound in ((operator.ge, constant(0)), (operator.le, limit)):
        if bound is not NONE:
            symbolic.check(tx, operators.apply(tx, fn, [args[0], bound]))
    return NONE


@handles(torch._check_tensor_all)
def check_all(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    condition = args[0] if args else kwargs.get("cond")
    if isinstance(condition, TensorVariable) and condition.fake.dtype is torch.bool:
        if assume(tx, run_node(tx, "call_method", "all", [condition], {}), True):
            return NONE
    raise GraphBreak("tensor_item", "a check on the values of a tensor")


@handles(_C._assert_async)
def assert_async(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    if len(args) == 1 and not kwargs:
        args = [*args, constant(_KERNELS_WORDS)]
    return run_node(tx, "call_function", _C._assert_async, args, kwargs)


@handles(torch._assert)
def torch_assert(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    given = dict(zip(("condition", "message"), args, strict=False)) | kwargs
    condition, message = given["condition"], given.get("message", constant(""))
    if isinstance(condition, (TensorVariable, SymbolicVariable)) and assume(tx, condition, True):
        return NONE
    if truth.truth(tx, condition):
        return NONE
    if not isinstance(message, ConstantVariable):
        raise GraphBreak("raised_exception", "a failing check raises AssertionError")
    raise UserRaise(user_error(AssertionError, message.value))
