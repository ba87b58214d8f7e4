"""``torch.func.functional_call``: a module called with other tensors in the place of its parameters and buffers.

Eager mode puts them into the module's tables for the time of the call. So does the trace, in its picture of the tables: the
module itself stays untouched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch.nn.utils.stateless as stateless

from ..errors import GraphBreak, UserRaise
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
    constant,
)
from ..semantics import calls, containers, hashed, instances, iteration, truth


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


class _Exchange:
    """The tensors of a module that gets others for the time of a call."""

    def __init__(self, tx: Any, module: ObjectVariable, values: dict[str, VariableTracker]) -> None:
        self.tx = tx
        self.places = {name: (table, key) for name, table, key in _places(tx, module)}
        if not values.keys() <= self.places.keys():
            raise GraphBreak("untraceable_call", "functional_call with names that the module does not have")
        self.held = {name: realize(table.items[key][1], tx.state) for name, (table, key) in self.places.items()}
        self.given = values

    def tie(self) -> None:
        """A tensor that the module has under several names is exchanged under all of them."""
        groups: dict[int, list[str]] = {}
        for name, value in self.held.items():
            if isinstance(value, TensorVariable):
                groups.setdefault(id(value), []).append(name)
        found = dict(self.given)
        for names in groups.values():
            taken = [name for name in names if name in self.given]
            values = {id(self.given[name]): self.given[name] for name in taken}
            if len(values) > 1 or 1 < len(taken) < len(names):  # torch finds no value for the others
                raise GraphBreak("untraceable_call", "functional_call with different tensors for tied ones")
            for value in values.values():
                found |= dict.fromkeys(names, value)
        self.given = found

    def need_all(self) -> None:
        if self.given.keys() != {name for name, value in self.held.items() if isinstance(value, TensorVariable)}:
            raise GraphBreak("untraceable_call", "functional_call with strict=True and names that are missing or too many")

    def call(self, run: Callable[[], VariableTracker], tensors: DictVariable, names: Iterable[str]) -> VariableTracker:
        before = {name: table.items[key] for name, (table, key) in self.places.items()}
        for name, value in self.given.items():
            table, key = self.places[name]
            table.items[key] = before[name][0], value
        self.tx.state.outside += 1  # for blocks: the module is another one for a while
        try:
            result = run()
        except UserRaise:
            self._write_back(tensors, names)
            raise
        else:
            self._write_back(tensors, names)
            return result
        finally:
            self.tx.state.outside += 1
            for name in self.given:
                table, key = self.places[name]
                table.items[key] = before[name]

    def _write_back(self, tensors: DictVariable, names: Iterable[str]) -> None:
        """What the module has set in the place of the tensors that it got is found in the program's dict afterwards."""
        if any(key not in table.items for table, key in self.places.values()):
            raise GraphBreak("unsupported_mutation", "functional_call of a module that deletes a tensor of its own")
        for name in names:
            table, key = self.places[name]
            now, expected = table.items[key][1], self.given[name]
            if now is not expected and not (isinstance(expected, LazyVariable) and now is expected.tracker):
                hashed.dict_set(self.tx, tensors, constant(name), now)


@handles(stateless._functional_call)
def functional_call(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    given = dict(zip(("module", "parameters_and_buffers", "args", "kwargs"), args, strict=False)) | kwargs
    module, tensors = given["module"], hashed.payload_of(given["parameters_and_buffers"])
    if not isinstance(module, ObjectVariable) or not isinstance(tensors, DictVariable) or module.source is None:
        raise GraphBreak("untraceable_call", "functional_call of something other than a module and a dict")
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
    exchange = _Exchange(tx, module, values)
    if truth.truth(tx, realize(given.get("tie_weights", constant(True)), tx.state)):
        exchange.tie()
    if truth.truth(tx, realize(given.get("strict", constant(False)), tx.state)):
        exchange.need_all()
    return exchange.call(lambda: calls.call(tx, module, positional, keywords), tensors, values)


def _positional(tx: Any, tracker: VariableTracker | None) -> list[VariableTracker]:
    if tracker is None or isinstance(tracker, ConstantVariable) and tracker.value is None:
        return []
    if isinstance(tracker, TupleVariable):
        return list(tracker.items)
    if isinstance(tracker, ConstantVariable) and isinstance(tracker.value, tuple):
        return containers.sequence_items(tx, tracker)
    return [tracker]


