"""torch.cond, while_loop, map, scan and other higher-order operators: one graph, the values of plain Python."""

import pytest
import torch
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.map import map as map_slices
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch._higher_order_ops.wrap import wrap

import framegraft

from .differential import differential


def captured(f, *args, backend="eager"):
    return framegraft.compile(f, backend=backend, fullgraph=True)(*args)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_cond(backend):
    shift, scale = torch.ones(3) * 2, torch.tensor([1.0, 2.0, 3.0], requires_grad=True)

    def chosen(x):
        far = shift * 3

        def large(a):
            return {"out": a + far, "more": (a * scale, a.sum())}

        def small(a):
            return {"out": a - 1, "more": (a * far * scale, a.max() * 2)}

        return large if x.sum() > 0 else small

    def f(x):
        far = shift * 3
        return torch.cond(x.sum() > 0, lambda a: {"out": a + far, "more": (a * scale, a.sum())},
                          lambda a: {"out": a - 1, "more": (a * far * scale, a.max() * 2)}, (x,))

    compiled = framegraft.compile(f, backend=backend, fullgraph=True)
    for x in (torch.ones(3), -torch.ones(3), torch.arange(3.0)):
        got, expected = compiled(x), chosen(x)(x)
        torch.testing.assert_close(got, expected)
        (mine,) = torch.autograd.grad(got["more"][0].sum(), scale)
        (theirs,) = torch.autograd.grad(expected["more"][0].sum(), scale)
        torch.testing.assert_close(mine, theirs)


def test_nested_cond():
    def f(x):
        def outer(a):
            return torch.cond(a.max() > 3, lambda b: b + x, lambda b: b - 1, (a,))

        return torch.cond(x.sum() > 0, outer, lambda a: a * 2, (x,))

    for values, expected in (([4.0, 1.0], [8.0, 2.0]), ([1.0, 1.0], [0.0, 0.0]), ([-1.0, -1.0], [-2.0, -2.0])):
        assert captured(f, torch.tensor(values)).tolist() == expected


def test_cond_of_a_constant():
    def f(x):
        return torch.cond(x.shape[0] == 2, lambda a: a + 1, lambda a: a - 1, (x,))

    assert captured(f, torch.ones(2)).tolist() == [2, 2]


def test_refusals():
    seen = []

    def side(a):
        seen.append(1)
        return a + 1

    def changing(a):
        return a.add_(1) + 0

    for branch in (side, changing, lambda a: a, lambda a: (a + 1, a)):
        with pytest.raises(framegraft.exc.Unsupported):
            captured(lambda x: torch.cond(x.sum() > 0, branch, lambda a: a - 1, (x,)), torch.ones(2))
    assert not seen


def test_while_loop():
    def f(x, y):
        return while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, a * y), (torch.tensor(0), x))

    count, product = captured(f, torch.ones(2), torch.full((2,), 2.0))
    assert count == 5 and product.tolist() == [32, 32]


@differential(lambda: (torch.arange(1.0, 13.0).reshape(6, 2), torch.full((6, 2), 0.5)), graphs=1)
def test_associative_scan(x, y):
    def combine(a, b):
        return a[0] * b[0], b[0] * a[1] + b[1]

    return associative_scan(combine, (y, x), 0, combine_mode="generic"), associative_scan(torch.add, x, 0, combine_mode="generic")


@pytest.mark.parametrize("grad", [False, True])
def test_while_loop_behind_aot_autograd(grad):
    def f(x):
        return while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2), (torch.tensor(0), x))[1] + 1

    x = torch.ones(2)
    with torch.set_grad_enabled(grad):
        assert torch.equal(framegraft.compile(f, backend="aot_eager", fullgraph=True)(x), f(x))


def rows():
    return torch.arange(1.0, 7.0).reshape(2, 3).requires_grad_(), torch.tensor([0.5, -1.0, 2.0], requires_grad=True)


def check_like_loop(f, loop, backend):
    """The graph's values and gradients are those of the loop that the operator stands for."""
    found = []
    for fn in (framegraft.compile(f, backend=backend, fullgraph=True), loop):
        x, y = rows()
        result = fn(x, y)
        flat = torch.cat([t.flatten() for t in torch.utils._pytree.tree_leaves(result)])
        flat.sin().sum().backward()
        found.append((result, x.grad, y.grad))
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_map(backend):
    def f(x, y):
        far = y * 2
        return map_slices(lambda row: {"out": row * far, "more": [row.sum() + y[0]]}, x), map_slices(lambda a, b: a * b, x, y)

    def loop(x, y):
        return {"out": torch.stack([r * y * 2 for r in x]), "more": [torch.stack([r.sum() + y[0] for r in x])]}, x * y

    check_like_loop(f, loop, backend)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_scan(backend):
    def f(x, y):
        down = scan(lambda carry, row: ({"h": carry["h"] * row + y}, carry["h"] * 2), {"h": y.new_ones(3)}, x)
        return down, scan(lambda carry, item: (carry + item, carry * item), x.new_zeros(2), x, dim=1, reverse=True)

    def loop(x, y):
        h, out = torch.ones(3), []
        for row in x:
            h, _ = h * row + y, out.append(h * 2)
        s, back = torch.zeros(2), []
        for i in (2, 1, 0):
            s, _ = s + x[:, i], back.append(s * x[:, i])
        return ({"h": h}, torch.stack(out)), (s, torch.stack(back[::-1], 1))

    check_like_loop(f, loop, backend)


def test_map_and_scan_refuse():
    seen, x = [], torch.ones(2, 3)
    for f in (lambda x: map_slices(lambda row: seen.append(1) or row + 1, x), lambda x: map_slices(lambda row: row, x),
              lambda x: map_slices(lambda row: row.sum().item(), x), lambda x: scan(lambda c, row: (c + row[:2], row * 1), x[0], x)):
        with pytest.raises(framegraft.exc.Unsupported):
            captured(f, x)
    assert not seen


@torch.compiler.nested_compile_region
def region(x, *, scale):
    return {"out": x * scale}


@differential(lambda: (torch.arange(3.0),), graphs=1)
def test_operators_that_call_their_function(x):
    changed = []

    def inner(a, *, b=2):
        changed.append(b)
        return [wrap(lambda c: c + a * b, x), b]

    return wrap(inner, x), wrap(inner, a=x, b=3), changed, region(x, scale=3), wrap(region, x, scale=2)


@differential(lambda: (torch.ones(2, 2),), graphs=1)
def test_operators_that_set_a_mode(x):
    ops = torch.ops.higher_order
    return (ops.wrap_with_autocast("cpu", torch.bfloat16, True, None, torch.mm, x, x),
            ops.wrap_with_set_grad_enabled(False, lambda a: torch.is_grad_enabled(), x), torch.is_grad_enabled())


@differential(lambda: (torch.arange(3.0),), graphs=1)
def test_cond_without_operands(x):
    return (torch.cond(x.sum() > 0, lambda: x + 1, lambda: x - 1), torch.cond(x.dim() > 1, lambda: x * 2, lambda: x * 3),
            torch.cond(x.sum() > 9, false_fn=lambda: torch.zeros(2), true_fn=lambda: torch.ones(2)))


@differential(lambda: (torch.arange(3.0),))
def test_cond_of_no_operands_at_all(x):
    try:
        return torch.cond(True, torch.sin, torch.cos, None)
    except (TypeError, RuntimeError) as error:
        return type(error)
