"""Functions with statements of every kind: decompiled, compiled again, compared and run beside the original."""

import ast
import asyncio
import dis
import types
import warnings

import pytest

from framegraft.decompiler import decompile

from .swap import recompiled

PRELUDE = '''
log = []
def say(*a):
    log.append(a)
    return a[-1] if a else None
class Boom(Exception): pass
class Manager:
    def __init__(self, swallow=False): self.swallow = swallow
    def __enter__(self): say("enter"); return self
    def __exit__(self, kind, error, tb): say("exit", kind); return self.swallow
class AsyncManager:
    async def __aenter__(self): say("aenter"); return 7
    async def __aexit__(self, *a): say("aexit", a[0])
class Point:
    __match_args__ = ("x", "y")
    def __init__(self, x=0, y=0): self.x, self.y = x, y
async def ticks(n):
    for i in range(n):
        await asyncio.sleep(0)
        yield i
def numbers(*a): yield from a
import asyncio
'''

# name -> (source of f, calls)
CASES = {
    "for else": ("""
def f(items, stop):
    out = []
    for item in items:
        if item == stop:
            out.append("stop")
            break
        if item % 2:
            continue
        out.append(item)
    else:
        out.append("all")
    return out
""", ["f([1, 2, 3, 4], 3)", "f([1, 2, 4], 9)", "f([], 0)"]),
    "nested loops": ("""
def f(n):
    out = []
    i = 0
    while i < n:
        i += 1
        for j in range(i):
            if j == 2:
                break
            while True:
                j += 1
                if j > 2:
                    break
                if j == 1:
                    continue
                out.append((i, j))
        else:
            out.append("none")
            continue
        if i > 3:
            break
    else:
        out.append("end")
    return out
""", ["f(2)", "f(6)", "f(0)"]),
    "loop in try": ("""
def f(get):
    while True:
        try:
            value = get()
            if not value:
                break
            say(value)
        except KeyError:
            continue
        except ValueError:
            break
""", ["f(iter([1, 2, 0]).__next__)", "f(lambda: int('x'))"]),
    "try all": ("""
def f(g):
    try:
        x = g()
    except (KeyError, TypeError) as e:
        x = "bad", e.args
        if x:
            return x
    except Boom:
        raise ValueError("from boom") from None
    except:
        say("other")
        raise
    else:
        say("fine")
        x += 1
    finally:
        say("finally")
    return x
""", ["f(lambda: 1)", "f(lambda: {}[1])", "f(lambda: 1/0)", "f(boom)"]),
    "finally ways": ("""
def f(n):
    for i in range(n):
        try:
            if i == 1:
                continue
            if i == 3:
                break
            if i == 5:
                return "five"
            say(i)
        finally:
            for j in range(3):
                if j == i:
                    break
            else:
                say("no break")
            say("after", i)
    try:
        return "try"
    finally:
        say("last")
""", ["f(2)", "f(4)", "f(0)"]),
    "finally return": ("""
def f(x):
    try:
        if x:
            raise Boom
    finally:
        return "swallowed"
""", ["f(0)", "f(1)"]),
    "handlers": ("""
def f(g):
    for k in range(3):
        try:
            try:
                g(k)
            except KeyError as e:
                try:
                    raise Boom(k) from e
                finally:
                    say("inner")
        except Boom as e:
            say(e.args, e.__cause__)
            if k == 1:
                break
        else:
            say("else", k)
    else:
        return "done"
""", ["f(lambda k: {}[k])", "f(lambda k: k)"]),
    "except star": ("""
def f(g):
    try:
        g()
    except* KeyError as e:
        say("key", e.exceptions)
    except* (TypeError, Boom):
        for i in range(2):
            try:
                say(i)
            except ValueError:
                pass
    except* OSError as e:
        pass
    else:
        say("else")
    finally:
        say("finally")
    return 1
""", ["f(lambda: 1)", "f(group)", "f(boom)", "f(lambda: 1 / 0)"]),
    "with": ("""
def f(swallow):
    with Manager() as a, Manager(swallow) as b:
        for i in range(3):
            with Manager():
                if i == 1:
                    continue
                if i == 2:
                    raise Boom
                say(i)
    with Manager(True):
        return say("in")
    return "out", a.swallow, b.swallow
""", ["f(True)", "f(False)"]),
    "async": ("""
def f(n):
    async def main():
        out = []
        async with AsyncManager() as seven:
            async for i in ticks(n):
                if i == 3:
                    break
                out.append(i)
            else:
                out.append("all")
        out += [x async for x in ticks(2) if x]
        out.append({x: y async for x in ticks(2) async for y in ticks(2)})
        out.append(await asyncio.sleep(0, seven))
        async def inner():
            yield 1
            return
        out.append([x async for x in inner()])
        return out
    return asyncio.run(main())
""", ["f(2)", "f(6)"]),
    "generators": ("""
def f(n):
    def g(n):
        try:
            x = yield
            while x:
                x = yield x * 2
            r = yield from numbers(*range(n))
            yield r, (yield 5) if n > 7 else None
        finally:
            say("closed")
    it = g(n)
    next(it)
    return it.send(3), it.send(0), list(it), sum(i * j for i in range(3) if i for j in range(i)), (lambda: (yield 3))
""", ["f(2)[:4]"]),
    "comprehensions": ("""
def f(m, k):
    a = [x + k for row in m for x in row if x if x > k]
    b = {x: [y for y in range(x)] for x in range(3)}
    c = {x % 3 for x in range(10)}
    d = [y for x in range(3) for y in [x + 1] for z in [y * 2] if z > 2]
    e = [last := i for i in range(3)]
    return a, b, c, d, e, last, [(lambda q: q + i)(1) for i in range(2)]
""", ["f([[1, 2], [3]], 1)"]),
    "match that begins with a guard": ("""
def f(xs, p):
    out = []
    for x in xs:
        match x:
            case _ if x is None or x > 10 and x != 11:
                continue
            case _ if x > 5:
                out.append(x)
            case int(y) if y:
                break
            case other if other < 0:
                out.append(-other)
        out.append(0)
    match say(p):
        case _ if say(not xs):
            y = 1
        case [a, b]:
            y = 2
        case _:
            y = 3
    return out, y
""", [([None, 11, 12, 7, 6.5, 0, -1.5, 3, 8], [1, 2]), ([], [1, 2]), ([7], 5)]),
    "match": ("""
def f(x):
    match x:
        case 0 | 1 | -1.5:
            return "number"
        case "a" | b"b" | None | True:
            return "constant"
        case [1, 2, *rest] if rest:
            return rest
        case {"a": [p, q], **kw} | {"b": [q, p], **kw}:
            return p, q, kw
        case Point(x=0, y=yy) | Point(yy, 1):
            return "point", yy
        case Point() as p if p.x > p.y and (p.x or p.y):
            return p.x
        case str() | bytes():
            r = "text"
        case (a, (b, c)) if a < b < c:
            r = a, b, c
        case [] | [_] | [_, _]:
            r = "short"
        case [_, *_, z]:
            r = z
        case {}:
            r = "dict"
        case {**anything}:
            r = anything
        case other if other == 5j:
            r = "five"
        case _ if x == 6:
            r = "six"
        case _:
            r = "?"
    return r
""", [f"f({x})" for x in ("0", "-1.5", "'a'", "None", "[1, 2, 3]", "[1, 2]", "{'a': [1, 2], 'c': 3}", "{'b': [1, 2]}", "Point(0, 4)",
                           "Point(5, 1)", "Point(7, 2)", "Point(1, 2)", "'text'", "(1, (2, 3))", "()", "(1, 2, 3, 4)", "{}", "{1: 2}",
                           "5j", "6", "7")]),
    "match in loops": ("""
def f(words):
    out = []
    for word in words:
        match word.split():
            case ["go", ("n" | "s") as d]:
                out.append(d)
                continue
            case ["stop"]:
                break
            case ["take", *what]:
                for w in what:
                    out.append(w)
            case [] | [_]:
                pass
        out.append(".")
    else:
        return "all", out
    match out:
        case [first, *_]:
            return first
""", ["f(['go n', 'take a b', 'x', ''])", "f(['stop'])", "f(['go s', 'stop', 'go n'])"]),
    "comparisons": ("""
def f(a, b, c):
    if a < b <= c != 3:
        r = 1
    elif not a == b == c:
        r = 2
    else:
        r = 3
    while a < b < c:
        a += 1
    return r, a, a is b is c is None, a in (1, 2) not in [3], (a < b < c) if a else (b > c)
""", ["f(1, 2, 3)", "f(1, 2, 4)", "f(2, 2, 2)", "f(0, 5, 9)"]),
    "conditions": ("""
def f(a, b, c):
    x = a and b or c
    y = (a or b) and (c or not a)
    z = a if b else b if c else c and a
    if a and (b or c) and not (a and b):
        x = say(x)
    if not (a or b) or c:
        y = [y]
    a and say("a")
    assert a or b or c, f"{a} {b}"
    return x, y, z, not a, a or (b if c else say(c)), (lambda: a if b else c)()
""", [f"f({a}, {b}, {c})" for a in (0, 1) for b in (0, 2) for c in (0, 3)]),
    "lines": ("""
def f(a, b, c):
    return (a and
            (b or
             c and a)
            or b)
""", ["f(1, 0, 3)", "f(0, 2, 3)", "f(1, 0, 0)"]),
    "f-strings": ("""
def f(x, w, d):
    return (f"{x!r:>{w}} {{}} {'a' if x else 'b'} {x:.2f}{d['k']}" f"{x=}", "%s and %r%%" % (x, w), "%5.1f|%-4s" % (x, w), f"{x!s}" "'\\"")
""", ["f(1.5, 8, {'k': 2})"]),
    "stars": ("""
def f(a, b, **k):
    x, *y, (z, *_) = [*a, b]
    print_ = lambda *a, **k: (a, k)
    d = {**k, "m": 1, **{"n": 2}}
    l = [*a, 1, *b]
    return x, y, z, print_(*a, 1, *b, k=2, **k), print_(*()), print_(c=1, **{"d": 2}), d, l, {*a, 3}, (*a,)
""", ["f((1, 2, 3), [4, 5], q=6)"]),
    "assignments": ("""
def f(o, l):
    a = b = c = 3
    a, b = b, a + 1
    a, b, c = c, a, b
    o.x = o.y = a
    o.x += 2
    l[0] -= 1
    l[a - a], l[1] = l[1], l[0]
    l[1:3] = [7, 8]
    del l[0], o.y
    (x, y), [z] = (1, 2), [3]
    n: int = 4
    if (m := n * 2) > 3 and (k := m) and l:
        m += k
    del n
    for o.x in range(3): pass
    for l[0], q in [(1, 2)]: pass
    return a, b, c, o.__dict__, l, x, y, z, m, k, q
""", ["f(Point(), [1, 2, 3, 4])"]),
    "closures": ("""
def f(a):
    count = 0
    def g(b, c=a, *, d=3, **k):
        nonlocal count
        count += 1
        def h():
            nonlocal count
            count += b
            return a, count, d
        return h
    h = g(2)
    return h(), g(1, d=4)(), count, [w() for w in [lambda i=i: i + a for i in range(2)]]
""", ["f(1)"]),
    "globals": ("""
def f():
    global counter
    counter = 1
    counter += 1
    def g():
        global counter
        counter += 1
    g()
    del log[:]
    return counter
""", ["f()"]),
    "classes": ("""
def f(base):
    def deco(arg):
        return lambda c: (say(arg), c)[1]
    @deco(1)
    @deco(2)
    class A(base, metaclass=type):
        "A class."
        x: int = 3
        y: "str"
        __private = 4
        for i in range(3):
            if i == 1:
                break
        else:
            never = 1
        if base:
            def __init__(self):
                super().__init__()
                self.__value = self.__private
        try:
            z = undefined
        except NameError as e:
            z = str(e)
        @property
        def value(self): return self.__value, __class__.__name__
        @staticmethod
        @deco(3)
        def s(a: int, /, b: str = "b", *c: float, d: list = None, **e: dict) -> tuple:
            "doc"
            return a, b, c, d, e
        class B:
            q = [j for j in range(2)]
    a = A()
    return a.value, A.s(1, 2, 3, d=4, e=5), A.__annotations__, A.B.q, A.z, A.i, A.__doc__, A.s.__annotations__, A.__qualname__
""", ["f(Point)"]),
    "imports": ("""
def f():
    import os.path
    import os.path as p, sys
    from os import path, sep as s
    from os.path import (join as j, split)
    import collections.abc as c
    return p is path is os.path, j("a", "b") == "a" + s + "b", split is p.split, sys.maxsize > 1, c.Sized.__name__
""", ["f()"]),
    "a loop without an end in a loop with a test": ("""
def f(x, limit):
    while len(x) > limit:
        try:
            while True:
                first = x[0]
                say(first)
                x.remove(next(iter(x[limit:])) if first else x.pop())
        except (StopIteration, ValueError, IndexError):
            x.pop()
    return x
""", ["f([1, 2, 3, 4], 1)", "f([0, 1, 0], 0)"]),
    "a with statement around a loop with an else and breaks": ("""
def f(x, limit):
    found = 0
    with Manager():
        while len(x) > limit:
            if x[0] == 2:
                break
            if x.pop() == 3:
                break
            say(x)
        else:
            say("else")
            found = 1
    return found, x
""", ["f([1, 2, 3, 4], 1)", "f([2, 0, 3], 0)", "f([1, 4], 0)"]),
    "closures that nothing reaches": ("""
def f(x, y):
    while True:
        if x:
            return x, y
        x = len(say(y) or "a")

    def inner():
        return x, y
    return inner
""", ["f(0, 1)", "f(1, 2)"]),
    "patterns with rests and guards": ("""
def f(subject, limit=1):
    match subject:
        case {"a": [x, *rest], "b": Point(x=0, y=(1 | 2) as z), **others} if x and (t := len(rest)) < limit:
            return x, rest, z, others, t
        case {"a": x, **others} if x:
            return x, others
        case [_ as first, (1 | 2), *_] as whole if first:
            return first, whole
        case _ as anything if anything:
            pass
    match subject:
        case _ as last:
            return last
""", ["f({'a': [1], 'b': Point(0, 2), 'c': 3})", "f({'a': [1, 2], 'b': Point(0, 2)})", "f({'a': 0})", "f([1, 2, 3])", "f([0, 2])", "f(5)"]),
    "raise": ("""
def f(x):
    if x == 1:
        raise Boom
    elif x == 2:
        raise Boom("a") from KeyError("b")
    assert x != 3
    assert x != 4, "four"
    try:
        raise KeyError
    except KeyError:
        if x == 5:
            raise
""", [f"f({x})" for x in range(6)]),
    "constants": ("""
def f():
    "doc"
    return (1, -1, 1.5, -0.0, 2j, 1 - 2j, 1e400, "a\\n'\\"", b"\\x00", None, True, ..., (1, (2, ())), [1, 2, 3, 4], {1, 2, 3},
            {"a": 1, "b": 2}, 1 in {1, 2}, [i for i in [1, 2, 3]], 10 ** 20, "\\ud800")
""", ["f()"]),
}


