"""NumPy where sizes and numbers differ from call to call: constants of a whole graph, and a break elsewhere."""

import numpy as np
import pytest
import torch

import framegraft

SIZES = (4, 5, 6, 4)


def scaled(x):
    return x * np.sqrt(x.shape[0]) + float(np.prod(x.shape)) + np.prod([2, x.shape[1]])


def joined(x):
    return torch.from_numpy(np.concatenate([x.numpy() * 2, x.numpy()[:1]])) + 1, x.numpy().reshape(-1)[1:] * x.shape[0] - x.shape[0]


def made(x):
    return np.ones((x.shape[0], 2)) * 2, np.arange(x.shape[0]) + 1, np.array([x.shape[0], 2]), [row * 2 for row in x.numpy()]


def viewed(x):
    a = x.numpy()
    return a.T.copy(), a.ravel(), a.transpose(), a[1:, :2].mean(0), len(a), a.shape, np.pad(a, 1), torch.tensor(a, dtype=torch.int64)


def indexed(x):
    a, n = x.numpy() + 1, x.shape[0]
    return a[n - 1], a[: n - 2, 0], a[1:n][0, -1], a.reshape(n * 3, 1), a.reshape((1, n, 3))[0]


def same(got, expected):
    assert type(got) is type(expected)
    if isinstance(expected, (list, tuple)):
        assert len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            same(one, other)
    elif isinstance(expected, torch.Tensor):
        assert torch.equal(got, expected) and got.dtype is expected.dtype
    elif isinstance(expected, np.ndarray):
        assert np.array_equal(got, expected) and got.dtype == expected.dtype and got.strides == expected.strides
    else:
        assert got == expected


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("fullgraph", [True, False])
@pytest.mark.parametrize("program", [scaled, joined, made, viewed, indexed])
def test_sizes_that_differ(program, fullgraph, backend):
    counter = framegraft.testing.CompileCounterWithBackend(backend)
    compiled = framegraft.compile(program, backend=counter, fullgraph=fullgraph)
    for n in SIZES:
        x = torch.randn(n, 3)
        same(compiled(x), program(x))
    if fullgraph:
        assert counter.frame_count == 3  # one for each size


def test_arrays_of_sizes_that_the_data_decides():
    def f(x):
        return np.sum(x[x > 0].numpy())

    with pytest.raises(framegraft.exc.Unsupported, match="sizes differ"):
        framegraft.compile(f, backend="eager", fullgraph=True)(torch.ones(3))
