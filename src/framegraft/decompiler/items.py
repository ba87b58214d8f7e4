"""What stands on the decompiler's stack besides expressions (``ast.expr``): values whose meaning their user decides."""

from __future__ import annotations

import ast
from types import CodeType
from typing import Any

from ..errors import DecompileError


class Item:
    """Base of everything on the stack that is no expression by itself."""

    __slots__ = ()

    def expr(self) -> ast.expr:
        raise DecompileError(f"{type(self).__name__} is used as a value")


class Dup(Item):
    """A copy that COPY made of ``source``: for another target, a walrus, or an augmented assignment."""

    __slots__ = ("source",)

    def __init__(self, source: Any) -> None:
        self.source = source

    def expr(self) -> ast.expr:
        return as_expr(self.source)


class Multi(Item):
    """A value that was stored through a copy already: ``a = b = value`` or ``(a := value)``."""

    __slots__ = ("value", "targets")

    def __init__(self, value: Any, target: ast.expr) -> None:
        self.value = value
        self.targets = [target]

    def expr(self) -> ast.expr:
        result = as_expr(self.value)
        for target in self.targets:
            if not isinstance(target, ast.Name):
                raise DecompileError("a stored value is used on")
            result = ast.NamedExpr(target, result)
        return result


class Aug(Item):
    """The result of an in-place operator, on its way to the store."""

    __slots__ = ("left", "op", "right")

    def __init__(self, left: ast.expr, op: ast.operator, right: ast.expr) -> None:
        self.left, self.op, self.right = left, op, right


class Group:
    """Targets of one unpacking, collected until all are there."""

    __slots__ = ("source", "count", "star", "targets")

    def __init__(self, source: Any, count: int, star: int) -> None:
        self.source, self.count, self.star = source, count, star
        self.targets: list[ast.expr] = []


class Unpacked(Item):
    """One value out of an unpacking."""

    __slots__ = ("group",)

    def __init__(self, group: Group) -> None:
        self.group = group

    def expr(self) -> ast.expr:
        if self.group.count != 1 or self.group.star >= 0:
            return super().expr()
        return ast.Starred(as_expr(self.group.source), ast.Load())  # the annotation of ``*args: *Types``


class Iter(Item):
    """An iterator: what a ``for`` goes through."""

    __slots__ = ("node", "is_async")

    def __init__(self, node: ast.expr, is_async: bool = False) -> None:
        self.node, self.is_async = node, is_async


class Slot(Item):
    """A value that goes to the target of a ``for``, a ``with`` or an ``except``."""

    __slots__ = ("target",)

    def __init__(self) -> None:
        self.target: ast.expr | None = None


class Mark(Item):
    """What the interpreter keeps on the stack under a block: ``exit``, ``previous`` (exception), ``exception``, ``result``."""

    __slots__ = ("kind",)

    def __init__(self, kind: str) -> None:
        self.kind = kind


class Manager(Item):
    """The value of an asynchronous ``__aenter__`` or ``__aexit__`` call that is still to be awaited."""

    __slots__ = ("slot",)

    def __init__(self, slot: Slot) -> None:
        self.slot = slot


class Import(Item):
    """A module as IMPORT_NAME leaves it; ``names`` collects what IMPORT_FROM takes out."""

    __slots__ = ("module", "level", "fromlist", "names")

    def __init__(self, module: str, level: int, fromlist: Any) -> None:
        self.module, self.level, self.fromlist = module, level, fromlist
        self.names: list[ast.alias] = []


class ImportedName(Item):
    """A name taken out of a module."""

    __slots__ = ("origin", "name")

    def __init__(self, origin: Import, name: str) -> None:
        self.origin, self.name = origin, name


class Chain(Item):
    """A comparison chain of which the last operand is on the stack for the next comparison."""

    __slots__ = ("node", "cleanup")

    def __init__(self, node: ast.Compare, cleanup: int) -> None:
        self.node, self.cleanup = node, cleanup


class Code(Item):
    """A code object as a constant, before MAKE_FUNCTION."""

    __slots__ = ("code",)

    def __init__(self, code: CodeType) -> None:
        self.code = code


class Function(Item):
    """What MAKE_FUNCTION left: a function, a lambda, a comprehension or a class body."""

    __slots__ = ("code", "defaults", "kwdefaults", "annotations", "owner", "closure")

    def __init__(self, code: CodeType, owner: Any) -> None:
        self.code = code
        self.owner = owner
        self.defaults: list[ast.expr] = []
        self.kwdefaults: dict[str, ast.expr] = {}
        self.annotations: dict[str, ast.expr] = {}
        self.closure: ast.expr | None = None

    def expr(self) -> ast.expr:
        return self.owner.lambda_expr(self)


class Definition(Item):
    """A ``def`` or ``class`` statement that waits for its store, with the decorators met so far (innermost first)."""

    __slots__ = ("node", "decorators")

    def __init__(self, node: Any) -> None:
        self.node = node
        self.decorators: list[ast.expr] = []


class BuildClass(Item):
    """The ``__build_class__`` function."""

    __slots__ = ()


class AssertionClass(Item):
    """The AssertionError that an ``assert`` raises, called or not."""

    __slots__ = ("message",)

    def __init__(self) -> None:
        self.message: ast.expr | None = None


def as_expr(item: Any) -> ast.expr:
    """The expression that an entry of the stack stands for; DecompileError where it has none."""
    return item.expr() if isinstance(item, Item) else item
