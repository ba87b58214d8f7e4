"""OutputGraph: the FX graph that a trace builds, one placeholder for each tensor that comes from outside."""

from __future__ import annotations

import contextlib
import enum
import functools
import operator
import re
import sys
from collections.abc import Iterator
from typing import Any

import torch
import torch.fx
from torch._dispatch.python import enable_python_dispatcher

from .. import _native
from ..collector import Waiting
from ..errors import GraphBreak
from ..model.source import Source
from ..model.value import SymbolicVariable, TensorVariable
from ..unheard import Counting
from . import devices, seeds, symbolic
from .code import CapturedGraph
from .fake import CaptureMode, FakeTensor, is_expanded, to_fake
from .modes import ENTERED, Modes, leave_inference_mode
from .policy import SymbolInput, fits
from .wrappers import plain_parts


class Change(enum.IntEnum):
    """What a graph does to an input. HIDDEN: it is written, but eager mode would not count up its version."""

    NONE = 0
    SEEN = 1
    HIDDEN = 2


class OutputGraph:
    """The graph, its inputs (tensors' trackers and ``symbols.SymbolInput``) and, once there are any, its symbols."""

    def __init__(self, policy: Any = None, config: Any = None) -> None:
        self.root = CapturedGraph()
        self.body: Any = None  # of a function that torch will call, while it is traced: subgraphs.Body
        self.modules: dict[str, torch.fx.GraphModule] = {}  # the graphs of such functions
        self.mode = CaptureMode()
        self.policy = policy
        self.config = config
        self.symbols: Any = None
        self.whole = False  # the function must be one graph: what could be a break is better a constant
        self.data_numbers = self.data_shapes = False  # numbers read from tensors, and sizes that depend on values, may be symbols
        self.reads_numbers = False  # and so may numbers that an operation reads by itself
        self.makes_parameters = True  # the compiler knows how
        self.where: Any = lambda: ""
        self.inputs: list[Any] = []
        self.leaves: dict[int, Any] = {}  # id -> the fake of a leaf that is no operand in grad mode: leaves.py
        self.rebound: list[Any] = []  # fakes of tensors from outside as they are once their data is set: rebound.py
        self.has_arrays = False  # NumPy's arrays that may have a tensor's memory
        self.has_numbers = False  # tensors that stand for Python floats: optim.NumberVariable
        self.takes_numbers = False  # an operation reads a tensor as its ``alpha``, which a compiler may refuse
        self.refuses_numbers = False  # the compiler is known to
        self._last_placeholder: Any = None
        self._names: dict[Any, str] = {}  # what nodes are named after their targets
        self._paths: dict[Source, str] = {}  # what placeholders are named after
        self.unheard = Counting()
        self.watches_devices = False  # a default device is or was in force
        self.call_count = 0
        self.switches = 0  # nodes that change torch's modes
        self.clears = 0  # of these, nodes that clear what autocast has cast
        self.cleared = False  # no region of autocast was entered since the last of them
        self.may_raise = False  # an operation fails or not depending on the values in its tensors
        self.modes = Modes()  # at frame entry
        self.modes.touched = set()
        self.outer = self.modes  # what the exits of all `with` blocks that are entered would lead to
        self.unwound: Modes | None = None  # the same, where an operation may raise
        self.leaving: tuple[Any, ...] | None = None  # exits of blocks around such an operation that were entered before a break
        self.levels = 0  # of forward mode that are open: forward_ad.py
        self.nesting = 0  # of autocast, against frame entry
        self._versions: list[tuple[Any, int]] = []
        self._ended_with: list[tuple[Any, int]] | None = None  # those of a finished graph that have changed
        self._gained: dict[int, Any] = {}  # id -> a fake base that has come to require a gradient, or one from outside
        self.extents: dict[Source, Any] = {}  # of tensors from outside; None: sizes and strides are constants
        self.classes: dict[type, bool] = {}  # of tensors; whether they can be captured, which is guarded
        self.annotations: dict[str, Any] = {}  # what the program wants to have written on nodes

    def release(self) -> None:
        """Let go of the program's tensors: the symbols know the graph, and it them."""
        self.__dict__.clear()

    @property
    def graph(self) -> torch.fx.Graph:
        """The graph to which nodes are added."""
        return self.root if self.body is None else self.body.graph

    def submodule(self, name: str, module: torch.fx.GraphModule) -> torch.fx.Node:
        """A node for a graph inside of the graph."""
        modules = self.modules if self.body is None else self.body.modules
        key = f"{name}_body_{len(modules)}"
        modules[key] = module
        graph = self.graph
        graph.owning_module = None
        return graph.create_node("get_attr", key, (), {})

    def check_leaves(self, fakes: list) -> None:
        """GraphBreak where autograd would take note of one of ``leaves``."""
        if torch.is_grad_enabled() and any(id(fake) in self.leaves or id(getattr(fake, "_base", None)) in self.leaves for fake in fakes):
            raise GraphBreak("autograd_in_trace", "a leaf that was made without grad mode, and is used in it")

    def propagating(self) -> Any:
        """The context in which an operation runs on fake tensors."""
        context = _Propagating(self.mode if self.symbols is None else self._with_symbols(), self.unheard)
        return context if not self.watches_devices else self._watched(context)

    @contextlib.contextmanager
    def _watched(self, context: Any) -> Iterator[None]:
        with devices.Watch(), context:
            yield

    @contextlib.contextmanager
    def _with_symbols(self) -> Iterator[None]:
        """Composite operations whose C++ code asks for plain sizes (``lstm``) have decompositions in Python."""
        with enable_python_dispatcher(), self.mode:
            yield

    def use_symbols(self) -> Any:
        """The trace's symbols, from now on understood by the fake mode."""
        if self.symbols is None:
            Waiting.loaded |= f"{__package__}.symbols" not in sys.modules
            from .symbols import Symbols  # noqa: PLC0415 - sympy and its kin: half a second that static captures don't pay

            self.symbols = Symbols(self, self.config, self.where)
            self.mode.use_symbols(self.symbols.env, symbolic.holds)
        return self.symbols

    def number(self, value: int | float, source: Source) -> Any:
        """The symbolic number for an int or float from outside, None where it is a constant of this capture."""
        if self.policy is None or not self.policy.number(value, source) or not fits(value):
            return None
        return self.use_symbols().number(value, source)

    def add_number(self, name: str, source: Source, value: Any, item: Any = None) -> Any:
        """A placeholder for a number, or for the tensor that carries the float ``item``."""
        with self._at_front():
            node = self._placeholder(name, torch.Tensor if item is not None else torch.SymInt)
        if item is not None:
            fake = to_fake(self.mode, value)
            fake.item_memo = item
            node.meta["carries"] = item
            node.meta["example_value"] = fake  # no need to watch it: nothing but the number is ever used
        else:
            node.meta["example_value"] = value
        node.meta["source"] = source.name
        self.inputs.append(SymbolInput(node, source, value))
        return node

    def add_input(self, value: torch.Tensor, source: Source, extents: Any = None) -> TensorVariable:
        """A placeholder for ``value``; ``example_value`` in its meta is the fake twin."""
        if self._gained and id(_base_of(value)) in self._gained:
            raise GraphBreak("fake_tensor_failure", "a tensor whose base or view was written to with a gradient before")
        fake = to_fake(self.mode, value, extents)
        if 0 in value.stride() and is_expanded(value) and type(fake) is FakeTensor:
            self.mode.expanded.add(fake.untyped_storage()._cdata)
        # Inference tensors count no versions: whether the graph changes one is unknown.
        self._versions.append((fake, -1 if fake.is_inference() else fake._version))
        with self._after_placeholders():
            node = self._placeholder(placeholder_name(source, self._paths), torch.Tensor)
        self._last_placeholder = node
        node.meta["example_value"] = fake
        node.meta["source"] = source.name
        if extents is not None:
            node.meta["extents"] = extents
        tracker = TensorVariable(node, fake, type(value), source, value)
        self.inputs.append(tracker)
        return tracker

    def _placeholder(self, name: str, kind: Any) -> torch.fx.Node:
        """A placeholder whose parameter in the graph's code has the node's own name, which no other one has."""
        node = self.root.placeholder(name, type_expr=kind)
        if node.name != name:
            node.target = node.name
        return node

    def _at_front(self) -> Any:
        first = next(iter(self.root.nodes), None)
        return self.root.inserting_before(first) if first is not None else _Here()

    def _after_placeholders(self) -> Any:
        if self._last_placeholder is not None:
            return self.root.inserting_after(self._last_placeholder)
        return self._at_front()

    def node(self, kind: str, target: Any, args: tuple, kwargs: dict) -> torch.fx.Node:
        self.call_count += 1
        if self.body is not None:
            args, kwargs = torch.fx.map_arg((args, kwargs), self.body.own)  # type: ignore[assignment]
        if target is operator.pow and repr(args[0]).startswith("-"):
            target = torch.pow  # torch.fx would write -1 ** x, which is -(1 ** x)
        graph = self.graph
        name = self._names.get(target)
        if name is None:
            name = self._names[target] = graph._target_to_str(target)
        # Arguments come later: create_node() walks through them with pytree, in search of numbers that we never pass.
        node = graph.create_node(kind, target, name=name)
        node.args = args
        if kwargs:
            node.kwargs = kwargs
        if self.annotations:
            node.meta["custom"] = dict(self.annotations)
        return node

    def gain(self, fake: Any) -> bool:
        """A write lets ``fake`` require a gradient, and with it all that is a view of the same base.

        False where an input is such a view, and its fake is none: autograd would tell the program what the trace does not know.
        """
        base = _base_of(fake)
        inputs = [t for t in self.inputs if isinstance(t, TensorVariable)]
        gained = {id(b): b for b in (base, *(_base_of(t.value) for t in inputs if _base_of(t.fake) is base))}
        self._gained.update(gained)
        return all(_base_of(t.fake) is base for t in inputs if id(_base_of(t.value)) in gained)

    def is_late(self, fake: Any) -> bool:
        """Whether this is a view from before its base came to require a gradient, and nobody has looked at it since.

        Autograd refuses to write to such a view. AOTAutograd makes it anew, from what the base has become.
        """
        return bool(self._gained) and id(_base_of(fake)) in self._gained and _native.grad_is_late(fake)

    def is_of_rebound(self, fake: Any) -> bool:
        """Whether this is a view of a tensor whose data was set before: in the graph, it is a view of something else."""
        return bool(self.rebound) and any(fake is not known and getattr(fake, "_base", None) is known for known in self.rebound)

    def is_changed(self, fake: Any) -> bool:
        """Whether the graph may have written to this input, or to what shares its memory, so far."""
        return self._touched([(f, version) for f, version in self._versions if f is fake])

    @staticmethod
    def _changed(versions: list[tuple[Any, int]]) -> list[tuple[Any, int]]:
        return [(fake, version) for fake, version in versions if version < 0 or fake._version != version]

    def _changed_inputs(self) -> list[tuple[Any, int]]:
        return self._changed(self._versions) if self._ended_with is None else self._ended_with

    def _touched(self, versions: list[tuple[Any, int]]) -> bool:
        """Whether one of these was changed, or its memory written to."""
        return bool(self._changed(versions)) or self._written(versions)

    def _written(self, versions: list[tuple[Any, int]]) -> bool:
        written = self.mode.written
        return bool(written) and any(place in written for fake, _ in versions for place in _places(fake))

    def repeatable(self) -> bool:
        """Whether a graph that failed half-way leaves no trace: it changes no input and draws no random number."""
        return not self.unrepeatable()

    def may_run_anew(self) -> bool:
        """Whether it leaves no trace once the random numbers that it drew are put back."""
        if not self.mode.random:
            return self.repeatable()
        return not self._changes_inputs() and self.random_devices() is not None

    def random_devices(self) -> tuple[torch.device, ...] | None:
        """Whose random numbers its operations may draw; None where it is not known how to put them back."""
        return seeds.devices_of(n.meta.get("example_value") for n in self.root.nodes)

    def _changes_inputs(self) -> bool:
        return bool(self._changed_inputs()) or self._written(self._versions)

    def snapshot(self) -> tuple[list[tuple[Any, int]], int]:
        """The tensors that there are, with their versions, and how many inputs: for ``changed_since``."""
        nodes, body = list(self.root.nodes), self.body
        while body is not None:
            nodes += body.graph.nodes
            body = body.parent
        values = [n.meta.get("example_value") for n in nodes]
        return [(v, v._version) for v in values if isinstance(v, torch.Tensor) and not v.is_inference()], len(self._versions)

    def changed_since(self, older: tuple[list[tuple[Any, int]], int]) -> bool:
        """Whether an operation has changed a tensor that was there, or came from outside since; ``mode.written`` was empty then."""
        return self._touched([*older[0], *self._versions[older[1] :]])

    def unrepeatable(self) -> str:
        """Why the graph does not give the same when it runs again on the same inputs; empty if it does."""
        if self.mode.random:
            return "it draws random numbers"
        return "it changes its inputs" if self._changes_inputs() else ""

    def changed_inputs(self) -> list[Change]:
        """For each input whether an operation of the graph may change it."""
        kinds: dict[int, Change] = {}
        for fake, version in self._changed_inputs():
            hidden = version >= 0 and fake._version - version == self.mode.uncounted.get(id(fake), 0)
            kinds[id(fake)] = Change.HIDDEN if hidden else Change.SEEN
        if self.mode.written:  # by way of its `data`, or of another input, which may be a view under the same version counter
            seen = {place for fake, _ in self._versions if kinds.get(id(fake)) for place in _places(fake)}
            for fake, version in self._versions:
                if self._written([(fake, version)]):
                    kinds.setdefault(id(fake), Change.HIDDEN if seen.isdisjoint(_places(fake)) else Change.SEEN)
        if not kinds:
            return [Change.NONE] * len(self.inputs)
        return [kinds.get(id(t.node.meta["example_value"]), Change.NONE) for t in self.inputs]

    def changed_with_gradient(self) -> list[tuple[Source, torch.Tensor]]:
        """Inputs that require a gradient and may be changed: autograd refuses that for leaves and their views."""
        changed, found = {id(fake) for fake, _ in self._changed_inputs()}, []
        for tracker in self.inputs:
            if isinstance(tracker, TensorVariable) and id(tracker.node.meta["example_value"]) in changed and _requires_grad(tracker.value):
                found.append((tracker.source, tracker.value))
        return found

    def finish(self, outputs: list[Any]) -> torch.fx.GraphModule:
        """Close the graph with these outputs; placeholders that nothing uses are dropped."""
        for _ in ENTERED.stack[len(self.modes.entered):]:
            self.graph.call_function(leave_inference_mode)
        self.graph.output(tuple(self.symbols.node(t) if isinstance(t, SymbolicVariable) else t.node for t in outputs))
        if self.symbols is not None:
            self.symbols.write_out_fixed()
            self.symbols.drop_unused()
        for node in reversed(list(self.graph.nodes) if self.rebound else ()):
            if not node.users and node.meta.get("rebound"):  # nothing has asked for it since
                self.graph.erase_node(node)
        for tracker in list(self.inputs):
            if not tracker.node.users:
                self.graph.erase_node(tracker.node)
                self.inputs.remove(tracker)
        # Numbers first. Parameters in the function's order first, then what globals, attributes and cells gave, in the order of use.
        order = {node: i for i, node in enumerate(self.graph.nodes)}
        self.inputs.sort(key=lambda t: (
            isinstance(t, TensorVariable), t.source.key[0] if t.source.access == "ARG" else 1 << 30, order[t.node]))
        if any(tracker.node is not node for tracker, node in zip(self.inputs, self.graph.nodes, strict=False)):
            for tracker in reversed(self.inputs):
                first = next(iter(self.graph.nodes))
                if first is not tracker.node:
                    first.prepend(tracker.node)
        self._ended_with = self._changed(self._versions)
        return torch.fx.GraphModule(self.modules, self.graph)


