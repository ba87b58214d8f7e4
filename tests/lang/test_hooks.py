"""Hooks on the gradients of tensors that the captured function makes."""

import pytest
import torch

import framegraft

from .differential import differential


def leaves():
    return torch.arange(6.0).reshape(2, 3).requires_grad_(), torch.ones(2, 3)


@differential(leaves, graphs=1)
def test_gradient_is_scaled(x, y):
    z = x * y
    z.register_hook(lambda g: g * 2)
    return (z * 3).sum()


@differential(leaves, graphs=1)
def test_hook_with_values_from_around(x, y):
    z, k, w = x * 2, 3.0, y + 1

    def hook(grad):
        return grad * k + w if torch.is_grad_enabled() else grad * k - w

    z.register_hook(hook)
    return z.sin(), w


@differential(leaves, graphs=1)
def test_hook_on_what_was_used_before(x, y):
    z = x * 2
    w = z * 3
    handle = z.register_hook(lambda g: g * 5)
    z.register_hook(lambda g: g + 1)
    return w, handle is None


@differential(leaves, graphs=1)
def test_hook_that_only_looks(x, y):
    z = x * 2

    def hook(grad):
        grad.sum()

    z.register_hook(hook)
    return z * 2


@differential(leaves, graphs=1)
def test_views_and_writes(x, y):
    z = x * y
    v = z[0]
    v.register_hook(lambda g: g * 2)
    w = x * 3
    w.register_hook(lambda g: g * 7)
    w.mul_(y + 1)
    return z.sum() + v.sum() * 3 + w.sum()


seen = []


@differential(leaves)
def test_hook_with_a_side_effect(x, y):
    z = x * 2
    z.register_hook(lambda g: seen.append(1))
    return z * 2


@differential(leaves)
def test_handle_that_is_used(x, y):
    z = x * y
    handle = z.register_hook(lambda g: g * 2)
    w = z * 1
    handle.remove()
    return (w * 3).sum()


@differential(leaves)
def test_break_behind_a_hook(x, y):
    z = x * y
    z.register_hook(lambda g: g * 2)
    print("half-way")
    return z * 3


@differential(leaves)
def test_hooks_that_eager_mode_refuses(x, y):
    z = x * y
    z.register_hook(lambda g: g.sum())
    try:
        (y * 2).register_hook(lambda g: g)
    except RuntimeError:
        return z


class Reversal(torch.nn.Module):
    def forward(self, x):
        y = x.view_as(x)
        if y.requires_grad:
            y.register_hook(lambda g: -g * 0.5)
        return y


LAYERS = torch.nn.Sequential(*(Reversal() for _ in range(3)))


@differential(leaves, graphs=1)
def test_layers_with_hooks(x, y):
    return LAYERS(x * 2) * y


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=[pytest.mark.slow, pytest.mark.inductor])])
def test_compiled_backward_pass(backend):
    def f(x, y):
        z = LAYERS(x * 2) * y
        z.register_hook(lambda g: g.clamp(max=0.5) + y)
        return z.sin()

    compiled = framegraft.compile(f, backend=backend, fullgraph=True)
    grads = []
    for fn in (f, compiled):
        x, y = leaves()
        fn(x, y).sum().backward()
        grads.append(x.grad)
    torch.testing.assert_close(*grads)


SCALE = 2.0
SHIFT = [1.0]


class Scaled:
    def __init__(self):
        self.factor = 2.0

    def hook(self, grad):
        return grad * self.factor

    def __call__(self, grad):
        return grad * self.factor


SCALED = Scaled()


@differential(leaves)
def test_variable_that_is_stored_anew(x, y):
    z, k = x * y, 2.0
    z.register_hook(lambda g: g * k)
    k = 3.0
    return z.sum()


@differential(leaves)
def test_variable_of_a_loop(x, y):
    z = x * y
    for k in (2.0, 3.0, 5.0):
        z.register_hook(lambda g: g * k)
    return z.sum()


@differential(leaves)
def test_variable_that_another_function_stores(x, y):
    z, k = x * y, 2.0

    def other():
        nonlocal k
        k = 7.0

    z.register_hook(lambda g: g * k)
    other()
    return z.sum()


@differential(leaves)
def test_tensor_of_a_variable_that_is_stored_anew(x, y):
    z, w = x * y, y + 1
    z.register_hook(lambda g: g * w)
    w = w + 3
    return z.sum()


@differential(leaves, graphs=1)
def test_tensor_that_is_written_to(x, y):
    z, w = x * y, y + 1
    z.register_hook(lambda g: g * w)
    w.add_(3)
    return z.sum()


