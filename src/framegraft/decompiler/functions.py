"""Code objects inside of code objects: ``def``, ``lambda``, ``class``, comprehensions; and signatures."""

from __future__ import annotations

import ast
import functools
from types import CodeType
from typing import TYPE_CHECKING, Any

from ..bytecode.decode import decode
from ..errors import DecompileError
from .cleanup import tidy
from .copies import SHORT
from .items import Definition, Function, Iter
from .scopes import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_FUTURE_ANNOTATIONS, CO_GENERATOR, CO_OPTIMIZED, CO_VARARGS, CO_VARKEYWORDS

if TYPE_CHECKING:
    from .walker import Walker

_COMPREHENSIONS = {"<listcomp>": ast.ListComp, "<setcomp>": ast.SetComp, "<dictcomp>": ast.DictComp,
                   "<genexpr>": ast.GeneratorExp}


def parameters(code: CodeType, made: Function | None, name: Any) -> ast.arguments:
    """The signature of a code object, with the defaults and annotations that its function is made with."""
    names = list(code.co_varnames)
    notes = made.annotations if made else {}

    def arg(n: str) -> ast.arg:
        return ast.arg(name(n), notes.get(n))

    count, only = code.co_argcount, code.co_kwonlyargcount
    plain = [arg(n) for n in names[:count]]
    keyword_only = [arg(n) for n in names[count : count + only]]
    at = count + only
    vararg = kwarg = None
    if code.co_flags & CO_VARARGS:
        vararg = arg(names[at])
        at += 1
    if code.co_flags & CO_VARKEYWORDS:
        kwarg = arg(names[at])
    keyword_defaults = [made.kwdefaults.get(n) if made else None for n in names[count : count + only]]
    positional_only = code.co_posonlyargcount
    defaults = list(made.defaults) if made else []
    return ast.arguments(plain[:positional_only], plain[positional_only:], vararg, keyword_only, keyword_defaults, kwarg, defaults)


