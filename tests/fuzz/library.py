"""What programs of the wide grammar find in their module, beside the prelude: classes and functions with fixed bodies.

The random part is how they are used (``snippets``) and what ``change`` does to them between two calls.
"""

LIBRARY = '''\
import collections, dataclasses, enum, sys, typing, types
import numpy as np
from torch import nn
from torch.nn import functional as NF

# -- records

@dataclasses.dataclass
class CPoint:
    x: int
    y: typing.Any = None
    tags: list = dataclasses.field(default_factory=list)
    def shifted(self, by): return dataclasses.replace(self, x=self.x + by)
    @property
    def size(self): return self.x * 2 + len(self.tags)

@dataclasses.dataclass(frozen=True, order=True)
class CFrozen:
    x: int
    name: str = "f"
    def __post_init__(self): note("made", self.x)

class CPair(typing.NamedTuple):
    left: int
    right: typing.Any = 7
    def swapped(self): return CPair(self.right, self.left)

CTriple = collections.namedtuple("CTriple", "a b c", defaults=(5,))

class CColor(enum.Enum):
    RED = 1
    BLUE = 2
    AZURE = 2
    @property
    def next(self): return CColor.BLUE if self is CColor.RED else CColor.RED

class CBits(enum.IntFlag):
    A = 1
    B = 2
    C = 4

# -- classes made by the rarer means

class CMeta(type):
    made = 0
    def __call__(cls, *args, **kwargs):
        CMeta.made += 1
        obj = super().__call__(*args, **kwargs)
        obj.number = CMeta.made % 3
        return obj
    def __getattr__(cls, name):
        if name == "virtual":
            return 11
        raise AttributeError(name)
    def __len__(cls): return 4
    def __contains__(cls, k): return k == 2
    def __iter__(cls): return iter((1, 2, 3))

class CMade(metaclass=CMeta):
    def __init__(self, a): self.a = a
    def __call__(self, b): return self.a + b

class CRegistered:
    known = []
    def __init_subclass__(cls, tag="none", **kwargs):
        super().__init_subclass__(**kwargs)
        CRegistered.known.append(tag)
    def __class_getitem__(cls, item): return (cls.__name__, item)

class CNamed:
    def __set_name__(self, owner, name): self.name = "_" + name
    def __get__(self, obj, owner=None): return self if obj is None else obj.__dict__.get(self.name, 1)
    def __set__(self, obj, value): obj.__dict__[self.name] = value + 1
    def __delete__(self, obj): del obj.__dict__[self.name]

class CLeft(CRegistered, tag="left"):
    field = CNamed()
    def who(self, n): return n + 1
    def chain(self): return ["left"]

class CRight(CRegistered, tag="right"):
    def who(self, n): return n * 2
    def chain(self): return ["right"]

class CBoth(CLeft, CRight):
    def who(self, n): return super().who(n) + super(CLeft, self).who(n)
    def chain(self): return ["both", *super().chain(), *CRight.chain(self)]

class CWatched:
    log = []
    def __init__(self): self.value = 2
    def __getattribute__(self, name):
        if name != "log" and name[0] != "_":
            object.__getattribute__(self, "log").append(name)
        return object.__getattribute__(self, name)
    def __delattr__(self, name):
        note("del", name)
        object.__delattr__(self, name)

class CNumber:
    def __init__(self, v): self.v = v
    def __index__(self): return self.v % 3
    def __int__(self): return self.v + 1
    def __float__(self): return self.v / 2
    def __complex__(self): return complex(self.v, 1)
    def __bool__(self): return self.v % 2 == 0
    def __pow__(self, other, mod=None): return CNumber(self.v ** 2 % 7)
    def __divmod__(self, other): return (self.v // 2, self.v % 2)
    def __round__(self, n=0): return self.v * 10
    def __invert__(self): return -self.v
    def __rsub__(self, other): return other - self.v
    def __ifloordiv__(self, other): self.v //= 2; return self
    def __format__(self, spec): return f"<{spec}:{self.v}>"
    def __lt__(self, other): return self.v < getattr(other, "v", other)
    def __eq__(self, other): return self.v == getattr(other, "v", other)
    def __hash__(self): return hash(self.v)
    def __reversed__(self): return iter([self.v, 0])
    def __repr__(self): return f"N{self.v}"

class CList(list):
    extra = 1
    def append(self, value): note("append", value); super().append(value)
    def __getitem__(self, k): return super().__getitem__(k) if k != 99 else 99

class CDict(dict):
    def __missing__(self, key): note("missing", key); return len(key)
    def __setitem__(self, key, value): super().__setitem__(key, value * 2)

class CInt(int):
    def __add__(self, other): return CInt(int(self) + int(other) + 100)

class CStr(str):
    def shout(self): return self.upper() + "!"

class CError(ValueError):
    def __init__(self, code, *rest):
        super().__init__(code, *rest)
        self.code = code

class CCountdown:
    def __init__(self, n): self.n = n
    def __iter__(self): return self
    def __next__(self):
        if self.n <= 0:
            raise StopIteration(self.n)
        self.n -= 1
        return self.n

class CAwait:
    def __init__(self, v): self.v = v
    def __await__(self):
        got = yield self.v
        return (got or 0) + self.v

class CAsync:
    def __init__(self, n): self.n = n
    async def __aenter__(self): note("aenter"); return self.n
    async def __aexit__(self, kind, value, trace):
        note("aexit", kind.__name__ if kind else None)
        return kind is KeyError
    def __aiter__(self): return self
    async def __anext__(self):
        if self.n <= 0:
            raise StopAsyncIteration
        self.n -= 1
        return self.n

class CGuard(contextlib.ContextDecorator):
    def __init__(self, fail=""): self.fail = fail
    def __enter__(self):
        note("guard in")
        if self.fail == "enter":
            raise CError(1, "enter")
        return self
    def __exit__(self, *what):
        note("guard out", what[0].__name__ if what[0] else None)
        if self.fail == "exit":
            raise CError(2, "exit")
        return self.fail == "swallow"

# -- functions

def drive(coroutine, *sent):
    """Runs a coroutine by hand; what it yielded and returned."""
    seen, todo = [], list(sent)
    try:
        while True:
            seen.append(coroutine.send(todo.pop(0) if todo and seen else None))
            if len(seen) > 9:
                coroutine.close()
                return seen
    except StopIteration as end:
        return [*seen, end.value]

def logged(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        note("call", fn.__name__, len(args), sorted(kwargs))
        return fn(*args, **kwargs)
    wrapper.calls = 0
    return wrapper

def counted(start=0):
    total = start
    def bump(by=1):
        nonlocal total
        total += by
        return total
    return bump

class CText(str): pass

class CRow(tuple): pass

class CWhole(int):
    def __radd__(self, other): return ("radd", other)
    def __eq__(self, other): return "eq"
    __hash__ = int.__hash__

class CMissing(dict):
    def __missing__(self, key): return ("missing", key)
    def __getitem__(self, key): return super().__getitem__(key)

class CByNumber:
    def __init__(self, count): self.count = count
    def __getitem__(self, index):
        if index >= self.count:
            raise IndexError(index)
        return index * 2

@logged
def wrapped(t, scale=2): return t * scale

@functools.lru_cache(maxsize=None)
def cached(n): return n * 3 if n < 2 else cached(n - 1) + 1

@functools.singledispatch
def shown(value): return "thing"

@shown.register
def _(value: int): return f"int {value}"

@shown.register(list)
def _(value): return f"list {len(value)}"

def strict(a, /, b, *, c=3): return a + b * c

def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)

def walk(tree): return tree if isinstance(tree, int) else sum(walk(t) for t in tree)

def endless(start):
    while True:
        got = yield start
        start = start + (got or 1)

def delegating(n):
    result = yield from counting(n)
    note("result", result)
    return result

def counting(n):
    try:
        for i in range(n):
            yield i
    finally:
        note("counted")
    return n * 10

class CTwice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        return x * x * k
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2 * x * ctx.k, None

# -- modules

class CBlock(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([0.5, 1.0, -1.5]))
        self.register_buffer("seen", torch.zeros(3))
        self.scale = scale
    def forward(self, x, shift=None):
        self.seen += 1
        out = x * self.weight * self.scale
        return out if shift is None else out + shift

class CNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([CBlock(1), CBlock(2)])
        self.table = nn.ModuleDict({"a": CBlock(3)})
        self.linear = nn.Linear(3, 3)
        with torch.no_grad():
            self.linear.weight.copy_(torch.eye(3)); self.linear.bias.fill_(0.25)
        self.calls = 0
    def forward(self, x, mode="all"):
        self.calls += 1
        for i, block in enumerate(self.blocks):
            x = block(x) if mode != "odd" or i % 2 else x
        if self.training:
            x = x * torch.bernoulli(torch.full((3,), 0.5))[: x.shape[0]]
        return self.linear(x.reshape(-1)[:3]) if mode == "all" else self.table["a"](x)

G_net = CNet()
G_point = CPoint(4, [1])
G_both = CBoth()
G_counter = counted(5)
G_queue = collections.deque([1, 2, 3], maxlen=4)
G_made = CMade(6)
G_clist = CList([1, 2])
G_cdict = CDict(a=1)
'''

