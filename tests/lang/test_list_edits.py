"""What a list from outside has lost and got is stored, and nothing else: items that others put there meanwhile stay."""

import collections

import pytest
import torch

import framegraft

from .differential import differential


def lists():
    return [1, 2.5, "c", [4]], torch.ones(2)


CHANGES = [
    lambda items, x: items.append(x),
    lambda items, x: (items.append(x), items.pop(0)),
    lambda items, x: (items.pop(0), items.pop(0), items.extend([x, x + 1, 3])),
    lambda items, x: items.pop(),
    lambda items, x: items.pop(1),
    lambda items, x: items.insert(1, x),
    lambda items, x: items.insert(0, x),
    lambda items, x: items.reverse(),
    lambda items, x: items.__setitem__(2, x),
    lambda items, x: (items.append(x), items.pop()),
    lambda items, x: items.clear(),
    lambda items, x: (items.clear(), items.append(x)),
    lambda items, x: items.__setitem__(slice(None), [*items, *items]),
    lambda items, x: items.__setitem__(slice(None), [items[-1], *items[:-1]]),
    lambda items, x: items.__setitem__(slice(None), items[:1] * 5),
    lambda items, x: items.__setitem__(slice(1, 3), [x]),
    lambda items, x: (items.__setitem__(0, x), items.append(items[1])),
    lambda items, x: (items.pop(0), items.append(items[0]), items.append(items[1])),
]


@differential(lists)
def test_one_change(items, x):
    read = [len(items)]
    for change in CHANGES[:10]:
        change(items, x)
        read.append(len(items))
    return items, read


@pytest.mark.parametrize("n", range(len(CHANGES)))
@pytest.mark.parametrize("kind", [list, type("Own", (list,), {})])
def test_each_change(kind, n):
    def run(items, x):
        length = len(items)
        CHANGES[n](items, x)
        return length, len(items), x + 1

    told = []
    for fn in (run, framegraft.compile(run, backend="eager", fullgraph=True)):
        first, x = lists()
        outside = kind(first)
        lengths = fn(outside, x)[:2]
        told.append((lengths, [str(i) for i in outside], [next((n for n, o in enumerate(first) if o is i), None) for i in outside]))
    assert told[0] == told[1]


@differential(lambda: (collections.deque([1, 2, 3]), collections.deque([1, 2, 3], 3), collections.deque([1, 2], 3), torch.ones(2)))
def test_deques_that_get_more(free, full, nearly, x):
    read = [len(free), full[0], nearly[0]]
    for queue in (free, full, nearly):
        queue.append(x)
        queue.append(len(queue))
    return read, free, full, nearly


@differential(lambda: (collections.deque([1, 2, 3]), collections.deque([1, 2, 3], 3), torch.ones(2)))
def test_deques_that_lose_and_get(free, full, x):
    read = free.popleft(), full.popleft(), full.popleft()
    free.append(x)
    full.append(x)
    full.appendleft(x + 1)
    return read, free, full


@pytest.mark.parametrize("change", [
    lambda items: items.append(0),
    lambda items: (items.append(0), items.pop(0)),
    lambda items: items.__setitem__(0, 9),
])
def test_items_that_come_while_the_graph_runs(change):
    """As a thread does it: the operation stands for it."""
    others = []

    def backend(gm, inputs):
        def run(*args):
            for items in others:
                items.append("meanwhile")
            return gm.forward(*args)
        return run

    def run(items, x):
        length = len(items)
        change(items)
        return length, x + 1

    items = [1, 2, 3]
    others.append(items)
    framegraft.compile(run, backend=backend, fullgraph=True)(items, torch.ones(2))
    assert "meanwhile" in items
    expected = [1, 2, 3]
    change(expected)
    assert collections.Counter(map(str, items)) == collections.Counter(map(str, [*expected, "meanwhile"]))
