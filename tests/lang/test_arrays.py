"""NumPy's arrays: tensors of a graph seen as arrays, arrays as arguments, and NumPy's functions of them as nodes."""

import itertools
import operator
import warnings

import numpy as np
import pytest
import torch

import framegraft

from .differential import differential


def one():
    return (torch.arange(6.0).reshape(2, 3),)


def two():
    return np.arange(6.0).reshape(2, 3), np.arange(3)


@differential(one, graphs=1)
def test_there_and_back(x):
    a = x.numpy()
    return torch.from_numpy((a * 2 + 3) / 4 - np.add(a, 1)) + x, torch.tensor(a), torch.as_tensor(np.exp(a)), a


@differential(one, graphs=1)
def test_tensors_of_another_dtype(x):
    a, b = np.ones((2, 3)) * 1.5, np.exp(x.numpy())
    kept = torch.as_tensor(b, dtype=torch.float32)
    return torch.tensor(a, dtype=torch.long), torch.as_tensor(a, dtype=torch.float32), kept, torch.tensor(b, dtype=None), b, kept.add_(1)


@differential(lambda: (torch.arange(3.0), torch.ones(2, requires_grad=True)), graphs=1)
def test_tensors_as_arrays(x, w):
    shared, copied = np.asarray(x), np.array(x)
    filled = np.empty((2,))
    filled[:] = 3
    y = x.add_(1)
    return shared, copied, y, filled, np.array(x, dtype=np.float64), w.numpy(force=True) * 2, x.numpy(force=False), np.array(x > 1)


@differential(one, graphs=1)
def test_functions(x):
    a = x.numpy()
    return (np.sum(a, axis=(0, 1), keepdims=True), a.mean(axis=0), np.std(a, ddof=1), a.clip(1, 3), a.astype(np.int32), a.astype("float64"),
            np.where(a > 2, a, -1.0), np.stack([a, a]), np.linalg.norm(a), np.einsum("ij,kj->ik", a, a), a.argmax(), np.max(a, axis=1))


@differential(one, graphs=1)
def test_views(x):
    a = x.numpy()
    return a.reshape(3, 2), a.T, a[0], a[1, 2], a[:, 1:], a.ravel(), a.transpose(1, 0), a.swapaxes(0, 1), a[None, ..., ::2], np.asarray(a) is a


@differential(one, graphs=1)
def test_writes_to_the_tensor_are_seen(x):
    a = x.numpy()
    b = a[0]
    x.mul_(2)
    return a + 0, b, a


@differential(one, graphs=1)
def test_numbers(x):
    a = x.numpy()
    s = a.sum()
    return s * 2, 2 * s, a + a.max(), a[0, 0] == 0, s, isinstance(s, np.floating), type(s), s.dtype, a[1, 1] / np.float64(2), -s, [s]


@differential(one, graphs=1)
def test_attributes(x):
    a = x.numpy() + 1
    return a.shape, a.ndim, a.size, a.dtype, len(a), a.itemsize, a.nbytes, a.T, type(a), isinstance(a, np.ndarray), a is None, a


@differential(one, graphs=1)
def test_made_inside(x):
    arrays = np.zeros((2, 3)), np.arange(5), np.ones(3, dtype=np.float32), np.array([1, 2, 3]), np.linspace(0, 1, 5), np.eye(2), np.full(2, 7)
    return arrays, torch.from_numpy(np.array([[1, 2], [3, 4]], dtype=np.float32)) @ x[:, :2]


@differential(one, graphs=1)
def test_writes_to_new_arrays(x):
    b = x.numpy() * 2
    b[0] = 1
    b[1, 1:] = b[0, 1:]
    b[b > 5] = 0
    b -= 1
    b[:, 0] += np.arange(2)
    c = np.zeros((2, 3), dtype=np.int64)
    c += 1
    c[0] = 2.7
    t = torch.from_numpy(c)
    c[1] = 5
    d = b.T
    d[0] = 8
    number = b[0, 0]
    b[0, 0] = 9
    return b, c, t, d, number, x + 1


