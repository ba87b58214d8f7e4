"""How often, in which order, and whether at all the methods of the program's own objects are asked."""

import copy
import functools
import itertools
import operator
from collections import Counter, OrderedDict, deque

import torch

from .differential import differential


class Told:
    """An iterator that tells what it is asked."""

    def __init__(self, log, *values):
        self.log = log
        self.values = list(values)

    def __iter__(self):
        self.log.append("iter")
        return self

    def __next__(self):
        self.log.append("next")
        if not self.values:
            raise StopIteration
        return self.values.pop(0)

    def __len__(self):
        self.log.append("len")
        return len(self.values)


class Hinted:
    def __init__(self, log, hint):
        self.log, self.hint = log, hint

    def __length_hint__(self):
        self.log.append("hint")
        return self.hint

    def __iter__(self):
        return iter([1, 2])


class Lengthless:
    """Fails where somebody asks how many items it has."""

    def __init__(self, error):
        self.error = error

    def __len__(self):
        raise self.error("no length")

    def __iter__(self):
        return iter([1, 2])


def tried(f, *args):
    try:
        return f(*args)
    except (KeyError, TypeError, ValueError, NotImplementedError, AttributeError) as error:
        return repr(error)


@differential()
def test_iterators_of_itertools_ask_once(x):
    log = []
    made = [
        list(itertools.accumulate(Told(log, 1, 2))), list(itertools.zip_longest(Told(log, 1), Told(log, 1, 2))),
        list(itertools.islice(Told(log, 1, 2, 3), 1, 3)), list(itertools.islice(itertools.cycle(Told(log, 1, 2)), 5)),
        list(itertools.pairwise(Told(log, 1, 2, 3))), list(itertools.takewhile(bool, Told(log, 1, 0, 2))),
        list(itertools.dropwhile(bool, Told(log, 1, 0, 2))), list(itertools.filterfalse(None, Told(log, 1, 0))),
        list(itertools.starmap(pow, Told(log, (1, 2)))), list(itertools.compress(Told(log, 1, 2), Told(log, 0, 1))),
        list(itertools.tee(Told(log, 1))[1]), [(k, list(g)) for k, g in itertools.groupby(Told(log, 1, 1, 2))],
        list(itertools.chain.from_iterable(Told(log, Told(log, 1), Told(log, 2)))), list(itertools.chain(Told(log, 1))),
    ]
    return made, log, x + 1


@differential()
def test_iterators_that_outlive_the_trace_ask_once(x):
    log = []
    made = [zip(Told(log, 1, 2), [3, 4], strict=False), enumerate(Told(log, 1, 2)), map(abs, Told(log, 1, 2)), itertools.cycle(Told(log, 1, 2)),
            itertools.accumulate(Told(log, 1, 2)), itertools.groupby(Told(log, 1, 1)), filter(None, Told(log, 1, 2))]
    x = x + 1
    print(len(log))
    return [next(m)[0] if isinstance(m, (zip, itertools.groupby)) else next(m) for m in made], log, x


class ByNumber:
    def __init__(self, log, count):
        self.log, self.count = log, count

    def __len__(self):
        self.log.append("len")
        return self.count

    def __getitem__(self, index):
        self.log.append(index)
        if index >= 3:
            raise IndexError
        return index


@differential()
def test_iterators_by_number_ask_how_many_there_are(x):
    log = []
    made = [list(reversed(ByNumber(log, 3))), tuple(reversed(ByNumber(log, 2))), list(iter(ByNumber(log, 2))), sum(iter(ByNumber(log, 2)))]
    made += [[*reversed(ByNumber(log, 3))], list(ByNumber(log, 4)), sum(reversed(ByNumber(log, 3))), sorted(reversed(ByNumber(log, 3)))]
    begun, ended = reversed(ByNumber(log, 3)), iter(ByNumber(log, 3))
    made += [next(begun), list(begun), list(ended), list(ended), list(begun), tried(lambda: list(reversed(ByNumber(log, -1))))]
    return made, log, x + 1


def first_and_rest(items):
    first, *rest = items
    return first, rest


def two(items):
    first, second = items
    return first, second


@differential()
def test_length_is_asked_where_items_are_collected(x):
    log = []
    made = [
        list(Told(log, 1)), tuple(Told(log, 1)), [*Told(log, 1)], (lambda *a: a)(*Told(log, 1)), sorted(Told(log, 2, 1)),
        [].extend(Told(log, 1)), first_and_rest(Told(log, 1, 2)), two(Told(log, 1, 2)), ",".join(Told(log, "a")), sum(Told(log, 1)),
        {*Told(log, 1)}, dict.fromkeys(Told(log, 1)), max(Told(log, 1)), list(Hinted(log, 5)), tuple(Hinted(log, 0)), deque(Told(log, 1)),
        Counter(Told(log, 1)), functools.reduce(operator.add, Told(log, 1, 2)), dict(Told(log, Told(log, 1, 2))), any(Told(log, 0)),
    ]
    target = [0]
    target[0:1] = Told(log, 7)
    target += Told(log, 8)
    return made, target, log, x + 1


@differential()
def test_length_that_fails(x):
    seen = []
    for error in (NotImplementedError, ValueError, TypeError):
        seen += [tried(f, Lengthless(error)) for f in (list, tuple, sorted, [].extend, set, max, first_and_rest, two)]
        seen.append(tried(lambda value: [*value], Lengthless(error)))  # noqa: B023
    seen += [tried(list, Hinted([], hint)) for hint in (NotImplemented, -1, "a", None)]
    return seen, x + 1


