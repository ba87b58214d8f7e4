"""torch.autograd.Function: what forward may do with ctx, and what it may not do to the rest."""

import pytest
import torch

import framegraft

from .differential import differential


def with_grad():
    return torch.arange(1.0, 4.0, requires_grad=True), torch.ones(3, requires_grad=True)


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor, options):
        ctx.factor = factor
        ctx.saved = {"options": options}
        ctx.saved["shape"] = x.shape
        ctx.save_for_backward(x)
        parts = []
        for i in range(2):
            parts.append(x * i)
        return parts[1] * factor

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * ctx.factor * x.sign(), None, None


@differential(with_grad, graphs=1)
def test_attributes_of_ctx(x, w):
    return Scaled.apply(x, 3, {"a": 1}) * w


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


@differential(with_grad, graphs=1)
def test_mark_dirty(x, w):
    y = x * 1
    z = Doubled.apply(y)
    return z is y, z, y, (y * w).sum()


class Apart(torch.autograd.Function):
    @staticmethod
    def forward(x, y):
        return x * y, (x + y).long()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, grad, _):
        x, y = ctx.saved_tensors
        return grad * y, grad * x


@differential(with_grad, graphs=1)
def test_setup_context(x, w):
    return Apart.apply(x, w)


class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.needs = ctx.needs_input_grad
        return x.exp()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        return grad if ctx.needs[0] else None


@differential(with_grad, graphs=1)
def test_once_differentiable(x, w):
    return Once.apply(x), Once.apply(w.detach())


class Noisy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, into):
        into["n"] = len(into)
        return x + 1

    @staticmethod
    def backward(ctx, grad):
        return grad, None


@differential(lambda: (torch.ones(2, requires_grad=True), {}))
def test_side_effects_of_forward(x, into):
    local = {}
    y = Noisy.apply(x, into)
    return y, Noisy.apply(y, local), local


class Mixed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view(-1), None, "text", [x, 1], x

    @staticmethod
    def backward(ctx, grad, *rest):
        return grad


@differential(with_grad)
def test_results_of_all_kinds(x, w):
    flat, nothing, text, items, same = Mixed.apply(x * w)
    return flat, nothing, text, items, same


