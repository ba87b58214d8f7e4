"""The proof: the source is compiled again, and its code must do what the original does, on every way."""

from __future__ import annotations
import __future__

import ast
import re
from types import CodeType
from typing import Any

from ..bytecode.flow import NO_FALLTHROUGH
from ..bytecode.ir import Instruction
from ..errors import DecompileError
from ..unheard import Unheard
from .graph import instructions_of
from .scopes import parameter_count

_TABLES = ("co_names", "co_varnames", "co_cellvars", "co_freevars", "co_exceptiontable")
FUTURE = 0
for _name in __future__.all_feature_names:
    FUTURE |= getattr(__future__, _name).compiler_flag
FUTURE &= ~0x10  # nested_scopes shares CO_NESTED
Known = dict[int, list[Instruction]]
_FLAGS = 0x1 | 0x2 | 0x4 | 0x8 | 0x20 | 0x80 | 0x200
PLACE = re.compile(r"__co_consts\[(\d+)\]\Z")
# Operations that cannot raise: which handler covers them does not matter.
QUIET = frozenset(("LOAD_CONST", "POP_TOP", "COPY", "SWAP", "RETURN_VALUE", "STORE_FAST", "JUMP", "RETURN_GENERATOR"))


def check(original: CodeType, made: CodeType, top: bool = True, known: Known | None = None) -> None:
    """DecompileError unless ``made`` has the signature of ``original`` and does the same on every way through it.

    ``known``: instructions of code objects, by their ids, where they are decoded already or others stand for them.
    """
    name = original.co_name

    def same(a: Any, b: Any, what: str) -> None:
        if a != b:
            raise DecompileError(f"{name}: the source has another {what}: {a!r} / {b!r}")

    same(_signature(original), _signature(made), "signature")
    same(original.co_flags & _FLAGS, made.co_flags & _FLAGS, "kind of function")
    same(sorted(original.co_freevars), sorted(made.co_freevars), "set of free variables")
    if not top:
        same(name, made.co_name, "name")
    known = known or {}
    if _is_same_code(original, made, known):
        return
    a, b = known.get(id(original)) or instructions_of(original), instructions_of(made)
    seen: set[tuple[int, int]] = set()
    todo = [(a[0], b[0])] if a and b else []
    while todo:
        x, y = todo.pop()
        x, y = _resolve(x), _resolve(y)
        if (x.index, y.index) in seen:
            continue
        seen.add((x.index, y.index))
        _same_operation(original, x, y, a, known)
        if x.op not in QUIET and not (x.op == "POP_JUMP_IF" and x.arg in ("none", "not_none")):
            h, k = x.handler, y.handler
            if (h is None) != (k is None) or h is not None and (h.depth, h.lasti) != (k.depth, k.lasti):  # type: ignore[union-attr]
                raise DecompileError(f"{name}: another handler at offset {x.offset}")
            if h is not None:
                todo.append((h.target, k.target))  # type: ignore[union-attr]
        ways, others = _ways(a, x), _ways(b, y)
        if x.op == "POP_JUMP_IF" and x.arg != y.arg:
            others.reverse()
        todo += zip(ways, others, strict=True)


def _is_same_code(a: CodeType, b: CodeType, known: Known) -> bool:
    """Whether every instruction, and all that they name, is the same: then nothing else needs to be compared.

    False says nothing: constants and names may come in another order. DecompileError for inner code that differs.
    """
    if a.co_code != b.co_code or len(a.co_consts) != len(b.co_consts):
        return False
    pairs = sorted(zip(a.co_consts, b.co_consts, strict=True), key=lambda pair: isinstance(pair[0], CodeType))  # these take long
    return (all(getattr(a, field, None) == getattr(b, field, None) for field in _TABLES)
            and all(same_constant(a, x, y, known) for x, y in pairs))


def _resolve(inst: Instruction) -> Instruction:
    hops = 0
    while inst.op == "JUMP" and hops < 1000:
        inst = inst.target  # type: ignore[assignment]
        hops += 1
    return inst


def _ways(insts: list[Instruction], inst: Instruction) -> list[Instruction]:
    if inst.op in NO_FALLTHROUGH:
        return [inst.target] if inst.op == "JUMP" else []  # type: ignore[list-item]
    ways = [insts[inst.index + 1]]
    if inst.target is not None:
        ways.insert(0, inst.target)
    return ways


def _same_operation(original: CodeType, x: Instruction, y: Instruction, insts: list[Instruction], known: Known) -> None:
    if x.op == y.op:
        if x.op == "LOAD_CONST":
            if same_constant(original, x.arg, y.arg, known):
                return
            after = insts[x.index + 1]
            if after.op == "STORE_NAME" and after.arg == "__qualname__" and x.arg.rpartition(".")[2] == y.arg.rpartition(".")[2]:
                return  # what is around the function is not known
            if after.op == "STORE_NAME" and after.arg == "__firstlineno__":
                return
        elif x.op == "POP_JUMP_IF":
            if (x.arg in ("true", "false")) == (y.arg in ("true", "false")):
                return
        elif x.arg is y.arg or type(x.arg) is type(y.arg) and x.arg == y.arg:
            return
    raise DecompileError(f"{original.co_name}: at offset {x.offset}, {x.op} {x.arg!r:.60} became {y.op} {y.arg!r:.60}")


def same_constant(original: CodeType, a: Any, b: Any, known: Known) -> bool:
    if a is b:
        return True
    if isinstance(b, str) and not isinstance(a, str):
        place = PLACE.match(b)
        if place and int(place[1]) < len(original.co_consts) and original.co_consts[int(place[1])] is a:
            return True
    if type(a) is not type(b):
        return False
    if isinstance(a, CodeType) and isinstance(b, CodeType):
        check(a, b, False, known)
        return True
    if isinstance(a, (float, complex)):
        return repr(a) == repr(b)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(same_constant(original, i, j, known) for i, j in zip(a, b, strict=True))
    if isinstance(a, frozenset):
        return {(type(i), repr(i)) for i in a} == {(type(i), repr(i)) for i in b}
    return bool(a == b)


def _signature(code: CodeType) -> tuple:
    return code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_varnames[: parameter_count(code)]


def source_name(code: CodeType) -> str:
    """The name of the function that a code object's source defines."""
    return code.co_name if code.co_name.isidentifier() else "__decompiled"


def recompile(source: str, code: CodeType, name: str, future: int) -> CodeType:
    """The code object of the function ``name`` of ``source``, with the free variables of ``code`` bound around it."""
    with Unheard(SyntaxWarning):  # the program's own source has been compiled, and what the engine made is nobody's source
        tree: Any = source
        if code.co_freevars:
            tree = compile(source, "<decompiled>", "exec", future | ast.PyCF_ONLY_AST, dont_inherit=True, optimize=0)
            outer = ast.parse("def __outer__():\n" + "".join(f"    {v} = None\n" for v in code.co_freevars))
            outer.body[0].body.extend(tree.body)  # type: ignore[attr-defined]
            tree = outer
        module = compile(tree, "<decompiled>", "exec", future, dont_inherit=True, optimize=0)
    todo = [module]
    while todo:
        found = todo.pop(0)
        if found.co_name == name and found.co_flags & 1:
            return found
        todo += [c for c in found.co_consts if isinstance(c, CodeType)]
    raise DecompileError(f"the source does not define {name}")
