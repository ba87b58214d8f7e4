"""torch.func: transforms made in the function and before it, nested, with state of modules, and what they refuse."""

import pytest
import torch
from torch import nn

import framegraft

from .differential import differential


def two():
    return torch.arange(6.0).reshape(2, 3), torch.tensor([[1.0, -2.0, 3.0], [0.5, 0.0, -1.0]])


def with_grad():
    return torch.arange(1.0, 4.0, requires_grad=True), torch.ones(3, requires_grad=True)


@differential(with_grad, graphs=1)
def test_grad(x, w):
    return torch.func.grad(lambda a: (a * w).sin().sum())(x)


@differential(two, graphs=1)
def test_grad_with_value_and_more(x, y):
    def f(a, b):
        assert a.requires_grad and a.shape == (2, 3)
        return (a * b).sum(), {"out": a + 1, "shift": [b, y]}

    return torch.func.grad_and_value(f, argnums=(0, 1), has_aux=True)(x, y)


@differential(two, graphs=1)
def test_derivatives(x, y):
    def cube(a):
        return (a**3).sum()

    row = x[0]
    return (torch.func.jacrev(lambda a: a.sin())(row),
            torch.func.jacfwd(lambda a: a * y[0])(row), torch.func.hessian(cube)(row),
            torch.func.grad(lambda a: torch.func.grad(cube)(a).sum())(row), torch.func.jvp(lambda a: a.sin(), (x,), (y,)))


@differential(two, graphs=1)
def test_vmap(x, y):
    def f(a, d):
        assert a.shape == (3,) and a.dim() == 1
        return {"sum": a.sum() + d["b"], "outer": (a.reshape(3, 1) @ a[None], 2 * d["b"])}

    @torch.vmap
    def decorated(a):
        return a.max()

    return torch.vmap(f, in_dims=(0, {"b": None}))(x, {"b": y[0]}), decorated(y), torch.vmap(torch.dot)(x, y)


@differential(two, graphs=1)
def test_random_numbers_under_vmap(x, y):
    return torch.vmap(lambda a: a + torch.rand(3), randomness="different")(x), torch.rand(2)


@differential(two, graphs=1)
def test_changes_of_what_the_function_makes(x, y):
    def f(a):
        with torch.no_grad():
            scale = a * 2
        b = a.clone()
        b.mul_(scale)
        b[0] = a[1]
        parts = []
        for row in b:
            parts.append(row)
        return sum(parts).sum()

    with torch.no_grad():
        return torch.func.grad(f)(x)


@differential(two)
def test_side_effects(x, y):
    seen = []
    total = 0

    def f(a):
        nonlocal total
        seen.append(a.shape)
        total += 1
        return a.sum()

    return torch.func.grad(f)(x), torch.vmap(f)(x), seen, total


@differential(two)
def test_changes_of_other_tensors(x, y):
    def f(a):
        y.add_(1)
        return (a * y).sum()

    return torch.func.grad(f)(x), y


@differential(two)
def test_errors(x, y):
    found = []
    for f in (lambda a: a * 2, lambda a: a.sum().item(), lambda a: None):
        try:
            found.append(torch.func.grad(f)(x))
        except Exception as error:
            found.append(type(error))
    return found


@differential(two)
def test_branches_on_values(x, y):
    return torch.func.grad(lambda a: a.sum() if a.sum() > 3 else (a * 2).sum())(x)


MADE_BEFORE = torch.func.grad(lambda a: (a**3).sum())
VECTORISED = torch.vmap(lambda a, b: a * b, in_dims=(0, None))


@differential(two, graphs=1)
def test_transforms_made_before(x, y):
    return MADE_BEFORE(x), VECTORISED(x, y)


@differential(two)
def test_transforms_that_leave_the_function(x, y):
    f = torch.func.grad(lambda a: (a * y).sum())
    return f(x), f.__name__


