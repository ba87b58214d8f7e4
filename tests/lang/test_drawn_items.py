"""Methods that draw from an iterator change their container item by item, so that its source sees that and may end it early."""

import collections

import torch

from .differential import differential


def numbers(log, *values):
    """Yields the values; the last one, if it is a class, is raised."""
    for value in values:
        log.append(f"to {value}")
        if isinstance(value, type):
            raise value("no more")
        yield value


class Counted:
    """An iterator over a list, which it shares."""

    def __init__(self, items):
        self.items = list(items)

    def __iter__(self):
        return self

    def __next__(self):
        if not self.items:
            raise KeyError("empty")
        return self.items.pop(0)


class Numbers(list):
    def __iter__(self):
        for n in range(len(self)):
            yield self[n] + len(self)


class Table(dict):
    pass


def tried(f, *args, **kwargs):
    try:
        return f(*args, **kwargs)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        return repr(error)


@differential()
def test_list_is_read_by_what_extends_it(x):
    first, second, third = [1], [1], [1]
    first.extend(first[-1] + z for z in range(3))
    second += (len(second) for _ in range(3))
    third.extend(map(lambda n: third[-1] * n, [2, 3, 4]))
    return first, second, third, x + first[-1]


def of_argument(items, x):
    items.extend(items[-1] + z for z in range(3))
    items += (len(items) for _ in range(2))
    return items[-1] * x


@differential(lambda: ([1, 2], torch.ones(2)))
def test_list_from_outside_is_read_by_what_extends_it(items, x):
    return of_argument(items, x)


@differential(lambda: ([1, 2], torch.ones(2)))
def test_list_from_outside_that_is_not_read_otherwise(items, x):
    items.extend(x + n for n in range(3))
    tried(items.extend, numbers([], 1, 2, KeyError))
    return items


@differential()
def test_list_is_changed_by_what_extends_it(x):
    def appends():
        for n in range(3):
            items.append(-n)
            yield n

    def clears():
        yield 1
        yield 2
        items.clear()
        yield 3

    items = [0]
    items.extend(appends())
    before = list(items)
    items.extend(clears())
    return before, items, x + len(items)


@differential()
def test_items_taken_before_an_exception(x):
    log, items, queue, left = [], [0], collections.deque([0]), collections.deque([0], 2)
    told = [
        tried(items.extend, numbers(log, 1, 2, KeyError)),
        tried(items.extend, Counted([3, 4])),
        tried(items.extend, zip([1, 2], numbers(log, 5, ValueError), strict=True)),
        tried(queue.extend, numbers(log, 1, 2, KeyError)),
        tried(left.extendleft, numbers(log, 1, 2, 3, KeyError)),
    ]
    try:
        items += numbers(log, 6, KeyError)
    except KeyError as error:
        told.append(repr(error))
    try:
        queue += numbers(log, 6, KeyError)
    except KeyError as error:
        told.append(repr(error))
    return log, items, queue, left, told, x + 1


@differential()
def test_list_extended_by_itself(x):
    plain, own = [1, 2], Numbers([1, 2])
    plain.extend(plain)
    plain += plain
    own.extend(own)
    return plain, list.__len__(own), [list.__getitem__(own, n) for n in range(4)], x + 1


@differential()
def test_list_made_anew_reads_what_it_gets(x):
    first, second, third, fourth = [1, 2], [1, 2], {1, 2}, {1, 2}
    first.__init__(len(first) for _ in range(3))
    second.__init__(second)
    third.__init__(len(third) for _ in range(3))
    fourth.__init__(fourth)
    return first, second, third, fourth, x + 1


@differential()
def test_list_subclass_that_reads_itself(x):
    class Own(list):
        def __init__(self, count):
            super().__init__(len(self) for _ in range(count))

    return list(Own(3)), x + 1


@differential()
def test_deque_is_read_by_what_extends_it(x):
    first, second, third = collections.deque([1]), collections.deque([1], 3), collections.deque([1])
    first.extend(first[-1] + z for z in range(3))
    second.extendleft(second[0] + len(second) for _ in range(5))
    third += (len(third) for _ in range(3))
    none = collections.deque(maxlen=0)
    none.extend(len(none) for _ in range(3))
    return first, second, third, none, x + 1


@differential()
def test_deque_extended_by_its_own_iterator(x):
    first, second, both = collections.deque([1, 2]), collections.deque([1, 2]), collections.deque([1, 2])
    told = tried(first.extend, iter(first)), tried(second.extendleft, (n for n in second))
    both.extend(both)
    both.extendleft(both)
    return first, second, both, told, x + 1


@differential()
def test_set_is_read_by_what_updates_it(x):
    first, second, third, log = {1}, {1}, {1, 2, 3, 4}, []
    first.update(len(first) * 10 for _ in range(3))
    told = [tried(second.update, [5], numbers(log, 6, 7, KeyError)), tried(second.update, numbers(log, 8, [], 9))]
    told.append(tried(third.difference_update, numbers(log, 1, 9, KeyError)))
    told.append(tried(third.difference_update, [2], 5))
    told.append(tried(third.difference_update, (3, [], 4)))
    return sorted(first), sorted(second), sorted(third), log, told, x + 1


@differential()
def test_difference_update_is_read_by_its_source(x):
    first, second = {1, 2, 3}, {1, 2, 3, 4}
    first.difference_update(len(first) for _ in range(3))
    second.difference_update(second)
    third = {1, 2, 3}
    third -= third
    fourth = {1, 2, 3, 4, 5}
    fourth.difference_update({1, 2}, [3], {4: 1})
    return sorted(first), second, third, fourth, x + 1


