"""Instances of subclasses of int, float, str and bytes: in C they are their value, in Python what their class says; regular expressions."""

import math
import operator
import re
import warnings

import pytest
import torch

import framegraft

from .differential import differential


class Text(str):
    pass


class Count(int):
    pass


class Rate(float):
    pass


class Data(bytes):
    pass


TEXT, COUNT, RATE = Text("1.2.3"), Count(3), Rate(1.5)


@differential(lambda: (torch.ones(3), Text("1.2.3")), graphs=1)
def test_texts(x, s):
    told = [s.upper(), s + "a", "a" + s, s * 2, len(s), s[0], s[1:], s == "1.2.3", "1.2.3" == s, s < "2", "0" < s, "1" in s, s in "01.2.3"]
    told += [f"{s}", f"{s!r:>9}", "{}-{}".format(s, 1), str(s), repr(s), hash(s) == hash("1.2.3"), {s: 1}.get("1.2.3"), s in {"1.2.3"}]
    told += [list(s), sorted([s, "0"]), max(s, "0"), "-".join([s, "b"]), s.join(["a", "b"]), s.split("."), s.replace("1", s), bool(s), not s]
    told += [isinstance(s, str), type(s).__name__, type(s.strip()).__name__, str.upper(s), s.__add__("b"), operator.eq(s, s), dict(a=s)["a"]]
    return x + 1, told, s


