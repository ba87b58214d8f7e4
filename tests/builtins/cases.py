"""Calls of every method and slot of the builtin types, and of every function of the modules that programs lean on.

Everything is source text, so that the object can be made inside of the captured function or come from outside.
"""

import builtins
import collections
import functools
import itertools
import math
import operator
import random
from collections.abc import Iterator

# Sample objects by type; each is an expression.
SAMPLES: dict[str, tuple[str, ...]] = {
    "int": ("5", "-3"),
    "bool": ("True",),
    "float": ("2.5", "-0.0"),
    "complex": ("(1+2j)",),
    "str": ("'a b-c'", "''"),
    "bytes": ("b'a b'",),
    "bytearray": ("bytearray(b'a b')",),
    "list": ("[3, 1, 2]", "[]"),
    "tuple": ("(3, 1, 2)", "()"),
    "dict": ("{'a': 1, 'b': 2}", "{}"),
    "set": ("{1, 2, 3}", "set()"),
    "frozenset": ("frozenset({1, 2})",),
    "range": ("range(2, 8, 2)",),
    "slice": ("slice(1, 5, 2)",),
    "NoneType": ("None",),
    "ellipsis": ("...",),
    "NotImplementedType": ("NotImplemented",),
    "enumerate": ("enumerate([4, 5])",),
    "zip": ("zip([1, 2], [3, 4])",),
    "map": ("map(str, [1, 2])",),
    "filter": ("filter(None, [0, 1])",),
    "reversed": ("reversed([1, 2])",),
    "list_iterator": ("iter([1, 2])",),
    "dict_keys": ("{'a': 1}.keys()",),
    "dict_values": ("{'a': 1}.values()",),
    "dict_items": ("{'a': 1}.items()",),
    "dict_keyiterator": ("iter({'a': 1})",),
    "set_iterator": ("iter({1})",),
    "str_iterator": ("iter('ab')",),
    "range_iterator": ("iter(range(3))",),
    "generator": ("(i for i in [1, 2])",),
    "function": ("named",),
    "method": ("Plain(3).get",),
    "builtin_function_or_method": ("len", "[1].append"),
    "property": ("property(named)",),
    "staticmethod": ("staticmethod(named)",),
    "classmethod": ("classmethod(named)",),
    "type": ("int", "Plain"),
    "object": ("object()", "Plain(2)"),
    "ValueError": ("ValueError(1, 'a')",),
    "KeyError": ("KeyError('k')",),
    "StopIteration": ("StopIteration(4)",),
    "OSError": ("OSError(2, 'no')",),
    "AttributeError": ("AttributeError('a')",),
    "memoryview": ("memoryview(b'abc')",),
    "mappingproxy": ("vars(Plain)",),
    "module": ("math",),
    "deque": ("collections.deque([1, 2], 3)",),
    "defaultdict": ("collections.defaultdict(list, a=[1])",),
    "OrderedDict": ("collections.OrderedDict(a=1, b=2)",),
    "Counter": ("collections.Counter('aab')",),
    "ChainMap": ("collections.ChainMap({'a': 1}, {'b': 2})",),
    "namedtuple": ("Pair(1, 2)",),
    "UserDict": ("collections.UserDict(a=1)",),
    "UserList": ("collections.UserList([1, 2])",),
    "UserString": ("collections.UserString('ab')",),
    "partial": ("functools.partial(named, 4)",),
    "itemgetter": ("operator.itemgetter(0)",),
    "attrgetter": ("operator.attrgetter('real')",),
    "methodcaller": ("operator.methodcaller('upper')",),
    "chain": ("itertools.chain([1], [2])",),
    "count": ("itertools.count(3)",),
    "cycle": ("itertools.cycle([1, 2])",),
    "islice": ("itertools.islice([1, 2, 3], 2)",),
    "SubList": ("SubList([3, 1])",),
    "SubDict": ("SubDict(a=1)",),
    "SubInt": ("SubInt(4)",),
    "SubStr": ("SubStr('ab')",),
    "SubTuple": ("SubTuple([1, 2])",),
    "SubSet": ("SubSet([1, 2])",),
}

PRELUDE = """
import builtins, collections, functools, itertools, math, operator

def named(a=1, *rest):
    return (a, rest)

class Plain:
    total = 7
    def __init__(self, a):
        self.a = a
    def get(self):
        return self.a
    def __eq__(self, other):
        return isinstance(other, Plain) and self.a == other.a
    def __hash__(self):
        return 3

Pair = collections.namedtuple("Pair", "a b")
class SubList(list): pass
class SubDict(dict): pass
class SubInt(int): pass
class SubStr(str): pass
class SubTuple(tuple): pass
class SubSet(set): pass
"""

ARGUMENTS: tuple[tuple[str, ...], ...] = (
    (), ("1",), ("0",), ("-1",), ("'a'",), ("None",), ("[1, 2]",), ("(1, 2)",), ("{'a': 3}",), ("{1, 5}",), ("2.5",), ("'utf-8'",), ("b'a'",),
    ("[('k', 1)]",), ("slice(0, 1)",), ("len",), ("Plain(3)",), ("0", "1"), ("'a'", "'b'"), ("'a'", "7"), ("1", "None"), ("named", "[1, 2]"),
    ("[1, 2]", "[3]"), ("slice(0, 1)", "[9]"), ("1", "2", "3"), ("'a'", "'b'", "1"), ("int",), ("'a'", "0"), ("ValueError('v')",),
)

