"""AOTAutograd and inductor behind a capture: aliases, views, mutation, modes; what one set of inputs showed must not be taken
for granted with the next."""

import warnings

import pytest
import torch
import torch.nn as nn

import framegraft

BACKENDS = ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)]


def run(fn, make, *more):
    """What the call gives, and its inputs afterwards."""
    inputs = make()
    return fn(*inputs, *more), inputs


def same_everywhere(f, makes, backend):
    compiled = framegraft.compile(f, backend=backend)
    for make in makes:
        for _ in range(2):
            torch.testing.assert_close(run(compiled, make), run(f, make))


def apart():
    return torch.arange(6.0), torch.arange(6.0)


def overlapping():
    base = torch.arange(9.0)
    return base[:6], base[3:]


def one_in_another():
    base = torch.arange(6.0)
    return base, base.view(6)


def neighbours():
    base = torch.arange(12.0)
    return base[:6], base[6:]


def swapped():
    base = torch.arange(9.0)
    return base[3:], base[:6]


def detached():
    base = torch.arange(6.0)
    return base.detach(), base


LAYOUTS = [apart, overlapping, one_in_another, neighbours, swapped, detached]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("first", LAYOUTS, ids=lambda f: f.__name__)
def test_overlap_of_inputs(backend, first):
    def f(x, y):
        x.mul_(2)
        z = y + 1
        y.add_(10)
        return z * x

    same_everywhere(f, [first, *LAYOUTS, first], backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_offset_of_an_input_whose_view_is_returned(backend):
    base = torch.arange(20.0).reshape(5, 4)

    def f(x):
        return x[1:], x * 2

    compiled = framegraft.compile(f, backend=backend)
    for row in range(5):
        view, doubled = compiled(base[row])
        assert torch.equal(view, base[row][1:]) and torch.equal(doubled, base[row] * 2)
        view.fill_(-1)
        assert (base[row][1:] == -1).all()
    counter = framegraft.testing.CompileCounter()
    compiled = framegraft.compile(f, backend=counter)
    for row in range(5):
        compiled(base[row])
    assert counter.frame_count == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_output_is_an_input_or_twice_the_same(backend):
    def f(x, y):
        z = x + y
        return x, z, z, y.t()

    compiled = framegraft.compile(f, backend=backend)
    x, y = torch.ones(3, 3), torch.rand(3, 3)
    a, b, c, d = compiled(x, y)
    assert a is x and b is c
    d.zero_()
    assert (y == 0).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_leaf_changed_without_grad(backend):
    def f(w, x):
        with torch.no_grad():
            w.mul_(0.5)
        return (w * x).sum()

    def step(fn):
        w = torch.ones(3, requires_grad=True)
        x = torch.arange(3.0)
        for _ in range(2):
            fn(w, x).backward()
        return w, w.grad

    torch.testing.assert_close(step(framegraft.compile(f, backend=backend)), step(f))


class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count += 1
        return self.norm(self.lin(x)).relu()


@pytest.mark.parametrize("backend", ["eager", *BACKENDS])
@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad, torch.inference_mode])
def test_buffers(backend, mode):
    results = []
    for wrap in (lambda m: m, lambda m: framegraft.compile(m, backend=backend)):
        torch.manual_seed(0)
        model = Norms()
        call = wrap(model)
        outs = []
        for training in (True, False, True, True):
            model.train(training)
            with mode():
                outs.append(call(torch.randn(5, 4)))
        if mode is torch.enable_grad:
            sum(o.sum() for o in outs).backward()
        results.append((outs, dict(model.state_dict()), [p.grad for p in model.parameters()]))
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-5)
    for out, expected in zip(*(r[0] for r in results), strict=True):
        assert out.requires_grad == expected.requires_grad and out.is_inference() == expected.is_inference()


@pytest.mark.parametrize("backend", BACKENDS)
def test_grad_mode_inside(backend):
    def f(x, w):
        with torch.no_grad():
            a = x * w
        return a, x * w, (x * w).detach()

    x, w = torch.ones(3), torch.ones(3, requires_grad=True)
    compiled = framegraft.compile(f, backend=backend)
    assert [t.requires_grad for t in compiled(x, w)] == [t.requires_grad for t in f(x, w)]
    with torch.no_grad():
        assert [t.requires_grad for t in compiled(x, w)] == [False] * 3


def test_dropout_draws_the_same_numbers_with_eager():
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 8), nn.Dropout(0.3))
    compiled = framegraft.compile(model, backend="eager")
    x = torch.randn(3, 8)
    for seed in range(3):
        torch.manual_seed(seed)
        expected = model(x), torch.rand(2)
        torch.manual_seed(seed)
        got = compiled(x), torch.rand(2)
        assert framegraft.testing.same(got, expected)


