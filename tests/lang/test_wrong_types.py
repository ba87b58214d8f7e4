"""Operations and builtins on what they do not take: the same error, with the same text, as in eager mode."""

import functools
import itertools
import math
import operator
import re

import pytest
import torch

import framegraft

from .differential import differential

CALLS = [
    lambda n: range(n), lambda n: [1].insert(n, 2), lambda n: [1].pop(n), lambda n: [1][n], lambda n: (1,)[n], lambda n: "abc"[n],
    lambda n: range(4)[n], lambda n: [1] * n, lambda n: operator.imul([1], n), lambda n: "a" * n, lambda n: b"ab"[n],
    lambda n: [1, 2][n:], lambda n: (1, 2)[:n], lambda n: torch.Size([1, 2])[n], lambda n: [1, 2].__setitem__(n, 3),
    lambda n: [1, 2].__delitem__(n), lambda n: list(itertools.islice([1, 2], n)), lambda n: list(itertools.repeat(1, n)),
    lambda n: [1].index(1, n), lambda n: chr(n), lambda n: hex(n), lambda n: round(2.5, n), lambda n: list(enumerate([1], n)),
    lambda n: slice(n), lambda n: int("1", n), lambda n: pow(2, 3, n), lambda n: n << 1, lambda n: operator.index(n),
    lambda n: bytes(n), lambda n: sum([1], n), lambda n: range(3).index(n), lambda n: len(n), lambda n: (1, 2).index(1, n),
    lambda n: "a".center(n), lambda n: "%d" % n, lambda n: f"{n:d}", lambda n: [1, 2].extend(n), lambda n: {1}.update(n),
    lambda n: dict(n), lambda n: {}.update(n), lambda n: list(zip(n)), lambda n: map(n), lambda n: list(reversed(n)),
    lambda n: sorted(n), lambda n: list(iter(n)), lambda n: next(n), lambda n: isinstance(1, n), lambda n: issubclass(int, n),
    lambda n: getattr(1, n), lambda n: hasattr(1, n), lambda n: ",".join(n), lambda n: ",".join([n]), lambda n: max(n),
    lambda n: abs(n), lambda n: ord(n), lambda n: -n, lambda n: ~n, lambda n: n(), lambda n: n.foo, lambda n: n[0], lambda n: 1 in n,
    lambda n: [*n], lambda n: {**n}, lambda n: divmod(n, 0), lambda n: 5 < n, lambda n: [1] < n, lambda n: {1} | n, lambda n: {} | n,
    lambda n: [1] + n, lambda n: (1,) + n, lambda n: "a" + n, lambda n: all(n), lambda n: {n: 1}, lambda n: {n},
    lambda n: list(q for q in n), lambda n: setattr(n, "a", 1), lambda n: functools.reduce(n, [1, 2]),
    lambda n: functools.reduce(max, n), lambda n: functools.partial(n), lambda n: math.sqrt(n), lambda n: operator.add(n, "x"),
    lambda n: str(n, "ascii"), lambda n: float(n), lambda n: int(n), lambda n: "abc".split(n), lambda n: "abc".replace(n, n),
    lambda n: "abc".startswith(n), lambda n: "a" in n, lambda n: n in "a", lambda n: n in [1], lambda n: n in {1},
    lambda n: [3, 1].sort(key=n), lambda n: sorted([3, 1], key=n), lambda n: min([3, 1], key=n), lambda n: n @ 1, lambda n: n ** "a",
]
VALUES = [2.5, "x", None, [1], {3}, (1, 2), object]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_the_same_error(value):
    wrong = []
    for number, call in enumerate(CALLS):
        compiled = framegraft.compile(call, backend="eager")
        if end_of(call, value) != end_of(compiled, value):
            wrong.append((number, end_of(call, value), end_of(compiled, value)))
    assert not wrong


def end_of(call, value):
    try:
        return re.sub("0x[0-9a-f]+", "", repr(call(value)))  # addresses of new objects
    except Exception as error:
        return type(error), error.args


@differential(lambda: (torch.ones(2), torch.ones(2, dtype=torch.int32)))
def test_limits_of_the_wrong_dtypes(*tensors):
    found = []
    for x in tensors:
        try:
            found.append(torch.finfo(x.dtype).max)
        except TypeError:
            found.append(torch.iinfo(x.dtype).max)
    return found, tensors[0] + 1


@differential(lambda: (torch.ones(2), 3))
def test_questions_about_something_else(x, number):
    found = []
    for ask in (torch.numel, torch.is_floating_point, torch.is_complex, torch._check, torch.cond):
        try:
            found.append(ask(number))
        except TypeError as error:
            found.append(str(error))
    for ask in (torch.is_tensor, torch.is_storage):
        try:
            found.append(ask())
        except TypeError as error:
            found.append(str(error))
    return found, x + 1
