import collections
import dataclasses

import numpy as np
import pytest
import torch

from framegraft.testing import same

NAN = float("nan")


@dataclasses.dataclass
class Point:
    x: object
    y: object = 0


class Plain:
    __slots__ = ("a",)

    def __init__(self, a):
        self.a = a


Pair = collections.namedtuple("Pair", "a b")


@pytest.mark.parametrize(
    "a, b",
    [
        (torch.tensor([NAN, 1.0]), torch.tensor([NAN, 1.0])),
        ({"a": [1, (2, NAN)]}, {"a": [1, (2, NAN)]}),
        (Point(torch.ones(2)), Point(torch.ones(2))),
        (Plain([1]), Plain([1])),
        (Pair(1, 2), Pair(1, 2)),
        (np.arange(3), np.arange(3)),
        (ValueError("x", 1), ValueError("x", 1)),
        (torch.tensor(1 + 2j), torch.tensor(1 + 2j)),
        ({1, 2}, {2, 1}),
        (slice(1, 2), slice(1, 2)),
    ],
)
def test_same(a, b):
    assert same(a, b) and same(a, b, exact=False)


@pytest.mark.parametrize(
    "a, b",
    [
        (torch.tensor(0.0), torch.tensor(-0.0)),
        (0.0, -0.0),
        (1, True),
        (1, 1.0),
        ([1], (1,)),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (torch.ones(2), torch.ones(2, dtype=torch.float64)),
        (torch.ones(2), torch.ones(2, requires_grad=True)),
        (torch.ones(2, 3), torch.ones(3, 2).t()),
        (torch.ones(2), torch.nn.Parameter(torch.ones(2), requires_grad=False)),
        (torch.tensor(NAN), torch.tensor(1.0)),
        (Point(torch.ones(2)), Point(torch.zeros(2))),
        (Plain(1), Plain(2)),
        (Pair(1, 2), (1, 2)),
        (collections.deque([1]), [1]),
        (ValueError("x"), ValueError("y")),
    ],
)
def test_not_same(a, b):
    assert not same(a, b)


def test_tolerance():
    a, b = torch.ones(3), torch.ones(3) + 1e-6
    assert not same(a, b) and same(a, b, exact=False)
    assert not same(1.0, 1.0 + 1e-9) and same(1.0, 1.0 + 1e-9, exact=False)


def test_cycles_end():
    a, b = [1], [1]
    a.append(a)
    b.append(b)
    assert same(a, b)
