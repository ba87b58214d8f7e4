"""Functions of NumPy that read from arrays which shape to give, or along which axis: shape propagation calls them on ones.

They are known by what they may be given. Left out are functions that only take numbers to compute with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_OF_NUMBERS = frozenset("array clip convolve dot inner interp isclose kron outer vdot where full_like ndarray.clip ndarray.dot".split())
# Where the arguments begin that say the shape, in functions that may be given arrays of sizes, counts or axes.
_SHAPED_FROM: dict[str, int] = dict.fromkeys("arange empty eye fft.fftfreq fft.rfftfreq full identity ones tri zeros".split(), 0)
_SHAPED_FROM |= dict.fromkeys("pad repeat tile ndarray.repeat fft.fft2 fft.fftn fft.ifft2 fft.ifftn fft.fftshift fft.ifftshift".split(), 1)
_SHAPED_FROM |= dict.fromkeys("geomspace linspace logspace tensordot".split(), 2)
_SHAPED_TO: dict[str, int] = {"full": 1, "pad": 2}
_SHAPES = frozenset("shape axis axes ndmin s".split())
_NUMBERS = frozenset("start stop a b A array fill_value constant_values end_values".split())


def shaped_by_values(name: str, args: list, kwargs: dict, holds: Callable[[Any, bool], bool]) -> bool:
    """Whether values of arrays may decide on the shape of what the function gives. It is neither a ufunc nor an operator.

    holds: whether an argument is or has an array, any or only (False) one that may stand for an integer.
    """
    if any(holds(value, True) for key, value in kwargs.items() if key in _SHAPES):
        return True
    start = _SHAPED_FROM.get(name)
    if start is not None:
        # arange(start, stop) has its numbers where its size is
        named = [value for key, value in kwargs.items() if name == "arange" or key not in _NUMBERS]
        return any(holds(value, True) for value in (*args[start : _SHAPED_TO.get(name)], *named))
    # An integer behind the first argument may be an axis, or a number of axes or elements.
    return name not in _OF_NUMBERS and any(holds(value, False) for value in (*args[1:], *kwargs.values()))
