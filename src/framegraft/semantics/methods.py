"""Methods of builtin containers, iterators and generators on trackers."""

from __future__ import annotations

import collections
import types
from typing import Any

from ..errors import GraphBreak, UserRaise
from ..interp.state import realize, user_error
from ..model.dispatch import METHODS, method
from ..model.value import (
    MISSING,
    NONE,
    CombinedIteratorVariable,
    ConstantVariable,
    DictVariable,
    ExceptionVariable,
    FunctionVariable,
    GeneratorVariable,
    IteratorVariable,
    ListVariable,
    MethodVariable,
    ObjectVariable,
    SetVariable,
    TupleVariable,
    VariableTracker,
    constant,
)
from . import attributes, calls, containers, core, exception_attributes, instances, iteration, operators, storing
from .class_checks import is_class
from .constructors import update_dict
from .functions import sort_items
from .wrapping import wrap_pinned


@method(ListVariable, "append")
def list_append(tx: Any, obj: ListVariable, args: list, kwargs: dict) -> VariableTracker:
    obj.extend([args[0]])
    containers.changing(tx, obj)
    return NONE


@method(ListVariable, "extend")
def list_extend(tx: Any, obj: ListVariable, args: list, kwargs: dict) -> VariableTracker:
    obj.extend(iteration.unpack_iterable(tx, args[0]))
    containers.changing(tx, obj)
    return NONE


@method(ListVariable, "insert")
def list_insert(tx: Any, obj: ListVariable, args: list, kwargs: dict) -> VariableTracker:
    obj.items.insert(containers.index_of(tx, args[0]), args[1])
    containers.changing(tx, obj)
    return NONE


@method(ListVariable, "pop")
def list_pop(tx: Any, obj: ListVariable, args: list, kwargs: dict) -> VariableTracker:
    index = containers.index_of(tx, args[0]) if args else -1
    if not obj.items:
        raise UserRaise(user_error(IndexError, "pop from empty list"))
    if not -len(obj.items) <= index < len(obj.items):
        raise UserRaise(user_error(IndexError, "pop index out of range"))
    containers.changing(tx, obj)
    return obj.items.pop(index)


@method(ListVariable, "clear")
def list_clear(tx: Any, obj: ListVariable, args: list, kwargs: dict) -> VariableTracker:
    obj.items.clear()
    containers.changing(tx, obj)
    return NONE


@method(ListVariable, "copy")
def list_copy(tx: Any, obj: ListVariable, args: list, kwargs: dict) -> VariableTracker:
    return ListVariable(list(obj.items))


@method(ListVariable, "reverse")
def list_reverse(tx: Any, obj: ListVariable, args: list, kwargs: dict) -> VariableTracker:
    obj.items.reverse()
    containers.changing(tx, obj)
    return NONE


@method(ListVariable, "sort")
def list_sort(tx: Any, obj: ListVariable, args: list, kwargs: dict) -> VariableTracker:
    obj.items[:] = sort_items(tx, obj.items, kwargs)
    containers.changing(tx, obj)
    return NONE


def _find(tx: Any, items: list, wanted: VariableTracker) -> int:
    for index, item in enumerate(items):
        item = realize(item, tx.state)
        if operators.same_object(item, wanted) or operators.truth(tx, operators.apply(tx, operators.operator.eq, [item, wanted])):
            return index
    return -1


@method(ListVariable, "remove")
def list_remove(tx: Any, obj: ListVariable, args: list, kwargs: dict) -> VariableTracker:
    index = _find(tx, obj.items, args[0])
    if index < 0:
        raise UserRaise(user_error(ValueError, "list.remove(x): x not in list"))
    del obj.items[index]
    containers.changing(tx, obj)
    return NONE


