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


class Squared(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2 * x


@differential(with_grad)
def test_backward_twice_behind_a_break(x, y):
    squared = Squared.apply(x)
    framegraft.graph_break()
    squared.sum().backward()
    try:
        squared.sum().backward()
    except RuntimeError as error:
        return type(error), x.grad
    return x.grad


@differential(with_grad)
def test_what_is_saved_is_unpacked_once(x, y):
    log = []

    def pack(tensor):
        log.append("pack")
        return tensor

    def unpack(tensor):
        log.append("unpack")
        return tensor * 1

    framegraft.graph_break()
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        squared = Squared.apply(x)
        sine = y.sin()
        framegraft.graph_break()
    squared.sum().backward()
    saved = sine.grad_fn._saved_self
    return log, saved, x.grad


class Tuned(Scaled):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor


@differential(with_grad, graphs=1)
def test_apply_of_instances(x, w):
    tuned = Tuned(4)
    return Tuned(2).apply(x, 3, {}) * tuned.factor + tuned.apply(w, tuned.factor, {})


@differential(with_grad)
def test_instances_that_leave_the_trace(x, w):
    tuned = Tuned(4)
    y = tuned.apply(x, 3, {})
    print("break")
    try:
        tuned(x)
    except RuntimeError as error:
        return y, tuned, tuned.factor, tuned.apply(w, 2, {}), tuned.needs_input_grad, str(error)


@torch.library.custom_op("framegraft_tests::shifted", mutates_args=())
def shifted_kernel(x: torch.Tensor, by: float) -> torch.Tensor:
    return _shift(x, by)


def _shift(x, by):
    return x + by


shifted_kernel.register_fake(lambda x, by: torch.empty_like(x))


class Shifts(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return _shift(x, 1) * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


@differential(lambda: (torch.ones(3, requires_grad=True),), graphs=2)
def test_what_a_graph_calls_is_not_captured_in_its_turn(x):
    y = Shifts.apply(x + 1)
    print("a break")
    return y * 3


@differential(lambda: (torch.ones(3),), graphs=2)
def test_what_a_custom_operator_calls_is_not_captured_in_its_turn(x):
    y = torch.ops.framegraft_tests.shifted(x + 1, 2.0)
    print("a break")
    return y * 3
