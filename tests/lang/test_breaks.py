"""Branches on tensor values and other breaks, inside every kind of block."""

import contextlib

import torch

from .differential import IDENTITY, differential

if not IDENTITY:
    import framegraft

SIGN = 1


def graph_break():
    """A break the user asks for; nothing in eager mode."""
    if not IDENTITY:
        framegraft.graph_break()


def mixed():
    return torch.tensor([1.0, -2.0, 3.0]), torch.tensor([-1.0, -1.0, 1.0])


def negate_if(x):
    if x.sum() < 0:
        return -x
    return x


def two_deep(x):
    y = negate_if(x - 1) + 1
    return negate_if(y * 2)


@contextlib.contextmanager
def tracked(log):
    log.append("in")
    try:
        yield log
    finally:
        log.append("out")


@differential(mixed)
def test_branch(a, b):
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


@differential(mixed)
def test_branch_with_live_stack(a, b):
    return [a + 1, 2, (b if b[0] < 0 else a), a * 2, {"k": not b.sum()}, (a.sum() > 0 and b.sum() > 0) or "neither"]


@differential(mixed)
def test_in_for_loop(a, b):
    out = []
    for i, v in enumerate([a, b, a - 5]):
        if v.sum() > 0:
            out.append(v * i)
            continue
        out.append(-v)
    return out, i


@differential(mixed)
def test_in_while_and_nested_loop(a, b):
    n = 0
    while (a > 0).any():
        for j in range(2):
            a = a - 1
            if a.max() < 0:
                break
        n += 1
    return a, n, j, b + n


@differential(mixed)
def test_in_with(a, b):
    log = []
    with tracked(log) as same:
        if a.sum() > 0:
            same.append("positive")
            a = a * 2
        with torch.no_grad():
            if b.sum() < 0:
                return a, log
    return b, log


@differential(mixed)
def test_in_try(a, b):
    log = []
    try:
        if a.sum() > 0:
            log.append("raise")
            raise ValueError("positive")
    except ValueError as error:
        if b.sum() < 0:
            log.append(error.args)
        a = a + 1
    finally:
        if a.sum() > 4:
            log.append("finally")
        b = b * 2
    return a, b, log


@differential(mixed)
def test_in_callee(a, b):
    c = negate_if(a) + negate_if(b)
    return c * 2, two_deep(b), negate_if(c)


@differential(mixed)
def test_in_comprehension(a, b):
    return [v.item() if v > 0 else None for v in a], {bool(v > 0): i for i, v in enumerate(b)}


@differential(mixed)
def test_in_lambda_and_closure(a, b):
    def pick(v):
        return a if v.sum() > 0 else b

    return pick(a), (lambda v: v * 2 if v[0] > 0 else v)(pick(b))


@differential(mixed)
def test_asked_for(a, b):
    x = a + 1
    graph_break()
    y = x * b
    for _ in range(2):
        graph_break()
        y = y + 1
    return y, x is x


@differential(mixed)
def test_keeps_identity(a, b):
    items = [a]
    pair = (items, b)
    print("break")
    items.append(b)
    c = pair[0]
    graph_break()
    c.append(items[0])
    return pair, c is items, items[0] is a, items[-1] is a


@differential(mixed)
def test_keeps_cells(a, b):
    n = 1

    def bump():
        nonlocal n
        n += 1
        return a * n

    x = bump()
    print(n)
    y = bump()
    graph_break()
    return x, y, bump(), n


@differential(mixed)
def test_mutation_order_across_breaks(a, b):
    global SIGN
    log = {}
    SIGN = -1
    log["a"] = a * SIGN
    print(sorted(log), SIGN)
    a.mul_(2)
    log["b"] = a
    if b.sum() < 0:
        SIGN = 5
    log["c"] = SIGN
    return log


@differential(mixed)
def test_item_and_tolist(a, b):
    n = int(a[2].item())
    return [b * i for i in range(n)], a.tolist(), float(b.sum()) + n


@differential(mixed)
def test_error_after_break(a, b):
    print("before")
    c = a * b
    if c.sum() > 0:
        raise KeyError("sum", float(c.sum()))
    return c


@differential(mixed)
def test_generator_across_break(a, b):
    def source():
        yield a
        yield b

    out = []
    for v in source():
        print(v.sum().item())
        out.append(v + 1)
    return out


@differential(mixed)
def test_match_across_break(a, b):
    match a.sum() > 0, b:
        case (flag, t) if flag:
            return t + 1
        case _:
            return b


@differential(mixed, graphs=2)
def test_break_among_a_methods_arguments(a, b):
    return (a + 1).masked_fill(b > int(b.sum().item()), 3.0) + 1


@differential(mixed, graphs=3)
def test_break_among_the_arguments_of_list_methods(a, b):
    out = [a * 2]
    out.append(int(b.sum().item()))
    out.insert(0, "{}".format(float(a.sum().item())))
    return out[1] + out[2], out[0]
