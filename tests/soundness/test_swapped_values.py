"""Entries made for one value are tried with the others of its kind: results, exceptions and changes as in eager mode.

``f(x, v)``, whose body has one expression or statement over ``v``, is captured once and called with all values of one kind, in
order and backwards. With FRAMEGRAFT_FULL=1 each body meets each kind; else a fixed sample does. ``python -m
tests.soundness.test_swapped_values [KIND,...]`` prints the differences.
"""

import os
import random
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import framegraft

from ..lang.snapshot import Snapshot, first_difference
from .swapped_code import EXPRESSIONS, PAIRS, STATEMENTS, expressions
from .swapped_values import KINDS, NAMES, sources

FULL = os.environ.get("FRAMEGRAFT_FULL") == "1"
BODIES = [f"r = {e}" for e in expressions(EXPRESSIONS)] + STATEMENTS
PAIRED = [f"r = {e}" for e in expressions(PAIRS)]
class Told(Snapshot):
    """Snapshots in which texts tell no addresses."""

    def walk(self, value: Any) -> Any:
        if type(value) is str:
            return ("str", re.sub(r"0x[0-9a-f]+", "0x", value))
        return super().walk(value)


def function(body: str, names: str = "v") -> Callable:
    namespace = dict(NAMES)
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    exec(compile(f"def f(x, {names}):\n    y = x + 1\n{lines}    return y * 2, r\n", "<swapped>", "exec"), namespace)
    return namespace["f"]


def observe(fn: Callable, values: list[str]) -> Any:
    """What a call with fresh values gives, and what has become of them."""
    x = NAMES["torch"].arange(2.0)
    made = [eval(source, NAMES) for source in values]
    try:
        seen: Any = ("returned", fn(x, *made))
    except Exception as error:
        seen = ("raised", type(error).__name__, str(error).partition("\nException raised")[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Told()((seen, x, made))


def compare(body: str, calls: list[list[str]]) -> Iterator[tuple[list[str], str]]:
    """The calls, one after the other, whose outcome differs."""
    fn = function(body, "v" if len(calls[0]) == 1 else "v, w")
    known: dict[str, Any] = {}
    captured = None
    for values in (*calls, *reversed(calls)):
        wanted = known.get(str(values)) or known.setdefault(str(values), observe(fn, values))
        if captured is None:
            if wanted[2][0][1] == ("str", "raised") and wanted[2][0][2] == ("str", "AttributeError") and values is not calls[0]:
                continue
            captured = framegraft.compile(fn, backend="eager")
        got = observe(captured, values)
        if got != wanted and got != observe(fn, values) and observe(fn, values) == wanted:
            yield values, first_difference(wanted, got) or "different"
            return


def cases(kind: str, share: float, seed: int = 0) -> Iterator[tuple[str, list[list[str]]]]:
    """Bodies with the calls to make: single values, then pairs."""
    chosen = random.Random(f"{kind} {seed}")
    values = sources(kind)
    for body in BODIES:
        if chosen.random() < share:
            yield body, [[value] for value in values]
    for body in PAIRED:
        if chosen.random() < share:
            others = [*values, *chosen.choices(EVERYTHING, k=4)]
            pairs = [[a, b] for a in values for b in others]
            yield body, chosen.sample(pairs, min(10, len(pairs)))


EVERYTHING = [source for kind in KINDS for source in sources(kind)]


def differences(kind: str, share: float) -> Iterator[str]:
    with warnings.catch_warnings(), framegraft.config.patch(cache_size_limit=1000, accumulated_cache_size_limit=100000):
        warnings.simplefilter("ignore")
        for body, calls in cases(kind, share):
            framegraft.reset()
            try:
                for values, difference in compare(body, calls):
                    yield f"{kind}: {body!r} with {', '.join(values)}: {difference}"
            except BaseException as error:
                yield f"{kind}: {body!r}: {type(error).__name__} {error}"


@pytest.mark.parametrize("kind", KINDS)
def test_swapped_values(kind):
    assert not list(differences(kind, 1.0 if FULL else 0.002))


if __name__ == "__main__":
    for kind in sys.argv[1].split(",") if len(sys.argv) > 1 else KINDS:
        for told in differences(kind, float(sys.argv[2]) if len(sys.argv) > 2 else 1.0):
            print(told[:400], flush=True)
        print("done", kind, flush=True)