class Misused(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(1)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad


@differential(with_grad)
def test_save_for_backward_of_a_number(x, w):
    return Misused.apply(x)


class Foreign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.relu()

    @staticmethod
    def backward(ctx, grad):
        return grad


@differential(lambda: (torch.ones(2, requires_grad=True),))
def test_apply_kept_as_a_function(x):
    relu = Foreign.apply
    return [relu(x) for _ in range(2)]


@pytest.mark.parametrize("argument", [lambda n: n | 8, lambda n: n + 1, lambda n: n])
def test_numbers_that_change(argument):
    """The trace looks into forward once more than the graph has it: numbers computed for that must be there for the graph too."""
    def scaled(x, n):
        return Scaled.apply(x, argument(n), {})

    compiled = framegraft.compile(scaled, backend="eager")
    x = torch.arange(1.0, 4.0, requires_grad=True)
    for n in (3, 4, 5, 6):
        torch.testing.assert_close(compiled(x, n), scaled(x, n), rtol=0, atol=0)


class CallsBack(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, fn, back):
        ctx.back = back
        ctx.save_for_backward(x)
        return fn(x)

    @staticmethod
    def backward(ctx, grad):
        return ctx.back(grad, *ctx.saved_tensors), None, None


def doubled(x):
    return x * 2


class Holder:
    back = staticmethod(lambda grad, x: grad * 5 * x)


HOLDER = Holder()


@differential(with_grad, graphs=1)
def test_functions_as_arguments(x, w):
    y = CallsBack.apply(x, lambda v: v * 3, lambda grad, v: grad * v)
    return CallsBack.apply(y, doubled, HOLDER.back)


@differential(lambda: (*with_grad(), lambda v: v * 4))
def test_functions_from_anywhere_as_arguments(x, w, fn):
    def back(grad, v):
        return grad * v * k

    k = 3
    y = CallsBack.apply(x, fn, back)
    return CallsBack.apply(y, lambda v: v * k, lambda grad, v, more=2: grad * more), back(1, 2)


SCALE, LISTED = 1, [1]


class Kept:
    scale = 1


KEPT = Kept()


class LooksAround(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * scale_of(x)

    @staticmethod
    def backward(ctx, grad):
        return grad * scale_of(grad)


def scale_of(x):
    return SCALE + KEPT.scale + Kept.scale + len(LISTED)


@differential(lambda: (*with_grad(), 1), calls=3)
def test_changes_before_the_call(x, w, n):
    global SCALE
    out = []
    SCALE += n
    out.append(LooksAround.apply(x))
    KEPT.scale = 7 * n
    out.append(LooksAround.apply(x))
    LISTED.append(n)
    out.append(LooksAround.apply(x))
    return out


class Counts:
    steps = 0


@differential(lambda: (*with_grad(), Counts()), graphs=1)
def test_changes_that_it_cannot_see(x, w, counts):
    counts.steps += 1
    return CallsBack.apply(x, doubled, HOLDER.back), counts.steps


@differential(with_grad, build=True)
def test_changes_of_cells_before_the_call():
    k = 1

    class Local(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * k

        @staticmethod
        def backward(ctx, grad):
            return grad * k

    def f(x, w):
        nonlocal k
        k += 1
        return Local.apply(x)

    return f


class Keeps(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, items):
        ctx.kept = {"items": (items,)}
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        items, = ctx.kept["items"]
        return grad * sum(items), None


class Reads(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, items):
        ctx.sum = sum(items)
        items = list(items)
        items.append(1)
        return x * len(items)

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.sum, None


def with_list():
    return torch.arange(1.0, 4.0, requires_grad=True), [2, 3]


@differential(with_list)
def test_list_that_grows_after_the_call(x, items):
    y = Keeps.apply(x, items)
    items.append(4)
    return y


@differential(with_list)
def test_list_of_the_function_that_grows_after_the_call(x, items):
    mine = [2, 3]
    y = Keeps.apply(x, mine)
    mine.append(4)
    return y


@differential(with_list)
def test_dict_that_changes_after_the_call(x, items):
    mine = {1: 2}
    y = Keeps.apply(x, mine)
    mine[4] = 5
    return y, mine


@differential(with_list)
def test_list_that_is_returned(x, items):
    mine = [1]
    y = Keeps.apply(x, [mine])[0] if x is None else Keeps.apply(x, mine)
    return y, mine


@differential(with_list, graphs=1)
def test_list_that_is_read(x, items):
    y = Reads.apply(x, items)
    items.append(3)
    mine = [1, 2]
    return y + Reads.apply(x, mine) + Keeps.apply(x, [4, 5]), mine


class Same(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, one, other):
        return x * 2 if one is other else x * 3

    @staticmethod
    def backward(ctx, grad):
        return grad, None, None


@differential(with_list)
def test_list_that_is_passed_twice(x, items):
    return Same.apply(x, items, items) + Same.apply(x, items, [2, 3])


def test_list_that_changes_before_the_backward_pass():
    def run(fn):
        items = [2, 3]
        for _ in range(2):
            x = torch.ones(3, requires_grad=True)
            y = fn(x, items)
            items[0] += 5
            y.sum().backward()
            yield x.grad.tolist()

    def f(x, items):
        return Keeps.apply(x, items)

    assert list(run(framegraft.compile(f, backend="eager"))) == list(run(f))


class Calls(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, fn, *more):
        ctx.count = len(more)
        return fn(x)

    @staticmethod
    def backward(ctx, grad):
        return (grad * 2, *[None] * (ctx.count + 1))


class Compares(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, one, other):
        return one(x) * (2 if one is other else 3) + (5 if one.__name__ == "<lambda>" else 7)

    @staticmethod
    def backward(ctx, grad):
        return grad, None, None


def made_by(k, w):
    return lambda v: v * k + w


@differential(with_grad, graphs=1)
def test_functions_with_variables_around_them(x, w):
    k, shift = 3, w.detach() * 2

    def named(v):
        return v * k + shift

    def factorial(v, n=3):
        return v

    def twice(v):
        return named(named(v)) * up(1)

    def up(n):
        return n * 2

    return Calls.apply(x, named) + Calls.apply(w, lambda v: twice(v) - k) * Calls.apply(x, made_by(2, x.detach())), named(x)


@differential(lambda: (*with_grad(), lambda v: v * 4, made_by(3, torch.ones(3))), graphs=1)
def test_functions_that_are_parameters(x, w, fn, made):
    return Calls.apply(x, fn) + Calls.apply(w, made) + Calls.apply(x, torch.sin) * Calls.apply(w, float.__mul__ and torch.neg)


@differential(with_grad, graphs=1)
def test_identity_of_functions(x, w):
    one, other = (lambda v: v * 2), (lambda v: v * 2)
    return Compares.apply(x, one, one), Compares.apply(w, one, other)


class Casts(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, cls):
        ctx.cls = cls
        return x * cls(2.7)

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.cls(3.5), None


@differential(with_grad, graphs=1)
def test_classes_as_arguments(x, w):
    return Casts.apply(x, int) + Casts.apply(w, float)


@differential(with_grad, graphs=1)
def test_functions_that_are_kept(x, w):
    k, shift = 3, w.detach() * 2

    def back(grad, v):
        return grad * k + v * shift

    return CallsBack.apply(x, lambda v: v * k, back)


@differential(with_grad)
def test_variables_of_functions_that_are_kept(x, w):
    k, seen = 3, [1]
    y = CallsBack.apply(x, lambda v: v * k, lambda grad, v: grad * k)
    k = 5
    z = CallsBack.apply(x, lambda v: v * k, lambda grad, v: grad * len(seen))
    seen.append(2)
    for n in range(2):
        z = CallsBack.apply(z, lambda v: v * n, lambda grad, v: grad * (n + 1))
    return y, z


@differential(with_grad)
def test_functions_that_are_kept_and_returned(x, w):
    def back(grad, v):
        return grad * 2

    y = CallsBack.apply(x, lambda v: v * 3, back)
    back.note = 1
    return y, back


@differential(with_grad)
def test_variables_that_functions_store(x, w):
    n = 0

    def count(v):
        nonlocal n
        n += 1
        return v * n

    y = Calls.apply(x, count) + Calls.apply(w, count)
    return y, n


def test_parameters_that_differ():
    def f(x, fn):
        return Calls.apply(x, fn) + 1

    compiled, x = framegraft.compile(f, backend="eager"), torch.ones(3)
    marked = made_by(2, x)
    marked.__name__ = "marked"
    functions = [made_by(2, x), made_by(3, x + 1), lambda v: v * 5, lambda v, k=3: v * k, marked, torch.cos, made_by(4, 1), made_by(4, 2)]
    for fn in functions:
        assert torch.equal(compiled(x, fn), f(x, fn))


GAIN, GAINS = 2.0, [2.0]


class Gain:
    factor = 2.0


GAIN_OBJECT = Gain()


class LooksBack(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        ctx.set_materialize_grads(False)
        return x * y, x.argmax()

    @staticmethod
    def backward(ctx, grad, _):
        x, y = ctx.saved_tensors
        first, second = ctx.needs_input_grad
        gain = GAIN + GAINS[0] + GAIN_OBJECT.factor
        return grad * y * gain if first else None, grad * x if second else None


class PrintsBack(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        print("backward")
        return grad * 3


@differential(with_grad, graphs=1)
def test_backward_that_looks_around(x, w):
    return LooksBack.apply(x, w)[0] * LooksBack.apply(x, w.detach())[0]


@differential(with_grad)
def test_side_effects_of_backward(x, w):
    return PrintsBack.apply(x) * w


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_what_backward_looks_at_changes_between_calls(backend, monkeypatch):
    def f(x, w):
        return LooksBack.apply(x, w)[0] * 1

    def run(fn):
        for gain in (2.0, 3.0, 4.0, 5.0):
            monkeypatch.setitem(globals(), "GAIN", gain)
            monkeypatch.setitem(globals(), "GAINS", [gain * 2 if gain > 3 else 1.0])
            monkeypatch.setattr(GAIN_OBJECT, "factor", 1.0 if gain < 5 else 9.0)
            x, w = with_grad()
            yield [g.tolist() for g in torch.autograd.grad(fn(x, w).sum(), (x, w))]

    assert list(run(framegraft.compile(f, backend=backend))) == list(run(f))


class Closing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, function):
        ctx.function = function
        ctx.save_for_backward(x)
        return function(x) + GAINS[0]

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return grad * ctx.function(x) * GAINS[0], None


class Stepping(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor * GAIN_OBJECT.factor, None


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_numbers_that_the_caller_has_read_too(backend, monkeypatch):
    def f(x):
        gain = GAINS[0]
        factor = GAIN_OBJECT.factor
        return Closing.apply(x, lambda v: v * gain) * factor + Stepping.apply(x, gain)

    def run(fn):
        for gain in (2.0, 3.0, 4.0, 5.0):
            monkeypatch.setitem(globals(), "GAINS", [gain])
            monkeypatch.setattr(GAIN_OBJECT, "factor", gain + 1)
            x, _ = with_grad()
            y = fn(x)
            y.sum().backward()
            yield y.tolist(), x.grad.tolist()

    assert list(run(framegraft.compile(f, backend=backend))) == list(run(f))
