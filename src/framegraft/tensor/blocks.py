"""Blocks: calls of modules that repeat an earlier one, as the layers of a stack do.

The first call of a block is traced. A later call does the same if nothing differs that the first has looked at, and all
that a trace looks at is on record: below the module, the guards; of the arguments, what their trackers show; of the rest of
the program, what no call has changed in between. So the guards below the first module, rebased, are checked on the second;
where they hold, they become guards of the second, and the first one's operations are run again on its tensors: shapes,
aliases, effects and errors come from the same function as those of operations that are traced.

What has another effect than operations on tensors, or a result that is not made of tensors and constants, is no block.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import operator
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .. import _native
from ..errors import GraphBreak, Restart
from ..model.guards import Guard, Template, below, presence, unseen
from ..model.program import ProgramBuilder
from ..model.source import Source
from ..model.value import ConstantVariable, LazyVariable, ObjectVariable, TensorVariable, TupleVariable, VariableTracker
from .likeness import Held, Pairs, alike, as_is, is_operand, is_plain, parts_of, shown
from .modes import Modes
from .raising import caught_at
from .recompute import Marks
from .running import run_node
from .twin import empty
from .watching import New, Other, Recipe, View, gives_gradient
from .wrappers import expose, is_wrapper

# Functions that change nothing, and methods by their names: their results are views of the first argument, or copies.
_VIEWS: dict[Any, Any] = {name: getattr(torch.Tensor, name) for name in (
    "transpose", "view", "permute", "unsqueeze", "squeeze", "reshape", "flatten", "contiguous", "expand", "t", "unflatten", "movedim",
    "moveaxis", "swapaxes", "swapdims")}
VIEW: Any = object()  # the recipe of what one of them gives
_VIEWS |= {fn: fn for name in _VIEWS if (fn := getattr(torch, name, None)) is not None}


@dataclasses.dataclass(slots=True)
class Operation:
    """One call of ``run_node``, with the lists among its arguments as they were."""

    kind: str
    target: Any
    args: list[VariableTracker]
    kwargs: dict[str, VariableTracker]
    result: VariableTracker
    node: Any
    graph: Any
    nodes: int  # that it counted for in the graph
    repeats: bool  # it can be made again with other tensors
    caught_at: int  # how many frames deep the program would catch its error
    recipe: Any  # how the result follows from the operands' metadata; VIEW; or None


class Again:
    """An operation that was copied: the one that was traced, and what stands for its operands and result. Most are never asked for more."""

    __slots__ = ("graph", "made", "node", "pairs")

    def __init__(self, made: Operation, pairs: Pairs, node: Any, graph: Any) -> None:
        self.made = made
        self.pairs = pairs
        self.node = node
        self.graph = graph

    def operation(self) -> Operation:
        made, new = self.made, self.pairs.new
        return dataclasses.replace(made, args=[new(a) for a in made.args], kwargs={k: new(v) for k, v in made.kwargs.items()},
                                   result=new(made.result), node=self.node, graph=self.graph)


@dataclasses.dataclass(slots=True)
class Block:
    """A call that was traced: of the module at ``source``, with what was recorded from its start to its end."""

    source: Source
    value: Any
    arguments: list[VariableTracker]
    recorded: list[Operation | Again]
    result: VariableTracker
    outside: int
    callers: str  # where it was called: its operations' stack traces begin with that
    marks: Marks
    pattern: Pattern | None = None

    def operations(self) -> list[Operation]:
        self.recorded = [o.operation() if isinstance(o, Again) else o for o in self.recorded]
        return self.recorded  # type: ignore[return-value]


class Way:
    """The places from a root down to a module that is called. ``taken``: the call has gone that way itself."""

    def __init__(self, source: Source) -> None:
        self.places = frozenset(_path(source))
        self.taken = False


@dataclasses.dataclass(slots=True)
class Pattern:
    """What was seen below a module: ``program`` checks it on another one. Lists are in the order of the program's nodes."""

    program: Any
    guards: list[Guard]  # paths start at the template's root, which stands for the module
    present: dict[Source, str]  # places where there is something, each with its cause
    sources: list[Source]
    values: list[Any]
    tracked: list[int]  # nodes below the first, whose objects have trackers that were made on these paths
    aliases: dict[int, int | None]  # node -> the one that has the same object; None: the very object that the first module has
    rests: dict[tuple[int, ...], Rest] = dataclasses.field(default_factory=dict)  # by the nodes that both modules share


@dataclasses.dataclass(slots=True)
class Rest:
    """What of a pattern is the second module's own: what is below shared objects has been guarded."""

    own: list[Guard]  # on the module itself
    template: Template
    tracked: list[int]
    tensors: list[int]
    shared: list[int]  # the topmost nodes that are not its own


