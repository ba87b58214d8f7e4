"""Arrays that say which shape a NumPy function is to give, and dtypes that differ in more than their names."""

import numpy as np
import torch

from .differential import differential


@differential()
def test_made_by_size(x):
    three, sizes = np.array(3), np.array([2, 3])
    made = np.ones(three), np.zeros(sizes), np.full(sizes, 1.5), np.eye(three), np.arange(5, np.array(7)), np.empty((sizes[0], 1))
    return [a.shape for a in made], [x + a.shape[0] for a in made]


@differential()
def test_changed_in_size(x):
    a = x.numpy() * 2
    made = np.repeat(a, np.array([2, 0, 1])), np.tile(a, np.array(2)), np.pad(a, np.array([1, 2])), np.diff(a, np.array(2))
    return [b.shape for b in made], np.linspace(0.0, 1.0, np.array(4)).shape, np.ones_like(a, shape=np.array([2, 2])).ndim


@differential()
def test_of_frequencies(x):
    a, sizes = np.ones((2, 3)), np.array([4, 5])
    made = np.fft.fftfreq(np.array(3)), np.fft.fft(a, np.array(5)), np.fft.fft2(a, sizes), np.fft.fftn(a, s=sizes), np.fft.fftshift(a, np.array([0]))
    return [b.shape for b in made], np.logspace(0.0, 1.0, np.array(4)).shape, np.take(a, np.array(1), np.array(1)).shape


@differential()
def test_along_an_axis(x):
    a, zero, one = np.ones((2, 3)), np.array(0), np.array(1)
    made = a.sum(zero), np.sum(a, axis=zero), a.mean(axis=zero), np.concatenate([a, a], zero), np.tensordot(a, a.T, np.array([[1], [0]]))
    return [b.shape for b in made], a.T.max(one - 1).size, a.any(axis=(zero, one)).ndim


@differential(graphs=1)
def test_numbers_to_compute_with(x):
    a, one, two = x.numpy() * 2, np.array(1), np.array(2)
    return np.clip(a, one, two), np.where(a > one, a, two), np.full((2,), two), np.linspace(one, two, 3), np.full_like(a, one), a + two


@differential(lambda: (torch.arange(3.0), np.arange(3, dtype=np.longlong)))
def test_dtypes_of_one_name(x, given):
    a = x.numpy() + 1
    made = np.array(a, dtype=np.longlong), a.astype("longlong"), a.astype(np.dtype(">i4")), a.astype(">f4"), given + 1, given * a
    told = [(b.dtype.type, b.dtype.byteorder) for b in made]
    return told, given.dtype, np.sum(a, dtype=np.longlong).dtype.type, (np.array([1, 2], dtype=np.longlong) * 2).dtype.type, made


@differential()
def test_concatenate_takes_no_dtype_with_out(x):
    a, into = x.numpy() * 2, np.zeros(6)
    try:
        return np.concatenate((a, a), out=into, dtype=np.float64)
    except TypeError as error:
        return str(error), x + 1
