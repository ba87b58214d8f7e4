"""Sizes and numbers that change, in places where a program seldom has them."""

import itertools
import math

import pytest
import torch

import framegraft

from .test_automatic import matrices, run


def test_bytes():
    def f(x):
        return x * x.nbytes, x.nbytes, x[:, 1:].nbytes, x.itemsize

    assert run(f, matrices((2, 3), (4, 3), (5, 3), (7, 3))) == [1, 2, 2, 2]
    framegraft.reset()
    assert run(f, matrices((2, 3), (4, 5)), dynamic=True) == [1, 1]

    def strided(x, n):
        return x + n, x.nbytes, x.t().nbytes

    x = torch.ones(4, 6)
    framegraft.reset()
    run(strided, [(x, 1), (x[:, :3], 2), (x[:, ::2], 3), (x[1:3], 4), (x.t(), 5), (x[:0], 6)])


def test_the_larger_of_numbers_and_truth_values():
    """max() and min() give the first of equal ones, which may be a bool; torch.sym_max makes it a number."""

    def f(x, n, k):
        return x + 1, max(n, k), min(n, k), max([k, n]), max(n, x.shape[0], k), n ^ max([k, n])

    x = torch.ones(3)
    numbers = [(1, 2), (3, 5), (False, -1), (True, 0), (True, 1), (1, True), (0, False), (4, True), (True, 3), (7, -1)]
    for dynamic in (None, True):
        framegraft.reset()
        run(f, [(x, *pair) for pair in numbers], dynamic=dynamic)


def test_sizes_that_operations_divide_by():
    """Fake kernels written in Python divide by zero where eager mode has an error of its own."""

    def shuffled(x, n):
        return torch.nn.functional.pixel_shuffle(x.reshape(1, -1, 1, 1), n)

    compiled = framegraft.compile(shuffled, backend="eager")
    for n in (2, 1, 2):
        assert torch.equal(compiled(torch.ones(12), n), shuffled(torch.ones(12), n))
    with framegraft.config.patch(raise_internal_errors=True), pytest.raises(RuntimeError, match="positive upscale_factor"):
        compiled(torch.ones(12), 0)


def test_guards_whose_numbers_do_not_fit_64_bits():
    def f(x, n):
        return x + 1 if n + 3 != x.shape[0] and n * 2 > n else x - 1

    numbers = [(2, 1), (5, 2), (4, (1 << 63) - 1), (3, -(1 << 63)), (6, 3), (7, 1 << 62)]
    with framegraft.config.patch(raise_internal_errors=True):
        for dynamic in (None, True):
            framegraft.reset()
            run(f, [(torch.ones(k), n) for k, n in numbers], dynamic=dynamic)


@pytest.mark.parametrize("of_trace", [False, True])
@pytest.mark.parametrize("place", [((2, 2), (0, 1)), ((3,), (2,), 1), ((2,), (3,), 0), ((1,), (1,), 7)])
def test_strides_beyond_the_memory(of_trace, place):
    """Fake tensors lie anywhere: what the program did before the error must be done."""
    seen = []

    def f(x):
        seen.append(1)
        return (x * 2 if of_trace else x).as_strided(*place) + 1

    def tried(fn, x):
        try:
            return fn(x).tolist()
        except RuntimeError as error:
            return str(error).splitlines()[0]

    compiled = framegraft.compile(f, backend="eager")
    for x in (torch.ones(1), torch.ones(4), torch.arange(8.0), torch.ones(2, 0)):
        assert tried(compiled, x) == tried(f, x)
    assert len(seen) == 8


NAN, OTHER_NAN, INF = float("nan"), float("nan"), float("inf")
COMPARISONS = {
    "equal to itself": lambda x, v, w: x + 1 if v == v else x - 1,
    "not equal to itself": lambda x, v, w: x + 1 if v != v else x - 1,
    "not less than itself": lambda x, v, w: x + 1 if v >= v and w <= w else x - 1,
    "neither": lambda x, v, w: x + 1 if v < w else x + 2 if v > w else x + 3 if v == w else x + 4,
    "one or the other": lambda x, v, w: x + 1 if v < w else x + 2 if v >= w else x + 3,
    "sides of zero": lambda x, v, w: x + 1 if v < 0 else x + 2 if v >= 0 else x + 3,
    "computed": lambda x, v, w: x + 1 if v - w == v - w else x + 2 if v * w != v * w else x - 1,
    "no number": lambda x, v, w: x + 1 if math.isnan(v) else x + 2 if math.isfinite(v - w) else x - 1,
    "infinite": lambda x, v, w: x + 1 if v == INF else x + 2 if w > -INF else x - 1,
    "larger": lambda x, v, w: (x + max(v, w), x * min(v, w), x.clamp(min=v)),
    "items": lambda x, v, w: (x + 1, (v, w) == (w, v), [v] == [w], v in (w, 1.0), [v, w].index(w), [v, w].count(v), v is w),
    "keys": lambda x, v, w: (x + 1, {v: 1}.get(w), len({v, w}), hash(v) == hash(w), hash((v, 1)) == hash((w, 1))),
    "results": lambda x, v, w: (x * v, v < w, v == w, v != w, v <= v),
}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("fn", COMPARISONS.values(), ids=COMPARISONS)
def test_comparisons_of_what_is_no_number(fn, dynamic):
    """A float that was a number in one call is a nan in another: it is not equal to itself."""
    x = torch.arange(3.0)
    values = (1.0, 2.0, NAN, OTHER_NAN, INF, -INF, 0.0, -0.0)
    pairs = list(itertools.product(values, values))
    with framegraft.config.patch(raise_internal_errors=True, cache_size_limit=100):
        for first in ((3.0, 4.0), (2.0, 0.5), (-1.5, -2.5), (4.0, NAN)):
            framegraft.reset()
            compiled = framegraft.compile(fn, backend="eager", dynamic=dynamic)
            for pair in (first, (5.0, 7.0), (5.0, 6.0), (-2.0, 6.0), *pairs, *pairs[::-1]):
                assert repr(compiled(x, *pair)) == repr(fn(x, *pair)), pair


