"""``random.Random`` made in the trace of a constant seed: what it draws is constant, too (CPython: Lib/random.py)."""

from __future__ import annotations

import random
from typing import Any

from ..errors import GraphBreak
from ..interp.state import realize
from ..model.dispatch import METHODS, constructs
from ..model.value import NONE, ListVariable, SliceVariable, TupleVariable, VariableTracker, constant
from . import calls, containers, folding, lookup

_DRAWING = ("random", "uniform", "triangular", "randint", "randrange", "getrandbits", "randbytes", "gauss", "normalvariate",
            "lognormvariate", "expovariate", "vonmisesvariate", "gammavariate", "betavariate", "paretovariate", "weibullvariate",
            "binomialvariate", "seed", "getstate", "setstate")
_CHOOSING = ("choice", "choices", "sample")
_INNER = ("__new__", "__init__", "seed", "random", "getrandbits", "_randbelow")  # what the others call
SEEDS = (int, float, bool, str, bytes, list)  # None is the time; of other objects CPython 3.10 warns
_KNOWN = {name: getattr(random.Random, name, None) for name in (*_DRAWING, *_CHOOSING, *_INNER, "shuffle")}


class RandomVariable(VariableTracker):
    """``real`` has been through all that the program's own would have been through; nobody else has it."""

    __slots__ = ("real",)

    def __init__(self, real: random.Random) -> None:
        self.real = real
        self.source = None

    def python_type(self) -> type:
        return random.Random


@constructs(random.Random)
def make(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    check_class(tx, *_INNER)
    seeds = [calls.plain_value(tx, seed) for seed in (*args, *kwargs.values())]
    if len(seeds) != 1 or type(seeds[0]) not in SEEDS or kwargs.keys() - {"x"}:
        raise GraphBreak("random_call", "random.Random() without a seed, or with an object as one")
    made: list[random.Random] = []
    folding.fold(lambda: made.append(random.Random(seeds[0])), [])  # the errors it raises
    tx.state.dirty += 1
    return RandomVariable(made[0])


def check_class(tx: Any, *names: str) -> None:
    """A break where the program has put something else into the class."""
    for name in names:
        lookup.mro_lookup(tx, random.Random, name)
        if getattr(random.Random, name) is not _KNOWN[name]:
            raise GraphBreak("random_call", f"random.Random.{name}, which was replaced")


def _draw(tx: Any, obj: RandomVariable, name: str, args: list, kwargs: dict) -> VariableTracker:
    check_class(tx, name, *_INNER)
    tx.state.changed(obj)
    values = [calls.plain_value(tx, a) for a in args]
    named = {key: calls.plain_value(tx, value) for key, value in kwargs.items()}
    if name == "seed" and type(values[0] if values else named.get("a")) not in SEEDS:
        raise GraphBreak("random_call", "random.Random.seed() without a seed, or with an object as one")
    return folding.fold(lambda: getattr(obj.real, name)(*values, **named), [])


def _choose(tx: Any, obj: RandomVariable, name: str, args: list, kwargs: dict) -> VariableTracker:
    """What is chosen are places: the items may be anything."""
    if not args or not isinstance(args[0], (ListVariable, TupleVariable)):
        return _draw(tx, obj, name, args, kwargs)
    items = containers.sequence_items(tx, args[0])
    kind = ListVariable if isinstance(args[0], ListVariable) else TupleVariable  # errors name it
    chosen = _draw(tx, obj, name, [kind([constant(place) for place in range(len(items))]), *args[1:]], kwargs)
    if isinstance(chosen, ListVariable):
        return ListVariable([items[place.value] for place in chosen.items])
    return items[chosen.value]  # type: ignore[attr-defined]


def _shuffle(tx: Any, obj: RandomVariable, name: str, args: list, kwargs: dict) -> VariableTracker:
    if len(args) != 1 or kwargs or type(args[0]) is not ListVariable:
        raise GraphBreak("random_call", "random.Random.shuffle() of something other than a list")
    check_class(tx, name, *_INNER)
    tx.state.changed(obj)
    places = list(range(len(args[0].items)))
    obj.real.shuffle(places)
    if places != sorted(places):
        containers.set_item(tx, args[0], SliceVariable([NONE, NONE, NONE]), ListVariable([args[0].items[place] for place in places]))
    return NONE


def _register(name: str, handler: Any) -> None:
    def run(tx: Any, obj: RandomVariable, args: list, kwargs: dict) -> VariableTracker:
        return handler(tx, obj, name, [realize(a, tx.state) for a in args], kwargs)

    METHODS[RandomVariable, name] = run


for _names, _handler in ((_DRAWING, _draw), (_CHOOSING, _choose), (("shuffle",), _shuffle)):
    for _name in _names:
        if hasattr(random.Random, _name):
            _register(_name, _handler)
