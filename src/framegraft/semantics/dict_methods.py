"""Methods of dicts and of their views on trackers."""

from __future__ import annotations

import collections
import types
from typing import Any

from ..errors import GraphBreak, UserRaise
from ..interp.state import realize, user_error
from ..model.dispatch import method
from ..model.value import (
    MISSING,
    NONE,
    DictVariable,
    ObjectVariable,
    TupleVariable,
    VariableTracker,
)
from . import (
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
    found = hashed.dict_delete(tx, obj, args[0])
    if found is None:
        if len(args) > 1:
            return args[1]
        raise UserRaise(containers.key_error(args[0]))
    return found


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
    return iteration.iterate_dict(tx, obj.of, "" if obj.kind == "keys" else obj.kind)


@method(ViewVariable, "__reversed__")
def view_reversed(tx: Any, obj: ViewVariable, args: list, kwargs: dict) -> VariableTracker:
    return iteration.iterate_dict(tx, obj.of, "" if obj.kind == "keys" else obj.kind, backwards=True)


@method(ViewVariable, "__len__")
def view_len(tx: Any, obj: ViewVariable, args: list, kwargs: dict) -> VariableTracker:
    return truth.length(tx, obj.of)


@method(ViewVariable, "__contains__")
def view_contains(tx: Any, obj: ViewVariable, args: list, kwargs: dict) -> VariableTracker:
    if obj.kind == "keys":
        return operators.contains(tx, args[0], obj.of)
    return operators.contains(tx, args[0], TupleVariable(view_items(tx, obj)))


@method(DictVariable, "update")
def dict_update(tx: Any, obj: DictVariable, args: list, kwargs: dict) -> VariableTracker:
    update_dict(tx, obj, args, kwargs)
    return NONE


@method(DictVariable, "clear")
def dict_clear(tx: Any, obj: DictVariable, args: list, kwargs: dict) -> VariableTracker:
    for key, _ in list(hashed.complete(tx, obj).values()):
        hashed.dict_delete(tx, obj, key)
    return NONE


@method(DictVariable, "copy")
def dict_copy(tx: Any, obj: DictVariable, args: list, kwargs: dict) -> VariableTracker:
    return DictVariable(dict(hashed.complete(tx, obj)))


def dict_fromkeys(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    made = DictVariable({})
    for key in iteration.unpack_iterable(tx, args[0]):
        hashed.dict_set(tx, made, realize(key, tx.state), args[1] if len(args) > 1 else NONE)
    return made


@method(VariableTracker, "fromkeys")
def class_fromkeys(tx: Any, obj: VariableTracker, args: list, kwargs: dict) -> VariableTracker:
    if not is_class(obj) or obj.value not in (dict, collections.OrderedDict):  # type: ignore[attr-defined]
        raise GraphBreak("unsupported_builtin_method", "fromkeys() of a subclass of dict")
    made = dict_fromkeys(tx, [*args, *kwargs.values()], {})
    if obj.value is dict:  # type: ignore[attr-defined]
        return made
    ordered = ObjectVariable(MISSING, collections.OrderedDict)
    ordered.payload = made
    return ordered
