"""NumPy's numbers and functions of them: constants of a graph, guarded like any other; arrays stay out."""

import math
import warnings

import numpy as np
import pytest
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
        for SCALE, FUNCTION in ((np.float64(2), np.sqrt), (np.float64(3), np.sqrt), (np.float64(3), np.exp), (np.float32(3), np.exp),
                                (np.float64("nan"), np.exp)):
            assert framegraft.testing.same(compiled(x), f(x))
    finally:
        SCALE, FUNCTION = np.float64(2), np.sqrt


def plain(n):
    return n


NUMBERS = [np.float32(0.1), np.float32(1.7), np.float32(-2.3), np.float32(0), np.float32(-0.0), np.float32("nan"), np.float32(5),
           np.float64(0.1), np.float64(0.3), np.float64(1e300), np.int64(1), np.int64(7), np.int64(-3), np.int64(0), np.int32(3), np.uint64(2**63)]


@pytest.mark.parametrize("program", [
    lambda x, n: (x * n, n * x, x - n, n / x, n),
    lambda x, n: (x.to(torch.int32) * n, torch.tensor(2) * n, x[0] * n, x.half() + n, x * float(n), x * n.item()),
    lambda x, n: (x * plain(n), n > 1, abs(n), str(n), -n, n + 1, [n][0] is n, type(n), {n: 1}),
    lambda x, n: (x + (1 if n else 2), f"{n:.2f}", max(n, 2), sum([n, 1]), round(n, 1), isinstance(n, np.floating)),
    lambda x, n: (x * np.sqrt(abs(n)), np.add(n, 1), n == n, hash(n), bool(n)),
])
def test_numbers_that_change(program):
    compiled = framegraft.compile(program, backend="eager")
    x = torch.tensor([1.0, 2.0, 3.0])
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for n in NUMBERS + NUMBERS[::-1]:
            want = got = None
            try:
                want = program(x, n)
            except Exception as error:
                want = error
            try:
                got = compiled(x, n)
            except Exception as error:
                got = error
            assert repr(got) == repr(want), n
            if not isinstance(want, Exception):
                assert [type(i) for i in got] == [type(i) for i in want]


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64, np.int32])
def test_numbers_that_change_cost_one_more_capture(kind):
    counter = framegraft.testing.CompileCounter()
    compiled = framegraft.compile(lambda x, n: (x * n + 1, x / float(n.item()) if kind is np.float64 else n), backend=counter, fullgraph=True)
    for i in range(2, 8):
        compiled(torch.ones(3), kind(i))
    assert counter.frame_count == 2


def test_indices_that_change_cost_one_more_capture():
    counter = framegraft.testing.CompileCounter()
    compiled = framegraft.compile(lambda x, n: x[: n] * 2, backend=counter, fullgraph=True)
    for i in range(2, 8):
        assert compiled(torch.ones(9), np.int64(i)).shape == (i,)
    assert counter.frame_count <= 3


def outcome(fn, *args):
    try:
        return repr(fn(*args))
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("operand", [torch.arange(3), torch.tensor([True, False]), torch.ones(2)], ids=["int64", "bool", "float32"])
def test_bools_as_operands(operand):
    """torch takes them for floats."""
    for fn in (lambda x, n: x * n, lambda x, n: n + x, lambda x, n: x.clamp(max=n), lambda x, n: torch.where(x > 0, x, n), lambda x, n: x & n):
        compiled = framegraft.compile(fn, backend="eager")
        for n in (np.True_, np.False_, np.True_):
            assert outcome(compiled, operand, n) == outcome(fn, operand, n)


def failing_numbers(x):
    zero = np.float64(0)
    found = []
    for f in (lambda: np.float64(1) / zero, lambda: 1 / zero, lambda: np.log(zero), lambda: np.int8(100) + np.int8(100),
              lambda: np.int64(1) // np.int64(0), lambda: divmod(np.float64(1), 0), lambda: -np.int8(-128), lambda: np.float64(3).__truediv__(0),
              lambda: np.float16(70000.0), lambda: np.float64(2) * 3):
        try:
            found.append(repr(f()))
        except (FloatingPointError, TypeError) as error:
            found.append(str(error))
    return x + 1, found


def test_what_fails_does_so_as_errstate_says():
    compiled = framegraft.compile(failing_numbers, backend="eager")
    for state in ("ignore", "raise", "warn", "ignore"):
        with np.errstate(all=state):
            for _ in range(2):
                with warnings.catch_warnings(record=True) as expected:
                    warnings.simplefilter("always")
                    wanted = failing_numbers(torch.ones(2))
                with warnings.catch_warnings(record=True) as got, framegraft.config.patch(raise_internal_errors=True):
                    warnings.simplefilter("always")
                    found = compiled(torch.ones(2))
                assert repr(found) == repr(wanted)
                assert [str(w.message) for w in got] == [str(w.message) for w in expected]