@differential(lambda: (torch.ones(3), Count(3)), graphs=1)
def test_integers(x, n):
    told = [n + 1, 1 + n, n * 2, n / 2, 7 // n, -n, ~n, abs(n), n == 3, 4 > n, n & 1, n << 1, int(n), float(n), str(n), f"{n:03d}", "%d" % n]
    told += [bool(n), not n, hash(n) == 3, {n: 1}.get(3), n in {3}, list(range(n)), [0, 1, 2, 3][n], (1, 2, 3, 4)[:n], "abcdef"[n], min(n, 4)]
    told += [sum([n, n]), round(n), divmod(n, 2), math.sqrt(n), n.bit_length(), type(n + 1).__name__, chr(n + 60), [1] * n, n * "a"]
    return x * n, n - x, x[:n], torch.ones(n), torch.full((2,), n), x.view(n, 1), x.repeat(n), x == n, torch.tensor([n, 1]), told, n


@differential(lambda: (torch.ones(3), Rate(1.5), Data(b"ab")), graphs=1)
def test_floats_and_bytes(x, f, b):
    told = [f * 2, 1 - f, -f, f == 1.5, 2 > f, int(f), str(f), f"{f:.2f}", "%.1f" % f, round(f), round(f, 1), math.sin(f), math.floor(f), bool(f)]
    told += [f.is_integer(), type(f * 2).__name__, b + b"c", len(b), b[0], b.decode(), list(b), b == b"ab", b"a" in b]
    return x * f, f - x, x**f, torch.full((2,), f), x.clamp(min=f), x > f, told


class Own(int):
    def __new__(cls, value, tag):
        made = super().__new__(cls, value)
        made.tag = tag
        return made

    def __add__(self, other):
        return "added", self.tag

    def __eq__(self, other):
        return "equal"

    def __hash__(self):
        return 5

    def __bool__(self):
        return False

    def __index__(self):
        return 1

    def __str__(self):
        return "own"

    @property
    def double(self):
        return self * 2


@differential(lambda: (torch.ones(3), Own(3, "t")))
def test_methods_of_the_class(x, n):
    told = [n + 1, n == 4, bool(n), not n, str(n), f"{n}", n * 2, n.double, n.tag, n - 1, int.__add__(n, 1), int(n), [7, 8, 9, 10][n], sorted([n, 1])]
    return x + 1, told, len(range(n))


class Letters(str):
    def __iter__(self):
        return iter("xyz")

    def __len__(self):
        return 99

    def __getitem__(self, index):
        return "item"

    def __contains__(self, item):
        return True

    def __lt__(self, other):
        return True

    def upper(self):
        return "up"


@differential(lambda: (torch.ones(3), Letters("ab")))
def test_texts_that_tell_something_else(x, s):
    return x + 1, list(s), len(s), s[0], "q" in s, s < "a", s.upper(), s.lower(), str.upper(s), "-".join([s]), sorted([s, "0"]), s + "c"


@differential(lambda: (torch.ones(3), TEXT), graphs=1)
def test_versions(x, s):
    version = torch.__version__
    parts = tuple(int(part) for part in version.split(".")[:2])
    newer = version >= "1.13", version >= (2, 0), version < "1.0", version == "parrot", (1, 0) < version, parts >= (2, 0)
    return x + 1 if version > (2, 0) else x, newer, version.startswith("2"), s.split(".")


def test_values_are_guarded():
    def f(x, n, s):
        return x * n, s + "!", type(n).__name__, type(s).__name__

    compiled = framegraft.compile(f, backend="eager", fullgraph=True)
    x = torch.ones(2)
    for n in (Count(2), Count(3), 2, True, 2.0, Rate(2.0), Count(2)):
        for s in (Text("a"), "a", Text("b")):
            got, expected = compiled(x, n, s), f(x, n, s)
            assert got[0].tolist() == expected[0].tolist() and got[1:] == expected[1:], (n, s)


def test_attributes_and_methods_are_guarded():
    class Late(int):
        pass

    compiled = framegraft.compile(lambda x, n: (x + 1, n + 1, n.tag), backend="eager", fullgraph=True)
    n = Late(3)
    n.tag = "a"
    assert compiled(torch.zeros(1), n)[1:] == (4, "a")
    n.tag = "b"
    assert compiled(torch.zeros(1), n)[1:] == (4, "b")
    Late.__add__ = lambda self, other: 100
    assert compiled(torch.zeros(1), n)[1:] == (100, "b")


PAIR = re.compile(r"(?P<major>\d)\.(\d)")


@differential(lambda: (torch.ones(3), "v1.2 and 3.4", Text("5.6")), graphs=1)
def test_patterns(x, text, own):
    found, none = PAIR.search(text), PAIR.fullmatch(text)
    told = [found.group(), found.group(1, 2), found["major"], found.groups(), found.groupdict(), found.span(), found.start(2), bool(found)]
    told += [none is None, found is None, PAIR.findall(text), PAIR.sub(r"\2", text), PAIR.subn("", text), PAIR.match(own).group(), PAIR.split(own)]
    told += [re.search("a.d", text).group(), re.sub("and", "or", text), re.split(" ", text), re.match(PAIR, own).end(), PAIR.pattern]
    number = re.compile("[0-9]", re.IGNORECASE)
    return x + 1 if found else x, told, [int(n) for n in number.findall(text)]


@differential(lambda: (torch.ones(3), "v1.2"))
def test_matches_and_breaks(x, text):
    found = PAIR.search(text)
    framegraft.graph_break()
    doubled = re.sub(r"\d", lambda match: match.group() * 2, text)
    try:
        re.match("(", text)
    except re.error as error:
        return x + 1, found.group(), found.string, doubled, str(error)


@pytest.mark.parametrize("pattern", ["a", "b"])
def test_patterns_are_guarded(pattern):
    compiled = framegraft.compile(lambda x, p: x + 1 if p.search("abc").start() else x, backend="eager", fullgraph=True)
    for p in (re.compile(pattern), re.compile("c"), re.compile(pattern)):
        assert compiled(torch.zeros(1), p).item() == bool(p.search("abc").start())


@differential(lambda: (torch.ones(3), "ab[c"))
def test_patterns_that_warn_and_print(x, text):
    found = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        re.purge()
        found.append(re.findall("[[a]", text))
        found.append(re.compile("a", re.DEBUG).findall(text))
        found.append(re.compile("[[b]").findall(text))
    return x + 1, found, [(str(w.message), w.filename == __file__) for w in caught]
