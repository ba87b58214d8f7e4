"""Canonical instructions as comparable values, and code objects made anew from their canonical instructions."""

import types

from framegraft.bytecode.decode import decode
from framegraft.bytecode.encode import _key, encode
from framegraft.bytecode.flow import remove_unreachable
from framegraft.bytecode.verify import verify


def comparable(instructions):
    """What tells instructions apart, positions included and byte offsets left out."""
    found = []
    for inst in instructions:
        arg = _key(inst.arg) if inst.op == "LOAD_CONST" else inst.arg
        handler = inst.handler
        covered = None if handler is None else (handler.target.index, handler.depth, handler.lasti)
        found.append((inst.op, arg, inst.target.index if inst.target else None, covered, inst.positions))
    return found


def ops(code):
    return [inst.op for inst in decode(code)]


def again(code, **changes):
    """The code object through decode and encode; the canonical instructions of both are checked to be the same."""
    body = remove_unreachable(decode(code))
    verify(body)
    made = encode(decode(code), code, **changes)
    assert comparable(remove_unreachable(decode(made))) == comparable(body)
    return made


def code_objects(code):
    """A code object and all that its constants hold, outermost first."""
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from code_objects(const)


def deeply(code):
    """As ``again``, the code objects inside it too."""
    consts = tuple(deeply(const) if isinstance(const, types.CodeType) else const for const in code.co_consts)
    return again(code.replace(co_consts=consts))


def remade(fn):
    """The function with its code made anew."""
    made = types.FunctionType(deeply(fn.__code__), fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)
    made.__kwdefaults__ = fn.__kwdefaults__
    return made


def run(source, name="f"):
    """Compile ``source``, make every code object anew, run it, and give back its ``name``."""
    namespace = {"__name__": "made_anew"}
    exec(deeply(compile(source, "<made anew>", "exec")), namespace)
    return namespace[name]
