"""What test_swapped_values.py swaps: values by kind, as source, so that each call gets fresh ones; names they are made of."""

import array
import collections
import contextlib
import copy
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import inspect
import itertools
import json
import math
import operator
import pathlib
import random
import re
import string
import types
import typing
import uuid
import weakref

import numpy
import torch


class MyInt(int):
    pass


class MyStr(str):
    pass


class MyFloat(float):
    pass


class MyList(list):
    pass


class MyDict(dict):
    def __missing__(self, key):
        return ("missing", key)


class MyTuple(tuple):
    pass


class MySet(set):
    pass


class E(enum.Enum):
    A = 1
    B = 2


class IE(enum.IntEnum):
    A = 1
    B = 2


class SE(*((enum.StrEnum,) if hasattr(enum, "StrEnum") else (str, enum.Enum))):  # since CPython 3.11
    A = "a"
    B = "b"


class FL(enum.Flag):
    A = 1
    B = 2
    C = 4


class IF(enum.IntFlag):
    A = 1
    B = 2


NT = collections.namedtuple("NT", "a b")  # noqa: PYI024 - this kind, too


class TNT(typing.NamedTuple):
    a: int
    b: object = None

    def total(self):
        return self.a


@dataclasses.dataclass
class DC:
    a: int = 1
    b: object = None


@dataclasses.dataclass(frozen=True)
class FDC:
    a: int = 1
    b: object = None


@dataclasses.dataclass(order=True)
class ODC:
    a: int = 1


@dataclasses.dataclass(slots=True)
class SDC:
    a: int = 1
    b: list = dataclasses.field(default_factory=list)


class O:  # noqa: E742
    def __init__(self, **kwargs):
        self.__dict__.update(kwargs)

    def __repr__(self):
        return f"O({self.__dict__})"


class Slots:
    __slots__ = ("a", "b")

    def __init__(self, a, b=None):
        self.a = a
        if b is not None:
            self.b = b


class Eq:
    def __init__(self, v):
        self.v = v

    def __eq__(self, other):
        return isinstance(other, Eq) and self.v == other.v

    def __hash__(self):
        return hash(self.v)

    def __repr__(self):
        return f"Eq({self.v})"


class Many:
    """Most of the special methods, all of them telling ``v``."""

    def __init__(self, v):
        self.v = v

    def __repr__(self):
        return f"Many({self.v!r})"

    def __lt__(self, other):
        return self.v < (other.v if isinstance(other, Many) else other)

    def __len__(self):
        return self.v

    def __bool__(self):
        return self.v > 1

    def __getitem__(self, i):
        if isinstance(i, int) and i > 3:
            raise IndexError(i)
        return (self.v, i)

    def __setitem__(self, i, value):
        self.v = (i, value)

    def __delitem__(self, i):
        self.v = ("deleted", i)

    def __contains__(self, i):
        return i == self.v

    def __call__(self, *args, **kwargs):
        return (self.v, args, kwargs)

    def __add__(self, other):
        return self.v + 1

    def __radd__(self, other):
        return self.v + 2

    def __iadd__(self, other):
        self.v += 10
        return self

    def __index__(self):
        return self.v

    def __float__(self):
        return self.v / 2

    def __neg__(self):
        return -self.v

    def __enter__(self):
        self.v += 100
        return self.v

    def __exit__(self, kind, error, trace):
        self.v += 1000
        return kind is ValueError and self.v > 1101

    def __format__(self, spec):
        return f"<{spec}{self.v}>"

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return (name, self.v)


class Iter:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n <= 0:
            raise StopIteration
        self.n -= 1
        return self.n


class Desc:
    def __get__(self, obj, owner):
        return ("got", obj.__dict__.get("raw") if obj is not None else owner.__name__)

    def __set__(self, obj, value):
        obj.__dict__["raw"] = ("set", value)

    def __delete__(self, obj):
        obj.__dict__["raw"] = "deleted"


class WithDesc(O):
    a = Desc()

    @property
    def b(self):
        return self.__dict__.get("raw", 0)

    @b.setter
    def b(self, value):
        self.__dict__["raw"] = value

    @functools.cached_property
    def name(self):
        return len(self.__dict__)


