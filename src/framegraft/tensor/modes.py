"""Torch's switches that a program may set while it is traced: grad mode, autocast, anomaly detection.

A switch takes effect in the trace at once (fake tensors see it), goes into the graph as a node, and is set again by the
transformed code behind the graph, because a backend may keep the graph's switches to itself. Inference mode is none of them: it
is entered and left, in the order of a stack (``inference.py``). Nor is the default dtype, at which the graph breaks: AOTAutograd's
graphs say ``ones([3])`` where they mean ``ones([3], dtype=float64)``, and run under another default.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterator
from typing import Any

import torch
import torch.autograd.forward_ad as forward_ad

from ..errors import GraphBreak
from ..interp.unwind import is_covered
from ..model.dispatch import handles, specialised
from ..model.value import NONE, ConstantVariable, VariableTracker, constant
from ..semantics.wrapping import wrap_pinned

_DEVICES = ("cpu", "cuda")
_C: Any = torch._C  # its private functions have no stubs
#: Which kernels scaled_dot_product_attention may take: what torch.nn.attention.sdpa_kernel sets.
_SDP = tuple((getattr(_C, f"_set_sdp_use_{kind}"), getattr(_C, f"_get_{kind}_sdp_enabled"))
             for kind in ("cudnn", "flash", "mem_efficient", "math", "overrideable") if hasattr(_C, f"_get_{kind}_sdp_enabled"))
#: Switches that no entry is guarded on: who asks for one guards it.
_ASKED = (
    (torch.set_anomaly_enabled, lambda: (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled())),
    (_C._set_multithreading_enabled, lambda: (_C._is_multithreading_enabled(),)),
)
#: What torch.backends.cudnn.flags sets: setter, getter, and what both are told first. The precision comes before what depends on it.
_CUDNN = (
    *((_C._set_fp32_precision_setter, _C._get_fp32_precision_getter, ("cuda", "all"))
      for _ in range(hasattr(_C, "_get_fp32_precision_getter"))),
    *((getattr(_C, f"_set_cudnn_{name}"), getattr(_C, f"_get_cudnn_{name}"), ())
      for name in ("enabled", "benchmark", "deterministic", "allow_tf32", "depthwise_kernel") if hasattr(_C, f"_get_cudnn_{name}")),
    *((_C._cuda_set_cudnn_benchmark_limit, _C._cuda_get_cudnn_benchmark_limit, ())  # builds for CUDA
      for _ in range(hasattr(_C, "_cuda_get_cudnn_benchmark_limit"))),
)
#: Setters that make a value its own that was inherited, also where that is the same.
_INHERITED = {getattr(_C, "_set_cudnn_allow_tf32", None), *(setter for setter, _, where in _CUDNN if where)}
#: What a getter gives that raises: _get_cudnn_allow_tf32 where cudnn has another precision than that switch stands for.
UNREADABLE = object()
_autograd: Any = _C._autograd


def hooks_disabled() -> str | None:
    """The message of whoever has disabled hooks on saved tensors; None where nobody has."""
    return _autograd._saved_tensors_hooks_get_disabled_error_message()


class _Aside(threading.local):
    hooks = 0  # of the program, that are kept from a trace


_aside = _Aside()


def has_hooks() -> bool:
    """Whether the program has hooks on what will be saved: then nobody may disable them."""
    return _aside.hooks > 0 or _autograd._top_saved_tensors_default_hooks(True) is not None


def set_hooks_disabled(message: str | None) -> None:
    """A switch of torch in one function."""
    if message is None:
        _autograd._saved_tensors_hooks_enable()
    else:
        _autograd._saved_tensors_hooks_disable(message)


def _all_getters() -> dict[tuple, Any]:
    """By setter and what it is told first; each gives what its setter is told behind that."""
    getters: dict[tuple, Any] = {(_C._set_grad_enabled,): torch.is_grad_enabled}
    for device in _DEVICES:
        getters[torch.set_autocast_enabled, device] = functools.partial(torch.is_autocast_enabled, device)
        getters[torch.set_autocast_dtype, device] = functools.partial(torch.get_autocast_dtype, device)
    getters[torch.set_autocast_cache_enabled,] = torch.is_autocast_cache_enabled
    getters.update(((setter,), getter) for setter, getter in (*_SDP, *_ASKED))
    getters.update(((setter, *where), functools.partial(_read, getter, *where)) for setter, getter, where in _CUDNN)
    getters[set_hooks_disabled,] = hooks_disabled
    return getters


def _read(getter: Any, *where: Any) -> Any:
    try:
        return getter(*where)
    except RuntimeError:
        return UNREADABLE


_GETTERS = _all_getters()
_SETTERS = {setter for setter, *_ in _GETTERS} | {torch.clear_autocast_cache}


#: Those whose value at frame entry an entry may know only where its trace has set them.
_UNGUARDED = frozenset((set_hooks_disabled, *(setter for setter, *_ in (*_SDP, *_ASKED, *_CUDNN))))


class Modes:
    """A snapshot of the switches, and of the inference modes that this thread's graphs and traces have entered."""

    __slots__ = ("entered", "level", "touched", "values")

    def __init__(self) -> None:
        """What holds now."""
        self.entered = tuple(entry for entry, _ in ENTERED.stack)
        self.touched: set[Any] | None = None  # of _UNGUARDED, those that are to be restored; None: all of them
        self.level: int | None = None  # of forward mode, where that is to be restored
        self.values: dict[tuple, Any] = {key: getter() for key, getter in _GETTERS.items()}

    def restore(self) -> None:
        if self.level is not None:
            leave_levels(self.level)
        stack = ENTERED.stack
        common = 0
        while common < min(len(stack), len(self.entered)) and stack[common][0] is self.entered[common]:
            common += 1
        while len(stack) > common:
            ENTERED.leave()
        for entry in self.entered[common:]:
            entry.before.switch()
            ENTERED.enter(entry)
        self.switch()

    def switch(self) -> None:
        for (setter, *where), value in self.values.items():
            known = self.touched is None or setter not in _UNGUARDED or setter in self.touched
            if known and value is not UNREADABLE and _GETTERS[(setter, *where)]() != value:
                setter(*where, *_arguments(value))

    def changes_since(self, before: Modes) -> list[tuple]:
        """Calls (function, arguments...) that lead from ``before`` to here. Grad mode is always told."""
        told = {torch._C._set_grad_enabled, *_INHERITED.intersection(before.touched or ())}
        return [(*key, *_arguments(value)) for key, value in self.values.items()
                if key[0] in told or before.values[key] != value and UNREADABLE not in (value, before.values[key])]


