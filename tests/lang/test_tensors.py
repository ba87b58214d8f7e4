"""Tensor methods, in-place operations, views, out=, metadata, autograd."""

import numpy as np
import torch
import torch.nn.functional as F

from .differential import differential


def two():
    return torch.arange(6.0).reshape(2, 3), torch.tensor([[1.0, -2.0, 3.0], [0.5, 0.0, -1.0]])


def with_grad():
    return torch.arange(1.0, 4.0, requires_grad=True), torch.ones(3, requires_grad=True)


def alias():
    x = torch.arange(6.0)
    return x, x[2:5], x.view(2, 3)


@differential(two, graphs=1)
def test_methods(x, y):
    a = x.transpose(0, 1).contiguous().view(-1)
    b = x.sum(dim=1, keepdim=True) + y.mean(-1, keepdim=True)
    c = torch.cat([x, y], dim=0)[1:, ::2]
    d = x.unsqueeze(0).expand(3, -1, -1).permute(2, 0, 1)
    return a, b, c, d, x.max(dim=1), y.topk(2), x.split(1), torch.einsum("ij,kj->ik", x, y)


@differential(two, graphs=1)
def test_metadata(x, y):
    n, m = x.shape
    return (
        x.reshape(m, n) * x.size(0) + x.dim(),
        x.dtype,
        x.device,
        x.shape,
        x.stride(),
        x.numel(),
        x.is_contiguous(),
        y.T.is_contiguous(),
        x.requires_grad,
        x.is_floating_point(),
        x.shape[-1] == 3,
        len(x),
        x.layout,
        x.itemsize,
    )


@differential(two, graphs=1)
def test_inplace_on_inputs(x, y):
    x.add_(1)
    y.mul_(x)
    x[0] = 7
    x[:, 1] += y[:, 0]
    y.relu_()
    return x.sum(), y * 2


@differential(two, graphs=1)
def test_inplace_on_views(x, y):
    row = x[0]
    flat = x.view(-1)
    row.zero_()
    flat[3:].fill_(2)
    z = y.clone()
    z.t()[1] = 5
    return row, flat, x + 1, z


@differential(alias)
def test_aliased_inputs(x, part, shaped):
    part.add_(10)
    shaped[0, 0] = -1
    return x * 1, part, shaped.sum(), x


@differential(two, graphs=1)
def test_outputs_alias_inputs(x, y):
    return x, x.view(-1), y.t(), y[0], x.detach(), x.reshape(3, 2), (x, [y])


@differential(two, graphs=1)
def test_same_tensor_twice(x, y):
    z = x + y
    return z, z, z.view(-1), [z], z + 0


@differential(two)
def test_out_argument(x, y):
    out = torch.empty(2, 3)
    r = torch.add(x, y, out=out)
    s = torch.mul(x, 2, out=y)
    return r is out, out, s is y


@differential(two, graphs=1)
def test_dtype_and_factory(x, y):
    a = torch.zeros(2, 3, dtype=torch.int64) + torch.arange(3)
    b = torch.full_like(x, 2).to(torch.float64)
    c = x.long() // 2
    return a, b, c, x.half().float(), torch.ones_like(y, dtype=torch.bool), x.new_zeros(2), torch.tensor([1, 2.5])


@differential(two, graphs=1)
def test_functional(x, y):
    h = F.relu(x - 2) + F.gelu(y)
    p = F.softmax(h, dim=-1)
    return p, F.layer_norm(h, (3,)), F.linear(h, torch.ones(4, 3)), F.pad(h, (1, 0)), F.mse_loss(x, y)


@differential(two, graphs=1)
def test_indexing(x, y):
    i = torch.tensor([1, 0])
    mask = x > 2
    x = x.clone()
    x[mask] = 0
    x[i, 0] += 1
    return x[i], y[:, None, 1:], x[..., -1], y[0, 1], x[None], x.gather(1, i[:, None]), torch.where(mask, x, y)


@differential(with_grad, graphs=1)
def test_autograd_flows(x, w):
    y = (x * w).sin()
    return y.sum(), y.detach(), (x.detach() * w).requires_grad


@differential(with_grad)
def test_backward_inside(x, w):
    loss = (x * w * w).sum()
    loss.backward()
    return x.grad, w.grad * 2, loss


@differential(with_grad)
def test_autograd_grad_inside(x, w):
    y = (x**2 * w).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    return g, (g * w).sum()


@differential(with_grad)
def test_requires_grad_inside(x, w):
    y = (x * 2).detach()
    y.requires_grad_(True)
    z = y * w
    return y, z, y.requires_grad, y.is_leaf


