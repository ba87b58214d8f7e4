"""Numbers and sizes that the data decides: a break by default, captured where the settings say so."""

import math

import pytest
import torch
from torch.fx.experimental import symbolic_shapes

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


def test_lists_of_tensors_with_sizes_that_differ(captured):
    def f(x, n):
        first, *rest = n.tolist()
        return x * first, rest

    calls = [(torch.ones(2), torch.tensor([1, 2])), (torch.ones(3), torch.tensor([[3, 4], [5, 6]])[0]), (torch.ones(2), torch.tensor([7, 8, 9]))]
    assert captured(f, calls, fullgraph=True, dynamic=True)["graphs"] == 2


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
    for call in (f, *(framegraft.compile(f, backend=backend, fullgraph=True) for backend in BACKENDS)):
        with pytest.raises(RuntimeError, match=r"too small: torch.Size\(\[5\]\)"):
            call(*with_numbers(1)[0])


@pytest.mark.parametrize("backend", BACKENDS)
def test_check_that_fails_once_captured(backend):
    def f(x, n):
        k = n.item()
        torch._check(k < 3, lambda: f"too large: {x.shape}")
        return x[k % 3]

    compiled = framegraft.compile(f, backend=backend, fullgraph=True)
    x = torch.randn(5)
    assert torch.equal(compiled(x, torch.tensor(2)), x[2])
    with pytest.raises(RuntimeError, match=r"too large: torch.Size\(\[5\]\)"):
        compiled(x, torch.tensor(7))


@pytest.mark.parametrize("backend", BACKENDS)
def test_asynchronous_assertion_that_fails(backend):
    def f(x):
        torch._assert_async((x > -5).all())
        return x + 1

    compiled = framegraft.compile(f, backend=backend, fullgraph=True)
    assert torch.equal(compiled(torch.ones(2)), torch.ones(2) + 1)
    for call in (f, compiled):
        with pytest.raises(RuntimeError, match="Expected Tensor with single nonzero value, but got zero"):
            call(torch.tensor([1.0, -9.0]))


def test_questions_that_torch_answers(captured):
    def f(x, n):
        k, asked = n.item(), 0
        asked += 1 if symbolic_shapes.guard_or_false(k == 0) else 0
        asked += 2 if symbolic_shapes.guard_or_true(k != 0) else 0
        torch._check(symbolic_shapes.sym_and(k > 2, k < 9, x.shape[0] > 1))
        asked += 4 if symbolic_shapes.statically_known_true(k > 1) else 0
        return x + k + asked if k > 1 else x

    assert captured(f, with_numbers(3, 4, 5), fullgraph=True)["graphs"] == 1


READ_BY_OPERATIONS = {
    "full": lambda x, n, w: (torch.full((2,), w), torch.full((n,), w)),
    "alpha": lambda x, n, w: torch.add(x, x, alpha=w),
    "clamp": lambda x, n, w: torch.clamp(x, w, 3),
    "foreach": lambda x, n, w: (torch._foreach_add([x, x], 1 - w), torch._foreach_addcmul([x], [x], [x], value=1 - w)),
    "narrow": lambda x, n, w: x.narrow(0, n - 1, 1),
}


@pytest.mark.parametrize("fullgraph", [True, False])
@pytest.mark.parametrize("name", READ_BY_OPERATIONS)
def test_numbers_that_an_operation_reads(captured, name, fullgraph):
    x = torch.arange(12.0).reshape(3, 4)
    calls = [(x, torch.tensor(n), torch.tensor(w, dtype=torch.float64)) for n, w in ((2, 0.5), (1, -0.5), (3, 2.0))]
    assert captured(READ_BY_OPERATIONS[name], calls, fullgraph=fullgraph)["graphs"] == 1


def test_size_computed_from_what_an_operation_reads(captured):
    assert captured(lambda n: torch.arange(0, n, 2) + 1, [(torch.tensor(5),), (torch.tensor(4),)])["graph_breaks"] == 1


def _written(x, n):
    row = x[n]
    row.add_(1)
    return x, row


def _set(x, n):
    x[0, n] = 7
    x[n, torch.tensor([0, 3])] = 9
    x[n] = x[0] * 2
    return x


def _no_such(x, n):
    try:
        return x[n + 1]
    except IndexError as error:
        return x + len(str(error))


POSITIONS = {
    "row": lambda x, n: x[n] + 1,
    "others": lambda x, n: (x[:, n, None] + 1, x[n, n], x[..., n], x[n][0], x[0][x[0].argmax()], x[n.to(torch.int8), 1:]),
    "slices": lambda x, n: (x[: n + 1] * 2, x[:, n:].sum(), x[n, 1 : n + 2]),
    "among tensors": lambda x, n: (
        x[n, torch.tensor([0, 2])],
        x[torch.tensor([[1], [0]]), n],
        x[torch.tensor([True, False, True]), None, n],
    ),
    "written": _written,
    "set": _set,
    "no such": _no_such,
}


@pytest.mark.parametrize("name", POSITIONS)
@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("fullgraph", [True, False])
def test_positions_in_tensors(name, fullgraph, dynamic, captured):
    calls = [(torch.arange(12.0).reshape(3, 4) + i, torch.tensor(i)) for i in (1, 0, 2, -1, -3)]
    assert captured(lambda x, n: POSITIONS[name](x.clone(), n), calls, fullgraph=fullgraph, dynamic=dynamic)["graphs"] == 1