def test_comparisons_of_what_the_data_says():
    def itself(x):
        u = x[0].item()
        return x + 1 if u == u else x - 1

    def checked(x):
        u = x.sum().item()
        torch._check(u < INF)
        return x * u

    with framegraft.config.patch(capture_scalar_outputs=True, raise_internal_errors=True):
        for fn in (itself, checked):
            compiled = framegraft.compile(fn, backend="eager")
            for value in (1.0, NAN, 2.0, NAN, -INF):
                x = torch.full((2,), value)
                try:
                    expected = repr(fn(x))
                except RuntimeError:
                    with pytest.raises(RuntimeError):
                        compiled(x)
                else:
                    assert repr(compiled(x)) == expected, value


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_large_integers_in_new_tensors(backend):
    """Of a symbol, torch's constructors of tensors take the low 32 bits."""

    def f(x, n):
        return torch.tensor([n, 1]), torch.asarray(n), x.new_tensor([[n], [n + 1]]), torch.tensor([n, x.shape[0]], dtype=torch.float64)

    compiled = framegraft.compile(f, backend=backend)
    x = torch.ones(3)
    for n in (7, 2 ** 31, 2 ** 31 + 5, 2 ** 53 + 1, -2 ** 62 - 1):
        for got, expected in zip(compiled(x, n), f(x, n), strict=True):
            assert got.dtype == expected.dtype
            assert torch.equal(got, expected)


@pytest.mark.parametrize("settle", [lambda n: n << 3, lambda n: n.bit_length(), lambda n: ~n])
def test_powers_of_a_number_that_the_trace_has_settled(settle):
    """torch's symbols take what does not fit 64 bits for infinite."""

    def f(x, n):
        settled = settle(n)
        return x + 1, settled, n**2, n**2 < 2**90, n**2 % 7, (n + 1) ** 2 - n**2, str(n**2)

    compiled = framegraft.compile(f, backend="eager")
    with framegraft.config.patch(raise_internal_errors=True):
        for n in (1, 2, 3, 2**40, -5, 2**41, 2**33):
            assert str(compiled(torch.ones(2), n)) == str(f(torch.ones(2), n))


@pytest.mark.parametrize("make", [
    lambda x, n: (torch.tensor([x.shape[0], n]), torch.tensor(x.shape), torch.as_tensor([[n], [n + 1]])),
    lambda x, n: (torch.tensor([n, 1.5, True]), torch.tensor([x.shape[0] * 2.5, n / 4]), torch.tensor((n, 2), dtype=torch.float64)),
    lambda x, n: (x.new_tensor([n, 2]), x.new_tensor(n), x.new_tensor([n], dtype=torch.int64), x.double().new_tensor(x.shape)),
    lambda x, n: (torch.LongTensor([n, x.shape[0]]), torch.FloatTensor([[n]])),
])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_tensors_of_numbers_that_differ(make, backend):
    assert run(make, [(torch.randn(n), n) for n in (3, 4, 5, 9, 4)], backend=backend) == [1, 2, 2, 2, 2]


@pytest.mark.parametrize("make", [
    lambda x, n: torch.tensor([n, 300], dtype=torch.uint8), lambda x, n: torch.tensor([n / 2, 1], dtype=torch.int32),
    lambda x, n: torch.tensor([[n], [n, 1]]), lambda x, n: torch.tensor([n, []]), lambda x, n: torch.tensor([x.shape[0] > 4, n]),
    lambda x, n: x.new_tensor([n, "a"]), lambda x, n: torch.tensor([n, 1j]), lambda x, n: torch.tensor([x.shape[0] > 4]),
])
def test_other_tensors_of_numbers_that_differ(make):
    compiled = framegraft.compile(make, backend="eager")
    for n in (3, 4, 5, 9):
        x = torch.randn(n)
        try:
            expected = make(x, n)
        except (TypeError, ValueError, RuntimeError) as error:
            with pytest.raises(type(error)):
                compiled(x, n)
        else:
            assert torch.equal(compiled(x, n), expected) and compiled(x, n).dtype is expected.dtype


def test_a_size_switches_the_grad_mode():
    def f(x):
        with torch.set_grad_enabled(x.shape[0] > 4):
            return x * 2

    assert run(f, [(torch.randn(n, requires_grad=True),) for n in (3, 4, 5, 9, 3)]) == [1, 2, 3, 3, 3]


def test_counting_from_numbers():
    def f(x, *numbers):
        for index, number in enumerate(itertools.count(*numbers)):
            if index > x.shape[0]:
                return x, number
            x = x + number

    for dynamic in (None, True):
        framegraft.reset()
        run(f, [(torch.ones(3), *numbers) for numbers in ((), (10,), (5, -1), (7, -2), (7, 3), (2**62, 5), (1.5, 2))], dynamic=dynamic)


def test_counting_goes_on_behind_a_break():
    def f(x, n):
        numbers = itertools.count(n, 2)
        x = x + next(numbers)
        framegraft.graph_break()
        return x + next(numbers), next(numbers)

    for dynamic in (None, True):
        framegraft.reset()
        compiled = framegraft.compile(f, backend="eager", dynamic=dynamic)
        for n in (3, 4, 5, 2**62):
            torch.testing.assert_close(compiled(torch.ones(3), n), f(torch.ones(3), n), rtol=0, atol=0)
