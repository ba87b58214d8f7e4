"""Tensors: metadata, aliasing, subclass, gradients."""

import torch

from .harness import X, outcome, probe


class Tagged(torch.Tensor):
    pass


def double(x):
    return x * 2, x.dtype, x.shape, x.stride(), x.requires_grad


@probe
def test_dtype(C):
    c = C(double)
    return [c(X().to(d)) for d in (torch.float32, torch.float64, torch.int64, torch.bool)]


@probe
def test_shape(C):
    c = C(lambda x: x.view(-1) * x.shape[0])
    return c(X(4)), c(X(6)), c(X(4).reshape(2, 2)), c(X(1))


@probe
def test_stride(C):
    c = C(lambda x: (x.stride(), x.is_contiguous(), x.reshape(-1)))
    t = torch.arange(4.0).reshape(2, 2)
    return c(t), c(t.t()), c(torch.arange(8.0).reshape(2, 4)[:, ::2])


@probe
def test_requires_grad_set_in_place(C):
    c = C(double)
    t = X()
    a = c(t)
    t.requires_grad_()
    b = c(t)
    t.requires_grad_(False)
    return a, b, c(t)


@probe
def test_metadata_changed_on_the_same_tensor(C):
    c = C(lambda x: (x + 1, x.shape, x.dtype))
    t = X(4)
    a = c(t)
    t.data = X(2).double()
    b = c(t)
    t.resize_(1, 2)
    return a, b, c(t)


@probe
def test_transposed_in_place(C):
    c = C(lambda x: (x.shape, x.stride(), x[0]))
    t = torch.arange(6.0).reshape(2, 3)
    a = c(t)
    t.t_()
    return a, c(t)


@probe
def test_subclass(C):
    c = C(lambda x: (type(x).__name__, x + 1, isinstance(x, Tagged)))
    return c(X()), c(X().as_subclass(Tagged)), c(torch.nn.Parameter(X()))


@probe
def test_arguments_alias(C):
    def f(x, y):
        x.add_(1)
        return y * 2

    c = C(f)
    t = X()
    return c(X(), X()), c(t, t), c(X(), X()), t


@probe
def test_arguments_overlap(C):
    def f(x, y):
        x.mul_(10)
        return y + 0

    c = C(f)
    t, u = X(4), X(4)
    return c(X(3), X(3)), c(t[:3], t[1:]), c(u[1:], u[:3]), t, u


@probe
def test_argument_aliases_global(C):
    state = X()

    def f(x):
        x.add_(1)
        return state * 2

    c = C(f)
    return c(X()), c(state), state


@probe
def test_output_is_input_or_not(C):
    c = C(lambda x, dtype: x.to(dtype))
    t = X()
    a, b = c(t, torch.float64), c(t, torch.float32)
    return a is t, b is t, a, b, t


@probe
def test_grad_appears(C):
    t = X().requires_grad_()
    c = C(lambda x: x * 2 if t.grad is None else x * t.grad)
    a = c(X())
    t.sum().backward()
    b = c(X())
    t.grad = torch.full((3,), 9.0)
    d = c(X())
    t.grad = None
    return a, b, d, c(X())


@probe
def test_attribute_on_tensor(C):
    t = X()
    t.k = 2
    c = C(lambda x: x * x.k)
    a = c(t)
    t.k = 3
    b = c(t)
    del t.k
    return a, b, outcome(lambda: c(t))


@probe
def test_tensor_hook(C):
    def go(c, hook):
        t = X().requires_grad_()
        if hook:
            t.register_hook(lambda g: g * 10)
        c(t).sum().backward()
        return t.grad

    c = C(lambda x: x * 2)
    return go(c, False), go(c, True), go(c, False)


@probe
def test_leaf_or_not(C):
    c = C(lambda x: (x.is_leaf, x.grad_fn is None, x * 2))
    t = X().requires_grad_()
    return c(t), c(t * 1), c(t.detach())


@probe
def test_becomes_number_or_none(C):
    c = C(lambda x, y: x if y is None else x + y)
    return c(X(), X()), c(X(), None), c(X(), 2), c(X(), 2.5), c(X(), X(1))


@probe
def test_zero_dim_and_python_number(C):
    c = C(lambda x, y: (x * y).dtype)
    return c(X().int(), torch.tensor(2.0)), c(X().int(), torch.ones(1)), c(X().int(), 2.0), c(X().int(), 2)


@probe
def test_value_branch(C):
    def f(x):
        if x.sum() > 3:
            return x * 2
        return x - 1

    c = C(f)
    return c(X()), c(-X()), c(X())


@probe
def test_item_value(C):
    c = C(lambda x: [float(v) for v in x] + [x.sum().item()])
    return c(X()), c(-X()), c(X() * 0)


@probe
def test_conjugate_and_negative_bits(C):
    c = C(lambda z: (z.is_conj(), z * 2))
    z = torch.tensor([1 + 2j, 3 - 1j])
    return c(z), c(z.conj()), c(z.conj().resolve_conj())


@probe
def test_device_meta(C):
    c = C(lambda x: (x.device.type, x + 1))
    return c(X()), c(X().to("meta"))


@probe
def test_channels_last(C):
    c = C(lambda x: (x.is_contiguous(memory_format=torch.channels_last), (x + 1).stride()))
    t = torch.ones(1, 2, 3, 4)
    return c(t), c(t.to(memory_format=torch.channels_last))


@probe
def test_input_mutated_each_call(C):
    def f(x):
        x += 1
        x.t_() if x.dim() == 2 else None
        return x.sum()

    c = C(f)
    t = torch.zeros(2, 3)
    return [c(t) for _ in range(3)], t


@probe
def test_same_object_after_death(C):
    def f(x, box):
        return x * box.k

    class Box:
        def __init__(self, k):
            self.k = k

    c = C(f)
    return [c(X(), Box(k)) for k in range(5)]


@probe
def test_version_counter(C):
    def f(x, y):
        z = x * y
        x.add_(1)
        return z

    def go(c, needs):
        x, y = X(), X().requires_grad_(needs)
        z = c(x, y)
        return outcome(lambda: z.sum().backward()), z, x._version, y.grad

    c = C(f)
    return go(c, False), go(c, True)


@probe
def test_signs_of_complex_zeros(C):
    c = C(lambda x, v: (x * v, x + v))
    values = (1j, 0j, -0j, complex(0.0, -0.0), complex(-0.0, 1), complex(0, -2), complex(1, float("inf")), complex(float("nan"), 0), 2 - 3j)
    return [[repr(t.tolist()) for t in c(X(), v)] for v in values]


@probe
def test_leaf_changed_in_place_in_a_try(C):
    def f(x):
        try:
            x.masked_fill_(x > 1, 0.0)
        except RuntimeError:
            return x + 10
        return x + 1

    g, x = C(f), X().requires_grad_()
    return g(x.clone()), g(x), g(x.clone()), g(x[:2]), g(x.clone()[:2]), g(x)