def outcome(namespace, call):
    del namespace["log"][:]
    try:
        result = ("returned", repr(eval(call, namespace)))
    except BaseException as error:
        result = ("raised", repr(error), repr(error.__cause__), repr(error.__context__))
    return result, repr(namespace["log"])


def namespace_of(source):
    namespace = {"__name__": "case"}
    exec(compile(PRELUDE + source, "<case>", "exec", dont_inherit=True), namespace)

    def boom():
        raise namespace["Boom"]("b")

    def group():
        raise ExceptionGroup("g", [KeyError(1), TypeError(2), OSError(3)])

    namespace.update(boom=boom, group=group)
    return namespace


def without_addresses(found):
    import re

    return re.sub(r"0x[0-9a-f]+", "0x", repr(found))


if not hasattr(ast, "TryStar"):  # CPython 3.10
    del CASES["except star"]


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("name", CASES)
def test_behaves(name):
    source, calls = CASES[name]
    for call in calls:
        eager, again = namespace_of(source), namespace_of(source)
        code = again["f"].__code__
        again["f"].__code__ = recompiled(code)
        assert without_addresses(outcome(eager, call)) == without_addresses(outcome(again, call)), decompile(code)


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_what_the_compiler_warned_of():
    """It has warned when the program was compiled, and does so once."""
    f = namespace_of("def f(x):\n    return x is 1 or 'a'(x)\n")["f"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = list(warnings.filters)
        assert "'a'(x)" in decompile(f.__code__)
        assert warnings.filters == before


@pytest.mark.parametrize("name", CASES)
def test_nested_code_alone(name):
    """Each function inside of the case's function can be decompiled by itself, too."""
    todo = [namespace_of(CASES[name][0])["f"].__code__]
    while todo:
        code = todo.pop()
        todo += [c for c in code.co_consts if isinstance(c, types.CodeType)]
        if code.co_flags & 1 and not code.co_name.startswith("<"):
            ast.parse(decompile(code))


def test_source_reads_as_written():
    source = '''def f(self, items, *, key=None):
    """Doc."""
    total = 0
    for index, item in enumerate(items):
        if item is None or (key and key(item)):
            continue
        try:
            total += self.weights[index] * item
        except IndexError as error:
            raise ValueError(f'no weight for {item!r}') from error
    with open('log', 'w') as file:
        print(total, file=file)
    return [x for x in items if x not in (1, 2)]'''
    namespace = {}
    exec(source, namespace)
    assert decompile(namespace["f"]) == ast.unparse(ast.parse(source.replace("key=None", "key")))


def test_classes_that_methods_refer_to():
    class Named:
        def declared(self):
            nonlocal __class__
            return 1

        def implied(self):
            return super().__repr__()

        def read(self):
            return __class__

    for method in (Named.declared, Named.implied, Named.read):
        assert recompiled(method.__code__).co_freevars == ("__class__",)
    assert "nonlocal" not in decompile(Named.implied) + decompile(Named.read)


def test_many_keywords_for_what_a_module_imports():
    """The compiler packs them, because it knows that the name is imported. The function's own source does not say so."""
    arguments = ", ".join(f"k{n}={n}" for n in range(16))
    code = compile(f"import m\ndef f(a): return m.g(a, 1, {arguments})", "made", "exec").co_consts[2]
    assert "CALL_FUNCTION_EX" in {inst.opname for inst in dis.get_instructions(code)}
    assert recompiled(code).co_code == code.co_code
