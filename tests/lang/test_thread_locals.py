"""Attributes of ``threading.local``: each thread reads its own."""

import threading

import torch

import framegraft

from .differential import differential


class Settings(threading.local):
    pass


class WithDefault(threading.local):
    level = 5
    names = ["a"]

    def twice(self, x):
        return x * self.level * 2

    @property
    def below(self):
        return self.level - 1

    @staticmethod
    def plain(x):
        return x + 1


class Prepared(threading.local):
    def __init__(self, start=2):
        self.level = start


def settings(cls=Settings):
    made = cls()
    made.scale, made.stack = 3, [1, 2]
    return made


@differential(lambda: (torch.ones(2), settings()), graphs=1)
def test_attributes(x, local):
    local.stack.append(4)
    try:
        told = local.nothing
    except AttributeError as error:
        told = error.args
    return x * local.scale, getattr(local, "other", 7), hasattr(local, "scale"), len(local.stack), told


@differential(lambda: (torch.ones(2), settings(threading.local)))
def test_attributes_that_are_set(x, local):
    local.scale += 1
    y = x * local.scale
    local.new = y
    del local.stack
    return y, local.new + 1, hasattr(local, "stack"), vars(local), local.__dict__ is vars(local), type(local)


def defaults():
    made = WithDefault()
    made.twice_as = made.twice
    return torch.ones(2), made


@differential(defaults, graphs=1)
def test_what_the_class_has(x, local):
    return x * local.level, local.names, local.twice(x), local.below, local.plain(x), local.twice_as(x), type(local), local.__class__


@differential(lambda: (torch.ones(2), WithDefault(), Prepared(3)))
def test_classes_with_more(x, default, prepared):
    first = x * default.level * prepared.level
    default.level = 6
    return first, x * default.level


LOCAL = threading.local()


def test_each_thread_has_its_own():
    compiled = framegraft.compile(lambda x: x * getattr(LOCAL, "scale", 1), backend="eager", fullgraph=True)
    seen = {}

    def work(n):
        if n:
            LOCAL.scale = n
        seen[n] = [compiled(torch.ones(1)).item() for _ in range(2)]
        LOCAL.scale = n + 10
        seen[n].append(compiled(torch.ones(1)).item())

    for n in range(4):
        thread = threading.Thread(target=work, args=(n,))
        thread.start()
        thread.join()
    assert seen == {n: [max(n, 1), max(n, 1), n + 10] for n in range(4)}
    assert compiled(torch.ones(1)).item() == 1


@differential(lambda: (torch.ones(2), settings(threading.local), settings(WithDefault)), graphs=1)
def test_setting_and_deleting(x, plain, derived):
    plain.scale += 1
    plain.new = x + plain.scale
    plain.other = [x]
    derived.level = derived.level + 1
    del plain.stack, derived.scale
    try:
        del plain.nothing
    except AttributeError as error:
        told = error.args
    return plain.new + 1, plain.other, hasattr(plain, "stack"), hasattr(derived, "scale"), derived.level, WithDefault.level, told


def test_each_thread_sets_its_own():
    local, ends = threading.local(), []

    def f(x):
        local.count = getattr(local, "count", 0) + 1
        local.last = x * local.count
        return local.last + 1

    compiled = framegraft.compile(f, backend="eager", fullgraph=True)

    def run(times):
        for _ in range(times):
            result = compiled(torch.ones(1))
        ends.append((local.count, local.last.item(), result.item()))

    run(2)
    other = threading.Thread(target=run, args=(1,))
    other.start()
    other.join()
    run(1)
    assert ends == [(2, 2.0, 3.0), (1, 1.0, 2.0), (3, 3.0, 4.0)]