@differential(two, graphs=1)
def test_pullbacks(x, y):
    out, pull = torch.func.vjp(lambda a: a.sin(), x)
    several, pull_several = torch.func.vjp(lambda a, b: {"a": a * b, "b": [(b * y).sum()]}, x, y)
    loss, pull_loss, more = torch.func.vjp(lambda a: (LAYER(a).sum(), {"twice": a * 2}), x, has_aux=True)
    inside = torch.vmap(lambda a, b: torch.func.vjp(torch.sin, a)[1](b)[0])(x, y)
    return (out, pull(y), pull(y * 2), several, pull_several({"a": x, "b": [torch.tensor(2.0)]}), loss, pull_loss(torch.tensor(1.0)), more,
            inside)


LAYER = nn.Linear(3, 3)


@differential(two)
def test_pullbacks_of_what_changes(x, y):
    factors, found = [2], []
    out, pull = torch.func.vjp(lambda a: a * factors[0], x)
    factors[0] = 3
    found.append(pull(y))
    other, pull = torch.func.vjp(lambda a: a * torch.rand(3), x)
    found.append(pull(y))
    weight = torch.ones(3)
    third, pull = torch.func.vjp(lambda a: a * weight, x)
    weight.add_(1)
    try:
        found.append(pull(y))
    except RuntimeError as error:
        found.append(type(error))
    return out, other, third, found


@differential(two)
def test_pullbacks_behind_breaks(x, y):
    out, pull = torch.func.vjp(lambda a: a * y, x)
    print("between")
    return out, pull(y), pull.__name__


@differential(two, graphs=1)
def test_chunks(x, y):
    def f(a, b):
        return a * b, {"sum": a.sum() + y[0]}

    return (torch.vmap(lambda a: a.cos(), chunk_size=1)(x), torch.vmap(f, in_dims=1, out_dims=(1, {"sum": 0}), chunk_size=2)(x, y),
            torch.vmap(f, chunk_size=10)(x, y), torch.func.jacrev(lambda a: a.sin() * y[0], chunk_size=2)(x[0]))


def model():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Dropout(0.5), nn.BatchNorm1d(4), nn.Linear(4, 1))


NET = model()
EVAL = model().eval()


@differential(two, graphs=1)
def test_functional_call(x, y):
    params = {name: p.detach() * 2 for name, p in NET.named_parameters()}
    buffers = {name: b.clone() for name, b in NET.named_buffers()}
    return torch.func.functional_call(NET, (params, buffers), (x,)), buffers, NET[0].weight.sum()


@differential(two, graphs=1)
def test_gradients_of_each_sample(x, y):
    params = {name: p.detach() for name, p in EVAL.named_parameters()}

    def loss(params, sample, target):
        out = torch.func.functional_call(EVAL, params, (sample[None],))
        return ((out - target.sum()) ** 2).sum()

    return torch.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(params, x, y)


@differential(two)
def test_gradients_are_not_asked_for_inside(x, y):
    found = []

    def asks(a, of=None, *wanted):
        (a if of is None else of).requires_grad_(*wanted)
        return (a * 2).sum()

    leaf = y.clone().requires_grad_()
    for attempt in (
        lambda: torch.func.grad(asks)(x),
        lambda: torch.vmap(lambda a: asks(a, None, False))(x),
        lambda: torch.func.grad(lambda a: asks(a, leaf))(x),
        lambda: torch.func.jvp(lambda a: asks(a, leaf), (x,), (y,)),
    ):
        try:
            found.append(attempt())
        except RuntimeError as error:
            found.append(error.args)
    return found


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=[pytest.mark.inductor, pytest.mark.slow])])
def test_behind_compilers(backend):
    def f(params, x):
        loss = torch.func.grad_and_value(lambda p: torch.func.functional_call(EVAL, p, (x,)).pow(2).sum())
        return loss(params), torch.vmap(lambda a: a.softmax(0))(x), torch.func.jacrev(lambda a: a.sin())(x[0])

    params = {name: p.detach() for name, p in EVAL.named_parameters()}
    x = torch.randn(4, 3)
    compiled = framegraft.compile(f, backend=backend, fullgraph=True)
    torch.testing.assert_close(compiled(params, x), f(params, x))