class Meta(type):
    def __len__(cls):
        return cls.size

    def __iter__(cls):
        return iter([cls.__name__])

    def __call__(cls, *args):
        return ("called", cls.__name__, args)

    def __getattr__(cls, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return (cls.__name__, name)


class MA(metaclass=Meta):
    size = 1


class MB(metaclass=Meta):
    size = 2


class K1:
    z = 1

    @classmethod
    def get(cls, key):
        return (cls.__name__, key)

    @staticmethod
    def keys():
        return ["k"]


class K2(K1):
    z = 2
    __match_args__ = ("z",)


def fn1(a=1):
    return a + 1


def fn2(a=2, *, b=3):
    "documented"
    return a + b


def make_fn(c, d=1):
    def inner(a=d):
        return a + c

    return inner


def gen(n):
    for i in range(n):
        got = yield i
        if got is not None:
            yield ("got", got)
    return n


@contextlib.contextmanager
def manager(n):
    yield n


class Tagged(torch.Tensor):
    pass


T = torch.tensor
KINDS = {
    "int": "0|1|2|True|False|3|-1|10**30",
    "float": "0.0|-0.0|1.0|float('nan')|float('inf')|2.5|1e300",
    "complex": "1j|0j|-0j|complex(0,-0.0)|complex(1,0)",
    "str": "''|'a'|'b'|'ab'|'A'|'é'|'1'|'a b'|'%s'|'{}'",
    "bytes": "b''|b'a'|b'ab'|bytearray(b'a')|bytearray(b'b')",
    "none": "None|...|NotImplemented",
    "tuple": "()|(1,)|(2,)|(1,2)|(1.0,)|(True,)|('a',)|((1,),)|(None,)|([1],)",
    "list": "[]|[1]|[2]|[1,2]|[1.0]|[True]|['a']|[[1]]|[None]|[0,1,2]|[2,1,0]|[(1,2)]",
    "dict": "{}|{'a':1}|{'a':2}|{'b':1}|{'a':1,'b':2}|{'b':2,'a':1}|{1:2}|{True:2}|{1.0:2}|{'a':None}|{'a':[1]}|{(1,):2}|{None:1}",
    "set": "set()|{1}|{2}|{1,2}|{'a'}|frozenset()|frozenset([1])|frozenset([2])|MySet([1])",
    "range": "range(0)|range(1)|range(2)|range(1,2)|range(0,4,2)|range(3,0,-1)",
    "slice": "slice(None)|slice(1)|slice(2)|slice(0,2)|slice(None,None,-1)",
    "int_subclass": "MyInt(1)|MyInt(2)|1|2|True", "str_subclass": "MyStr('a')|MyStr('b')|'a'", "float_subclass": "MyFloat(1)|MyFloat(2)|1.0",
    "list_subclass": "MyList([1])|MyList([2])|MyList([1,2])|[1]", "dict_subclass": "MyDict(a=1)|MyDict(a=2)|MyDict(b=1)|{'a':1}",
    "tuple_subclass": "MyTuple((1,))|MyTuple((2,))|(1,)",
    "enum": "E.A|E.B|IE.A|IE.B|SE.A|SE.B|FL.A|FL.B|FL.A|FL(0)|IF.A|IF(3)".replace("FL.A|FL(0)", "FL.A^FL.B|FL(0)"),
    "namedtuple": "NT(1,2)|NT(2,2)|NT(1,'a')|TNT(1)|TNT(2)|(1,2)",
    "dataclass": "DC()|DC(2)|DC(1,'x')|DC(1,[1])|DC(1,[2])|SDC()|SDC(2)", "frozen": "FDC()|FDC(2)|FDC(1,'x')|FDC(1,(1,))",
    "ordered": "ODC(1)|ODC(2)|ODC(1)",
    "object": "O()|O(a=1)|O(a=2)|O(b=1)|O(a='s')|O(a=1,b=2)|O(b=2,a=1)|O(a=[1])|O(a=None)|O(keys=list)",
    "slots": "Slots(1)|Slots(2)|Slots(1,2)|Slots('a')", "eq": "Eq(1)|Eq(2)|Eq(1)", "many": "Many(1)|Many(2)|Many(0)|Many(-1)",
    "descriptors": "WithDesc()|WithDesc(a=1)|WithDesc(raw=2)|WithDesc(b=1)|WithDesc(name=3)",
    "function": "fn1|fn2|make_fn(1)|make_fn(2)|make_fn(1,5)|lambda a=3: a|Tagged.sum",
    "class": "K1|K2|int|str|list|type('K1',(),{'z':3})|O|MA|MB|E|DC",
    "method": "O(a=1).__init__|Eq(1).__hash__|Eq(2).__hash__|Many(1).__len__|Many(2).__len__|[1].copy|[2].copy|'a'.upper|'b'.upper|K1.get|K2.get",
    "partial": "functools.partial(fn1)|functools.partial(fn1,5)|functools.partial(fn1,6)|functools.partial(fn2,5)|functools.partial(fn2,a=7)",
    "ordered_dict": "collections.OrderedDict(a=1,b=2)|collections.OrderedDict(b=2,a=1)|collections.OrderedDict(a=1)",
    "default_dict": "collections.defaultdict(int)|collections.defaultdict(list)|collections.defaultdict(int,a=1)|collections.defaultdict(None)",
    "counter": "collections.Counter('a')|collections.Counter('ab')|collections.Counter('aa')|collections.Counter()",
    "chain_map": "collections.ChainMap({'a':1})|collections.ChainMap({},{'a':1})|collections.ChainMap({'a':2},{'a':1})",
    "user": "collections.UserDict(a=1)|collections.UserDict(a=2)|collections.UserList([1])|collections.UserList([2])",
    "deque": "collections.deque()|collections.deque([1])|collections.deque([1],maxlen=1)|collections.deque([1,2])|collections.deque([2,1],maxlen=2)",
    "namespace": "types.SimpleNamespace(a=1)|types.SimpleNamespace(a=2)|types.SimpleNamespace(b=1)|types.SimpleNamespace(a=1,b=2)",
    "number": "fractions.Fraction(1,2)|fractions.Fraction(1,3)|decimal.Decimal('1')|decimal.Decimal('2')|decimal.Decimal('1.0')",
    "time": "datetime.date(2020,1,1)|datetime.date(2021,1,1)|datetime.timedelta(1)|datetime.timedelta(2)|datetime.datetime(2020,1,1)",
    "pattern": "re.compile('a')|re.compile('b')|re.match('a','ab')|re.match('(.)','b')", "path": "pathlib.PurePath('a')|pathlib.PurePath('b/a')",
    "uuid": "uuid.UUID(int=1)|uuid.UUID(int=2)", "module": "math|operator|random", "dtype": "torch.float32|torch.float64|torch.int64",
    "device": "torch.device('cpu')|torch.device('meta')|torch.device('cpu',0)", "size": "torch.Size([1])|torch.Size([2])|torch.Size([1,2])|torch.Size([])",
    "tensor": "T([1.])|T([2.])|T([1.,2.])|T(1.)|T(1)|T([True])|torch.ones(2,2)|torch.ones(2,2).t()|torch.ones(1,requires_grad=True)"
              "|torch.nn.Parameter(torch.ones(1))|torch.ones(3)[1:2]|T([1.]).as_subclass(Tagged)|T([1j])|torch.ones(0)",
    "exception": "ValueError(1)|ValueError(2)|KeyError('a')|ValueError()|StopIteration(1)|AttributeError('a',name='n')|OSError(2,'x')|ValueError",
    "proxy": "types.MappingProxyType({'a':1})|types.MappingProxyType({'a':2})|types.MappingProxyType(MyDict(a=1))",
    "view": "{'a':1}.keys()|{'b':1}.keys()|{'a':1}.values()|{'a':2}.values()|{'a':1}.items()|collections.OrderedDict(a=1).keys()",
    "iterator": "iter([1,2])|iter([2])|iter(())|iter('ab')|iter({'a':1})|enumerate([1])|zip([1],[2])|map(str,[1])|iter(range(3))|Iter(2)|Iter(3)",
    "generator": "gen(0)|gen(1)|gen(2)|(i for i in [1])",
    "itertools": "itertools.repeat(1,2)|itertools.chain([1],[2])|itertools.islice([1,2,3],2)",
    "nn": "torch.nn.Linear(1,1)|torch.nn.Linear(1,1,bias=False)|torch.nn.Linear(1,2)|torch.nn.ReLU()|torch.nn.Sequential()"
          "|torch.nn.Sequential(torch.nn.ReLU())|torch.nn.ModuleList([torch.nn.ReLU()])|torch.nn.ModuleDict({'a':torch.nn.ReLU()})",
    "array": "array.array('i',[1])|array.array('i',[2])|memoryview(b'a')|memoryview(b'b')",
    "numpy": "numpy.array([1])|numpy.array([2])|numpy.float32(1)|numpy.int64(1)|numpy.int64(2)|numpy.array([1.0])|numpy.float64(1)|numpy.bool_(True)",
    "union": "int\\|None|int\\|str|list[int]|list[str]|typing.Optional[int]|typing.List[int]",
    "manager": "contextlib.nullcontext(1)|contextlib.nullcontext(2)|manager(1)|manager(2)|contextlib.suppress(ValueError)|contextlib.suppress(KeyError)"
               "|contextlib.ExitStack()|torch.no_grad()|torch.enable_grad()",
    "getter": "operator.itemgetter(0)|operator.itemgetter(1)|operator.attrgetter('a')|operator.methodcaller('upper')|functools.lru_cache(fn1)",
    "weak": "weakref.ref(fn1)|weakref.ref(fn2)|weakref.WeakKeyDictionary()|weakref.WeakSet()",
    "signature": "inspect.signature(fn1)|inspect.signature(fn2)|string.Template('$a')|string.Formatter()|json.JSONEncoder()",
}
NAMES = dict(globals())
assert copy and math and random  # used by expressions


def sources(kind: str) -> list[str]:
    """The sources of the values of a kind."""
    return [s.replace("\0", "|") for s in KINDS[kind].replace("\\|", "\0").split("|")]