@pytest.mark.parametrize("backend", BACKENDS)
def test_two_calls_then_one_backward(backend):
    def f(w, x):
        return (w * x).tanh()

    grads = []
    for fn in (f, framegraft.compile(f, backend=backend)):
        w = torch.linspace(0, 1, 4, requires_grad=True)
        (fn(w, torch.ones(4)).sum() + fn(w, torch.full((4,), 2.0)).sum()).backward()
        grads.append(w.grad)
    torch.testing.assert_close(*grads)


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradient_through_a_break(backend):
    def f(w, x):
        y = (w * x).sin()
        print(end="")
        return (y * w).sum()

    grads = []
    for fn in (f, framegraft.compile(f, backend=backend)):
        w = torch.linspace(0, 1, 4, requires_grad=True)
        fn(w, torch.ones(4)).backward()
        grads.append(w.grad)
    torch.testing.assert_close(*grads)


@pytest.mark.parametrize("backend", BACKENDS)
def test_same_parameter_twice(backend):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(3, 3, bias=False)
            self.b = nn.Linear(3, 3, bias=False)
            self.b.weight = self.a.weight

        def forward(self, x):
            return self.b(self.a(x)).sum()

    model = Tied()
    compiled = framegraft.compile(model, backend=backend)
    x = torch.ones(2, 3)
    model(x).backward()
    expected = model.a.weight.grad.clone()
    model.a.weight.grad = None
    compiled(x).backward()
    torch.testing.assert_close(model.a.weight.grad, expected)
    model.b.weight = nn.Parameter(torch.ones(3, 3))
    torch.testing.assert_close(compiled(x), model(x))


