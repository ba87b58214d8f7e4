"""Calls: plain ones, decorators, classes, comprehensions, assertions."""

from __future__ import annotations

import ast
from typing import Any

from ..errors import DecompileError
from .items import AssertionClass, BuildClass, Code, Definition, Function, Iter, as_expr

LOAD = ast.Load()
_MANY = 30  # STACK_USE_GUIDELINE of compile.c
_TYPE_PARAMETERS = "<generic parameters of "


def call(w: Any, inst: Any, stack: list, out: Any) -> None:
    positional, names = inst.arg
    count = positional + len(names)
    arguments = stack[len(stack) - count :]
    del stack[len(stack) - count :]
    function = stack.pop()
    if isinstance(function, BuildClass):
        keywords = [ast.keyword(n, as_expr(v)) for n, v in zip(names, arguments[positional:], strict=True)]
        stack.append(_class(w, arguments[0], [as_expr(a) for a in arguments[2:positional]], keywords))
    elif isinstance(function, Function) and function.code.co_name.startswith(_TYPE_PARAMETERS):
        stack.append(w.generic_definition(function, arguments))
    elif isinstance(function, Function) and count == 1 and isinstance(arguments[0], Iter):
        stack.append(w.comprehension(function, arguments[0]))
    elif isinstance(function, AssertionClass):
        if count != 1 or function.message is not None:
            raise DecompileError("AssertionError is called in an unknown way")
        function.message = as_expr(arguments[0])
        stack.append(function)
    elif count == 1 and not names and isinstance(arguments[0], Definition):
        arguments[0].decorators.append(as_expr(function))
        stack.append(arguments[0])
    else:
        values = [as_expr(a) for a in arguments]
        keywords = [ast.keyword(n, v) for n, v in zip(names, values[positional:], strict=True)]
        stack.append(ast.Call(as_expr(function), values[:positional], keywords))


def call_ex(w: Any, inst: Any, stack: list, out: Any) -> None:
    keywords = _keywords(as_expr(stack.pop())) if inst.arg else []
    packed = as_expr(stack.pop())
    function = stack.pop()
    arguments: list[ast.expr]
    if keywords and _would_be_plain(function, packed, keywords):
        arguments = [ast.Starred(packed, LOAD)]
    elif isinstance(packed, ast.Tuple) and (getattr(packed, "unpacked", False)):
        arguments = list(packed.elts)
    elif isinstance(packed, ast.Tuple) and inst.arg:
        arguments = list(packed.elts)  # f(1, **k): the positional arguments are a tuple that is built or a constant
    else:
        arguments = [ast.Starred(packed, LOAD)]
    if isinstance(function, BuildClass):
        stack.append(_class(w, w.class_body(arguments), arguments[2:], keywords))
    else:
        stack.append(ast.Call(as_expr(function), arguments, keywords))


def _would_be_plain(function: Any, packed: ast.expr, keywords: list[ast.keyword]) -> bool:
    """Whether the arguments, written one by one, compile to a plain call of a method. So they do but on a name that the module
    imports, where many arguments are packed; nobody knows here what the module imports."""
    few = isinstance(packed, ast.Tuple) and len(packed.elts) + len(keywords) + 1 < _MANY
    return few and isinstance(function, ast.Attribute) and all(keyword.arg is not None for keyword in keywords)


def _keywords(node: ast.expr) -> list[ast.keyword]:
    if not isinstance(node, ast.Dict):
        return [ast.keyword(None, node)]
    out = []
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            out.append(ast.keyword(None, value))
        elif isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value.isidentifier():
            out.append(ast.keyword(key.value, value))
        else:
            out.append(ast.keyword(None, ast.Dict([key], [value])))
    return out


def _class(w: Any, body: Any, bases: list[ast.expr], keywords: list[ast.keyword]) -> Definition:
    if not isinstance(body, Function) or isinstance(body, Code):
        raise DecompileError("a class without a body")
    return Definition(w.class_definition(body, bases, keywords))
