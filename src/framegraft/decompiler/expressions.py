"""Straight-line operations: what each canonical instruction does to the decompiler's stack.

A rule takes ``(walker, instruction, stack, out)``. ``out`` collects statements; it is None where only an expression is
wanted, and a rule that would write a statement raises ``Impure`` then.
"""

from __future__ import annotations

import ast
import operator
import re
from keyword import iskeyword
from types import CodeType
from typing import Any

from ..bytecode import ops
from ..errors import DecompileError
from .calls import call, call_ex
from .constants import PLACE, constant, set_display
from .items import (
    AssertionClass,
    Aug,
    BuildClass,
    Chain,
    Code,
    Dup,
    Function,
    Group,
    Import,
    ImportedName,
    Item,
    Iter,
    Mark,
    Multi,
    Unpacked,
    as_expr,
)
from .stores import emit, finish_import, note_pushed, store

LOAD, STORE, DEL = ast.Load(), ast.Store(), ast.Del()

_BINARY = {operator.add: ast.Add, operator.and_: ast.BitAnd, operator.floordiv: ast.FloorDiv, operator.lshift: ast.LShift,
           operator.matmul: ast.MatMult, operator.mul: ast.Mult, operator.mod: ast.Mod, operator.or_: ast.BitOr,
           operator.pow: ast.Pow, operator.rshift: ast.RShift, operator.sub: ast.Sub, operator.truediv: ast.Div,
           operator.xor: ast.BitXor}
_INPLACE = {operator.iadd: ast.Add, operator.iand: ast.BitAnd, operator.ifloordiv: ast.FloorDiv, operator.ilshift: ast.LShift,
            operator.imatmul: ast.MatMult, operator.imul: ast.Mult, operator.imod: ast.Mod, operator.ior: ast.BitOr,
            operator.ipow: ast.Pow, operator.irshift: ast.RShift, operator.isub: ast.Sub, operator.itruediv: ast.Div,
            operator.ixor: ast.BitXor}
_COMPARE = {operator.lt: ast.Lt, operator.le: ast.LtE, operator.eq: ast.Eq, operator.ne: ast.NotEq, operator.gt: ast.Gt,
            operator.ge: ast.GtE, operator.is_: ast.Is, operator.is_not: ast.IsNot, ops.contains: ast.In,
            ops.not_contains: ast.NotIn}
_UNARY = {operator.pos: ast.UAdd, operator.neg: ast.USub, operator.not_: ast.Not, operator.invert: ast.Invert}
_PLAIN_FORMAT = re.compile(r"%(?:%|-?\d*(?:\.\d+)?[sra])")
_BIG_DICT = 17  # pairs in each part of a big dict display: STACK_USE_GUIDELINE / 2 + 2


def pop(stack: list) -> ast.expr:
    item = stack.pop()
    return item.expr() if isinstance(item, Item) else item


def pop_n(stack: list, count: int) -> list[ast.expr]:
    if not count:
        return []
    found = [as_expr(item) for item in stack[-count:]]
    del stack[-count:]
    return found


def load_name(w: Any, inst: Any, stack: list, out: Any) -> None:
    stack.append(ast.Name(w.name(inst.arg), LOAD))


def load_from_class(w: Any, inst: Any, stack: list, out: Any) -> None:
    """Of a type parameter's or an alias's expression: in the class around, then outside of it."""
    below = stack.pop()
    if not isinstance(below, ast.Name) or below.id != "__classdict__":
        raise DecompileError(f"{inst.arg} is looked up in what is no class")
    load_name(w, inst, stack, out)


def load_const(w: Any, inst: Any, stack: list, out: Any) -> None:
    value = inst.arg
    if isinstance(value, CodeType):
        stack.append(Code(value))
    elif value is AssertionError:
        stack.append(AssertionClass())
    else:
        node = constant(value)
        if node is None:
            node = ast.Constant(PLACE.format(w.const_index(value)))
            node.value_ = value  # type: ignore[attr-defined]
            if type(value) is not frozenset:
                w.has_places = True
        stack.append(node)


