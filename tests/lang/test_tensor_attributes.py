"""Attributes that the program sets on tensors, and subclasses of Parameter with attributes and methods of their own."""

import warnings

import pytest
import torch

import framegraft

from .differential import differential


def tagged():
    x = torch.ones(3)
    x.tag, x.extra, x.count = "t", torch.zeros(3), 4
    return x, torch.ones(3)


@differential(tagged, graphs=1)
def test_read(x, y):
    return x.tag, x.extra + x.count, hasattr(x, "zip"), hasattr(y, "tag"), getattr(y, "tag", 5), hasattr(x, "extra")


@differential(tagged, graphs=1)
def test_set_on_inputs(x, y):
    x.tag, y.tag = "new", x.tag + "er"
    y.other = x * 2
    y.other = y.other + 1
    return x.tag, y.other + 1


@differential(tagged, graphs=1)
def test_set_on_results(x, y):
    z = x + y
    z.mine, z.parts = y * 3, [z, 1]
    w = z * 2
    w.origin, z.next = z, w
    return w, z.mine + 1


@differential(tagged)
def test_set_before_a_break(x, y):
    z = x + y
    z.flag = "a"
    print("half-way")
    return z * 2, z.flag, z


@differential(tagged, graphs=1)
def test_buffers_made_inside(x, y):
    b, c = torch.nn.Buffer(x + 1), torch.nn.Buffer(y, persistent=False)
    return b * 2, isinstance(b, torch.nn.Buffer), isinstance(c, torch.nn.Parameter), b, c.persistent


class Counting(torch.nn.Module):
    def forward(self, x):
        x.seen = getattr(x, "seen", 0) + 1
        y = x * 2
        y.seen = x.seen + 1
        return y


LAYERS = torch.nn.Sequential(Counting(), Counting(), Counting())


@differential(tagged, graphs=1)
def test_attributes_through_layers(x, y):
    return LAYERS(y), LAYERS(y).seen


class Scaled(torch.nn.Parameter):
    kind = "scaled"

    def __new__(cls, data, scale=2.0):
        made = torch.Tensor._make_subclass(cls, data, True)
        made.scale = scale
        return made

    @property
    def doubled(self):
        return self * 2

    def scaled(self, k=1):
        return self * self.scale * k

    @staticmethod
    def helper(a):
        return a + 1

    @classmethod
    def name_of(cls):
        return cls.__name__


class Shadowing(torch.nn.Parameter):
    def sum(self, *dims):
        return torch.zeros(()) - 5

    @property
    def T(self):
        return 3


@differential(lambda: (Scaled(torch.ones(3)),), graphs=1)
def test_kinds_of_parameters(p):
    return (p.kind, p.doubled, p.scaled(3), p.helper(p), p.name_of(), isinstance(p, Scaled), isinstance(p, torch.nn.Parameter),
            type(p + 1).__name__, p.scale, p.detach(), p.data)


@differential(lambda: (Scaled(torch.ones(3)),), graphs=1)
def test_kinds_of_parameters_changed(p):
    p.scale, p.extra = 5.0, p * 2
    with torch.no_grad():
        p.add_(1)
    return p.scaled(), p.extra, p.grad


@differential(lambda: (Shadowing(torch.ones(3)),))
def test_parameters_with_operations_of_their_own(p):
    return p.sum(), p.T, p * 2


def test_a_kind_of_parameters_that_changes():
    class Kind(torch.nn.Parameter):
        pass

    @framegraft.compile(backend="eager")
    def f(p):
        return p + 1

    p = Kind(torch.ones(2))
    assert torch.equal(f(p), torch.full((2,), 2.0))
    Kind.__add__ = lambda self, other: torch.zeros(1)  # type: ignore[method-assign]
    assert torch.equal(f(p), torch.zeros(1))
    del Kind.__add__
    Kind.__torch_function__ = classmethod(lambda cls, func, types, args=(), kwargs=None: 7)  # type: ignore[method-assign,assignment]
    assert f(p) == 7


PLAIN = [name for name in dir(torch.Tensor) if name not in ("__dict__", "__weakref__") and not callable(getattr(torch.Tensor, name))]


@pytest.mark.parametrize("name", PLAIN)
def test_each_attribute_of_inputs_and_results(name):
    """Told, or a break; an error, where eager mode has one."""
    def f(x):
        y = x * 2
        found = []
        for t in (x, y):
            try:
                found.append(getattr(t, name))
            except (AttributeError, RuntimeError, TypeError) as error:
                found.append(type(error))
        return found, y + 1

    x = torch.arange(6.0).reshape(2, 3)
    with framegraft.config.patch(raise_internal_errors=True), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of attributes that are to go
        expected = f(x)
        found = framegraft.compile(f, backend="eager")(x)
    assert [type(v) for v in found[0]] == [type(v) for v in expected[0]]
    for a, b in zip(found[0], expected[0], strict=True):
        assert torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b or type(a).__module__ in ("torch.storage", "builtins")
    assert torch.equal(found[1], expected[1])


@differential(lambda: (torch.ones(3).share_memory_(), torch.ones(3), torch.ones(2, 2, dtype=torch.cfloat).conj()))
def test_what_only_the_real_tensor_tells(x, y, z):
    told = [x.is_shared(), y.is_shared(), (x + 1).is_shared(), z._is_view(), x._is_view(), x.view(3, 1)._is_view(), y.is_pinned()]
    return x * 2, y + 1 if x.is_shared() else y - 1, told, x.is_same_size(y)


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
@differential(lambda: (torch.ones(3), torch.ones(2, dtype=torch.bool)))
def test_class_of_the_storage(x, y):
    return x.storage_type(), y.storage_type(), (x * 2).storage_type()


@differential(lambda: (torch.ones(3),))
def test_attributes_set_by_the_method(x):
    y, z = x + 1, x + 2
    y.__setattr__("grad", x)
    object.__setattr__(z, "grad", x)
    return y.grad, z.grad


def test_tensors_that_were_captured_can_be_swapped():
    x = torch.ones(3)
    framegraft.compile(lambda x: x + 1, backend="eager")(x)
    torch.utils.swap_tensors(x, torch.zeros(3))
    assert not x.any()
