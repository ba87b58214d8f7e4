"""Programs of the kinds that users write against a tracer: descriptors, partials, views of dicts, deques, checks, metadata of functions."""

import collections
import functools
import itertools
import math
import os.path
import threading
import types
import typing

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import framegraft

from .differential import differential

T = typing.TypeVar("T")


@differential(lambda: (torch.ones(3),), calls=3)
def test_iterators_of_constants_are_new_each_time(x):
    numbers, letters, pair, down = range(3).__iter__(), "ab".__iter__(), (1, 2).__iter__(), range(4).__reversed__()
    return x + next(numbers) * 100, next(letters), next(pair), next(down), list(zip())


def scaled(x, y, *, k=1):
    return x * y + k


SCALED = functools.partial(scaled, k=3)


@differential(lambda: (torch.ones(2),))
def test_partials_of_partials_are_flat(x):
    inner = functools.partial(SCALED, x)
    nested = functools.partial(functools.partial(scaled, x), 2, k=5)
    inner.tag = 3
    outer = functools.partial(inner, 3)
    return inner.func is scaled, inner.args, inner.keywords, nested(), outer(), outer.func is inner, inner.tag


class Scaler:
    def times(self, x, k):
        return x * k

    thrice = functools.partialmethod(times, k=3)

    @functools.cached_property
    def factor(self):
        return 4.0


@differential(lambda: (Scaler(), torch.ones(2)))
def test_partial_methods_and_cached_properties(scaler, x):
    return scaler.thrice(x) * scaler.factor + scaler.factor, vars(scaler)


@differential(lambda: ({"a": 1, "b": 2}, {"b": 2, "c": 3}, torch.ones(2)))
def test_views_of_dicts_as_sets(a, b, x):
    return (x, a.keys() & b.keys(), a.keys() | {"q"}, a.keys() - b, b.keys() ^ a.keys(), {"a"} & a.keys(), a.keys() <= b.keys(),
            a.keys() == {"a", "b"}, a.items() == b.items(), a.items() & b.items(), a.keys().isdisjoint(b), a.items() >= {("a", 1)},
            {1} | b.keys(), dict.fromkeys([1, 2], x))


@differential(lambda: (collections.deque([torch.ones(2)]), collections.deque([1, 2, 3], maxlen=3), torch.ones(2)))
def test_deques(tensors, numbers, x):
    tensors.append(x)
    tensors.appendleft(1)
    first = tensors.popleft()
    tensors.extend([x + 1, 2])
    tensors.extendleft((7, 8))
    tensors.rotate(2)
    numbers.append(5)
    numbers[0] = 9
    short = numbers.copy()
    short.clear()
    try:
        short.pop()
    except IndexError as error:
        text = str(error)
    return (first, tensors[-1], numbers, numbers.maxlen, text, len(tensors), 5 in numbers, list(reversed(numbers)), numbers + numbers,
            numbers == collections.deque([9, 3, 5]), numbers.count(5), bool(short), numbers * 2, collections.Counter("abca"))


@differential(lambda: (torch.ones(2),))
def test_a_deque_that_changes_while_it_is_iterated(x):
    numbers = collections.deque([1, 2])
    try:
        for number in numbers:
            numbers.append(number)
    except RuntimeError as error:
        return x + 1, str(error), numbers
    return None


@differential(lambda: (torch.ones(3, 4),))
def test_failing_checks_raise(x):
    notes = []
    for check in (torch._check, torch._check_value, torch._check_index, torch._check_type):
        try:
            check(x.shape[0] == 4, lambda: f"{x.shape[0]} is not 4")
        except (RuntimeError, ValueError, IndexError, TypeError) as error:
            notes.append((type(error), str(error)))
    torch._check(x.shape[1] == 3)
    return notes


@differential(lambda: (torch.ones(2),))
def test_metadata_of_functions(x):
    def made(a: int, *, k=2) -> float:
        return a

    made.__name__ = "renamed"
    made.__qualname__ = "other.renamed"
    made.__doc__ = "text"
    made.__annotations__["z"] = str
    return made.__name__, made.__qualname__, made.__doc__, made.__annotations__, made.__kwdefaults__, x + 1