def apply(w: Any, inst: Any, stack: list, out: Any) -> None:
    fn, count = inst.arg
    if count == 1:
        operand = pop(stack)
        if fn is iter:
            stack.append(Iter(thaw(operand)))
        elif fn in _CONVERSIONS:
            stack.append(ast.FormattedValue(operand, ord(_CONVERSIONS[fn]), None))  # FORMAT_VALUE takes it in
        else:
            stack.append(ast.UnaryOp(_UNARY[fn](), operand))
        return
    right, left = pop(stack), stack.pop()
    if fn in _COMPARE:
        compare(left, _COMPARE[fn](), right, stack)
        return
    left = as_expr(left)
    if fn is operator.getitem:
        stack.append(ast.Subscript(left, right, LOAD))
    elif fn in _BINARY:
        if fn is operator.mod:
            left = _unformatted(left, right)
        stack.append(ast.BinOp(left, _BINARY[fn](), right))
    else:
        stack.append(Aug(left, _INPLACE[fn](), right))


def _unformatted(left: ast.expr, right: ast.expr) -> ast.expr:
    """The compiler makes f-strings of ``'%s' % (x,)`` (``optimize_format``), so what is left was one before."""
    if isinstance(left, ast.Constant) and isinstance(left.value, str) and isinstance(right, ast.Tuple) and not _literal(right):
        if not _PLAIN_FORMAT.sub("", left.value).count("%"):
            return ast.JoinedStr([left])
    return left


def _literal(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or isinstance(node, ast.Tuple) and all(_literal(e) for e in node.elts)


def compare(left: Any, op: ast.cmpop, right: ast.expr, stack: list) -> None:
    if isinstance(op, (ast.In, ast.NotIn)):
        right = thaw(right)
    if isinstance(left, Chain):
        node = left.node
        stack.append(ast.Compare(node.left, [*node.ops, op], [*node.comparators, right]))
    else:
        stack.append(ast.Compare(as_expr(left), [op], [right]))


def thaw(node: ast.expr) -> ast.expr:
    """A frozen set where the compiler freezes set displays."""
    value = getattr(node, "value_", None)
    if type(value) is frozenset:
        return set_display(value) or node
    return node


def build(kind: Any) -> Any:
    def rule(w: Any, inst: Any, stack: list, out: Any) -> None:
        stack.append(kind(pop_n(stack, inst.arg)))

    return rule


def build_map(w: Any, inst: Any, stack: list, out: Any) -> None:
    flat = pop_n(stack, 2 * inst.arg)
    stack.append(ast.Dict([*flat[::2]], flat[1::2]))


def build_map_keys(w: Any, inst: Any, stack: list, out: Any) -> None:
    keys = pop(stack)
    if not isinstance(keys, ast.Tuple):
        raise DecompileError("keys of a dict display that have no literals")
    stack.append(ast.Dict(list(keys.elts), pop_n(stack, inst.arg)))


def build_string(w: Any, inst: Any, stack: list, out: Any) -> None:
    values: list[ast.expr] = []
    for part in pop_n(stack, inst.arg):
        values += _parts(part)
    stack.append(ast.JoinedStr(values))


def _parts(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.JoinedStr):
        return node.values
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node]
    return [ast.FormattedValue(node, -1, None)]  # a string made before


_CONVERSIONS = {str: "s", repr: "r", ascii: "a"}


def format_value(w: Any, inst: Any, stack: list, out: Any) -> None:
    conversion, has_spec = inst.arg
    spec = pop(stack) if has_spec else None
    if spec is not None and not isinstance(spec, ast.JoinedStr):
        spec = ast.JoinedStr(_parts(spec))
    value = pop(stack)
    if isinstance(value, ast.FormattedValue) and not conversion:
        value.format_spec = spec
    else:
        value = ast.FormattedValue(value, ord(conversion) if conversion else -1, spec)
    stack.append(ast.JoinedStr([value]))


def build_slice(w: Any, inst: Any, stack: list, out: Any) -> None:
    parts = pop_n(stack, inst.arg)
    lower, upper = (None if isinstance(p, ast.Constant) and p.value is None else p for p in parts[:2])
    stack.append(ast.Slice(lower, upper, parts[2] if len(parts) > 2 else None))