@differential(with_grad)
def test_sgd_step_inside(x, w):
    loss = ((x * w - 1) ** 2).sum()
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
        w.grad = None
    return loss.detach(), w


@differential(two)
def test_random_stream(x, y):
    a = torch.rand(2, 3)
    b = F.dropout(x, 0.5, training=True)
    c = torch.randn_like(y) + torch.randint(0, 5, (3,))
    return a, b, c, torch.randperm(4), torch.bernoulli(torch.full((4,), 0.5))


@differential(two)
def test_data_dependent_shapes(x, y):
    i = y.nonzero()
    picked = x[y > 0]
    n = int((y > 0).sum())
    return i, picked, torch.unique(y), x.reshape(-1)[:n], picked.tolist()


@differential(two)
def test_numpy(x, y):
    a = x.numpy()
    b = torch.from_numpy(a * 2)
    a[0, 0] = 100
    return b, x, np.float32(2) * 3, torch.tensor(np.arange(3)), y.sum().numpy()


@differential(two)
def test_attributes_on_tensors(x, y):
    x.tag = "seen"
    y.other = [x]
    return x.tag, hasattr(y, "missing"), y.other[0] is x


@differential(lambda: (torch.arange(4.0), torch.tensor([1 + 2j, 3j])))
def test_complex(x, c):
    z = torch.complex(x[:2], x[2:]) * c
    return z, z.real, z.conj(), z.abs(), torch.view_as_real(z), z.conj() * 1


@differential(lambda: (torch.eye(3).to_sparse(), torch.eye(3).requires_grad_().to_sparse()))
def test_values_of_a_sparse_tensor_are_a_view_of_it(s, t):
    values, others = s.values(), t.values()
    torch._C._get_tracing_state()
    doubled, sum_of_others = values * 2, others.sum() + s.indices().sum()
    values.mul_(3)
    return doubled, values + 1, sum_of_others, s.to_dense()


@differential(lambda: (torch.eye(3).to_sparse(), torch.arange(3.0)))
def test_sparse(s, x):
    return torch.sparse.mm(s, x[:, None]), s.to_dense() + x, s.is_sparse


@differential(lambda: (torch.ones(2, 3, device="meta"), torch.ones(3)))
def test_meta_device(m, x):
    return m @ x.to("meta"), m.shape, x + 1


@differential(two, graphs=1)
def test_default_dtype_kept(x, y):
    return torch.get_default_dtype(), torch.ones(2).dtype, x * torch.pi, torch.finfo(x.dtype).eps, y.sign()


@differential(two)
def test_set_data(x, y):
    x.data = y.clone()
    z = x * 2
    x.data.add_(1)
    return z, x


@differential(two)
def test_resize_and_swap(x, y):
    x.unsqueeze_(0)
    y.t_()
    return x.shape, y.shape, x + 1, y.stride()


@differential(lambda: (torch.arange(42.0).reshape(1, 7, 6), torch.ones(6)))
def test_strides_of_dimensions_of_size_one(x, y):
    """Kernels differ in what they write there, and torch's fake ones differ from them."""
    x = x.transpose(0, 1)
    results = x, x.relu(), x + 1, x.clone(), x > 0, x * y, x.exp(), torch.where(x > 0, x, y)
    return [t.stride() for t in results], [t.stride(0) for t in results], [t.stride(-2) for t in results], [t.stride(dim=2) for t in results]


@differential(lambda: (torch.arange(42.0).reshape(1, 7, 6), torch.ones(6)), graphs=1)
def test_strides_of_views_with_dimensions_of_size_one(x, y):
    z = (y * 2).view(1, 6, 1)
    w = (x + 1).transpose(0, 1)[:, 0].unsqueeze(1)
    views = x.transpose(0, 1), x[:, None, 1:2], z, z.expand(3, 6, 1), z.permute(2, 0, 1), z.select(0, 0), *z.split(2, dim=1), w
    chunked = z.as_strided((1, 2, 3), (z.stride(0), z.stride(1) * 3, z.stride()[1]))
    return [v.stride() for v in views], chunked, w.stride(1)