class Functions:
    """The walker's part for nested code objects."""

    def walk(self: Walker, code: CodeType) -> Walker:  # type: ignore[misc]
        """A walker for a nested code object, with ``body`` filled in; each code object is walked once."""
        found = self.nested.get(id(code))
        if found is None:
            found = self.nested[id(code)] = self.nested_walker(code, type(self), self.joined)
        self.has_places = self.has_places or found.has_places
        self.has_lines = self.has_lines or found.has_lines
        return found

    def nested_walker(self: Walker, code: CodeType, kind: Any, joined: int) -> Walker:  # type: ignore[misc]
        """One that has walked ``code``, with the copies of its exits joined or, where that fails, the other way."""
        try:
            found = kind(code, self, None, joined)
            found.walk_body()
        except (DecompileError, IndexError):
            found = kind(code, self, None, 0 if joined else SHORT)
            found.walk_body()
        return found

    def walk_body(self: Walker) -> None:  # type: ignore[misc]
        body = tidy(self.statements())
        code = self.code
        if all(isinstance(r.value, ast.Constant) and r.value.value is None for r in self.returns):
            for statement in self.returns:  # a procedure
                statement.value = None
        if code.co_flags & CO_OPTIMIZED:
            flags = code.co_flags
            if flags & (CO_GENERATOR | CO_ASYNC_GENERATOR) and not any(op == "YIELD_VALUE" and inst.arg != "await" for op, inst in zip(
                self.g.ops, self.g.insts, strict=True
            )):
                body.append(ast.If(ast.Constant(False), [ast.Expr(ast.Yield(None))], []))
            if code.co_consts and isinstance(code.co_consts[0], str) and not code.co_name.startswith("<"):
                body.insert(0, ast.Expr(ast.Constant(code.co_consts[0])))
                declared = 1
            else:
                declared = 0
            kept = sorted(self.cell_names.difference(*(inner.code.co_freevars for inner in self.nested.values())))
            if kept and not self.is_comprehension and not self.is_expression:  # by functions that nothing reaches
                names = ast.Tuple([ast.Name(self.name(n), ast.Load()) for n in kept], ast.Load())
                nothing = ast.arguments([], [], None, [], [], None, [])
                body.append(ast.If(ast.Constant(False), [ast.Expr(ast.Lambda(nothing, names))], []))
        else:
            declared = 0
        if not self.is_comprehension:
            body[declared:declared] = self.declarations()
        self.body = body

    def definition(self: Walker, made: Function) -> Definition:  # type: ignore[misc]
        code = made.code
        inner = self.walk(code)
        return Definition(inner.function_node(made))

    def function_node(self: Walker, made: Function | None, name: str = "") -> Any:  # type: ignore[misc]
        code = self.code
        args = parameters(code, made, self.name)
        if made and code.co_flags & CO_COROUTINE or code.co_flags & (CO_COROUTINE | CO_ASYNC_GENERATOR):
            kind: Any = ast.AsyncFunctionDef
        else:
            kind = ast.FunctionDef
        returns = made.annotations.get("return") if made else None
        return kind(name or self.name(code.co_name), args, self.body or [ast.Pass()], [], returns, lineno=0)

    def annotation(self: Walker, node: ast.expr) -> ast.expr:  # type: ignore[misc]
        """An annotation as it was written: ``from __future__ import annotations`` makes strings of them."""
        if self.code.co_flags & CO_FUTURE_ANNOTATIONS and isinstance(node, ast.Constant) and isinstance(node.value, str):
            return ast.parse(node.value, mode="eval").body
        return node

    def lambda_expr(self: Walker, made: Function) -> ast.expr:  # type: ignore[misc]
        code = made.code
        if not code.co_flags & CO_OPTIMIZED:
            placeholder = ast.Name("__class_body", ast.Load())
            placeholder.function_ = made  # type: ignore[attr-defined]
            return placeholder
        if code.co_name != "<lambda>":
            raise DecompileError(f"{code.co_name} is used in an unknown way")
        inner = self.walk(code)
        return ast.Lambda(parameters(code, made, inner.name), inner.lambda_body())

    def lambda_body(self: Walker) -> ast.expr:  # type: ignore[misc]
        body = self.body
        if not body:
            return ast.Constant(None)
        if len(body) != 1 or not isinstance(body[0], ast.Return) or body[0].value is None:
            raise DecompileError("a lambda with statements in it")
        return body[0].value

    def class_body(self: Walker, arguments: list) -> Any:  # type: ignore[misc]
        return getattr(arguments[0], "function_", None)

    def class_definition(self: Walker, made: Function, bases: list, keywords: list) -> ast.ClassDef:  # type: ignore[misc]
        inner = self.walk(made.code)
        body = inner.body
        first, last = _of_classes()
        drop = 0
        declared: list[ast.stmt] = [s for s in body if isinstance(s, (ast.Global, ast.Nonlocal))]
        rest: list[Any] = body[len(declared) :]
        while drop < len(rest) and drop < len(first) and _assigned(rest[drop]) == first[drop]:
            drop += 1
        rest = rest[drop:]
        hidden = {".type_params": "__type_params__", "__classdict__": "__classdict__"}  # variables that only the compiler has
        for variable, name in hidden.items():
            if variable in inner.local_names() and rest and _assigned(rest[0]) == name:
                rest = rest[1:]
        if "__classdict__" in made.code.co_cellvars and rest and _assigned(rest[-1]) == "__classdictcell__":
            rest.pop()
        if rest and _assigned(rest[-1]) in last:
            rest.pop()
        if rest and _assigned(rest[0]) == "__doc__" and isinstance(rest[0].value, ast.Constant) and isinstance(rest[0].value.value, str):
            rest[0] = ast.Expr(rest[0].value)
        return ast.ClassDef(self.name(made.code.co_name), bases, keywords, declared + rest or [ast.Pass()], [])

    def comprehension(self: Walker, made: Function, iterator: Iter) -> ast.expr:  # type: ignore[misc]
        code = made.code
        kind = _COMPREHENSIONS.get(code.co_name)
        if kind is None:
            raise DecompileError(f"{code.co_name} is called with an iterator")
        inner = self.walk(code)
        self.global_stores |= inner.global_stores  # a walrus stores into the function around
        for name in inner.free_stores:
            (self.free_stores if name in self.code.co_freevars else self.bound).add(name)
        made_of = self.comprehension_of(code.co_name, inner.body, iterator)
        made_of.is_awaited = bool(code.co_flags & CO_COROUTINE)  # type: ignore[attr-defined]
        return made_of

    def comprehension_of(self: Walker, name: str, body: list[ast.stmt], iterator: Iter) -> ast.expr:  # type: ignore[misc]
        """The comprehension that ``for`` statements over ``iterator`` stand for, which yield what it collects."""
        loops: list[ast.comprehension] = []
        kind, statement = _COMPREHENSIONS[name], body
        while True:
            statement = [s for s in statement if not isinstance(s, ast.Return)] if not loops else statement
            node = statement[0] if statement else None
            if len(statement) > 1 and loops and isinstance(node, ast.Assign) and len(node.targets) == 1:
                # ``for x in [value]`` is compiled to a mere store
                loops.append(ast.comprehension(node.targets[0], ast.List([node.value], ast.Load()), [], 0))
                statement = statement[1:]
                continue
            if len(statement) != 1:
                raise DecompileError("a comprehension of unknown shape")
            if isinstance(node, (ast.For, ast.AsyncFor)) and not node.orelse:
                loops.append(ast.comprehension(node.target, node.iter, [], int(isinstance(node, ast.AsyncFor))))
                statement = node.body
            elif isinstance(node, ast.If) and not node.orelse and loops:
                loops[-1].ifs.append(node.test)
                statement = node.body
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield) and loops:
                break
            else:
                raise DecompileError("a comprehension of unknown shape")
        loops[0].iter = iterator.node
        value: Any = node.value.value
        if kind is ast.DictComp:
            return ast.DictComp(value.keys[0], value.values[0], loops)
        return kind(value if value is not None else ast.Constant(None), loops)


@functools.cache
def _of_classes() -> tuple[list[str], list[str]]:
    """What the compiler assigns by itself in a class's body: at its beginning, and at its end."""
    module = compile("class A: x = 0", "", "exec")
    body = next(const for const in module.co_consts if isinstance(const, CodeType))
    names = [inst.arg for inst in decode(body) if inst.op == "STORE_NAME"]
    return names[: names.index("x")], names[names.index("x") + 1 :]


def _assigned(node: Any) -> str | None:
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return None