def extend(w: Any, inst: Any, stack: list, out: Any) -> None:
    """LIST_EXTEND, SET_UPDATE: ``[*a, b]``, and displays of three or more constants."""
    value = pop(stack)
    display = stack[-inst.arg]
    if not isinstance(display, (ast.List, ast.Set)):
        raise DecompileError("an unpacking into what is no display")
    frozen = getattr(value, "value_", None)
    if type(frozen) is frozenset:
        value = set_display(frozen) or value
    if not display.elts and (isinstance(display, ast.List) and isinstance(value, ast.Tuple) and _all_constant(value)
                             and len(value.elts) > 2 or frozen is not None and isinstance(value, ast.Set)):
        elements = list(value.elts)  # type: ignore[union-attr]
        display.elts = elements + elements[-1:] * (3 - len(elements))  # a set of which some elements were written twice
    else:
        display.elts.append(ast.Starred(value, LOAD))


def _all_constant(node: ast.Tuple) -> bool:
    return not any(isinstance(n, (ast.Name, ast.Call, ast.Attribute)) for n in node.elts)


def append(w: Any, inst: Any, stack: list, out: Any) -> None:
    """LIST_APPEND, SET_ADD: an element of a comprehension or of a display with many elements."""
    value = pop(stack)
    display = stack[-inst.arg]
    if isinstance(display, Mark):
        emit(out, ast.Expr(ast.Yield(value)))
    elif isinstance(display, (ast.List, ast.Set)):
        display.elts.append(value)
    else:
        raise DecompileError("an element for what is no display")


def map_add(w: Any, inst: Any, stack: list, out: Any) -> None:
    value, key = pop(stack), pop(stack)
    display = stack[-inst.arg]
    if isinstance(display, Mark):
        emit(out, ast.Expr(ast.Yield(ast.Dict([key], [value]))))
    elif isinstance(display, ast.Dict):
        display.keys.append(key)
        display.values.append(value)
        display.added = getattr(display, "added", 0) + 1  # type: ignore[attr-defined]
    else:
        raise DecompileError("a pair for what is no dict")


def dict_update(w: Any, inst: Any, stack: list, out: Any) -> None:
    """DICT_UPDATE, DICT_MERGE: ``**value``, or the next part of a big display."""
    value = pop(stack)
    display = stack[-inst.arg]
    if not isinstance(display, ast.Dict):
        raise DecompileError("an unpacking into what is no dict display")
    added = getattr(display, "added", 0)
    part = isinstance(value, ast.Dict) and value.keys and None not in value.keys
    unpacked = display.keys and display.keys[-1] is None  # pairs behind an unpacking come as a display of their own
    if inst.op == "DICT_MERGE":
        part = part and unpacked and all(map(_is_keyword, value.keys))  # type: ignore[union-attr]
    else:
        part = part and (unpacked or display.keys and added and added % _BIG_DICT == 0)
    if part:
        display.keys += value.keys  # type: ignore[attr-defined]
        display.values += value.values  # type: ignore[attr-defined]
        display.added = getattr(value, "added", 0)  # type: ignore[attr-defined]
    else:
        display.keys.append(None)
        display.values.append(value)


def _is_keyword(key: Any) -> bool:
    return isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value.isidentifier() and not iskeyword(key.value)


def list_to_tuple(w: Any, inst: Any, stack: list, out: Any) -> None:
    node = pop(stack)
    if not isinstance(node, ast.List):
        raise DecompileError("a tuple of what is no list display")
    made = ast.Tuple(node.elts, LOAD)
    made.unpacked = True  # type: ignore[attr-defined]
    stack.append(made)


def load_attr(w: Any, inst: Any, stack: list, out: Any) -> None:
    stack.append(ast.Attribute(pop(stack), w.unmangled(inst.arg), LOAD))


def store_name(w: Any, inst: Any, stack: list, out: Any) -> None:
    w.note_store(inst)
    store(w, ast.Name(w.name(inst.arg), STORE), stack, out)