# What ``change`` may do to the above.
CHANGES = (
    "G_net.register_forward_hook(lambda m, a, out: out + 1)", "G_net.blocks[0].register_forward_pre_hook(lambda m, a: (a[0] * 2,))",
    "G_net.eval()", "G_net.blocks.append(CBlock(4))", "G_net.blocks[0].scale = 5", "G_net.blocks[1] = CBlock(0.5)",
    "G_net.linear.bias.data.zero_()", "G_net.linear.weight.requires_grad_(False)", "G_net.blocks[1].weight = G_net.blocks[0].weight",
    "CBlock.forward = lambda self, x, shift=None: x - self.weight", "G_net.forward = lambda x, mode='all': x * 3",
    "del G_net.table['a']", "G_net.blocks[0].seen = torch.ones(3)", "G_net.double()", "G_net.blocks[0].register_full_backward_hook(lambda m, i, o: None)",
    "CBoth.__bases__ = (CRight, CLeft)", "CLeft.who = CRight.who", "CLeft.field = 9", "del CLeft.field", "CNamed.__get__ = lambda s, o, t=None: 50",
    "G_both.who = lambda n: -n", "G_both.__class__ = CRight", "CMeta.__len__ = lambda cls: 40", "CMeta.virtual = 12", "CMade.virtual = 13",
    "G_point.x = 9", "G_point.y = torch.ones(3)", "G_point.tags.append('t')", "CPoint.size = 3", "CPoint.__eq__ = lambda s, o: True",
    "G_counter.__closure__[1].cell_contents = 70", "G_counter.__defaults__ = (10,)", "strict.__kwdefaults__ = {'c': 8}",
    "fib.__code__ = (lambda n: n * 7).__code__", "wrapped.__wrapped__.__defaults__ = (9,)", "globals().__setitem__('fib', lambda n: 99)",
    "globals().__setitem__('wrapped', strict)", "cached.cache_clear()", "shown.register(str, lambda v: 'str')", "G_queue.appendleft(8)",
    "G_queue.rotate(1)", "CList.extra = 6", "CDict.__missing__ = lambda s, k: -1", "G_cdict.setdefault('q', 4)", "G_clist.append(3)",
    "CInt.__add__ = lambda s, o: 1", "CStr.shout = lambda s: 'no'", "CCountdown.__next__ = lambda s: (_ for _ in ()).throw(StopIteration)",
    "CGuard.__exit__ = lambda s, *w: True", "CError.code = property(lambda s: 3)",
    "CTwice.forward = staticmethod(lambda ctx, x, k: (ctx.save_for_backward(x), setattr(ctx, 'k', k), x * 5)[2])",
    "torch.set_default_dtype(torch.float64)", "CColor.RED._value_ = 5", "CRegistered.known.clear()", "CWatched.value = property(lambda s: 3)",
)
