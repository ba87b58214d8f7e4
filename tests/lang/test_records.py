"""dataclasses, namedtuples, enums, SimpleNamespace, TypedDict-like plain things."""

import collections
import copy
import dataclasses
import enum
import reprlib
import types
import typing

import torch

from .differential import differential


@dataclasses.dataclass
class Config:
    width: int
    scale: float = 2.0
    tags: list = dataclasses.field(default_factory=list)

    def __post_init__(self):
        self.area = self.width * 2


@dataclasses.dataclass(frozen=True, order=True)
class Key:
    a: int
    b: str = "b"


@dataclasses.dataclass
class Child(Config):
    extra: torch.Tensor | None = None


Pair = collections.namedtuple("Pair", ["left", "right"], defaults=[5])


class Out(typing.NamedTuple):
    loss: torch.Tensor
    n: int = 0

    def doubled(self):
        return self.loss * 2


class Mode(enum.Enum):
    FAST = "fast"
    SLOW = "slow"

    @property
    def factor(self):
        return 1 if self is Mode.FAST else 3


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 5


class Bits(enum.Flag):
    A = enum.auto()
    B = enum.auto()


@differential(lambda: (torch.ones(2), Config(3)))
def test_dataclass_argument(x, config):
    config.width += 1
    config.tags.append("seen")
    return x * config.width * config.scale, config.area


@differential()
def test_dataclass_built(x):
    a = Config(2)
    b = Config(2, tags=[1])
    c = Child(1, extra=x)
    return a, a == Config(2), a.tags is b.tags, c.extra + c.width, repr(a), a != b


@differential()
def test_dataclass_functions(x):
    c = Config(2)
    d = dataclasses.replace(c, width=5)
    names = [f.name for f in dataclasses.fields(c)]
    return d, names, dataclasses.asdict(c), dataclasses.is_dataclass(c), x * d.width


@differential()
def test_frozen_dataclass(x):
    k = Key(1)
    try:
        k.a = 2
    except dataclasses.FrozenInstanceError as error:
        return x, str(error), k < Key(2), hash(k) == hash(Key(1)), {k: x}[Key(1)]


@differential(lambda: (torch.ones(2), Pair(1, torch.zeros(2))))
def test_namedtuple(x, p):
    left, right = p
    q = Pair(x)
    r = q._replace(right=p.right)
    return r, q.right, p._fields, p[0], len(p), r._asdict(), isinstance(p, tuple), right + left, p.left


@differential()
def test_typed_namedtuple(x):
    out = Out(x, n=3)
    return out, out.doubled(), out.n, Out(x)[1], out == out


@differential(lambda: (torch.ones(2), Mode.SLOW))
def test_enum(x, mode):
    if mode is Mode.SLOW:
        x = x * mode.factor
    return x, mode.value, mode.name, Mode("fast"), Mode["SLOW"] is mode, [m.name for m in Mode], mode == Mode.FAST


@differential()
def test_int_enum_and_flag(x):
    both = Bits.A | Bits.B
    return x * Level.HIGH, Level.LOW < 3, Level(5), Bits.A in both, Level.LOW + 1, {Mode.FAST: x}[Mode.FAST]


@differential()
def test_enum_error(x):
    return x + 1, Mode("none")


@differential(lambda: (torch.ones(2), types.SimpleNamespace(a=1, b=[2])))
def test_simple_namespace(x, ns):
    ns.c = x * ns.a
    ns.a = "changed"
    return types.SimpleNamespace(d=ns.b), ns.c + 1


@differential(lambda: (torch.ones(2), {"a": [torch.ones(1)], "k": Key(1)}))
def test_copy(x, d):
    shallow, deep = copy.copy(d), copy.deepcopy(d)
    shallow["a"].append(1)
    return len(deep["a"]), shallow["a"] is d["a"], deep["a"][0] is d["a"][0], deep["a"][0] + x


@differential(lambda: (torch.ones(2), Config(3)))
def test_match_statement(x, config):
    out = []
    for value in (1, "s", [1, 2, 3], {"k": 5, "r": 6}, config, Pair(1, 2), None, (1, x)):
        match value:
            case int(n) if n > 0:
                out.append(("int", n))
            case str():
                out.append("str")
            case {"k": k, **rest}:
                out.append((k, rest))
            case Config(width=w):
                out.append(("config", w))
            case Pair(left=a, right=b):
                out.append((a, b))
            case [first, *others]:
                out.append((first, len(others)))
            case None | True:
                out.append("none")
            case _:
                out.append("other")
    return out, x + 1


@differential()
def test_deep_copies_keep_what_is_shared(x):
    t, s = ([1],), {1, 2}
    circular: tuple = ([],)
    circular[0].append(circular)
    deep = copy.deepcopy([t, t, s, s])
    made = copy.deepcopy(circular)
    return deep, deep[0] is deep[1], deep[2] is deep[3], made[0][0] is made, made is circular, x + 1


@dataclasses.dataclass
class Shown:
    a: int = 3
    b: object = None


@differential(lambda: (torch.ones(2), Shown(1, [Shown(2)])))
def test_dataclasses_as_text(x, outside):
    around = Shown(7)
    around.b = [around]
    return x + 1, f"{Shown()}", repr(Shown(4, Shown(5))), str([outside]), repr(around), outside


class Recursive:
    def __init__(self, inner):
        self.inner = inner

    @reprlib.recursive_repr("<again>")
    def __repr__(self):
        return f"R({self.inner})"


@differential(lambda: (torch.ones(2),))
def test_recursive_text(x):
    around = Recursive(None)
    around.inner = around
    return x + 1, repr(Recursive(Recursive(1))), repr(around)