def store_attr(w: Any, inst: Any, stack: list, out: Any) -> None:
    store(w, ast.Attribute(pop(stack), w.unmangled(inst.arg), STORE), stack, out)


def store_subscr(w: Any, inst: Any, stack: list, out: Any) -> None:
    key, container = pop(stack), pop(stack)
    store(w, ast.Subscript(container, key, STORE), stack, out)


def delete(w: Any, inst: Any, stack: list, out: Any) -> None:
    if inst.op == "DELETE_ATTR":
        target: ast.expr = ast.Attribute(pop(stack), w.unmangled(inst.arg), DEL)
    elif inst.op == "DELETE_SUBSCR":
        key = pop(stack)
        target = ast.Subscript(pop(stack), key, DEL)
    else:
        w.note_store(inst)
        target = ast.Name(w.name(inst.arg), DEL)
    emit(out, ast.Delete([target]))


def copy(w: Any, inst: Any, stack: list, out: Any) -> None:
    stack.append(Dup(stack[-inst.arg]))


def swap(w: Any, inst: Any, stack: list, out: Any) -> None:
    if not w.parallel:
        note_pushed(w, stack[w.floor :])
    stack[-inst.arg], stack[-1] = stack[-1], stack[-inst.arg]


def pop_top(w: Any, inst: Any, stack: list, out: Any) -> None:
    item = stack.pop()
    below = stack[-1] if stack else None
    if isinstance(below, ImportedName) and (item is below.origin or isinstance(item, ImportedName)):
        return  # import a.b.c as d: only the last module stays
    if isinstance(item, Import):
        finish_import(item, out)
    elif isinstance(item, ImportedName):
        finish_import(item.origin, out)
    elif isinstance(item, (Mark, Iter)):
        raise DecompileError("the stack under a block is touched")
    elif isinstance(item, Unpacked) and (name := _stored_next(w, inst)):
        stack.append(item)
        store(w, ast.Name(name, STORE), stack, out)
    else:
        if isinstance(item, Dup):
            raise DecompileError("a copy that nobody uses")
        emit(out, ast.Expr(as_expr(item)))


def _stored_next(w: Any, inst: Any) -> str | None:
    """The name that the next store binds: of two stores to one name, one behind the other, the compiler drops the first."""
    at = inst.index
    while w.g.ops[at] == "POP_TOP":
        at += 1
    return w.name(w.g.insts[at].arg) if w.g.ops[at] == "STORE_FAST" else None


def unpack(w: Any, inst: Any, stack: list, out: Any) -> None:
    if inst.op == "UNPACK_SEQUENCE":
        count, star = inst.arg, -1
    else:
        before, after = inst.arg
        count, star = before + after + 1, before
    source = stack.pop()
    if count == 0:
        stack.append(source)
        store(w, ast.Tuple([], STORE), stack, out)
        return
    group = Group(source, count, star)
    stack += [Unpacked(group) for _ in range(count)]


def make_function(w: Any, inst: Any, stack: list, out: Any) -> None:
    item = stack.pop()
    if not isinstance(item, Code):
        raise DecompileError("a function of a code object that is no constant")
    made = Function(item.code, w)
    flags = inst.arg or 0
    if flags & 8:
        stack.pop()
    if flags & 4:
        flat = pop(stack)
        names = flat.elts[::2]  # type: ignore[attr-defined]
        made.annotations = {n.value: w.annotation(v) for n, v in zip(names, flat.elts[1::2], strict=True)}  # type: ignore[attr-defined]
    if flags & 2:
        pairs = pop(stack)
        made.kwdefaults = {k.value: v for k, v in zip(pairs.keys, pairs.values, strict=True)}  # type: ignore[attr-defined]
    if flags & 1:
        made.defaults = list(pop(stack).elts)  # type: ignore[attr-defined]
    code = made.code
    stack.append(made if code.co_name.startswith("<") or not code.co_flags & 1 else w.definition(made))


