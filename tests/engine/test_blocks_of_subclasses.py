"""Layers that repeat an earlier one, with weights of subclasses: wrappers, and classes that have a say in what torch does."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing._internal.two_tensor import TwoTensor

import framegraft
from framegraft.run import conversion

from ..lang.test_wrapper_subclasses import Kind, Options, Scaled, two
from .test_blocks import check_against_traced, graph_of

LAYERS = 5


class Shifted(torch.Tensor):
    """Its products are one more than others'."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs or {})
        return result.as_subclass(torch.Tensor) + 1 if func in (F.linear, torch.mul, torch.Tensor.mul) else result


class Weighted(nn.Module):
    def __init__(self, weight, scale):
        super().__init__()
        self.norm = nn.LayerNorm(4)
        self.weight = nn.Parameter(weight, requires_grad=weight.requires_grad)
        self.scale = nn.Parameter(scale, requires_grad=scale.requires_grad)

    def forward(self, x):
        h = F.linear(self.norm(x), self.weight, None)
        return x + F.gelu(h) * self.scale


class Inside(Weighted):
    """Looks at the tensors inside, and makes wrappers of its own."""

    def forward(self, x):
        made = TwoTensor(x * 2, self.weight.inner.to(x.dtype).sum(0) + x)
        return (made * 3).a + F.linear(made.b, self.weight, None) + self.scale


class Stack(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def scaled(kind=Kind.LINEAR, bits=8, dtype=torch.float32):
    return Scaled.make(torch.randn(4, 4, dtype=dtype), Options(kind, bits))


WEIGHTS = {
    "wrappers": (Weighted, scaled, lambda: torch.ones(4)),
    "what is inside": (Inside, scaled, lambda: torch.ones(4)),
    "two tensors": (Weighted, lambda: two(4, 4), lambda: two(4)),
    "with gradients": (Weighted, lambda: two(4, 4, grad=True), lambda: torch.ones(4, requires_grad=True)),
    "overriding": (Weighted, lambda: torch.randn(4, 4).as_subclass(Shifted), lambda: torch.ones(4).as_subclass(Shifted)),
    "one of each": (Weighted, scaled, lambda: torch.ones(4).as_subclass(Shifted)),
}


def stack(name):
    torch.manual_seed(0)
    make, weight, scale = WEIGHTS[name]
    return Stack(make(weight(), scale()) for _ in range(LAYERS)).eval()


@pytest.mark.parametrize("name", [n for n in WEIGHTS if n != "what is inside"])  # there each traced call has a function of its own
@pytest.mark.parametrize("grad", [False, True])
def test_same_graph_and_guards(name, grad, monkeypatch):
    check_against_traced(stack(name), stack(name), torch.randn(2, 4), grad, monkeypatch)


@pytest.mark.parametrize("name", WEIGHTS)
def test_same_results(name):
    model, x = stack(name), torch.randn(2, 4)
    with torch.no_grad():
        compiled, graphs, result = graph_of(model, x)
        torch.testing.assert_close(result, model(x), rtol=0, atol=0)
        torch.testing.assert_close(compiled(x * 2), model(x * 2), rtol=0, atol=0)
    assert len(graphs) == 1


@pytest.mark.parametrize("name", ["wrappers", "what is inside", "overriding", "one of each"])  # whose results are plain tensors
def test_they_are_not_traced(name, monkeypatch):
    found = []

    class Watched(conversion.Blocks):
        def _repeat(self, tx, block, fn, arguments):
            result = super()._repeat(tx, block, fn, arguments)
            found.append((fn.cls.__name__, result is not None))
            return result

    monkeypatch.setattr(conversion, "Blocks", Watched)
    model = stack(name)
    with torch.no_grad():
        graph_of(model, torch.randn(2, 4))
    assert found.count((type(model.layers[0]).__name__, True)) == LAYERS - 2  # the first has the caller's tensor


def _weight(make):
    def change(layer):
        layer.weight = nn.Parameter(make(), requires_grad=False)

    return change


def _inner(layer):
    layer.weight.inner = layer.weight.inner.to(torch.int16)


CHANGES = {
    "plain": _weight(lambda: torch.randn(4, 4)),
    "another class": _weight(lambda: two(4, 4)),
    "overriding": _weight(lambda: torch.randn(4, 4).as_subclass(Shifted)),
    "context": _weight(lambda: scaled(Kind.SQUARE)),
    "another context": _weight(lambda: scaled(bits=4)),
    "inside": _inner,
    "one that is inside": lambda layer: setattr(layer.weight, "scale", layer.weight.scale * 3),
    "written to": lambda layer: layer.weight.scale.mul_(2),
    "shape inside": lambda layer: setattr(layer.weight, "scale", torch.full((4, 1), 0.5)),
    "of the context": lambda layer: setattr(layer.weight.options, "kind", Kind.SQUARE),
    "scale": lambda layer: setattr(layer, "scale", nn.Parameter(torch.ones(4).as_subclass(Shifted), requires_grad=False)),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("where", [0, 2, LAYERS - 1])
@pytest.mark.parametrize("later", [False, True])
def test_a_layer_that_differs(change, where, later):
    model, x = stack("wrappers"), torch.randn(2, 4)
    with torch.no_grad():
        if later:
            compiled, _, result = graph_of(model, x)
            torch.testing.assert_close(result, model(x), rtol=0, atol=0)
            CHANGES[change](model.layers[where])
        else:
            CHANGES[change](model.layers[where])
            compiled, _, _ = graph_of(model, x)
        torch.testing.assert_close(compiled(x), model(x), rtol=0, atol=0)
        torch.testing.assert_close(compiled(x), model(x), rtol=0, atol=0)
    assert framegraft.stats()["graph_breaks"] == 0


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_gradients(backend):
    models = [stack("with gradients")]
    models.append(copy.deepcopy(models[0]))
    found = []
    for model, run in zip(models, (models[0], framegraft.compile(models[1], backend=backend, fullgraph=True)), strict=True):
        for x in torch.linspace(-1, 1, 16).view(2, 2, 4):
            run(x).sum().backward()
        found.append([t for p in model.parameters() for t in ((p.grad.a, p.grad.b) if isinstance(p.grad, TwoTensor) else (p.grad,))])
    torch.testing.assert_close(found[1], found[0])