def test_levels_end_when_the_graph_fails():
    def f(x, i):
        return torch.vmap(lambda a: a.gather(0, i))(x)

    compiled = framegraft.compile(f, backend="eager")
    x = torch.ones(2, 3)
    compiled(x, torch.tensor([1]))
    with pytest.raises(RuntimeError):
        compiled(x, torch.tensor([7]))
    assert torch._C._functorch.maybe_current_level() is None
    assert torch.equal(compiled(x, torch.tensor([0])), torch.ones(2, 1))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_numbers_that_only_the_function_looks_at(backend):
    factor = [1.0]

    def f(x):
        return torch.vmap(lambda y: y * factor[0])(x) + x.sum()

    compiled = framegraft.compile(f, backend=backend)
    with framegraft.config.patch(raise_internal_errors=True):
        for factor[0] in (1.0, 2.0, 3.5, 2, 4, True):
            assert torch.equal(compiled(torch.ones(3)), f(torch.ones(3)))


@differential(two)
def test_transforms_that_fail_on_fake_tensors(x, y):
    found = torch.vmap(torch.func.hessian(lambda a: (a**3).sum()))(x)
    return found, torch.func.jvp(torch.sin, (x,), (y,))


def test_dispatch_keys_after_a_transform_that_fails_on_fake_tensors():
    def f(x):
        return torch.vmap(torch.func.hessian(lambda a: (a**3).sum()))(x)

    x = torch.arange(6.0).reshape(2, 3)
    before = str(torch._C._dispatch_tls_local_include_set()), str(torch._C._dispatch_tls_local_exclude_set())
    with pytest.raises(framegraft.exc.Unsupported):
        framegraft.compile(f, backend="eager", fullgraph=True)(x)
    assert (str(torch._C._dispatch_tls_local_include_set()), str(torch._C._dispatch_tls_local_exclude_set())) == before
    assert torch.equal(f(x), 6 * torch.diag_embed(x))


class Log:
    def __init__(self):
        self.calls, self.seen = 0, []


@differential(lambda: (*two(), Log()), graphs=1, calls=1)
def test_functions_that_change_objects_from_outside(x, y, log):
    count = 0

    def f(a):
        nonlocal count
        count += 1
        log.calls += 1
        log.seen.append((a.shape, a.dim(), y))
        log.last, made = y, []
        made.append(a * 2)
        return (a**3).sum() * log.calls + made[0].sum()

    return (torch.func.grad(f)(x), torch.vmap(torch.func.grad(f))(x), torch.func.jacrev(f)(x), torch.func.hessian(f)(x[0]),
            torch.vmap(f, chunk_size=1)(x), torch.func.jvp(f, (x,), (y,)), count, log.seen[0][2] is y)


@differential(two)
def test_functions_that_leave_their_tensors(x, y):
    left, kept = [], Log()

    def f(a):
        inner = []
        left.append(inner)
        inner.append({"sine": a.sin()})
        return a.sum()

    def nested(a):
        def g(b):
            kept.seen.append(b * 2)
            return b.sum()

        grad = torch.func.grad(g)(a)
        kept.seen.clear()
        return (grad * a).sum()

    return torch.func.grad(f)(x), len(left), torch.func.grad(nested)(y)


@differential(two)
def test_pullbacks_of_functions_that_change_objects(x, y):
    calls = []

    def f(a):
        calls.append(len(calls))
        return a.sin()

    out, pull = torch.func.vjp(f, x)
    return out, pull(y), calls


def test_branches_that_change_objects():
    def f(x, calls):
        def g(a):
            calls.append(1)
            return a.sin().sum()

        return torch.cond(x.sum() > 0, lambda a: torch.func.grad(g)(a), lambda a: a * 2, (x,))

    with pytest.raises(framegraft.exc.Unsupported, match="a side effect"):
        framegraft.compile(f, backend="eager", fullgraph=True)(torch.ones(3), [])


@differential(two, graphs=2, calls=3)
def test_transforms_wait_behind_a_break(x, y):
    grad = torch.func.grad(lambda a: (a * y).sin().sum())
    rows, second = torch.vmap(lambda a, b: a * b, in_dims=(0, None)), torch.func.hessian(lambda a: (a**3).sum())
    z = x + 1
    framegraft.graph_break()
    return grad(z), rows(z, y[0]), second(y[0])


@differential(lambda: (torch.func.grad(lambda a: (a**2).sum()), *two()), graphs=1, calls=3)
def test_transforms_made_for_each_call(grad, x, y):
    return grad(x) + y