@method(ListVariable, "index")
@method(TupleVariable, "index")
def sequence_index(tx: Any, obj: Any, args: list, kwargs: dict) -> VariableTracker:
    if len(args) > 1:
        raise GraphBreak("unsupported_builtin_method", "index() with bounds")
    index = _find(tx, obj.items, args[0])
    if index < 0:
        kind = obj.python_type().__name__
        text = f"{kind}.index(x): x not in {kind}" if kind == "tuple" else f"{core.need_constant(args[0], 'x')!r} is not in list"
        raise UserRaise(user_error(ValueError, text))
    return constant(index)


@method(ListVariable, "count")
@method(TupleVariable, "count")
def sequence_count(tx: Any, obj: Any, args: list, kwargs: dict) -> VariableTracker:
    matches = (realize(i, tx.state) for i in obj.items)
    return constant(sum(operators.same_object(i, args[0]) or operators.truth(tx, operators.apply(tx, operators.operator.eq, [i, args[0]]))
                        for i in matches))


def _equal_payloads(tx: Any, obj: Any, args: list, kwargs: dict) -> VariableTracker:
    """list.__eq__ and its kin: NotImplemented for operands of other kinds."""
    other = containers.payload_of(args[0])
    if type(other) is not type(obj):
        return constant(NotImplemented)
    return operators.compare(tx, operators.operator.eq, obj, other)


def _dunders(cls: type) -> None:
    METHODS[cls, "__len__"] = lambda tx, o, a, k: operators.length(tx, o)
    METHODS[cls, "__iter__"] = lambda tx, o, a, k: iteration.get_iter(tx, o)
    METHODS[cls, "__contains__"] = lambda tx, o, a, k: operators.contains(tx, a[0], o)
    METHODS[cls, "__eq__"] = _equal_payloads
    METHODS[cls, "__getitem__"] = lambda tx, o, a, k: containers.get_item(tx, o, a[0])


for _cls in (ListVariable, TupleVariable, DictVariable, SetVariable):
    _dunders(_cls)


@method(ObjectVariable, "__eq__")
def mapping_equal(tx: Any, obj: ObjectVariable, args: list, kwargs: dict) -> VariableTracker | None:
    """mappingproxy compares what it shows; an OrderedDict looks at the order of another one."""
    if not isinstance(obj.payload, DictVariable):
        return None
    if obj.cls is types.MappingProxyType:
        return operators.apply(tx, operators.operator.eq, [obj.payload, args[0]])
    if not isinstance(containers.payload_of(args[0]), DictVariable):
        return constant(NotImplemented)
    return constant(operators.equal_dicts(tx, obj, args[0]))


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
    if isinstance(obj, SetVariable) and obj.cls is not set:
        raise GraphBreak("unsupported_builtin_method", "frozenset.__init__()")
    if isinstance(obj, ListVariable):
        obj.items[:] = iteration.unpack_iterable(tx, args[0]) if args else []
        containers.changing(tx, obj)
    elif isinstance(obj, DictVariable):
        update_dict(tx, obj, args, kwargs)
    else:
        items = [realize(i, tx.state) for a in args for i in iteration.unpack_iterable(tx, a)]
        obj.items.clear()
        containers.changing(tx, obj)
        for item in items:
            containers.set_add(tx, obj, item)
    return NONE


# -- dicts


@method(DictVariable, "get")
def dict_get(tx: Any, obj: DictVariable, args: list, kwargs: dict) -> VariableTracker:
    found = containers.dict_get(tx, obj, args[0])
    return found if found is not None else (args[1] if len(args) > 1 else NONE)


@method(DictVariable, "setdefault")
def dict_setdefault(tx: Any, obj: DictVariable, args: list, kwargs: dict) -> VariableTracker:
    found = containers.dict_get(tx, obj, args[0])
    if found is None:
        found = args[1] if len(args) > 1 else NONE
        containers.dict_set(tx, obj, args[0], found)
    return found


@method(DictVariable, "pop")
def dict_pop(tx: Any, obj: DictVariable, args: list, kwargs: dict) -> VariableTracker:
    found = containers.dict_delete(tx, obj, args[0])
    if found is None:
        if len(args) > 1:
            return args[1]
        raise UserRaise(containers.key_error(args[0]))
    return found