def _arguments(value: Any) -> tuple:
    return value if type(value) is tuple else (value,)


class Entry:
    """An inference mode that was entered. Of one that a trace has entered, what held before and after, and its tracker."""

    __slots__ = ("before", "inside", "mode", "tracker")

    def __init__(self, mode: bool, tracker: Any = None) -> None:
        self.mode = mode
        self.tracker = tracker
        self.before: Any = Modes() if tracker is not None else None
        self.inside: Any = self.before


def forget_casts() -> None:
    """What leaving a region of autocast does to what was cast in it: outside of all regions nothing is kept."""
    if not autocast_nesting():
        torch.clear_autocast_cache()


def autocast_nesting() -> int:
    """In how many regions of autocast this thread is."""
    torch.autocast_increment_nesting()
    return torch.autocast_decrement_nesting()


def leave_autocast(nesting: int) -> None:
    """Leave the regions inside of ``nesting`` ones: a compiler that fails may have left those open that its graph enters."""
    while autocast_nesting() > nesting:
        torch.autocast_decrement_nesting()


class _Entered(threading.local):
    """The inference modes that are entered in this thread, each with the object of torch that leaves it when it dies."""

    def __init__(self) -> None:
        self.stack: list[tuple[Entry, Any]] = []

    def enter(self, entry: Entry) -> None:
        guard = _C._InferenceMode(entry.mode)
        guard.__enter__()
        self.stack.append((entry, guard))
        if entry.tracker is not None:
            entry.inside = Modes()

    def leave(self) -> None:
        _, guard = self.stack.pop()
        guard.__exit__(None, None, None)


ENTERED = _Entered()


def enter_inference_mode(mode: bool) -> None:
    """In a graph: enters inference mode, or leaves it for a while."""
    ENTERED.enter(Entry(mode))


def leave_inference_mode() -> None:
    """In a graph: leaves what was entered last."""
    ENTERED.leave()


def leave_levels(level: int) -> None:
    """Leave those above ``level``."""
    while forward_ad._current_level > level:
        forward_ad.exit_dual_level()


def enter_level() -> None:
    """In a graph: enters a level of forward mode (forward_ad.py)."""
    forward_ad.enter_dual_level()