@differential(leaves)
def test_list_that_grows(x, y):
    z, seen = x * y, []
    z.register_hook(lambda g: g * len(seen))
    seen.append(2)
    return z.sum()


@differential(leaves)
def test_list_from_outside_that_is_changed(x, y):
    z = x * y

    def hook(grad, shift=SHIFT):
        return grad + shift[0]

    z.register_hook(hook)
    SHIFT[0] += 1
    return z.sum()


@differential(leaves)
def test_object_that_is_changed(x, y):
    z, scaled = x * y, Scaled()
    z.register_hook(scaled)
    z.register_hook(scaled.hook)
    scaled.factor = 5.0
    return z.sum()


def maker(k, w):
    def hook(grad):
        return F.relu(grad) * k + w.clamp(min=0.5)

    return hook


F = torch.nn.functional


@differential(leaves, graphs=1)
def test_hook_that_a_function_makes(x, y):
    z = x * y
    z.register_hook(maker(2.0, y))
    z.register_hook(torch.relu)
    return z.sin().sum()


def _of_a_global(x):
    z = x * 2
    z.register_hook(lambda g: g * SCALE)
    return z * 1


def _of_an_object(x):
    z = x * 2
    z.register_hook(lambda g: g * SCALED.factor)
    return z * 1


def _of_a_method(x):
    z = x * 2
    z.register_hook(SCALED.hook)
    return z * 1


def _of_a_gradient(x):
    z = x * 2
    z.register_hook(lambda g: g if x.grad is None else g + x.grad)
    return z * 1


def _of_the_default_dtype(x):
    z = x * 2
    z.register_hook(lambda g: g * (3 if torch.get_default_dtype() is torch.float64 else 5))
    return z * 1


@pytest.mark.parametrize("f", [_of_a_global, _of_an_object, _of_a_method, _of_a_gradient, _of_the_default_dtype])
def test_change_before_the_backward_pass(f, monkeypatch):
    def run(fn):
        x = torch.ones(3, requires_grad=True)
        for factor in (3.0, 4.0):
            result = fn(x)
            monkeypatch.setitem(globals(), "SCALE", factor)
            SCALED.factor = factor
            torch.set_default_dtype(torch.float64 if factor == 4.0 else torch.float32)
            try:
                result.sum().backward()
            finally:
                torch.set_default_dtype(torch.float32)
            yield x.grad.tolist()

    assert list(run(framegraft.compile(f, backend="eager"))) == list(run(f))


def _asks_for_grad_mode(x):
    z = x * 2
    z.register_hook(lambda g: g * 3 if torch.is_grad_enabled() else g * 5)
    return z * z


def _leaves_grad_mode(x):
    def hook(grad):
        with torch.no_grad():
            half = grad * 0.5
        return grad * half

    z = x * 2
    z.register_hook(hook)
    return z * z * z


def _asks_for_a_gradient(x):
    z = x * 2
    z.register_hook(lambda g: g * 3 if g.requires_grad else g * 5)
    return z * z


@pytest.mark.parametrize("f, whole", [(_asks_for_grad_mode, True), (_leaves_grad_mode, True), (_asks_for_a_gradient, False)])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_backward_pass_that_is_recorded(f, whole, backend):
    for create in (False, True):
        found = []
        for fn in (f, framegraft.compile(f, backend=backend, fullgraph=whole)):
            x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
            first, = torch.autograd.grad(fn(x).sum(), x, create_graph=create)
            second = torch.autograd.grad(first.sum(), x) if create else ()
            found.append((first.tolist(), [t.tolist() for t in second]))
        assert found[0] == found[1]


class Forgets(torch.autograd.Function):
    """Its backward pass gives no gradient."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return None


def asks(x):
    def hook(grad):
        if grad is None:
            raise ValueError("no gradient")

    y = x * 2
    y.register_hook(hook)
    return y


def makes_up(x):
    y = x * 2
    y.register_hook(lambda grad: torch.ones(3) if grad is None else grad * 3)
    return y


def checks_the_class(x):
    y = x * 2
    y.register_hook(lambda grad: grad * 3 if isinstance(grad, torch.Tensor) else torch.ones(3))
    return y


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("f", [asks, makes_up, checks_the_class])
def test_no_gradient(f, backend):
    def found(fn):
        x = torch.ones(3, requires_grad=True)
        y = fn(x)
        told = [torch.autograd.grad(y.sum(), x, retain_graph=True)[0]]
        try:
            told += torch.autograd.grad(Forgets.apply(y).sum(), x, allow_unused=True)
        except (ValueError, RuntimeError) as error:
            told.append(error)
        return repr(told)

    compiled = framegraft.compile(f, backend=backend)
    assert found(compiled) == found(compiled) == found(f)