def _base_of(tensor: torch.Tensor) -> torch.Tensor:
    with torch._C.DisableTorchFunctionSubclass():
        base = tensor._base
    return tensor if base is None else base


def _requires_grad(tensor: torch.Tensor) -> bool:
    with torch._C.DisableTorchFunctionSubclass():  # no code of its class is to see that
        return tensor.requires_grad


class _Here:
    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


_WORDS = re.compile(r"[^\W_]+")
_MODULE_DICTS = frozenset(("_modules", "_parameters", "_buffers"))  # a program reads module.fc.weight


@functools.lru_cache(4096)  # models have a few names, many times
def _in_words(text: str) -> str:
    return "_".join(_WORDS.findall(text.lower()))


def placeholder_name(source: Source, known: dict[Source, str]) -> str:
    """``known``: words of paths, which those of others begin with."""
    if source.access == "ARG":
        name = source.key[1]
        name = name.replace(".", "_")  # the variable of an inlined comprehension
        return "self_" if name == "self" else name  # forward() of the graph has a self of its own
    return _words(source, known) or "t"


def _words(source: Source, known: dict[Source, str]) -> str:
    """What is left of the path's name without all but letters and digits, as a program would write it."""
    words = known.get(source)
    if words is None:
        base = source.base
        if source.access == "KEY" and type(source.key) is str and base is not None and base.base is not None:
            attribute = base.access == "DICT" and source.key.isidentifier()
            words = _words(base.base if attribute else base, known)
            if not attribute or source.key not in _MODULE_DICTS:
                words = "_".join(filter(None, (words, _in_words(source.key if attribute else repr(source.key)))))
        else:
            words = _in_words(source.name)
        known[source] = words
    return words


def _places(fake: Any) -> Iterator[int]:
    """The storages of a tensor, or of those inside of it."""
    return (part.untyped_storage()._cdata for part in plain_parts(fake))


class _Propagating:
    """A context in which torch warns of nothing, and forgets nothing: the operation warns when it runs for real. torch's own
    memory of what it warns of once is switched off. ``unheard`` counts what it would have told."""

    def __init__(self, context: Any, unheard: Counting) -> None:
        self.context = context
        self.unheard = unheard

    def __enter__(self) -> None:
        self.always = torch.is_warn_always_enabled()
        torch.set_warn_always(True)
        self.unheard.__enter__()
        self.context.__enter__()

    def __exit__(self, *error: Any) -> Any:
        try:
            return self.context.__exit__(*error)
        finally:
            self.unheard.__exit__()
            torch.set_warn_always(self.always)
