"""Random numbers drawn of ``random`` and of generators from outside: drawn in front of the graph, in the order of the program."""

import random

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import framegraft
from framegraft.testing import CompileCounter

from .differential import differential

OWN = random.Random(7)


@differential(graphs=1)
def test_floats(x):
    a, b = random.random(), random.uniform(1, 2)
    return x * a + b, a, b * 2 - a, [random.gauss(0, 1), random.normalvariate(0.0, 1.0), random.triangular(), random.expovariate(2.0)], b > 3


@differential(graphs=1)
def test_whole_numbers(x):
    n = random.randint(1, 2)
    y = x.expand(4, -1)[:n] + random.randrange(3) * random.getrandbits(3)
    return y, n, random.randint(3, 7) + x.shape[0], random.randrange(2, 9, 3), random.randrange(5, 1, -1)


@differential(lambda: (torch.ones(3), 2.5, 4), graphs=1)
def test_arguments(x, high, n):
    return x * random.uniform(1, high), random.uniform(a=n, b=x.shape[0]), random.uniform(0, random.uniform(0, 1)), random.randint(0, n)


@differential(lambda: (torch.ones(3), random.Random(5)), graphs=1)
def test_generators_from_outside(x, given):
    a = given.random() + OWN.uniform(0, 1)
    OWN.seed(3)
    return x * a, OWN.random(), given.randint(0, 9), given.random(), random.random()


@differential(graphs=1)
def test_all_is_drawn(x):
    random.random()
    random.seed(5)
    random.getrandbits(40)
    return x + 1


@differential()
def test_branches(x):
    for _ in range(3):
        if random.random() < 0.5:
            x = x + 1
        elif random.randint(0, 1):
            x = x * 2
    return x, random.random()


class Dropping(torch.nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.layers, self.rate, self.seen = torch.nn.ModuleList(torch.nn.Linear(3, 3) for _ in range(4)), rate, 0.0

    def forward(self, x):
        for layer in self.layers:
            r = random.uniform(0, 1)
            self.seen = r
            if self.training and r < self.rate:
                continue
            x = layer(x) * r
        return x


@differential(lambda: (torch.ones(2, 3), Dropping(0.5)))
def test_layers_that_are_dropped(x, model):
    torch.manual_seed(0)
    return model(x), model.seen


@differential(lambda: (torch.ones(2, 3), Dropping(0.5).eval()), graphs=1)
def test_layers_that_are_not(x, model):
    return model(x), model.seen


@differential()
def test_what_needs_the_value(x):
    r, i = random.random(), random.randint(0, 1)
    table = {0: x, 1: x + 1}
    return table[i], f"{r:.3f}", str(r), int(r * 10), [x, x * 2][i], {r: 1}, hash(i)


@differential()
def test_changes_that_hold_it(x):
    x.tag = random.random()
    made = {"r": random.random()}
    print(made["r"] < 2)
    made["again"] = random.random()
    return x + made["again"], made, x.tag


@differential(lambda: (torch.ones(3), torch.tensor([5])))
def test_a_graph_that_fails(x, index):
    a = random.random()
    try:
        y = x[index] * a
    except IndexError:
        y = x * OWN.random()
    return y + random.random()


@differential(lambda: (torch.ones(3), torch.tensor([5])))
def test_an_error_of_the_graph(x, index):
    a, b = random.random(), torch.rand(3)
    y = x[index] * a + b
    return y + random.random()


@differential(lambda: (torch.ones(3), torch.tensor([5])))
def test_an_error_of_a_graph_that_writes(x, index):
    a = random.random()
    x.mul_(a)
    y = x[index] * a
    return y + random.random()


@differential(lambda: (torch.ones(3), torch.tensor([2])), graphs=1)
def test_a_graph_that_might_fail(x, index):
    return x[index] * random.random() + torch.rand(1) * random.random()


@differential()
def test_errors(x):
    try:
        random.randint(3, 1)
    except ValueError as error:
        return x + random.random(), str(error)


@differential()
def test_given_to_torch(x):
    def scaled(v):
        return v * random.random()

    y = checkpoint(scaled, x.requires_grad_(), use_reentrant=False)
    return y, torch.vmap(scaled)(x.detach()), random.random()


@torch.library.custom_op("framegraft_draws::noisy", mutates_args=())
def noisy_operator(x: torch.Tensor) -> torch.Tensor:
    return x * random.random()


@noisy_operator.register_fake
def _(x):
    return torch.empty_like(x)


class Noisy:
    noisy = noisy_operator


@differential()
def test_operators_that_draw(x):
    a = random.random()
    y = Noisy.noisy(x)
    return y * a + random.random(), torch.ops.framegraft_draws.noisy(x), random.random()


class Halved(random.Random):
    def random(self):
        return super().random() / 2


HALVED = Halved(3)


@differential()
def test_generators_of_other_classes(x):
    return x * HALVED.random() + HALVED.uniform(0, 1), HALVED.randint(0, 5)


def draws(x):
    return x * random.uniform(0, 1) + OWN.uniform(0, 1), OWN.random(), random.random()


def half():
    return 0.5


@pytest.mark.parametrize("target", [(random, "random"), (random, "uniform"), (random._inst, "random"), (OWN, "random"), (OWN, "uniform"),
                                    (OWN, "getrandbits"), (random.Random, "uniform")], ids=lambda t: f"{type(t[0]).__name__}-{t[1]}")
def test_replaced_methods(monkeypatch, target):
    compiled = framegraft.compile(draws, backend="eager")

    def both():
        results = []
        for fn in (draws, compiled):
            random.seed(1)
            OWN.seed(2)
            results.append([repr(fn(torch.ones(2))) for _ in range(2)] + [random.getstate(), OWN.getstate()])
        assert results[0] == results[1]

    both()
    with monkeypatch.context() as patched:
        patched.setattr(*target, (lambda *args: 0.5) if target[1] == "uniform" else half)
        both()
    both()


def clipped(x):
    r = random.random()
    return x.add(1, alpha=r), torch.clamp(x, max=r), torch.tensor([r, 1.0]), x.new_full((2,), r), x**r, x > r, random.randint(2, 3) * x


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_backends(backend):
    x, results = torch.arange(1.0, 4), []
    for fn in (clipped, framegraft.compile(clipped, backend=backend, fullgraph=True)):
        random.seed(4)
        results.append([*fn(x), *fn(x)])
    assert all(torch.allclose(a, b) for a, b in zip(*results, strict=True))


def chance(x):
    return x * random.random() < 0.5


def test_one_graph_for_all_numbers():
    counter = CompileCounter()
    compiled = framegraft.compile(chance, backend=counter, fullgraph=True)
    assert len({random.random() for _ in range(5)} | {compiled(torch.ones(())) for _ in range(5)}) > 6
    assert counter.frame_count == 1
