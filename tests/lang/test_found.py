"""Small programs that once differed from eager mode: what the fuzzer found, shrunk."""

import collections.abc
import contextlib
import itertools
import math
import operator
import sys
import typing

import pytest
import torch

import framegraft

from .differential import differential


@contextlib.contextmanager
def managing(tensor):
    yield tensor + 1


class Point:
    def __init__(self, a):
        self.a = a


class NoText:
    def __repr__(self):
        return None


def leaving(n, notes):
    try:
        yield n
        yield n + 1
    finally:
        notes.append("closed")


def starts(n, notes):
    started = leaving(n, notes)
    next(started)


@differential(lambda: (torch.ones(3), []))
def test_generator_closed_when_it_dies(x, notes):
    starts(2, notes)
    notes.append("after")
    return x + 1


@differential(lambda: (Point(torch.ones(3)),))
def test_positional_pattern_without_match_args(point):
    match point:
        case Point(a):
            return a


@differential(lambda: (torch.ones(3),))
def test_error_through_a_with_block(x):
    with managing(x) as y:
        if y.dim() == 1:
            raise AssertionError("message")


@differential(lambda: (torch.ones(3), 3))
def test_error_in_two_with_blocks(x, n):
    with managing(x), contextlib.suppress(KeyError):
        del n
        assert isinstance([x], torch.Tensor), f"{x.dim()}"
    return x


@differential(lambda: (torch.ones(3),))
def test_traceback_of_caught_error_is_no_attribute(x):
    try:
        with managing(x):
            raise AssertionError
    finally:
        x = x + 1


@differential(lambda: (NoText(), 1))
def test_repr_that_gives_no_string(value, n):
    raise ValueError(repr(value))


@differential(lambda: ((1, 2), [3]))
def test_words_of_operand_errors(pair, items):
    texts = []
    for fn, a, b in ((operator.add, pair, items), (operator.mul, items, 1.5), (operator.add, items, pair), (operator.iadd, pair, items),
                     (operator.or_, {1}, items), (operator.ior, {1}, items), (operator.isub, {}, {}), (operator.add, None, items)):
        try:
            fn(a, b)
        except TypeError as error:
            texts.append(str(error))
    return texts


@differential(lambda: ([1, 2, 3],))
def test_chain_that_leaves(items):
    return itertools.chain(items, [4]), itertools.count(2), itertools.islice(items, 2), itertools.cycle(items)


@differential(lambda: ([1, 2, 3], []))
def test_itertools_draw_when_asked(items, notes):
    def noting():
        for item in items:
            notes.append(item)
            yield item

    chained = itertools.chain(noting(), noting())
    first = next(chained)
    notes.append("first")
    sums = list(itertools.islice(itertools.accumulate(noting()), 2))
    notes.append("sums")
    taken = list(itertools.takewhile(lambda v: v < 2, noting()))
    rest = list(itertools.dropwhile(lambda v: v < 2, noting()))
    pairs = list(itertools.pairwise(noting()))
    return first, sums, taken, rest, pairs, list(zip(itertools.cycle([7, 8]), range(5), strict=False)), list(chained)


@differential(lambda: (2,))
def test_value_sent_to_a_new_generator(n):
    def numbers():
        yield n

    numbers().send(3)


@differential(lambda: (torch.ones(3),))
def test_issubclass_of_no_class(x):
    issubclass(int, 3)


class Peculiar(ValueError):
    @property
    def text(self):
        return f"<{self.args}>"

    def __getattr__(self, name):
        return name * 2

    def __setattr__(self, name, value):
        super().__setattr__(name, [value])


@differential(lambda: (torch.ones(3),))
def test_attributes_of_exceptions(x):
    error = Peculiar(1, 2)
    error.extra = 4
    seen = [error.text, error.ab, error.extra, error.__cause__, error.__suppress_context__, error.__context__]
    try:
        raise error from KeyError("k")
    except ValueError as caught:
        seen += [caught is error, caught.__cause__, caught.__suppress_context__, caught.__traceback__ is None]
    return seen, error


@differential(lambda: (torch.ones(3),))
def test_stop_iteration_keeps_its_value(x):
    return StopIteration(5), OSError(2, "no"), KeyError("k")


