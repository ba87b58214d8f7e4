"""A compiled module is the module in all but its calls, also as a part of another module."""

from __future__ import annotations

import copy
import inspect
import io
import pickle
import subprocess
import sys

import pytest
import torch
from torch import nn

import framegraft


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 6)
        self.b = nn.Sequential(nn.Linear(6, 2), nn.BatchNorm1d(2))

    def forward(self, x):
        return self.b(self.a(x).relu())


@pytest.fixture
def nets():
    torch.manual_seed(0)
    plain = Net()
    net = copy.deepcopy(plain)
    for name in "ab":
        setattr(net, name, framegraft.compile(getattr(net, name), backend="eager"))
    return plain, net


X = torch.linspace(-1, 1, 24).reshape(4, 6)


def test_names(nets):
    plain, net = nets
    for of in (lambda n: n, lambda n: n.a, lambda n: n.b):
        assert list(of(net).state_dict()) == list(of(plain).state_dict())
        for names in ("named_parameters", "named_buffers", "named_modules", "named_children"):
            assert [n for n, _ in getattr(of(net), names)()] == [n for n, _ in getattr(of(plain), names)()]
    assert sum(isinstance(m, nn.Linear) for m in net.modules()) == 2


@pytest.mark.parametrize("assign", [False, True])
def test_state_is_loaded_in_both_directions(nets, assign):
    plain, net = nets
    for to, of in ((net, plain), (plain, net), (net, net)):
        state = {k: v + 1 for k, v in of.state_dict().items()}
        assert str(to.load_state_dict(state, assign=assign)) == "<All keys matched successfully>"
        assert all(torch.equal(v, state[k]) for k, v in to.state_dict().items())
    plain.load_state_dict(net.state_dict())
    assert torch.equal(net(X), plain(X))
    with pytest.raises(RuntimeError, match="size mismatch for a.weight"):
        net.load_state_dict({**net.state_dict(), "a.weight": torch.ones(1)})
    file = io.BytesIO()
    torch.save(net.state_dict(), file)
    file.seek(0)
    net.load_state_dict(torch.load(file))


@pytest.mark.parametrize("of", [lambda n: n, lambda n: n.a, lambda n: n.b], ids=["outer", "layer", "layers"])
def test_functional_call(nets, of):
    plain, net = (of(n) for n in nets)
    for named in (lambda n: n.state_dict(), lambda n: dict(n.named_parameters())):
        given = {k: v * 2 for k, v in named(plain).items()}
        assert torch.equal(torch.func.functional_call(net, given, (X,)), torch.func.functional_call(plain, given, (X,)))
    assert torch.equal(net(X), plain(X))


def test_changes_of_the_whole(nets):
    plain, net = nets
    assert torch.equal(net(X), plain(X))

    def scaled(module):
        if isinstance(module, nn.Linear):
            with torch.no_grad():
                module.weight.mul_(3)

    for change in (lambda n: n.apply(scaled), lambda n: n.double(), lambda n: n.eval(), lambda n: n.requires_grad_(False), lambda n: n.float()):
        assert change(net) is net
        change(plain)
        assert change(net.a) is net.a
        change(plain.a)
        x = X.to(plain.a.weight.dtype)
        assert torch.equal(net(x), plain(x))
        assert [(p.dtype, p.requires_grad) for p in net.parameters()] == [(p.dtype, p.requires_grad) for p in plain.parameters()]
    for one in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert torch.equal(one(X), net(X)) and type(one.a) is type(net.a)


def test_what_is_registered(nets):
    layer = nets[1].a
    layer.register_buffer("q", torch.ones(1))
    layer.register_parameter("r", nn.Parameter(torch.ones(1)))
    layer.add_module("s", nn.Linear(1, 1))
    seen = []
    layer.register_forward_hook(lambda module, args, result: seen.append(module))
    assert [n for n, _ in layer.named_parameters()] == ["weight", "bias", "r", "s.weight", "s.bias"]
    assert layer._orig_mod.q is layer.q and "a.q" in nets[1].state_dict()
    layer(X)
    assert seen == [layer._orig_mod]


