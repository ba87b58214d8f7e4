"""Values of symbolically run code: entries of the stack, and the variables that they become."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from ..bytecode.flow import perhaps_bound, unbound_loads
from ..errors import DecompileError
from .copies import SHORT
from .items import AssertionClass, Aug, BuildClass, Code, Definition, Function, Import, ImportedName, Item, Iter, as_expr
from .scopes import parameter_count
from .walker import Walker

LOAD, STORE = ast.Load(), ast.Store()


class State:
    """The stack and what passed-on values the engine's variables stand for."""

    __slots__ = ("stack", "aliases")

    def __init__(self, stack: list, aliases: dict[str, ast.expr]) -> None:
        self.stack, self.aliases = stack, aliases

    def copy(self) -> State:
        return State(list(self.stack), type(self.aliases)(self.aliases))


class Branchy(Exception):
    """The control flow is too tangled for statements."""


class OpenLoop:
    """A loop around the code that is run: its header, what is behind it (-1 for nothing), and the stack at its header."""

    __slots__ = ("header", "behind", "stack", "outer", "is_left")

    def __init__(self, header: int, behind: int, stack: list, outer: OpenLoop | None) -> None:
        self.header, self.behind, self.stack, self.outer = header, behind, stack, outer
        self.is_left = False  # by a break


class Where(NamedTuple):
    """What is around the code that is run: the handler that covers it, the loop, and where the run ends."""

    covered: int = -1
    until: int = -1
    loop: OpenLoop | None = None

    def to(self, until: int) -> Where:
        return self._replace(until=until)

    def inside(self, covered: int) -> Where:
        """In a ``try`` statement. What lies behind it is met outside."""
        return self._replace(covered=covered)

    def within(self, loop: OpenLoop) -> Where:
        return Where(self.covered, -1, loop)


def is_atom(item: Any) -> bool:
    return isinstance(item, (ast.Constant, Code, BuildClass, Import)) or getattr(item, "is_local", False)


def local_name(node: Any) -> str | None:
    return node.id if getattr(node, "is_local", False) else None


def taken_out(variable: Any) -> ast.expr:
    """``(name, (name := None))[0]``: the value of a variable, which lets go of it."""
    clear = ast.NamedExpr(ast.Name(variable.id, STORE), ast.Constant(None))
    made = ast.Subscript(ast.Tuple([variable, clear], LOAD), ast.Constant(0), LOAD)
    made.moves = variable.id  # type: ignore[attr-defined]
    return made


def cleared(names: Iterable[str]) -> ast.stmt:
    """``name = None``."""
    return ast.Assign([ast.Name(name, STORE) for name in names], ast.Constant(None), lineno=0)