@differential(lambda: ({1, 2, 3}, {2, 5}))
def test_sets_changed_in_place(a, b):
    a ^= b
    b &= {5, 7}
    a.difference_update([1])
    frozen = frozenset({1})
    frozen |= b
    return sorted(a), sorted(b), sorted(frozen)


class Sequence(collections.abc.Sequence):
    def __init__(self, *items):
        self.items = items

    def __getitem__(self, index):
        return self.items[index]

    def __len__(self):
        return len(self.items)


@differential(lambda: (torch.ones(3),), graphs=1)
def test_generator_whose_end_changes_nothing(x):
    for item in Sequence(1, 2, 3):  # a generator that waits inside of `try: ... except IndexError`
        x = x + item
        if item == 2:
            break
    return x


UNION, ITEMS = int | str, list[int]


@differential(lambda: (torch.ones(3),), graphs=1)
def test_parts_of_a_union(x):
    return x + len(typing.get_args(UNION)), UNION.__args__, ITEMS.__origin__


class Backwards(dict):
    def keys(self):
        return reversed(list(dict.keys(self)))

    __iter__ = keys


class Mapping:
    def keys(self):
        return ["a", "b"]

    def __getitem__(self, key):
        return key * 2


@differential(lambda: (Backwards(a=1, b=2), Mapping()))
def test_mappings_with_keys_of_their_own(d, m):
    return dict(d), {**d}, dict(**d), dict(m), {**m, "c": 1}, dict(m, b=5)


@differential(lambda: ({1: 2},))
def test_keyword_that_is_no_string(d):
    return dict(**d)


@differential(lambda: (1,))
def test_cause_that_is_no_exception(n):
    try:
        raise IndexError from n
    except TypeError as error:
        return str(error)


class NoExit:
    def __enter__(self):
        return 1


@differential(lambda: (NoExit(), 1))
def test_words_of_missing_exit(manager, n):
    texts = []
    for value in (manager, n):
        try:
            with value:
                pass
        except TypeError as error:
            texts.append(str(error))
    return texts


@differential(lambda: ({"a": 1, "b": 2}, {3, 4}, [5, 6]))
def test_types_of_iterators(d, s, items):
    made = [iter(d), iter(d.items()), iter(d.values()), iter(s), iter("ab"), iter("\xe9"), iter(b"a"), iter(range(3)), iter(()), iter(items),
            reversed(d), reversed(d.items()), reversed(items), reversed((1, 2)), reversed(range(4))]
    first = [next(i, None) for i in made]
    return first, [type(i).__name__ for i in made], made


@differential(lambda: ({"a": 1, "b": 2, "c": 3},))
def test_values_that_change_while_iterated(d):
    seen = []
    for key, value in d.items():
        seen.append((key, value))
        d["c"] = value * 10
    return seen, list(reversed(d.values()))


@differential(lambda: ({"a": 1, "b": 2},))
def test_view_of_a_dict_that_grows(d):
    for key, value in d.items():
        d[key + "x"] = value


@differential(lambda: (4,))
def test_wrong_arguments_of_builtins(n):
    texts = []
    for call in (lambda: [].append(), lambda: {}.get(), lambda: {1}.add(1, 2), lambda: len(), lambda: isinstance(1), lambda: getattr(n, 5),
                 lambda: int.__add__("a", 1), lambda: [].__len__(3), lambda: "abc".upper(1), lambda: [1] in "abc", lambda: dict(1, 2)):
        try:
            texts.append(call())
        except TypeError as error:
            texts.append(str(error).rpartition(".")[2])
    return texts, [].__eq__(1), (1).__eq__("a"), {}.__eq__([])


class Counted(dict):
    pass


@differential(lambda: (Counted(a=1), collections.OrderedDict(b=2), {1, 2}))
def test_views_of_subclasses(d, ordered, s):
    made = Counted(k=1)
    keys, values = made.keys(), made.values()
    made["l"] = 2
    s.__init__([7])
    return d.keys(), ordered.items(), type(ordered.items()).__name__, type(iter(ordered)).__name__, made, keys, values, s


