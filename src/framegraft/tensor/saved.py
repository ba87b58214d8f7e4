"""``torch.autograd.graph.disable_saved_tensors_hooks`` inside of a trace: a switch of torch.

Hooks on saved tensors themselves (``saved_tensors_hooks``) break the graph. The program sees when and with which tensors they are called,
and behind AOTAutograd these would be others: it saves what its own forward pass has, not what each operation of eager mode saves
(``dropout`` keeps a mask of bools there).
"""

from __future__ import annotations

from typing import Any

import torch

from ..errors import GraphBreak
from ..interp.state import constant_value, realize
from ..model.dispatch import handles
from ..model.value import MISSING, NONE, VariableTracker, constant
from ..semantics import instances
from .modes import guard_answer, has_hooks, hooks_disabled, set_hooks_disabled, switch

_autograd: Any = torch._C._autograd  # type: ignore[attr-defined]


@handles(_autograd._saved_tensors_hooks_get_disabled_error_message)
def get_message(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    _guard(tx)
    return constant(hooks_disabled())


def _guard(tx: Any) -> None:
    """What held at frame entry will hold."""
    guard_answer(tx, hooks_disabled, tx.state.graph.modes.values[set_hooks_disabled,])


@handles(_autograd._saved_tensors_hooks_disable)
def disable(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    message = constant_value(realize(args[0], tx.state)) if len(args) == 1 and not kwargs else MISSING
    if type(message) is not str:
        raise GraphBreak("unsupported_context", "saved tensors' hooks disabled with something other than a message")
    if has_hooks() or tx.state.pure:  # torch.utils.checkpoint has hooks of its own
        raise GraphBreak("unsupported_context", "saved tensors' hooks disabled where there are some")
    guard_answer(tx, has_hooks, False)
    _guard(tx)
    switch(tx, set_hooks_disabled, (message,))
    return NONE


@handles(_autograd._saved_tensors_hooks_enable)
def enable(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    _guard(tx)
    switch(tx, set_hooks_disabled, (None,))
    return NONE


def _unpacks(cls: type, name: str) -> bool:
    """Members of a node of the autograd graph that unpack what it has saved (saved_variable.cpp: SavedVariable::unpack)."""
    return name.startswith(("saved_", "_saved_")) and issubclass(cls, torch.autograd.graph.Node)


instances.RUN_PROGRAMS.append(_unpacks)