@differential(one, graphs=1)
def test_results_in_arrays_that_are_given(x):
    a = x.numpy()
    b, c, d = np.zeros_like(a), np.zeros((4, 3), np.float32), np.zeros(3, np.float32)
    made = np.add(a, a, out=b), a.sum(axis=0, out=d), np.exp(a, out=None), np.clip(b, 1, 4, out=b)
    np.add(a, d, out=c[:2])
    np.matmul(a, a.T @ a, out=c[2:])
    return made, [made[0] is b, made[1] is d, made[3] is b], c, torch.from_numpy(b)


@differential(one)
def test_results_in_arrays_of_other_kinds(x):
    a = x.numpy()
    wide, high, some = np.zeros((2, 3)), np.zeros((4, 2, 3), np.float32), np.ones((2, 3), np.float32)
    np.add(a, 1, out=wide)
    np.add(a, 1, out=high)
    np.add(a, 1, out=some, where=a > 2)
    try:
        np.dot(a.T, a, out=np.zeros((3, 6), np.float32)[:, ::2])
    except ValueError as error:
        return wide, high, some, str(error)


@differential(one, graphs=1)
def test_results_in_arrays_by_position(x):
    a = x.numpy()
    b, c, d, e = np.empty((2, 3), np.float32), np.empty(3, dtype=np.float32), np.empty_like(a), np.zeros(())
    made = np.add(a, 1, b), np.sum(a, 0, None, c), np.clip(a, 1, 2, d), np.sum(a, None, np.float64, e), np.add(a, 1, None)
    f = np.cumsum(a, 1, None, np.empty_like(a)), np.dot(a, a.T, np.empty((2, 2), np.float32)), np.matmul(a, a.T, np.empty((2, 2), np.float32))
    np.add(b, a, out=(b,))
    return made, [made[0] is b, made[1] is c, made[2] is d, made[3] is e], f, np.exp(a, out=(None,))


@differential(one, graphs=1)
def test_casts_to_arrays_that_are_given(x):
    a = x.numpy()
    b, c, d, e = np.zeros((2, 3)), np.empty((2, 3), np.float16), np.empty((2, 3), np.int32), np.empty((2, 3), bool)
    made = np.add(a, 1, b), np.exp(a, out=(c,)), np.multiply(a, 1.5, d, casting="unsafe"), np.greater(a, 2, e), np.greater(a, 2, out=b)
    i, j = np.array([1, 2, 3]), np.empty(3, np.float32)
    np.add(i, i, j)
    return made, [made[0] is b, made[1] is c, made[4] is b], j, np.true_divide(i, 2, out=np.empty(3, np.float32), dtype=np.float64)


@differential(one)
def test_casts_that_are_refused(x):
    a, b = x.numpy(), np.zeros((2, 3), np.int32)
    for casting in ("same_kind", "safe", "no"):
        try:
            np.multiply(a, 1.5, b, casting=casting)
        except TypeError as error:
            print(error)
    return np.multiply(a * np.float32("nan"), 1.5, out=b, casting="unsafe").shape, b.dtype


@differential(one, graphs=1)
def test_empty_arrays(x):
    a = x.numpy()
    b, c, d = np.empty(4), np.empty_like(a, dtype=np.int64), np.empty_like(a, shape=(2, 2))
    b.fill(2)
    c[...] = 3
    d[:] = a[:, 1:]
    return b, c, d, np.empty((0, 3)), np.empty((2, 3)).shape


@differential(one, graphs=1)
def test_astype_without_a_copy(x):
    a = x.numpy()
    b, c, d = a.astype(np.float32, copy=False), a.astype("f8", copy=False), (a + 1).astype(dtype=np.float32, copy=False)
    d += 1
    return b is a, c, d, c is a, a.astype(int, casting="unsafe"), a.astype(np.float32, copy=True) is a, a.astype("float32")


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_writes_to_what_no_array_was_needed_for(backend):
    def fn(x):
        a, b, c = x.numpy(), np.zeros(6), np.empty((2, 3), np.float32)
        b[1:] = 2
        np.add(a, 1, c)
        return b, c, torch.from_numpy(b) + 1

    framegraft.reset()
    compiled = framegraft.compile(fn, backend=backend, fullgraph=True)
    for _ in range(2):
        assert repr(compiled(torch.arange(6.0).reshape(2, 3))) == repr(fn(torch.arange(6.0).reshape(2, 3)))