@differential()
def test_set_is_changed_by_what_is_drawn_from(x):
    def changes(s):
        yield 1
        s.add(9)
        yield 2
        s.discard(3)
        yield 3

    found = []
    for name in ("update", "difference_update", "intersection_update", "symmetric_difference_update",
                 "union", "difference", "intersection", "symmetric_difference", "issubset", "issuperset", "isdisjoint"):
        s = {1, 3, 5}
        result = getattr(s, name)(changes(s))
        found.append((name, sorted(s), sorted(result) if isinstance(result, set) else result))
    return found, x + 1


@differential()
def test_unhashable_item_ends_the_drawing(x):
    log = []
    told = [tried(f, numbers(log, 1, [], 2)) for f in (set, frozenset, {1}.union, {1}.difference, {1}.intersection, {1}.isdisjoint,
                                                    {1}.issubset, {1}.issuperset, {1}.symmetric_difference, dict.fromkeys,
                                                       collections.Counter, {1: 2}.keys().isdisjoint, {1: []}.items().isdisjoint)]
    return log, told, x + 1


@differential()
def test_questions_of_sets_end_early(x):
    log, s, d = [], {1, 2}, {1: 1, 2: 2}
    found = [s.isdisjoint(numbers(log, 0, 1, 2)), s.issuperset(numbers(log, 1, 5, 6)), s.issubset(numbers(log, 1, 2, 3)),
             d.keys().isdisjoint(numbers(log, 0, 1, 2)), d.items().isdisjoint(numbers(log, (1, 3), (2, 2), 4)),
             s.intersection(numbers(log, 1, 1, 3, 2, 4, 5))]
    return log, found, x + 1


@differential()
def test_dict_is_read_by_what_updates_it(x):
    first, second, third = {0: 0}, {0: 0}, collections.OrderedDict({0: 0})
    first.update((n, len(first)) for n in range(3))
    second |= ((n, len(second)) for n in range(3))
    third.update((n, len(third)) for n in range(3))
    fourth, fifth = collections.defaultdict(int, {0: 0}), Table({0: 0})
    fourth.update((n, len(fourth)) for n in range(3))
    fifth.update(((n, len(fifth)) for n in range(3)), a=1)
    sixth = collections.Counter()
    sixth.update(len(sixth) for _ in range(4))
    return first, second, list(third.items()), fourth, dict(fifth), sixth, x + 1


@differential()
def test_dict_keeps_what_came_before_an_exception(x):
    log, made = [], [{}, {}, {}, {}, collections.defaultdict(int), Table()]
    told = [
        tried(made[0].update, iter([("a", 1), "b"])),
        tried(made[1].update, numbers(log, ("a", 1), ("b", 2), KeyError)),
        tried(made[2].update, numbers(log, 1, 2)),
        tried(made[3].update, numbers(log, (1, 2), ([], 2), (3, 4))),
        tried(made[4].update, numbers(log, (1, 2), KeyError), b=1),
        tried(made[5].update, numbers(log, (1, 2), KeyError)),
    ]
    counter, ordered = collections.Counter(), collections.OrderedDict()
    told += [tried(counter.update, numbers(log, 1, 1, KeyError)), tried(ordered.update, numbers(log, (1, 1), KeyError))]
    return log, made, counter, list(ordered.items()), told, x + 1


@differential()
def test_mapping_that_reads_the_dict_it_updates(x):
    class Reads:
        def __init__(self, of):
            self.of = of

        def keys(self):
            for n in range(3):
                log.append(f"key {n} at {len(self.of)}")
                yield n

        def __getitem__(self, key):
            log.append(f"get {key} at {len(self.of)}")
            if key == 2:
                raise KeyError(key)
            return len(self.of)

    log, plain = [], {5: 5}
    told = tried(plain.update, Reads(plain))
    return log, plain, told, x + 1


@differential()
def test_generator_left_behind_by_an_error(x):
    def left():
        try:
            yield 1
            yield []
            yield 2
        finally:
            log.append("left")

    log, s = [], set()
    told = tried(s.update, left())
    return log, s, told, x + 1


@differential()
def test_dict_updated_by_its_own_items(x):
    first, second = {1: 1, 2: 2}, {1: 1, 2: 2}
    first.update(iter(first.items()))
    told = tried(second.update, ((n + 5, 1) for n in second))
    return first, second, told, x + 1


@differential()
def test_sums_and_folds_ask_in_turn(x):
    class Number:
        def __init__(self, value):
            self.value = value

        def __radd__(self, other):
            log.append(f"add {self.value}")
            return other + self.value

        def __add__(self, other):
            return self.value + other

        def __lt__(self, other):
            log.append(f"compare {self.value}")
            return self.value < other.value

        def __gt__(self, other):
            log.append(f"compare {self.value}")
            return self.value > other.value

    log = []
    total = sum(Number(n) for n in numbers(log, 1, 2, 3))
    most = max(Number(n) for n in numbers(log, 1, 3, 2)).value
    keyed = min(numbers(log, 1, 3, 2), key=lambda n: log.append(f"key {n}") or n)
    told = [tried(sum, numbers(log, "a", "b")), tried(sum, 5, ""), tried(sum, [], ""), tried(max, []), max([], default=3),
            tried(max, numbers(log, [], 1, 2)), sum([0.1] * 10), sum([0.1] * 9, Number(1)), sum([[1], [2]], []), min(3, True, 1.0)]
    return total, most, keyed, told, log, x + 1
