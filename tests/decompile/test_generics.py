"""Type parameters and type aliases: the source is what was written, and does the same."""

import ast
import types

import pytest

from framegraft.decompiler import decompile

from .swap import recompiled

pytestmark = pytest.mark.skipif(not hasattr(ast, "TypeAlias"), reason="their syntax is CPython 3.12's")

# name -> body of f(z)
CASES = {
    "function": """
def g[T, *Ts, **P](x: T, *rest: P, y=5, **more: int) -> T:
    return (x, y)
return (g(1), str(g.__type_params__), str(g.__annotations__))
""",
    "bounds and constraints": """
def g[U: (int, str), T: z](x: T, y=z, *, k=[z]) -> 'T':
    return (x, y, k, T)
return (str(g(1)), [(t.__constraints__, t.__bound__) for t in g.__type_params__], str(g.__annotations__))
""",
    "keyword defaults alone": """
async def g[T](x, *, y=z):
    yield (x, y, T)
return (g.__kwdefaults__, str(g.__type_params__))
""",
    "class": """
class C[T, *Ts](dict, metaclass=type):
    \"\"\"Doc.\"\"\"
    x: T = z

    def m(self, y: T) -> int:
        return (super().__len__(), T)
return (str(C.__mro__), C.__doc__, C.x, str(C().m(1)), str(C.__orig_bases__), str(C.__annotations__))
""",
    "class without bases": """
class C[T]:
    pass
return (str(C.__mro__), str(C[int]))
""",
    "decorated": """
@list
@lambda g: [g.__name__]
def g[T](x):
    pass
return g
""",
    "aliases": """
type X[T] = list[T]
type Y = z
type Z = 'a string'
return (str(X.__value__), str(X[int]), Y.__value__, Z.__value__, X.__name__)
""",
    "in a class": """
class A[Q]:
    type X = Y
    Y = 5
    type W[T] = (T, Q, z, Y)

    def m[T: Y](self, x: T) -> X:
        return (T, Q, __class__)

    @staticmethod
    def s[T](a, b=z, *, c=3):
        return (a, b, c)
m = A.m
return (A.X.__value__, str(A.W.__value__), m.__type_params__[0].__bound__, str(A().m(1)), str(m.__annotations__), A.s(1))
""",
}


def run(code):
    return types.FunctionType(code, {"__builtins__": __builtins__, "__name__": "here"})(7)


def original(body):
    namespace = {}
    exec("def f(z):" + body.replace("\n", "\n    "), namespace)
    return namespace["f"].__code__


@pytest.mark.parametrize("name", CASES)
def test_behaves(name):
    code = original(CASES[name])
    assert run(recompiled(code)) == run(code)


@pytest.mark.parametrize("name", CASES)
def test_source_reads_as_written(name):
    assert decompile(original(CASES[name])) == ast.unparse(ast.parse("def f(z):" + CASES[name].replace("\n", "\n    ")))


def test_defaults_of_type_parameters():
    body = """
def g[T: int=bool, *Ts=*tuple[int, str], **P=[int]](x):
    return x
return [t.__default__ for t in g.__type_params__]
"""
    try:
        code = original(body)
    except SyntaxError:
        pytest.skip("their syntax is CPython 3.13's")
    assert str(run(recompiled(code))) == str(run(code))