@method(DictVariable, "popitem")
def dict_popitem(tx: Any, obj: DictVariable, args: list, kwargs: dict) -> VariableTracker:
    items = containers.complete(tx, obj)
    if not items:
        raise UserRaise(user_error(KeyError, "popitem(): dictionary is empty"))
    key, value = next(reversed(items.values()))
    containers.dict_delete(tx, obj, key)
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
    pairs = containers.complete(tx, view.of).values()
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
    return operators.length(tx, obj.of)


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
    for key, _ in list(containers.complete(tx, obj).values()):
        containers.dict_delete(tx, obj, key)
    return NONE


@method(DictVariable, "copy")
def dict_copy(tx: Any, obj: DictVariable, args: list, kwargs: dict) -> VariableTracker:
    return DictVariable(dict(containers.complete(tx, obj)))


def dict_fromkeys(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    made = DictVariable({})
    for key in iteration.unpack_iterable(tx, args[0]):
        containers.dict_set(tx, made, realize(key, tx.state), args[1] if len(args) > 1 else NONE)
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


# -- sets


@method(SetVariable, "add")
def set_add(tx: Any, obj: SetVariable, args: list, kwargs: dict) -> VariableTracker:
    containers.set_add(tx, obj, args[0])
    return NONE


@method(SetVariable, "update")
def set_update(tx: Any, obj: SetVariable, args: list, kwargs: dict) -> VariableTracker:
    for other in args:
        if isinstance(containers.payload_of(other), (SetVariable, DictVariable)):
            obj.grown = False
        for item in iteration.unpack_iterable(tx, other):
            containers.set_add(tx, obj, realize(item, tx.state))
    return NONE


@method(SetVariable, "discard", "remove")
def set_discard(tx: Any, obj: SetVariable, args: list, kwargs: dict) -> VariableTracker:
    raise_missing = containers.hash_key(tx, args[0]) not in obj.items
    if not raise_missing:
        del obj.items[containers.hash_key(tx, args[0])]
        obj.grown = False
        containers.changing(tx, obj)
    return NONE


METHODS.pop((SetVariable, "remove"))


@method(SetVariable, "clear")
def set_clear(tx: Any, obj: SetVariable, args: list, kwargs: dict) -> VariableTracker:
    obj.items.clear()
    containers.changing(tx, obj)
    return NONE


@method(SetVariable, "copy")
def set_copy(tx: Any, obj: SetVariable, args: list, kwargs: dict) -> VariableTracker:
    if obj.cls is frozenset:
        return obj
    return SetVariable(dict(obj.items), cls=obj.cls)


def _set_operation(name: str, fn: Any) -> None:
    def operation(tx: Any, obj: SetVariable, args: list, kwargs: dict) -> VariableTracker:
        table = dict(obj.items)
        keys = set(table)
        for other in args:
            others = {}
            for item in iteration.unpack_iterable(tx, other):
                item = realize(item, tx.state)
                others[containers.hash_key(tx, item)] = item
            keys = fn(keys, set(others))
            table = {**others, **table}
        return SetVariable({k: v for k, v in table.items() if k in keys}, cls=obj.cls)

    METHODS[SetVariable, name] = operation


@method(SetVariable, "intersection")
def set_intersection(tx: Any, obj: SetVariable, args: list, kwargs: dict) -> VariableTracker:
    table = dict(obj.items)
    for other in args:
        items = [realize(i, tx.state) for i in iteration.unpack_iterable(tx, other)]
        others: dict = {}
        for item in items:
            others.setdefault(containers.hash_key(tx, item), item)
        table = containers.common_items(table, others, isinstance(containers.payload_of(other), SetVariable))
    return SetVariable(table, cls=obj.cls)


_set_operation("union", lambda a, b: a | b)
_set_operation("difference", lambda a, b: a - b)
_set_operation("symmetric_difference", lambda a, b: a ^ b)


def _set_update(name: str, operation: str) -> None:
    def update(tx: Any, obj: SetVariable, args: list, kwargs: dict) -> VariableTracker:
        if obj.as_is and not obj.changes:
            obj.as_is = False
        obj.items = METHODS[SetVariable, operation](tx, obj, args, {}).items
        obj.grown = False
        containers.changing(tx, obj)
        return NONE

    METHODS[SetVariable, name] = update


_set_update("intersection_update", "intersection")
_set_update("difference_update", "difference")
_set_update("symmetric_difference_update", "symmetric_difference")


def _set_question(name: str, fn: Any) -> None:
    def question(tx: Any, obj: SetVariable, args: list, kwargs: dict) -> VariableTracker:
        others = {containers.hash_key(tx, realize(i, tx.state)) for i in iteration.unpack_iterable(tx, args[0])}
        return constant(fn(set(obj.items), others))

    METHODS[SetVariable, name] = question


_set_question("issubset", lambda a, b: a <= b)
_set_question("issuperset", lambda a, b: a >= b)
_set_question("isdisjoint", lambda a, b: not a & b)


# -- iterators and generators


@method(IteratorVariable, "__iter__")
@method(CombinedIteratorVariable, "__iter__")
@method(GeneratorVariable, "__iter__")
def iterator_iter(tx: Any, obj: VariableTracker, args: list, kwargs: dict) -> VariableTracker:
    return obj


@method(IteratorVariable, "__next__")
@method(CombinedIteratorVariable, "__next__")
@method(GeneratorVariable, "__next__")
def iterator_next(tx: Any, obj: VariableTracker, args: list, kwargs: dict) -> VariableTracker:
    item = iteration.next_item(tx, obj)
    if item is None:
        raise UserRaise(user_error(StopIteration))
    return item


def _generator_result(done: bool, value: VariableTracker) -> VariableTracker:
    if not done:
        return value
    error = user_error(StopIteration)
    if not (isinstance(value, ConstantVariable) and value.value is None):
        error.args = [value]
    raise UserRaise(error)


@method(GeneratorVariable, "send")
def generator_send(tx: Any, obj: GeneratorVariable, args: list, kwargs: dict) -> VariableTracker:
    return _generator_result(*iteration.resume(tx, obj, args[0]))


@method(GeneratorVariable, "throw")
def generator_throw(tx: Any, obj: GeneratorVariable, args: list, kwargs: dict) -> VariableTracker:
    error = args[0]
    if is_class(error):  # (type, value, traceback), as _gen_throw and PyErr_NormalizeException take it
        value = args[1] if len(args) > 1 else NONE
        if isinstance(value, ConstantVariable) and value.value is None:
            error = realize(calls.call(tx, error, [], {}), tx.state)
        elif issubclass(value.python_type(), BaseException):
            error = value
        else:
            items = value.items if isinstance(value, TupleVariable) else [value]
            error = realize(calls.call(tx, error, list(items), {}), tx.state)
    return _generator_result(*iteration.resume(tx, obj, NONE, error))


@method(GeneratorVariable, "close")
def generator_close(tx: Any, obj: GeneratorVariable, args: list, kwargs: dict) -> VariableTracker:
    if obj.finished or not obj.started:
        obj.finished = True
        return NONE
    try:
        iteration.resume(tx, obj, NONE, ExceptionVariable(GeneratorExit, []))
    except UserRaise as raised:
        if issubclass(raised.value.python_type(), (GeneratorExit, StopIteration)):
            return NONE
        raise
    raise UserRaise(user_error(RuntimeError, "generator ignored GeneratorExit"))


# -- object


def _first_in_c(cls: type, name: str) -> Any:
    """The slot that a method of that name written in Python, or several, come in front of."""
    return next(b.__dict__[name] for b in cls.__mro__ if isinstance(b.__dict__.get(name), types.WrapperDescriptorType))


def _builtin_base(cls: type) -> type:
    return next(b for b in cls.__mro__ if not b.__flags__ & 1 << 9)  # Py_TPFLAGS_HEAPTYPE


@method(VariableTracker, "__init__")
def object_init(tx: Any, obj: VariableTracker, args: list, kwargs: dict) -> VariableTracker:
    if isinstance(obj, ExceptionVariable):
        obj.args = list(args)
    elif isinstance(obj, ObjectVariable) and _builtin_base(obj.cls).__init__ is object.__init__ and not args and not kwargs:
        pass
    else:
        raise GraphBreak("unsupported_builtin_method", f"{obj.python_type().__name__}.__init__")
    return NONE


@method(VariableTracker, "__init_subclass__", "__subclasshook__")
def object_hook(tx: Any, obj: VariableTracker, args: list, kwargs: dict) -> VariableTracker:
    return NONE


@method(VariableTracker, "__setattr__")
def object_setattr(tx: Any, obj: VariableTracker, args: list, kwargs: dict) -> VariableTracker:
    name = core.attribute_name(args[0])
    if isinstance(obj, ExceptionVariable):
        exception_attributes.generic_set_exception_attr(tx, obj, name, args[1])
        return NONE
    if not isinstance(obj, ObjectVariable) or issubclass(type(obj.value), type):
        raise GraphBreak("unsupported_mutation", f"setting {obj.python_type().__name__}.{name}")
    storing.generic_set_attr(tx, obj, name, args[1])
    return NONE


@method(VariableTracker, "__getattribute__")
def object_getattribute(tx: Any, obj: VariableTracker, args: list, kwargs: dict) -> VariableTracker:
    name = core.attribute_name(args[0])
    if isinstance(obj, ObjectVariable) and not issubclass(type(obj.value), type):
        return instances.generic_get_attr(tx, obj, name, fallback=False)
    return attributes.get_attr(tx, obj, name)


@method(VariableTracker, "__eq__")
def object_eq(tx: Any, obj: VariableTracker, args: list, kwargs: dict) -> VariableTracker:
    if isinstance(obj, ObjectVariable) and obj.payload is None and _first_in_c(obj.cls, "__eq__") is object.__eq__:
        return constant(True) if obj is args[0] else constant(NotImplemented)
    if isinstance(obj, ConstantVariable) and isinstance(args[0], ConstantVariable):
        return operators.fold(type(obj.value).__eq__, [obj, args[0]])
    raise GraphBreak("unsupported_builtin_method", f"{obj.python_type().__name__}.__eq__")


@method(VariableTracker, "__call__")
def object_call(tx: Any, obj: VariableTracker, args: list, kwargs: dict) -> VariableTracker:
    return calls.call(tx, obj, args, kwargs)


@method(VariableTracker, "__hash__")
def object_hash(tx: Any, obj: VariableTracker, args: list, kwargs: dict) -> VariableTracker:
    raise GraphBreak("introspection", "hash() of an object")


@method(VariableTracker, "mro")
def class_mro(tx: Any, obj: VariableTracker, args: list, kwargs: dict) -> VariableTracker:
    if not is_class(obj):
        raise GraphBreak("unsupported_builtin_method", "mro()")
    return ListVariable([wrap_pinned(tx, c) for c in obj.value.__mro__])  # type: ignore[attr-defined]


@method(ExceptionVariable, "with_traceback")
def exception_with_traceback(tx: Any, obj: ExceptionVariable, args: list, kwargs: dict) -> VariableTracker:
    exception_attributes.generic_set_exception_attr(tx, obj, "__traceback__", args[0])
    return obj


@method(ObjectVariable, "__get__")
@method(FunctionVariable, "__get__")
def function_get(tx: Any, obj: VariableTracker, args: list, kwargs: dict) -> VariableTracker | None:
    """A Python function as a method of an object (Objects/funcobject.c, func_descr_get)."""
    if obj.python_type() is not types.FunctionType or not args:
        return None
    if isinstance(args[0], ConstantVariable) and args[0].value is None:
        return obj if len(args) > 1 and is_class(args[1]) else None
    return MethodVariable(obj, args[0])
