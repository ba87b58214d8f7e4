"""Stores: assignments of every form, told apart by what the stored value is."""

from __future__ import annotations

import ast
from typing import Any

from ..errors import DecompileError
from .items import Aug, Definition, Dup, Import, ImportedName, Iter, Mark, Multi, Slot, Unpacked, as_expr

STORE = ast.Store()


class Impure(Exception):
    """Control flow: a statement begins where only an expression was wanted."""


def emit(out: list | None, statement: ast.stmt) -> None:
    if out is None:
        raise Impure
    out.append(statement)


def store(w: Any, target: ast.expr, stack: list, out: list | None) -> None:
    """The value on top goes to ``target``."""
    value = stack.pop()
    if isinstance(value, Unpacked):
        group = value.group
        at = len(group.targets)
        group.targets.append(ast.Starred(target, STORE) if at == group.star else target)
        if at + 1 == group.count:
            stack.append(group.source)
            store(w, ast.Tuple(group.targets, STORE), stack, out)
    elif isinstance(value, Dup):
        _store_copy(value, target, stack)
    elif isinstance(value, Slot):
        value.target = target
    elif isinstance(value, (Import, ImportedName)):
        _store_import(w, value, target, stack, out)
    elif isinstance(value, (Mark, Iter)):
        raise DecompileError("what stands under a block is stored")
    elif w.has_annotations and _is_annotation(target):
        _annotate(w, target.slice.value, as_expr(value), out)  # type: ignore[attr-defined]
    elif len(stack) > w.floor or w.parallel:
        _store_parallel(w, value, target, stack, out)
    else:
        assign(w, value, target, out)


def _store_copy(value: Dup, target: ast.expr, stack: list) -> None:
    below = stack[-1]
    if below is not value.source:
        raise DecompileError("a copy is stored away from its original")
    if isinstance(below, Multi):
        below.targets.append(target)
    else:
        stack[-1] = Multi(below, target)


def assign(w: Any, value: Any, target: ast.expr, out: list | None) -> None:
    if out is None:
        emit(out, ast.Pass())
    if isinstance(value, Aug):
        if not isinstance(target, (ast.Name, type(value.left))) or not isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)):
            raise DecompileError("an in-place result goes elsewhere")
        emit(out, ast.AugAssign(target, value.op, value.right))
    elif isinstance(value, Definition):
        node = value.node
        node.decorator_list = value.decorators[::-1]
        name = node.name.id if isinstance(node.name, ast.Name) else node.name  # a type alias has the former
        if not isinstance(target, ast.Name) or target.id != name:
            raise DecompileError(f"the definition of {name} is stored under another name")
        emit(out, node)
    elif isinstance(value, Multi):
        emit(out, ast.Assign([*value.targets, target], as_expr(value.value), lineno=0))
    else:
        emit(out, ast.Assign([target], as_expr(value), lineno=0))


def _is_annotation(target: ast.expr) -> bool:
    return (isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and target.value.id == "__annotations__"
            and isinstance(target.slice, ast.Constant) and isinstance(target.slice.value, str))


def _annotate(w: Any, name: str, annotation: ast.expr, out: list | None) -> None:
    """``name: annotation``, or ``name: annotation = value`` where the statement before stored the value."""
    if out is None:
        emit(out, ast.Pass())
        return
    name = w.unmangled(name)
    last = out[-1] if out else None
    value = None
    if isinstance(last, ast.Assign) and len(last.targets) == 1 and isinstance(last.targets[0], ast.Name) and last.targets[0].id == name:
        value = last.value
        out.pop()
    out.append(ast.AnnAssign(ast.Name(name, STORE), w.annotation(annotation), value, 1))


def _store_parallel(w: Any, value: Any, target: ast.expr, stack: list, out: list | None) -> None:
    """``a, b = b, a``: the compiler leaves the tuple out, pushes all values and stores them last to first."""
    if out is None:
        emit(out, ast.Pass())
    if not w.parallel:
        note_pushed(w, [*stack[w.floor :], value])
    w.parallel.append((target, value))
    if len(stack) > w.floor:
        return
    pairs = w.parallel
    w.parallel = []
    order = {id(item): at for at, item in enumerate(w.pushed)}
    pairs.sort(key=lambda pair: order[id(pair[1])])
    targets = ast.Tuple([pair[0] for pair in pairs], STORE)
    values = ast.Tuple([as_expr(pair[1]) for pair in pairs], ast.Load())
    emit(out, ast.Assign([targets], values, lineno=0))


def note_pushed(w: Any, items: list) -> None:
    """Notes in which order the values of a parallel assignment are pushed: as they lie in front of the first SWAP, if any."""
    if {id(item) for item in items} != {id(item) for item in w.pushed}:
        w.pushed = items


def _store_import(w: Any, value: Any, target: ast.expr, stack: list, out: list | None) -> None:
    if not isinstance(target, ast.Name):
        raise DecompileError("a module is stored into what is no name")
    name = target.id
    if isinstance(value, Import):
        first = value.module.partition(".")[0]
        alias = ast.alias(value.module) if w.unmangled(first) == name else ast.alias(value.module, name)
        emit(out, ast.Import([alias]))
        return
    origin = value.origin
    if origin.fromlist is None:  # import a.b as c
        origin.names.append(ast.alias(name))
        emit(out, ast.Import([ast.alias(origin.module, name)]))
        return
    imported = w.name(value.name)
    origin.names.append(ast.alias(imported, None if imported == name else name))


def finish_import(origin: Import, out: list | None) -> None:
    """The module is popped once every name is taken from it."""
    if origin.fromlist is not None:
        emit(out, ast.ImportFrom(origin.module or None, origin.names, origin.level))
    elif not origin.names:
        raise DecompileError("a module is imported and dropped")
