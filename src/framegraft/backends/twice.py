"""Second derivatives of graphs that AOTAutograd has compiled.

Its backward pass cannot be differentiated. torch finds that out late, and only for some inputs: for the others
``autograd.grad(..., allow_unused=True)`` says that they are unused. So a backward pass with ``create_graph=True`` is done anew
here: the graph as it was captured runs on the same inputs, with gradients that eager mode can differentiate. Where that cannot
be (random numbers, inputs that have changed), what is computed from the gradients raises ``DoubleBackwardError`` in its turn.

A backward pass that AOTAutograd compiles late may take sizes for granted that the cache entry does not guard. Calls of other
sizes then run the graph as it was captured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import sympy
import torch
from torch.fx import GraphModule
from torch.utils.weak import TensorWeakRef

from ..errors import DoubleBackwardError
from ..tensor.modes import Modes
from ..tensor.symbols import Questions
from .tracing import fake_mode_of

_autograd: Any = torch._C._autograd  # type: ignore[attr-defined]


def twice_differentiable(compiled: Callable[..., Any], gm: GraphModule) -> Callable[..., Any]:
    """``compiled``, which AOTAutograd made of ``gm``; as it is where no output requires a gradient."""
    outputs: Any = gm.graph.output_node().args[0]
    if not any(getattr(getattr(o, "meta", {}).get("example_value"), "requires_grad", False) for o in outputs):
        return compiled
    return _Twice(compiled, gm)


class _Call:
    """What one call leaves with its node of the autograd graph, until that is used up.

    Of a graph that cannot run again the inputs are not kept alive: one that it has changed would hold the node in its turn.
    """

    __slots__ = ("graph", "inputs", "numbers", "versions")

    def __init__(self, graph: _Twice, inputs: Sequence[Any], versions: list[int] | None) -> None:
        self.graph = graph
        self.numbers = graph.numbers(inputs)
        weak = (TensorWeakRef(i) if isinstance(i, torch.Tensor) else None for i in inputs)
        self.inputs: Any = inputs if versions is not None else list(weak)
        self.versions = versions

    def anchors(self, needed: Sequence[bool]) -> list[torch.Tensor]:
        """The inputs that gradients are computed for, as far as they are still there."""
        wanted = [i for i, needs in zip(self.inputs, needed, strict=False) if needs]
        found = wanted if self.versions is not None else [ref() for ref in wanted]
        return [t for t in found if t is not None]


class _Twice:
    def __init__(self, compiled: Callable[..., Any], gm: GraphModule) -> None:
        self._compiled = compiled
        self._captured = gm.forward
        self._why = gm.meta.get("unrepeatable", "")
        self._modes = Modes()
        self._place: tuple[int, int] | None = None  # where the outputs' autograd graph has the compiled graph
        self._cls: Any = None  # the autograd.Function that AOTAutograd has made for this graph
        nodes = [n for n in gm.graph.nodes if n.op == "placeholder"]
        self._tensors = [i for i, n in enumerate(nodes) if isinstance(n.meta.get("example_value"), torch.Tensor)]
        self._symbols = dict(_symbols(nodes))
        mode = fake_mode_of(gm)
        self._questions = getattr(mode.shape_env, "guards", None) if mode is not None else None
        self._late: list[sympy.Basic] = []

    def _versions(self, inputs: Sequence[Any]) -> list[int] | None:
        """Of the tensors among the inputs; None where one is an inference tensor, which counts none."""
        tensors = [inputs[i] for i in self._tensors]
        return None if any(t.is_inference() for t in tensors) else [t._version for t in tensors]

    def numbers(self, inputs: Sequence[Any]) -> list[int]:
        """The values of the graph's symbols in a call."""
        return [inputs[i] if dim is None else inputs[i].shape[dim] for i, dim in self._symbols.values()]

    def fits(self, numbers: list[int]) -> bool:
        """Whether a call is of sizes that the backward pass was compiled for."""
        if not self._late:
            return True
        values = dict(zip(self._symbols, numbers, strict=True))
        return all(expression.xreplace(values) == sympy.true for expression in self._late)

    def backward(self, plain: Callable[..., Any], ctx: Any, call: _Call, args: tuple) -> Any:
        """The compiled backward pass of a call, or that of the captured graph where the compiled one is for other sizes."""
        if self.fits(call.numbers):
            known = len(self._questions.late) if isinstance(self._questions, Questions) else 0
            found = plain(ctx, *args)
            if isinstance(self._questions, Questions):
                self._late += self._questions.late[known:]
            if self.fits(call.numbers):
                return found
        found = self.gradients(ctx, call, _unboxed(args))
        if found is None:
            raise RuntimeError(
                "the backward pass of a compiled graph is for other sizes than those of this call, and the graph cannot run again: "
                f"{self._why or 'its inputs have changed since'}.\n  Hint: compile with dynamic=False, or call backward() once "
                "on the sizes that come first before the others.")
        return found

    def __call__(self, *inputs: Any) -> Any:
        if self._late and not self.fits(self.numbers(inputs)):
            return self._captured(*inputs)
        versions = self._versions(inputs) if not self._why else None
        before = torch.autograd._get_sequence_nr()  # type: ignore[attr-defined]
        outputs = self._compiled(*inputs)
        node = self._node(outputs, before, inputs)
        if node is not None:
            node.framegraft_call = _Call(self, inputs, versions)
        return outputs

    def _node(self, outputs: Sequence[Any], before: int, inputs: Sequence[Any]) -> Any:
        """What this call has put into the autograd graph; None where it put nothing there, as without grad mode.

        An output may be a view of an input, which another graph has made: that one's node was there before the call.
        """
        if self._place is not None:
            index, depth = self._place
            node = outputs[index].grad_fn if isinstance(outputs[index], torch.Tensor) else None
            for _ in range(depth):
                node = _following(node)
            if getattr(type(node), "_forward_cls", None) is self._cls:
                return node
        older = {id(fn) for i in self._tensors if (fn := inputs[i].grad_fn) is not None}
        for index, output in enumerate(outputs):
            node = output.grad_fn if isinstance(output, torch.Tensor) else None
            for depth in range(3):
                if node is None or id(node) in older or node._sequence_nr() < before:
                    break
                cls = getattr(type(node), "_forward_cls", None)
                if hasattr(cls, "_double_backward") and (self._cls is None or cls is self._cls):
                    if self._cls is None:
                        _prepare(cls)
                    self._place, self._cls = (index, depth), cls
                    return node
                node = _following(node)
        return None

    def gradients(self, ctx: Any, call: _Call, given: Sequence[Any]) -> tuple | None:
        """Gradients of the captured graph for those of its outputs; None where it cannot run again."""
        wanted = [i for i, needed in enumerate(ctx.needs_input_grad) if needed]
        if call.versions is None or len(ctx.needs_input_grad) != len(call.inputs):
            return None
        if self._versions(call.inputs) != call.versions:
            return None
        now = Modes()
        try:
            self._modes.restore()
            with torch.enable_grad():
                inputs = list(call.inputs)
                for i in wanted:  # an input's own hooks are for the pass around this one
                    inputs[i] = inputs[i].view_as(inputs[i])
                outputs = self._captured(*inputs)
        finally:
            now.restore()
        if len(outputs) != len(given):
            return None
        pairs = [(o, g) for o, g in zip(outputs, given, strict=True)
                 if g is not None and isinstance(o, torch.Tensor) and o.requires_grad]
        found = torch.autograd.grad([o for o, _ in pairs], [inputs[i] for i in wanted], [g for _, g in pairs],
                                    create_graph=torch.is_grad_enabled(), allow_unused=True)
        results: list[Any] = [None] * len(call.inputs)
        for i, gradient in zip(wanted, found, strict=True):
            results[i] = gradient
        return tuple(results)

    def refusal(self) -> DoubleBackwardError:
        return DoubleBackwardError(
            f"a second derivative of a compiled graph ({self._why or 'its inputs have changed since'}).\n  Hint: compile what is "
            "differentiated twice with backend=\"eager\", or keep it out of the graph with framegraft.disable.")


