"""Loops over Python and tensor values."""

import torch

from .differential import differential


@differential(graphs=1)
def test_for_range(x):
    for i in range(4):
        x = x + i
    return x, i


@differential(graphs=1)
def test_while_counter(x):
    i = 0
    while i < 5:
        i += 2
        x = x * i
    return x, i


@differential(graphs=1)
def test_for_else_break_continue(x):
    for i in range(10):
        if i == 1:
            continue
        if i == 4:
            break
        x = x + i
    else:
        x = x * 100
    for _ in range(2):
        pass
    else:
        x = x - 1
    return x


@differential(graphs=1)
def test_while_else(x):
    n = 3
    while n:
        n -= 1
        x = x + n
    else:
        x = x * 2
    while True:
        n += 1
        if n > 2:
            break
    else:
        x = x * 1000
    return x, n


@differential(graphs=1)
def test_nested_loops(x):
    total = []
    for i in range(3):
        for j in range(i, 3):
            if (i + j) % 2:
                continue
            x = x + i * j
            total.append((i, j))
            if len(total) > 3:
                break
    return x, total


@differential(lambda: ([torch.ones(2), torch.zeros(2)], {"a": 1.0, "b": 2.0}), graphs=1)
def test_loop_over_containers(items, weights):
    out = []
    for index, item in enumerate(items):
        for name, weight in weights.items():
            out.append((name, item * weight + index))
    for a, b in zip(items, reversed(items)):
        out.append(a - b)
    return out


@differential(lambda: (torch.arange(6.0).reshape(3, 2),))
def test_loop_over_tensor(x):
    total = torch.zeros(2)
    for row in x:
        total = total + row
    a, b, c = x
    return total, a * b - c, len(x)


@differential(lambda: (torch.tensor(1.0),))
def test_while_on_tensor(x):
    steps = 0
    while x < 20:
        x = x * 2 + 1
        steps += 1
    return x, steps


@differential(lambda: (torch.tensor([3.0, -1.0, 2.0]),))
def test_break_on_tensor(x):
    out = []
    for i in range(3):
        if x[i] < 0:
            out.append("negative")
            break
        out.append(x[i] * 2)
    else:
        out.append("none")
    return out


@differential()
def test_print_in_loop(x):
    for i in range(3):
        x = x + i
        print("step", i, x.tolist())
    return x


@differential(lambda: ([1, 2, 3],))
def test_list_grows_while_iterated(items):
    seen = []
    for item in items:
        seen.append(item)
        if item < 3 and len(items) < 6:
            items.append(item + 1)
    return seen


@differential(lambda: ({"a": 1, "b": 2},))
def test_dict_changes_size_while_iterated(d):
    for key in d:
        d[key + "x"] = 0
    return d


@differential(lambda: (iter([1, 2, 3, 4, 5]), torch.ones(2)))
def test_iterator_argument_is_advanced(it, x):
    first = next(it)
    for item in it:
        x = x * item
        if item == 3:
            break
    return x, first, next(it, "none")


@differential(lambda: (torch.ones(2),))
def test_loop_variable_after_empty_loop(x):
    for i in []:
        x = x + i
    return x + i


@differential()
def test_try_in_loop(x):
    out = []
    for i in range(4):
        try:
            if i == 1:
                raise ValueError(i)
            if i == 3:
                break
            out.append(x * i)
        except ValueError as error:
            out.append(error.args)
            continue
        finally:
            out.append(i)
    return out


@differential(lambda: (torch.ones(2), 0))
def test_iter_with_sentinel(x, n):
    values = [3, 2, 1, 0, 7]
    for v in iter(lambda: values.pop(0), 0):
        x = x + v
        n += 1
    return x, n, values


def pause():
    print(end="")


@differential(lambda: (torch.ones(2), {1, 2}, {1, 2}, {"a": 1, "b": 2}, [1, 2, 3]))
def test_loops_over_what_has_just_changed(x, less, more, table, items):
    less.discard(2)
    more.add(5)
    table["z"] = 3
    items.remove(1)
    told = []
    for group in (less, more, table, items):
        for member in group:
            pause()
            told.append(member)
        iterator = iter(group)
        next(iterator)
        pause()
        told.append(list(iterator))
    return x + 1, told
