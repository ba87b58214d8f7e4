"""Methods of dicts and of their views on trackers."""

from __future__ import annotations

import collections
import operator
import types
from typing import Any

from ..errors import GraphBreak, UserRaise
from ..interp.state import realize, user_error
from ..model.dispatch import method
from ..model.value import (
    MISSING,
    NONE,
    ConstantVariable,
    DictVariable,
    ObjectVariable,
    SetVariable,
    TupleVariable,
    VariableTracker,
    constant,
)
from . import (
    calls,
    containers,
    hashed,
    iteration,
    operators,
    truth,
)
from .class_checks import is_class
from .constructors import update_dict


@method(DictVariable, "get")
def dict_get(tx: Any, obj: DictVariable, args: list, kwargs: dict) -> VariableTracker:
    found = hashed.dict_get(tx, obj, args[0])
    return found if found is not None else (args[1] if len(args) > 1 else NONE)


@method(DictVariable, "setdefault")
def dict_setdefault(tx: Any, obj: DictVariable, args: list, kwargs: dict) -> VariableTracker:
    found = hashed.dict_get(tx, obj, args[0])
    if found is None:
        found = args[1] if len(args) > 1 else NONE
        hashed.dict_set(tx, obj, args[0], found)
    return found


@method(DictVariable, "pop")
def dict_pop(tx: Any, obj: DictVariable, args: list, kwargs: dict) -> VariableTracker:
    found = None if _is_empty(tx, obj, args[0]) else hashed.dict_delete(tx, obj, args[0])
    if found is None:
        if len(args) > 1:
            return args[1]
        raise UserRaise(containers.key_error(args[0]))
    return found


def _is_empty(tx: Any, obj: DictVariable, key: VariableTracker) -> bool:
    """Whether _PyDict_Pop asks for no hash, as there is nothing. Where the key has one, a dict from outside needs no such guard."""
    if obj.complete:
        return not obj.items
    try:
        hashed.hash_key(tx, key)
    except UserRaise:
        return not truth.truth(tx, obj)
    return False


@method(DictVariable, "popitem")
def dict_popitem(tx: Any, obj: DictVariable, args: list, kwargs: dict) -> VariableTracker:
    items = hashed.complete(tx, obj)
    if not items:
        raise UserRaise(user_error(KeyError, "popitem(): dictionary is empty"))
    key, value = next(reversed(items.values()))
    hashed.dict_delete(tx, obj, key)
    return TupleVariable([key, value])


@method(DictVariable, "keys")
def dict_keys(tx: Any, obj: DictVariable, args: list, kwargs: dict) -> VariableTracker:
    return ViewVariable("keys", obj)


@method(DictVariable, "values")
def dict_values(tx: Any, obj: DictVariable, args: list, kwargs: dict) -> VariableTracker:
    return ViewVariable("values", obj)


@method(DictVariable, "items")
def dict_items(tx: Any, obj: DictVariable, args: list, kwargs: dict) -> VariableTracker:
    return ViewVariable("items", obj)


class ViewVariable(ObjectVariable):
    """A live view of a dict: keys(), values() or items()."""

    __slots__ = ("kind", "of", "holder")

    def __init__(self, kind: str, of: DictVariable, holder: ObjectVariable | None = None) -> None:
        sample = collections.OrderedDict() if holder is not None and issubclass(holder.cls, collections.OrderedDict) else {}
        super().__init__(MISSING, type(getattr(sample, kind)()))
        self.kind = kind
        self.of = of
        self.holder = holder or of  # whose view it is: the dict, or the instance of a subclass that it is inside of


def _views_of_subclasses(kind: str) -> None:
    @method(ObjectVariable, kind)
    def view(tx: Any, obj: ObjectVariable, args: list, kwargs: dict) -> VariableTracker | None:
        if not isinstance(obj.payload, DictVariable) or args or obj.cls is types.MappingProxyType:
            return None
        return ViewVariable(kind, obj.payload, obj)


for _kind in ("keys", "values", "items"):
    _views_of_subclasses(_kind)


def view_items(tx: Any, view: ViewVariable) -> list[VariableTracker]:
    pairs = hashed.complete(tx, view.of).values()
    if view.kind == "keys":
        return [k for k, _ in pairs]
    return [v for _, v in pairs] if view.kind == "values" else [TupleVariable([k, v]) for k, v in pairs]


@method(ViewVariable, "__iter__")
def view_iter(tx: Any, obj: ViewVariable, args: list, kwargs: dict) -> VariableTracker:
    return iteration.iterate_dict(tx, obj.of, "" if obj.kind == "keys" else obj.kind, holder=obj.holder)


@method(ViewVariable, "__reversed__")
def view_reversed(tx: Any, obj: ViewVariable, args: list, kwargs: dict) -> VariableTracker:
    return iteration.iterate_dict(tx, obj.of, "" if obj.kind == "keys" else obj.kind, backwards=True, holder=obj.holder)


@method(ViewVariable, "__len__")
def view_len(tx: Any, obj: ViewVariable, args: list, kwargs: dict) -> VariableTracker:
    return truth.length(tx, obj.of)


@method(ViewVariable, "__contains__")
def view_contains(tx: Any, obj: ViewVariable, args: list, kwargs: dict) -> VariableTracker:
    if obj.kind == "keys":
        return operators.contains(tx, args[0], obj.of)
    return operators.contains(tx, args[0], TupleVariable(view_items(tx, obj)))


_SET_OPERATIONS = {"__and__": operator.and_, "__or__": operator.or_, "__sub__": operator.sub, "__xor__": operator.xor}