@pytest.mark.slow
@pytest.mark.inductor
def test_positions_that_a_compiler_refuses():
    """Inductor does not lower the selection of a row behind such writes: without ``fullgraph`` the graph breaks there."""

    def f(x, n):
        y = x + 0
        row = y[n]
        row.add_(1)
        return _set(y, n)

    compiled = framegraft.compile(f, backend="inductor")
    for i in (1, 0, 2):
        x = torch.arange(12.0).reshape(3, 4)
        assert torch.equal(compiled(x, torch.tensor(i)), f(x, torch.tensor(i)))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ["written", "set"])
def test_positions_in_arguments(backend, name):
    compiled = framegraft.compile(POSITIONS[name], backend=backend, fullgraph=True)
    for i in (1, 0, -1):
        expected, got = torch.arange(12.0).reshape(3, 4), torch.arange(12.0).reshape(3, 4)
        torch.testing.assert_close(compiled(got, torch.tensor(i)), POSITIONS[name](expected, torch.tensor(i)), rtol=0, atol=0)
        torch.testing.assert_close(got, expected, rtol=0, atol=0)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("position", [3, 7, -4])
def test_position_out_of_range(backend, position):
    compiled = framegraft.compile(lambda x, n: x[n] * 2, backend=backend, fullgraph=True)
    x = torch.arange(12.0).reshape(3, 4)
    assert torch.equal(compiled(x, torch.tensor(-1)), x[2] * 2)
    with pytest.raises(IndexError, match=f"index {position} is out of bounds for dimension 0 with size 3"):
        compiled(x, torch.tensor(position))


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


def _added_to_chosen(x, left, right):
    y = x * 2
    y[left] += x[right]
    return y


CHOICES = [([1, 0, 1, 0], [1, 1, 0, 0]), ([1, 0, 1, 0], [0, 1, 0, 0]), ([0, 0, 0, 0], [0, 0, 0, 0]), ([1, 0, 1, 0], [1, 1, 1, 0])]


@pytest.mark.parametrize("backend", BACKENDS)
def test_in_place_with_two_sizes_that_the_data_decides(backend):
    """Of equal size, of one that is spread, and of sizes that do not go together."""
    compiled = framegraft.compile(_added_to_chosen, backend=backend, fullgraph=True)
    x = torch.randn(4, 3)
    for left, right in CHOICES:
        masks = torch.tensor(left).bool(), torch.tensor(right).bool()
        try:
            expected = _added_to_chosen(x, *masks)
        except RuntimeError as error:
            with pytest.raises(RuntimeError) as raised:
                compiled(x, *masks)
            assert str(raised.value) == str(error)
        else:
            torch.testing.assert_close(compiled(x, *masks), expected, rtol=0, atol=0)


def outcome(fn, *args):
    try:
        return fn(*args)
    except RuntimeError as error:
        return type(error)
    except IndexError as error:
        return str(error)


def checked_equal(x, n, m):
    torch._check(n == 3)
    return x + n


def checked_each_other(x, n, m):
    torch._check(n == m)
    return x * n + torch.tensor([n, m]).sum()


def squeezed(x, n, m):
    made = torch.ones(n, m).squeeze(0)
    return made * made.dim()


TAKEN_FOR_GRANTED = [
    checked_equal,
    checked_each_other,
    squeezed,
    lambda x, n, m: torch.arange(n) + x,
    lambda x, n, m: x.view(n, m).sum(0).view(-1, m) * n,
    lambda x, n, m: x.expand(n),
    lambda x, n, m: (torch.ones(n) + torch.ones(m)) * (torch.ones(n) + torch.ones(m)).shape[0],
    lambda x, n, m: x @ torch.ones(n, m) * m,
    lambda x, n, m: torch.stack([x, torch.ones(n)]) * m,
    lambda x, n, m: torch.nn.functional.pad(x, (0, n)) + torch.ones(5),
    lambda x, n, m: x[None].expand(n, 4) * n,
    lambda x, n, m: torch.ones(n + 1)[m - 1] * x[n],
    lambda x, n, m: [1, 2, 3, 4, 5, 6][(torch.ones(n) + x).numel()] * torch.ones(n),
]


@pytest.mark.parametrize("settings", [{}, {"fullgraph": True}, {"fullgraph": True, "dynamic": True}], ids=["breaks", "whole", "dynamic"])
@pytest.mark.parametrize("fn", TAKEN_FOR_GRANTED, ids=range(len(TAKEN_FOR_GRANTED)))
@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_taken_for_granted_of_numbers_is_checked(backend, fn, settings):
    def f(x, n, m):
        n, m = n.item(), m.item()
        return fn(x, n, m), n, m

    with framegraft.config.patch(capture_scalar_outputs=True):
        for first in ((4, 1), (1, 1), (3, 3)):
            compiled = framegraft.compile(f, backend=backend, **settings)
            for n, m in (first, (3, 3), (1, 4), (4, 1), (1, 1), (0, 1), (2, 3), (-1, 4)):
                args = torch.arange(4.0), torch.tensor(n), torch.tensor(m)
                expected = outcome(f, *args)
                try:
                    got = outcome(compiled, *args)
                except framegraft.exc.Unsupported:
                    assert not isinstance(expected, tuple)  # eager mode raises; the refusal says why there is no graph
                    break
                assert type(got) is type(expected)
                torch.testing.assert_close(got, expected, rtol=0, atol=0) if isinstance(expected, tuple) else None
                assert isinstance(expected, tuple) or got == expected
            framegraft.reset()


def test_strides_of_sizes_that_the_data_decides(captured):
    def f(x, n):
        rows = x.expand(n.item(), 5)
        made = torch.ones(n.item(), 3).t().contiguous()
        return rows.sum() * rows.stride(0), made.sum() * made.stride(0)

    captured(f, with_numbers(4, 1, 2, 0))
