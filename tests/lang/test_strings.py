"""Strings, formatting, bytes."""

import torch

from .differential import differential


class Money:
    def __init__(self, n):
        self.n = n

    def __format__(self, spec):
        return f"<{self.n}:{spec}>"

    def __repr__(self):
        return f"Money({self.n!r})"


def x_n_s():
    return torch.ones(2, 3), 42, "graft"


@differential(x_n_s, graphs=1)
def test_fstrings(x, n, s):
    return x + 1, f"{n}", f"{n:>6}|{n:#x}", f"{s!r:>10}", f"{s}{n}-{3.14159:.2f}", f"{{}}{n + 1=}"


@differential(x_n_s, graphs=1)
def test_shape_in_fstring(x, n, s):
    name = f"{s}_{x.shape[0]}x{x.size(1)}_{tuple(x.shape)}_{x.dtype}_{x.ndim}"
    return {name: x * n}


@differential(x_n_s)
def test_format_of_user_class(x, n, s):
    m = Money(n)
    return f"{m:abc} {m} {m!r}", "{0} {0!r} {k:z}".format(m, k=m), x * n, "%s|%r" % (m, s)


@differential(x_n_s, graphs=1)
def test_methods(x, n, s):
    return (
        x * len(s),
        s.upper(),
        s.replace("r", "l"),
        s.split("a"),
        ",".join([s, "b"]),
        s.startswith("gr"),
        s.find("f"),
        s.strip("gt"),
        s.center(9, "*"),
        "a-b-c".partition("-"),
        s.encode(),
        s.isalpha(),
        s.zfill(8),
        s.title(),
    )


@differential(x_n_s, graphs=1)
def test_operators(x, n, s):
    return s + "x", s * 2, "ra" in s, s[1:3], s[::-1], s < "h", s == "graft", [c for c in s], x * s.count("a")


@differential(x_n_s, graphs=1)
def test_percent_and_format(x, n, s):
    return "%d-%s-%5.1f" % (n, s, 2.5), "{:>5}{a}".format(n, a=s), "%(k)s" % {"k": n}, format(n, "b"), x + 1


@differential(x_n_s)
def test_conversions(x, n, s):
    return str(n), repr(s), ascii("é"), int("17", 8), float("1e3"), chr(97), ord("b"), hex(n), bin(n), x


@differential(x_n_s)
def test_conversion_error(x, n, s):
    return int(s)


@differential(x_n_s, graphs=1)
def test_bytes(x, n, s):
    b = s.encode("utf-8")
    return b[0], b[1:3], b + b"!", b.decode(), b.hex(), bytes([1, 2]), list(b), x + b[0]


@differential(x_n_s)
def test_tensor_formatting(x, n, s):
    return f"{x.sum():.1f} {x[0]}", str(x * n), s


@differential(x_n_s)
def test_prints(x, n, s):
    print(s, n, sep="-", end=";\n")
    y = x + 1
    print(f"{y.shape} {y.sum()}")
    return y


@differential(lambda: ("b", torch.ones(2)), graphs=1)
def test_string_dispatch(mode, x):
    if mode == "a":
        return x
    elif mode.endswith("b") and mode:
        return x + 1
    return x + 2
