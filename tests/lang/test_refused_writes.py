"""Writes in place that eager mode refuses, depending on how the tensor was made and where it lies: the program catches what is raised."""

import pytest
import torch

import framegraft


class Copied(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x[:]

    @staticmethod
    def backward(ctx, grad):
        return grad


def without_grad(x):
    with torch.no_grad():
        return x[0]


def leaf():
    return torch.arange(4.0).reshape(2, 2).requires_grad_()


MAKERS = {
    "view": lambda: leaf().mul(2)[0],
    "one_of_several": lambda: leaf().mul(2).unbind(0)[0],
    "without_grad": lambda: without_grad(leaf().mul(2)),
    "in_a_function": lambda: Copied.apply(leaf().mul(2)),
    "of_a_leaf": lambda: leaf()[0],
    "plain": lambda: torch.ones(2, 2)[0],
    "plain_one_of_several": lambda: torch.ones(2, 2).unbind(0)[0],
    "plain_without_grad": lambda: without_grad(torch.ones(2, 2)),
    "complex": lambda: torch.view_as_complex(leaf().mul(2).reshape(2, 1, 2))[0],
    "complex_one_of_several": lambda: torch.view_as_complex(leaf().mul(2).reshape(2, 1, 2)).unbind(0)[0],
    "complex_of_a_leaf": lambda: torch.view_as_complex(leaf()),
    "complex_plain": lambda: torch.view_as_complex(torch.ones(2, 1, 2)).unbind(0)[0],
    "conjugate": lambda: leaf().to(torch.complex64).conj().unbind(0)[0],
    "conjugate_of_a_leaf": lambda: torch.ones(2, dtype=torch.complex64, requires_grad=True).conj(),
    "bits": lambda: torch.ones(2, 2).view(torch.int32)[0],
}


def add_a_number(y):
    try:
        y.add_(1)
    except RuntimeError:
        return "caught"


def add_what_requires_a_gradient(y):
    try:
        y += torch.ones(2 - y.is_complex(), requires_grad=True)
    except RuntimeError:
        return "caught"


def add_to_a_view(y):
    try:
        y[:].add_(1)
    except RuntimeError:
        return "caught"


@pytest.mark.parametrize("f", [add_a_number, add_what_requires_a_gradient, add_to_a_view])
@pytest.mark.parametrize("first", MAKERS)
def test_caught(f, first):
    compiled = framegraft.compile(f, backend="eager")
    for name in (first, *MAKERS):
        ours, wanted = MAKERS[name](), MAKERS[name]()
        assert compiled(ours) == f(wanted), name
        assert torch.equal(ours, wanted) and ours.requires_grad == wanted.requires_grad, name


def in_memory():
    """Pairs of tensors in one piece of memory."""
    x = torch.arange(12.0).reshape(3, 4)
    return {
        "rows": (x[0], x[1]),
        "the_same": (x[0], x[0]),
        "a_row_further": (x[:2], x[1:]),
        "an_element_further": (x.view(12)[:4], x.view(12)[1:5]),
        "columns": (x[:, :2], x[:, 1:3]),
        "transposed": (x[:, :3], x[:, :3].t()),
        "square": (x[:2, :2].contiguous(), torch.ones(2, 2)),
    }


def copy_into(a, b):
    try:
        a.copy_(b)
    except RuntimeError:
        return "caught"


def add_into(a, b):
    try:
        a += b
    except RuntimeError:
        return "caught"


def write_out(a, b):
    try:
        torch.sin(b, out=a)
    except RuntimeError:
        return "caught"


def store(a, b):
    try:
        a[:] = b
    except RuntimeError:
        return "caught"


def inside(a, b):
    d, found = torch.cat([a.flatten(), b.flatten()]), []
    for other in (d[:3], d[1:4], d[3:6]):
        try:
            d[:3].copy_(other)
        except RuntimeError:
            found.append(True)
    return d, found


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("f", [copy_into, add_into, write_out, store, inside])
def test_one_memory(f, backend):
    for name in in_memory():
        compiled = framegraft.compile(f, backend=backend)
        for _ in range(2):
            ours, wanted = in_memory()[name], in_memory()[name]
            assert repr((compiled(*ours), ours)) == repr((f(*wanted), wanted)), name
        framegraft.reset()
