"""Programs that put special methods on torch.Tensor itself: operators and builtin functions ask for them, whenever they do."""

from __future__ import annotations

import contextlib
import copy
import operator
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import framegraft

CASES: dict[str, tuple[Any, Any]] = {
    "__len__": (lambda s: 3, lambda x: (x * len(x), list(range(len(x))))),
    "__iter__": (lambda s: iter([5.0, 6.0]), lambda x: (x + 1, [v * 2 for v in x], dict(zip(x, x, strict=True)))),
    "__copy__": (lambda s: 6.5, lambda x: (copy.copy(x), x + 1)),
    "__deepcopy__": (lambda s, memo: 7.5, lambda x: (copy.deepcopy(x), x + 1)),
    "__getattr__": (lambda s, name: 7, lambda x: (x + 1, hasattr(x, "more"), getattr(x, "more", 1))),
    "__setattr__": (lambda s, name, value: object.__setattr__(s, name + "_", value), lambda x: (setattr(x, "q", 1), hasattr(x, "q_"), x + 1)),
    "__getitem__": (lambda s, key: 9.5, lambda x: (x[0], x[1:3], x + 1)),
    "__setitem__": (lambda s, key, value: None, lambda x: (operator.setitem(x, 0, 7.0), x + 1)),
    "__round__": (lambda s: 8.5, lambda x: (x + 1, round(x))),
    "__abs__": (lambda s: 9.5, lambda x: (x + 1, abs(x), operator.abs(x))),
    "__mod__": (lambda s, other: 2.25, lambda x: (x + 1, x % 2)),
    "__rsub__": (lambda s, other: 2.5, lambda x: (x + 1, 1 - x)),
    "__imul__": (lambda s, other: 2.75, lambda x: (x + 1, operator.imul(x, 2))),
    "__and__": (lambda s, other: 3.25, lambda x: (x + 1, x.long() & 1)),
    "__lt__": (lambda s, other: 3.5, lambda x: (x + 1, x < 2, 2 > x)),
    "__invert__": (lambda s: 3.75, lambda x: (x + 1, ~x.long())),
    "__divmod__": (lambda s, other: (1, 2), lambda x: (x + 1, divmod(x, 2))),
    "__index__": (lambda s: 1, lambda x: (x + 1, operator.index(x.long()[3]), [1, 2, 3, 4][x.long()[3]])),
    "ndim": (property(lambda s: 4), lambda x: (x + 1, x.ndim)),
    "size": (lambda s, *a: 7, lambda x: (x + 1, x.size(), x.size(0))),
}


@contextlib.contextmanager
def patched(name: str, value: Any) -> Iterator[None]:
    held = vars(torch.Tensor).get(name)
    setattr(torch.Tensor, name, value)
    try:
        yield
    finally:
        if held is None:
            delattr(torch.Tensor, name)
        else:
            setattr(torch.Tensor, name, held)


def outcome(fn: Any) -> Any:
    """What the program gives for one tensor, or its error."""
    try:
        return fn(torch.arange(6.0))
    except TypeError as error:
        return str(error)


WHEN = ("before", "between", "undone")
# CPython keeps the slot sq_item of a class whose item methods were once in Python: from then on torch takes a tensor without dimensions for
# a sequence, and torch.tensor([torch.tensor(1)]) raises. That is for a process of its own.
FOR_GOOD = ("__getitem__", "__setitem__")


@pytest.mark.parametrize("when", WHEN)
@pytest.mark.parametrize("name", [name for name in CASES if name not in FOR_GOOD])
def test_methods_of_tensors(name, when):
    check(name, when)


def test_item_methods_of_tensors():
    ended = subprocess.run([sys.executable, "-m", __name__], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def check(name: str, when: str) -> None:
    method, fn = CASES[name]
    compiled = framegraft.optimize("eager")(fn)
    with patched(name, method) if when == "undone" else contextlib.nullcontext():
        if when != "before":
            outcome(compiled)
    with patched(name, method) if when != "undone" else contextlib.nullcontext():
        pairs = [(outcome(fn), outcome(compiled)) for _ in range(2)]
    for expected, given in pairs:  # compared without the patch
        assert repr(given) == repr(expected)


def test_the_break_says_whose_method_it_is():
    with patched("__mod__", lambda s, other: 2.25):
        with pytest.raises(framegraft.exc.Unsupported, match="Tensor.__mod__, which is not torch's own"):
            framegraft.optimize("eager", nopython=True)(lambda x: x % 2)(torch.ones(2))


if __name__ == "__main__":
    for each in FOR_GOOD:
        for moment in WHEN:
            check(each, moment)