@differential(one)
def test_writes_to_shared_memory(x):
    a = x.numpy()
    a += 1
    a[0] = 5
    y = torch.from_numpy(a)
    y.add_(1)
    return a, x, y


@differential(one)
def test_memory(x):
    """Arrays own what NumPy lets them own, and lie as it lets them lie."""
    a = x.numpy()
    b = a * 2
    c = a + 1
    views = a[None], a[1:1], c[0], c.T, c[:, None]
    return b, b.base is None, b.flags.owndata, [v.strides for v in views], a.base is None, b.T.strides, (a.T * 2).strides, views


@differential(one, graphs=1)
def test_arrays_of_their_own(x):
    return x.numpy() * 2, x.numpy().T + 1


@differential(one)
def test_what_only_values_tell(x):
    a = x.numpy()
    chosen = a[a > 2], a[[0, 1, 0]], float(a.sum()), bool(a.all()), f"{a.max():.2f}", str(a), 3 in a, a.tolist()
    return chosen, x + 1 if a.sum() > 3 else x - 1, [row.sum() for row in a], [n for n in a[0]]


@differential(lambda: (torch.ones(3, requires_grad=True),))
def test_gradients(x):
    y = torch.from_numpy(x.detach().numpy() * 2) * x
    with pytest.raises(RuntimeError, match="requires grad"):
        x.numpy()
    return y.sum()


@differential(two, graphs=1)
def test_arguments(a, b):
    return a + b, np.sum(a), a.T @ a, b[0], np.concatenate([a, a]), a.shape, a.dtype, a, torch.from_numpy(a) * 2 + torch.from_numpy(b), a[0]


@differential(two, graphs=1)
def test_tensor_on_an_argument(a, b):
    t = torch.from_numpy(a)
    t.add_(1)
    return t, a.sum(), a


@differential(one)
def test_errors_and_warnings(x):
    a = x.numpy()
    found = []
    for f in (lambda: a + np.ones(7), lambda: np.arange(3) ** -1, lambda: np.zeros(2, dtype=int).__iadd__(1.5), lambda: a.reshape(7)):
        try:
            found.append(f())
        except (ValueError, TypeError) as error:
            found.append((type(error), str(error)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found.append(a / 0)
    return found, [(w.category, str(w.message)) for w in caught]


CHANGES = [np.ones((2, 3)), np.ones((3, 2)).T, np.ones((2, 3), dtype=np.int8), np.ones((2, 4)), np.ones((2, 3))[::-1], np.ma.masked_array([1, 2], [0, 1]),
           np.array([1, "a"], dtype=object), np.arange(3, dtype=">i4"), np.broadcast_to(np.arange(3.0), (2, 3)), np.array(3)]


def test_other_arrays_in_later_calls():
    def f(a):
        return a * 2 + 1 if a.dtype != object else a

    compiled = framegraft.compile(f, backend="eager")
    for first, second in itertools.permutations(CHANGES, 2):
        framegraft.reset()
        for array in (first, second, first):
            expected, found = f(array), compiled(array)
            assert type(found) is type(expected)
            assert found.dtype == expected.dtype
            assert found.strides == expected.strides
            assert np.array_equal(found, expected)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "eq"])
def test_types_of_results(name):
    """NumPy's rules of promotion, its numbers and its warnings."""
    fn = getattr(operator, name)
    kinds = [np.array([[1, 2, 3]], dtype=kind) for kind in (bool, np.uint8, np.int32, np.float16, np.float32)] + [np.array(2), 2, 2.5, np.float32(3), np.int8(2)]
    for a, b in itertools.product(kinds[:6], kinds):
        for x, y in ((a, b), (b, a)):
            framegraft.reset()
            try:
                expected = fn(x, y)
            except TypeError as error:
                with pytest.raises(TypeError, match=str(error)[:20]):
                    framegraft.compile(lambda x, y: fn(x, y), backend="eager")(x, y)
                continue
            found = framegraft.compile(lambda x, y: fn(x, y), backend="eager")(x, y)
            assert (type(found), found.dtype, found.tobytes()) == (type(expected), expected.dtype, expected.tobytes())


