"""Lists, tuples, dicts and sets: methods, slices, unpacking, identity."""

import torch

import framegraft

from .differential import differential


def x_items():
    return torch.ones(2), [3, 1, 2]


@differential(x_items, graphs=1)
def test_list_methods(x, items):
    items.append(4)
    items.extend((5, 6))
    items.insert(1, 9)
    items.remove(1)
    last = items.pop()
    first = items.pop(0)
    items.reverse()
    copy = items.copy()
    items.sort()
    return x * len(items), copy, last, first, items.index(5), items.count(2), sorted(copy, reverse=True)


@differential(x_items, graphs=1)
def test_list_operators(x, items):
    same = items
    items += [7]
    items *= 2
    more = items + [x]
    return more, same is items, [1, 2] * 2, 3 in items, [1, 2] < [1, 3], items == list(items), x + len(more)


@differential(x_items, graphs=1)
def test_slices(x, items):
    a = items[1:]
    b = items[::-1]
    items[1:2] = [8, 8, 8]
    items[-1] = x
    del items[0]
    t = (1, 2, 3, 4)[1:-1]
    return a, b, items, t, "abcdef"[1::2], x[:1] + 1, range(10)[2:8:3]


@differential(lambda: ((1, (torch.ones(2), 3), [4, 5, 6, 7]),), graphs=1)
def test_unpacking(packed):
    a, (b, c), rest = packed
    first, *middle, last = rest
    *head, tail = "abc"
    (p, q), r = (first, last), [*middle, *head]
    return a, b * c, first, middle, last, head, tail, p, q, r, (*rest, *packed), {**{"k": 1}, "j": b}


@differential(lambda: ([1, 2, 3],))
def test_unpacking_errors(items):
    out = []
    try:
        a, b = items
    except ValueError as error:
        out.append(str(error))
    try:
        a, b, c, d, *e = items
    except ValueError as error:
        out.append(str(error))
    try:
        a, b = 5
    except TypeError as error:
        out.append(str(error))
    return out


@differential(lambda: ({"a": torch.ones(2), "b": 2},), graphs=1)
def test_dict_methods(d):
    d["c"] = d["a"] * 2
    d.update(e=5, b=3)
    d.setdefault("f", []).append(1)
    gone = d.pop("e")
    missing = d.get("zz", "default")
    keys, values, items = list(d.keys()), list(d.values()), list(d.items())
    last = d.popitem()
    return keys, values, items, gone, missing, last, "a" in d, len(d), d.copy(), dict(d, g=1)


@differential(lambda: ({"a": 1, "b": 2}, torch.ones(2)), graphs=1)
def test_dict_order_and_merge(d, x):
    value = d.pop("a")
    d["a"] = value
    e = d | {"c": x}
    d |= {"z": 0}
    return list(d), list(reversed(d)), e, dict.fromkeys(["p", "q"], 0), {k: v for v, k in enumerate(d)}, x + 1


@differential(lambda: ({"a": 1},))
def test_missing_key(d):
    try:
        return d["b"]
    except KeyError as error:
        return error.args, d.get("b")


@differential(lambda: ({"a": 1},))
def test_missing_key_uncaught(d):
    d["touched"] = True
    return d["b"]


@differential(lambda: ({1, 2, 3}, torch.ones(2)), graphs=1)
def test_set_methods(s, x):
    s.add(4)
    s.discard(9)
    s.remove(1)
    s |= {7}
    t = {3, 4, 5}
    return s & t, s | t, s - t, s ^ t, s <= t, 3 in s, len(s), sorted(s), frozenset(t), s.isdisjoint({100}), x * 2


@differential(x_items)
def test_identity_is_kept(x, items):
    a = [x]
    b = a
    pair = (a, b, items, x)
    b.append(items)
    return pair, a is b, a, {"items": items, "x": x}


@differential(lambda: ([],))
def test_list_contains_itself(items):
    items.append(items)
    return items[0] is items, len(items)


def aliased():
    shared = [torch.ones(2)]
    return shared, shared, {"k": shared}


@differential(aliased)
def test_aliased_arguments(a, b, d):
    a.append(1)
    b.append(2)
    d["k"].append(a[0] * 3)
    return len(a), a is b, b is d["k"]


@differential(lambda: ([1, 2], torch.ones(2)))
def test_index_error(items, x):
    y = x + 1
    try:
        return items[5]
    except IndexError as error:
        return y, str(error), items[-2]


@differential(x_items, graphs=1)
def test_builtin_reductions(x, items):
    return (
        sum(items),
        max(items),
        min(items, key=lambda v: -v),
        any(v > 2 for v in items),
        all(items),
        len(items) * x,
        list(map(lambda v: v + 1, items)),
        list(filter(lambda v: v > 1, items)),
        list(zip(items, "abc")),
        sum([x, x, x]),
        sorted(items, key=lambda v: (v % 2, v)),
    )


@differential(lambda: (torch.ones(2), (1, 2)))
def test_tuple_is_immutable(x, t):
    try:
        t[0] = 5
    except TypeError as error:
        return x, str(error), t + (3,), t * 2, hash(t) == hash((1, 2)), t.index(2), t.count(1)


@differential(lambda: (torch.ones(2), {}))
def test_tensor_as_key(x, d):
    d[x] = 1
    y = x + 1
    d[y] = 2
    return d[x], d[y], len(d), x in d


