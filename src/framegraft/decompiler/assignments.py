"""What stores and deletions do to symbolically run code."""

from __future__ import annotations

import ast
import re
from typing import Any

from .items import Aug, Definition, Import, ImportedName, as_expr
from .stores import store
from .values import Fixed, State, Values, is_atom, local_name

LOAD, STORE, DEL = ast.Load(), ast.Store(), ast.Del()
_PASSING = re.compile(r"__(?:temp_|pushed_|graph_out_|frame\d|failure\b)")


def passes_on(name: str) -> bool:
    """Whether a variable is one of the engine's that just pass values on."""
    return _PASSING.match(name) is not None


class Assignments(Values):
    """The part of the emitter for operations that bind and unbind."""

    def assign(self, i: int, op: str, arg: Any, state: State, out: list) -> int:
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
        if is_atom(item) and passes_on(name) and not isinstance(state.aliases, Fixed):
            stack.pop()
            if isinstance(item, ast.Constant) and item.value is None and self.move(state, name):
                self.release_aliases(state, name, out)
            else:
                self.release(state, name, out)
            state.aliases[name] = item
            return i + 1
        stack.pop()
        self.release(state, name, out)
        stack.append(item)
        self.write(state, ast.Name(self.name(name), STORE), out)
        self.let_go(state, item, out)
        return i + 1

    def is_handed_over(self, i: int, name: str) -> bool:
        """Whether the variable deleted at ``i`` has gone onto the stack for good: to the end of a resume function's prologue, or
        to the call with which the frame ends. There is no other word for that."""
        ops = self.g.ops
        if name.startswith(("___stack", "___cell_")) and ops[i - 1] == "LOAD_FAST":
            return True
        while ops[i] == "DELETE_FAST":
            i += 1
        return ops[i] == "CALL" and ops[i + 1] == "RETURN_VALUE"

    def delete(self, i: int, op: str, inst: Any, state: State, out: list) -> int:
        stack, arg = state.stack, inst.arg
        if op == "DELETE_FAST":
            if arg in state.aliases and not isinstance(state.aliases, Fixed):
                del state.aliases[arg]
                return i + 1
            if any(local_name(item) == arg for item in state.stack):
                if self.is_handed_over(i, arg):
                    self.handed_over.add(arg)
                    return i + 1
                if self.move(state, arg):
                    wanted = {later.arg for later in self.g.insts[i:] if later.op == "LOAD_FAST"}
                    self.settle(state, out, wanted & {other for other, value in state.aliases.items() if local_name(value) == arg})
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