def exit_level() -> None:
    """In a graph: leaves it."""
    forward_ad.exit_dual_level()


SWITCHES = frozenset((*_SETTERS, enter_inference_mode, leave_inference_mode, enter_level, exit_level))  # as nodes of a graph


@contextlib.contextmanager
def no_saved_tensor_hooks() -> Iterator[None]:
    """Keeps the program's hooks on saved tensors from what a trace computes on fake ones; a checkpoint counts, for one."""
    hooks = []
    while (top := _autograd._top_saved_tensors_default_hooks(True)) is not None:
        hooks.append(top)
        _autograd._pop_saved_tensors_default_hooks()
    _aside.hooks += len(hooks)
    try:
        yield
    finally:
        _aside.hooks -= len(hooks)
        for pack, unpack in reversed(hooks):
            _autograd._push_saved_tensors_default_hooks(pack, unpack)


def switch_node(tx: Any, fn: Any, args: tuple) -> None:
    """A node for a switch."""
    graph = tx.state.graph
    graph.node("call_function", fn, args, {})
    graph.modes.touched.add(fn)
    graph.call_count -= 1  # a graph of nothing but switches need not run
    graph.switches += 1
    tx.state.dirty += 1


def switch(tx: Any, fn: Any, args: tuple) -> None:
    """``fn(*args)``, which sets a switch, in the trace and in the graph."""
    try:
        fn(*args)
    except (TypeError, ValueError, RuntimeError) as error:  # eager mode raises it
        raise GraphBreak("untraceable_call", f"{fn.__name__}: {error}") from None
    switch_node(tx, fn, args)
    if not any(map(_is_undone, tx.state.frames)):
        tx.state.graph.outer = Modes()


def _is_undone(frame: Any) -> bool:
    """Whether what happens now is undone by the exit of a block, as far as the frame is concerned."""
    return is_covered(frame) or "BEFORE_WITH" in (frame.inst.op, frame.instructions[frame.ip].op)  # with set_grad_enabled(False)


def note_modes(state: Any) -> bool:
    """Put down which modes an operation that may raise leaves behind it. False where an earlier one leaves others."""
    graph = state.graph
    if graph.switches and not any(map(is_covered, state.frames)):
        graph.outer = Modes()
    graph.unwound = graph.unwound or graph.outer
    return graph.unwound.values == graph.outer.values


def _plain(args: list, kwargs: dict, name: str) -> tuple:
    args = [specialised(a) for a in args]
    if kwargs or not all(isinstance(a, ConstantVariable) for a in args):
        raise GraphBreak("untraceable_call", f"{name} of something other than constants")
    return tuple(a.value for a in args)


def _nothing(args: list, name: str) -> None:
    if args:
        raise GraphBreak("untraceable_call", f"{name} with arguments")


