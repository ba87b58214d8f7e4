"""Reads of WeakKeyDictionary and WeakValueDictionary."""

import gc
import weakref

import pytest
import torch

import framegraft

from .differential import differential


class Key:
    def __init__(self, n=0):
        self.n = n


class OwnHash(Key):
    def __hash__(self):
        return 3

    def __eq__(self, other):
        return self.n == other.n


class Sub(weakref.WeakKeyDictionary):
    def get(self, key, default=None):
        return 7


KEYS = [Key(1), Key(2), Key(3)]
BY_KEY = weakref.WeakKeyDictionary({KEYS[0]: 5, KEYS[1]: [1, torch.ones(3)]})
OWN = [OwnHash(1), OwnHash(2)]
BY_OWN = weakref.WeakKeyDictionary({OWN[0]: 5})
BY_VALUE = weakref.WeakValueDictionary({"a": KEYS[0], 2: KEYS[1]})
SUB = Sub({KEYS[0]: 4})


def one():
    return (torch.arange(3.0),)


def outside(fn):
    """The case with keys and dicts that are not copied from run to run."""
    return differential(one, graphs=1, build=True)(fn)


@outside
def test_what_is_there():
    keys, table = KEYS, BY_KEY

    def f(x):
        z = x + 1
        n = len(table)
        y = z * table[keys[0]] + table.get(keys[1])[1]
        return y * n, keys[2] in table, keys[0] in table, table.get(keys[2]), table.get(keys[2], 3)

    return f


@differential(one, build=True)
def test_what_is_not():
    keys, table = KEYS, BY_KEY

    def f(x):
        x = x + 1
        try:
            return table[keys[2]]
        except KeyError as error:
            return type(error), x

    return f


@outside
def test_values():
    table = BY_VALUE

    def f(x):
        y = x + 1
        return y * len(table), "a" in table, "b" in table, 2 in table

    return f


@differential(one, build=True)
def test_other_kinds():
    own, table, sub, keys = OWN, BY_OWN, SUB, KEYS

    def f(x):
        x = x + 1
        return x * table[own[0]], own[1] in table, sub.get(keys[0]), sub[keys[0]], table.get(Key(1)), 3 in table

    return f


def changes():
    def value(table, keys):
        table[keys[0]] = 9

    def gone(table, keys):
        del table[keys[0]]

    def dead(table, keys):
        keys[0] = Key(4)
        gc.collect()

    def added(table, keys):
        table[keys[2]] = 3

    def other(table, keys):
        keys.reverse()

    def renewed(table, keys):
        table.data = dict(table.data)
        table.data[weakref.ref(keys[2])] = 1

    return [value, gone, dead, added, other, renewed]


@pytest.mark.parametrize("change", changes(), ids=lambda c: c.__name__)
def test_change_between_calls(change):
    def f(x, table, keys):
        return x + table.get(keys[0], 2), keys[2] in table, len(table)

    def run(fn):
        keys = [Key(1), Key(2), Key(3)]
        table = weakref.WeakKeyDictionary({keys[0]: 5, keys[1]: 6})
        results = [fn(torch.ones(3), table, keys) for _ in range(2)]
        change(table, keys)
        results += [fn(torch.ones(3), table, keys) for _ in range(2)]
        return [(t.tolist(), *rest) for t, *rest in results]

    assert run(framegraft.compile(f, backend="eager")) == run(f)


def test_values_that_die():
    def f(x, table):
        return x + len(table), "a" in table

    def run(fn):
        obj = Key()
        table = weakref.WeakValueDictionary({"a": obj})
        results = [fn(torch.ones(3), table) for _ in range(2)]
        del obj
        results += [fn(torch.ones(3), table) for _ in range(2)]
        other = table["a"] = Key()
        results.append(fn(torch.ones(3), table))
        iterator = iter(table.items())
        next(iterator)
        del other  # its removal waits for the iterator
        results += [fn(torch.ones(3), table) for _ in range(2)]
        return [(t.tolist(), has) for t, has in results]

    assert run(framegraft.compile(f, backend="eager")) == run(f)


def test_keys_are_not_kept_alive():
    def f(x, table, key):
        return x + table[key]

    compiled, key = framegraft.compile(f, backend="eager"), Key()
    table = weakref.WeakKeyDictionary({key: 2})
    assert compiled(torch.ones(1), table, key).item() == 3
    del key
    gc.collect()
    assert len(table) == 0


def test_what_dies_in_the_trace():
    def f(x, box, table):
        x = x + 1
        box.clear()
        return x * 2, len(table), "a" in table

    def run(fn):
        key = Key()
        table, box = weakref.WeakValueDictionary({"a": key}), [key]
        del key
        result = fn(torch.ones(1), box, table)
        return result[0].item(), *result[1:]

    assert run(framegraft.compile(f, backend="eager")) == run(f)
