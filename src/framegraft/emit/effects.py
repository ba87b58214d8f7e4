"""Side effects: what the trace changed in objects from outside, replayed after the graph has run.

All values are evaluated before the first store, so that no load sees a store.
"""

from __future__ import annotations

import collections
import types
from typing import Any

import torch

from ..model.value import (
    MISSING,
    NONE,
    CellVariable,
    DequeVariable,
    DictVariable,
    ListVariable,
    ObjectVariable,
    SetVariable,
    TensorVariable,
    VariableTracker,
    constant,
    looked_at,
)
from ..semantics import warned
from ..semantics.outside import OutsideIteratorVariable, advance
from ..tensor import devices
from ..tensor.modes import Modes
from . import lifetimes, namespaces
from .codegen import Codegen, Unreconstructible


class Effect:
    """One change: ``values`` are evaluated first, ``store(cg, names)`` then uses them by their temporaries' names."""

    def __init__(self, values: list[Any], store: Any) -> None:
        self.values = values
        self.store = store


class Owner(VariableTracker):
    """Stands for the object at a source, whatever the trace made of it."""

    __slots__ = ()

    def __init__(self, source: Any) -> None:
        self.source = source


def collect(state: Any) -> list[Effect]:
    """The differences between frame entry and now, in order of first change."""
    lifetimes.none_dropped(state)
    namespaces.none_changed_unseen(state)
    effects: list[Effect] = []
    for handle in state.hooked:
        if handle.is_late():
            raise Unreconstructible("a hook on a tensor from outside that was written to afterwards")
        effects.append(Effect([handle], lambda cg, names: None))
    for tracker in list(state.mutated.values()):
        if tracker.source is None:
            continue
        _COLLECT[type(tracker)](tracker, effects)
    for scope in state.scopes.values():
        for name, value in scope.stores.items():
            effects.append(_global_store(state, scope, name, value))
    if state.catching:
        raise Unreconstructible("warnings.catch_warnings that is entered")
    if state.warned and not warned.are_as_told(state):
        raise Unreconstructible("warnings, and a change of where they go")
    if state.warned:
        warned.guard_lists(state)
    effects += [Effect([], _warning(told)) for told in state.warned]
    effects += [Effect([Owner(lock.source)], _release) for lock in state.released]  # when what they protect is there
    return effects


def changed_objects(state: Any) -> list[str]:
    """Names of the objects from outside that the transformed code changes; graphs change tensors on their own account."""
    names = [t.source.name for t in state.mutated.values() if t.source is not None]
    return names + [f"G[{name!r}]" for scope in state.scopes.values() for name in scope.stores]


def _fast(cg: Codegen, name: str) -> None:
    cg.op("LOAD_FAST", name)


def _list(tracker: ListVariable, effects: list[Effect]) -> None:
    """Only what is new is stored: an item that another thread appends while the graph runs is not lost by that."""
    owner = Owner(tracker.source)
    if tracker.unseen:
        effects.append(_call(list.extend, owner, ListVariable(list(tracker.appended))))
        return
    if tracker.filled and not tracker.items:  # it may be a list that is being sorted: that notices whether it ever got an item
        effects += [_call(list.extend, owner, ListVariable([NONE])), _call(list.clear, owner)]
        return
    for start, stop, items in _edits([looked_at(t) for t in tracker.seen], [looked_at(t) for t in tracker.items]):
        if start == stop == len(tracker.seen):
            effects.append(_call(list.extend, owner, ListVariable(items)))
        else:
            effects.append(_slice_store(tracker, slice(start, stop), items))


def _edits(before: list[VariableTracker], now: list[VariableTracker]) -> list[tuple[int, int, list[VariableTracker]]]:
    """Places in ``before``, the last first, and what comes there: one, or what a queue loses in front and gets at its end."""
    moved = _as_queue(before, now)
    if moved is not None:
        left, added = moved
        return [*([(len(before), len(before), added)] if added else []), *([(0, left, [])] if left else [])]
    start, behind, most = 0, 0, min(len(before), len(now))
    while start < most and before[start] is now[start]:
        start += 1
    while behind < most - start and before[-1 - behind] is now[-1 - behind]:
        behind += 1
    return [(start, len(before) - behind, now[start:len(now) - behind])]


def _as_queue(before: list[VariableTracker], now: list[VariableTracker]) -> tuple[int, list[VariableTracker]] | None:
    """How many went in front and what came at the end, where some stayed."""
    left = next((i for i, t in enumerate(before) if now and t is now[0]), 0)
    stay = len(before) - left
    if len(now) < stay or any(t is not n for t, n in zip(before[left:], now, strict=False)):
        return None
    return left, now[stay:]


