"""Decompiles code that no compiler made: what the engine emits, and the resume functions it makes of a function's rest.

Such code keeps values on the stack between statements, jumps into the middle of blocks and handles exceptions outside of
``try`` statements. It is run symbolically: entries of the stack become expressions, and variables where a statement comes
between a value and its use, so that everything is evaluated in the original order. Branches that do not meet again become
nested ``if`` statements; other control flow becomes a loop over numbered pieces. Operations without syntax are calls of
``runtime``.
"""

from __future__ import annotations

import ast
import copy
import re
from typing import Any

from ..bytecode.flow import stack_use
from ..errors import DecompileError
from . import runtime
from .conditions import none_test
from .expressions import RULES
from .graph import Graph
from .items import AssertionClass, Aug, BuildClass, Code, Definition, Function, Import, ImportedName, Item, Iter, as_expr
from .resumed import is_resume
from .stores import finish_import, store
from .verify import QUIET
from .walker import Walker

LOAD, STORE, DEL = ast.Load(), ast.Store(), ast.Del()
RUNTIME = runtime.__name__  # it is loaded here, so that the code that imports it need not run anything
_MARKS = re.compile(r"__(?:_stack\d|_cell_|temp_\d|stack_\d|graph_out_\d|compiled_fn_\d|resume_at_\d|fg__|failure\b)")
_PASSING = re.compile(r"__(?:temp_|stack_|graph_out_|frame\d|failure\b)")  # variables of the engine that just pass values on
_STORES = ("STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF", "STORE_ATTR", "STORE_SUBSCR")


def is_emitted(code: Any) -> bool:
    """Whether the engine made the code: it names what only the engine does, or is a resume function."""
    if is_resume(code) or any(map(_MARKS.match, (*code.co_varnames, *code.co_names))):
        return True
    g = Graph(code)
    if g.ops[0] == "RETURN_GENERATOR" and "JUMP" in (g.ops[1], *g.ops[3:4]):
        return True  # a generator that goes on in the middle
    if any(op == "LOAD_CLOSURE" and g.ops[i + 1] == "LOAD_ATTR" for i, op in enumerate(g.ops)):
        return True
    # The compiler knows the columns of all that has a line, but for a generator's beginning.
    places = [inst.positions for inst in g.insts if inst.op != "RETURN_GENERATOR"]
    return any(place and place[0] is not None and place[2] is None for place in places)


class _Branchy(Exception):
    """The code's control flow is no tree."""


class _State:
    """The stack and what passed-on values the engine's variables stand for."""

    __slots__ = ("stack", "aliases")

    def __init__(self, stack: list, aliases: dict[str, ast.expr]) -> None:
        self.stack, self.aliases = stack, aliases

    def copy(self) -> _State:
        return _State(list(self.stack), dict(self.aliases))


def _is_atom(item: Any) -> bool:
    return isinstance(item, (ast.Constant, Code, BuildClass, Import)) or getattr(item, "is_local", False)


def _names(node: Any) -> str | None:
    return node.id if getattr(node, "is_local", False) else None