@differential()
def test_unpacking_asks_for_one_item_more(x):
    numbers, rest = iter(range(20)), iter([1, 2, 3, 4])
    log = []
    told = Told(log, 1, 2, 3, 4)
    return tried(two, numbers), next(numbers), tried(two, numbers), tried(two, told), told.values, log, first_and_rest(rest), x + 1


class Key:
    """A key that tells how it is hashed and compared."""

    def __init__(self, value, log):
        self.value, self.log = value, log

    def __hash__(self):
        self.log.append(("hash", self.value))
        return 1

    def __eq__(self, other):
        self.log.append(("eq", self.value, other.value))
        return self.value == other.value


@differential()
def test_keys_that_tell(x):
    log = []
    first, second, again = Key(1, log), Key(2, log), Key(1, log)
    table = {first: 1, second: 2}
    log.append("table")
    seen = [table.get(again), again in table, table.pop(second), table.setdefault(again, 3), list(table.values())]
    log.append("ordered")
    ordered = OrderedDict([(first, 1), (second, 2)])
    seen += [ordered.pop(again), ordered.popitem()[1], len(ordered), frozenset([first, again]) == {first}]
    return seen, log, x + 1


class Made:
    def __new__(cls, log):
        log.append("new")
        return super().__new__(cls)

    def __init__(self, log):
        self.log = log


class Looked:
    """Tells which attributes are looked for that it has not."""

    log = []

    def __init__(self):
        self.items = [1]

    def __getattr__(self, name):
        Looked.log.append(name)
        raise AttributeError(name)


@differential()
def test_copies_look_for_methods(x):
    Looked.log.clear()
    looked = Looked()
    shallow, deep = copy.copy(looked), copy.deepcopy(looked)
    seen = [name for name in Looked.log if name in ("__setstate__", "__deepcopy__")]
    return shallow.items is looked.items, deep.items is looked.items, seen, x + 1


class Numbered:
    """``copy`` calls ``__new__`` of the class without arguments."""

    made = [0]

    def __new__(cls):
        cls.made[0] += 1
        return super().__new__(cls)


@differential()
def test_copies_call_new(x):
    Numbered.made[0] = 0
    one = Numbered()
    others = [copy.copy(one), copy.deepcopy(one)]
    return len(others), Numbered.made[0], x + 1


class Keyed:
    """A mapping whose keys come from a generator."""

    def __init__(self, log):
        self.log = log

    def keys(self):
        for key in "abc":
            self.log.append(key)
            yield key

    def __getitem__(self, key):
        self.log.append(f"get {key}")
        return key * 2


@differential()
def test_ordered_dict_asks_for_each_value_with_its_key(x):
    log, updated, merged = [], OrderedDict(z=0), OrderedDict()
    updated.update(Keyed(log), q=1)
    merged |= Keyed(log)
    made = OrderedDict(Keyed(log))
    plain = dict(Keyed(log))
    return updated, merged, made, plain, log, torch.ones(len(updated)) + x.sum()


class Pairs(OrderedDict):
    def __init__(self, *args):
        super().__init__(*args)


class Doubled(dict):
    def __getitem__(self, key):
        return dict.__getitem__(self, key) * 2


@differential()
def test_ordered_dict_of_bad_pairs(x):
    seen = []
    for pairs in ([(1, 2), (3,)], [(1, 2), ()], [(1, 2), (1, 2, 3)], [(1, 2), 7], ["ab", "abc"], 5, [(1, [])], Doubled(a=1), {1: 2}.items()):
        target = OrderedDict(a=1)
        seen += [tried(target.update, pairs), target, tried(OrderedDict, pairs), tried(Pairs, pairs), tried(dict, pairs)]
        seen.append(tried(operator.ior, OrderedDict(), pairs))
    return seen, x + 1


class Answering:
    """Has every attribute, and notes what is asked for."""

    def __init__(self):
        object.__setattr__(self, "asked", [])

    def __getattr__(self, name):
        self.asked.append(name)
        return len(name)

    def __call__(self, x):
        return x + 1


class Watching:
    def __init__(self):
        self.asked = []

    def __getattribute__(self, name):
        asked = object.__getattribute__(self, "asked")
        asked.append(name)
        return object.__getattribute__(self, name)

    def __call__(self, x):
        return x * 2


class Named:
    def __init__(self):
        self.asked = []

    @property
    def __name__(self):
        self.asked.append("name")
        return "named"

    def __call__(self, x):
        return x * 3


KINDS = [Answering, Watching, Named]


@differential(lambda: (torch.ones(2), [kind() for kind in KINDS]))
def test_objects_that_are_called_are_not_asked_for_names(x, objects):
    for item in objects:
        x = item(x)
    print("break")
    table = {item: item(x) for item in objects}
    return x, list(table.values()), [callable(item) for item in objects], objects[0].size


@differential(build=True)
def test_objects_in_a_closure_are_not_asked_for_names():
    answering, watching, named = (kind() for kind in KINDS)

    def fn(x):
        x = named(watching(answering(x)))
        print("break")
        return x, answering.asked[:], answering is watching, {named: x}

    return fn