class Blocks:
    """The blocks of one trace. ``differs`` is called before a Restart: this trace must be made without blocks."""

    MOST_FAILURES = 8  # calls of one kind in turn that were no repetition

    def __init__(self, state: Any, differs: Callable[[], None]) -> None:
        self.state = state
        self.differs = differs
        self.operations: list[Operation | Again] = []
        self.open = 0  # calls that may become blocks
        self.known: dict[Any, list[Block]] = {}
        self.failures: dict[Any, int] = {}
        self.ways: list[Way] = []  # to the modules whose calls are open, innermost last
        self._looked_at = -1
        self._held = Held()

    def call(self, tx: Any, fn: ObjectVariable, args: list, kwargs: dict, go: Callable[[], VariableTracker]) -> VariableTracker:
        """What ``go()``, which traces the call of the module, gives, or the repetition of an earlier call."""
        key = None if tx.state.graph.levels else self._key(fn, args, kwargs)
        if key is None or self.failures.get(key, 0) >= self.MOST_FAILURES:
            return go()
        self.open += 1
        try:
            return self._repeated_or_traced(tx, key, fn, args, kwargs, go)
        finally:
            self.open -= 1

    def _repeated_or_traced(
        self, tx: Any, key: Any, fn: ObjectVariable, args: list, kwargs: dict, go: Callable[[], VariableTracker]
    ) -> VariableTracker:
        state = self.state
        arguments = [*args, *kwargs.values()]
        known = [block for block in self.known.get(key, ()) if block.outside == state.outside]
        for block in known:
            result = self._repeat(tx, block, fn, arguments)
            if result is not None:
                self.failures[key] = 0
                return result
        self.failures[key] = self.failures.get(key, 0) + bool(known)
        graph, outside, asked, first = state.graph, state.outside, _asked(state), len(self.operations)
        calls, switches = graph.call_count, graph.switches
        assert fn.source is not None
        way = Way(fn.source)
        self.ways.append(way)
        try:
            result = go()
        finally:
            self.ways.pop()
        recorded = self.operations[first:]
        made = [(o.made if isinstance(o, Again) else o, o.graph) for o in recorded]
        if (not way.taken and state.outside == outside and _asked(state) == asked and state.graph is graph and graph.switches == switches
                and sum(o.nodes for o, _ in made) == graph.call_count - calls
                and all(at is graph and o.repeats and o.caught_at <= len(state.frames) for o, at in made) and is_plain(result)):
            known = known[1 - self.MOST_FAILURES:]
            marks = Marks(o.node for o in recorded)
            known.append(Block(fn.source, fn.value, arguments, recorded, result, outside, self._callers(), marks))
        self.known[key] = known
        return result

    def reached(self, source: Source) -> None:
        """What is at ``source`` was reached from above: the places below it that an open call then sees may not be its module's own."""
        for way in reversed(self.ways):
            if source not in way.places:
                return
            way.taken = True

    def note(self, kind: str, target: Any, args: list, kwargs: dict, result: Any, node: Any, nodes: int, caught_at: int,
             recipe: Recipe | None) -> None:
        """Record an operation of a call that may become a block."""
        again: Any = None
        if recipe is not None and nodes == 1 and _is_made(result, recipe):
            again = recipe if not gives_gradient(recipe) or _recorded([*args, *kwargs.values()]) is not None else None
        elif target in _VIEWS and not kwargs and type(result) is TensorVariable and result.node is node:
            again = VIEW
        given, named = [as_is(a) for a in args], {k: as_is(v) for k, v in kwargs.items()}
        repeats = all(map(is_operand, given)) and all(map(is_operand, named.values()))
        self.operations.append(
            Operation(kind, target, given, named, as_is(result), node, self.state.graph, nodes, repeats, caught_at, again))

    # -- which calls are alike

    def _key(self, fn: ObjectVariable, args: list, kwargs: dict) -> Any:
        """Equal for calls that show the same of their arguments and of torch's modes; None for what is no block."""
        state = self.state
        graph = state.graph
        if (fn.source is None or fn.attrs or fn.namespace is not None or graph.symbols is not None or graph.annotations or state.pure
                or state.exceptions or not self._knows_what_is_held()):
            return None
        seen: dict[Any, int] = {}
        places: list[Source] = []
        seen_of = [shown(a, seen, places) for a in (*args, *kwargs.values(), *self._held.tensors)]
        if None in seen_of or self._leads_there([*places, *self._held.places], fn.source):
            return None
        modes = tuple(Modes().values.items()) if graph.switches else None
        return (fn.cls, len(args), tuple(kwargs), tuple(seen_of), tuple(state.devices), torch.is_grad_enabled(), modes, graph.nesting,
                _asked(state))

    def _knows_what_is_held(self) -> bool:
        """Changes of the trace's objects that hang off changed objects from outside are noticed from now on; False if they can't be."""
        state = self.state
        if self._looked_at != state.outside:
            self._looked_at = state.outside
            held = self._held = Held()
            for tracker in state.mutated.values():
                if tracker.source is not None:
                    held.collect(parts_of(tracker) or ())
            for scope in state.scopes.values():
                held.collect(scope.stores.values())
            state.held = frozenset(held.ids)
        return self._held.all_known

    @staticmethod
    def _leads_there(places: list[Source], module: Source) -> bool:
        """Whether one of the places is that of the module, or on the way to it, or below it."""
        if not places:
            return False
        above = frozenset(_path(module))
        return any(place in above or module in _path(place) for place in places)

    # -- the second call

    def _repeat(self, tx: Any, block: Block, fn: ObjectVariable, arguments: list[VariableTracker]) -> VariableTracker | None:
        """What the call gives, with its operations in the graph and its guards; None where it has to be traced."""
        pattern = block.pattern = block.pattern or self._pattern(block)
        values = None if pattern is None else pattern.program.values((fn.value,), _nothing)
        assert fn.source is not None
        if pattern is None or values is None or not self._apart(pattern, values):
            return None
        if fn.source != block.source and self._has_other_places(fn.source):
            return None
        pairs = Pairs()
        for old, new in zip(block.arguments, arguments, strict=True):
            pairs.add(old, new)
        self._guard(block, pattern, values, fn.source, pairs)
        try:
            state, callers, plainly, mark = self.state, self._callers(), self._runs_plainly(), block.marks.again()
            for copied, operations in itertools.groupby(block.operations(), lambda made: plainly and made.recipe is not None):
                with state.graph.propagating() if copied else contextlib.nullcontext():
                    for made in operations:
                        node = self._copy(made, pairs) if copied else self._operate(tx, made, pairs)
                        mark(made.node, node)
                        trace = made.node.meta.get("stack_trace")
                        if trace is not None:
                            node.meta["stack_trace"] = callers + trace.removeprefix(block.callers)
        except GraphBreak:
            self._stop()
        return pairs.new(block.result)

    def _operate(self, tx: Any, made: Operation, pairs: Pairs) -> Any:
        """The node of an operation that is made again."""
        before = len(self.operations)
        again = run_node(tx, made.kind, made.target, [pairs.new(a) for a in made.args],
                         {k: pairs.new(v) for k, v in made.kwargs.items()})
        if not alike(made.result, again) or len(self.operations) == before:
            self._stop()
        pairs.add(made.result, again)
        return self.operations[-1].node

    def _runs_plainly(self) -> bool:
        """Whether ``run_node`` would do no more than add a node and infer what it gives."""
        graph = self.state.graph
        floats = graph.policy is not None and graph.policy.tensor_floats
        return graph.body is None and not graph.leaves and not graph.has_numbers and not floats and not caught_at(self.state)

    def _copy(self, made: Operation, pairs: Pairs) -> Any:
        """The node of an operation whose result is known: its operands have the metadata that the first one's had. ``propagating()``."""
        state, graph = self.state, self.state.graph
        other = pairs.nodes.get
        args = torch.fx.map_arg(made.node.args, lambda n: other(n, n))
        kwargs = torch.fx.map_arg(made.node.kwargs, lambda n: other(n, n)) if made.node.kwargs else {}
        node = graph.node(made.kind, made.node.target, args, kwargs)
        state.dirty += 1
        state.grew_at = state.steps
        result: VariableTracker
        if made.recipe is VIEW:
            source: Any = pairs.new(made.args[0])
            fake = node.meta["example_value"] = _VIEWS[made.target](source.fake, *args[1:])
            result = TensorVariable(node, fake, torch.Tensor)
        else:
            result = self._follow(made.recipe, made, made.result, node, pairs)
        if self.open > 1:  # a call around this one may become a block
            self.operations.append(Again(made, pairs, node, graph))
        pairs.add(made.result, result)
        return node

    def _follow(self, recipe: Recipe, made: Operation, before: Any, node: Any, pairs: Pairs) -> Any:
        """What the node gives in the place of ``before``."""
        if recipe is Other.NOTHING:
            return before
        if recipe is Other.OPERAND:
            return pairs.new(before)
        graph = self.state.graph
        if isinstance(recipe, list):
            items = []
            for index, (part, old) in enumerate(zip(recipe, before.items, strict=True)):
                at = None if part is Other.NOTHING else graph.graph.call_function(operator.getitem, (node, index), {})
                items.append(self._follow(part, made, old, at, pairs))
            node.meta["example_value"] = tuple(i.fake if isinstance(i, TensorVariable) else None for i in items)
            return TupleVariable(items)
        assert isinstance(recipe, (New, View))
        shape, stride, dtype, device, grad = recipe.base if isinstance(recipe, View) else recipe
        fake: Any = empty(graph.mode, shape, stride, dtype, device)
        if grad:
            fake = graph.mode.record(fake, _recorded([pairs.new(a) for a in (*made.args, *made.kwargs.values())]))
        if isinstance(recipe, View):
            fake = fake.view(recipe.shape)
        node.meta["example_value"] = fake
        return TensorVariable(node, fake, torch.Tensor)

    def _callers(self) -> str:
        return self.state.stack_trace() + "\n"

    def _stop(self) -> None:
        self.differs()
        raise Restart("a repeated block differs")

    def _pattern(self, block: Block) -> Pattern | None:
        """None where a guard tells the module, or what is below it, from another object by where that one is."""
        rebased: dict[Source, Source | None] = {block.source: Template.ROOT}
        above = set(_path(block.source))
        if any(_rebase(source, rebased) is not None for keys in self.state.guards.keys.values() for source in keys):
            return None
        guards: list[Guard] = []
        present: dict[Source, str] = {}
        same: dict[Source, Source | None] = {}
        for guard in self.state.guards.so_far(lambda place: place in above or _rebase(place, rebased) is not None):
            if guard.check in ("ALIAS", "NOALIAS"):
                one, *others = (_rebase(s, rebased) for s in guard.payload)
                if guard.check == "ALIAS" and one is not None:
                    same[one] = others[0]
                    present.setdefault(one, guard.cause)
                elif one is not None or any(others):
                    return None
            elif (source := _rebase(guard.source, rebased)) is None:
                continue
            elif guard.check == "PRESENT":
                present.setdefault(source, guard.cause)
            else:
                guards.append(Guard(source, guard.check, guard.payload, guard.cause))
        builder = ProgramBuilder([*guards, *presence(present)])
        program = _native.GuardProgram(builder.build())
        values = program.values((block.value,), _nothing)
        if values is None:
            return None  # the program's own code has changed something
        before = {new: old for old, new in rebased.items() if new is not None}
        at = builder.position
        by_id = self.state.by_id
        tracked = [node for node, (v, s) in enumerate(zip(values, at, strict=True))
                   if node and (known := by_id.get(id(v))) is not None and known.source == before[s]]
        if any(s is not None and s not in at for s in same.values()):
            return None
        aliases = {at[one]: None if other is None else at[other] for one, other in same.items()}
        return Pattern(program, guards, present, list(at), values, tracked, aliases)

    def _has_other_places(self, source: Source) -> bool:
        """Whether the trace knows the module, or what is below it, from elsewhere, too: earlier calls may have compared it with others."""
        rebased: dict[Source, Source | None] = {source: Template.ROOT}
        return any((_rebase(a, rebased) is None) != (_rebase(b, rebased) is None) for a, b in self.state.guards.aliases)

    def _apart(self, pattern: Pattern, values: list[Any]) -> bool:
        """Whether the objects that the trace tells apart by identity are other ones than any that it knows, or the same."""
        by_id, fresh = self.state.by_id, set()
        for node, other in pattern.aliases.items():
            if values[node] is not (pattern.values[node] if other is None else values[other]):
                return False
        for node in pattern.tracked:
            new = values[node]
            if new is pattern.values[node]:
                continue
            if id(new) in by_id or id(new) in fresh:
                return False
            fresh.add(id(new))
        return True

    @staticmethod
    def _rest(pattern: Pattern, values: list[Any]) -> Rest:
        same = tuple(node for node in pattern.tracked if values[node] is pattern.values[node])
        rest = pattern.rests.get(same)
        if rest is None:
            rest = pattern.rests[same] = _rest_of(pattern, {*same, *pattern.aliases})
        return rest

    def _place_of(self, pattern: Pattern, node: int, value: Any, places: dict[Source, Source]) -> Source:
        """Where the trace knows ``value`` from, which is also at ``node``: below this module too, or elsewhere."""
        other = pattern.aliases.get(node)
        return self.state.by_id[id(value)].source if other is None else below(pattern.sources[other], places)

    def _guard(self, block: Block, pattern: Pattern, values: list[Any], source: Source, pairs: Pairs) -> None:
        """The second module's guards, and notes of where its objects are."""
        state, sources, rest = self.state, pattern.sources, self._rest(pattern, values)
        places: dict[Source, Source] = {Template.ROOT: source}
        for node in rest.tracked:
            new = values[node]
            state.by_id[id(new)] = LazyVariable(new, below(sources[node], places))
            state.keep_alive.append(new)
        for node in rest.shared:
            place = below(sources[node], places)
            if (known := self._place_of(pattern, node, values[node], places)) != place:
                state.guards.add(place, "ALIAS", (place, known))
        for node in rest.tensors:
            before = state.by_id.get(id(pattern.values[node]))
            if before is not None:  # one that a wrapper holds may have been looked at by nobody
                pairs.add(before, self._input(values[node], below(sources[node], places)))
        at = rest.template.position
        if source != block.source:
            for guard in rest.own:
                state.guards.add(source, guard.check, guard.payload, guard.cause)
            state.guards.repeat(rest.template, source, {place: at[s] for s, place in places.items() if at.get(s)})
        if state.graph.symbols is not None:
            self._stop()

    def _input(self, value: torch.Tensor, source: Source) -> VariableTracker:
        """The tracker of a tensor that no tracker stands for, which passes the first one's guards."""
        state = self.state
        graph = state.graph
        if graph.policy is not None and graph.policy.tensor(value, source) is not None:
            return state.builder.wrap(value, source)
        graph.extents[source] = None  # its metadata is guarded
        if value._base is not None:
            return state.builder.wrap(value, source)
        state.guards.tensors.append(source)
        if is_wrapper(type(value)):
            expose(state, value, source)
        made = state.by_id[id(value)] = graph.add_input(value, source)
        state.keep_alive.append(value)
        return made