@pytest.mark.parametrize("recursion", [1000])
def test_many_breaks_in_a_loop(recursion):
    def count(x):
        for _ in range(3000):
            x = x + 1
            framegraft.graph_break()
        return x

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(recursion)
    try:
        assert framegraft.compile(count, backend="eager")(torch.zeros(1)).item() == 3000
    finally:
        sys.setrecursionlimit(limit)


def own_names(w):
    del w
    return sorted(locals())


def names_of(w):
    v = w + 1
    return dict(locals())


@differential(lambda: (3,))
def test_callee_that_asks_for_its_locals(n):
    return own_names(n), names_of(n), (lambda a: locals())(n)


class Methods:
    __slots__ = ()
    total = 1

    def f(self):
        return 1

    def g(self):
        return 2


@differential(lambda: (Methods(), Methods(), slice(1, [2]), slice(1, [2])))
def test_methods_and_slices_compared(a, b, s, t):
    texts = []
    try:
        a.total = 2
    except AttributeError as error:
        texts.append(str(error))
    return a.f == a.f, a.f != a.f, a.f == b.f, a.f == a.g, [].append == [].append, s == t, s != t, texts


@differential(lambda: ({"a": 0},))
def test_duplicate_key_of_a_pattern(d):
    class Keys:
        KEY = "a"

    match d:
        case {Keys.KEY: y, "a": z}:
            return y, z


@differential(lambda: ([1, 2],))
def test_exhausted_iterator_of_a_list_that_grows(items):
    iterator = iter(items)
    first = list(iterator)
    items.append(3)
    return first, list(iterator), iterator


@differential(lambda: ([1, 2],))
def test_value_sent_through_to_an_iterator(items):
    def delegating():
        yield from items

    made = delegating()
    next(made)
    try:
        made.send(3)
    except AttributeError as error:
        return str(error)


@differential(lambda: (torch.ones(3), [1], {}))
def test_builtins_do_not_have_the_attributes_of_their_class(x, items, notes):
    for name in ("__call__", "mro", "__bases__", "__subclasses__"):
        notes[name] = getattr(items, name, "absent"), hasattr(notes, name), hasattr(iter(items), name), hasattr(len, name)
    notes["callable"] = callable(items), callable(len), callable(notes.get)
    items.__call__()
    return x


@differential(lambda: (torch.tensor([1, 2, 3]), torch.ones(3), []))
def test_in_place_result_that_cannot_be_cast(x, y, notes):
    notes.append("before")
    x.mul_(y)
    notes.append("after")


@differential(lambda: (torch.tensor([1, 2, 3]), torch.ones(3), []))
def test_in_place_result_that_cannot_be_cast_is_caught(x, y, notes):
    y += 1
    try:
        x *= y
    except RuntimeError as error:
        notes.append(str(error))
    return x + 1, y * 2


@differential(lambda: (torch.tensor([1, 2, 3]), True, []))
def test_alpha_that_is_a_truth_value(x, alpha, notes):
    for fn in (torch.add, torch.sub):
        try:
            fn(x, x, alpha=alpha)
        except RuntimeError as error:
            notes.append(str(error))
    return torch.add(x > 1, x > 2, alpha=alpha)


@differential(lambda: (torch.ones(3), torch.ones(3), []))
def test_mask_of_floats(x, y, notes):
    try:
        y.masked_fill_(y, 1)
    except RuntimeError as error:
        notes.append(str(error))
    try:
        y.masked_fill(x, 1)
    except RuntimeError as error:
        notes.append(str(error))
    return x + 1


@differential(lambda: (torch.ones(3), torch.ones(3) > 0, True, []))
def test_differences_of_truth_values(x, mask, flag, notes):
    for subtract in (lambda: x - flag, lambda: mask - 1, lambda: 1 - mask, lambda: flag - x, lambda: x - mask, lambda: x.sub_(flag)):
        try:
            notes.append(subtract())
        except RuntimeError as error:
            notes.append(str(error)[:20])
    return x + 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_changes_before_an_error_are_seen(backend):
    def fn(x, n):
        x.mul_(2)
        return x - n

    compiled = framegraft.compile(fn, backend=backend)
    for n in (1, 2, True):
        x = torch.ones(3)
        with contextlib.suppress(RuntimeError):
            compiled(x, n)
        assert x.tolist() == [2.0] * 3


