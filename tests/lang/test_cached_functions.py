"""Functions with a cache that is empty: their bodies see what the program has changed by then, also where the graph has yet to run."""

import functools
import math

import torch

from .differential import differential

BASE = 1


class Settings:
    factor = 1


def plus(n):
    return n + 1


@differential(build=True)
def test_a_global_that_the_caller_has_stored():
    @functools.lru_cache
    def times(n):
        return n * BASE

    def fn(x):
        global BASE
        BASE += 4
        return x * times(2), times(3)

    return fn


@differential(build=True)
def test_objects_that_the_caller_has_changed():
    settings, items, table, module = Settings(), [1], {"a": 1}, torch.nn.Identity()

    @functools.lru_cache
    def attribute(n):
        return n * settings.factor

    @functools.lru_cache
    def length(n):
        return n + len(items)

    @functools.lru_cache
    def entry(n):
        return n + table["a"]

    @functools.lru_cache
    def training(n):
        return n + module.training

    def fn(x):
        settings.factor = 3
        first = attribute(2)
        items.append(x)
        second = length(2)
        table["a"] = 7
        third = entry(2)
        module.eval()
        return x * first, second, third, training(2)

    return fn


@differential(build=True)
def test_a_class_that_the_caller_has_changed():
    class Own(Settings):
        pass

    @functools.lru_cache
    def factor(n, cls=Own):
        return n * cls.factor

    @functools.lru_cache
    def factor_of(cls):
        return cls.factor

    def fn(x):
        Own.factor = 5
        return x * factor(2), factor_of(Own)

    return fn


@differential(build=True)
def test_a_variable_that_the_caller_has_stored():
    offset = 1

    @functools.lru_cache
    def add(n):
        return n + offset

    def fn(x):
        nonlocal offset
        offset += 4
        return x * add(2)

    return fn


@differential(build=True)
def test_a_function_that_the_caller_has_replaced():
    @functools.lru_cache
    def call(n):
        return plus(n)

    def fn(x):
        global plus
        plus = abs
        return x * call(2)

    return fn


@differential()
def test_a_function_of_the_caller_that_calls_itself(x):
    calls = []

    @functools.lru_cache
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    @functools.lru_cache
    def noted(n):
        calls.append(n)
        return n

    n = fib(6)
    return x * n, fib.cache_info().misses, noted(1), noted(1), calls


@differential(build=True, calls=3)
def test_grad_mode_in_the_body():
    @functools.lru_cache
    def grad(n):
        return torch.is_grad_enabled()

    def fn(x):
        with torch.no_grad():
            inside = grad(1)
        grad.cache_clear()
        with torch.no_grad():
            x = x * (2 + grad(1))
        return x, inside, grad(2)

    return fn


def double(n):
    return n * 2


@differential(build=True, graphs=1)
def test_bodies_that_no_change_concerns_are_captured():
    @functools.lru_cache
    def size(n, *, scale=2.5):
        return math.ceil(sum(double(k) for k in range(n)) / scale)

    settings = Settings()

    def fn(x):
        settings.factor = 3
        return x * size(5), size(7, scale=1)

    return fn


class Recipe:
    """An object that hashes and compares by identity, as a cache keeps it."""

    def __init__(self, axes):
        self.axes = axes


class Equal(Recipe):
    def __eq__(self, other):
        return type(other) is Equal and self.axes == other.axes

    def __hash__(self):
        return hash(self.axes)


class Slotted:
    __slots__ = ("axes",)


def shapes(recipe, shape, names=()):
    return [shape[axis] for axis in recipe.axes], dict(names), type(shape)


@differential(build=True, graphs=1)
def test_objects_and_tuples_of_them_as_arguments():
    @functools.lru_cache(8)
    def cached(recipe, shape, names=()):
        return shapes(recipe, shape, names)

    @functools.lru_cache(8)
    def first(pair, *, other):
        return pair[1][0].axes[0] + other[0].axes[1]

    one, two = Recipe((1, 0)), Recipe((0, 0))

    def fn(x):
        y = x.reshape(1, 3)
        sizes, names, kind = cached(one, y.shape, (("a", 2), ("b", 3)))
        n = first((1, (one, two)), other=(one, 5))
        return y.reshape(sizes) * n, names, kind, cached(two, (4, 5)), cached(one, y.shape, (("a", 2), ("b", 3)))

    return fn


@differential(build=True, graphs=1)
def test_answers_that_are_objects():
    @functools.lru_cache
    def recipe(n):
        return Recipe((n, 0))

    @functools.lru_cache
    def cached(recipe, shape):
        return shapes(recipe, shape)

    recipe(1)

    def fn(x):
        return x.reshape(cached(recipe(1), x.reshape(1, 3).shape)[0]), recipe(1) is recipe(1)

    return fn


@differential(build=True)
def test_objects_that_compare_by_value_or_take_no_weak_reference():
    @functools.lru_cache
    def axis(recipe):
        return recipe.axes

    slotted = Slotted()
    slotted.axes = 4

    def fn(x):
        return x * axis(Equal(2)), axis(Equal(2)), axis(slotted)

    return fn


@differential(build=True, calls=3)
def test_an_object_that_changes_behind_the_cache():
    @functools.lru_cache
    def axis(recipe):
        return recipe.axes

    recipe = Recipe(1)

    def fn(x):
        found = axis(recipe)
        recipe.axes += 1
        x = x * axis(recipe)
        if recipe.axes > 2:
            axis.cache_clear()
        return x, found, axis(recipe), axis((recipe,)[0])

    return fn


@differential(build=True, calls=4)
def test_answers_that_the_program_changes():
    @functools.lru_cache
    def sizes(recipe, shape):
        return [shape[axis] for axis in recipe.axes]

    recipe = Recipe((0, 0))

    def fn(x):
        found = sizes(recipe, x.shape)
        found.append(len(found))
        return x * len(found), found, sizes(recipe, x.shape) is found

    return fn
