"""Symbols for sizes and numbers that differ from call to call, and what the trace has assumed of them.

A symbol stands for one *slot*: a size or stride of an input, or an int or float that comes from outside. torch's ShapeEnv
reasons with symbols and collects the guards; here symbols become inputs of the graph, and guards an expression over slots.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import sympy
import torch
import torch._guards
import torch.fx
from torch.fx.experimental import symbolic_shapes
from torch.fx.experimental.symbolic_shapes import (
    DimDynamic,
    PendingUnbackedSymbolNotFound,
    ShapeEnv,
    StrictMinMaxConstraint,
    compute_unbacked_bindings,
    free_unbacked_symbols,
)
from torch.fx.proxy import GraphAppendingTracer
from torch.utils._sympy.interp import sympy_interp
from torch.utils._sympy.numbers import int_oo
from torch.utils._sympy.reference import OptimizedPythonReferenceAnalysis
from torch.utils._sympy.value_ranges import ValueRanges

from ..errors import ConstraintViolation, GraphBreak
from ..model.dispatch import handles
from ..model.source import Source
from ..model.value import ConstantVariable, SymbolicVariable, VariableTracker, constant
from ..native.private import hints, note_unbacked_input, source_field
from . import drawn
from .expressions import NUMBER, SIZE, STRIDE, IsFinite, ShapeExpression, Slot, python_function
from .policy import fits
from .symbolic import CLASSES, raw_expression, specialise, truth
from .wrappers import plain_parts

SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


@dataclasses.dataclass(frozen=True)
class InputSource(torch._guards.Source):
    """What torch calls the place that a symbol comes from; here only its name."""

    text: str

    @source_field
    def name(self) -> str:  # type: ignore[override]
        return self.text

    @source_field
    def guard_source(self) -> Any:  # type: ignore[override]
        return torch._guards.GuardSource.LOCAL


class Questions(list):
    """ShapeEnv's list of guards; remembers which line of the program asked for each.

    AOTAutograd may compile a backward pass when it first runs. What is asked then is in ``late``: the cache entry exists, and its
    guards do not hold these.
    """

    def __init__(self, where: Callable[[], str]) -> None:
        super().__init__()
        self.where = where
        self.causes: list[str] = []
        self.closed = False
        self.late: list[sympy.Basic] = []

    def append(self, guard: Any) -> None:
        if self.closed:
            self.late.append(guard.expr)
            return
        self.causes.append(self.where())
        super().append(guard)


@dataclasses.dataclass
class Extents:
    """Symbolic sizes and strides of an input; ``free`` as in ``native.calibrate.tensor_spec``."""

    sizes: tuple
    strides: tuple
    free: tuple[bool, ...]


def _is_there(node: Any) -> bool:
    """Whether a number has its node; it may have been made in a rehearsal, all nodes of which are erased."""
    return node is not None and not getattr(node, "_erased", False)


class Symbols:
    """The symbols of one trace."""

    def __init__(self, graph: Any, config: Any, where: Callable[[], str]) -> None:
        self.graph = graph
        self.env = ShapeEnv(
            duck_shape=False,
            allow_scalar_outputs=graph.reads_numbers,
            allow_dynamic_output_shape_ops=graph.data_shapes,
        )
        self.env.guards = self._guards = Questions(where)
        self.slots: dict[sympy.Symbol, Slot] = {}
        self.numbers: dict[Source, SymbolicVariable] = {}
        self.derived: dict[sympy.Symbol, SymbolicVariable] = {}  # what the program computes with floats
        self.nodes: dict[Any, Any] = {}  # expression -> node
        self.made: list[Any] = []  # nodes that only compute numbers
        self.relations: dict[sympy.Symbol, tuple] = {}  # of strides: slot, what it is, the user's line
        self.strict: set = set()  # sizes that the user marked: one particular value is an error
        self.carried: set = set()  # floats that are inputs of the graph
        self.finite: dict[sympy.Symbol, str] = {}  # floats that have been compared -> the user's line
        self.unbacked: dict[Any, Any] = {}  # symbol -> (node of a tensor, dimension) that has it as a size
        self.drawn: dict[Any, bool] = {}  # symbols of random numbers that the frame draws -> whether they are finite
        self.whole: set = set()  # floats that the data decides, and for which the graph checks that they have an int
        self.checked: dict[Any, Any] = {}  # condition that only the data can tell -> the node that checks it
        self._causes: dict[Any, str] = {}
        self._where = where

    def close(self) -> None:
        """The guards of the entry are made; questions that come later are not among them."""
        self.env.freeze()
        self._guards.closed = True
        self._guards.where = str

    # -- making symbols

    def _symbol(self, value: Any, source: Source, slot: Slot, **settings: Any) -> Any:
        """A SymInt or SymFloat for a slot; the plain value where torch specialises it (sizes 0 and 1)."""
        place = InputSource(source.name)
        expr = self.env.create_symbol(value, place, DimDynamic.DYNAMIC, **settings)
        if not isinstance(expr, sympy.Symbol):
            return value
        self.slots[expr] = slot
        self._causes[expr] = self._where()
        make: Any = self.env.create_symfloatnode if type(value) is float else self.env.create_symintnode
        return make(expr, hint=value, source=place)

    def extents(self, tensor: torch.Tensor, source: Source, plan: Any) -> Extents:
        """Sizes and strides as ``plan`` (``policy.Plan``) wants them; strides follow from sizes where they can."""
        sizes = []
        for dim, size in enumerate(tensor.shape):
            if dim in plan.unbacked:
                sizes.append(self._unbacked_size(source, dim, plan.ranges.get(dim)))
                continue
            constraint = _constraint(*plan.ranges[dim]) if dim in plan.ranges else None
            slot = Slot(source, SIZE, dim)
            sizes.append(self._symbol(size, slot.leaf(), slot, constraint_dim=constraint) if dim in plan.sizes else size)
            if dim in plan.strict and dim in plan.sizes:
                self.strict.add(sizes[-1].node.expr)
        strides = self._strides(tensor, source, sizes, plan)
        free = tuple(type(n) is not int for n in (*sizes, *strides))
        return Extents(tuple(sizes), tuple(strides), free)

    def _unbacked(self, *source: Any) -> Any:
        """A number that the data decides, and that no operation is about to give."""
        made = self.env.create_unbacked_symint(*source)
        self.env.pending_fresh_unbacked_symbols = [s for s in self.env.pending_fresh_unbacked_symbols if s != made.node.expr]
        return made

    def _unbacked_size(self, source: Source, dim: int, limits: Any) -> Any:
        slot = Slot(source, SIZE, dim)
        made = self._unbacked(InputSource(slot.leaf().name))
        symbol = made.node.expr
        self.graph.mode.has_unbacked = True
        low, high = limits or (None, None)
        self.env.constrain_symbol_range(symbol, low or 0, int_oo if high is None else high)
        note_unbacked_input(self.env, symbol)
        self.slots[symbol] = slot
        self._causes[symbol] = self._where()
        return made

    def random_number(self, cls: type, source: Source, low: int, high: int, finite: bool) -> SymbolicVariable:
        """One that the frame draws before its graph is called."""
        if cls is int:
            made = self._unbacked(InputSource(source.name))
            self.env.constrain_symbol_range(made.node.expr, low, high)
        else:
            made = self.env.create_unbacked_symfloat()
            self.env.pending_fresh_unbacked_symbols.remove(made.node.expr)
        symbol = made.node.expr
        self.slots[symbol] = Slot(source, NUMBER, 0)
        self.drawn[symbol] = finite
        self.graph.mode.has_unbacked = True
        return SymbolicVariable(made, cls)

    def _strides(self, tensor: torch.Tensor, source: Source, sizes: list, plan: Any) -> list:
        strides: list[Any] = list(tensor.stride())
        known: dict[int, Any] = {}  # what a stride of this value must be: that of the dimension inside, times its size
        for dim in sorted(range(len(strides)), key=lambda d: (strides[d], -d)):
            value = strides[dim]
            expression = known.get(value) if value > 1 else None
            if expression is None and dim in plan.strides and value > 1:
                slot = Slot(source, STRIDE, dim)
                expression = self._symbol(value, slot.leaf(), slot)
            elif type(expression) is torch.SymInt:
                self._follows(Slot(source, STRIDE, dim), expression)
            strides[dim] = value if expression is None else expression
            with self.env.suppress_guards():
                known.setdefault(tensor.shape[dim] * value, sizes[dim] * strides[dim])
        return strides

    def _follows(self, slot: Slot, expression: Any) -> None:
        """A stride is what its neighbours' extents make it, which is guarded: it has no symbol of its own."""
        symbol = sympy.Symbol(f"stride{len(self.relations)}", integer=True)
        self.relations[symbol] = (slot, expression.node.expr, self._where())

    def number(self, value: Any, source: Source) -> SymbolicVariable:
        found = self.numbers.get(source)
        if found is None:
            made = self._symbol(value, source, Slot(source, NUMBER, 0), positive=None, do_not_specialize_zero_one=True)
            found = self.numbers[source] = SymbolicVariable(made, type(value), source)
        return found

    def derived_number(self, fn: Any, target: Any, args: list, result: Any) -> SymbolicVariable | None:
        """A symbol for the number that ``fn`` gives; ``target`` computes it in the graph. ``result`` is what torch makes of it."""
        cls = CLASSES[type(result)]
        tracker = SymbolicVariable(result, cls, None, (fn, target, args))
        if self.is_unbacked(result):
            if cls is int and any(type(a.value) is torch.SymFloat for a in args):
                self._found(tracker)
            return tracker
        value = fn(*(self.hint(a) for a in args))
        if not fits(value) or type(value) is not cls:
            return None
        place = InputSource(f"{getattr(fn, '__name__', fn)}({len(self.derived)})")
        symbol: Any = self.env.create_symbol(value, place, DimDynamic.DYNAMIC, positive=None, do_not_specialize_zero_one=True)
        make: Any = self.env.create_symfloatnode if cls is float else self.env.create_symintnode
        tracker.value = make(symbol, hint=value, source=place)
        self.derived[symbol] = tracker
        self._causes[symbol] = self._where()
        return tracker

    def _found(self, tracker: SymbolicVariable) -> None:
        """An int that is made of a float which the data decides gets a symbol, for what is computed with it."""
        node = self.node(tracker)
        tracker.value = node.meta["example_value"] = self._unbacked()
        self.nodes[tracker.value.node.expr] = node

    def compared(self, values: list, result: Any) -> None:
        """Floats have been compared: for ShapeEnv they are real numbers, equal to themselves and less than infinity. Guarded, and
        where data decides, for which there is no guard, its answer does not count.
        """
        for value in values:
            if type(value) is not torch.SymFloat or self.drawn.get(value.node.expr):
                continue
            if self.is_unbacked(value):
                if type(result) is bool or raw_expression(result).is_Atom:
                    raise GraphBreak("data_dependent_branch", "a comparison of a float that the data decides, which may be nan or infinite")
                continue
            for symbol in raw_expression(value).free_symbols - self.finite.keys():
                self.finite[symbol] = self._where()

    def hint(self, tracker: Any) -> Any:
        """A number's value in this call."""
        return tracker.value if isinstance(tracker, ConstantVariable) else tracker.cls(tracker.value.node.hint)

    # -- symbols in the graph

    def node(self, tracker: SymbolicVariable) -> Any:
        """The node that computes a number; the number itself where it turned out to be fixed.

        Numbers are computed in the outermost graph, and are inputs of those inside of it. Torch's operators hand no floats on to these.
        """
        if tracker.cls is float and self.graph.body is not None:
            return self.fixed(tracker)
        if not _is_there(tracker.node):
            tracker.node = self._make_node(tracker)
        return tracker.node

    def fixed(self, tracker: SymbolicVariable) -> Any:
        """The number as a constant, where no symbol can stand for it. Each value costs a capture then; a break costs none."""
        if not self.graph.whole:
            raise GraphBreak("untraceable_call", f"a {tracker.cls.__name__} that differs from call to call in the place of a constant")
        return specialise(tracker).value  # type: ignore[attr-defined]

    def _make_node(self, tracker: SymbolicVariable) -> Any:
        if tracker.recipe is None:
            return self.expression(raw_expression(tracker.value))
        _, target, args = tracker.recipe
        return self.note(self.graph.root.call_function(target, tuple(self.argument(a) for a in args)), tracker.value)

    def argument(self, tracker: Any) -> Any:
        return tracker.value if isinstance(tracker, ConstantVariable) else self.node(tracker)

    def note(self, node: Any, value: Any) -> Any:
        node.meta["example_value"] = value
        self.made.append(node)
        return node

    def expression(self, expr: Any) -> Any:
        """The node that computes an expression of symbols."""
        if expr.is_number:
            return int(expr) if expr.is_integer else float(expr)
        found = self.nodes.get(expr)
        if _is_there(found):
            return found
        if expr in self.derived:
            made = self.node(self.derived[expr])
        elif isinstance(expr, sympy.Symbol):
            made = self._unbacked_node(expr) if expr in self.unbacked else self._input(expr)
        else:
            tracer = GraphAppendingTracer(self.graph.root)
            before = set(self.graph.root.nodes)
            symbols = {s: torch.fx.Proxy(self.expression(s), tracer) for s in expr.free_symbols}
            made = sympy_interp(OptimizedPythonReferenceAnalysis, symbols, expr).node
            self.made.extend(n for n in self.graph.root.nodes if n not in before and n.op == "call_function")
            is_number = isinstance(expr, sympy.Expr)
            made.meta["example_value"] = self.env.create_symintnode(expr, hint=None) if is_number else self.env.create_symboolnode(expr)
        self.nodes[expr] = made
        return made

    def _unbacked_node(self, symbol: Any) -> Any:
        tensor, dim = self.unbacked[symbol]
        return self.note(self.graph.root.call_method("size", (tensor, dim)), self.env.create_symintnode(symbol, hint=None))

    def _input(self, symbol: Any) -> Any:
        """A placeholder for a slot's number, and for a float the node that reads it from its tensor."""
        if symbol in self.drawn:
            return drawn.read(self, symbol)
        slot = self.slots[symbol]
        hint: Any = hints(self.env).get(symbol)
        if not symbol.is_integer:
            self.carried.add(symbol)
            value = self.env.create_symfloatnode(symbol, hint=float(hint))
            tensor = drawn.as_tensor(float(hint))
            node = self.graph.add_number(f"{symbol}_tensor", slot.source.child("PYCALL", drawn.as_tensor), tensor, item=value)
            return self.note(self.graph.root.call_method("item", (node,)), value)
        value = self.env.create_symintnode(symbol, hint=None if hint is None else int(hint))
        return self.graph.add_number(str(symbol), slot.leaf(), value)

    def known(self, symbol: Any) -> Any:
        """What a symbol has turned out to be."""
        found = self.env.replace(symbol)
        assert found != symbol, symbol
        return found

    def function(self, expr: Any) -> tuple[Callable[..., Any], list]:
        """A Python function that computes an expression, and the symbols that it takes."""
        arguments = sorted(expr.free_symbols, key=str)
        return python_function(expr, arguments, {}), arguments

    @contextlib.contextmanager
    def only_inputs(self) -> Iterator[None]:
        """For compilers: floats that are no input of the graph don't exist. torch would try to specialise them."""
        values = hints(self.env)
        hidden = {s: v for s, v in values.items() if not s.is_integer and s not in self.carried}
        for symbol in hidden:
            del values[symbol]
        try:
            yield
        finally:
            values.update(hidden)

    def settle_inputs(self, placeholders: list[Any]) -> None:
        """For compilers, which look for each symbol among the inputs: one that only occurs in what is computed keeps its value.

        A guard on a sum (``n + x.shape[0] == 10``) lets ShapeEnv write a size as ``10 - n``, and ``n`` need not be an input.
        """
        extents: list[Any] = []
        for node in placeholders:
            value = node.meta.get("example_value")
            if not isinstance(value, torch.Tensor):
                extents.append(value)
                continue
            for tensor in {value, *plain_parts(value)}:
                extents += (*tensor.shape, *tensor.stride())
        found = [n.node.expr for n in extents if type(n) is torch.SymInt]
        known = {expr for expr in found if isinstance(expr, sympy.Symbol)}
        values = hints(self.env)
        for symbol in sorted({s for expr in found for s in expr.free_symbols} - known, key=str):
            if symbol in values:
                self.env.evaluate_expr(sympy.Eq(symbol, values[symbol]))

    def fixed_floats(self, before: int) -> set[Source]:
        """Where the floats are that, says a guard after the first ``before``, are constants which the graph takes or computes from."""
        found: set[Source] = set()
        for guard in self._guards[before:]:
            asked = guard.expr
            if isinstance(asked, sympy.Eq) and asked.rhs.is_number:
                found = found.union(*map(self._inputs_of, asked.lhs.free_symbols & self.carried))
        return found

    def inputs_of(self, names: set[str]) -> set[Source]:
        """Where the floats come from of which a compiler told the names of their symbols."""
        return set().union(*(self._inputs_of(s) for s in self.carried if s.name in names))

    def _inputs_of(self, symbol: Any) -> set[Source]:
        """Where the numbers come from that a symbol is, or is computed from."""
        if symbol in self.slots:
            return {self.slots[symbol].source}
        made = self.derived.get(symbol)
        parts = [a for a in made.recipe[2] if isinstance(a, SymbolicVariable)] if made is not None else []
        return {source for part in parts for s in raw_expression(part.value).free_symbols for source in self._inputs_of(s)}

    def numbers_in(self, value: Any) -> list[SymbolicVariable]:
        """The numbers from outside that a symbolic value is computed from; sizes are none."""
        sources = {source for symbol in raw_expression(value).free_symbols for source in self._inputs_of(symbol)}
        return [self.numbers[source] for source in sources if source in self.numbers]

    def guard_count(self) -> int:
        return len(self._guards)

    # -- what an operation gave

    def bind(self, node: Any, result: Any) -> bool:
        """Take note of the symbols that only the operation at ``node`` can tell. Whether there are any."""
        pending = self.env.pending_fresh_unbacked_symbols
        if not pending:
            return False
        told = free_unbacked_symbols(result)
        pending[:] = [s for s in pending if s in told]  # others are what it reads of a tensor for itself: ``torch.full(size, tensor)``
        try:
            bindings = compute_unbacked_bindings(self.env, result)
        except PendingUnbackedSymbolNotFound:
            raise GraphBreak("dynamic_output_shape", "a size that is computed from what the operation reads of a tensor") from None
        if not bindings:
            return False
        if self.graph.body is not None:
            raise GraphBreak("tensor_item", "a number or size that the data decides in a function that torch calls")
        node.meta["unbacked_bindings"] = bindings
        if isinstance(result, SYMBOLIC):
            for symbol in bindings:
                self.nodes[symbol] = node
        return True

    def bind_sizes(self, node: Any, tensor: torch.Tensor) -> None:
        if self.graph.body is not None:
            return  # what it has from around it is bound
        for dim, size in enumerate(tensor.shape):
            if isinstance(size, torch.SymInt) and isinstance(size.node.expr, sympy.Symbol) and size.node.expr not in self.slots:
                self.unbacked.setdefault(size.node.expr, (node, dim))

    def is_unbacked(self, value: Any) -> bool:
        return any(s not in self.slots or s in self.drawn for s in free_unbacked_symbols(value))

    def is_of_graph(self, value: Any) -> bool:
        """Whether only the graph can tell the number."""
        return any(s not in self.slots for s in free_unbacked_symbols(value))

    def assumed(self) -> list[Any]:
        """The conditions on numbers that the data decides which torch takes for granted, and that the graph does not check."""
        known = self.env.deferred_runtime_asserts.values()
        return [a.expr for asserts in known for a in asserts
                if not _is_there(self.checked.get(a.expr)) and all(map(self._is_bound, a.expr.free_symbols))]

    def allows_size(self, condition: Any) -> bool:
        """Whether a condition only says that a number may be a size."""
        return isinstance(condition, sympy.Le) and condition.lhs == 0 and condition.rhs.is_Symbol

    def _is_bound(self, symbol: Any) -> bool:
        """Whether a node can have the value of a symbol: of what an operation gives there is none before the operation."""
        return symbol in self.slots or symbol in self.unbacked or symbol in self.derived or _is_there(self.nodes.get(symbol))

    def write_out_fixed(self) -> None:
        """Integers that turned out to be fixed stand in the graph as themselves: of a SymInt, ``torch.tensor([n])`` takes 32 bits.

        Not those that the data decides: what fixed them is an operation, or a check, that has to see them.
        """
        known = hints(self.env)
        for node in self.graph.root.nodes:
            value = node.meta.get("example_value")
            if type(value) is torch.SymInt and node.users and value.node._expr.free_symbols <= known.keys():
                expr = self.env.replace(value.node._expr)
                if expr.is_number:
                    for user in list(node.users):
                        user.args, user.kwargs = torch.fx.map_arg((user.args, user.kwargs), lambda n: int(expr) if n is node else n)

    def drop_unused(self) -> None:
        """Erase nodes of numbers that nothing uses."""
        for node in sorted(self.made, reverse=True):
            if not node.users and node.graph is self.graph.graph and not node._erased:
                if node.target == "item" and "carries" in node.args[0].meta:
                    self.carried.discard(node.args[0].meta.pop("carries").node.expr)  # its tensor is used as it is
                self.graph.graph.erase_node(node)

    # -- guards

    def guards(self) -> list[tuple[ShapeExpression, str]]:
        """Everything that the trace has assumed of the slots: (expression, the user's line that asked)."""
        found: list[tuple[Any, str]] = [(sympy.Eq(s, expr, evaluate=False), cause) for s, (_, expr, cause) in self.relations.items()]
        slots = {**self.slots, **{s: slot for s, (slot, _, _) in self.relations.items()}}
        for symbol, slot in [*self.slots.items(), *((s, None) for s in self.derived)]:
            if symbol in self.drawn:
                continue
            cause = self._causes[symbol]
            expr = self.env.replace(symbol)
            if expr.is_number and symbol in self.strict:
                raise self._violation(symbol, expr)
            if expr != symbol:
                found.append((sympy.Eq(symbol, expr, evaluate=False), cause))
            if not symbol.is_integer or expr in self.slots and expr != symbol:
                continue
            limits = self.env.var_to_range[symbol]
            for bound, low in ((limits.lower, True), (limits.upper, False)):
                if bound in (int_oo, -int_oo, sympy.oo, -sympy.oo) or low and bound == 0 and slot is not None and slot.what != NUMBER:
                    continue
                found.append((sympy.Le(bound, symbol, evaluate=False) if low else sympy.Le(symbol, bound, evaluate=False), cause))
        found += [(g.expr, cause) for g, cause in zip(self._guards, self._guards.causes, strict=True)]
        found += [(IsFinite(s), cause) for s, cause in self.finite.items() if not self.env.replace(s).is_number]
        made: dict[Any, tuple[ShapeExpression, str]] = {}
        for expr, cause in found:
            for part in expr.args if isinstance(expr, sympy.And) else (expr,):
                key = frozenset(part.args) if isinstance(part, sympy.Eq) else part
                if part is not sympy.true and key not in made:
                    made[key] = (ShapeExpression.of(part, slots, self.derived), cause)
        return list(made.values())


    def _violation(self, symbol: Any, value: Any) -> ConstraintViolation:
        asked = [(g, c) for g, c in zip(self._guards, self._guards.causes, strict=True) if symbol in g.expr.free_symbols]
        guard, cause = asked[-1] if asked else (None, self._causes[symbol])
        name = self.slots[symbol].leaf().name
        why = "" if guard is None else f" ({ShapeExpression.of(guard.expr, self.slots, self.derived)})"
        return ConstraintViolation(
            f"{name} was marked with mark_dynamic, but the program needs it to be {value}{why}, asked by {cause}. "
            "Use maybe_mark_dynamic, or remove what asks for one particular size.")


def _constraint(low: int | None, high: int | None) -> Any:
    limits: Any = ValueRanges(max(low or 0, 2), int_oo if high is None else high)
    return StrictMinMaxConstraint(vr=limits, warn_only=False)


def _has_answer(function: Any) -> None:
    """A question of the program's that torch answers also where only the data can tell."""

    @handles(function)
    def answer(tx: Any, args: list, kwargs: dict) -> VariableTracker:
        asked = (args or [*kwargs.values()])[0]
        if not isinstance(asked, (ConstantVariable, SymbolicVariable)) or asked.python_type() is not bool:
            raise GraphBreak("untraceable_call", f"{function.__name__}() of a {asked.python_type().__name__}")
        symbols = tx.state.graph.symbols
        if isinstance(asked, SymbolicVariable) and symbols.is_unbacked(asked.value):
            return constant(function(asked.value))
        return constant(function(truth(asked) if isinstance(asked, SymbolicVariable) else asked.value))


for _name in ("guard_or_false", "guard_or_true", "statically_known_true", "statically_known_false"):
    if hasattr(symbolic_shapes, _name):
        _has_answer(getattr(symbolic_shapes, _name))
