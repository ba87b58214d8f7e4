"""Numbers and sizes that the data decides: a break by default, captured where the settings say so."""

import math

import pytest
import torch

import framegraft

BACKENDS = ["eager", "aot_eager"]


@pytest.fixture(params=BACKENDS)
def captured(request):
    def run(fn, calls, **settings):
        compiled = framegraft.compile(fn, backend=request.param, **settings)
        for args in calls:
            expected, got = fn(*args), compiled(*args)
            torch.testing.assert_close(got, expected, rtol=0, atol=0)
        return framegraft.stats()

    with framegraft.config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True):
        yield run


def vectors(count=4):
    return [(torch.randn(5),) for _ in range(count)]


def with_numbers(*numbers):
    return [(torch.randn(5), torch.tensor(n)) for n in numbers]


def times_item(x, n):
    return x * n.item()


def masked(x):
    y = x[x > 0]
    return y * 2, y.shape[0]


@pytest.mark.parametrize("fn, calls", [(times_item, with_numbers(3, 4)), (masked, vectors()), (lambda x: x.nonzero() * 2, vectors())])
def test_break_by_default(fn, calls):
    compiled = framegraft.compile(fn, backend="eager")
    for args in calls:
        torch.testing.assert_close(compiled(*args), fn(*args))
    assert framegraft.stats()["graph_breaks"] >= 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_whole_graphs_hold_what_the_data_decides(backend):
    compiled = framegraft.compile(lambda x, n: (times_item(x, n), masked(x), n.repeat(3).tolist()), backend=backend, fullgraph=True)
    for args in with_numbers(3, 4, 0):
        expected = times_item(*args), masked(args[0]), [int(args[1])] * 3
        torch.testing.assert_close(compiled(*args), expected, rtol=0, atol=0)
    assert framegraft.stats()["graphs"] == 1


def test_item(captured):
    stats = captured(times_item, with_numbers(3, 4, 0, 1), fullgraph=True)
    assert stats["graphs"] == 1


def test_item_leaves_the_graph(captured):
    def f(x, n):
        k = n.item()
        return x * k, k + 1, k

    assert captured(f, with_numbers(3, 4), fullgraph=True)["graphs"] == 1


def test_float_item(captured):
    assert captured(lambda x: (x / x.sum().item(), int(x.argmax()), float(x[0])), vectors(), fullgraph=True)["graphs"] == 1


def test_masks_and_nonzero(captured):
    assert captured(masked, vectors(), fullgraph=True)["graphs"] == 1
    assert captured(lambda x: x.nonzero() * 2, vectors(), fullgraph=True)["graphs"] == 2


def test_size_from_data(captured):
    def f(x, n):
        k = n.item()
        torch._check_is_size(k)
        torch._check(k <= x.shape[0])
        return torch.zeros(k) + x.sum(), torch.ones(k + 1, 2)

    assert captured(f, with_numbers(3, 4, 5, 1), fullgraph=True)["graphs"] == 1


def test_branch_breaks(captured):
    def f(x, n):
        return x + 1 if n.item() > 2 else x - 1

    assert captured(f, with_numbers(3, 1, 2))["graph_breaks"] >= 1


def test_check_decides_a_branch(captured):
    def f(x, n):
        k = n.item()
        torch._check(k > 2)
        return x + k if k > 1 else x

    assert captured(f, with_numbers(3, 4, 5), fullgraph=True)["graphs"] == 1


def test_check_that_fails(captured):
    def f(x, n):
        k = n.item()
        torch._check(k > 2, lambda: f"too small: {x.shape}")
        return x + k

    captured(f, with_numbers(3, 4))
    compiled = framegraft.compile(f, backend="eager")
    for call in (compiled, f):
        with pytest.raises(RuntimeError, match=r"too small: torch.Size\(\[5\]\)"):
            call(*with_numbers(1)[0])


CONVERSIONS = {
    "int": lambda x: x * int(x[0].item()) + int(x[1]),
    "round": lambda x: (x + round(x[0].item()), round(x[1].item(), 1)),
    "floor": lambda x: (math.floor(x[0].item()), math.ceil(x[1].item()), math.trunc(x[1].item()), x + 1),
    "size": lambda x: torch.zeros(abs(int(x[1].item()))) + 1,
    "slice": lambda x: x[: int(x[1].item() * 2) // 2 + 1],
    "computed": lambda x: _computed(x * 1, int(x[0].item() * 3)),
    "caught": lambda x: _caught(x),
}


def _computed(x, n):
    return x * n, n + 1, n * n, n // 3, n % 3, float(n), -n, abs(n), min(n, 2), n / 2, x * float(n)


def _caught(x):
    try:
        return x * int(x[0].item()), int(x[1].item())
    except (ValueError, OverflowError) as error:
        return x + 1, str(error)


@pytest.mark.parametrize("name", CONVERSIONS)
@pytest.mark.parametrize("dynamic", [None, True])
def test_ints_of_floats(captured, name, dynamic):
    calls = [(torch.tensor([a, b, 0.0]),) for a, b in ((1.5, 2.5), (-2.5, -3.7), (0.2, -0.0), (7.0, 1e4), (-1e3, 0.5))]
    stats = captured(CONVERSIONS[name], calls, fullgraph=True, dynamic=dynamic)
    assert stats["graphs"] == 1


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e17, -1e30])
@pytest.mark.parametrize("backend", BACKENDS)
def test_floats_without_a_small_int(value, backend):
    """The graph's own check fails, and eager mode has the last word."""
    x = torch.tensor([value, 2.5])
    for name in ("int", "floor", "caught"):
        compiled = framegraft.compile(CONVERSIONS[name], backend=backend, fullgraph=True)
        ends = []
        for fn in (CONVERSIONS[name], compiled):
            try:
                ends.append(fn(x))
            except (ValueError, OverflowError, RuntimeError) as error:
                ends.append((type(error), str(error)))
        assert repr(ends[0]) == repr(ends[1])