class Own(nn.Module):
    """Overrides what nn.Module has."""

    def __init__(self):
        super().__init__()
        self.inner, self.asked = nn.Linear(6, 6), []

    def parameters(self, recurse=True):
        self.asked.append("parameters")
        return iter([self.inner.weight])

    def train(self, mode=True):
        self.asked.append("train")
        return super().train(mode)

    def eval(self):
        self.asked.append("eval")
        return super().eval()

    def _load_from_state_dict(self, *args):
        self.asked.append("load")
        super()._load_from_state_dict(*args)

    def forward(self, x):
        return self.inner(x)


def test_methods_of_the_modules_own_class():
    module = Own()
    net = nn.ModuleList([framegraft.compile(module, backend="eager")])
    assert len(list(net[0].parameters())) == 1
    assert net[0].eval() is net[0] and not module.training
    net.load_state_dict(net.state_dict())
    assert module.asked == ["parameters", "eval", "train", "load"]


def test_inside_of_a_capture(nets):
    layers = nets[1].b

    @framegraft.optimize("eager", nopython=True)
    def fn(x):
        layers.eval()
        names = [n for n, _ in layers.named_parameters()]
        return layers(x) + sum(p.sum() for p in layers.parameters()), names, layers.training

    result, names, training = fn(X)
    assert names == ["0.weight", "0.bias", "1.weight", "1.bias"] and not training
    assert torch.equal(result, layers._orig_mod(X) + sum(p.sum() for p in layers.parameters()))
    counter = framegraft.testing.CompileCounter()
    through = framegraft.optimize(counter, nopython=True)(lambda x: layers.forward(x) + 1)
    assert torch.equal(through(X), layers._orig_mod(X) + 1) and counter.frame_count == 1
    layers._orig_mod = nn.Sequential(nn.Identity(), nn.Tanh())
    assert torch.equal(fn(X)[0], X.tanh())


def test_signatures(nets):
    plain, net = nets
    assert inspect.signature(net.a.forward) == inspect.signature(plain.a.forward)
    assert inspect.signature(net.a) == inspect.signature(plain.a)
    counter = framegraft.testing.CompileCounter()
    layer = framegraft.compile(plain.a, backend=counter)
    assert torch.equal(layer.forward(input=X), plain.a(X)) and counter.frame_count == 1


class Symmetric(nn.Module):
    def forward(self, weight):
        return weight.triu() + weight.triu(1).T


def test_class_of_the_original(nets):
    plain, net = (n.a for n in nets)
    assert isinstance(net, nn.Linear) and not isinstance(net, nn.Sequential) and type(net) is not nn.Linear
    net(X)
    for module in (plain, net):
        nn.utils.parametrize.register_parametrization(module, "weight", Symmetric())
    assert torch.equal(net(X), plain(X)) and torch.equal(net.weight, plain.weight)
    assert list(net.state_dict()) == list(plain.state_dict())
    assert torch.equal(copy.deepcopy(net)(X), plain(X)) and type(copy.deepcopy(net)) is type(net)
    for module in (plain, net):
        nn.utils.parametrize.remove_parametrizations(module, "weight")
    assert torch.equal(net(X), plain(X)) and type(net._orig_mod) is nn.Linear


def test_class_inside_of_a_capture(nets):
    layers = [nets[1].a, nn.Tanh()]

    def fn(x):
        for layer in layers:
            x = layer(x) * (2 if isinstance(layer, nn.Linear) else 3)
        return x, layers[0].__class__, isinstance(layers[0], (nn.Tanh, nn.Sequential))

    compiled = framegraft.optimize("eager", nopython=True)(fn)
    assert str(compiled(X)) == str(fn(X))
    layers[0]._orig_mod = nn.Tanh()
    assert str(compiled(X)) == str(fn(X))


def test_wrong_arguments():
    with pytest.raises(TypeError, match="fullgraph must be True or False, not 'yes'"):
        framegraft.compile(lambda x: x, fullgraph="yes")  # type: ignore[arg-type]


def test_a_mode_that_nobody_leaves():
    """A program may end inside of ``with optimize(...)``: what runs when the interpreter takes itself apart is left alone."""
    program = """if 1:
        import weakref, torch, framegraft
        framegraft.optimize("eager").__enter__()
        class Kept: pass
        kept = weakref.WeakKeyDictionary({Kept(): 1})
        print((lambda x: x + 1)(torch.ones(2)).tolist())
    """
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "[2.0, 2.0]\n", "")