@differential(lambda: (torch.arange(64.0).reshape(2, 32) > 9, torch.ones(2, 1, 6)), graphs=1)
def test_strides_of_results_with_dimensions_of_size_one(mask, x):
    """As Longformer's windows: what kernels write there is what the kernels say."""
    wide = mask[:, :, None, None].type_as(x).masked_fill(mask[:, :, None, None], -1.0)
    ones = wide.new_ones(size=wide.size())
    count = torch.div(32, 8, rounding_mode="trunc")  # a tensor, and a size
    chunks = [t.transpose(1, 2).reshape(2, 32, 1).view(2, count, 8, 1) for t in (wide, ones)]
    windows = [c.as_strided((2, 7, 8, 1), (c.stride()[0], c.stride()[1] // 2, *c.stride()[2:])) for c in chunks]
    y = x.transpose(0, 1)
    results = y + 1, y > 0, torch.where(y > 0, y, 1.0), (y * 2).reshape(1, 12), y.flatten(1), torch.cat([y, y]), y @ y[0].T, *windows
    return windows, [t.stride() for t in results], [t.stride(0) for t in results], [t.stride(-1) for t in results]


@differential(lambda: (torch.arange(6.0).reshape(2, 3),), graphs=1)
def test_made_tensors_reshaped_in_place(x):
    y = x + 1
    view = y[0]
    first = y.t_()
    shapes = [y.shape, y.stride(), first is y, view.shape]
    y.unsqueeze_(0).transpose_(0, 2)
    shapes += [y.shape, view.stride()]
    y.squeeze_()
    y.add_(1)
    z = y.clone()
    z.swapaxes_(0, 1)
    z.squeeze_(0)
    z.swapdims_(0, 1)
    return y, z, view, shapes, y * z


@differential(lambda: (torch.ones(2, 3),))
def test_arguments_reshaped_in_place(x):
    x.t_()
    y = x.detach()
    y.unsqueeze_(0)
    return x + 1, y, x.shape


@differential(lambda: (torch.ones(3, requires_grad=True),))
def test_tensors_with_gradient_reshaped_in_place(x):
    y = x * 2
    y.unsqueeze_(0)
    z = y.view(3, 1) if y.requires_grad else y
    z.t_()
    return (z * 3).sum(), y, z


@differential(lambda: (torch.tensor([1.5, 2.5]), torch.tensor(3), torch.tensor(2.0)), graphs=1)
def test_tensors_of_lists_of_tensors(x, n, w):
    plain = torch.tensor([x.sum(), 2.0]), torch.tensor([n, 2]), torch.tensor([n, x[0]]), torch.tensor([[w, 1], [n, True]])
    return *plain, torch.tensor([x.sum(), n], dtype=torch.float64), torch.as_tensor((x[0], w)), torch.tensor([n > 2, False]), x


@differential(lambda: (torch.tensor(1.5, requires_grad=True),))
def test_a_tensor_of_a_list_of_tensors_with_gradient(x):
    return torch.tensor([x, 1]), torch.tensor([x.detach() * 2, 1])


@differential(lambda: (torch.tensor([1.5, 2.5]), torch.tensor([300])))
def test_tensors_of_lists_of_tensors_that_do_not_fit(x, n):
    told = []
    for make in (lambda: torch.tensor([x, x]), lambda: torch.tensor([n[0], 1.5], dtype=torch.uint8), lambda: torch.tensor([n, n])):
        try:
            told.append(make())
        except (ValueError, RuntimeError, TypeError) as error:
            told.append(type(error).__name__)
    return x + 1, told


@differential(lambda: (torch.tensor([1.5, 2.5]),))
def test_older_classes_of_tensors(x):
    made = torch.LongTensor([1, 2]), torch.FloatTensor([[1, 2.5], [True, 3]]), torch.DoubleTensor(()), torch.ByteTensor([1, 255])
    sizes = torch.IntTensor(2, 3).shape, torch.BoolTensor(0).shape, torch.FloatTensor().shape, torch.HalfTensor(torch.Size([4])).shape
    return made, sizes, x.type(torch.DoubleTensor), x.type(torch.LongTensor), x.type(torch.FloatTensor) is x, x.type("torch.IntTensor")


@differential(lambda: (torch.tensor([1.5]),))
def test_is_storage(x):
    return torch.is_storage(x), torch.is_storage(3), torch.is_storage(torch.Tensor), x + 1


def left(size, grad):
    base = torch.ones(3)
    view = base.view(3)
    if grad:
        view.requires_grad_()
    view.data = torch.arange(float(size))
    return base, view


@differential(lambda: (*left(4, False), *left(2, True)))
def test_views_that_have_left_their_base(base, view, other, leaf):
    with torch.no_grad():
        base.add_(1)
        other.add_(2)
    return view * 2, leaf * 3, view._is_view(), view._base is base, leaf.is_leaf


@differential(lambda: (torch.arange(4.0), np.ones(2)), graphs=1)
def test_older_constructor(x, array):
    """``torch.Tensor`` of numbers, of tensors with one number each, and of sizes."""
    made = torch.Tensor([1, 2]), torch.Tensor((2, 3.5)), torch.Tensor([]), torch.Tensor([[True, 2], [3, 2**70]]), torch.Tensor([x[0], 2])
    return made, torch.LongTensor([x[1].long(), 2]), torch.Tensor(2, 3).shape, torch.Tensor().shape


@differential(lambda: (torch.arange(4.0), np.ones(2)))
def test_older_constructor_of_other_things(x, array):
    seen = [torch.Tensor(x), torch.Tensor(array), torch.Tensor(range(3)), torch.Tensor(x.shape).shape]
    for wrong in (3.5, [1, "a"], [1j], -1, [[1], [2, 3]], None):
        try:
            seen.append(torch.Tensor(wrong))
        except (TypeError, ValueError, RuntimeError) as error:
            seen.append((type(error), str(error)))
    return seen


@differential(lambda: (torch.arange(4.0), torch.arange(4.0) + 1, torch.ones(4)), graphs=1)
def test_losses_that_call_functions_or_look_at_values(a, b, c):
    return (F.gaussian_nll_loss(a, b, c),
            F.triplet_margin_with_distance_loss(a, b, c, distance_function=lambda u, v: (u - v).norm(dim=-1)))


@differential(lambda: (torch.arange(4.0), torch.arange(4.0) + 1, -torch.ones(4)))
def test_variances_below_zero(a, b, c):
    return F.gaussian_nll_loss(a, b, c)


@differential(lambda: (torch.arange(3.0),), graphs=1)
def test_reversed_tensors(x):
    return reversed(x), list(reversed(x[:2])), type(reversed(x)), reversed(x.sum())


def scaled():
    return torch.tensor([0.3, -1.7, 2.9]), torch.tensor([1.1, 0.7, -0.3]), torch.tensor(0.13, dtype=torch.float64), torch.tensor(3)


@differential(scaled, graphs=1)
def test_alpha_from_tensors(x, y, rate, count):
    rate.add_(0.01)
    made = torch.add(x, y, alpha=rate), y.sub(x, alpha=count), torch.sub(x, 2, alpha=-rate), count.add(count, alpha=count)
    x.add_(y, alpha=rate * 2)
    rate.zero_()
    return made, torch._foreach_add([x, y], [y, x], alpha=rate), torch.add(x, y, alpha=rate)


@differential(lambda: (torch.ones(3), torch.ones(3, dtype=torch.int64), torch.ones(1), torch.ones((), requires_grad=True)))
def test_alpha_from_tensors_that_are_no_numbers(x, counts, one, learnt):
    said = []
    for left, alpha in ((counts, torch.tensor(0.5)), (x, one), (x, torch.ones(2)), (x, learnt), (x, torch.tensor(1j)), (x, torch.tensor(True))):
        try:
            said.append(left.add(left, alpha=alpha))
        except (RuntimeError, TypeError) as error:
            said.append(type(error).__name__)
    return said


@differential(lambda: (torch.tensor([1.0, -2.0, 3.0]), torch.tensor([[1.0, 2.0], [3.0, -4.0]]), torch.tensor(5.0)), graphs=1)
def test_numbers_where_a_mask_says(x, m, value):
    try:
        with torch.no_grad():
            x[x > 0] = 2
            x[x.lt(0)] = value
            m[m > 1] = value * 2
            m[torch.tensor([True, False])] = 1
        x[x > 9] = 3
    except IndexError:
        return None
    return x, m


@differential(lambda: (torch.ones(3), torch.ones(4)))
def test_masks_that_do_not_fit(x, y):
    said = []
    numbers = torch.tensor(1j), torch.tensor(2), 1j, "a", None
    for mask, value in ((y > 0, 1), (x > 0, torch.ones(2)), (x[:, None] > 0, 1), (x > 1, torch.ones(2)), *((x > 0, n) for n in numbers)):
        try:
            x[mask] = value
        except (IndexError, RuntimeError, TypeError) as error:
            said.append(type(error).__name__)
    return x, said


@differential(lambda: (torch.ones(3, dtype=torch.uint8), torch.ones(3) > 0))
def test_numbers_that_do_not_fit_where_a_mask_says(x, mask):
    said = []
    for value in (300, -1, 2**70, 1.5, torch.tensor(300), True):
        try:
            x[mask] = value
        except (RuntimeError, ValueError, OverflowError) as error:
            said.append(type(error).__name__)
    return x, said
