"""functools, itertools, collections, operator, math."""

import collections
import functools
import itertools
import math
import operator
import random

import sympy
import torch

from .differential import differential


class Cell:
    def __init__(self, x):
        self.x, self.computed = x, 0

    @functools.cached_property
    def area(self):
        self.computed += 1
        return self.x * 2

    def power(self, n, base=1):
        return self.x**n + base

    square = functools.partialmethod(power, 2, base=0)


@functools.singledispatch
def describe(value):
    return "other"


@describe.register
def _(value: int):
    return f"int {value}"


@describe.register(list)
def _(value):
    return [describe(v) for v in value]


@functools.lru_cache(maxsize=None)
def cached(n):
    return n * 2


@differential()
def test_functools(x):
    f = functools.reduce(lambda a, b: a * 2 + b, [1, 2, 3], x)
    g = functools.reduce(operator.mul, [2, 3])
    p = functools.partial(torch.add, alpha=2)
    key = functools.cmp_to_key(lambda a, b: b - a)
    return f, g, p(x, x), sorted([1, 3, 2], key=key), p.keywords, p.func is torch.add


@differential()
def test_cached_property_and_partialmethod(x):
    c = Cell(x)
    return c.area, c.area is c.area, c.computed, c.square(), "area" in vars(c)


@differential()
def test_singledispatch_and_lru_cache(x):
    return describe(3), describe([1, "a"]), describe(x), cached(4), cached(4)


@differential()
def test_itertools(x):
    return (
        list(itertools.chain([1], (2, 3), [x])),
        list(itertools.islice(itertools.count(5, 2), 3)),
        list(itertools.product("ab", [1, 2])),
        list(itertools.combinations([1, 2, 3], 2)),
        list(itertools.permutations("abc", 2))[:3],
        list(itertools.accumulate([1, 2, 3])),
        list(itertools.zip_longest([1], [2, 3], fillvalue=0)),
        list(itertools.starmap(lambda a, b: a * b, [(1, 2), (3, 4)])),
        list(itertools.dropwhile(lambda v: v < 2, [1, 2, 1])),
        list(itertools.compress("abc", [1, 0, 1])),
        list(itertools.pairwise([1, 2, 3])),
        list(itertools.repeat(x, 2)),
        list(itertools.chain.from_iterable([[1], [2]])),
        [(k, list(g)) for k, g in itertools.groupby([1, 1, 2, 1])],
    )


@differential()
def test_itertools_are_lazy(x):
    log = []

    def note(v):
        log.append(v)
        return x * v

    m = map(note, itertools.cycle([1, 2]))
    a = [next(m) for _ in range(3)]
    t1, t2 = itertools.tee([1, 2])
    return a, log, next(t1), list(t2), list(t1)


@differential(lambda: (torch.ones(2), collections.OrderedDict(a=1, b=2)))
def test_ordered_dict(x, d):
    d.move_to_end("a")
    d["c"] = x
    first = d.popitem(last=False)
    return first, list(d), d == collections.OrderedDict(d), d["c"] + 1


@differential(lambda: (torch.ones(2), collections.defaultdict(list, k=[1])))
def test_defaultdict(x, d):
    d["new"].append(x)
    d["k"].append(2)
    e = collections.defaultdict(int)
    for c in "abca":
        e[c] += 1
    return len(d["other"]), e, d.get("zz"), d["new"][0] + 1


@differential(lambda: (torch.ones(2), collections.deque([1, 2, 3], maxlen=3)))
def test_deque(x, d):
    d.append(x)
    d.appendleft(0)
    d.rotate(1)
    last = d.pop()
    return list(d), last, len(d), d[0], d.maxlen


@differential()
def test_counter_and_chainmap(x):
    c = collections.Counter("abca")
    c.update("ad")
    m = collections.ChainMap({"a": 1}, {"a": 2, "b": 3})
    m["z"] = 0
    return c["a"], c.most_common(1), c["missing"], m["a"], m["b"], dict(m), x * c["a"]


THIRD, SHAPE, TOTAL = operator.itemgetter(2), operator.attrgetter("T.shape", "ndim"), operator.methodcaller("sum", 0)


@differential(graphs=1)
def test_getters(x):
    by_key = sorted([(1, "b"), (2, "a")], key=operator.itemgetter(1))
    made = operator.attrgetter("T.shape"), operator.methodcaller("mul", x)
    return x + 1, by_key, list(map(THIRD, ["abc", [1, 2, x]])), SHAPE(x), TOTAL(x), made[0](x), made[1](x), made, type(made[1]).__name__


@differential()
def test_errors_of_getters(x):
    told = []
    for wrong in (lambda: operator.itemgetter(), lambda: operator.itemgetter(a=1), lambda: operator.attrgetter(3),
                  lambda: operator.methodcaller(), lambda: operator.itemgetter(1)([0]), lambda: operator.itemgetter(1)(x, x),
                  lambda: operator.attrgetter("a.b")(x)):
        try:
            wrong()
        except (TypeError, IndexError, AttributeError) as error:
            told.append((type(error).__name__, str(error)))
    return x + 1, told