class Generic(typing.Generic[T]):
    pass


class Own:
    def __class_getitem__(cls, key):
        return cls, key


@differential(lambda: (torch.ones(2),))
def test_generic_types(x):
    return (x + 1, typing.List[int], typing.Dict[str, typing.List[T]], Generic[int], Own[3],  # noqa: UP006
            typing.Callable[[int], str], len((list[Generic], torch.Tensor | list[int])))


@differential(lambda: (torch.ones(2), torch.zeros(2, 2)))
def test_descriptors_called_by_hand(x, y):
    maximum = torch.return_types.max((x, y))
    return torch.Tensor.shape.__get__(x), maximum.indices, torch.Tensor.shape.__get__(y)


BOXES = [1], {}


@differential(lambda: (torch.ones(2),))
def test_attributes_kept_by_code_in_c(x):
    local = threading.local()
    try:
        local.v = x.shape[0]
    except AttributeError:
        return None
    return x + 1, local.v


@differential(lambda: (torch.ones(2),))
def test_small_library_functions(x):
    memo = {id(BOXES): 1}
    return (x, ",".join(str(i) for i in range(3)), "-".join(["a", "b"]), slice(1, 9, 2).indices(5), math.dist([1, 2], [3, 4]),
            math.fsum([0.1] * 10), os.path.join("a", "b"), id(BOXES) in memo, list(itertools.chain([1], (2,))))


class Worded(Exception):
    def __str__(self):
        return f"worded {self.args}"


@differential(lambda: (torch.ones(2),))
def test_texts_of_exceptions_and_containers(x):
    notes = []
    for error in (KeyError("a"), ValueError(1, "b"), ValueError(), AttributeError("m"), Worded("q", 3), IndexError([1, {"a": (2,)}])):
        try:
            raise error
        except Exception as caught:
            notes.append((str(caught), repr(caught), f"{caught}", f"{caught!r}"))
    return x + 1, notes, str({"a": [1], "b": None}), repr(((1, x.shape), []))


@differential(lambda: (torch.ones(2),))
def test_import_of_a_name_that_is_not_there(x):
    try:
        from os import nothing_of_that_name  # noqa: PLC0415
    except ImportError as error:
        return x + 1, error.name
    return nothing_of_that_name


@differential(lambda: (torch.ones(1, 2, 4, 8), SDPBackend.MATH))
def test_kernels_of_attention(q, backend):
    with sdpa_kernel(backend):
        one = torch.nn.functional.scaled_dot_product_attention(q, q, q)
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]):
        return one, torch.nn.functional.scaled_dot_product_attention(q, q, q), torch.backends.cuda.math_sdp_enabled()


@differential(lambda: (torch.ones(2), {"q", "w"}))
def test_sets_keep_their_order(x, outside):
    s = {1, 2, 3, 100, 50}
    s.discard(2)
    s |= {7, 8}
    t = s - {1}
    letters = set()
    for c in "hello world":
        letters.add(c)
    letters.remove("h")
    letters.add("z")
    first = letters.pop()
    outside.add("e")
    outside.discard("q")
    return (x, list(s), list(t), list(t & {7, 100, 50}), sorted(s ^ {1, 99}), list(letters), first, letters, s, {int, str}, list(s.union([9], {10: 1})),
            list({"a": 1, "b": 2}.keys() | {"c"}), hash((1, "a")) == hash((1, "a")), frozenset([3, 1]) | {2})


@differential(lambda: (torch.ones(2), {1, 2, 3}))
def test_errors_of_sets_and_dicts(x, s):
    notes = []
    s.remove(2)
    for act in (lambda: s.remove(9), lambda: set().pop(), lambda: {}.update([1]), lambda: dict([(1, 2, 3)]), lambda: {}.pop(1)):
        try:
            act()
        except (KeyError, TypeError, ValueError) as error:
            notes.append(repr(error))
    return x + 1, notes