def is_cleared(statement: ast.stmt, name: str | None) -> bool:
    """Whether a statement is ``name = None``, and ``name`` one of the emitter's."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Constant) or statement.value.value is not None:
        return False
    return len(statement.targets) == 1 and getattr(statement.targets[0], "id", None) == name and name is not None


class Values(Walker):
    """The part of the emitter that keeps values in order."""

    if TYPE_CHECKING:
        run: Callable[..., tuple[list[ast.stmt], Any]]  # the Emitter's

    def __init__(self, code: Any) -> None:
        super().__init__(code)
        self.is_comprehension = self.is_genexpr = self.is_expression = False
        for inst in self.g.insts:
            if inst.op in ("LOAD_FAST", "STORE_FAST", "DELETE_FAST"):
                inst.arg = _identifier(inst.arg)
        self.unbound = unbound_loads(self.g.insts, code.co_varnames[: parameter_count(code)])  # loads of locals that may raise
        self.bound_before = perhaps_bound(self.g.insts, code.co_varnames[: parameter_count(code)])
        self.needs: set[str] = set()
        self.taken = {*code.co_varnames, *code.co_names, *code.co_cellvars, *code.co_freevars}
        self.fresh_names: set[str] = set()  # of variables that stand for entries of the stack
        self.counts: dict[str, int] = {}
        self.cells: dict[str, ast.expr] = {}
        self.cell_names = self.cells_used()
        self.pieces: dict[int, int] = {}  # first instruction -> number, for code that is no tree
        self.todo: list[int] = []
        self.meets: set[int] = set()
        self.is_structured = True  # no numbered pieces
        self.steps = 0

    def count_step(self) -> None:
        self.steps += 1
        if self.steps > 30 * self.g.n + 3000:
            raise DecompileError("the control flow is too tangled")

    def walk(self, code: Any) -> Walker:
        found = self.nested.get(id(code))
        if found is None:
            found = self.nested[id(code)] = self.nested_walker(code, Walker, SHORT)
        return found

    def fresh(self, stem: str) -> str:
        while True:
            self.counts[stem] = count = self.counts.get(stem, 0) + 1
            name = f"__{stem}_{count}"
            if name not in self.taken:
                self.taken.add(name)
                self.fresh_names.add(name)
                self.bound.add(name)
                return name

    def local(self, name: str) -> ast.expr:
        made = ast.Name(name, LOAD)
        made.is_local = True  # type: ignore[attr-defined]
        return made

    def take(self, item: Any) -> ast.expr:
        """The expression of an entry, for one use."""
        if isinstance(item, Iter):
            return ast.Call(ast.Name("iter", LOAD), [item.node], [])
        if isinstance(item, Code):
            return ast.Constant(f"__co_consts[{self.const_index(item.code)}]")
        if isinstance(item, AssertionClass):
            return ast.Name("AssertionError", LOAD)
        if isinstance(item, BuildClass):
            return ast.Name("__build_class__", LOAD)
        if isinstance(item, Function) and item.code.co_name != "<lambda>":
            closure = item.closure or ast.Tuple([], LOAD)
            return self.call_runtime("function", ast.Constant(f"__co_consts[{self.const_index(item.code)}]"), closure)
        if isinstance(item, (Aug, Import, ImportedName, Definition)):
            raise DecompileError(f"{type(item).__name__} is used as a value")
        node = as_expr(item)
        return copy.copy(node) if isinstance(node, ast.Name) else without_slices(node)

    def spill(self, state: State, k: int, out: list) -> None:
        """Entry ``k`` into a variable."""
        item = state.stack[k]
        if is_atom(item):
            return
        if isinstance(item, Definition):
            out.append(self.defined(item))
            state.stack[k] = self.local(item.node.name)
            self.bound.add(item.node.name)
            return
        state.stack[k] = self.bind(self.fresh("value"), item, out)

    def bind(self, name: str, item: Any, out: list) -> ast.expr:
        """Assigns an entry to a variable of the emitter's; the entry that stands for it."""
        value = item.left if isinstance(item, Aug) else self.take(item)
        out.append(ast.Assign([ast.Name(name, STORE)], value, lineno=0))
        if isinstance(item, Aug):
            out.append(ast.AugAssign(ast.Name(name, STORE), item.op, item.right))
        return self.local(name)

    def defined(self, item: Definition) -> ast.stmt:
        item.node.decorator_list = item.decorators[::-1]
        return item.node

    def flush(self, state: State, out: list, count: int | None = None) -> None:
        """The lowest ``count`` entries into variables, in the order in which they were evaluated."""
        for k in range(len(state.stack) if count is None else count):
            if not is_atom(state.stack[k]):
                self.spill(state, k, out)

    def settle(self, state: State, out: list, names: Any) -> None:
        """Assigns variables that were left out, those of ``names`` and those that stand for one of them."""
        for name, value in list(state.aliases.items()):
            if name in names or local_name(value) in names:
                del state.aliases[name]
                out.append(ast.Assign([ast.Name(name, STORE)], self.take(self.last(state, value)), lineno=0))

    def release(self, state: State, name: str, out: list) -> None:
        """Before ``name`` changes: entries and variables that stand for it get their value."""
        for k, item in enumerate(state.stack):
            if local_name(item) == name:
                kept = self.fresh("value")
                self.flush(state, out, k)
                out.append(ast.Assign([ast.Name(kept, STORE)], self.local(name), lineno=0))
                for j in range(k, len(state.stack)):
                    if local_name(state.stack[j]) == name:
                        state.stack[j] = self.local(kept)
                break
        for item in state.stack:
            if not is_atom(item) and _mentions(item, name):
                self.flush(state, out)
                break
        self.release_aliases(state, name, out)

    def release_aliases(self, state: State, name: str, out: list) -> None:
        state.aliases.pop(name, None)
        for other, value in list(state.aliases.items()):
            if local_name(value) == name:
                self.settle(state, out, (other,))

    def move(self, state: State, name: str) -> bool:
        """``name`` is about to be cleared: what lies on the stack, if only once, is taken out of it."""
        holding = [k for k, item in enumerate(state.stack) if local_name(item) == name]
        if len(holding) == 1 and not any(_mentions(item, name) for item in state.stack[holding[0] + 1 :] if not is_atom(item)):
            state.stack[holding[0]] = taken_out(self.local(self.name(name)))
            return True
        return False

    # -- lifetimes: a variable of the emitter's holds its object as long as an entry, or an alias, stands for it

    def owns(self, name: str | None) -> TypeGuard[str]:
        """Whether a variable stands for entries of the stack and nothing else."""
        return name is not None and (name in self.fresh_names or not self.is_structured and name.startswith("__entry_"))

    def is_held(self, state: State, name: str, count: int | None = None) -> bool:
        """Whether one of the lowest ``count`` entries, or a variable that was left out, stands for ``name``."""
        return (any(local_name(item) == name for item in state.stack[:count])
                or any(local_name(value) == name for value in state.aliases.values()))

    def last(self, state: State, item: Any) -> Any:
        """A value that has left the stack or the aliases, for one use: if it was the last of its variable, it is taken out of that."""
        name = local_name(item)
        if not self.owns(name) or self.is_held(state, name):
            return item
        return taken_out(item)

    def drop(self, state: State, item: Any, out: list) -> None:
        """Behind an entry that has left the stack, or the aliases, without a use."""
        name = local_name(item)
        if self.owns(name) and not self.is_held(state, name):
            self.flush(state, out)
            out.append(cleared((name,)))

    def consume(self, state: State, count: int, out: list) -> None:
        """The ``count`` entries on top are about to be used up: what nothing else holds is taken out of its variable."""
        stack = state.stack
        low = len(stack) - count
        seen: set[str] = set()
        for k in range(len(stack) - 1, low - 1, -1):
            name = local_name(stack[k])
            if not self.owns(name) or name in seen:
                continue
            seen.add(name)
            if self.is_held(state, name, low):
                continue
            if any(_mentions(item, name) for item in stack[k + 1 :] if not is_atom(item)):
                self.flush(state, out)
            stack[k] = taken_out(stack[k])

    def call_runtime(self, name: str, *args: ast.expr) -> ast.expr:
        self.needs.add(name)
        return ast.Call(ast.Name(f"__{name}", LOAD), list(args), [])

    def name(self, name: str) -> str:
        return super().name(_identifier(name))

    def cell(self, name: str) -> ast.expr:
        """The cell of a variable itself."""
        known = self.cells.get(name)
        if known is not None:
            return known
        arguments = ast.arguments([], [], None, [], [], None, [])
        closure = ast.Attribute(ast.Lambda(arguments, ast.Name(self.name(name), LOAD)), "__closure__", LOAD)
        made = ast.Subscript(closure, ast.Constant(0), LOAD)
        made.is_cell = True  # type: ignore[attr-defined]
        return made


class Fixed(dict):
    """Aliases in code that a handler covers: none may be added."""


def _mentions(item: Any, name: str) -> bool:
    if isinstance(item, Item):
        nodes = [getattr(item, slot, None) for slot in item.__slots__]
        return any(isinstance(n, ast.AST) and _mentions(n, name) for n in nodes)
    return any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(item))


def without_slices(node: Any) -> Any:
    """Slices outside of a subscript are calls."""
    if isinstance(node, ast.Tuple) and any(isinstance(part, ast.Slice) for part in node.elts):
        return ast.Tuple([without_slices(part) for part in node.elts], LOAD)
    if not isinstance(node, ast.Slice):
        return node
    none = ast.Constant(None)
    parts = [node.lower or none, node.upper or none, *([node.step] if node.step else [])]
    return ast.Call(ast.Name("slice", LOAD), parts, [])


def _identifier(name: str) -> str:
    return name if name.isidentifier() else re.sub(r"\W", "_", name)
