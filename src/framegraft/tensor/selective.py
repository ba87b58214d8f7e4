"""``checkpoint(..., context_fn=...)`` with the contexts of ``create_selective_checkpoint_contexts``: which operations are kept.

Eager mode asks a policy of the program's about each operation of the dispatcher while the region runs. Here it is asked when the
region has been traced, once for each operation that a node of it stands for; it may change nothing but what ``context_fn`` made.
What it says decides only what is kept and what is computed anew: the values are the same.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

import torch
import torch.utils.checkpoint
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import SAC_IGNORED_OPS, CheckpointPolicy, SelectiveCheckpointContext

from ..errors import GraphBreak
from ..interp.regions import pure
from ..interp.state import realize
from ..model.dispatch import handles
from ..model.value import ConstantVariable, ListVariable, ObjectVariable, TupleVariable, VariableTracker, constant
from ..semantics import calls, functions
from ..semantics.wrapping import wrap_pinned
from . import running, subgraphs
from .fake import CaptureMode

_PARAMETERS = ("policy_fn_or_list", "allow_cache_entry_mutation")
_WHAT = "torch.utils.checkpoint with a context_fn"
_SAVED = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)
_PLAIN = (bool, int, float, complex, str, type(None), torch.dtype, torch.device, list, tuple, dict)


class _ContextVariable(VariableTracker):
    """One of the two contexts. It stays in the trace."""

    __slots__ = ("policy",)

    def __init__(self, policy: VariableTracker) -> None:
        self.policy = policy
        self.source = None

    def python_type(self) -> type:
        return TorchDispatchMode


@handles(torch.utils.checkpoint.create_selective_checkpoint_contexts)
def contexts(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    given = dict(zip(_PARAMETERS, args, strict=False))
    if len(args) > len(_PARAMETERS) or {*given} & {*kwargs} or not {*kwargs} <= {*_PARAMETERS} or _PARAMETERS[0] not in given | kwargs:
        raise GraphBreak("untraceable_call", "create_selective_checkpoint_contexts() of what it does not take")
    policy = realize((given | kwargs)[_PARAMETERS[0]], tx.state)
    if not functions.is_callable(tx, policy) and _operators(tx, policy) is None:  # eager mode says what is wrong
        raise GraphBreak("untraceable_call", "create_selective_checkpoint_contexts() of neither a function nor a list of operators")
    return TupleVariable([_ContextVariable(policy) for _ in range(2)])


def _operators(tx: Any, policy: VariableTracker) -> list | None:
    """What a list lists; None where that is not operators, or it is no list."""
    if not isinstance(policy, ListVariable):
        return None
    listed = [getattr(realize(item, tx.state), "value", None) for item in policy.items]
    return listed if all(isinstance(op, (torch._ops.OpOverload, torch._ops.HigherOrderOperator)) for op in listed) else None


class Selection:
    """What the contexts that ``context_fn`` gives say about the nodes of a region."""

    def __init__(self, tx: Any, context_fn: VariableTracker) -> None:
        self.tx = tx
        with pure(tx.state, _WHAT):
            self.older = tx.state.older
            made = realize(calls.call(tx, context_fn, [], {}), tx.state)
        items = made.items if type(made) is TupleVariable else []
        if len(items) != 2 or not all(isinstance(item, _ContextVariable) for item in items):
            raise GraphBreak("untraceable_call", f"{_WHAT} that gives other contexts than create_selective_checkpoint_contexts")
        self.policy = realize(items[0].policy, tx.state)
        self.listed: list | None = None
        if isinstance(self.policy, ListVariable):
            self.listed = _operators(tx, self.policy)
            if self.listed is None:
                raise GraphBreak("untraceable_call", f"{_WHAT} that lists something other than operators")

    def mark(self, nodes: Iterable[torch.fx.Node]) -> None:
        """Put down for each node what the policy says. Where it stands for several operations, one that is kept decides."""
        state = self.tx.state
        with pure(state, _WHAT):
            state.older = self.older
            for node in nodes:
                said = [self._ask(*call) for call in _operations(node)]
                if said:
                    node.meta["recompute"] = next((policy for policy in said if policy in _SAVED), said[0])

    def _ask(self, op: Any, args: tuple, kwargs: dict, result: Any) -> CheckpointPolicy:
        if self.listed is not None:
            return CheckpointPolicy.MUST_SAVE if op in self.listed else CheckpointPolicy.PREFER_RECOMPUTE
        tx, graph = self.tx, self.tx.state.graph
        body = subgraphs.Body(graph.body)

        def shown(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                return body.input(value)
            return value if isinstance(value, _PLAIN) else wrap_pinned(tx, value)

        graph.body = body
        try:
            told = pytree.tree_map(shown, (args, kwargs, result))
            given = [subgraphs.as_tracker(tx, arg) for arg in told[0]]
            named = {key: subgraphs.as_tracker(tx, value) for key, value in told[1].items()}
            context = {"is_recompute": constant(False), "op_output": subgraphs.as_tracker(tx, told[2])}
            about = calls.call(tx, wrap_pinned(tx, SelectiveCheckpointContext), [], context)
            said = realize(calls.call(tx, self.policy, [about, wrap_pinned(tx, op), *given], named), tx.state)
        finally:
            graph.body = body.parent
        answer = said.value if isinstance(said, (ConstantVariable, ObjectVariable)) else None
        if isinstance(answer, bool):
            return CheckpointPolicy.MUST_SAVE if answer else CheckpointPolicy.PREFER_RECOMPUTE
        if not isinstance(answer, CheckpointPolicy):
            raise GraphBreak("untraceable_call", f"{_WHAT} whose policy gives something other than a CheckpointPolicy")
        return answer


class _Listening(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.heard: list[tuple] = []

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # as in fake.py

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func not in SAC_IGNORED_OPS:
            self.heard.append((func, args, kwargs or {}, result))
        return result


def _operations(node: torch.fx.Node) -> list[tuple]:
    """What a node stands for in the dispatcher, as (operator, arguments, keywords, result); found on tensors like its own."""
    values = [used.meta.get("example_value") for used in node.all_input_nodes]
    if node.op not in ("call_function", "call_method") or not any(isinstance(value, torch.Tensor) for value in pytree.tree_leaves(values)):
        return []
    if any(used.op == "get_attr" for used in node.all_input_nodes):
        raise GraphBreak("untraceable_call", f"{_WHAT} around a function that torch calls")
    with CaptureMode(), _Listening() as listening, contextlib.suppress(*running.PROPAGATION_ERRORS):
        args, kwargs = torch.fx.map_arg((node.args, node.kwargs), lambda used: pytree.tree_map(_like, used.meta.get("example_value")))
        listening.heard.clear()
        if node.op == "call_method":
            getattr(args[0], node.target)(*args[1:], **kwargs)  # type: ignore[arg-type]
        else:
            node.target(*args, **kwargs)  # type: ignore[operator]
    return listening.heard


def _like(value: Any) -> Any:
    """A tensor of the same form without symbols, in the fake mode that is in force."""
    if not isinstance(value, torch.Tensor):
        return _plain(value)
    size, stride = [_plain(n) for n in value.shape], [_plain(n) for n in value.stride()]
    return torch.empty_strided(size, stride, dtype=value.dtype, device=value.device).requires_grad_(value.requires_grad)


def _plain(number: Any) -> Any:
    if isinstance(number, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        number = number.node.hint
        if number is None:
            raise GraphBreak("untraceable_call", f"{_WHAT} around sizes that depend on values")
    return number