@differential()
def test_operator(x):
    get = operator.itemgetter(1, 0)
    attr = operator.attrgetter("ndim")
    call = operator.methodcaller("sum", 0)
    d = {}
    operator.setitem(d, "k", x)
    return (
        get([1, 2]),
        attr(x),
        call(x),
        operator.add(x, 1),
        operator.matmul(x, x),
        operator.contains([1], 1),
        operator.index(3),
        operator.truth([]),
        operator.is_not(x, None),
        operator.iadd([1], [2]),
        operator.length_hint([1, 2]),
        d,
    )


@differential(graphs=1)
def test_math(x):
    n = x.shape[0]
    return (
        x / math.sqrt(n),
        math.prod([1, 2, 3]),
        math.ceil(n / 2),
        math.floor(2.7),
        math.isclose(0.1 + 0.2, 0.3),
        math.gcd(12, 18),
        math.pi,
        math.isnan(math.nan),
        math.log(8, 2),
        math.hypot(3, 4),
        math.comb(5, 2),
        math.copysign(1, -0.0),
    )


@differential()
def test_math_errors(x):
    try:
        math.sqrt(-1)
    except ValueError as error:
        return x, str(error)


@differential()
def test_random(x):
    a = random.random()
    b = random.randint(1, 10)
    items = [1, 2, 3, 4]
    random.shuffle(items)
    return x * a + b, items, random.choice("abc")


@differential(graphs=1)
def test_builtins(x):
    return (
        abs(-3),
        pow(2, 5, 7),
        sorted("bca"),
        list(reversed([1, 2])),
        dict(zip("ab", range(2))),
        tuple(enumerate("ab", 1)),
        isinstance(3, int),
        hash("a") == hash("a"),
        list(range(5, 0, -2)),
        x + sum([1, 2], 10),
        slice(1, 2, None),
        all([]),
        callable(len),
    )


@differential(build=True)
def test_what_a_function_with_a_cache_does():
    """Its body runs where eager mode runs it, and again when the cache has been cleared."""
    worked: list = []

    @functools.lru_cache(maxsize=4)
    def noted(n, log=None, *, k=1):
        worked.append(n)
        return n * k

    @functools.lru_cache(typed=True)
    def tensor(n):
        return torch.arange(n) + 1.0

    @functools.lru_cache(maxsize=None)
    def recursive(n):
        return n if n < 2 else recursive(n - 1) + 1

    def run(x):
        worked.append("before")
        y = x * noted(2, k=3) + noted(2, k=3)
        worked.append("between")
        unused = noted(5)  # noqa: F841 - it is called all the same
        recursive(6)
        sizes = noted.cache_info().currsize, recursive.cache_info().currsize
        if len(worked) % 2:
            noted.cache_clear()
            recursive.cache_clear()
        return y, list(worked), sizes, tensor(3) + y[0], tensor(3.0) is tensor(3.0)

    return run


class Scales:
    @functools.lru_cache(maxsize=None)  # noqa: B019
    def scale(self, n):
        print("asked", n)
        return n * 2


SCALES = Scales()


@differential(lambda: (torch.ones(2),))
def test_method_with_a_cache(x):
    return x * SCALES.scale(3) + SCALES.scale(3)


@differential(lambda: (torch.ones(2), 3))
def test_symbolic_mathematics(x, n):
    t = sympy.Symbol("t")
    return x * float(sympy.diff(t**n, t).subs(t, sympy.Rational(1, 2))) + sympy.binomial(5, 2)


@differential(graphs=1)
def test_class_methods_of_numbers_and_texts(x):
    return (x + 1, bool.from_bytes(b"a", "big"), int.from_bytes(b"\xff", byteorder="big", signed=True), float.fromhex("0x1p3"),
            bytes.fromhex("ff"), str.maketrans("a", "b"))


@differential(graphs=1)
def test_what_a_partial_has(x):
    p = functools.partial(torch.add, other=x)
    has = [hasattr(p, name) for name in ("func", "args", "__dict__", "__doc__", "__module__", "__reduce__", "__lt__", "__name__", "other")]
    return p(x), has, p.__doc__, p.__module__, p.__getattribute__("func"), hasattr(PART, "__dict__"), hasattr(PART, "other")


PART = functools.partial(torch.add, alpha=2)


@differential(graphs=1)
def test_length_hints(x):
    hint = operator.length_hint
    return x + hint([x]), hint((1, 2)), hint({1: 2}), hint({1}), hint(range(4)), hint("abc"), hint(5, 3), hint(5)


class Hooked:
    @classmethod
    def __subclasshook__(cls, other):
        return super().__subclasshook__(other)


@differential(graphs=1)
def test_hook_of_subclasses(x):
    return x + 1, Hooked.__subclasshook__(int), Hooked().__subclasshook__(int)
