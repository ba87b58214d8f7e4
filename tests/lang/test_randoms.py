"""``random.Random`` made inside with a seed: what it draws is known."""

import random

import torch

from .differential import differential


@differential(graphs=1)
def test_drawn(x):
    r = random.Random(3)
    drawn = [r.randint(0, 10), r.uniform(1, 2), r.choice([1, 2, 3]), r.gauss(0, 1), r.randrange(5), r.getrandbits(80), r.randbytes(3),
             r.sample(range(10), 3), r.choices([1, 2, 3], k=4), r.normalvariate(0, 1), r.expovariate(1.0), r.betavariate(1, 2),
             r.triangular(), r.paretovariate(2.0), r.weibullvariate(1, 2), r.vonmisesvariate(1, 2), r.gammavariate(1, 2), r.choice("abc")]
    return x * drawn[1] + r.random(), drawn


@differential(graphs=1)
def test_given_back(x):
    r, other = random.Random("seed"), random.Random(x=b"seed")
    r.gauss(0.0, 1.0)
    return x * r.random(), r, [r, other], type(r), isinstance(r, random.Random)


@differential(graphs=1)
def test_state(x):
    r = random.Random(3)
    state = r.getstate()
    a = r.random()
    r.setstate(state)
    b = r.random()
    r.seed(7)
    return x * a, a == b, r.random(), state


@differential(graphs=1)
def test_objects(x):
    r = random.Random(11)
    items = [x, x + 1, x * 2, None]
    one, two, three = r.choice(items), r.sample(items, 2), r.choices(items, [1, 2, 3, 4], k=2)
    r.shuffle(items)
    return one, two, three, items


@differential(lambda: (torch.ones(3), [1, 2, 3, 4], 5), graphs=1)
def test_from_outside(x, items, n):
    r = random.Random(n)
    r.shuffle(items)
    return x * items[0], r.randrange(n)


@differential(graphs=1)
def test_errors(x):
    r, told = random.Random(1), []
    for fail in (lambda: r.choice([]), lambda: r.randint(3, 1), lambda: random.Random([1]), lambda: r.sample([1], 2)):
        try:
            fail()
        except Exception as error:
            told.append((type(error), str(error)))
    return x + r.random(), told


class Noisy(torch.nn.Module):
    def forward(self, x, r):
        return x * r.random()


LAYERS = torch.nn.ModuleList([Noisy(), Noisy(), Noisy()])


@differential(graphs=1)
def test_given_to_layers(x):
    r = random.Random(2)
    for layer in LAYERS:
        x = layer(x, r)
    return x, [layer(x, random.Random(3)) for layer in LAYERS]


@differential()
def test_without_a_seed(x):
    r = random.Random()
    r.seed(3)
    return x * r.random()


@differential()
def test_across_a_break(x):
    r = random.Random(5)
    y = x * r.random()
    print("half-way")
    return y + r.random(), r


SHARED = random.Random(3)


@differential()
def test_of_the_program(x):
    SHARED.seed(4)
    random.seed(5)
    return x * SHARED.random() + random.random()


def always_one(self):
    return 1.0


@differential()
def test_replaced_method(x):
    kept = random.Random.random
    random.Random.random = always_one
    try:
        return x * random.Random(3).random()
    finally:
        random.Random.random = kept