def _slice_store(tracker: ListVariable, place: slice, items: list[VariableTracker]) -> Effect:
    def store(cg: Codegen, names: list[str]) -> None:
        if type(tracker.value) is list:
            _fast(cg, names[0])
            _fast(cg, names[1])
            _slice(cg, place)
            cg.op("STORE_SUBSCR")
            return
        cg.load_object(list)
        cg.op("LOAD_ATTR", "__setitem__")
        _fast(cg, names[1])
        _slice(cg, place)
        _fast(cg, names[0])
        cg.call(3)
        cg.op("POP_TOP")

    return Effect([ListVariable(items), Owner(tracker.source)], store)


def _slice(cg: Codegen, place: slice) -> None:
    cg.op("LOAD_CONST", place.start)
    cg.op("LOAD_CONST", place.stop)
    cg.op("BUILD_SLICE", 2)


def _call(method: Any, *values: Any) -> Effect:
    """A call of a builtin type's method, whose result is dropped."""

    def store(cg: Codegen, names: list[str]) -> None:
        cg.load_object(method)
        for name in names:
            _fast(cg, name)
        cg.call(len(names))
        cg.op("POP_TOP")

    return Effect(list(values), store)


def _dict(tracker: DictVariable, effects: list[Effect]) -> None:
    base = collections.OrderedDict if issubclass(type(tracker.value), collections.OrderedDict) else dict
    plain = type(tracker.value) is dict
    changed = [(key, pair) for key, pair in tracker.items.items()
               if tracker.cleared or tracker.fetched.get(key) is not pair[1] or key in tracker.deleted]
    if tracker.cleared:  # iterators from outside go on among the items that came behind it
        effects.append(_call(base.clear, Owner(tracker.source)))
    for key in tracker.deleted if not tracker.cleared else ():

        def delete(cg: Codegen, names: list[str], key: Any = key) -> None:
            cg.load_object(base)
            cg.op("LOAD_ATTR", "__delitem__")
            _fast(cg, names[0])
            cg.load_object(key)
            cg.call(2)
            cg.op("POP_TOP")

        effects.append(Effect([Owner(tracker.source)], delete))
    for _key, (key_tracker, value) in changed:

        def store(cg: Codegen, names: list[str]) -> None:
            if plain:
                _fast(cg, names[0])
                _fast(cg, names[1])
                _fast(cg, names[2])
                cg.op("STORE_SUBSCR")
                return
            cg.load_object(base)
            cg.op("LOAD_ATTR", "__setitem__")
            _fast(cg, names[1])
            _fast(cg, names[2])
            _fast(cg, names[0])
            cg.call(3)
            cg.op("POP_TOP")

        effects.append(Effect([value, Owner(tracker.source), key_tracker], store))


def _set(tracker: SetVariable, effects: list[Effect]) -> None:
    owner = Owner(tracker.source)
    if tracker.log is not None:
        effects += [_call(getattr(set, method), owner, *([] if item is None else [item])) for method, item in tracker.log]
        return
    effects += [_call(set.clear, owner), _call(set.update, owner, ListVariable(list(tracker.items.values())))]


def _deque(tracker: DequeVariable, effects: list[Effect]) -> None:
    """Iterators from outside end where the deque has changed, and go on where only items are others: so it must be here, too."""
    owner, kind = Owner(tracker.source), collections.deque
    if not tracker.changes:
        effects += [_call(kind.__setitem__, owner, constant(place), tracker.items[place]) for place in sorted(tracker.replaced)]
        return
    moved = _as_queue([looked_at(t) for t in tracker.seen], [looked_at(t) for t in tracker.items])
    if moved is not None and moved[1] and moved[0] == _pushed_out(tracker, len(moved[1])):
        effects.append(_call(kind.extend, owner, ListVariable(moved[1])))
        return
    if not tracker.items:
        effects.append(_call(kind.append, owner, NONE))  # clear() leaves an empty deque as it is
    effects += [_call(kind.clear, owner), _call(kind.extend, owner, ListVariable(list(tracker.items)))]


def _pushed_out(tracker: DequeVariable, added: int) -> int:
    """How many items leave the front where so many come at the end."""
    return 0 if tracker.maxlen is None else max(0, len(tracker.seen) + added - tracker.maxlen)


