"""Arithmetic, locals and branches on Python values."""

import operator

import torch

import framegraft

from .differential import differential

SCALE = 3


def xy():
    return torch.arange(1.0, 4.0), torch.tensor([2.0, -1.0, 0.5])


@differential(xy, graphs=1)
def test_operators(x, y):
    a = x + y - 1
    b = a * 2 / (y.abs() + 1)
    return b**2 % 3, a // 2, -b, +a, x @ y


@differential(xy, graphs=1)
def test_reflected_and_inplace_operators(x, y):
    a = 2 - x
    a += y
    a *= 1.5
    a /= 3
    a -= x
    b = 1 / y
    b **= 2
    return a, b, 2**x, 7 // x, 7 % x


@differential(lambda: (torch.ones(3), 5, 2.5, True), graphs=1)
def test_python_numbers_fold(x, i, f, flag):
    n = (i * 3 - 1) // 4 + (i << 2) ^ 3 | 8 & ~i
    r = f * 2 - i % 3 + (1 if flag else 0)
    c = complex(i, 2) * 1j
    return x * n + r, n, r, c, divmod(i, 3), round(f), abs(-i), i**2, i >> 1, not flag


@differential(lambda: (torch.ones(2), 4), graphs=1)
def test_branches_on_python_values(x, n):
    if n > 3 and n < 10:
        x = x + 1
    elif n == 3:
        x = x + 2
    else:
        x = x + 3
    if not n or n is None:
        x = x * 10
    y = x * 2 if n % 2 == 0 else x * 3
    return y, n in (1, 4), n not in [2], 0 < n <= 4 < 9


@differential(lambda: (torch.ones(2), None))
def test_default_by_none(x, y):
    if y is None:
        y = torch.zeros_like(x)
    return x + y, y is None, x is not None


@differential(xy, graphs=1)
def test_locals_swap_and_delete(x, y):
    x, y = y, x
    a = b = x + 1
    (c, d), e = (a, b), y
    del a
    b, c, d = c, d, b
    return b - c, d * e, b is c


@differential(xy)
def test_unbound_local(x, y):
    if SCALE < 0:
        z = x
    try:
        return z
    except UnboundLocalError as error:
        return y, str(error)


@differential(xy)
def test_deleted_local_raises(x, y):
    z = x + y
    del z
    return z


@differential(xy, graphs=1)
def test_tensor_compare_and_where(x, y):
    mask = (x > 1) & ~(y < 0) | (x == y)
    return torch.where(mask, x, y), mask ^ True, (x >= y).sum(), x != y


@differential(lambda: (torch.tensor(3.0), torch.tensor(2)))
def test_tensor_to_python(x, n):
    a = float(x) * 2
    b = int(n) + 1
    return a, b, bool(x), x.item() + n.item(), [1, 2, 3, 4][n]


@differential(lambda: (torch.tensor([1.0, float("nan"), -0.0, float("inf")]),), graphs=1)
def test_special_floats(x):
    return x + 0.0, x * -0.0, -x, x == x, x / 0.0, (0.0 * -1, float("inf") - 1)


@differential(lambda: (torch.ones(3), 10**30))
def test_big_integers(x, n):
    return x * 2, n * n + 1, n % 97, -n // 7


@differential(lambda: (torch.ones(3), 2))
def test_division_by_zero(x, n):
    y = x + n
    return y, 1 // (n - 2)


@differential(lambda: (torch.ones(3), "s"))
def test_type_error_from_operator(x, s):
    try:
        return s + 1
    except TypeError as error:
        return x + 1, str(error)


@differential(xy, graphs=1)
def test_walrus_and_chained(x, y):
    if (n := len(x)) > 2:
        x = x * n
    z = (w := y + 1) * w
    return x, z, w, 1 < n < 5, (m := 7) + m


@differential(xy)
def test_assertions(x, y):
    assert x.dim() == 1, "one dimension"
    try:
        assert SCALE == 4, ("scale", SCALE)
    except AssertionError as error:
        return x * y, error.args


@differential(lambda: (torch.ones(3), 1, True, 1.0))
def test_bool_int_float_stay_apart(x, i, b, f):
    return x * i, type(i) is type(b), i == b == f, i is b, {i: "a", b: "b", f: "c"}, str(b), b + b


@differential(lambda: (torch.ones(2), "abc"))
def test_extremes_of_what_has_no_order(x, text):
    told = []
    for ask in (lambda: max(text, 5), lambda: min([5, text]), lambda: list(map(max, [text], [5])), lambda: max(1j, 2j), lambda: max(None, 1)):
        try:
            ask()
        except TypeError as error:
            told.append(error.args)
    return x + len(told), told


def test_rounding_numbers_that_change():
    def rounded(x, n):
        return x + 1, round(n, -1), round(n, -2), round(n, 0), round(n, 1), round(n)

    x = torch.ones(2)
    captured = framegraft.compile(rounded, backend="eager")
    for n in (7, 11, 15, 25, -25, 149, 150, -519, 31415, 1.5, 2.5, 14.96, 25.0, -0.05, 1e16):
        assert [repr(v) for v in captured(x, n)[1:]] == [repr(v) for v in rounded(x, n)[1:]], n


@differential(lambda: (torch.tensor([0.0, 2.0, 3.0]), torch.tensor([0, 1, 2]), -3), graphs=1)
def test_negative_numbers_to_the_power_of_a_tensor(x, n, k):
    told = [(-1) ** n, (-2.5) ** x, k ** n, pow(-1, x), operator.pow(-2, x), (-float("inf")) ** n, (-0.0) ** x, n.__rpow__(-2)]
    k **= x
    return told, k, x ** -1, -x ** 2, (-x) ** 2, ~n ** 2, -1 - x, -7 // n.add(1), -7 % n.add(1)
