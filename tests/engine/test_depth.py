"""How deep a program nests calls: what fits in eager mode fits when it is captured."""

import sys

import pytest
import torch

import framegraft
from framegraft.interp.state import recursion_room


def deep(n, x):
    if n == 0:
        return x
    print(end="")  # a break: the rest of each call is a frame of its own
    return deep(n - 1, x) + 1


@pytest.mark.parametrize("how", ["compile", "optimize"])
def test_recursion_with_a_break_at_each_level(how):
    x = torch.ones(2)
    made = framegraft.compile(deep, backend="eager") if how == "compile" else framegraft.optimize("eager")(deep)
    assert torch.equal(made(600, x), deep(600, x))


def test_endless_recursion_is_the_programs_error():
    def endless(x):
        print(end="")
        return endless(x + 1)

    with pytest.raises(RecursionError):
        framegraft.compile(endless, backend="eager")(torch.ones(2))


def test_the_limit_is_the_programs_again_when_two_threads_have_traced():
    limit = sys.getrecursionlimit()
    first, second = recursion_room(), recursion_room()
    first.__enter__()
    second.__enter__()
    assert sys.getrecursionlimit() > limit
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    assert sys.getrecursionlimit() == limit