@differential(lambda: ([[1, 2], [3]], torch.ones(2)))
def test_nested_mutation(nested, x):
    inner = nested[0]
    nested[1], nested[0] = nested[0], nested[1]
    inner += [x * 2]
    nested.append(inner)
    return inner is nested[1], nested[2] is inner


@differential(lambda: (torch.ones(2), [3, 1, 2]))
def test_a_list_is_empty_while_it_is_sorted(x, given):
    made, told = [3, 1, 2], []

    def length(v):
        told.append((len(made), len(given)))
        return v

    def changing(v):
        made.append(v)
        made.pop()
        return v

    def failing(v):
        raise KeyError(v)

    made.sort(key=length)
    given.sort(key=length)
    for key in (changing, failing):
        try:
            made.sort(key=key, reverse=True)
        except (ValueError, KeyError) as error:
            told.append((repr(error), list(made)))
    return x + 1, made, told


@differential(lambda: (torch.ones(2), [3, 1, 2]))
def test_changes_of_a_list_that_is_sorted(x, given):
    told = []

    def emptied(v):
        given.clear()
        given.extend([])
        given[:] = ()
        given.sort()
        return v

    def filled(v):
        given.insert(0, v)
        del given[0]
        return v

    def filled_at_once(v):
        given.__init__([v, v])
        given.clear()
        return v

    for key in (emptied, filled, filled_at_once):
        print(end="")
        try:
            given.sort(key=key, reverse=True)
        except ValueError as error:
            told.append((repr(error), list(given)))
    return x + 1, given, told


@differential()
def test_print_is_no_stream(x):
    told = []
    for act in (lambda: print >> 42, lambda: max >> 42, lambda: print << 42):
        try:
            act()
        except TypeError as error:
            told.append(str(error))
    return x + 1, told


KINDS, ATOMIC = {int, float, torch.Tensor}, frozenset((type(None), bool, int, str, 1.5))


@differential(graphs=1)
def test_classes_in_a_set_from_outside(x):
    found = [type(value) in ATOMIC for value in (1, "a", None, 1.5, x, [])]
    KINDS.add(list)
    found += [type(value) in KINDS for value in (1, x, [])]
    KINDS.discard(list)
    return x + 1, found, len(KINDS), ATOMIC | KINDS == KINDS | ATOMIC, KINDS >= {int}, 1.5 in ATOMIC


@differential(lambda: (torch.ones(2), {"b": torch.ones(1), "a": None, "c": {}}), graphs=1)
def test_sorted_items_of_which_only_the_names_are_compared(x, named):
    pairs = [("z", x), ("y", x + 1)]
    pairs.sort(reverse=True)
    return sorted(named.items()), pairs, sorted([x]), sorted([(x, 1)]), sorted([("n", 2), ("n", 1), ("m", 3)])


@differential(lambda: (torch.ones(2), []))
def test_sets_that_are_looked_for_in_sets(x, notes):
    few, two = {1, frozenset([3])}, {3}
    notes.append((two in few, {4} in few, two not in few))
    try:
        few.remove({4})
    except KeyError as error:
        notes.append(error.args[0])
    few.discard(two)
    few.discard({5})
    return x * len(few), notes


class Thing:
    def __init__(self, value):
        self.value = value


def double(x):
    return x * 2


def half(x):
    return x / 2


ONE, TWO = Thing(1), Thing(2)
MIXED = {ONE, double, torch.add, torch.ops.aten.mm.default, torch.float32, int, "s", 2.5, None, (1, "k"), frozenset([1, "k"])}


@differential(lambda: (torch.ones(2), set(MIXED), frozenset([ONE]), ONE, TWO), graphs=1)
def test_sets_of_objects_from_outside(x, mixed, few, one, two):
    asked = (one, two, double, half, torch.add, torch.mul, torch.ops.aten.mm.default, torch.ops.aten.mm, torch.float32, torch.int8, int,
             str, "s", 2.5, None, (1, "k"), (1,), frozenset(["k", 1]))
    found = [item in mixed for item in asked], [item in few for item in (one, two, 1)]
    mixed.discard(double)
    mixed.add(half)
    (first,) = few
    first.seen = len(few)
    return x * one.seen, found, len(mixed), double in mixed, half in mixed


@differential(lambda: (torch.ones(2), {double}, {Thing(3)}), graphs=1)
def test_items_of_sets_are_used_and_taken_out(x, functions, instances):
    for function in functions:
        x = function(x)
    last = instances.pop()
    last.seen = len(instances)
    return x, last, instances


class Asking:
    def __hash__(self):
        return 1

    def __eq__(self, other):
        return True


@differential(lambda: (torch.ones(2), {Asking()}))
def test_items_that_ask_the_program(x, items):
    return x + 1, Asking() in items, len(items)


@differential(lambda: (torch.ones(2), {frozenset([1]): 2, (1, frozenset("a")): 3}), graphs=1)
def test_keys_with_frozensets(x, d):
    return x * d[frozenset([1])] * d[1, frozenset("a")], list(d.items()), frozenset([4]) in d


def test_operators_as_keys():
    operators = {torch.ops.aten.mm.default: 4, torch.ops.aten.mm: 5}

    def f(x):
        return x * operators[torch.ops.aten.mm.default], operators.get(torch.ops.aten.add), sum(operators.values())

    compiled = framegraft.compile(f, backend="eager", fullgraph=True)
    for value in (4, 6):
        operators[torch.ops.aten.mm.default] = value
        product, missing, total = compiled(torch.ones(2))
        assert product.tolist() == [value, value] and missing is None and total == value + 5