def _asked(state: Any) -> tuple:
    """Whom torch asks besides the classes of its arguments."""
    return state.overrides_off, state.modes_off, len(state.function_modes)


def _rest_of(pattern: Pattern, same: set[int]) -> Rest:
    """``same``: nodes that have objects which both modules have, or which are at another node, too."""
    own, shared = {Template.ROOT}, []
    for node, source in enumerate(pattern.sources[1:], 1):
        if source.base not in own:
            continue
        if node in same:
            shared.append(node)
        else:
            own.add(source)
    of_module = [g for g in pattern.guards if g.source == Template.ROOT]
    own.remove(Template.ROOT)
    guards = [g for g in pattern.guards if g.source in own]
    present = unseen({s: cause for s, cause in pattern.present.items() if s in own}, guards)
    guards += presence(present)
    builder = ProgramBuilder(guards, [Template.ROOT, *(pattern.sources[node] for node in shared)])
    program = _native.GuardProgram(builder.build())
    nodes = {s: node for node, s in enumerate(pattern.sources)}
    tensors = list({nodes[g.source]: None for g in guards if g.check == "TENSOR"})
    tracked = [n for n in pattern.tracked if pattern.sources[n] in own and not isinstance(pattern.values[n], torch.Tensor)]
    return Rest(of_module, Template(guards, program, builder.position), tracked, tensors, shared)


