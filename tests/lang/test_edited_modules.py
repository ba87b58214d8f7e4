"""Modules whose parts a program sets, replaces and deletes while it runs."""

import torch
from torch import nn

from .differential import differential


class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.act = nn.ReLU()
        self.register_buffer("shift", torch.ones(3))
        self.register_buffer("hidden", torch.ones(3), persistent=False)
        self.plain = None
        with torch.no_grad():
            self.fc.weight.fill_(0.5)
            self.fc.bias.fill_(-0.25)

    def forward(self, x):
        return self.act(self.fc(x)) + self.shift


def module():
    return Own(), torch.arange(6.0).view(2, 3)


def told(m):
    """What a module tells of its parts, in their order."""
    return [n for n, _ in m.named_modules()], [n for n, _ in m.named_parameters()], list(m.state_dict()), list(vars(m))


@differential(module, graphs=1)
def test_submodules_set(m, x):
    m.extra = nn.Tanh()
    m.plain = m.act
    m.act = nn.Sigmoid()
    return m.extra(m(x)) + m.plain(x), told(m)


@differential(module, graphs=1)
def test_a_module_around_another(m, x):
    class_ = Around
    outer = class_(m, scale=3)
    return outer(x), told(outer)


class Around(nn.Module):
    def __init__(self, inner, scale):
        super().__init__()
        self.inner = inner
        self.weight = inner.fc.weight
        self.scale = scale

    def forward(self, x):
        return self.inner(x) * self.scale + self.weight.sum()


@differential(module, graphs=1)
def test_parameters_set(m, x):
    m.weight = m.fc.weight
    m.fc.bias = m.fc.bias
    m.shift = m.fc.bias
    return m(x) @ m.weight, told(m)


@differential(module, graphs=1)
def test_parts_set_to_none(m, x):
    m.fc.bias = None
    y = m(x)
    m.act = None
    m.shift = None
    return y, told(m), m.act is None, m.fc.bias is None


@differential(module, graphs=1)
def test_parts_deleted(m, x):
    y = m(x)
    del m.shift
    del m.hidden
    del m.act
    del m.fc.bias
    del m.plain
    return y @ m.fc.weight, told(m), hasattr(m, "shift"), hasattr(m, "plain")


@differential(module, graphs=1)
def test_parts_deleted_and_set_again(m, x):
    fc = m.fc
    del m.fc
    m.register_buffer("more", x)
    m.fc = fc
    return m(x), told(m)


@differential(module)
def test_what_is_not_there_cannot_be_deleted(m, x):
    try:
        del m.nothing
    except AttributeError as error:
        return str(error), m(x)


@differential(module)
def test_values_of_wrong_kinds(m, x):
    said = []
    for name, value in (("fc", 3), ("act", x), ("shift", 3)):
        try:
            setattr(m, name, value)
        except TypeError as error:
            said.append(str(error))
    return said, m(x)


class Early(nn.Module):
    def __init__(self, x):
        self.part = nn.ReLU()
        super().__init__()


@differential(module)
def test_parts_set_too_early(m, x):
    try:
        Early(x)
    except AttributeError as error:
        return str(error), m(x)


@differential(module, graphs=1)
def test_lists_of_parameters(m, x):
    found = nn.ParameterList([m.fc.weight, m.fc.bias])
    return x @ found[0] + found[1], len(found), [p.shape for p in found]


@differential(module, graphs=1)
def test_layers_swapped_in_containers(m, x):
    layers = nn.Sequential(m.fc, m.act)
    layers[1] = nn.Tanh()
    layers.append(m.fc)
    del layers[0]
    return layers(x), told(layers)


SHARED = Own()


@differential(module)
def test_the_same_module_in_each_call(m, x):
    SHARED.turn = getattr(SHARED, "turn", 0) + 1
    SHARED.act = nn.Tanh() if SHARED.turn % 2 else nn.ReLU()
    return SHARED(x), told(SHARED)


class Deleting:
    def __init__(self):
        self.x = 1
        self.gone = []

    def __delattr__(self, name):
        self.gone.append(name)
        super().__delattr__(name)


@differential(lambda: (torch.ones(2), Deleting()), graphs=1)
def test_a_delattr_of_its_own(x, obj):
    del obj.x
    made = Deleting()
    made.y = x * 2
    del made.y
    return x + len(obj.gone), made.gone, hasattr(obj, "x"), vars(made)


@differential(lambda: (torch.ones(2, requires_grad=True), torch.ones(2)), graphs=1)
def test_leaves_have_no_grad_fn(x, y):
    return x.grad_fn, y.grad_fn, x * y
