"""Methods of lists and tuples, and those that containers share, on trackers."""

from __future__ import annotations

import operator
import types
from typing import Any

from ..errors import GraphBreak, UserRaise
from ..interp.state import realize, user_error
from ..model.dispatch import METHODS, method
from ..model.value import (
    NONE,
    ConstantVariable,
    DictVariable,
    ListVariable,
    ObjectVariable,
    SetVariable,
    SliceVariable,
    TupleVariable,
    VariableTracker,
    constant,
)
from . import (
    calls,
    comparing,
    containers,
    core,
    folding,
    hashed,
    iteration,
    members,
    operators,
    truth,
)
from .constructors import make_reversed, update_dict
from .functions import sort_items


@method(ListVariable, "append")
def list_append(tx: Any, obj: ListVariable, args: list, kwargs: dict) -> VariableTracker:
    obj.extend([args[0]])
    hashed.changing(tx, obj)
    return NONE


class _Iterated(list):
    """Extended by itself it holds as many items as this version of CPython asks ``__iter__`` for, and its own."""

    def __iter__(self) -> Any:
        return iter(())


_probe = _Iterated([None])
_probe.extend(_probe)
_DOUBLES = len(_probe) == 2  # from 3.13 on __iter__ is not asked


@method(ListVariable, "extend")
def list_extend(tx: Any, obj: ListVariable, args: list, kwargs: dict) -> VariableTracker:
    """The items of a list or tuple all at once; of anything else each as it comes, for its source may look at the list."""
    iterable = args[0]
    if (itself := hashed.payload_of(iterable) is obj) or isinstance(iterable, (ListVariable, TupleVariable)):
        obj.extend(list(obj.items) if itself and _DOUBLES else iteration.unpack_iterable(tx, iterable))
        hashed.changing(tx, obj)
        return NONE
    for item in iteration.drawn(tx, iterable, asked=True):
        list_append(tx, obj, [item], {})
    return NONE


@method(ListVariable, "insert")
def list_insert(tx: Any, obj: ListVariable, args: list, kwargs: dict) -> VariableTracker:
    obj.items.insert(containers.index_of(tx, args[0]), args[1])
    hashed.changing(tx, obj)
    return NONE


@method(ListVariable, "pop")
def list_pop(tx: Any, obj: ListVariable, args: list, kwargs: dict) -> VariableTracker:
    index = containers.index_of(tx, args[0]) if args else -1
    if not obj.items:
        raise UserRaise(user_error(IndexError, "pop from empty list"))
    if not -len(obj.items) <= index < len(obj.items):
        raise UserRaise(user_error(IndexError, "pop index out of range"))
    hashed.changing(tx, obj)
    return obj.items.pop(index)


@method(ListVariable, "clear")
def list_clear(tx: Any, obj: ListVariable, args: list, kwargs: dict) -> VariableTracker:
    obj.items.clear()
    hashed.changing(tx, obj)
    return NONE


@method(ListVariable, "copy")
def list_copy(tx: Any, obj: ListVariable, args: list, kwargs: dict) -> VariableTracker:
    return ListVariable(list(obj.items))


@method(ListVariable, "reverse")
def list_reverse(tx: Any, obj: ListVariable, args: list, kwargs: dict) -> VariableTracker:
    obj.items.reverse()
    hashed.changing(tx, obj)
    return NONE


@method(ListVariable, "sort")
def list_sort(tx: Any, obj: ListVariable, args: list, kwargs: dict) -> VariableTracker:
    """The list is empty while keys are asked for, and must get no items then (listobject.c: list_sort_impl)."""
    items, filled = obj.items[:], obj.filled
    obj.items[:], obj.filled = [], False
    try:
        result = sort_items(tx, items, kwargs)
    finally:
        touched, obj.filled = obj.filled, obj.filled or filled
        obj.items[:] = items
    obj.items[:] = result
    hashed.changing(tx, obj)
    if touched:
        raise UserRaise(user_error(ValueError, "list modified during sort"))
    return NONE


def _find(tx: Any, items: list, wanted: VariableTracker) -> int:
    for index, item in enumerate(items):
        item = realize(item, tx.state)
        if comparing.equal_items(tx, item, wanted):
            return index
    return -1


@method(ListVariable, "remove")
def list_remove(tx: Any, obj: ListVariable, args: list, kwargs: dict) -> VariableTracker:
    index = _find(tx, obj.items, args[0])
    if index < 0:
        raise UserRaise(user_error(ValueError, "list.remove(x): x not in list"))
    del obj.items[index]
    hashed.changing(tx, obj)
    return NONE


