"""Random numbers that the program draws of ``random`` and of its own ``random.Random``: numbers of which the trace knows nothing.

The draws are made in front of the graph, in their order: nothing else that the trace does looks at these generators.
"""

from __future__ import annotations

import random
from typing import Any

from ..errors import GraphBreak
from ..model.dispatch import METHODS, TENSOR, handles, method
from ..model.source import Source
from ..model.value import NONE, ObjectVariable, SymbolicVariable, VariableTracker
from . import attributes, calls
from .randoms import SEEDS, RandomVariable, check_class

# What these give, and whether they raise, depends on their arguments alone.
_FLOATS = ("random", "uniform", "gauss", "normalvariate", "triangular", "expovariate")
_INTS = ("randint", "randrange", "getrandbits")
_INNER = ("random", "getrandbits", "_randbelow")  # what the others call, which an instance may have of its own
_LARGEST = 1e100  # of arguments with which floats stay finite
_WIDTH = 1 << 62


class Draw:
    """``generator.method(*args, **kwargs)``; what it gives is kept under ``name``."""

    __slots__ = ("name", "method", "generator", "args", "kwargs")

    def __init__(self, name: str, method: Any, generator: ObjectVariable, args: list, kwargs: dict) -> None:
        self.name, self.method, self.generator, self.args, self.kwargs = name, method, generator, args, kwargs


def _draw(tx: Any, name: str, generator: VariableTracker, args: list, kwargs: dict) -> VariableTracker:
    args, kwargs = calls.realize_all(tx, args, kwargs)
    if type(generator) is RandomVariable:
        return METHODS[RandomVariable, name](tx, generator, args, kwargs)
    if not isinstance(generator, ObjectVariable) or type(generator.value) is not random.Random or generator.source is None:
        raise GraphBreak("random_call", f"random.Random.{name}() of something else")
    _check_generator(tx, generator, name)
    if not TENSOR.may_draw(tx):
        raise GraphBreak("random_call", f"{name}() where it cannot be called in front of the graph")
    state = tx.state
    drawn = Source("DRAWN", f"__drawn_{len(state.draws)}")
    if name == "seed":
        seed = calls.plain_value(tx, args[0] if args else kwargs.get("a", NONE))
        if type(seed) not in SEEDS or len(args) + len(kwargs) != 1:
            raise GraphBreak("random_call", "random.Random.seed() without a seed, or with an object as one")
        value: VariableTracker = NONE
    else:
        made, low, high, finite = _kind(tx, name, args, kwargs)
        value = TENSOR.draw(tx, made, drawn, low, high, finite)
    state.changed(None)
    state.draws.append(Draw(drawn.key, getattr(random.Random, name), generator, args, kwargs))
    return value


def _check_generator(tx: Any, generator: ObjectVariable, name: str) -> None:
    check_class(tx, name, *_INNER)
    for inner in _INNER:
        attributes.get_attr(tx, generator, inner)  # guards that the instance has none of its own
        if generator.attrs or inner in vars(generator.value):
            raise GraphBreak("random_call", f"random.Random.{inner}, which was replaced")


def _kind(tx: Any, name: str, args: list, kwargs: dict) -> tuple[type, int, int, bool]:
    """The class of what is drawn, the bounds of an int, and whether a float is finite."""
    given = [*args, *kwargs.values()]
    if name == "uniform" and any(type(a) is SymbolicVariable for a in given):
        if any(a.python_type() not in (int, float) or type(a) is SymbolicVariable and not TENSOR.is_of_inputs(tx, a) for a in given):
            raise GraphBreak("random_call", "uniform() of a number that the graph computes")
        return float, 0, 0, False
    values = [calls.plain_value(tx, a) for a in args]
    named = {key: calls.plain_value(tx, value) for key, value in kwargs.items()}
    numbers = [*values, *named.values()]
    if any(type(v) not in (int, float, bool, type(None)) for v in numbers):
        raise GraphBreak("random_call", f"{name}() of something other than numbers")
    try:
        example = getattr(random.Random(0), name)(*values, **named)
    except Exception as error:
        raise GraphBreak("raised_exception", f"{name}() raised {type(error).__name__}") from None
    if type(example) is float:
        return float, 0, 0, all(v is None or abs(v) < _LARGEST for v in numbers) and name != "expovariate"
    low, high = _bounds(name, values, named)
    if type(example) is not int or not -_WIDTH < low <= high < _WIDTH:
        raise GraphBreak("random_call", f"{name}() of numbers that do not fit")
    return int, low, high, True


def _bounds(name: str, values: list, named: dict) -> tuple[int, int]:
    if name == "getrandbits":
        bits = values[0] if values else named["k"]
        return 0, (1 << min(bits, 64)) - 1
    if named:
        raise GraphBreak("random_call", f"{name}() with names")
    if name == "randint":
        return int(values[0]), int(values[1])
    places = range(*map(int, values))
    return min(places[0], places[-1]), max(places[0], places[-1])


def _register(name: str) -> None:
    @handles(getattr(random.Random, name))
    def of_class(tx: Any, args: list, kwargs: dict) -> VariableTracker:
        if not args:
            raise GraphBreak("raised_exception", f"random.Random.{name} without arguments")
        return _draw(tx, name, args[0], args[1:], kwargs)

    @method(ObjectVariable, name)
    def of_object(tx: Any, obj: ObjectVariable, args: list, kwargs: dict) -> VariableTracker | None:
        return _draw(tx, name, obj, args, kwargs) if type(obj.value) is random.Random else None


for _name in (*_FLOATS, *_INTS, "seed"):
    _register(_name)
