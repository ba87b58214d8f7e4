"""What each operation does to symbolically run code, but for jumps."""

from __future__ import annotations

import ast
import operator
import re
from typing import Any

from ..bytecode.flow import stack_use
from ..errors import DecompileError
from .assignments import Assignments, passes_on
from .constants import PLACE
from .expressions import RULES
from .items import AssertionClass, Aug, BuildClass, Code, Definition, Function, Import, ImportedName, Iter
from .runtime import note_frame
from .stores import finish_import
from .values import State, cleared, is_atom, local_name, taken_out, without_slices

LOAD, STORE, DEL = ast.Load(), ast.Store(), ast.Del()
_INSTALLED = re.compile(r"__(?:resume_at_\d|compiled_fn_\d|fg__\w+$)")  # names of the engine's objects


class Operations(Assignments):
    """The part of the emitter for operations: ``op_NAME(index, instruction, state, statements)`` gives the next index or -1."""

    def augmented(self, i: int, state: State, out: list) -> None:
        item = state.stack[-1]
        after = self.g.insts[i + 1]
        left = item.left
        if after.op == "STORE_FAST" and isinstance(left, ast.Name) and left.id == after.arg and getattr(left, "is_local", False):
            return
        state.stack.pop()
        self.flush(state, out)
        state.stack.append(self.bind(self.fresh("value"), item, out))

    def op_LOAD_GLOBAL(self, i: int, inst: Any, state: State, out: list) -> int:
        if _INSTALLED.match(inst.arg):
            state.stack.append(self.local(self.name(inst.arg)))  # it never changes
        elif inst.arg.isidentifier():
            state.stack.append(ast.Name(super().name(inst.arg), LOAD))
        else:
            state.stack.append(ast.Subscript(ast.Call(ast.Name("globals", LOAD), [], []), ast.Constant(inst.arg), LOAD))
        return i + 1

    def op_LOAD_CONST(self, i: int, inst: Any, state: State, out: list) -> int:
        if inst.arg is note_frame:  # resume functions have it as a constant
            self.needs.add(note_frame.__name__)
            state.stack.append(ast.Name(f"__{note_frame.__name__}", LOAD))
        else:
            RULES["LOAD_CONST"](self, inst, state.stack, None)
        return i + 1

    def op_IMPORT_NAME(self, i: int, inst: Any, state: State, out: list) -> int:
        after = self.g.ops[i + 1]
        is_kept = after == "STORE_FAST" and passes_on(self.g.insts[i + 1].arg)
        is_statement = after.startswith("STORE_") and not is_kept or after in ("IMPORT_FROM", "INTRINSIC")
        if is_statement and all(isinstance(item, (ast.Constant, ast.Tuple)) for item in state.stack[-2:]):
            self.flush(state, out, len(state.stack) - 2)
            RULES["IMPORT_NAME"](self, inst, state.stack, None)
            return i + 1
        names, level = self.take(state.stack.pop()), self.take(state.stack.pop())
        scope = ast.Call(ast.Name("globals", LOAD), [], [])
        args = [ast.Constant(inst.arg), scope, ast.Constant(None), names, level]
        state.stack.append(ast.Call(ast.Name("__import__", LOAD), args, []))
        return i + 1

    def op_IMPORT_FROM(self, i: int, inst: Any, state: State, out: list) -> int:
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
            if isinstance(callee, BuildClass) and isinstance(stack[start], Function):
                start += 1
            elif isinstance(callee, BuildClass):
                stack[start - 1] = self.take(callee)
            elif isinstance(callee, Function) and isinstance(stack[-1], Iter):
                return
        elif op == "MAKE_FUNCTION":
            return
        for k in range(start, len(stack)):
            item = stack[k]
            if isinstance(item, (Code, BuildClass)) or isinstance(item, Function) and item.code.co_name != "<lambda>":
                stack[k] = self.take(item)
            elif isinstance(item, (ast.Slice, ast.Tuple)) and op != "BUILD_TUPLE":
                stack[k] = without_slices(item)

    def op_APPLY(self, i: int, inst: Any, state: State, out: list) -> int:
        stack = state.stack
        self.consume(state, inst.arg[1], out)
        if inst.arg[0] is not operator.getitem:
            self.plain_operands("APPLY", inst, stack)
        RULES["APPLY"](self, inst, stack, None)
        item = stack[-1]
        if isinstance(item, Aug):
            self.augmented(i, state, out)
        elif isinstance(item, Iter) and not (len(stack) > 1 and isinstance(stack[-2], Function)):
            stack.append(self.take(stack.pop()))
        return i + 1

    def op_LOAD_FAST(self, i: int, inst: Any, state: State, out: list) -> int:
        found = state.aliases.get(inst.arg)
        if found is None:
            name = self.name(inst.arg)
            found = ast.Name(name, LOAD) if i in self.unbound else self.local(name)  # which may raise is evaluated in its order
        state.stack.append(found)
        return i + 1

    def op_LOAD_DEREF(self, i: int, inst: Any, state: State, out: list) -> int:
        cell = self.cells.get(inst.arg)
        known = ast.Name(self.name(inst.arg), LOAD)
        state.stack.append(known if cell is None else self.call_runtime("value_of", cell, ast.Constant(inst.arg)))
        return i + 1

    def op_LOAD_CLOSURE(self, i: int, inst: Any, state: State, out: list) -> int:
        state.stack.append(self.cell(inst.arg))
        return i + 1

    def op_STORE_CELL(self, i: int, inst: Any, state: State, out: list) -> int:
        self.cells[inst.arg] = self.take(state.stack.pop())
        return i + 1

    def op_COPY(self, i: int, inst: Any, state: State, out: list) -> int:
        stack, n = state.stack, inst.arg
        k = len(stack) - n
        if n == 1 and self.is_cleared_at_once(i + 1):
            return i + 2
        if not is_atom(stack[k]):
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

    def is_cleared_at_once(self, i: int) -> bool:
        """Whether a variable of the engine is stored at ``i`` and then set to None."""
        insts = self.g.insts[i : i + 3]
        stored = [inst.op for inst in insts] == ["STORE_FAST", "LOAD_CONST", "STORE_FAST"] and insts[1].arg is None
        return stored and insts[0].arg == insts[2].arg and passes_on(insts[0].arg)

    def op_SWAP(self, i: int, inst: Any, state: State, out: list) -> int:
        stack = state.stack
        if isinstance(stack[-1], ImportedName) and isinstance(stack[-2], Import) and self.g.ops[i + 1] == "POP_TOP":
            stack.pop()  # import a.b.c as d: the next part is taken from this one
            return i + 2
        self.flush(state, out)
        stack[-inst.arg], stack[-1] = stack[-1], stack[-inst.arg]
        return i + 1

    def op_POP_TOP(self, i: int, inst: Any, state: State, out: list) -> int:
        item = state.stack.pop()
        if isinstance(item, Import):
            self.flush(state, out)
            finish_import(item, out)
            return i + 1
        if is_atom(item) or isinstance(item, (Code, Function, ImportedName)):
            self.drop(state, item, out)
            return i + 1
        self.flush(state, out)
        out.append(self.defined(item) if isinstance(item, Definition) else ast.Expr(self.take(item)))
        return i + 1

    def op_RETURN_VALUE(self, i: int, inst: Any, state: State, out: list) -> int:
        value = self.take(self.named(state, out))
        self.flush(state, out)
        made = ast.Return(value)
        self.returns.append(made)
        out.append(made)
        return -1

    def named(self, state: State, out: list) -> Any:
        """Pops an entry; one that is a statement is written first."""
        if isinstance(state.stack[-1], Definition):
            self.flush(state, out)
        return state.stack.pop()

    def op_RAISE_VARARGS(self, i: int, inst: Any, state: State, out: list) -> int:
        self.consume(state, inst.arg, out)
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

    def op_YIELD_VALUE(self, i: int, inst: Any, state: State, out: list) -> int:
        self.consume(state, 1, out)
        value = self.take(state.stack.pop())
        state.stack.append(ast.Yield(value))
        return i + 1

    def op_GET_AWAITABLE(self, i: int, inst: Any, state: State, out: list) -> int:
        self.consume(state, 1, out)
        return self.awaiting(i, state.stack)

    op_GET_YIELD_FROM_ITER = op_GET_AWAITABLE

    def op_UNPACK_SEQUENCE(self, i: int, inst: Any, state: State, out: list) -> int:
        return self.unpack(i, inst, state, out, inst.arg, -1)

    def op_UNPACK_EX(self, i: int, inst: Any, state: State, out: list) -> int:
        before, behind = inst.arg
        return self.unpack(i, inst, state, out, before + behind + 1, before)

    def unpack(self, i: int, inst: Any, state: State, out: list, count: int, star: int) -> int:
        self.consume(state, 1, out)
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

    def runtime_op(self, name: str, i: int, state: State, out: list, count: int, left: int, keep: int = 0) -> int:
        """A call with the ``count`` entries on top; what it returns is one entry or (``left`` > 1) several. The lowest
        ``keep`` operands stay below."""
        stack = state.stack
        low = len(stack) - count
        self.flush(state, out, low + keep)
        self.consume(state, count - keep, out)
        args = [self.take(item) for item in stack[low:]]
        del stack[low + keep :]
        value = self.call_runtime(name, *args)
        names = [self.fresh("value") for _ in range(left)]
        target: ast.expr = ast.Name(names[0], STORE) if left == 1 else ast.Tuple([ast.Name(n, STORE) for n in names], STORE)
        if left:
            out.append(ast.Assign([target], value, lineno=0))
        else:
            out.append(ast.Expr(value))
        stack += map(self.local, names)
        return i + 1

    def op_PUSH_EXC_INFO(self, i: int, inst: Any, state: State, out: list) -> int:
        self.flush(state, out)
        error = state.stack.pop()
        name = self.fresh("value")
        out.append(ast.Assign([ast.Name(name, STORE)], self.call_runtime("handle", self.take(error)), lineno=0))
        state.stack += [self.local(name), error]
        return i + 1

    def op_POP_EXCEPT(self, i: int, inst: Any, state: State, out: list) -> int:
        return self.runtime_op("unhandle", i, state, out, 1, 0)

    def op_RERAISE(self, i: int, inst: Any, state: State, out: list) -> int:
        error = state.stack.pop()
        self.flush(state, out)
        name = local_name(error)
        names = dict.fromkeys(n for n in map(local_name, state.stack) if self.owns(n) and n != name)
        if names and self.g.handler[i] < 0:  # the exception knows the frame, and they may know the exception
            out.append(cleared(names))
        value = taken_out(error) if self.owns(name) else error
        out.append(ast.Expr(self.call_runtime("reraise", self.take(value))))
        out.append(ast.Raise(None, None))  # not reached
        return -1

    def op_CHECK_EXC_MATCH(self, i: int, inst: Any, state: State, out: list) -> int:
        return self.runtime_op("matches", i, state, out, 2, 1, 1)

    def op_CHECK_EG_MATCH(self, i: int, inst: Any, state: State, out: list) -> int:
        return self.runtime_op("matches_group", i, state, out, 2, 2)

    def op_INTRINSIC(self, i: int, inst: Any, state: State, out: list) -> int:
        if inst.arg == "prep_reraise_star":
            return self.runtime_op("unhandled", i, state, out, 2, 1)
        if inst.arg == "async_gen_wrap":
            return i + 1
        raise DecompileError(f"{inst.arg} out of place")

    def op_BEFORE_WITH(self, i: int, inst: Any, state: State, out: list) -> int:
        return self.runtime_op("enter", i, state, out, 1, 2)

    def op_BEFORE_ASYNC_WITH(self, i: int, inst: Any, state: State, out: list) -> int:
        return self.runtime_op("enter_async", i, state, out, 1, 2)

    def op_WITH_EXCEPT_START(self, i: int, inst: Any, state: State, out: list) -> int:
        self.flush(state, out)
        name = self.fresh("value")
        value = self.call_runtime("leave", self.take(state.stack[-4]), self.take(state.stack[-1]))
        out.append(ast.Assign([ast.Name(name, STORE)], value, lineno=0))
        state.stack.append(self.local(name))
        return i + 1

    def op_GET_LEN(self, i: int, inst: Any, state: State, out: list) -> int:
        self.flush(state, out)
        state.stack.append(ast.Call(ast.Name("len", LOAD), [self.take(state.stack[-1])], []))
        return i + 1

    def op_MATCH_SEQUENCE(self, i: int, inst: Any, state: State, out: list) -> int:
        return self.runtime_op("match_sequence", i, state, out, 1, 1, 1)

    def op_MATCH_MAPPING(self, i: int, inst: Any, state: State, out: list) -> int:
        return self.runtime_op("match_mapping", i, state, out, 1, 1, 1)

    def op_MATCH_KEYS(self, i: int, inst: Any, state: State, out: list) -> int:
        return self.runtime_op("match_keys", i, state, out, 2, 1, 2)

    def op_MATCH_CLASS(self, i: int, inst: Any, state: State, out: list) -> int:
        state.stack.append(ast.Constant(inst.arg))
        return self.runtime_op("match_class", i, state, out, 4, 1)

    def op_MAKE_FUNCTION(self, i: int, inst: Any, state: State, out: list) -> int:
        stack, flags = state.stack, inst.arg or 0
        self.consume(state, stack_use(inst, False)[0], out)
        operands = {}
        at = len(stack) - 1
        for flag, name in ((8, "closure"), (4, "annotations"), (2, "kwdefaults"), (1, "defaults")):
            if flags & flag:
                at -= 1
                operands[name] = stack[at]
        if isinstance(stack[-1], Code) and all(_is_display(name, node) for name, node in operands.items()):
            before = list(stack)
            try:
                RULES["MAKE_FUNCTION"](self, inst, stack, None)
            except DecompileError:
                if "closure" in operands:
                    raise
                stack[:] = before  # a function of names that are none, as pytest's asserts have: made of its code as it is
                stack[-1] = ast.Constant(PLACE.format(self.const_index(before[-1].code)))
            else:
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

    def reach(self, method: str, i: int, inst: Any, state: State, out: list, count: int = 1) -> int:
        """LIST_APPEND and its like: as a part of a display that is still being built, or as a call of a method."""
        stack = state.stack
        self.consume(state, count, out)
        values = stack[len(stack) - count :]
        display = stack[-count - inst.arg]
        if isinstance(display, (ast.List, ast.Set, ast.Dict)) and inst.arg == 1:
            RULES[inst.op](self, inst, stack, None)
            return i + 1
        self.flush(state, out, len(stack) - count if inst.op == "LIST_APPEND" else None)
        display = self.take(stack[-count - inst.arg])
        values = [self.take(item) for item in stack[len(stack) - count :]]
        del stack[len(stack) - count :]
        if count == 2:
            out.append(ast.Assign([ast.Subscript(display, values[0], STORE)], values[1], lineno=0))
        else:
            out.append(ast.Expr(ast.Call(ast.Attribute(display, method, LOAD), [_unpacked(inst.op, values[0])], [])))
        return i + 1

    def op_LIST_APPEND(self, i: int, inst: Any, state: State, out: list) -> int:
        return self.reach("append", i, inst, state, out)

    def op_SET_ADD(self, i: int, inst: Any, state: State, out: list) -> int:
        return self.reach("add", i, inst, state, out)

    def op_MAP_ADD(self, i: int, inst: Any, state: State, out: list) -> int:
        return self.reach("", i, inst, state, out, 2)

    def op_LIST_EXTEND(self, i: int, inst: Any, state: State, out: list) -> int:
        return self.reach("extend", i, inst, state, out)

    def op_SET_UPDATE(self, i: int, inst: Any, state: State, out: list) -> int:
        return self.reach("update", i, inst, state, out)

    def op_DICT_UPDATE(self, i: int, inst: Any, state: State, out: list) -> int:
        return self.reach("update", i, inst, state, out)

    def op_DICT_MERGE(self, i: int, inst: Any, state: State, out: list) -> int:
        stack = state.stack
        self.consume(state, 1, out)
        if isinstance(stack[-2], ast.Dict):
            RULES["DICT_MERGE"](self, inst, stack, None)
            return i + 1
        self.flush(state, out)
        value = self.take(stack.pop())
        out.append(ast.Expr(self.call_runtime("merge", self.take(stack[-3]), self.take(stack[-1]), value)))
        return i + 1

    def op_LIST_TO_TUPLE(self, i: int, inst: Any, state: State, out: list) -> int:
        self.consume(state, 1, out)
        if isinstance(state.stack[-1], ast.List):
            RULES["LIST_TO_TUPLE"](self, inst, state.stack, None)
        else:
            state.stack.append(ast.Call(ast.Name("tuple", LOAD), [self.take(state.stack.pop())], []))
        return i + 1

    def op_BUILD_MAP_KEYS(self, i: int, inst: Any, state: State, out: list) -> int:
        stack = state.stack
        self.consume(state, 1 + inst.arg, out)
        if isinstance(stack[-1], ast.Tuple):
            RULES["BUILD_MAP_KEYS"](self, inst, stack, None)
            return i + 1
        keys = self.take(stack.pop())
        values = ast.Tuple([self.take(item) for item in stack[len(stack) - inst.arg :]], LOAD)
        del stack[len(stack) - inst.arg :]
        stack.append(ast.Call(ast.Name("dict", LOAD), [ast.Call(ast.Name("zip", LOAD), [keys, values], [])], []))
        return i + 1


def _unpacked(op: str, value: Any) -> Any:
    """What a method takes in the place of an instruction: an unpacking refuses other values than the method does."""
    if op == "DICT_UPDATE" and not isinstance(value, ast.Dict):
        return ast.Dict([None], [value])
    if op == "LIST_EXTEND" and not isinstance(value, (ast.List, ast.Tuple, ast.Constant)):
        return ast.List([ast.Starred(value, LOAD)], LOAD)
    return value


def _is_display(name: str, node: Any) -> bool:
    """Whether an operand of MAKE_FUNCTION is what the compiler writes for a ``def``."""
    if name == "kwdefaults":
        return isinstance(node, ast.Dict)
    return isinstance(node, ast.Tuple) and (name != "closure" or all(getattr(cell, "is_cell", False) for cell in node.elts))