def _view_operation(name: str, fn: Any) -> None:
    """Views of keys and items behave as sets, and take any iterable as the other operand (dictobject.c, dictviews_or and others)."""

    def apply(tx: Any, left: VariableTracker, right: VariableTracker) -> VariableTracker:
        mine, others = (_as_items(tx, operand) for operand in (left, right))
        made = SetVariable({})
        if fn is operator.and_ and (not isinstance(right, ViewVariable) or len(others) <= len(mine)):
            wanted, table = [k for k in others if k in mine], others
        else:
            wanted, table = [k for k in mine if k not in others] if fn is operator.sub else list(mine), mine
            if fn is operator.and_:
                wanted = [k for k in mine if k in others]
        made.items = {k: table[k] for k in wanted}
        if fn is operator.or_:
            made.items.update({k: v for k, v in others.items() if k not in mine})
        elif fn is operator.xor:
            made.items = {k: v for k, v in mine.items() if k not in others} | {k: v for k, v in others.items() if k not in mine}
        made.order = _order(tx, fn, left, right)
        return made

    @method(ViewVariable, name)
    def forward(tx: Any, obj: ViewVariable, args: list, kwargs: dict) -> VariableTracker:
        return constant(NotImplemented) if obj.kind == "values" else apply(tx, obj, args[0])

    @method(ViewVariable, "__r" + name[2:])
    def backward(tx: Any, obj: ViewVariable, args: list, kwargs: dict) -> VariableTracker:
        return constant(NotImplemented) if obj.kind == "values" else apply(tx, args[0], obj)


def _order(tx: Any, fn: Any, left: VariableTracker, right: VariableTracker) -> Any:
    """What CPython itself makes of keys that are constants."""
    operands = []
    for operand in (left, right):
        if isinstance(operand, ViewVariable) and operand.kind != "keys":
            return None
        real = hashed.shadow(tx, operand.of if isinstance(operand, ViewVariable) else operand)
        if real is None:
            return None
        operands.append(real.keys() if isinstance(operand, ViewVariable) else real)
    return fn(*operands)


def _as_items(tx: Any, operand: VariableTracker) -> dict[Any, VariableTracker]:
    items: dict[Any, VariableTracker] = {}
    for item in iteration.drawn(tx, operand):
        item = realize(item, tx.state)
        items.setdefault(hashed.hash_key(tx, item), item)
    return items


def _view_comparison(name: str, fn: Any) -> None:
    @method(ViewVariable, name)
    def compare(tx: Any, obj: ViewVariable, args: list, kwargs: dict) -> VariableTracker | None:
        if obj.kind == "values":
            return None
        if not isinstance(args[0], ViewVariable) and not isinstance(hashed.payload_of(args[0]), SetVariable):
            return constant(NotImplemented)
        if obj.kind == "items" and not all(type(realize(v, tx.state)) is ConstantVariable for _, v in hashed.complete(tx, obj.of).values()):
            return None  # CPython compares values without hashing them
        return constant(fn(_as_items(tx, obj).keys(), _as_items(tx, args[0]).keys()))


for _name, _fn in _SET_OPERATIONS.items():
    _view_operation(_name, _fn)
for _fn in (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge):
    _view_comparison(f"__{_fn.__name__}__", _fn)


@method(ViewVariable, "isdisjoint")
def view_isdisjoint(tx: Any, obj: ViewVariable, args: list, kwargs: dict) -> VariableTracker:
    """dictviews_isdisjoint: it asks for no more items once it has found one."""
    items = (realize(item, tx.state) for item in iteration.drawn(tx, args[0]))
    return constant(not any(truth.truth(tx, view_contains(tx, obj, [item], {})) for item in items))


@method(DictVariable, "update")
def dict_update(tx: Any, obj: DictVariable, args: list, kwargs: dict) -> VariableTracker:
    update_dict(tx, obj, args, kwargs)
    return NONE


@method(DictVariable, "clear")
def dict_clear(tx: Any, obj: DictVariable, args: list, kwargs: dict) -> VariableTracker:
    keys = [key for key, _ in hashed.complete(tx, obj).values()]
    for key in keys:
        hashed.dict_delete(tx, obj, key)
    obj.cleared = obj.cleared or bool(keys)
    return NONE


@method(DictVariable, "copy")
def dict_copy(tx: Any, obj: DictVariable, args: list, kwargs: dict) -> VariableTracker:
    return DictVariable(dict(hashed.complete(tx, obj)))


@method(VariableTracker, "fromkeys")
def class_fromkeys(tx: Any, obj: VariableTracker, args: list, kwargs: dict) -> VariableTracker:
    """_PyDict_FromKeys: what the class gives without arguments, filled item by item."""
    if not is_class(obj):
        raise GraphBreak("unsupported_builtin_method", "fromkeys() of an instance")
    given = dict(zip(("iterable", "value"), args, strict=False))
    known = not kwargs.keys() & given and kwargs.keys() <= {"iterable", "value"} and "iterable" in given | kwargs and len(args) < 3
    if not known or kwargs and not issubclass(obj.value, collections.OrderedDict):  # type: ignore[attr-defined] - whose takes keywords
        raise GraphBreak("raised_exception", "fromkeys() with other arguments than it takes")
    given |= kwargs
    made = realize(calls.call(tx, obj, [], {}), tx.state)
    for key in iteration.drawn(tx, given["iterable"]):
        containers.set_item(tx, made, realize(key, tx.state), given.get("value", NONE))
    return made
