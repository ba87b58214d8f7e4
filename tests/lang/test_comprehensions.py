"""Comprehensions and generator expressions."""

import torch

from .differential import differential

FACTORS = [1, 2, 3]


@differential(graphs=1)
def test_list(x):
    return [x * i for i in range(3)], [i for i in range(10) if i % 3 if i > 3]


@differential(graphs=1)
def test_dict_and_set(x):
    d = {str(i): x + i for i in range(3)}
    return d, {len(k) + i for i, k in enumerate(d)}, {v: k for k, v in {"a": 1, "b": 2}.items()}


@differential(graphs=1)
def test_nested(x):
    return [[x * i + j for j in range(i)] for i in range(3)], [(i, j) for i in range(3) for j in range(i)]


@differential(graphs=1)
def test_over_global_and_local(x):
    scale = 2
    return [x * f * scale for f in FACTORS], sum(f * scale for f in FACTORS)


@differential(lambda: ([torch.ones(2), torch.zeros(2)],), graphs=1)
def test_over_tensors(items):
    return torch.stack([t + 1 for t in items]), {i: t * 2 for i, t in enumerate(items)}


@differential()
def test_walrus_leaks(x):
    values = [(last := x * i) for i in range(3)]
    return values, last, last is values[-1]


@differential()
def test_raises_inside(x):
    try:
        return [x / (1 // i) for i in (1, 0)]
    except ZeroDivisionError as error:
        return str(error), x


@differential()
def test_break_inside(x):
    return [float((x * i).sum()) for i in range(3)], [print(i) for i in range(2)]


@differential(graphs=1)
def test_generator_expressions(x):
    total = sum(x * i for i in range(3))
    return total, tuple(i * i for i in range(3)), any(i > 1 for i in range(3)), max(len(s) for s in ("a", "bc"))


@differential(lambda: (torch.ones(2), 0))
def test_short_circuit_leaves_the_rest(x, n):
    it = iter([0, 1, 2, 3])
    found = any(v == 1 for v in it)
    return found, list(it), x + n


@differential()
def test_order_of_evaluation(x):
    log = []
    pairs = {log.append(("k", i)) or i: log.append(("v", i)) or x * i for i in range(2)}
    return pairs, log


@differential()
def test_closure_in_comprehension(x):
    fs = [(lambda v, k=k: v * k + j) for k in range(2) for j in range(2)]
    return [f(x) for f in fs]


@differential(graphs=1)
def test_starred(x):
    return [*(i for i in range(2)), *[x]], (*[x + i for i in range(2)],), {**{i: i for i in range(2)}}


@differential(lambda: (torch.ones(2), [1, 2]))
def test_variables_of_their_own(x, items):
    """A comprehension's variables are its own, also where it runs in the function's frame."""
    functions = [lambda: x * item for item in items]
    item = 3
    nested = [[(lambda: item * other) for other in items] for item in items]
    try:
        failed = [1 // (item - item) for other in items for item in items]
    except ZeroDivisionError as error:
        failed = str(error)
    table = {item: other for item in items for other in range(item)}
    last = [other for other in items if (item := other)]
    return [f() for f in functions], item, [[f() for f in row] for row in nested], failed, table, last


@differential(lambda: (torch.ones(2), []))
def test_of_nothing_many_times(x, items):
    found = []
    for round in range(3):
        found += [lambda: (round, item) for item in [*items, round]]
        items = [item + 1 for item in items if item]
    return [f() for f in found], items, x
