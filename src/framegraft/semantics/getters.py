"""operator.itemgetter, attrgetter and methodcaller: made in the trace, or met there (CPython: Modules/_operator.c)."""

from __future__ import annotations

import operator
from typing import Any

from ..errors import GraphBreak
from ..model.dispatch import constructs
from ..model.guards import Condition
from ..model.value import DictVariable, ObjectVariable, TupleVariable, VariableTracker, constant
from ..polyfills import getters as bodies
from . import calls, core, folding
from .constructors import PartialVariable
from .wrapping import CONSTANT_TYPES, wrap_constant, wrap_pinned

_CLASSES = (operator.itemgetter, operator.attrgetter, operator.methodcaller)


class GetterVariable(PartialVariable):
    """``cls(*given, **named)``: a call of it is a call of one of the polyfills with arguments in front."""

    __slots__ = ("cls", "given", "named")

    def __init__(self, body: VariableTracker, front: list, cls: type, given: list, named: dict) -> None:
        super().__init__(body, front, {})
        self.cls = cls
        self.given = given
        self.named = named

    def python_type(self) -> type:
        return self.cls

    def with_bound(self, args: list, kwargs: dict) -> tuple[list, dict]:
        if len(args) != 1 or kwargs:
            raise GraphBreak("raised_exception", f"{self.cls.__name__} called with other than one argument")
        return [*self.args, *args], {}


@constructs(*_CLASSES)
def make_getter(tx: Any, cls: Any, args: list, kwargs: dict) -> VariableTracker:
    if kwargs and cls is not operator.methodcaller:
        raise GraphBreak("raised_exception", f"{cls.__name__}() takes no keyword arguments")
    if cls is operator.itemgetter and args:
        body, front = (bodies.item, args) if len(args) == 1 else (bodies.items, [TupleVariable(list(args))])
        return GetterVariable(wrap_pinned(tx, body), list(front), cls, args, kwargs)
    names = [core.need_constant(a, f"{cls.__name__}() argument") for a in (args[:1] if cls is operator.methodcaller else args)]
    folding.fold(lambda: cls(*names) and None, [])  # the errors it raises
    get = wrap_pinned(tx, getattr)
    if cls is operator.methodcaller:
        named = DictVariable({name: (constant(name), value) for name, value in kwargs.items()})
        return GetterVariable(wrap_pinned(tx, bodies.method), [get, args[0], TupleVariable(args[1:]), named], cls, args, kwargs)
    paths = [tuple(name.split(".")) for name in names]
    one = len(paths) == 1
    return GetterVariable(wrap_pinned(tx, bodies.attribute if one else bodies.attributes),
                          [get, wrap_constant(paths[0] if one else tuple(paths))], cls, args, kwargs)


class _MadeLike(Condition):
    """Guard: a getter that was made with the same constants."""

    __name__ = "made_like"

    def __init__(self, cls: type, args: tuple) -> None:
        self.key = cls, args, tuple(map(type, args))

    def __call__(self, value: Any) -> bool:
        cls, args, kinds = self.key
        if type(value) is not cls:
            return False
        made, given = value.__reduce__()
        return made is cls and tuple(map(type, given)) == kinds and given == args


def _outside(tx: Any, getter: ObjectVariable) -> VariableTracker:
    """A getter made outside of the trace: nothing can change what it gets."""
    cls, args = getter.value.__reduce__()
    if cls is not getter.cls or getter.source is None:
        raise GraphBreak("untraceable_call", f"operator.{getter.cls.__name__} with keyword arguments, made outside of the trace")
    if all(type(a) in CONSTANT_TYPES and type(a) is not float for a in args):
        tx.state.guards.add(getter.source, "PY", _MadeLike(cls, args))
    else:
        tx.state.guards.pin(getter.source, getter.value)
    return make_getter(tx, cls, [wrap_pinned(tx, a) for a in args], {})


for _cls in _CLASSES:
    calls.STANDS_FOR[_cls] = _outside