@differential(lambda: (torch.ones(2),))
def test_iterators_of_itertools(x):
    one, other = itertools.tee(iter([1, 2, 3]))
    numbers = iter([1, 2, 0, 3])
    return (x, [(k, list(g)) for k, g in itertools.groupby("aabbc")], [k for k, _ in itertools.groupby([1, 3, 2, 4, 5], key=lambda v: v % 2)],
            next(one), list(other), list(one), list(itertools.zip_longest([1, 2], (i for i in [3]), fillvalue=x)),
            list(itertools.compress("abc", [1, 0, 1])), list(iter(lambda: next(numbers), 0)), next(itertools.count(1.5, 0.5)),
            [1, 2, 3, 2].index(2, 2), (1, 2, 1).index(1, -1), list(reversed({"a": 1, "b": 2}.items())))


@differential(lambda: (torch.ones(2),))
def test_groups_that_are_not_read_to_their_end(x):
    groups = itertools.groupby([1, 1, 2, 2, 3])
    _, ones = next(groups)
    first = next(ones)
    key, twos = next(groups)
    return x, first, list(ones), key, list(twos), [(k, list(g)) for k, g in groups]


@differential(lambda: (torch.ones(2),))
def test_groups_are_no_generators(x):
    made, kept = [], []
    for key, group in itertools.groupby([1, 1, 2]):
        made.append((type(group).__name__, key, hasattr(group, "send"), iter(group) is group, list(group)))
        kept.append(group)
    return x * len(made), made, [list(group) for group in kept], [next(group, None) for group in kept]


@differential(lambda: (torch.ones(2),))
def test_ordered_dicts_in_another_order(x):
    d = collections.OrderedDict(a=1, b=2, c=x)
    d.move_to_end("a")
    d.move_to_end("c", last=False)
    pair = d.popitem(last=False)
    return pair, d.popitem(), d


class Asks(type):
    def __instancecheck__(cls, obj):
        return hasattr(obj, "tag")

    def __subclasscheck__(cls, other):
        return other is int


class Asked(metaclass=Asks):
    pass


class Once(type):
    made = {}

    def __call__(cls, *args):
        if cls not in Once.made:
            Once.made[cls] = super().__call__(*args)
        return Once.made[cls]


class Single(metaclass=Once):
    def __init__(self):
        self.k = 2


class Sequence:
    def __len__(self):
        return 3

    def __getitem__(self, index):
        return index * 2


class Managed:
    @property
    def v(self):
        return self.kept

    @v.setter
    def v(self, value):
        self.kept = value

    @v.deleter
    def v(self):
        del self.kept


@differential(lambda: (torch.ones(2), Scaler()))
def test_what_metaclasses_and_descriptors_do(x, scaler):
    scaler.tag = 1
    managed, space = Managed(), types.SimpleNamespace(a=1)
    managed.v = x
    del managed.v
    return (isinstance(scaler, Asked), issubclass(int, Asked), issubclass(str, Asked), x * Single().k, list(reversed(Sequence())),
            hasattr(managed, "v"), vars(space), space, x.dtype is torch.ones(1).dtype)


@differential(lambda: (torch.ones(2),))
def test_sets_that_a_break_interrupts(x):
    s = {3, 1, 2, 100}
    s.discard(1)
    s.add(50)
    framegraft.graph_break()
    s |= {7}
    return x, list(s), s


def test_a_partial_that_has_a_dict_is_not_taken_apart():
    def fn(inner, x):
        return functools.partial(inner, x).keywords

    captured = framegraft.compile(fn, backend="eager")
    bare, looked_at = functools.partial(scaled, k=2), functools.partial(scaled, k=2)
    assert not vars(looked_at)
    for inner in (bare, looked_at, bare):
        assert captured(inner, torch.ones(2)) == fn(inner, torch.ones(2)) == ({} if inner is looked_at else {"k": 2})


@differential(lambda: (functools.partial(max, 1), torch.ones(2)), graphs=1)
def test_names_that_partials_have_not(given, x):
    made = functools.partial(scaled, x)
    return (made(2), hasattr(made, "__name__"), getattr(made, "__name__", type(made).__name__), hasattr(given, "__qualname__"),
            getattr(given, "__name__", "none"), hasattr(given, "func"))
