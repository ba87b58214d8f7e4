"""Where a frame lets go of an object, and something happens when that dies: the trace ends there, so that it dies at its time."""

from __future__ import annotations

import gc
import os
import sys
import types
import weakref
from typing import Any

import torch

from ..bytecode.flow import stack_use
from ..bytecode.ir import Instruction
from ..errors import GraphBreak
from ..model.value import MISSING, LazyVariable, VariableTracker, looked_at

# Objects of these types tell nobody when they die, nor do they hold anything that would.
_TELL_NOBODY = frozenset((type(None), bool, int, float, complex, str, bytes, range, slice, torch.Tensor, torch.nn.Parameter, torch.Size,
                          type(MISSING), torch.dtype, torch.device, types.CodeType, types.BuiltinFunctionType, types.ModuleType))
_COMPILER = os.path.join(os.path.dirname(torch.__file__), "_dynamo")
# What these hold is not looked at: others hold it, too, as good as always.
_KEPT = (type, types.ModuleType, types.FrameType, torch.Tensor, torch.nn.Module)
_MOST = 4096  # so many objects that only one holds are looked at
# What these take goes on to be held, or let_go() is asked.
_MOVES = frozenset(("COPY", "SWAP", "STORE_FAST", "STORE_DEREF", "POP_TOP", "RETURN_VALUE", "YIELD_VALUE"))
_FRAMES = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
# References to an object while it is looked at: the list of referents, a variable and getrefcount's argument.
_LOOKING = 3
# A trace that has seen an object refers to it from its tracker, from what is not looked at yet, and from its tables.
_SEEN = 4


def let_go(tx: Any, tracker: VariableTracker | None) -> None:
    """The frame is about to drop what a variable, a cell or the stack holds. Break where that may be the end of an object from outside, and
    the program is told of it."""
    if _is_from_outside(tracker):
        value = getattr(tracker, "value", None)
        if type(value) not in _TELL_NOBODY and _holders(tx.state, tracker) <= 1 and tells(value):
            raise _its_end(value)


def _is_from_outside(tracker: VariableTracker | None) -> bool:
    """Whether the frame got it from its caller; no empty variable or cell."""
    return isinstance(tracker, VariableTracker) and tracker.source is not None and tracker.source.access in ("ARG", "CELLVAL")


def _its_end(value: Any) -> GraphBreak:
    return GraphBreak("finaliser", f"a {type(value).__name__}, which tells when it dies")


def goes_to_stack(tx: Any, tracker: VariableTracker | None) -> None:
    """The prologue of a rest puts back what lay on the stack."""
    if _is_from_outside(tracker) and tells(getattr(tracker, "value", None)):
        tx.state.telling.append(tracker)


def used_up(tx: Any, inst: Instruction) -> None:
    """Break where an instruction takes one of those from the stack, and nothing else holds it: it may die with that, or with what is made
    of it."""
    if inst.op in _MOVES or inst.place < 0:
        return
    count = stack_use(inst, False)[0]
    for item in tx.stack[-count:] if count else ():
        known = any(held is item or isinstance(held, LazyVariable) and held.tracker is item for held in tx.state.telling)
        if known and _holders(tx.state, looked_at(item)) <= 1:
            raise _its_end(getattr(item, "value", None))


def tells(value: Any) -> bool:
    """Whether something happens when the object dies: its own end, or that of what nobody but it holds (as far as one can tell). What
    holds very many objects counts as one that tells, instead of all being looked at."""
    if type(value) in _TELL_NOBODY or issubclass(type(value), type):  # classes are in cycles: the garbage collector has them
        return False
    todo, seen = [value], {id(value)}
    while todo:
        holder = todo.pop()
        if _tells_itself(holder):
            return True
        if issubclass(type(holder), _KEPT) or not gc.is_tracked(holder) and type(holder) is not types.CellType:
            continue
        for part in gc.get_referents(holder):
            known = type(part) in _TELL_NOBODY or issubclass(type(part), type) or id(part) in seen
            if not known and sys.getrefcount(part) <= _LOOKING + 1 + _SEEN:
                if len(seen) == _MOST:
                    return True
                seen.add(id(part))
                todo.append(part)
    return False


def _tells_itself(value: Any) -> bool:
    kind = type(value)
    if kind in (list, tuple, dict):
        return False
    if issubclass(kind, torch.inference_mode):  # what it has entered is left then
        return "_inference_mode_context" in vars(value)
    if any("__del__" in base.__dict__ for base in kind.__mro__) or issubclass(kind, _FRAMES) and _waits(value):
        return True
    return kind.__weakrefoffset__ != 0 and any(map(_has_callback, weakref.getweakrefs(value)))


def _has_callback(reference: Any) -> bool:
    """A proxy hides its callback: reading the attribute asks the object that it stands for. torch.compile's table
    of all modules, which it makes once it is loaded, tells nobody."""
    if type(reference) in weakref.ProxyTypes:
        return True
    callback = weakref.ref.__callback__.__get__(reference)  # type: ignore[attr-defined]
    return callback is not None and not (type(callback) is types.FunctionType and callback.__code__.co_filename.startswith(_COMPILER))


def _waits(value: Any) -> bool:
    """Whether a generator or coroutine has begun and not ended."""
    frame = getattr(value, "gi_frame", None) or getattr(value, "cr_frame", None) or getattr(value, "ag_frame", None)
    return frame is not None and frame.f_lasti > 0


def _held(state: Any) -> list[Any]:
    """What the variables and stacks of the frames in the trace hold."""
    return [v for frame in state.frames
            for v in (*frame.locals.values(), *frame.stack, *(cell.contents for cell in frame.cells.values()))]


def _holders(state: Any, tracker: Any) -> int:
    """How many variables and stack entries of the frames in the trace hold the value."""
    return sum(held is tracker or isinstance(held, LazyVariable) and held.tracker is tracker for held in _held(state))


def may_have_died(state: Any, value: Any) -> bool:
    """Whether the trace may have let go of ``value``, an object from outside: of one that may hold it, and no frame holds it itself."""
    trackers = _held(state)
    if any(getattr(v, "value", None) is value for v in trackers):
        return False
    held = set(map(id, trackers))
    if _is_where_it_was(state, value, held):
        return False
    if state.outside:
        return True
    return any(id(v) not in held and type(v.value) not in (type(None), bool, int, float, str) for v in state.arguments)


def _is_where_it_was(state: Any, value: Any, held: set[int]) -> bool:
    """Whether the trace has changed nothing on the way to where it has found ``value``, which begins at a global or at a variable."""
    known = state.by_id.get(id(value))
    at = known.source if known is not None else None
    if at is None or any(scope.stores for scope in state.scopes.values()):
        return False
    changed = {tracker.source for tracker in state.mutated.values()}
    while at.access in ("KEY", "DICT", "ITEM"):
        at = at.base
        if at in changed:
            return False
    return at.access == "GLOBALS" or at.access == "ARG" and any(id(v) in held and v.source == at for v in state.arguments)
