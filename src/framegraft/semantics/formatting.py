"""str.format, str.format_map, str.maketrans and str.translate (CPython: Objects/stringlib/unicode_format.h, Objects/unicodeobject.c)."""

from __future__ import annotations

import _string  # type: ignore[import-not-found]
from typing import Any

from ..errors import GraphBreak
from ..interp.state import realize
from ..model.dispatch import handles, method
from ..model.value import ConstantVariable, DictVariable, VariableTracker, constant
from . import core, folding, hashed, operators


class _Fields:
    """What the fields of one text are taken from, and whether they are numbered in the text or by their order."""

    def __init__(self, tx: Any, args: list, kwargs: dict, mapping: VariableTracker | None = None) -> None:
        self.tx = tx
        self.args = args
        self.kwargs = kwargs
        self.mapping = mapping
        self.next: int | None = None  # None: no number yet
        self.given = False

    def first(self, key: int | str) -> VariableTracker:
        if key == "" or isinstance(key, int):
            if self.mapping is not None or (self.given if key == "" else self.next is not None):
                raise GraphBreak("raised_exception", "str.format with fields numbered in two ways, or format_map with numbers")
            if key == "":
                key = self.next = 0 if self.next is None else self.next + 1
            else:
                self.given = True
            if key >= len(self.args):  # type: ignore[operator]
                raise GraphBreak("raised_exception", "str.format of too few arguments")
            return self.args[key]  # type: ignore[index]
        if self.mapping is not None:
            return operators.getitem(self.tx, self.mapping, constant(key))
        if key not in self.kwargs:
            raise GraphBreak("raised_exception", f"str.format without {key}")
        return self.kwargs[key]

    def value(self, field: str) -> VariableTracker:
        first, rest = _string.formatter_field_name_split(field)
        found = realize(self.first(first), self.tx.state)
        for is_attribute, key in rest:
            if is_attribute:
                found = core.get_attr(self.tx, found, key)
            else:
                found = operators.getitem(self.tx, found, constant(key))
            found = realize(found, self.tx.state)
        return found

    def text(self, template: str, depth: int) -> str:
        if depth < 0:
            raise GraphBreak("raised_exception", "fields of str.format nested too deep")
        parts = []
        for literal, field, spec, conversion in _string.formatter_parser(template):
            parts.append(literal)
            if field is None:
                continue
            value = self.value(field)
            if conversion and "{" in spec:
                raise GraphBreak("unsupported_builtin_method", "str.format with a conversion and a field in the format")
            inner = self.text(spec, depth - 1) if "{" in spec or "}" in spec else spec
            told = realize(core.format_value(self.tx, value, conversion or "", constant(inner)), self.tx.state)
            parts.append(core.need_constant(told, "a part of a formatted text"))
        return "".join(parts)


def _formatted(obj: ConstantVariable, fields: _Fields) -> VariableTracker:
    try:
        return constant(fields.text(obj.value, 2))
    except ValueError as error:
        raise GraphBreak("raised_exception", f"str.format: {error}") from None


@method(ConstantVariable, "format")
def str_format(tx: Any, obj: ConstantVariable, args: list, kwargs: dict) -> VariableTracker | None:
    plain = all(isinstance(a, ConstantVariable) for a in (*args, *kwargs.values()))
    if type(obj.value) is not str or plain:
        return None
    return _formatted(obj, _Fields(tx, args, kwargs))


@method(ConstantVariable, "format_map")
def str_format_map(tx: Any, obj: ConstantVariable, args: list, kwargs: dict) -> VariableTracker | None:
    return _formatted(obj, _Fields(tx, [], {}, args[0])) if type(obj.value) is str else None


def _plain_table(tx: Any, table: VariableTracker) -> dict:
    if not isinstance(table, DictVariable):
        raise GraphBreak("unsupported_builtin_method", f"a {table.python_type().__name__} as a table of characters")
    found = {}
    for key, value in hashed.complete(tx, table).values():
        plain = realize(value, tx.state)
        if not isinstance(key, ConstantVariable) or not isinstance(plain, ConstantVariable):
            raise GraphBreak("unsupported_builtin_method", "a table of characters with something else than constants")
        found[key.value] = plain.value
    return found


@method(ConstantVariable, "translate")
def str_translate(tx: Any, obj: ConstantVariable, args: list, kwargs: dict) -> VariableTracker | None:
    if type(obj.value) is not str or len(args) != 1:
        return None
    table = _plain_table(tx, args[0])
    return folding.fold(lambda text: text.translate(table), [constant(obj.value)])


@handles(str.maketrans)
def maketrans(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    given = [_plain_table(tx, a) if isinstance(a, DictVariable) else core.need_constant(a, "a table of characters") for a in args]
    try:
        table = str.maketrans(*given)
    except (TypeError, ValueError) as error:
        raise GraphBreak("raised_exception", str(error)) from None
    return DictVariable({k: (constant(k), constant(v)) for k, v in table.items()})



