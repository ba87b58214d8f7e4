"""``torch.inference_mode`` entered in the trace (torch/autograd/grad_mode.py).

torch gives no switch for it, only an object that enters it and, when it dies, puts back all that held before. So a graph calls
``enter_inference_mode`` and ``leave_inference_mode``, which keep these objects on a stack of the thread, and leaves what it has
entered; where a trace ends inside, the transformed code enters it again with the program's own object.
"""

from __future__ import annotations

from typing import Any

import torch

from ..errors import GraphBreak
from ..interp.state import constant_value, realize
from ..model.dispatch import handles
from ..model.value import MISSING, NONE, ObjectVariable, VariableTracker
from ..semantics import attributes, storing
from .modes import ENTERED, Entry, enter_inference_mode, leave_inference_mode, switch_node

_C: Any = torch._C


class InferenceVariable(ObjectVariable):
    """A ``torch._C._InferenceMode`` made in the trace."""

    __slots__ = ("entry", "mode")

    def __init__(self, mode: bool) -> None:
        super().__init__(MISSING, _C._InferenceMode)
        self.mode = mode
        self.entry = Entry(mode, self)


@handles(torch.inference_mode.__enter__)
def enter(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    obj = args[0]
    mode = constant_value(realize(attributes.get_attr(tx, obj, "mode"), tx.state))
    if type(mode) is not bool or obj.python_type() is not torch.inference_mode:
        raise GraphBreak("unsupported_context", "a mode that is no plain inference_mode")
    if tx.inst.op != "BEFORE_WITH":  # it would be left when the object dies, at a time that the trace does not know
        raise GraphBreak("unsupported_context", "inference_mode entered by something other than a with statement")
    if tx.state.graph.body is not None:
        raise GraphBreak("unsupported_context", "inference_mode inside of a function that torch calls")
    made = InferenceVariable(mode)
    storing.store_attr(tx, obj, "_inference_mode_context", made)
    switch_node(tx, enter_inference_mode, (mode,))
    ENTERED.enter(made.entry)
    return NONE


@handles(torch.inference_mode.__exit__)
def leave(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    made = realize(attributes.get_attr(tx, args[0], "_inference_mode_context"), tx.state)
    entered = ENTERED.stack
    if not isinstance(made, InferenceVariable) or not entered or entered[-1][0] is not made.entry:
        raise GraphBreak("unsupported_context", "an inference_mode left that was entered outside of the trace")
    switch_node(tx, leave_inference_mode, ())
    ENTERED.leave()
    return NONE
