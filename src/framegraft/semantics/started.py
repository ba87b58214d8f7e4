"""Iterators of itertools that the trace has started: how their classes make one that gives the rest."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

from ..interp.state import realize
from ..model.value import ConstantVariable, IteratorVariable, ObjectVariable, VariableTracker, constant
from .lazy import LazyIteratorVariable


class Rest(NamedTuple):
    """``cls(*args, **kwargs)``, of which the first ``given`` items are let go."""

    args: list[VariableTracker]
    kwargs: dict[str, VariableTracker]
    given: int = 0


def rest_of(t: LazyIteratorVariable) -> Rest | None:
    """None where no call of the class gives the rest."""
    if type(t) is not LazyIteratorVariable or t.running or t.finished or not t.args:
        return None
    rule = _RULES.get(t.cls)
    return None if rule is None else rule(t)


def _as_it_was(t: LazyIteratorVariable) -> Rest:
    """What knows nothing but the iterators that it draws from."""
    return Rest(t.args, t.kwargs)


def _local(t: LazyIteratorVariable, name: str) -> Any:
    found = realize(t.frame.locals[name], t.frame.state)
    return found.value if isinstance(found, ConstantVariable) else found


def _drawn(t: LazyIteratorVariable) -> Any:
    """The iterator over what was made when it was."""
    found = t.frame.stack[0] if t.frame.stack else None
    return found if isinstance(found, IteratorVariable) else None


def _repeat(t: LazyIteratorVariable) -> Rest | None:
    if len(t.args) == 1:
        return _as_it_was(t)
    drawn = _drawn(t)
    return None if drawn is None else Rest([t.args[0], constant(len(drawn.items) - drawn.index)], {})


def _count(t: LazyIteratorVariable) -> Rest | None:
    number, step = _local(t, "number"), _local(t, "step")
    if isinstance(number, VariableTracker) or isinstance(step, VariableTracker):
        return None  # numbers that change
    return Rest([constant(number + step), constant(step)], {})


def _combinatoric(t: LazyIteratorVariable) -> Rest | None:
    drawn = _drawn(t)
    return None if drawn is None else Rest(t.args, t.kwargs, drawn.index)


def _islice(t: LazyIteratorVariable) -> Rest:
    taken, stop = _local(t, "taken"), _local(t, "stop")
    numbers = [_local(t, "following") - taken, None if stop is None else stop - taken, _local(t, "step")]
    return Rest([t.args[0], *map(constant, numbers)], {})


def _accumulate(t: LazyIteratorVariable) -> Rest | None:
    """One that begins with the last item that was given."""
    total = realize(t.frame.locals["total"], t.frame.state)
    if isinstance(total, ConstantVariable) and total.value is None:
        return None  # no beginning
    return Rest(t.args, {"initial": total}, 1)


def _chain(t: LazyIteratorVariable) -> Rest | None:
    outer, inner = _drawn(t), t.frame.stack[-1]
    if outer is None or len(t.frame.stack) != 2 or isinstance(inner, ObjectVariable):
        return None  # an iterator of the program's would be asked for its iterator again
    return Rest([inner, *outer.items[outer.index :]], {})


_RULES: dict[type, Any] = {
    itertools.repeat: _repeat, itertools.count: _count, itertools.islice: _islice, itertools.accumulate: _accumulate,
    itertools.chain: _chain,
    **dict.fromkeys((itertools.takewhile, itertools.filterfalse, itertools.starmap, itertools.compress), _as_it_was),
    **dict.fromkeys((itertools.product, itertools.permutations, itertools.combinations, itertools.combinations_with_replacement),
                    _combinatoric),
}
