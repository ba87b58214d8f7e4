"""heapq and bisect: their functions in C, traced as what they do."""

import bisect
import heapq

import torch

from .differential import differential


def one():
    return (torch.arange(6.0).reshape(2, 3),)


@differential(one, graphs=1)
def test_heaps(x):
    heap = []
    for item in (5, 1, 4, 1, 3, 9, 2):
        heapq.heappush(heap, item)
    listed = [3, 2, 1, 7, 0]
    heapq.heapify(listed)
    popped = heapq.heappop(heap), heapq.heappushpop(heap, 0), heapq.heappushpop(heap, 6), heapq.heapreplace(heap, 8), heapq.heappop(heap)
    return x + popped[0], popped, heap, listed, heapq.nlargest(2, [4, 1, 9]), heapq.nsmallest(2, [4, 1, 9]), list(heapq.merge([1, 4], [2, 3]))


@differential(one, graphs=1)
def test_heap_of_tensors_by_number(x):
    heap = []
    for index, priority in enumerate((5, 1, 4, 1)):
        heapq.heappush(heap, (priority, index, x + priority))
    return [heapq.heappop(heap)[2] for _ in range(3)], heap


class Own:
    def __init__(self, key, log):
        self.key, self.log = key, log

    def __lt__(self, other):
        self.log.append((self.key, other.key))
        return self.key < other.key


@differential(lambda: (torch.ones(3), [5, 3, 8, 1, 9, 2]), graphs=1)
def test_orders_of_the_programs_own(x, keys):
    log = []
    heap = []
    for key in keys:
        heapq.heappush(heap, Own(key, log))
    first = heapq.heappop(heap).key
    items = [Own(key, log) for key in sorted(keys)]
    place = bisect.bisect_right(items, Own(4, log)), bisect.bisect_left(items, Own(8, log))
    bisect.insort(items, Own(4, log))
    return x + first, place, [item.key for item in items], [item.key for item in heap], log


@differential(one, graphs=1)
def test_bisect(x):
    items = [1, 3, 5, 5, 7]
    found = (bisect.bisect_left(items, 5), bisect.bisect(items, 5), bisect.bisect_right((1, 2), 2), bisect.bisect_left(items, 6, 1),
             bisect.bisect_left(items, 0, 2, 4), bisect.bisect([], 1))
    bisect.insort(items, 4)
    bisect.insort_left(items, 5)
    return x + found[0], found, items


@differential(one)
def test_errors(x):
    found = []
    for f in (lambda: heapq.heappop([]), lambda: heapq.heappush((), 1), lambda: heapq.heappush([1], "a"), lambda: bisect.bisect([1], "a"),
              lambda: bisect.bisect([1, 2], 1, -1), lambda: bisect.insort((1, 2), 1), lambda: heapq.heapreplace([], 1)):
        try:
            found.append(f())
        except (IndexError, TypeError, ValueError, AttributeError) as error:
            found.append((type(error), str(error)))
    return x + 1, found