def _object(tracker: ObjectVariable, effects: list[Effect]) -> None:
    is_class = issubclass(type(tracker.value), type)
    base = type if is_class else object

    def custom(name: str) -> bool:
        """Whether the class has a method of its own, which the trace has run already."""
        if is_class:
            return True
        return not issubclass(type(tracker.value), types.FunctionType) and isinstance(getattr(tracker.cls, name, None), types.FunctionType)

    for attr, value in tracker.attrs.items():

        def store(cg: Codegen, names: list[str], attr: str = attr, value: Any = value) -> None:
            if value is MISSING and custom("__delattr__"):
                cg.load_object(base)
                cg.op("LOAD_ATTR", "__delattr__")
                _fast(cg, names[0])
                cg.op("LOAD_CONST", attr)
                cg.call(2)
                cg.op("POP_TOP")
            elif value is MISSING:
                _fast(cg, names[0])
                cg.op("DELETE_ATTR", attr)
            elif custom("__setattr__"):
                cg.load_object(base)
                cg.op("LOAD_ATTR", "__setattr__")
                _fast(cg, names[0])
                cg.op("LOAD_CONST", attr)
                _fast(cg, names[1])
                cg.call(3)
                cg.op("POP_TOP")
            else:
                _fast(cg, names[1])
                _fast(cg, names[0])
                cg.op("STORE_ATTR", attr)

        values = [Owner(tracker.source)] if value is MISSING else [Owner(tracker.source), value]
        effects.append(Effect(values, store))


def _tensor(tracker: TensorVariable, effects: list[Effect]) -> None:
    for attr, value in tracker.attrs.items():

        def store(cg: Codegen, names: list[str], attr: str = attr) -> None:
            _fast(cg, names[1])
            _fast(cg, names[0])
            cg.op("STORE_ATTR", attr)

        effects.append(Effect([Owner(tracker.source), value], store))


def _cell(tracker: CellVariable, effects: list[Effect]) -> None:
    def store(cg: Codegen, names: list[str]) -> None:
        if tracker.contents is MISSING:
            _fast(cg, names[0])
            cg.op("DELETE_ATTR", "cell_contents")
        else:
            _fast(cg, names[1])
            _fast(cg, names[0])
            cg.op("STORE_ATTR", "cell_contents")

    values = [Owner(tracker.source)]
    effects.append(Effect(values if tracker.contents is MISSING else [*values, tracker.contents], store))


def _iterator(tracker: OutsideIteratorVariable, effects: list[Effect]) -> None:
    def store(cg: Codegen, names: list[str]) -> None:
        cg.load_object(advance)
        _fast(cg, names[0])
        cg.op("LOAD_CONST", tracker.steps())
        cg.call(2)
        cg.op("POP_TOP")

    effects.append(Effect([Owner(tracker.source)], store))


def _warning(told: tuple) -> Any:
    return lambda cg, names: _call_each(cg, [told])


def _release(cg: Codegen, names: list[str]) -> None:
    _fast(cg, names[0])
    cg.op("LOAD_ATTR", "release")
    cg.call(0)
    cg.op("POP_TOP")


def _global_store(state: Any, scope: Any, name: str, value: Any) -> Effect:
    at_root = scope is state.root.scope

    def step(cg: Codegen, kind: str) -> None:
        if at_root:
            cg.op(f"{kind}_GLOBAL", name)
            return
        cg.load_object(scope.real)
        cg.op("LOAD_CONST", name)
        cg.op(f"{kind}_SUBSCR")

    def store(cg: Codegen, names: list[str]) -> None:
        if value is MISSING or name in scope.renewed:
            step(cg, "DELETE")
        if value is not MISSING:
            _fast(cg, names[0])
            step(cg, "STORE")

    return Effect([] if value is MISSING else [value], store)


def restore_modes(cg: Codegen, state: Any) -> None:
    """Leave torch's switches as the program has them here; the graph may have kept its own to itself."""
    graph = state.graph
    now, held = Modes() if graph.switches else graph.modes, graph.modes
    for entry in now.entered[len(held.entered):]:  # the program's own object enters it, and leaves it later
        _call_each(cg, entry.before.changes_since(held))
        cg.load(entry.tracker)
        cg.op("LOAD_ATTR", "__init__")
        cg.op("LOAD_CONST", entry.mode)
        cg.call(1)
        cg.op("POP_TOP")
        held = entry.inside
    calls = now.changes_since(held) if graph.switches else []
    if graph.cleared or graph.clears and not graph.call_count:  # the graph did so, if it ran, and if its backend has left it in
        calls.append((torch.clear_autocast_cache,))
    step = torch.autocast_increment_nesting if graph.nesting > 0 else torch.autocast_decrement_nesting
    _call_each(cg, [*devices.steps(state), *calls, *[(step,)] * max(graph.nesting, -graph.nesting)])


def _call_each(cg: Codegen, calls: list[tuple]) -> None:
    for fn, *args in calls:
        cg.load_object(fn)
        for arg in args:
            cg.load_object(arg)
        cg.call(len(args))
        cg.op("POP_TOP")


_COLLECT: dict[type, Any] = {
    ListVariable: _list,
    TensorVariable: _tensor,
    DictVariable: _dict,
    SetVariable: _set,
    DequeVariable: _deque,
    ObjectVariable: _object,
    CellVariable: _cell,
    OutsideIteratorVariable: _iterator,
}

__all__ = ["Effect", "Owner", "changed_objects", "collect", "restore_modes"]