def test_a_view_that_has_left_its_base():
    def fn(base, view):
        base.add_(1)
        return view * 2

    base = torch.ones(3)
    view = base.view(3)
    view.data = torch.arange(4.0)
    assert framegraft.compile(fn, backend="aot_eager")(base, view).tolist() == [0.0, 2.0, 4.0, 6.0]
    assert base.tolist() == [2.0, 2.0, 2.0] and view.tolist() == [0.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_backward_passes_whose_sizes_the_data_decides(backend):
    def f(x, mask):
        y = torch.zeros_like(x)
        y[mask] = x.sin().sum()
        return y * 2

    def step(fn):
        x = torch.arange(6.0).reshape(2, 3).requires_grad_()
        for n in (3, 5):
            fn(x, x > n).cos().sum().backward()
        return fn(x, x > 1), x.grad

    compiled = framegraft.compile(f, backend=backend)
    torch.testing.assert_close(step(compiled), step(f))
    assert framegraft.stats()["graph_breaks"] == 0


def product(y, w):
    y.mul_(w)
    return y.sum() + w.sum()


def power(y, w):
    return y.pow_(2).sum()


def part_of_a_view(y, w):
    y.view(-1)[2:].mul_(w.view(-1)[2:])
    return y.sum()


def needed_later(y, w):
    z = y * w
    y.add_(1)
    return z.sum() + y.sum()


@pytest.mark.parametrize("backend", [*BACKENDS, "aot_eager_decomp_partition"])
@pytest.mark.parametrize("f", [product, power, part_of_a_view, needed_later], ids=lambda f: f.__name__)
def test_inputs_that_are_written_to_and_needed_for_gradients(backend, f):
    """Eager mode saves what they were; it fails in the backward pass where something else has saved them."""

    def step(fn):
        x, w = torch.arange(6.0).reshape(2, 3).requires_grad_(), torch.full((2, 3), 2.0).requires_grad_()
        seen = []
        for y in (x * 1, x.detach().clone(), x[torch.tensor([1, 0])]):
            loss = fn(y, w)
            seen += [y.detach().clone(), y.requires_grad]
            if loss.requires_grad:
                try:
                    loss.backward()
                except RuntimeError as error:
                    seen.append(str(error).split(":")[0])
        return *seen, x.grad, w.grad

    expected, found = step(f), step(framegraft.compile(f, backend=backend))
    assert framegraft.testing.same(expected, found), (expected, found)


DRAWN = {
    "randn_like": torch.randn_like,
    "randint_like": lambda x: torch.randint_like(x, 0, 99),
    "exponential": lambda x: torch.empty_like(x).exponential_(),
    "geometric": lambda x: torch.zeros_like(x).geometric_(0.3),
    "random": lambda x: torch.zeros_like(x).random_(0, 100),
    "gumbel_softmax": torch.nn.functional.gumbel_softmax,
    "rrelu": lambda x: torch.nn.functional.rrelu(-x.abs(), training=True),
}


@pytest.mark.parametrize("drawn", DRAWN.values(), ids=DRAWN)
def test_equal_operations_that_draw_random_numbers(drawn):
    """torch's partitioner took two of them for one."""

    def f(x, w):
        noisy = (x + drawn(x)) @ w
        return (noisy * (x + drawn(x))).sum()

    def step(fn):
        torch.manual_seed(0)
        w = torch.ones(4, 4, requires_grad=True)
        losses = [fn(torch.ones(4, 4), w) for _ in range(2)]
        sum(losses).backward()
        return losses, w.grad, torch.rand(2)

    torch.testing.assert_close(step(framegraft.compile(f, backend="aot_eager")), step(f), rtol=0, atol=0)


def test_equal_calls_of_an_operator_of_the_program():
    calls = []

    @torch.library.custom_op("framegraft_tests::numbered", mutates_args=())
    def numbered(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return x + len(calls)

    numbered.register_fake(torch.empty_like)
    numbered.register_autograd(lambda ctx, g: g)

    def f(x, w):
        return (numbered(x) * w + numbered(x) * w * w).sum()

    def step(fn):
        calls.clear()
        w = torch.full((3,), 2.0, requires_grad=True)
        loss = fn(torch.ones(3), w)
        loss.backward()
        return loss, w.grad, torch.tensor(len(calls))

    torch.testing.assert_close(step(framegraft.compile(f, backend="aot_eager")), step(f))


def test_compilers_warn_of_nothing_that_eager_mode_does_not():
    def writes_what_it_saves(x):
        y = x * w
        z = y.sigmoid() * y
        y.add_(1)
        return z

    w = torch.nn.Parameter(torch.ones(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled = framegraft.compile(writes_what_it_saves, backend="aot_eager")
        torch.testing.assert_close(compiled(torch.ones(3)), writes_what_it_saves(torch.ones(3)))


TOLD: list[float] = []


@torch.library.custom_op("framegraft_aot_tests::tell", mutates_args=())
def tell(x: torch.Tensor) -> None:
    TOLD.append(float(x.detach().sum()))


@tell.register_fake
def _(x):
    return None


def _tells(x):
    tell(x)
    y = x * 2
    tell(y + 1)
    return y.sin()


def _tells_last(x):
    with torch.no_grad():
        tell(x)


def _tells_of_writes(x):
    y = x.clone()
    tell(y)
    y.add_(1)
    tell(y)
    return y, y[0]


@pytest.mark.parametrize("fn", [_tells, _tells_last, _tells_of_writes])
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("requires_grad", [False, True])
def test_operators_that_give_nothing_run(fn, backend, requires_grad):
    compiled = framegraft.compile(fn, backend=backend, fullgraph=True)
    for scale in (1.0, 2.0):
        told = []
        for call in (fn, compiled):
            TOLD.clear()
            x = (torch.ones(3) * scale).requires_grad_(requires_grad)
            result = call(x)
            if requires_grad and isinstance(result, torch.Tensor):
                result.sum().backward()
            told.append((list(TOLD), x.grad))
        assert told[0][0] == told[1][0]
        torch.testing.assert_close(told[0][1], told[1][1])


def written_by_data(x, w):
    y = x * w * x
    x.data.add_(1)
    return y


def written_by_data_before(x, w):
    w.data.add_(1)
    y = x * w * x
    w.data.mul_(2)
    return y


def data_set_anew(x, w):
    y = x.sin()
    x.data = x.data + 1
    return y * w + x.cos()


@pytest.mark.parametrize("backend", [*BACKENDS, "aot_eager_decomp_partition"])
@pytest.mark.parametrize("wanting", [(True, True), (False, True), (True, False)])
@pytest.mark.parametrize("f", [written_by_data, written_by_data_before, data_set_anew], ids=lambda f: f.__name__)
def test_data_that_is_written_to_and_needed_for_gradients(backend, f, wanting):
    """The backward pass of eager mode finds saved inputs as they have become, and results as they were."""

    def step(fn):
        seen = []
        for _ in range(2):
            x, w = torch.arange(1.0, 4.0).requires_grad_(wanting[0]), torch.full((3,), 0.5).requires_grad_(wanting[1])
            result = fn(x, w)
            result.sum().backward()
            seen += [result, x, w, x.grad, w.grad, x._version, w._version]
        return seen

    expected, found = step(f), step(framegraft.compile(f, backend=backend))
    assert framegraft.testing.same(expected, found), (expected, found)
    assert framegraft.stats()["graph_breaks"] == 0 or f is data_set_anew and wanting[0]


@pytest.mark.parametrize("backend", ["aot_eager", "aot_eager_decomp_partition"])
def test_writes_to_data_are_none_that_autograd_counts(backend):
    """What was computed from the tensor before can go through its backward pass, as in eager mode."""

    def shrink(p):
        p.data.mul_(0.5)

    def step(fn):
        p = torch.arange(3.0).requires_grad_()
        loss = (p * p).sum()
        fn(p)
        loss.backward()
        return p, p.grad, p._version

    assert framegraft.testing.same(step(shrink), step(framegraft.compile(shrink, backend=backend)))


@pytest.mark.parametrize("backend", ["aot_eager", "aot_eager_decomp_partition"])
def test_writes_to_data_of_what_overlaps(backend):
    def f(x, y):
        x.data.add_(1)
        y.data.mul_(2)
        return y * 1 + x

    def run(fn):
        base = torch.zeros(4)
        inputs = [(torch.zeros(3), torch.ones(3)), (base[:3], base[1:]), (base[:3], base[:3])]
        return [fn(*each) for each in inputs], inputs

    assert framegraft.testing.same(run(f), run(framegraft.compile(f, backend=backend)))