# Methods that end the process, touch the machine, or show addresses.
LEFT_OUT = frozenset((
    "__init_subclass__", "__subclasshook__", "__dir__", "__sizeof__", "breakpoint", "input", "exit", "quit", "open", "help", "license",
    "copyright", "credits", "__reduce__", "__reduce_ex__", "__getstate__", "exec", "eval", "compile", "__import__", "__build_class__", "id",
    "print", "globals", "locals", "vars", "dir", "memoryview", "__loader__", "__spec__", "__doc__", "__builtins__", "__annotations__",
))
# Calls whose outcome hangs on addresses: reprs and hashes of such objects.
ADDRESSES = frozenset(("__repr__", "__str__", "__format__", "__hash__", "hash", "repr", "str", "format", "ascii"))
ADDRESSED = frozenset(("function", "method", "builtin_function_or_method", "object", "property", "staticmethod", "classmethod", "super", "generator",
                       "enumerate", "zip", "map", "filter", "reversed", "memoryview", "partial", "chain", "cycle", "islice", "list_iterator",
                       "dict_keyiterator", "set_iterator", "str_iterator", "range_iterator", "itemgetter", "attrgetter", "methodcaller", "type",
                       "mappingproxy", "module"))


class Case:
    """One expression over ``o`` (the sample) and ``p``, ``q``, ``r`` (the arguments)."""

    def __init__(self, id: str, sample: str, arguments: tuple[str, ...], call: str) -> None:
        self.id = id
        self.sample = sample
        self.arguments = arguments
        self.call = call

    def __repr__(self) -> str:
        return f"{self.id}: {self.call} with o={self.sample}, {', '.join(self.arguments)}"

    def source(self, inside: bool) -> str:
        """A module with ``make()``, the arguments, and ``f``, which is captured."""
        names = ["o", *"pqr"[: len(self.arguments)]]
        values = [self.sample, *self.arguments]
        if inside:
            made = "\n    ".join(f"{n} = {v}" for n, v in zip(names, values, strict=True))
            return f"{PRELUDE}\ndef make():\n    return ()\ndef f(x):\n    {made}\n    y = x + 1\n    return y, {self.call}, {', '.join(names)}\n"
        given = ", ".join(names)
        return f"{PRELUDE}\ndef make():\n    return ({', '.join(values)},)\ndef f(x, {given}):\n    y = x + 1\n    return y, {self.call}, {given}\n"


def method_cases(kind: str) -> Iterator[Case]:
    """Each attribute of a type: read, and called with the sample arguments."""
    scope: dict = {}
    exec(PRELUDE, scope)
    for sample in SAMPLES[kind]:
        value = eval(sample, scope)
        for name in sorted(set(dir(type(value))) | set(dir(value))):
            if name in LEFT_OUT or (kind in ADDRESSED and name in ADDRESSES):
                continue
            if not callable(getattr(value, name, None)):
                yield Case(f"{kind}.{name}", sample, (), f"o.{name}")
                continue
            for arguments in ARGUMENTS:
                given = ", ".join("pqr"[: len(arguments)])
                yield Case(f"{kind}.{name}", sample, arguments, f"o.{name}({given})")


MODULES = {"builtins": builtins, "operator": operator, "math": math, "itertools": itertools, "functools": functools,
           "collections": collections}


def function_cases(module: str) -> Iterator[Case]:
    for name in sorted(dir(MODULES[module])):
        if name in LEFT_OUT or name.startswith("_") or not callable(getattr(MODULES[module], name)):
            continue
        for arguments in (*ARGUMENTS, ("{'a': 1}", "'a'"), ("[3, 1]", "2"), ("2", "5"), ("'ab'", "2"), ("9", "3", "2"), ("[1, 2]", "0", "7")):
            given = ", ".join("pqr"[: len(arguments)])
            yield Case(f"{module}.{name}", "0", arguments, f"{module}.{name}({given})")


OPERATORS = ("+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "<<", ">>", "<", "<=", "==", "!=", "is", "in", "and", "not in")
INPLACE = ("+=", "-=", "*=", "|=", "&=", "^=", "//=", "**=", "%=")


def operator_cases() -> Iterator[Case]:
    """Binary operators between all kinds of samples."""
    firsts = [(k, v[0]) for k, v in SAMPLES.items()]
    for kind, sample in firsts:
        for other, argument in firsts:
            for sign in OPERATORS:
                yield Case(f"{kind}{sign}{other}", sample, (argument,), f"(o {sign} p)")
        for form in ("-o", "+o", "~o", "not o", "bool(o)", "[*o]", "(lambda *a: a)(*o)", "{**o}", "dict(**o)", "f'{o}'" if kind not in ADDRESSED else "o",
                     "f'{o:>5}'" if kind not in ADDRESSED else "o", "[i for i in o]", "1 in o", "o[0]", "o['a']", "o[1:2]", "next(iter(o))", "len(o)",
                     "isinstance(o, (int, str))", "type(o).__name__", "list(zip(o, o))", "sorted(o)", "max(o)", "sum(o)", "callable(o)", "o()",
                     "'%s' % o" if kind not in ADDRESSED else "o", "range(o)", "[1, 2, 3][o]", "'abc'[o]", "copy(o)", "[9, *o, 8]", "max(o, o)"):
            if "copy" not in form:
                yield Case(f"{form} of {kind}", sample, (), form)


def some(cases: Iterator[Case], share: float, seed: int = 0) -> list[Case]:
    chooser = random.Random(seed)
    return [c for c in cases if share >= 1 or chooser.random() < share]