class Emitter(Walker):
    """A walker for one such code object; the code objects inside of it were made by the compiler."""

    def __init__(self, code: Any) -> None:
        super().__init__(code)
        self.is_comprehension = self.is_genexpr = self.is_expression = False
        self.needs: set[str] = set()
        self.taken = {*code.co_varnames, *code.co_names, *code.co_cellvars, *code.co_freevars}
        self.counts: dict[str, int] = {}
        self.cells: dict[str, ast.expr] = {}
        self.pieces: dict[int, int] = {}  # first instruction -> number, for code that is no tree
        self.todo: list[int] = []
        self.meets: set[int] = set()
        self.is_tree = True
        self.steps = 0

    def walk(self, code: Any) -> Walker:
        found = self.nested.get(id(code))
        if found is None:
            found = self.nested[id(code)] = Walker(code, self)
            found.walk_body()
        return found

    def statements(self) -> list[ast.stmt]:
        g = self.g
        start = 1 if g.ops[0] == "RETURN_GENERATOR" else 0
        try:
            if g.back:
                raise _Branchy
            out = self.run(start, _State([], {}), -1)[0]
        except _Branchy:
            out = self.loop(start)
        if self.needs:
            names = [ast.alias(n, f"__{n}") for n in sorted(self.needs)]
            out.insert(0, ast.ImportFrom(RUNTIME, names, 0))
        return out

    # -- pieces

    def loop(self, start: int) -> list[ast.stmt]:
        """Numbered pieces, for control flow that is no tree."""
        g = self.g
        self.is_tree = False
        self.steps = 0
        self.needs.clear()
        self.returns.clear()
        counts: dict[int, int] = {}
        for i in range(g.n):
            for to in g.successors(i):
                counts[to] = counts.get(to, 0) + 1
        self.meets = {to for to, count in counts.items() if count > 1} | {g.resolve(header) for header in g.back}
        first = self.piece(start, _State([], {}))
        at = self.fresh("at")
        self.at = at
        cases = []
        while self.todo:
            i = self.todo.pop(0)
            stack = [self.slot(k) for k in range(g.depth[i])]
            body = self.run(i, _State(stack, {}), -1, True)[0]
            cases.append(ast.match_case(ast.MatchValue(ast.Constant(self.pieces[i])), None, body or [ast.Pass()]))
        return [*first, ast.While(ast.Constant(True), [ast.Match(self.local("__at"), cases)], [])]

    def slot(self, k: int) -> ast.expr:
        return self.local(f"__entry_{k}")

    def piece(self, i: int, state: _State) -> list[ast.stmt]:
        """Statements that leave for the piece at ``i``."""
        i = self.g.resolve(i)
        if i not in self.pieces:
            self.pieces[i] = len(self.pieces)
            self.todo.append(i)
        out: list[ast.stmt] = []
        self.settle(state, out, state.aliases)
        targets, values = [], []
        for k, item in enumerate(state.stack):
            if _names(item) != f"__entry_{k}":
                targets.append(ast.Name(f"__entry_{k}", STORE))
                values.append(self.take(item))
        if len(targets) == 1:
            out.append(ast.Assign(targets, values[0], lineno=0))
        elif targets:
            out.append(ast.Assign([ast.Tuple(targets, STORE)], ast.Tuple(values, LOAD), lineno=0))
        out.append(ast.Assign([ast.Name("__at", STORE)], ast.Constant(self.pieces[i]), lineno=0))
        return out

    # -- values

    def fresh(self, stem: str) -> str:
        while True:
            self.counts[stem] = count = self.counts.get(stem, 0) + 1
            name = f"__{stem}_{count}"
            if name not in self.taken:
                self.taken.add(name)
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
        return copy.copy(node) if isinstance(node, ast.Name) else _without_slices(node)

    def spill(self, state: _State, k: int, out: list) -> None:
        """Entry ``k`` into a variable."""
        item = state.stack[k]
        if _is_atom(item):
            return
        if isinstance(item, Definition):
            out.append(self.defined(item))
            state.stack[k] = self.local(item.node.name)
            self.bound.add(item.node.name)
            return
        name = self.fresh("value")
        out.append(ast.Assign([ast.Name(name, STORE)], self.take(item), lineno=0))
        state.stack[k] = self.local(name)

    def defined(self, item: Definition) -> ast.stmt:
        item.node.decorator_list = item.decorators[::-1]
        return item.node

    def flush(self, state: _State, out: list, count: int | None = None) -> None:
        """The lowest ``count`` entries into variables, in the order in which they were evaluated."""
        for k in range(len(state.stack) if count is None else count):
            if not _is_atom(state.stack[k]):
                self.spill(state, k, out)

    def settle(self, state: _State, out: list, names: Any) -> None:
        """Assigns variables that were left out, those of ``names`` and those that stand for one of them."""
        for name, value in list(state.aliases.items()):
            if name in names or _names(value) in names:
                del state.aliases[name]
                out.append(ast.Assign([ast.Name(name, STORE)], self.take(value), lineno=0))

    def release(self, state: _State, name: str, out: list) -> None:
        """Before ``name`` changes: entries and variables that stand for it get their value."""
        for k, item in enumerate(state.stack):
            if _names(item) == name:
                kept = self.fresh("value")
                self.flush(state, out, k)
                out.append(ast.Assign([ast.Name(kept, STORE)], self.local(name), lineno=0))
                for j in range(k, len(state.stack)):
                    if _names(state.stack[j]) == name:
                        state.stack[j] = self.local(kept)
                break
        for item in state.stack:
            if not _is_atom(item) and _mentions(item, name):
                self.flush(state, out)
                break
        state.aliases.pop(name, None)
        for other, value in list(state.aliases.items()):
            if _names(value) == name:
                self.settle(state, out, (other,))

    def call_runtime(self, name: str, *args: ast.expr) -> ast.expr:
        self.needs.add(name)
        return ast.Call(ast.Name(f"__{name}", LOAD), list(args), [])

    # -- running

    def run(self, i: int, state: _State, covered: int, inside: bool = False) -> tuple[list[ast.stmt], Any]:
        """Statements from ``i`` on. With them None where control does not get behind them, else (instruction, state) where
        the code that the handler ``covered`` covers ends."""
        g = self.g
        out: list[ast.stmt] = []
        first = i
        while True:
            self.steps += 1
            if self.steps > 30 * g.n + 3000:
                if self.is_tree:
                    raise _Branchy
                raise DecompileError("the control flow is too tangled")
            op, inst = g.ops[i], g.insts[i]
            if not self.is_tree and i in self.meets and not (i == first and inside):
                self.flush(state, out)
                return [*out, *self.piece(i, state), ast.Continue()], None
            inside = False
            handler = g.handler[i]
            # PUSH_EXC_INFO cannot fail, and changes an entry that the handler covering it wants as it is behind it.
            if handler != covered and op != "PUSH_EXC_INFO" and (op not in QUIET or covered >= 0 and op in ("LOAD_CONST", "COPY")):
                if handler >= 0 and (covered < 0 or covered in g.chain(handler)):
                    done = self.guarded(i, handler, state, covered, out)
                    if done is None:
                        return out, None
                    i, state = done
                    first = -1
                    continue
                self.flush(state, out)
                return out, (i, state)
            i = self.step(i, op, inst, state, covered, out)
            if i < 0:
                return out, None
            if i >= g.n:
                raise DecompileError("control gets to no return")

    def guarded(self, i: int, handler: int, state: _State, covered: int, out: list) -> tuple[int, _State] | None:
        """Code that ``handler`` covers, as a ``try`` statement; where control goes on behind it (None for nowhere)."""
        g = self.g
        self.flush(state, out)
        info = g.insts[i].handler
        stored = self.stored_in(i, handler)
        self.settle(state, out, stored)
        for name in stored:
            if any(_names(item) == name for item in state.stack):
                self.release(state, name, out)
        below = state.stack[: info.depth]  # type: ignore[union-attr]
        before = dict(state.aliases)
        inner = state.copy()
        inner.aliases = _Fixed(before)
        body, end = self.run(i, inner, handler, True)
        caught, error = self.fresh("caught"), self.fresh("error")
        stack = [*below, *([ast.Constant(0)] if info.lasti else []), self.local(error)]  # type: ignore[union-attr]
        keep = ast.Assign([ast.Name(error, STORE)], ast.Name(caught, LOAD), lineno=0)
        clause = ast.ExceptHandler(ast.Name("BaseException", LOAD), caught, [keep])
        orelse: list[ast.stmt] = []
        if end is not None:
            at, after = end
            after.aliases = dict(after.aliases)
            if self.is_tree:
                if g.handler[at] != covered and g.handler[at] >= 0 and covered not in g.chain(g.handler[at]) and covered >= 0:
                    raise _Branchy
                orelse, also = self.run(at, after, covered)
                if also is not None:
                    raise _Branchy
            else:
                orelse = [*self.piece(at, after), ast.Continue()]
        made = ast.Try(body or [ast.Pass()], [clause], orelse, [])
        if not body:
            raise DecompileError("nothing is covered")
        out.append(made)
        later = _State(stack, before)
        if self.is_tree:
            rest, also = self.run(handler, later, covered)
            if also is not None:
                raise _Branchy
            out += rest
        else:
            out += [*self.piece(handler, later), ast.Continue()]
        return None

    def stored_in(self, i: int, handler: int) -> set[str]:
        """Variables that the code from ``i`` on stores as far as ``handler`` covers it."""
        g = self.g
        found: set[str] = set()
        seen: set[int] = set()
        todo = [i]
        while todo:
            at = todo.pop()
            if at in seen or g.handler[at] != handler and g.ops[at] not in QUIET and handler not in g.chain(g.handler[at]):
                continue
            seen.add(at)
            if g.ops[at] in ("STORE_FAST", "DELETE_FAST"):
                found.add(g.insts[at].arg)
            todo += g.successors(at)
        return found

    # -- one instruction

    def step(self, i: int, op: str, inst: Any, state: _State, covered: int, out: list) -> int:
        """Runs an instruction; the next one, or -1."""
        g, stack, arg = self.g, state.stack, inst.arg
        special = getattr(self, f"op_{op}", None)
        if special is not None:
            return special(i, inst, state, out)
        if op == "JUMP":
            return g.raw_target(i)
        if op in ("POP_JUMP_IF", "FOR_ITER"):
            return self.branch(i, op, inst, state, covered, out)
        if op in _STORES:
            return self.assign(i, op, arg, state, out)
        if op.startswith("DELETE_"):
            return self.delete(i, op, inst, state, out)
        rule = RULES.get(op)
        if rule is None:
            raise DecompileError(f"{op} out of place at offset {inst.offset}")
        self.plain_operands(op, inst, stack)
        rule(self, inst, stack, None)
        return i + 1

    def augmented(self, i: int, state: _State, out: list) -> None:
        item = state.stack[-1]
        after = self.g.insts[i + 1]
        left = item.left
        if after.op == "STORE_FAST" and isinstance(left, ast.Name) and left.id == after.arg and getattr(left, "is_local", False):
            return
        state.stack.pop()
        self.flush(state, out)
        name = self.fresh("value")
        out.append(ast.Assign([ast.Name(name, STORE)], left, lineno=0))
        out.append(ast.AugAssign(ast.Name(name, STORE), item.op, item.right))
        state.stack.append(self.local(name))

    def name(self, name: str) -> str:
        return super().name(name if name.isidentifier() else re.sub(r"\W", "_", name))

    def op_LOAD_GLOBAL(self, i: int, inst: Any, state: _State, out: list) -> int:
        if inst.arg.isidentifier():
            state.stack.append(ast.Name(super().name(inst.arg), LOAD))
        else:
            state.stack.append(ast.Subscript(ast.Call(ast.Name("globals", LOAD), [], []), ast.Constant(inst.arg), LOAD))
        return i + 1

    def op_LOAD_CONST(self, i: int, inst: Any, state: _State, out: list) -> int:
        RULES["LOAD_CONST"](self, inst, state.stack, None)
        return i + 1

    def op_IMPORT_NAME(self, i: int, inst: Any, state: _State, out: list) -> int:
        after = self.g.ops[i + 1]
        if after.startswith("STORE_") or after in ("IMPORT_FROM", "INTRINSIC"):
            self.flush(state, out, len(state.stack) - 2)
            RULES["IMPORT_NAME"](self, inst, state.stack, None)
            return i + 1
        names, level = self.take(state.stack.pop()), self.take(state.stack.pop())
        scope = ast.Call(ast.Name("globals", LOAD), [], [])
        args = [ast.Constant(inst.arg), scope, ast.Constant(None), names, level]
        state.stack.append(ast.Call(ast.Name("__import__", LOAD), args, []))
        return i + 1

    def op_IMPORT_FROM(self, i: int, inst: Any, state: _State, out: list) -> int:
        if isinstance(state.stack[-1], (Import, ImportedName)):
            RULES["IMPORT_FROM"](self, inst, state.stack, None)
        else:
            self.flush(state, out)
            state.stack.append(self.call_runtime("import_from", self.take(state.stack[-1]), ast.Constant(inst.arg)))
        return i + 1

    def plain_operands(self, op: str, inst: Any, stack: list) -> None:
        """Turns operands that are no expressions into some, but for those that the rule asks for."""
        start = len(stack) - stack_use(inst, False)[0]
        if op == "CALL":
            start += 1
            callee = stack[start - 1]
            if isinstance(callee, BuildClass):
                start += 1
            elif isinstance(callee, Function) and isinstance(stack[-1], Iter):
                return
        elif op == "MAKE_FUNCTION":
            return
        for k in range(start, len(stack)):
            item = stack[k]
            if isinstance(item, (Code, BuildClass)) or isinstance(item, Function) and item.code.co_name != "<lambda>":
                stack[k] = self.take(item)
            elif isinstance(item, (ast.Slice, ast.Tuple)) and op != "BUILD_TUPLE":
                stack[k] = _without_slices(item)

    def op_APPLY(self, i: int, inst: Any, state: _State, out: list) -> int:
        stack = state.stack
        RULES["APPLY"](self, inst, stack, None)
        item = stack[-1]
        if isinstance(item, Aug):
            self.augmented(i, state, out)
        elif isinstance(item, Iter) and not (len(stack) > 1 and isinstance(stack[-2], Function)):
            stack.append(self.take(stack.pop()))
        return i + 1

    def op_LOAD_FAST(self, i: int, inst: Any, state: _State, out: list) -> int:
        found = state.aliases.get(inst.arg)
        state.stack.append(self.local(self.name(inst.arg)) if found is None else found)
        return i + 1

    def op_LOAD_DEREF(self, i: int, inst: Any, state: _State, out: list) -> int:
        cell = self.cells.get(inst.arg)
        state.stack.append(ast.Name(self.name(inst.arg), LOAD) if cell is None else ast.Attribute(cell, "cell_contents", LOAD))
        return i + 1

    def op_LOAD_CLOSURE(self, i: int, inst: Any, state: _State, out: list) -> int:
        state.stack.append(self.cell(inst.arg))
        return i + 1

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

    def op_STORE_CELL(self, i: int, inst: Any, state: _State, out: list) -> int:
        self.cells[inst.arg] = self.take(state.stack.pop())
        return i + 1

    def op_COPY(self, i: int, inst: Any, state: _State, out: list) -> int:
        stack, n = state.stack, inst.arg
        k = len(stack) - n
        if not _is_atom(stack[k]):
            after = self.g.insts[i + 1]
            self.flush(state, out, k)
            item = stack[k]
            if n == 1 and after.op == "STORE_FAST" and not isinstance(item, (Definition, Aug)):
                stack.pop()
                self.release(state, after.arg, out)
                out.append(ast.Assign([ast.Name(self.name(after.arg), STORE)], self.take(item), lineno=0))
                self.note_store(after)
                stack.append(self.local(after.arg))
                return i + 2
            self.spill(state, k, out)
        stack.append(stack[k])
        return i + 1

    def op_SWAP(self, i: int, inst: Any, state: _State, out: list) -> int:
        self.flush(state, out)
        stack = state.stack
        stack[-inst.arg], stack[-1] = stack[-1], stack[-inst.arg]
        return i + 1

    def op_POP_TOP(self, i: int, inst: Any, state: _State, out: list) -> int:
        item = state.stack.pop()
        if _is_atom(item) or isinstance(item, (Code, Function)):
            return i + 1
        if isinstance(item, (Import, ImportedName)):
            if isinstance(item, ImportedName):
                return i + 1
            self.flush(state, out)
            finish_import(item, out)
            return i + 1
        self.flush(state, out)
        out.append(self.defined(item) if isinstance(item, Definition) else ast.Expr(self.take(item)))
        return i + 1

    def op_RETURN_VALUE(self, i: int, inst: Any, state: _State, out: list) -> int:
        value = self.take(self.named(state, out))
        self.flush(state, out)
        made = ast.Return(value)
        self.returns.append(made)
        out.append(made)
        return -1

    def named(self, state: _State, out: list) -> Any:
        """Pops an entry; one that is a statement is written first."""
        if isinstance(state.stack[-1], Definition):
            self.flush(state, out)
        return state.stack.pop()

    def op_RAISE_VARARGS(self, i: int, inst: Any, state: _State, out: list) -> int:
        cause = self.take(state.stack.pop()) if inst.arg > 1 else None
        what = state.stack.pop() if inst.arg else None
        self.flush(state, out)
        if isinstance(what, AssertionClass):
            node: Any = ast.Name("AssertionError", LOAD)
            if what.message is not None:
                node = ast.Call(node, [what.message], [])
        else:
            node = what and self.take(what)
        out.append(ast.Raise(node, cause))
        return -1

    def op_YIELD_VALUE(self, i: int, inst: Any, state: _State, out: list) -> int:
        value = self.take(state.stack.pop())
        state.stack.append(ast.Yield(value))
        return i + 1

    def op_GET_AWAITABLE(self, i: int, inst: Any, state: _State, out: list) -> int:
        return self.awaiting(i, state.stack)

    op_GET_YIELD_FROM_ITER = op_GET_AWAITABLE

    def op_UNPACK_SEQUENCE(self, i: int, inst: Any, state: _State, out: list) -> int:
        return self.unpack(i, inst, state, out, inst.arg, -1)

    def op_UNPACK_EX(self, i: int, inst: Any, state: _State, out: list) -> int:
        before, behind = inst.arg
        return self.unpack(i, inst, state, out, before + behind + 1, before)

    def unpack(self, i: int, inst: Any, state: _State, out: list, count: int, star: int) -> int:
        value = self.take(self.named(state, out))
        self.flush(state, out)
        names: list[str] = []
        at = i + 1
        while len(names) < count and self.g.ops[at] == "STORE_FAST" and self.g.insts[at].arg not in names:
            names.append(self.g.insts[at].arg)
            at += 1
        for name in names:
            self.release(state, name, out)
        rest = [self.fresh("value") for _ in range(count - len(names))]
        targets: list[ast.expr] = [ast.Name(self.name(n), STORE) for n in (*names, *rest)]
        if star >= 0:
            targets[star] = ast.Starred(targets[star], STORE)
        for k in range(i + 1, at):
            self.note_store(self.g.insts[k])
        out.append(ast.Assign([ast.Tuple(targets, STORE)], value, lineno=0))
        state.stack += [self.local(n) for n in reversed(rest)]
        return at

    # -- operations that have no syntax

    def runtime_op(self, name: str, i: int, state: _State, out: list, count: int, left: int, keep: int = 0) -> int:
        """A call with the ``count`` entries on top; what it returns is one entry or (``left`` > 1) several. The lowest
        ``keep`` operands stay below."""
        stack = state.stack
        self.flush(state, out)
        args = [self.take(item) for item in stack[len(stack) - count :]]
        del stack[len(stack) - count + keep :]
        value = self.call_runtime(name, *args)
        names = [self.fresh("value") for _ in range(left)]
        target: ast.expr = ast.Name(names[0], STORE) if left == 1 else ast.Tuple([ast.Name(n, STORE) for n in names], STORE)
        if left:
            out.append(ast.Assign([target], value, lineno=0))
        else:
            out.append(ast.Expr(value))
        stack += map(self.local, names)
        return i + 1

    def op_PUSH_EXC_INFO(self, i: int, inst: Any, state: _State, out: list) -> int:
        self.flush(state, out)
        error = state.stack.pop()
        name = self.fresh("previous")
        out.append(ast.Assign([ast.Name(name, STORE)], self.call_runtime("handle", self.take(error)), lineno=0))
        state.stack += [self.local(name), error]
        return i + 1

    def op_POP_EXCEPT(self, i: int, inst: Any, state: _State, out: list) -> int:
        return self.runtime_op("unhandle", i, state, out, 1, 0)

    def op_RERAISE(self, i: int, inst: Any, state: _State, out: list) -> int:
        self.runtime_op("reraise", i, state, out, 1, 0)
        out.append(ast.Raise(None, None))  # not reached
        return -1

    def op_CHECK_EXC_MATCH(self, i: int, inst: Any, state: _State, out: list) -> int:
        return self.runtime_op("matches", i, state, out, 2, 1, 1)

    def op_CHECK_EG_MATCH(self, i: int, inst: Any, state: _State, out: list) -> int:
        return self.runtime_op("matches_group", i, state, out, 2, 2)

    def op_INTRINSIC(self, i: int, inst: Any, state: _State, out: list) -> int:
        if inst.arg == "prep_reraise_star":
            return self.runtime_op("unhandled", i, state, out, 2, 1)
        if inst.arg == "async_gen_wrap":
            return i + 1
        raise DecompileError(f"{inst.arg} out of place")

    def op_BEFORE_WITH(self, i: int, inst: Any, state: _State, out: list) -> int:
        return self.runtime_op("enter", i, state, out, 1, 2)

    def op_BEFORE_ASYNC_WITH(self, i: int, inst: Any, state: _State, out: list) -> int:
        return self.runtime_op("enter_async", i, state, out, 1, 2)

    def op_WITH_EXCEPT_START(self, i: int, inst: Any, state: _State, out: list) -> int:
        self.flush(state, out)
        name = self.fresh("value")
        value = self.call_runtime("leave", self.take(state.stack[-4]), self.take(state.stack[-1]))
        out.append(ast.Assign([ast.Name(name, STORE)], value, lineno=0))
        state.stack.append(self.local(name))
        return i + 1

    def op_GET_LEN(self, i: int, inst: Any, state: _State, out: list) -> int:
        self.flush(state, out)
        state.stack.append(ast.Call(ast.Name("len", LOAD), [self.take(state.stack[-1])], []))
        return i + 1

    def op_MATCH_SEQUENCE(self, i: int, inst: Any, state: _State, out: list) -> int:
        return self.runtime_op("match_sequence", i, state, out, 1, 1, 1)

    def op_MATCH_MAPPING(self, i: int, inst: Any, state: _State, out: list) -> int:
        return self.runtime_op("match_mapping", i, state, out, 1, 1, 1)

    def op_MATCH_KEYS(self, i: int, inst: Any, state: _State, out: list) -> int:
        return self.runtime_op("match_keys", i, state, out, 2, 1, 2)

    def op_MATCH_CLASS(self, i: int, inst: Any, state: _State, out: list) -> int:
        state.stack.append(ast.Constant(inst.arg))
        return self.runtime_op("match_class", i, state, out, 4, 1)

    def op_MAKE_FUNCTION(self, i: int, inst: Any, state: _State, out: list) -> int:
        stack, flags = state.stack, inst.arg or 0
        operands = {}
        at = len(stack) - 1
        for flag, name in ((8, "closure"), (4, "annotations"), (2, "kwdefaults"), (1, "defaults")):
            if flags & flag:
                at -= 1
                operands[name] = stack[at]
        if isinstance(stack[-1], Code) and all(_is_display(name, node) for name, node in operands.items()):
            RULES["MAKE_FUNCTION"](self, inst, stack, None)
            if isinstance(stack[-1], Function):
                stack[-1].closure = operands.get("closure")
            return i + 1
        values = {name: self.take(node) for name, node in operands.items()}
        code = self.take(stack[-1])
        del stack[at:]
        call = self.call_runtime("function", code, values.pop("closure", ast.Tuple([], LOAD)))
        call.keywords = [ast.keyword(name, value) for name, value in values.items()]  # type: ignore[attr-defined]
        stack.append(call)
        return i + 1

    def reach(self, method: str, i: int, inst: Any, state: _State, out: list, count: int = 1) -> int:
        """LIST_APPEND and its like: as a part of a display that is still being built, or as a call of a method."""
        stack = state.stack
        values = stack[len(stack) - count :]
        display = stack[-count - inst.arg]
        if isinstance(display, (ast.List, ast.Set, ast.Dict)) and inst.arg == 1:
            RULES[inst.op](self, inst, stack, None)
            return i + 1
        self.flush(state, out)
        display = self.take(stack[-count - inst.arg])
        values = [self.take(item) for item in stack[len(stack) - count :]]
        del stack[len(stack) - count :]
        if count == 2:
            out.append(ast.Assign([ast.Subscript(display, values[0], STORE)], values[1], lineno=0))
        else:
            out.append(ast.Expr(ast.Call(ast.Attribute(display, method, LOAD), values, [])))
        return i + 1

    def op_LIST_APPEND(self, i: int, inst: Any, state: _State, out: list) -> int:
        return self.reach("append", i, inst, state, out)

    def op_SET_ADD(self, i: int, inst: Any, state: _State, out: list) -> int:
        return self.reach("add", i, inst, state, out)

    def op_MAP_ADD(self, i: int, inst: Any, state: _State, out: list) -> int:
        return self.reach("", i, inst, state, out, 2)

    def op_LIST_EXTEND(self, i: int, inst: Any, state: _State, out: list) -> int:
        return self.reach("extend", i, inst, state, out)

    def op_SET_UPDATE(self, i: int, inst: Any, state: _State, out: list) -> int:
        return self.reach("update", i, inst, state, out)

    op_DICT_UPDATE = op_SET_UPDATE

    def op_DICT_MERGE(self, i: int, inst: Any, state: _State, out: list) -> int:
        stack = state.stack
        if isinstance(stack[-2], ast.Dict):
            RULES["DICT_MERGE"](self, inst, stack, None)
            return i + 1
        self.flush(state, out)
        value = self.take(stack.pop())
        out.append(ast.Expr(self.call_runtime("merge", self.take(stack[-3]), self.take(stack[-1]), value)))
        return i + 1

    def op_LIST_TO_TUPLE(self, i: int, inst: Any, state: _State, out: list) -> int:
        if isinstance(state.stack[-1], ast.List):
            RULES["LIST_TO_TUPLE"](self, inst, state.stack, None)
        else:
            state.stack.append(ast.Call(ast.Name("tuple", LOAD), [self.take(state.stack.pop())], []))
        return i + 1

    def op_BUILD_MAP_KEYS(self, i: int, inst: Any, state: _State, out: list) -> int:
        stack = state.stack
        if isinstance(stack[-1], ast.Tuple):
            RULES["BUILD_MAP_KEYS"](self, inst, stack, None)
            return i + 1
        keys = self.take(stack.pop())
        values = ast.Tuple([self.take(item) for item in stack[len(stack) - inst.arg :]], LOAD)
        del stack[len(stack) - inst.arg :]
        stack.append(ast.Call(ast.Name("dict", LOAD), [ast.Call(ast.Name("zip", LOAD), [keys, values], [])], []))
        return i + 1

    # -- statements

    def assign(self, i: int, op: str, arg: Any, state: _State, out: list) -> int:
        stack = state.stack
        if op == "STORE_FAST":
            return self.assign_local(i, arg, state, out)
        if op == "STORE_ATTR":
            holder = self.take(stack.pop())
            target: ast.expr = ast.Attribute(holder, arg, STORE)
        elif op == "STORE_SUBSCR":
            key = as_expr(stack.pop())
            target = ast.Subscript(self.take(stack.pop()), key, STORE)
        else:
            cell = self.cells.get(arg) if op == "STORE_DEREF" else None
            if cell is None:
                self.note_store(self.g.insts[i])
                target = ast.Name(self.name(arg), STORE)
            else:
                target = ast.Attribute(cell, "cell_contents", STORE)
        self.write(state, target, out)
        return i + 1

    def write(self, state: _State, target: ast.expr, out: list) -> None:
        item = state.stack.pop()
        if not (_is_atom(item) and isinstance(target, ast.Name) and target.id not in self.global_stores):
            self.flush(state, out)  # storing a value that is there already needs no order
        if isinstance(item, (Import, ImportedName, Definition)) and isinstance(target, ast.Name):
            if not isinstance(item, Definition) or item.node.name == target.id:
                below, self.floor = state.stack, len(state.stack)
                store(self, target, [*below, item], out)
                return
            out.append(self.defined(item))
            value: ast.expr = ast.Name(item.node.name, LOAD)
            self.bound.add(item.node.name)
        elif isinstance(item, Aug):
            out.append(ast.AugAssign(target, item.op, item.right))  # type: ignore[arg-type]
            return
        else:
            value = self.take(item)
        out.append(ast.Assign([target], value, lineno=0))

    def assign_local(self, i: int, name: str, state: _State, out: list) -> int:
        stack = state.stack
        self.note_store(self.g.insts[i])
        item = stack[-1]
        if _names(item) == name and name not in state.aliases:
            stack.pop()
            return i + 1
        if _is_atom(item) and _PASSING.match(name) and not isinstance(state.aliases, _Fixed):
            stack.pop()
            self.release(state, name, out)
            state.aliases[name] = item
            return i + 1
        stack.pop()
        self.release(state, name, out)
        stack.append(item)
        self.write(state, ast.Name(self.name(name), STORE), out)
        return i + 1

    def delete(self, i: int, op: str, inst: Any, state: _State, out: list) -> int:
        stack, arg = state.stack, inst.arg
        if op == "DELETE_FAST":
            if arg in state.aliases and not isinstance(state.aliases, _Fixed):
                del state.aliases[arg]
                return i + 1
            self.release(state, arg, out)
        if op == "DELETE_ATTR":
            target: ast.expr = ast.Attribute(self.take(stack.pop()), arg, DEL)
        elif op == "DELETE_SUBSCR":
            key = as_expr(stack.pop())
            target = ast.Subscript(self.take(stack.pop()), key, DEL)
        elif op == "DELETE_DEREF" and arg in self.cells:
            target = ast.Attribute(self.cells[arg], "cell_contents", DEL)
        else:
            self.note_store(inst)
            target = ast.Name(self.name(arg), DEL)
        self.flush(state, out)
        out.append(ast.Delete([target]))
        return i + 1

    def branch(self, i: int, op: str, inst: Any, state: _State, covered: int, out: list) -> int:
        g = self.g
        if op == "FOR_ITER":
            self.flush(state, out)
            name = self.fresh("value")
            out.append(ast.Assign([ast.Name(name, STORE)], self.call_runtime("advance", self.take(state.stack[-1])), lineno=0))
            self.needs.add("END")
            test: ast.expr = ast.Compare(self.local(name), [ast.Is()], [ast.Name("__END", LOAD)])
            yes, no = g.raw_target(i), i + 1
            then, other = state.copy(), state.copy()
            then.stack.pop()
            other.stack.append(self.local(name))
        else:
            test = self.take(self.named(state, out))
            self.flush(state, out)
            yes, no = g.raw_target(i), i + 1
            if inst.arg == "false":
                yes, no = no, yes
            elif inst.arg != "true":
                test = none_test(test, ast.Is() if inst.arg == "none" else ast.IsNot())
            then, other = state.copy(), state.copy()
        for one in (then, other):
            if isinstance(state.aliases, _Fixed):
                one.aliases = _Fixed(one.aliases)
        body = self.way(yes, then, covered)
        orelse = self.way(no, other, covered)
        out.append(ast.If(test, body or [ast.Pass()], []))
        out += orelse
        return -1

    def way(self, i: int, state: _State, covered: int) -> list[ast.stmt]:
        out, end = self.run(i, state, covered)
        if end is not None:
            if self.is_tree:
                raise _Branchy
            at, after = end
            after.aliases = dict(after.aliases)
            out += [*self.piece(at, after), ast.Continue()]
        return out


class _Fixed(dict):
    """Aliases in code that a handler covers: none may be added."""


def _mentions(item: Any, name: str) -> bool:
    if isinstance(item, Item):
        nodes = [getattr(item, slot, None) for slot in item.__slots__]
        return any(isinstance(n, ast.AST) and _mentions(n, name) for n in nodes)
    return any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(item))


def _without_slices(node: Any) -> Any:
    """Slices outside of a subscript are calls."""
    if isinstance(node, ast.Tuple) and any(isinstance(part, ast.Slice) for part in node.elts):
        return ast.Tuple([_without_slices(part) for part in node.elts], LOAD)
    if not isinstance(node, ast.Slice):
        return node
    none = ast.Constant(None)
    parts = [node.lower or none, node.upper or none, *([node.step] if node.step else [])]
    return ast.Call(ast.Name("slice", LOAD), parts, [])


def _is_display(name: str, node: Any) -> bool:
    """Whether an operand of MAKE_FUNCTION is what the compiler writes for a ``def``."""
    if name == "kwdefaults":
        return isinstance(node, ast.Dict)
    return isinstance(node, ast.Tuple) and (name != "closure" or all(getattr(cell, "is_cell", False) for cell in node.elts))