@pytest.mark.parametrize("backend", ["aot_eager", "aot_eager_decomp_partition"])
def test_behind_compilers(backend):
    """A call of NumPy is an operation of torch, with its own shape propagation."""
    def f(x, w, a):
        b = np.sort((x * 2).detach().numpy(), axis=0) + a
        b[0] = 1
        return (torch.from_numpy(b) * w).sum(), b

    x, w, a = torch.arange(6.0).reshape(2, 3), torch.ones(3, requires_grad=True), np.arange(3, dtype=np.float32)
    compiled = framegraft.compile(f, backend=backend, fullgraph=True)
    for _ in range(2):
        expected, found = f(x, w, a), compiled(x, w, a)
        assert torch.equal(found[0], expected[0])
        assert np.array_equal(found[1], expected[1])
        gradients = [torch.autograd.grad(loss, w)[0] for loss in (expected[0], found[0])]
        assert torch.equal(*gradients)


def test_results_own_their_memory():
    def f(x):
        a = x.numpy() * 2
        return a, x + 1

    a, _ = framegraft.compile(f, backend="eager", fullgraph=True)(torch.ones(2, 3))
    assert a.base is None
    assert a.flags.owndata
    a.resize((3, 3))
    assert a.tolist() == [[2.0, 2.0, 2.0], [2.0, 2.0, 2.0], [0.0, 0.0, 0.0]]


@differential(lambda: (np.arange(6.0), torch.arange(4.0)))
def test_the_base_of_a_view_is_an_array(a, x):
    part, made, direct = a[1:3], a + 1, x.numpy()
    row, same = made[1:], torch.from_numpy(made)
    framegraft.graph_break()
    return type(part.base), type(row.base), type(direct.base), type(direct[1:].base), same * 2


def test_no_loop_over_a_librarys_own_code():
    """NumPy's functions in Python are called, and not captured."""
    counts = []

    def backend(gm, inputs):
        counts.append(gm)
        return gm.forward

    def f(x):
        return str(x.numpy()), x + 1

    assert framegraft.compile(f, backend=backend)(torch.ones(3))[0] == "[1. 1. 1.]"
    assert len(counts) <= 2


@differential(lambda: (torch.ones(3), np.ones(3), np.arange(3, dtype=np.int8)))
def test_dtypes(x, a, b):
    told = [a.dtype == np.float64, np.float64 == a.dtype, a.dtype == "float64", a.dtype != b.dtype, a.dtype == np.int8, b.dtype == "i1",
            a.dtype is np.dtype("float64"), np.dtype(np.int64) == b.dtype, np.dtype(float) == a.dtype, a.dtype.kind, b.dtype.itemsize]
    told += [np.issubdtype(a.dtype, np.floating), np.issubdtype(b.dtype, np.floating), np.issubdtype(np.float32, np.number),
             np.can_cast(b.dtype, a.dtype), np.promote_types("f4", "i8"), np.result_type(b.dtype, np.float32)]
    return x * (2 if np.issubdtype(b.dtype, np.integer) else 3), told


@differential(lambda: (torch.ones(3), np.dtype("float32"), np.dtype(">f4")))
def test_dtypes_as_arguments(x, dtype, swapped):
    return x + 1, dtype == np.float32, dtype == swapped, np.dtype("float32") is dtype


@differential(lambda: (torch.ones(3), np.float32))
def test_limits(x, kind):
    return x * np.finfo(kind).eps, np.finfo(np.float64).max, np.iinfo("int32").max, np.iinfo(np.uint8).min, np.finfo(kind).bits


def test_another_dtype_is_another_capture():
    @framegraft.compile(backend="eager", fullgraph=True)
    def f(x, dtype):
        return x + (1 if dtype == np.float32 else 2)

    x = torch.zeros(1)
    for dtype in (np.dtype("float32"), np.dtype("float64"), np.dtype("float32"), np.dtype("int8")):
        assert f(x, dtype).item() == (1 if dtype == np.float32 else 2)


@differential(lambda: (torch.arange(16.0).view(4, 4), np.array([0, 2])), graphs=1)
def test_positions_in_arrays(x, rows):
    grid = x[np.array([[0, 1], [2, 3]])]
    return x[rows], x[:, rows], x[rows, rows], x[rows + 1], grid, x[np.array([1])].sum()


