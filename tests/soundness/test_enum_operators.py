"""Operators between members of enums and numbers or texts that differ from call to call."""

import enum

import pytest
import torch

import framegraft


class Int(enum.IntEnum):
    A = 1
    B = 2


class Text(*((enum.StrEnum,) if hasattr(enum, "StrEnum") else (str, enum.Enum))):  # since CPython 3.11
    A = "a"


class Flags(enum.Flag):
    A = 1
    B = 2


class IntFlags(enum.IntFlag):
    A = 1
    B = 2


MEMBERS = [Int.A, Int.B, Text.A, Flags.A, IntFlags.B]
OTHERS = [1, 2, 3, 1.0, 2.5, True, "a", None, (1,)]


@pytest.mark.parametrize("sign", "== != < + * | % & -".split())
def test_enum_operators(sign):
    names: dict = {}
    body = f"    try: r = a {sign} b\n    except TypeError as error: r = str(error)\n    return x + 1, r\n"
    exec(f"def f(x, a, b):\n{body}", names)
    f, x = names["f"], torch.ones(1)
    captured = framegraft.compile(f, backend="eager")
    with framegraft.config.patch(cache_size_limit=1000, accumulated_cache_size_limit=10000):
        for member in MEMBERS:
            for other in (*OTHERS, *MEMBERS):
                for a, b in ((member, other), (other, member)):
                    wanted, got = f(x, a, b)[1], captured(x, a, b)[1]
                    assert (type(wanted), repr(wanted)) == (type(got), repr(got)), (a, b)
