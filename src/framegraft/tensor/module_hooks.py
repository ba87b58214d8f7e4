"""Hooks that a trace puts on modules from outside: entries of dicts, under numbers that nobody else gets.

A trace takes a number for good. Whenever its code runs, the hook has that one: in a dict that has it already the guards fail. The
handle must stay in the trace, for after a later call it would remove that call's hook.
"""

from __future__ import annotations

from typing import Any

from torch.utils.hooks import RemovableHandle

from ..model.dispatch import handles
from ..model.value import VariableTracker, constant
from ..polyfills import hooks as polyfills
from ..semantics import calls, making
from ..semantics.wrapping import wrap_pinned


@handles(RemovableHandle.__init__)
def make_handle(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    return calls.call(tx, wrap_pinned(tx, polyfills.init), args, kwargs)


@handles(polyfills.take_number)
def take_number(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    return constant(polyfills.take_number())


making.TRACE_ONLY.add(RemovableHandle)
