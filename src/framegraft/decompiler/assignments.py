"""What stores and deletions do to symbolically run code."""

from __future__ import annotations

import ast
import re
from typing import Any

from ..bytecode.flow import stack_use
from .items import Aug, Definition, Import, ImportedName, as_expr
from .stores import store
from .values import Fixed, State, Values, is_atom, local_name

LOAD, STORE, DEL = ast.Load(), ast.Store(), ast.Del()
_PASSING = re.compile(r"__(?:temp_|pushed_|graph_out_|frame\d|failure\b)")
_MOVES = ("LOAD_FAST", "STORE_FAST", "DELETE_FAST", "LOAD_CONST", "LOAD_GLOBAL")


def passes_on(name: str) -> bool:
    """Whether a variable is one of the engine's that just pass values on."""
    return _PASSING.match(name) is not None


class Assignments(Values):
    """The part of the emitter for operations that bind and unbind."""

    def assign(self, i: int, op: str, arg: Any, state: State, out: list) -> int:
        stack = state.stack
        if op == "STORE_FAST":
            return self.assign_local(i, arg, state, out)
        self.consume(state, stack_use(self.g.insts[i], False)[0], out)
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

    def write(self, state: State, target: ast.expr, out: list) -> None:
        item = state.stack.pop()
        if not (is_atom(item) and isinstance(target, ast.Name) and target.id not in self.global_stores):
            self.flush(state, out)  # storing a value that is there already needs no order
        named = isinstance(target, ast.Name) and (not isinstance(item, Definition) or item.node.name == target.id)
        if isinstance(item, (Import, ImportedName, Definition)) and named:
            below, self.floor = state.stack, len(state.stack)
            store(self, target, [*below, item], out)
            return
        if isinstance(item, Definition):
            out.append(self.defined(item))
            value: ast.expr = ast.Name(item.node.name, LOAD)
            self.bound.add(item.node.name)
        elif isinstance(item, Aug):
            out.append(ast.AugAssign(target, item.op, item.right))  # type: ignore[arg-type]
            return
        else:
            value = self.take(item)
        out.append(ast.Assign([target], value, lineno=0))

    def assign_local(self, i: int, name: str, state: State, out: list) -> int:
        stack = state.stack
        self.note_store(self.g.insts[i])
        item = stack[-1]
        if local_name(item) == name and name not in state.aliases:
            stack.pop()
            return i + 1
        before = state.aliases.get(name)
        is_new = name in state.aliases or name not in self.bound_before[i]  # else the store drops what the variable holds
        if is_new and is_atom(item) and passes_on(name) and not isinstance(state.aliases, Fixed):
            stack.pop()
            if isinstance(item, ast.Constant) and item.value is None and self.move(state, name):
                self.release_aliases(state, name, out)
            else:
                self.release(state, name, out)
            state.aliases[name] = item
            self.drop(state, before, out)
            return i + 1
        stack.pop()
        self.release(state, name, out)
        stack.append(item)
        self.consume(state, 1, out)
        self.write(state, ast.Name(self.name(name), STORE), out)
        self.drop(state, before, out)
        return i + 1

    def deleted_from(self, i: int) -> set[str]:
        """Variables that are deleted at ``i`` or behind it, before the stack is used, and not loaded up to there."""
        found: set[str] = set()
        loaded: set[str] = set()
        while self.g.ops[i] in _MOVES:
            op, arg = self.g.ops[i], self.g.insts[i].arg
            if op == "DELETE_FAST" and arg not in loaded:
                found.add(arg)
            elif op == "LOAD_FAST":
                loaded.add(arg)
            i += 1
        return found

    def delete(self, i: int, op: str, inst: Any, state: State, out: list) -> int:
        stack, arg = state.stack, inst.arg
        self.consume(state, stack_use(inst, False)[0], out)
        if op == "DELETE_FAST":
            if arg in state.aliases and not isinstance(state.aliases, Fixed):
                self.drop(state, state.aliases.pop(arg), out)
                return i + 1
            if any(local_name(item) == arg for item in state.stack):
                if self.g.ops[i + 1] == "STORE_CELL":
                    return i + 1  # the parameter stands for the cell from now on
                if self.move(state, arg):
                    gone = self.deleted_from(i)
                    self.settle(state, out, [n for n, value in state.aliases.items() if local_name(value) == arg and n not in gone])
                    return i + 1
            self.release(state, arg, out)
        if op == "DELETE_ATTR":
            target: ast.expr = ast.Attribute(self.take(stack.pop()), arg, DEL)
        elif op == "DELETE_SUBSCR":
            key = as_expr(stack.pop())
            target = ast.Subscript(self.take(stack.pop()), key, DEL)
        elif op == "DELETE_DEREF" and arg in self.cells:
            self.flush(state, out)
            out.append(ast.Expr(self.call_runtime("unbind", self.cells[arg], ast.Constant(arg))))
            return i + 1
        else:
            self.note_store(inst)
            target = ast.Name(self.name(arg), DEL)
        self.flush(state, out)
        out.append(ast.Delete([target]))
        return i + 1
