"""Operations that may raise when the graph runs: the values in their tensors decide, or numbers that the data decides."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import torch

from ..errors import Covered, GraphBreak
from ..interp.unwind import catches, entered_before, may_handle
from ..model.value import ConstantVariable, TensorVariable
from .modes import note_modes

_C: Any = torch  # its private functions have no stubs
# Only with a text does torch keep the operation as one with an effect.
WORDS = "a condition of the program does not hold"


def note_errors(state: Any, name: str, raises: bool) -> int:
    """Put down where an operation stands; ``raises``: it may raise or not, depending on the values in its tensors.

    Gives how many frames deep the program would catch what it raises; 0: nowhere.
    """
    caught = caught_at(state)
    state.graph.may_raise |= raises
    state.caught |= caught > 0
    if raises:
        steady = note_modes(state) and _note_exits(state) and not state.exceptions  # the context of what it raises
        state.rescued |= not steady or caught > 0 or bool(state.graph.leaving)
        if not state.rescue and (caught or not steady):
            raise Covered("untraceable_call", f"{name} may raise, inside a block that handles or undoes, or between two modes")
    return caught


def _note_exits(state: Any) -> bool:
    """Put down which blocks a failing graph has to leave. False where an earlier operation that may raise is in other ones."""
    exits = tuple(leave for frame in reversed(state.frames) for leave in entered_before(frame))
    known = state.graph.leaving
    state.graph.leaving = exits if known is None else known
    return known is None or list(map(id, known)) == list(map(id, exits))


def run_check(state: Any, node: Any) -> Any:
    """The check stands in the graph, too: only the data can tell. If it fails, eager mode words the error.

    Of ``torch._check`` nothing is left behind AOTAutograd, which takes for true what has been assumed here.
    """
    note_errors(state, "_check", True)
    _check_tensor(state, node)
    return state.graph.node("call_function", torch.ops.aten._assert_scalar.default, (node, WORDS), {})


def _check_tensor(state: Any, node: Any) -> None:
    """A number that was read of a tensor and is said to be the same as another symbol: compilers come to have one symbol for both, and
    fold what compares them. They know nothing of the values in tensors.
    """
    if getattr(node, "target", None) is not operator.eq or not all(isinstance(part, torch.fx.Node) for part in node.args):
        return
    graph = state.graph
    for read, other in (node.args, node.args[::-1]):
        if read.target == "item" and type(other.meta.get("example_value")) is torch.SymInt:
            tensor = read.args[0]
            with graph.propagating():
                known = torch.eq(tensor.meta["example_value"], other.meta["example_value"])
            same = graph.node("call_function", torch.eq, (tensor, other), {})
            same.meta["example_value"] = known
            if known.device.type != "cpu":
                same = graph.node("call_method", "cpu", (same,), {})
                same.meta["example_value"] = known.cpu()
            graph.node("call_function", _C._assert_async, (same, WORDS), {})
            return


def keep_assumed(state: Any, name: str, args: list, kwargs: dict) -> None:
    """What an operation took for granted of numbers that the data decides: that they are equal to a size, say.

    Its kernel may see that they are not, or take another way (a size of 1 is broadcast, -1 says something else), and a compiler
    believes what has been assumed. So the graph checks it; where it does not hold, the frame runs anew in eager mode.
    """
    _assume_kept(name, args, kwargs)
    symbols = state.graph.symbols
    for condition in symbols.assumed():
        if name in _FACTORIES and symbols.allows_size(condition):
            symbols.checked[condition] = symbols.expression(condition.rhs)  # which the kernel checks, before it does anything
            continue
        if not can_check(state):
            raise GraphBreak("dynamic_output_shape", f"{name}: whether {condition}")
        symbols.checked[condition] = run_check(state, symbols.expression(condition))
        count_on_rescue(state)
        state.caught = True  # eager mode may raise nothing


def _assume_kept(name: str, args: list, kwargs: dict) -> None:
    """``squeeze`` keeps a dimension whose size the data decides, so the trace takes for granted that it is not 1."""
    if name in ("squeeze", "squeeze_"):
        dims = args[1:] or kwargs.get("dim", ())
        given = dims[0] if dims and isinstance(dims[0], (tuple, list)) else dims if isinstance(dims, (tuple, list)) else [dims]
        shape = args[0].shape
        for dim in given or range(len(shape)):
            if -len(shape) <= dim < len(shape) and isinstance(shape[dim], torch.SymInt):
                torch._check(shape[dim] != 1)


def can_check(state: Any) -> bool:
    """Whether a check that fails may send the frame to eager mode."""
    return state.rescue and not state.pure and state.graph.body is None


def count_on_rescue(state: Any) -> None:
    state.rescued = True
    state.caught |= any(map(may_handle, state.frames))  # what eager mode raises then may be of any class


# They refuse sizes below zero.
_FACTORIES = frozenset("zeros ones empty full rand randn randint eye arange new_zeros new_ones new_empty new_full".split())


# Operations that raise, or not, depending on the values in their tensors.
_RAISING = frozenset(("getitem", "setitem", "__getitem__", "__setitem__", "gather", "scatter", "scatter_", "scatter_add",
                      "scatter_add_", "index_select", "index_add", "index_add_", "index_copy", "index_copy_", "index_fill",
                      "index_fill_", "index_put", "index_put_", "embedding", "embedding_bag", "take", "take_along_dim",
                      "cross_entropy", "nll_loss", "one_hot", "bincount", "repeat_interleave", "multinomial", "bernoulli",
                      "binary_cross_entropy", "floor_divide", "floordiv", "remainder", "mod", "inverse", "cholesky", "inv",
                      "solve", "linalg_inv", "linalg_solve", "linalg_cholesky", "_assert_async", "normal", "searchsorted", "bucketize",
                      "quantile", "nanquantile", "poisson", "put", "put_", "celu", "celu_", "mvlgamma", "mvlgamma_",
                      "slice_scatter", "diagonal_scatter"))


# Those that do for tensors of whole numbers, and those whose rules let pass what kernels refuse for a tensor without elements.
_RAISING_OF_INTEGERS = frozenset(("fmod", "fmod_", "remainder_", "floor_divide_", "pow", "pow_", "__pow__", "__rpow__", "__ipow__", "ipow"))
_RAISING_OF_NOTHING = frozenset(("max", "min", "sort", "argsort", "roll"))


def may_raise(name: str, tensors: Iterable[TensorVariable]) -> bool:
    """Whether an operation that its rule lets pass may raise when the graph runs."""
    if name in _RAISING:
        return True
    if name in _RAISING_OF_INTEGERS:
        return not any(t.fake.is_floating_point() or t.fake.is_complex() for t in tensors)
    return name in _RAISING_OF_NOTHING and any(type(n) is int and n == 0 for t in tensors for n in t.fake.shape)


def fills_by_mask(name: str, args: list) -> bool:
    """``x[mask] = number``, whatever the mask's values are. The fake operation looks neither at its shape nor at the number's dtype."""
    if name not in ("setitem", "__setitem__") or len(args) != 3:
        return False
    filled, mask, value = args
    if not isinstance(filled, TensorVariable) or not isinstance(mask, TensorVariable) or mask.fake.dtype is not torch.bool:
        return False
    sizes, known = tuple(mask.fake.shape), tuple(filled.fake.shape[: mask.fake.dim()])
    if any(type(n) is not int for n in (*sizes, *known)) or sizes != known:
        return False
    if isinstance(value, ConstantVariable):
        return type(value.value) in (bool, int, float)
    return isinstance(value, TensorVariable) and not value.fake.dim() and value.fake.dtype is filled.fake.dtype


def caught_at(state: Any) -> int:
    """How many frames deep an exception would meet what may end it, a handler or an exit of a ``with``; 0: nowhere."""
    return next((depth for depth in range(len(state.frames), 0, -1) if catches(state.frames[depth - 1])), 0)