@differential(lambda: (torch.arange(16.0).view(4, 4), np.array([0, 2])))
def test_positions_that_change(x, rows):
    x[rows] = 0
    x[:, rows] += 2
    later = rows + 1
    y = x[later]
    later[0] = 0
    return y, x[later], x


@differential(lambda: (torch.arange(4.0), np.array([True, False, True, True])))
def test_arrays_that_are_no_positions(x, mask):
    seen = [x[mask]]
    kinds = (np.array([0.5]), np.array(1), np.array([1], dtype=np.int32), np.array([], dtype=np.int64), np.array([7]), np.array([1], dtype=np.uint8))
    for key in kinds:
        try:
            seen.append(x[key])
        except (IndexError, TypeError) as error:
            seen.append((type(error), str(error)))
    return seen


@differential(lambda: (torch.ones(2), np.float32(1.5)), graphs=1)
def test_tensors_of_scalars(x, number):
    return (x * torch.tensor(number), torch.tensor(np.float64(2)), torch.tensor(np.int32(3)), torch.as_tensor(np.bool_(True)),
            torch.tensor(np.float16(1.5)) + x)


@differential(lambda: (np.arange(3), torch.ones(2)), graphs=1)
def test_asarray_of_sequences(a, x):
    return x + 1, np.asarray([1, 1, 2], dtype=np.float16), np.asarray((1.5, 2)), np.asarray([[1, 2], [3, 4]], "int32"), np.asarray([a, a])


@differential(two, graphs=1)
def test_transforms(a, n):
    f = np.fft
    return (f.fftshift(a), f.ifftshift(a, axes=1), f.fft(a), f.ifft(a, axis=0), f.rfft(a), f.irfft(f.rfft(a)), f.fft2(a), f.ifftn(a), f.fftfreq(5, d=2.0),
            f.rfftfreq(4), f.fft(n, 4))


@differential(two, graphs=1)
def test_grids(a, n):
    u, v = np.meshgrid(a[0], n)
    return u, v, type(np.meshgrid(n)), np.meshgrid(n, a[1], indexing="ij"), np.meshgrid(n, n, n, sparse=True)


@differential(two, graphs=1)
def test_more_functions(a, n):
    return (np.take(a, n), np.take(a, n, axis=1), np.take_along_axis(a, np.argsort(-a, axis=1), 1), np.searchsorted(a[0], a[1]), np.digitize(a, n),
            np.isin(a, n), np.nanstd(a), np.nanvar(a, axis=0), np.nanmedian(a), np.nanquantile(a, 0.5), np.nancumsum(a), np.nanprod(a),
            np.column_stack((n, a[0])), np.dstack((a, a)), np.ediff1d(a), np.vander(n), np.logspace(0, 1, 3), np.geomspace(1, 8, 4), np.corrcoef(a))


@differential(one, graphs=1)
def test_arrays_like_tensors(x):
    return np.ones_like(x, dtype=np.float64), np.full_like(x, 2.4, dtype=np.dtype("float")), np.empty_like(x).shape, np.zeros_like(x[:1])


@differential(one)
def test_arrays_like_tensors_of_another_order(x):
    made = np.ones_like(x.t())
    return made, made.strides, np.ones_like(x.t().numpy()).strides, x + 1


@differential(one, graphs=1)
def test_what_arrays_tell(x):
    a = x.numpy()
    return x + 1, a.strides, a.T.strides, a[:, 1:].strides, a.real is a, (a * 2).real, (a + 1).astype("int16").strides, a.sum().real


@differential(one, graphs=1)
def test_arrays_of_scalars(x):
    s = np.sum(np.mean(x.numpy(), 1))
    made = np.asarray(s)
    return torch.from_numpy(made), made, type(made), s


@differential(two)
def test_input_that_is_overwritten(a, n):
    b = a + 1
    return np.median(b, axis=None, overwrite_input=True), np.median(a[::-1].copy(), 0, None, True), np.nanmedian(a), np.take(a, n + 9, mode="clip"), b.sum()


@differential(two)
def test_positions_out_of_range(a, n):
    try:
        return np.take(a, n + 9)
    except IndexError as error:
        return str(error), np.take(a, n, mode="wrap")
