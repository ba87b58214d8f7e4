"""Iterators of itertools that the function has begun when the graph breaks, or when it returns them."""

import itertools
import operator

import torch

import framegraft

from .differential import differential


def pause():
    framegraft.graph_break()


@differential(lambda: (torch.ones(3), [1, 2, 3, 4, 5]))
def test_loops_with_a_break(x, items):
    told = []
    for i, j in itertools.product(range(2), items[:2]):
        x = x * 2 + i * j
        pause()
    for pair in itertools.combinations(items[:3], 2):
        told.append(pair)
        pause()
    for item in itertools.chain(items[:2], (x, 4), iter([5])):
        x = x + item
        pause()
    for item in itertools.islice(items, 1, 5, 2):
        x = x - item
        pause()
    for item in itertools.accumulate(items[:3], operator.mul):
        x = x + item
        pause()
    return x, told


@differential(lambda: (torch.ones(3),), graphs=1)
def test_given_back(x):
    made = [itertools.repeat(1), itertools.repeat(x, 3), itertools.count(2), itertools.count(0.5, -2), itertools.chain([1, x], (3,), [4]),
            itertools.product([1, 2], "ab"), itertools.permutations([1, x, 3], 2), itertools.combinations_with_replacement("abc", 2),
            itertools.islice([1, 2, 3, 4, 5, 6], 0, None, 2), itertools.islice(iter([1, 2, 3, 4]), 3), itertools.accumulate([x, x, x]),
            itertools.accumulate([1, 2, 3], max, initial=2), itertools.compress("abcd", [1, 0, 1, 1]), itertools.starmap(max, [(1, 2), (3, 0), (1, 1)])]
    first = [next(it) for it in made]
    second = [next(it) for it in made]
    return first, second, [(type(it), list(itertools.islice(it, 4))) for it in made], made


@differential(lambda: (torch.ones(3), []))
def test_across_a_break(x, log):
    def asked(item):
        log.append(item)
        return item < 4

    shared = iter([1, 2, 3, 3, 5, 1])
    made = [itertools.takewhile(asked, shared), itertools.filterfalse(asked, iter([9, 1, 8])), itertools.count(), itertools.repeat(2, times=2),
            itertools.accumulate((x, x * 2, x * 3)), itertools.islice(shared, 1, 3), itertools.chain([1], itertools.chain([2, 3], [4]), [5])]
    first = [next(it) for it in made[:-2]]
    print("half-way")
    second = [next(it) for it in made]
    print("again")
    return first, second, [list(itertools.islice(it, 3)) for it in made], list(shared), x


class Own:
    def __init__(self, log):
        self.log, self.n = log, 0

    def __iter__(self):
        self.log.append("asked")
        return self

    def __next__(self):
        self.n += 1
        if self.n > 3:
            raise StopIteration
        return self.n


@differential(lambda: (torch.ones(3), []))
def test_iterators_of_the_program(x, log):
    made = [itertools.chain(Own(log), [7]), itertools.takewhile(bool, Own(log)), itertools.islice(Own(log), 3), itertools.accumulate(Own(log))]
    first = [next(it) for it in made]
    print(len(first))
    return first, [list(it) for it in made], x + 1


@differential(lambda: (torch.ones(3),))
def test_others(x):
    made = [itertools.cycle([1, 2]), itertools.pairwise([1, 2, 3, 4]), itertools.dropwhile(bool, [1, 0, 2, 3]),
            itertools.zip_longest([1], [2, 3, 4]), itertools.chain.from_iterable([[1, 2], [3]]), iter([1, x].pop, 1)]
    first = [next(it) for it in made]
    print(first[0])
    return first, [list(itertools.islice(it, 3)) for it in made[:-1]], x + 1