def _is_made(tracker: VariableTracker, recipe: Recipe) -> bool:
    """Whether the recipe gives a tracker like this one."""
    if isinstance(recipe, list):
        return type(tracker) is TupleVariable and all(map(_is_made, tracker.items, recipe))
    if recipe is Other.NOTHING:
        return type(tracker) is ConstantVariable and tracker.value is None
    return type(tracker) is TensorVariable and (recipe is Other.OPERAND or tracker.cls is torch.Tensor)


def _recorded(trackers: list[VariableTracker]) -> Any:
    """A fake operand that makes autograd record the operation."""
    for tracker in trackers:
        if isinstance(tracker, TensorVariable):
            if tracker.fake.requires_grad:
                return tracker.fake
        elif (found := _recorded(list(parts_of(tracker) or ()))) is not None:
            return found
    return None


def _nothing() -> None:
    """The function that the guards of a block take for the frame's."""


def _path(source: Source | None) -> Iterator[Source]:
    while source is not None:
        yield source
        source = source.base


def _rebase(source: Source, known: dict[Source, Source | None]) -> Source | None:
    """The place below the module at ``source``; None for what is not below it. ``known`` is what was told before."""
    path = []
    at: Source | None = source
    while at is not None and at not in known:
        path.append(at)
        at = at.base
    new = known[at] if at is not None else None
    for step in reversed(path):
        new = known[step] = None if new is None else Source(step.access, step.key, new)
    return new