def _symbols(placeholders: Sequence[Any]) -> Iterator[tuple[sympy.Symbol, tuple[int, int | None]]]:
    """The symbols that inputs of a graph have as a size, or are: the input's index, and the dimension."""
    for index, node in enumerate(placeholders):
        value = node.meta.get("example_value")
        for dim, size in enumerate(value.shape) if isinstance(value, torch.Tensor) else [(None, value)]:
            if type(size) is torch.SymInt and isinstance(size.node.expr, sympy.Symbol):
                yield size.node.expr, (index, dim)


def _following(node: Any) -> Any:
    """The first of the nodes that a backward pass goes to behind ``node``; None where there is none."""
    following = getattr(node, "next_functions", ())
    return following[0][0] if following else None


def _unboxed(args: tuple) -> list[Any]:
    """The gradients, which AOTAutograd may hand over in one list."""
    return list(args[0] if len(args) == 1 and type(args[0]) is list else args)


def _prepare(cls: Any) -> None:
    """Let an autograd.Function that AOTAutograd made for one graph differentiate as above."""
    plain = cls.backward

    def backward(ctx: Any, *args: Any) -> Any:
        call = getattr(ctx, "framegraft_call", None)
        kept = _autograd._get_current_graph_task_keep_graph()
        if call is None:
            return plain(ctx, *args)
        if not kept:
            ctx.framegraft_call = None
            return call.graph.backward(plain, ctx, call, args)
        twice = torch.is_grad_enabled()
        if not twice and not cls.metadata.bw_donated_idxs:
            return call.graph.backward(plain, ctx, call, args)
        given = _unboxed(args)
        metadata = cls.metadata
        plain_outputs = not (metadata.num_mutated_inp_runtime_indices or metadata.num_intermediate_bases or metadata.num_outputs_aliased)
        found = call.graph.gradients(ctx, call, given) if plain_outputs else None
        if found is not None or not twice:
            return call.graph.backward(plain, ctx, call, args) if found is None else found
        with torch.no_grad():
            once = call.graph.backward(plain, ctx, call, args)
        return _Once.apply(call.graph.refusal(), once, *call.anchors(ctx.needs_input_grad))

    cls.backward = staticmethod(backward)


class _Once(torch.autograd.Function):
    """Gradients that depend on all inputs of the graph, and cannot be differentiated."""

    @staticmethod
    def forward(ctx: Any, error: Exception, gradients: Sequence[Any], *anchors: torch.Tensor) -> Any:
        ctx.error = error
        return tuple(gradients)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise ctx.error
