"""Nodes for torch's higher-order operators, which call graphs inside of the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from ..model.value import VariableTracker
from . import running
from .fake import CaptureMode
from .raising import note_errors


def pair(node: torch.fx.Node) -> tuple[torch.fx.Node, Any]:
    return node, node.meta["example_value"]


def call_operator(tx: Any, name: str, op: Any, bodies: Iterable, arguments: Callable, fake: Any) -> list[VariableTracker]:
    """A node for ``op``, whose results are tensors. ``arguments(0, *nodes)`` gives its arguments, ``arguments(1, *bodies)`` fake ones.

    ``fake`` is called in the operator's place on fake tensors.
    """
    graph = tx.state.graph
    inner = [graph.submodule(name, module) for module in bodies]
    try:
        with graph.propagating():
            result = fake(*arguments(1, *bodies))
    except running.PROPAGATION_ERRORS as error:
        raise running.not_propagated(f"torch.{name}", error) from None
    note_errors(tx.state, name, True)
    tx.state.dirty += 1
    node = graph.node("call_function", op, arguments(0, *inner), {})
    node.meta["stack_trace"] = tx.state.stack_trace()
    return running.wrap_result(tx, node, tuple(result), running.Unwrapper(tx, op)).items  # type: ignore[attr-defined]


def known_in_capture(op: Any, fake: Any = None) -> Any:
    """The operator's rule for fake tensors is looked up by the very class of the mode. ``fake``: one that has the kernel's strides."""

    def rule(mode: Any, *args: Any) -> Any:
        with mode:
            return fake(*args)

    op.python_key_table.setdefault(CaptureMode, rule if fake is not None else op.python_key_table[FakeTensorMode])
    return op
