"""Rules of the instructions that build containers, fill them and unpack them."""

from __future__ import annotations

import itertools

from .._native import type_name
from ..bytecode.ir import Instruction
from ..errors import GraphBreak, UserRaise
from ..model.value import (
    NONE,
    DictVariable,
    ListVariable,
    SetVariable,
    SliceVariable,
    TupleVariable,
    VariableTracker,
)
from ..semantics import core, lookup
from .frame import InstructionTranslator as Tx
from .frame import rule
from .state import realize, user_error


@rule("BUILD_TUPLE")
def build_tuple(tx: Tx, inst: Instruction) -> None:
    tx.stack.append(TupleVariable(tx.popn(inst.arg)))


@rule("BUILD_LIST")
def build_list(tx: Tx, inst: Instruction) -> None:
    tx.stack.append(ListVariable(tx.popn(inst.arg)))


@rule("BUILD_SET")
def build_set(tx: Tx, inst: Instruction) -> None:
    result = SetVariable({}, order=set())
    for item in tx.popn(inst.arg):
        core.set_add(tx, result, realize(item, tx.state))
    tx.stack.append(result)


@rule("BUILD_MAP")
def build_map(tx: Tx, inst: Instruction) -> None:
    flat = tx.popn(2 * inst.arg)
    result = DictVariable({})
    for key, value in zip(flat[::2], flat[1::2], strict=True):
        core.dict_set(tx, result, realize(key, tx.state), value)
    tx.stack.append(result)


@rule("BUILD_MAP_KEYS")
def build_map_keys(tx: Tx, inst: Instruction) -> None:
    keys = core.sequence_items(tx, tx.pop())
    result = DictVariable({})
    for key, value in zip(keys, tx.popn(inst.arg), strict=True):
        core.dict_set(tx, result, realize(key, tx.state), value)
    tx.stack.append(result)


@rule("BUILD_SLICE")
def build_slice(tx: Tx, inst: Instruction) -> None:
    items = [realize(i, tx.state) for i in tx.popn(inst.arg)]
    tx.stack.append(SliceVariable(items if len(items) == 3 else [*items, NONE]))


@rule("LIST_TO_TUPLE")
def list_to_tuple(tx: Tx, inst: Instruction) -> None:
    tx.stack.append(TupleVariable(list(core.sequence_items(tx, tx.pop()))))


@rule("GET_LEN")
def get_len(tx: Tx, inst: Instruction) -> None:
    tx.stack.append(core.apply(tx, len, [realize(tx.stack[-1], tx.state)]))


@rule("LIST_APPEND")
def list_append(tx: Tx, inst: Instruction) -> None:
    item = tx.stack.pop()
    target = realize(tx.stack[-inst.arg], tx.state)
    assert isinstance(target, ListVariable)
    target.items.append(item)
    tx.state.mark_mutated(target)


@rule("SET_ADD")
def set_add(tx: Tx, inst: Instruction) -> None:
    item = tx.pop()
    core.set_add(tx, realize(tx.stack[-inst.arg], tx.state), item)


@rule("MAP_ADD")
def map_add(tx: Tx, inst: Instruction) -> None:
    value = tx.stack.pop()
    key = tx.pop()
    core.dict_set(tx, realize(tx.stack[-inst.arg], tx.state), key, value)


@rule("LIST_EXTEND")
def list_extend(tx: Tx, inst: Instruction) -> None:
    iterable = tx.pop()
    target = realize(tx.stack[-inst.arg], tx.state)
    assert isinstance(target, ListVariable)
    target.items.extend(core.unpack_iterable(tx, _iterable(tx, iterable, "Value after * must be an iterable, not {}")))
    tx.state.mark_mutated(target)


def _iterable(tx: Tx, value: VariableTracker, refused: str) -> VariableTracker:
    """The value; ``refused``: the instruction's own words for one of a class that is not iterable at all."""
    value = realize(value, tx.state)
    if not any(lookup.defines(value.python_type(), name) for name in ("__iter__", "__getitem__")):
        raise UserRaise(user_error(TypeError, refused.format(type_name(value.python_type()))))
    return value


@rule("SET_UPDATE")
def set_update(tx: Tx, inst: Instruction) -> None:
    iterable = tx.pop()
    core.set_update(tx, realize(tx.stack[-inst.arg], tx.state), iterable)


@rule("DICT_UPDATE", "DICT_MERGE")
def dict_update(tx: Tx, inst: Instruction) -> None:
    other = tx.pop()
    target = realize(tx.stack[-inst.arg], tx.state)
    assert isinstance(target, DictVariable)
    for key, value in core.mapping_items(tx, other):
        if inst.op == "DICT_MERGE" and core.dict_get(tx, target, key) is not None:  # behind a break, it is a dict from outside
            raise GraphBreak("raised_exception", "a keyword argument is given twice")
        core.dict_set(tx, target, key, value)


_NO_ITERABLE = "cannot unpack non-iterable {} object"


@rule("UNPACK_SEQUENCE")
def unpack_sequence(tx: Tx, inst: Instruction) -> None:
    """unpack_iterable asks for one item more than it needs, and for no others."""
    items = list(itertools.islice(core.drawn(tx, _iterable(tx, tx.pop(), _NO_ITERABLE)), inst.arg + 1))
    if len(items) < inst.arg:
        text = f"not enough values to unpack (expected {inst.arg}, got {len(items)})"
        raise UserRaise(user_error(ValueError, text))
    if len(items) > inst.arg:
        raise UserRaise(user_error(ValueError, f"too many values to unpack (expected {inst.arg})"))
    tx.stack.extend(reversed(items))


def _drawn_and_collected(tx: Tx, value: VariableTracker, before: int) -> list[VariableTracker]:
    """unpack_iterable with a starred target: the first items one by one, and, if there are as many, a list of the rest."""
    if isinstance(value, (ListVariable, TupleVariable)):
        return core.unpack_iterable(tx, value)
    iterator = core.get_iter(tx, value)
    items: list[VariableTracker] = []
    while len(items) < before:
        item = core.next_item(tx, iterator)
        if item is None:
            return items
        items.append(item)
    return items + core.unpack_iterable(tx, iterator)


@rule("UNPACK_EX")
def unpack_ex(tx: Tx, inst: Instruction) -> None:
    before, after = inst.arg
    items = _drawn_and_collected(tx, _iterable(tx, tx.pop(), _NO_ITERABLE), before)
    if len(items) < before + after:
        text = f"not enough values to unpack (expected at least {before + after}, got {len(items)})"
        raise UserRaise(user_error(ValueError, text))
    end = len(items) - after
    tx.stack.extend(reversed([*items[:before], ListVariable(items[before:end]), *items[end:]]))