@method(ListVariable, "index")
@method(TupleVariable, "index")
def sequence_index(tx: Any, obj: Any, args: list, kwargs: dict) -> VariableTracker:
    first, last = 0, len(obj.items)
    if len(args) > 1:
        first = slice(containers.index_of(tx, args[1]), None).indices(last)[0]
    if len(args) > 2:
        last = slice(0, containers.index_of(tx, args[2])).indices(last)[1]
    index = _find(tx, obj.items[first:last], args[0])
    index += first if index >= 0 else 0
    if index < 0:
        kind = obj.python_type().__name__
        text = f"{kind}.index(x): x not in {kind}" if kind == "tuple" else f"{core.need_constant(args[0], 'x')!r} is not in list"
        raise UserRaise(user_error(ValueError, text))
    return constant(index)


@method(ListVariable, "count")
@method(TupleVariable, "count")
def sequence_count(tx: Any, obj: Any, args: list, kwargs: dict) -> VariableTracker:
    return constant(sum(comparing.equal_items(tx, realize(i, tx.state), args[0]) for i in obj.items))


def _equal_payloads(tx: Any, obj: Any, args: list, kwargs: dict) -> VariableTracker:
    """list.__eq__ and its kin: NotImplemented for operands of other kinds."""
    other = hashed.payload_of(args[0])
    if type(other) is not type(obj):
        return constant(NotImplemented)
    return comparing.compare(tx, operator.eq, obj, other)


def _dunders(cls: type) -> None:
    METHODS[cls, "__len__"] = lambda tx, o, a, k: truth.length(tx, o)
    METHODS[cls, "__iter__"] = lambda tx, o, a, k: iteration.get_iter(tx, o)
    METHODS[cls, "__contains__"] = lambda tx, o, a, k: operators.contains(tx, a[0], o)
    METHODS[cls, "__eq__"] = _equal_payloads
    METHODS[cls, "__getitem__"] = lambda tx, o, a, k: containers.get_item(tx, o, a[0])


for _cls in (ListVariable, TupleVariable, DictVariable, SetVariable):
    _dunders(_cls)


@method(SliceVariable, "indices")
def slice_indices(tx: Any, obj: SliceVariable, args: list, kwargs: dict) -> VariableTracker:
    return folding.fold(containers.real_slice(tx, obj).indices, [constant(containers.index_of(tx, args[0]))])


@method(ConstantVariable, "join")
def text_join(tx: Any, obj: ConstantVariable, args: list, kwargs: dict) -> VariableTracker | None:
    """str.join and bytes.join take any iterable."""
    if type(obj.value) not in (str, bytes):
        return None
    parts = [realize(i, tx.state) for i in iteration.fast_items(tx, args[0], "can only join an iterable")]
    return folding.fold(obj.value.join, [constant([core.need_constant(members.plain_value(p) or p, "a part of join()") for p in parts])])


@method(ConstantVariable, "__iter__")
def constant_iter(tx: Any, obj: ConstantVariable, args: list, kwargs: dict) -> VariableTracker:
    return iteration.get_iter(tx, obj)


@method(ConstantVariable, "__reversed__")
def constant_reversed(tx: Any, obj: ConstantVariable, args: list, kwargs: dict) -> VariableTracker:
    return make_reversed(tx, reversed, [obj], {})


@method(ObjectVariable, "__eq__")
def mapping_equal(tx: Any, obj: ObjectVariable, args: list, kwargs: dict) -> VariableTracker | None:
    """mappingproxy compares what it shows; an OrderedDict looks at the order of another one."""
    if not isinstance(obj.payload, DictVariable):
        return None
    if obj.cls is types.MappingProxyType:
        return operators.apply(tx, operator.eq, [obj.payload, args[0]])
    if not isinstance(hashed.payload_of(args[0]), DictVariable):
        return constant(NotImplemented)
    return constant(comparing.equal_dicts(tx, obj, args[0]))


@method(ListVariable, "__setitem__")
@method(DictVariable, "__setitem__")
def container_setitem(tx: Any, obj: Any, args: list, kwargs: dict) -> VariableTracker:
    containers.set_item(tx, obj, args[0], args[1])
    return NONE


@method(ListVariable, "__delitem__")
@method(DictVariable, "__delitem__")
def container_delitem(tx: Any, obj: Any, args: list, kwargs: dict) -> VariableTracker:
    containers.del_item(tx, obj, args[0])
    return NONE


@method(ListVariable, "__init__")
@method(DictVariable, "__init__")
@method(SetVariable, "__init__")
def container_init(tx: Any, obj: Any, args: list, kwargs: dict) -> VariableTracker:
    """dict_init adds to what is there; list___init___impl and set_init clear that first, and so what is drawn may see it."""
    if isinstance(obj, SetVariable) and obj.cls is not set:
        raise GraphBreak("unsupported_builtin_method", "frozenset.__init__()")
    if isinstance(obj, DictVariable):
        update_dict(tx, obj, args, kwargs)
        return NONE
    if obj.items or obj.source is not None or isinstance(obj, SetVariable) and obj.changes:
        calls.call_method(tx, obj, "clear", [], {})
    if args:
        calls.call_method(tx, obj, "extend" if isinstance(obj, ListVariable) else "update", args, {})
    return NONE
