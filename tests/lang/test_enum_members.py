"""Enums' members that are numbers or texts, as arguments of tensors' operations and with their methods in C."""

import enum

import torch

from .differential import differential


class Axis(enum.IntEnum):
    ROW = 0
    COLUMN = 1
    LAST = 2


class Bits(enum.IntFlag):
    READ = 1
    WRITE = 2


class Rate(float, enum.Enum):
    SLOW = 0.5
    FAST = 2.0


class Mode(str, enum.Enum):
    NEAREST = "nearest"
    LINEAR = "linear"


class Odd(enum.IntEnum):
    ONE = 1

    def __mul__(self, other):
        return "mine", other

    def __radd__(self, other):
        return "mine, too"

    def __index__(self):
        return 7


def square():
    return (torch.arange(9.0).reshape(3, 3),)


@differential(square, graphs=1)
def test_arguments_of_operations(x):
    y = x * Axis.LAST + Axis.COLUMN - Rate.SLOW
    y = y.sum(Axis.ROW), y.sum(dim=Axis.COLUMN), y[Axis.LAST], y[:Axis.LAST], x.reshape(-1, *[Axis.COLUMN] * 2), torch.zeros(Axis.LAST)
    return (*y, Axis.LAST * x, Axis.LAST - x, x > Axis.COLUMN, Axis.COLUMN <= x, x ** Rate.FAST, Rate.FAST ** x, torch.full((2,), Axis.LAST),
            torch.nn.functional.interpolate(x[None], scale_factor=Axis.LAST, mode=Mode.NEAREST), x.transpose(Axis.ROW, Axis.COLUMN))


@differential(square, graphs=1)
def test_methods_and_places(x):
    items = [10, 20, 30]
    return (x * items[Axis.COLUMN], len(Mode.LINEAR), Mode.LINEAR.upper(), Mode.LINEAR.startswith("lin"), int(Axis.LAST), float(Rate.FAST),
            Axis.LAST.bit_length(), list(range(Axis.LAST)), items[: Axis.LAST], Rate.SLOW.is_integer(), Mode.LINEAR.split("n"), int(Bits.READ),
            Rate.FAST.as_integer_ratio(), type(int(Axis.ROW)), "x" * Axis.LAST, Mode.LINEAR in ("linear",), {Axis.ROW: 1}[0])


@differential(square)
def test_flags(x):
    both = Bits.READ | Bits.WRITE
    return x * (2 if both & Bits.READ else 3), x + both, both, int(both), x.to(torch.int32) | Bits.READ, Bits.READ in both


@differential(square)
def test_operators_of_its_own(x):
    told = []
    for act in (lambda: Odd.ONE * x, lambda: x * Odd.ONE, lambda: x + Odd.ONE, lambda: Odd.ONE + x, lambda: x[Odd.ONE], lambda: [1, 2][Odd.ONE],
                lambda: int(Odd.ONE), lambda: x.sum(Odd.ONE), lambda: list(range(Odd.ONE)), lambda: Odd.ONE.bit_length()):
        try:
            told.append(act())
        except Exception as error:
            told.append((type(error), error.args))
    return told


MODE = Axis.ROW


def test_members_are_guarded():
    import framegraft

    global MODE
    compiled = framegraft.compile(lambda x, axis: (x.sum(MODE), x * axis), backend="eager", fullgraph=True)
    x = torch.arange(6.0).reshape(2, 3)
    for MODE in (Axis.ROW, Axis.COLUMN, 0, 1, Axis.ROW):
        for axis in (Axis.LAST, 2, Bits.WRITE, Rate.FAST, Axis.ROW):
            got = compiled(x, axis)
            assert torch.equal(got[0], x.sum(MODE)) and torch.equal(got[1], x * axis)