def import_name(w: Any, inst: Any, stack: list, out: Any) -> None:
    fromlist, level = stack.pop(), stack.pop()
    names = None if isinstance(fromlist, ast.Constant) else [n.value for n in fromlist.elts]
    stack.append(Import(inst.arg, level.value, names))


def import_from(w: Any, inst: Any, stack: list, out: Any) -> None:
    origin = stack[-1]
    if isinstance(origin, ImportedName):  # import a.b.c as d: each part is taken from the one before
        origin = origin.origin
    if not isinstance(origin, Import):
        raise DecompileError("a name is imported from no module")
    stack.append(ImportedName(origin, inst.arg))


def intrinsic(w: Any, inst: Any, stack: list, out: Any) -> None:
    if inst.arg == "import_star":
        origin = stack.pop()
        emit(out, ast.ImportFrom(origin.module or None, [ast.alias("*")], origin.level))
    elif inst.arg == "print_expr":
        emit(out, ast.Expr(pop(stack)))
    elif inst.arg != "async_gen_wrap":
        raise DecompileError(f"{inst.arg} out of place")


def yield_value(w: Any, inst: Any, stack: list, out: Any) -> None:
    value = stack.pop()
    if w.is_genexpr:
        stack.append(ast.Yield(as_expr(value)))
    else:
        value = as_expr(value)
        stack.append(ast.Yield(None if isinstance(value, ast.Constant) and value.value is None else value))


def ignore(w: Any, inst: Any, stack: list, out: Any) -> None:
    pass


def setup_annotations(w: Any, inst: Any, stack: list, out: Any) -> None:
    w.has_annotations = True


RULES: dict[str, Any] = {
    "LOAD_CONST": load_const, "APPLY": apply, "CALL": call, "CALL_EX": call_ex,
    "BUILD_TUPLE": build(lambda elts: ast.Tuple(elts, LOAD)), "BUILD_LIST": build(lambda elts: ast.List(elts, LOAD)),
    "BUILD_SET": build(ast.Set), "BUILD_MAP": build_map, "BUILD_MAP_KEYS": build_map_keys, "BUILD_STRING": build_string,
    "BUILD_SLICE": build_slice, "FORMAT_VALUE": format_value, "LIST_EXTEND": extend, "SET_UPDATE": extend,
    "LIST_APPEND": append, "SET_ADD": append, "MAP_ADD": map_add, "DICT_UPDATE": dict_update, "DICT_MERGE": dict_update,
    "LIST_TO_TUPLE": list_to_tuple, "LOAD_ATTR": load_attr, "STORE_ATTR": store_attr, "STORE_SUBSCR": store_subscr,
    "COPY": copy, "SWAP": swap, "POP_TOP": pop_top, "UNPACK_SEQUENCE": unpack, "UNPACK_EX": unpack,
    "MAKE_FUNCTION": make_function, "IMPORT_NAME": import_name, "IMPORT_FROM": import_from, "INTRINSIC": intrinsic,
    "YIELD_VALUE": yield_value, "RETURN_GENERATOR": ignore, "SETUP_ANNOTATIONS": setup_annotations,
    "LOAD_BUILD_CLASS": lambda w, inst, stack, out: stack.append(BuildClass()),
    "LOAD_CLOSURE": load_name, "MAKE_CELL": ignore, "LOAD_FROM_DICT_OR_GLOBALS": load_from_class,
    "LOAD_FROM_MAPPING_OR_DEREF": load_from_class,
    "LOAD_LOCALS": lambda w, inst, stack, out: stack.append(ast.Name("__classdict__", LOAD)),
}
RULES |= dict.fromkeys(("LOAD_FAST", "LOAD_DEREF", "LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_DEREF"), load_name)
RULES |= dict.fromkeys(("STORE_FAST", "STORE_DEREF", "STORE_GLOBAL", "STORE_NAME"), store_name)
RULES |= dict.fromkeys(("DELETE_FAST", "DELETE_DEREF", "DELETE_GLOBAL", "DELETE_NAME", "DELETE_ATTR", "DELETE_SUBSCR"), delete)

__all__ = ["RULES", "Multi", "compare", "pop", "pop_n", "thaw"]