@handles(torch._C._set_grad_enabled)
def set_grad_enabled(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    values = _plain(args, kwargs, "set_grad_enabled")
    if len(values) != 1:
        raise GraphBreak("untraceable_call", f"set_grad_enabled with {len(values)} arguments")
    mode, = values
    if torch.is_grad_enabled() is not mode:
        switch(tx, torch._C._set_grad_enabled, (mode,))
    return NONE


def _switch(setter: Any, getter: Any, places: int = 2) -> None:
    @handles(setter)
    def handler(tx: Any, args: list, kwargs: dict) -> VariableTracker:
        values = _plain(args, kwargs, setter.__name__)
        if len(values) != places or places == 2 and type(values[0]) is not str:
            raise GraphBreak("untraceable_call", f"{setter.__name__} with other arguments")
        try:
            as_before = getter(*values[:-1]) is values[-1]
        except RuntimeError as error:  # of a device that there is not; eager mode raises it
            raise GraphBreak("untraceable_call", f"{setter.__name__}: {error}") from None
        if not as_before:
            switch(tx, setter, values)
        return NONE


_switch(torch.set_autocast_enabled, torch.is_autocast_enabled)
_switch(torch.set_autocast_dtype, torch.get_autocast_dtype)
_switch(torch.set_autocast_cache_enabled, torch.is_autocast_cache_enabled, 1)


def _set_asked(setter: Any, getter: Any) -> None:
    @handles(setter)
    def handler(tx: Any, args: list, kwargs: dict) -> VariableTracker:
        values = _plain([*args, *kwargs.values()], {}, setter.__name__)
        if kwargs.keys() - {"check_nan"}:
            raise GraphBreak("untraceable_call", f"{setter.__name__} with keywords")
        if setter is torch.set_anomaly_enabled and len(values) == 1:
            values = (*values, True)
        guard_answer(tx, getter, tx.state.graph.modes.values[setter,])
        if getter() != values or any(type(v) is not bool for v in values):
            switch(tx, setter, values)
        return NONE


for _setter, _getter in _ASKED:
    _set_asked(_setter, _getter)


class _Ask:
    """Guard accessor: what a function without arguments tells."""

    __name__ = "ask"

    def __call__(self, fn: Any) -> Any:
        return fn()


_ASK = _Ask()


def guard_answer(tx: Any, fn: Any, value: Any) -> None:
    """``fn()`` gives ``value`` at frame entry."""
    source = wrap_pinned(tx, fn).source
    assert source is not None
    tx.state.guards.add(source.child("PYCALL", _ASK), "EQ", value)


def _ask(fn: Any, setter: Any, place: int) -> None:
    """A getter of such a switch: what held at frame entry is guarded, where it may be anything else."""

    @handles(fn)
    def ask(tx: Any, args: list, kwargs: dict) -> VariableTracker:
        _nothing(args, fn.__name__)
        guard_answer(tx, fn, tx.state.graph.modes.values[setter,][place])
        return constant(fn())


_ask(torch.is_anomaly_enabled, torch.set_anomaly_enabled, 0)
_ask(torch.is_anomaly_check_nan_enabled, torch.set_anomaly_enabled, 1)
_ask(_C._is_multithreading_enabled, _C._set_multithreading_enabled, 0)


@handles(_autograd._profiler_enabled)
def profiler_enabled(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    """A graph breaks where a profiler is started or stopped: what held at frame entry holds."""
    _nothing(args, "_profiler_enabled")
    told = _autograd._profiler_enabled()
    guard_answer(tx, _autograd._profiler_enabled, told)
    return constant(told)


def _switch_of_backend(setter: Any, getter: Any, where: tuple = ()) -> None:
    """Both guard what held at frame entry: a setter, too, for it is left out where it changes nothing."""
    asked = functools.partial(getter, *where) if where else getter

    def held(tx: Any) -> Any:
        """What it gives now. Eager mode says it where it gives nothing."""
        before, now = tx.state.graph.modes.values[(setter, *where)], _read(getter, *where)
        if UNREADABLE in (before, now):
            raise GraphBreak("untraceable_call", f"torch._C.{getter.__name__}: the precision was set in another way")
        guard_answer(tx, asked, before)
        return now

    @handles(getter)
    def ask(tx: Any, args: list, kwargs: dict) -> VariableTracker:
        if _plain(args, kwargs, getter.__name__) != where:
            raise GraphBreak("unsupported_context", f"torch._C.{getter.__name__}")
        return constant(held(tx))

    @handles(setter)
    def handler(tx: Any, args: list, kwargs: dict) -> VariableTracker:
        values = _plain(args, kwargs, setter.__name__)
        if len(values) != len(where) + 1 or values[:-1] != where:
            raise GraphBreak("unsupported_context", f"torch._C.{setter.__name__}")
        now = held(tx)
        if setter in _INHERITED or now != values[-1] or type(now) is not type(values[-1]):
            switch(tx, setter, values)
            if UNREADABLE in (_GETTERS[(touched,)]() for touched in tx.state.graph.modes.touched if (touched,) in _GETTERS):
                raise GraphBreak("untraceable_call", f"torch._C.{setter.__name__} of another precision than was set before")
        return NONE


for _switched in (*_SDP, *_CUDNN):
    _switch_of_backend(*_switched)


@handles(torch.clear_autocast_cache)
def clear_autocast_cache(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    _nothing(args, "clear_autocast_cache")
    switch_node(tx, torch.clear_autocast_cache, ())
    tx.state.graph.clears += 1
    tx.state.graph.cleared = True
    return NONE


@handles(torch.autocast_increment_nesting)
def increment_nesting(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    _nothing(args, "autocast_increment_nesting")
    tx.state.graph.nesting += 1
    tx.state.graph.cleared = False
    tx.state.dirty += 1
    return constant(torch.autocast_increment_nesting())


@handles(torch.autocast_decrement_nesting)
def decrement_nesting(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    _nothing(args, "autocast_decrement_nesting")
    tx.state.graph.nesting -= 1
    tx.state.dirty += 1
    return constant(torch.autocast_decrement_nesting())
