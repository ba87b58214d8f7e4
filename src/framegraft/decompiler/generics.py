"""Type parameters and type aliases (3.12 and later): ``def f[T]``, ``class C[T]``, ``type X[T] = ...``.

The compiler makes the parameters in a function of its own, ``<generic parameters of f>``, which it calls at once. Bounds, defaults and
the values of aliases are functions, too, since they are evaluated when somebody asks.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ..errors import DecompileError
from .expressions import RULES
from .items import Code, Definition, Function, as_expr

if TYPE_CHECKING:
    from .walker import Walker

_KINDS = {"typevar": "TypeVar", "typevartuple": "TypeVarTuple", "paramspec": "ParamSpec"}
_BOUNDS = ("typevar_with_bound", "typevar_with_constraints")
_DEFAULT, _ALIAS, _OF_FUNCTION, _OF_CLASS = "set_typeparam_default", "typealias", "set_function_type_params", "subscript_generic"
_nodes: Any = ast  # not every CPython has those for types


class Generics:
    """The walker's part for type parameters."""

    def is_evaluated_later(self: Walker, i: int) -> bool:  # type: ignore[misc]
        """Whether the MAKE_FUNCTION at ``i`` makes a function of a type's bound, default or value."""
        after = self.g.insts[i + 1]
        if after.op == "BUILD_TUPLE":
            after = self.g.insts[i + 2]
            return after.op == "INTRINSIC" and after.arg == _ALIAS
        return after.op == "INTRINSIC" and after.arg in (*_BOUNDS, _DEFAULT)

    def evaluated_later(self: Walker, i: int, stack: list) -> int:  # type: ignore[misc]
        """Leaves the expression itself on the stack, or the whole statement of an alias."""
        item = stack.pop()
        if not isinstance(item, Code) or self.g.insts[i].arg not in (None, 0, 8):
            raise DecompileError("what is evaluated later is no plain function")
        if self.g.insts[i].arg:
            stack.pop()
        body = self.walk(item.code).body
        last = body[-1] if body else None  # behind what looks like a docstring, if the expression has a string in it
        if len(body) > 1 and not isinstance(body[0], ast.Expr) or not isinstance(last, ast.Return):
            raise DecompileError("what is evaluated later is no expression")
        value = last.value or ast.Constant(None)
        if self.g.ops[i + 1] != "BUILD_TUPLE":
            stack.append(value)
            return i + 1
        parameters, name = stack.pop(), as_expr(stack.pop())
        made = parameters if isinstance(parameters, list) else []
        stack.append(Definition(_nodes.TypeAlias(_name(self, name, ast.Store()), made, value)))
        return i + 3

    def generic_definition(self: Walker, made: Function, arguments: list) -> Definition:  # type: ignore[misc]
        """What ``<generic parameters of ...>``, called at once with a function's defaults, defines."""
        inner = self.nested[id(made.code)] = type(self)(made.code, self, None, self.joined)
        given = dict(zip(made.code.co_varnames, map(as_expr, arguments), strict=False))
        stack: list = []
        i = 0
        while inner.g.ops[i] != "RETURN_VALUE":
            i = inner.generic_operation(i, given, stack)
        if len(stack) != 1 or not isinstance(stack[0], Definition):
            raise DecompileError("type parameters of what is no definition")
        self.has_places, self.has_lines = self.has_places or inner.has_places, self.has_lines or inner.has_lines
        return stack[0]

    def generic_operation(self: Walker, i: int, given: dict, stack: list) -> int:  # type: ignore[misc]
        inst = self.g.insts[i]
        op, arg = inst.op, inst.arg
        if op == "INTRINSIC":
            _parameter(self, arg, stack)
        elif op == "COPY" and isinstance(stack[-1], _nodes.type_param):
            i += 1
            self.note_store(self.g.insts[i])  # under its own name
        elif op == "BUILD_TUPLE" and stack and isinstance(stack[-1], _nodes.type_param):
            stack[len(stack) - arg :] = [stack[len(stack) - arg :]]
        elif op.startswith("STORE_") and arg == ".type_params":
            self.type_parameters = stack.pop()
        elif op.startswith("STORE_") and arg == ".generic_base":
            self.generic_base = stack.pop()
        elif op == "LOAD_FAST" and arg == ".generic_base":
            stack.append(self.generic_base)
        elif op == "LOAD_FAST" and arg in given:
            stack.append(given[arg])
        elif op == "SWAP":
            stack[-1], stack[-arg] = stack[-arg], stack[-1]
        elif op == "MAKE_FUNCTION" and self.is_evaluated_later(i):
            return self.evaluated_later(i, stack)
        elif op in RULES:
            RULES[op](self, inst, stack, None)
            if op == "CALL" and isinstance(stack[-1], Definition) and isinstance(stack[-1].node, ast.ClassDef):
                _finish_class(self, stack[-1].node)
        else:
            raise DecompileError(f"{op} among type parameters")
        return i + 1


def _name(w: Walker, node: ast.expr, context: ast.expr_context) -> ast.Name:
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        raise DecompileError("a type without a name")
    return ast.Name(w.name(node.value), context)


def _parameter(w: Walker, kind: str, stack: list) -> None:
    if kind in _KINDS:
        stack.append(getattr(ast, _KINDS[kind])(_name(w, stack.pop(), ast.Load()).id))
    elif kind in _BOUNDS:
        bound = stack.pop()
        stack.append(_nodes.TypeVar(_name(w, stack.pop(), ast.Load()).id, bound))
    elif kind == _DEFAULT:
        default = stack.pop()
        stack[-1].default_value = default
    elif kind == _OF_FUNCTION:
        parameters = stack.pop()
        stack[-1].node.type_params = parameters
    elif kind != _OF_CLASS:  # which makes the base that is not written
        raise DecompileError(f"{kind} among type parameters")


def _finish_class(w: Walker, node: Any) -> None:
    if not node.bases or node.bases[-1] is not w.generic_base:
        raise DecompileError("a class without the base of its type parameters")
    node.bases.pop()
    node.type_params = w.type_parameters