@differential(lambda: (torch.ones(3), [2, 3, 4]))
def test_in_of_an_iterator_stops_where_it_finds(x, items):
    backwards, made, mapped = reversed(items), (i for i in items), map(str, items)
    found = 3 in backwards, 2 in made, "3" in mapped
    return x + 1, found, list(backwards), next(made), list(mapped), 4 in items, 5 in iter(items)


@differential(lambda: (torch.ones(3), True, {1, 2}, {True, 2, 3}))
def test_which_of_equal_items_sets_keep(x, flag, few, many):
    both = [few & {flag, 2}, few & many, many & few, few.intersection(many), few.intersection([flag]), few.union(many), few - {5}]
    few &= {flag, 2}
    many.intersection_update([1, 2])
    return x + 1, both, few, many


@differential(lambda: (torch.ones(3), Point(1)))
def test_attribute_deleted_and_set_again_comes_last(x, point):
    point.b = 2
    del point.a
    point.a = 3
    return x + 1, list(point.__dict__)


@differential(lambda: (torch.ones(3), Point(1)))
def test_attribute_deleted_for_good(x, point):
    point.other = x + 1
    del point.a
    return hasattr(point, "a"), point.other, vars(point)


@differential(lambda: (torch.ones(3), [3, 1, 2], [4]))
def test_reversed_list_that_was_changed_before(x, items, more):
    items.pop()
    more.append(5)
    found = []
    for item in reversed(items):
        for other in reversed(more):
            found.append((item, other))
    return x + 1, found


ZERO = 1.5


def test_signs_of_zeros_that_change(monkeypatch):
    compiled = framegraft.compile(zeros, backend="eager")
    for value in (1.5, 0.0, -0.0, 2.5, -0.0, 0.0, -2.5, 3.5):
        monkeypatch.setitem(globals(), "ZERO", value)
        assert compiled(torch.ones(2)) == zeros(torch.ones(2))


def zeros(x):
    return f"{ZERO:.2f}", str(ZERO * 0.0), math.copysign(1.0, ZERO), (x * ZERO).tolist(), math.copysign(1.0, ZERO - 1.5)


class Pair(typing.NamedTuple):
    left: int
    right: int = 7


@differential(lambda: (torch.ones(3), Pair(1)))
def test_positional_pattern_of_a_subclass_of_tuple(x, pair):
    with contextlib.nullcontext():
        match pair:
            case Pair(left, str()):
                return left
            case Pair(left, right):
                return x + left, right


class Field:
    def __get__(self, obj, owner=None):
        return obj.__dict__[self.name]

    def __set__(self, obj, value):
        obj.__dict__[self.name] = value + 1


class Holder:
    field = Field()
    field.name = "_field"


def test_descriptor_that_gives_something_else_for_the_class(monkeypatch):
    def sets(x, holder):
        holder.field = 3
        return x + holder.field, dict(vars(holder))

    monkeypatch.setattr(Holder.__dict__["field"], "name", "_other")
    compiled = framegraft.compile(sets, backend="eager")
    for getter in (Field.__get__, lambda self, obj, owner=None: 50, lambda self, obj, owner=None: self.name):
        monkeypatch.setattr(Field, "__get__", getter)
        ends = []
        for fn in (sets, compiled, compiled):
            try:
                ends.append(str(fn(torch.ones(3), Holder())))
            except TypeError as error:
                ends.append(str(error))
        assert ends == ends[:1] * 3


def test_identity_of_numbers_that_change():
    """Numbers that differ from call to call are symbols, of which only the value is known."""
    def f(x, pair):
        a, b = pair
        return x + a, a is b

    with framegraft.config.patch(raise_internal_errors=True):
        compiled = framegraft.compile(f, backend="eager")
        for number in (0.1, 0.2, 0.3, 0.4, 1000, 1001, 1002, 1003):
            for pair in ((number, number), (number, type(number)(str(number)))):
                assert compiled(torch.zeros(1), pair)[1] is f(torch.zeros(1), pair)[1]


@differential(lambda: (torch.ones(2), 1 << 50_000, {1 << 60_000: 2}))
def test_number_of_more_digits_than_python_converts(x, big, by_big):
    return x + 1 if big == 1 << 50_000 and (1 << 60_000) in by_big and big not in by_big else x
