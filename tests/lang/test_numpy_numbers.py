"""NumPy's numbers and functions of them: constants of a graph, guarded like any other; arrays stay out."""

import math

import numpy as np
import torch

import framegraft

from .differential import differential


def two():
    return torch.arange(6.0).reshape(2, 3), torch.tensor([[1.0, -2.0, 3.0], [0.5, 0.0, -1.0]])


@differential(two, graphs=1)
def test_functions_of_shapes(x, y):
    scale = 1 / np.sqrt(x.shape[1])
    return x.reshape(int(np.prod(x.shape))), x * scale, y / np.float32(2), x * float(np.log(3)), scale, np.ceil(2.5), np.int64(3)


@differential(lambda: (torch.ones(3), np.float64(2.5), np.int64(2), np.bool_(True)), graphs=1)
def test_arguments(x, f, i, b):
    return x * f + i, f * x, x[:i], f + 1, i // 2, f, int(i), float(f), b and x, f > i, [f][0] is f, type(f + i).__name__


@differential(two, graphs=1)
def test_indices(x, y):
    return x.view(np.int64(3), -1), x[np.int64(1)], x.sum(np.int32(0)), torch.zeros(np.int64(2))


@differential(two)
def test_errors_and_warnings(x, y):
    found = []
    for f in (lambda: np.sqrt(-1.0), lambda: np.int8(300), lambda: np.float64("a"), lambda: np.float64(1) / 0):
        try:
            found.append(math.isnan(f()))
        except Exception as error:
            found.append(type(error))
    return x + 1, found


@differential(two)
def test_arrays(x, y):
    a = np.array([1, 2, 3])
    a[0] = 5
    return x * torch.from_numpy(a), torch.tensor(a), a.sum(), np.add(a, 1), np.float64(2).reshape(1)


@differential(lambda: (np.arange(6.0).reshape(2, 3), torch.ones(2, 3)))
def test_arrays_as_arguments(a, x):
    a += 1
    return x + torch.from_numpy(a), a.shape, torch.as_tensor(a) * 2, np.add(a, x.numpy())


SCALE, FUNCTION = np.float64(2), np.sqrt


def test_guards():
    global SCALE, FUNCTION

    def f(x):
        return x * SCALE + float(FUNCTION(4.0))

    compiled = framegraft.compile(f, backend="eager", fullgraph=True)
    x = torch.ones(2)
    try:
        for SCALE, FUNCTION in ((np.float64(2), np.sqrt), (np.float64(3), np.sqrt), (np.float64(3), np.square), (np.float32(3), np.square),
                                (np.float64("nan"), np.square)):
            assert framegraft.testing.same(compiled(x), f(x))
    finally:
        SCALE, FUNCTION = np.float64(2), np.sqrt
