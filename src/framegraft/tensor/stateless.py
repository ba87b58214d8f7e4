"""``torch.func.functional_call``: a module called with other tensors in the place of its parameters and buffers.

Eager mode puts them into the module's tables for the time of the call. So does the trace, in its picture of the tables: the
module itself stays untouched.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch.nn.utils.stateless as stateless

from ..errors import GraphBreak
from ..interp.state import realize
from ..model.dispatch import handles
from ..model.value import (
    ConstantVariable,
    DictVariable,
    LazyVariable,
    ObjectVariable,
    TensorVariable,
    TupleVariable,
    VariableTracker,
)
from ..semantics import calls, containers, hashed, instances, iteration


def _table(tx: Any, module: ObjectVariable, name: str) -> DictVariable:
    table = realize(instances.instance_dict_attr(tx, module, name), tx.state)
    table = hashed.payload_of(table)
    if not isinstance(table, DictVariable):
        raise GraphBreak("unsupported_attribute", f"{name} is no dict")
    return table


def _places(tx: Any, module: ObjectVariable, prefix: str = "") -> Iterator[tuple[str, DictVariable, str]]:
    """(dotted name, table, key) of each parameter and buffer."""
    for kind in ("_parameters", "_buffers"):
        table = _table(tx, module, kind)
        for key in list(iteration.complete(tx, table)):
            yield prefix + key, table, key
    children = _table(tx, module, "_modules")
    for key, (_, child) in list(iteration.complete(tx, children).items()):
        child = realize(child, tx.state)
        if isinstance(child, ObjectVariable):
            yield from _places(tx, child, f"{prefix}{key}.")


@contextlib.contextmanager
def _exchanged(tx: Any, module: ObjectVariable, given: dict[str, VariableTracker]) -> Iterator[None]:
    places = {name: (table, key) for name, table, key in _places(tx, module)}
    if not given.keys() <= places.keys():
        raise GraphBreak("untraceable_call", "functional_call with names that the module does not have")
    held = {name: realize(table.items[key][1], tx.state) for name, (table, key) in places.items()}
    given = _with_tied(given, held)
    before = {name: table.items[key] for name, (table, key) in places.items()}
    for name, value in given.items():
        table, key = places[name]
        table.items[key] = before[name][0], value
    tx.state.outside += 1  # for blocks: the module is another one for a while
    try:
        yield
        for name, (table, key) in places.items():
            now, expected = table.items[key][1], given.get(name, before[name][1])
            if now is not expected and not (isinstance(expected, LazyVariable) and now is expected.tracker):
                raise GraphBreak("unsupported_mutation", f"functional_call of a module that sets {name}")
    finally:
        tx.state.outside += 1
        for name, (table, key) in places.items():
            if name in given:
                table.items[key] = before[name]


def _with_tied(given: dict[str, VariableTracker], held: dict[str, VariableTracker]) -> dict[str, VariableTracker]:
    """A tensor that the module has under several names is exchanged under all of them."""
    groups: dict[int, list[str]] = {}
    for name, value in held.items():
        if isinstance(value, TensorVariable):
            groups.setdefault(id(value), []).append(name)
    found = dict(given)
    for names in groups.values():
        values = {id(given[name]): given[name] for name in names if name in given}
        if len(values) > 1:
            raise GraphBreak("untraceable_call", "functional_call with different tensors for tied ones")
        for value in values.values():
            found |= dict.fromkeys(names, value)
    return found


@handles(stateless._functional_call)
def functional_call(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    given = dict(zip(("module", "parameters_and_buffers", "args", "kwargs"), args, strict=False)) | kwargs
    module, tensors = given["module"], hashed.payload_of(given["parameters_and_buffers"])
    strict, tie = given.get("strict"), given.get("tie_weights")
    if not isinstance(module, ObjectVariable) or not isinstance(tensors, DictVariable) or module.source is None:
        raise GraphBreak("untraceable_call", "functional_call of something other than a module and a dict")
    if isinstance(strict, ConstantVariable) and strict.value:
        raise GraphBreak("untraceable_call", "functional_call with strict=True")
    if isinstance(tie, ConstantVariable) and not tie.value:
        raise GraphBreak("untraceable_call", "functional_call with tie_weights=False")
    values = {k: realize(v, tx.state) for k, (_, v) in iteration.complete(tx, tensors).items()}
    if not all(isinstance(k, str) and isinstance(v, TensorVariable) for k, v in values.items()):
        raise GraphBreak("untraceable_call", "functional_call with something other than tensors")
    positional = _positional(tx, given.get("args"))
    named = given.get("kwargs")
    keywords = {}
    if isinstance(named, DictVariable):
        keywords = {k: v for k, (_, v) in iteration.complete(tx, named).items()}
    elif not (named is None or isinstance(named, ConstantVariable) and named.value is None):
        raise GraphBreak("untraceable_call", "functional_call with keyword arguments that are no dict")
    with _exchanged(tx, module, values):
        return calls.call(tx, module, positional, keywords)


def _positional(tx: Any, tracker: VariableTracker | None) -> list[VariableTracker]:
    if tracker is None or isinstance(tracker, ConstantVariable) and tracker.value is None:
        return []
    if isinstance(tracker, TupleVariable):
        return list(tracker.items)
    if isinstance(tracker, ConstantVariable) and isinstance(tracker.value, tuple):
        return containers.sequence_items(tx, tracker)
    return [tracker]


