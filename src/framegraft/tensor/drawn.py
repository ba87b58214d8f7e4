"""Random numbers of Python's that the frame draws: symbols of which nothing is known, carried into the graph by tensors."""

from __future__ import annotations

import types
from typing import Any

import torch
from torch._ops import OpOverload, OpOverloadPacket

from ..model.dispatch import TENSOR
from ..model.source import Source
from ..model.value import SymbolicVariable, VariableTracker


def as_tensor(value: float) -> torch.Tensor:
    """Called by transformed code: how a number goes into a graph, since compilers know no float inputs, nor ints that the data decides."""
    dtype = torch.float64 if isinstance(value, float) else torch.int64
    return torch.tensor(value, dtype=dtype, device="cpu")  # whatever the default device


def may_draw(tx: Any) -> bool:
    """Whether a draw in front of the graph is the same as here."""
    graph = tx.state.graph
    if graph.body is not None or graph.levels or not graph.reads_numbers or tx.state.pure:
        return False
    if any(node.op == "call_function" and _runs_program(node.target) for node in graph.root.nodes):
        return False
    if graph.may_raise:  # before the draw: what is drawn is put back then
        tx.state.rescued = True
        return tx.state.rescue
    return True


_IN_C = (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, types.GetSetDescriptorType)


def _runs_program(target: Any) -> bool:
    """Whether an operation may run code of the program's, which may draw as well."""
    if isinstance(target, (OpOverload, OpOverloadPacket)):
        name = target.name() if isinstance(target, OpOverload) else str(target)
        return not name.startswith(("aten", "prim"))
    if isinstance(target, types.FunctionType):
        return not target.__module__.startswith("torch.")
    return not isinstance(target, _IN_C)


def make(tx: Any, cls: type, source: Source, low: int, high: int, finite: bool) -> VariableTracker:
    return tx.state.graph.use_symbols().random_number(cls, source, low, high, finite)


def read(symbols: Any, symbol: Any) -> Any:
    """The node that reads the number from its tensor."""
    make: Any = symbols.env.create_symintnode if symbol.is_integer else symbols.env.create_symfloatnode
    value = make(symbol, hint=None)
    example = as_tensor(1 if symbol.is_integer else 1.0)
    carrier = symbols.graph.add_number(f"{symbol}_tensor", symbols.slots[symbol].source.child("PYCALL", as_tensor), example, item=value)
    del carrier.meta["carries"]
    carrier.meta["example_value"].item_memo = None  # a compiler reads it anew
    node = symbols.graph.root.call_method("item", (carrier,))
    node.meta["unbacked_bindings"] = {symbol: ()}
    return symbols.note(node, value)


def is_of_inputs(tx: Any, tracker: SymbolicVariable) -> bool:
    return not tx.state.graph.symbols.is_of_graph(tracker.value)


TENSOR.may_draw, TENSOR.draw, TENSOR.is_of_inputs = may_draw, make, is_of_inputs
