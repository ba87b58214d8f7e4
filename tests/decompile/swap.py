"""Code objects made of decompiled source, to run in the place of those that were decompiled.

``pytest --decompiled MODE``, ``python -m tests.fuzz --decompiled MODE`` and ``tests.decompile.peer`` run whatever they run
with ``swapping(MODE)``:

    transformed  every transformed code is what its source compiles to
    resumed      instead of the transformed code of a resume function runs what the resume function's own source compiles to:
                 the rest of the user's function, without graphs
    later        the same, but for the first resume function of each function, which breaks again and makes more

In all of them the code of every resume function is decompiled. FRAMEGRAFT_SWAP_LOG names a file that gets a line of JSON
for each code: ``{"name", "kind", "instructions", "pieces", "source"}``; ``pieces`` tells that the source is a loop over
numbered pieces.
"""

import __future__

import collections
import contextlib
import json
import os
import re
import types
from collections.abc import Iterator

import framegraft
from framegraft.bytecode.code import qualified_name, replace_code
from framegraft.bytecode.decode import decode
from framegraft.decompiler import decompile, resumed
from framegraft.decompiler.verify import recompile

PLACE = re.compile(r"__co_consts\[(\d+)\]\Z")


def filled(made: types.CodeType, code: types.CodeType) -> types.CodeType:
    """``made`` with the constants of ``code`` where its source has placeholders."""

    def constant(const: object) -> object:
        if type(const) is tuple:
            return tuple(map(constant, const))
        place = PLACE.match(const) if isinstance(const, str) else None
        return code.co_consts[int(place[1])] if place else const

    return made.replace(co_consts=tuple(map(constant, made.co_consts)))


def recompiled(code: types.CodeType) -> types.CodeType:
    """``code`` decompiled, compiled and made ready to take its place."""
    return compiled_from(decompile(code), code)


def compiled_from(source: str, code: types.CodeType) -> types.CodeType:
    """``source``, which ``code`` was decompiled to, ready to take its place."""
    name = code.co_name if code.co_name.isidentifier() else "__decompiled"
    flags = sum(getattr(__future__, n).compiler_flag for n in ("annotations",) if code.co_flags & getattr(__future__, n).compiler_flag)
    made = filled(recompile(source, code, name, flags), code)
    made = replace_code(named_alike(made, code), co_name=code.co_name, co_qualname=qualified_name(code), co_filename=code.co_filename)
    missing = set(code.co_freevars) ^ set(made.co_freevars)
    assert not missing, f"free variables {missing} in\n{source}"
    assert made.co_freevars == code.co_freevars
    assert made.co_argcount == code.co_argcount
    return made


def named_alike(made: types.CodeType, code: types.CodeType) -> types.CodeType:
    """``made`` with the qualified names that functions inside of ``code`` have."""
    names = {const.co_name: qualified_name(const) for const in code.co_consts if isinstance(const, types.CodeType)}

    def constant(const: object) -> object:
        if not isinstance(const, types.CodeType) or const.co_name not in names:
            return const
        return replace_code(const, co_qualname=names[const.co_name])

    return made.replace(co_consts=tuple(map(constant, made.co_consts)))


MODES = ("transformed", "resumed", "later")
LOG = os.environ.get("FRAMEGRAFT_SWAP_LOG")


class Swap:
    """A bytecode hook."""

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.resumed: collections.Counter[str] = collections.Counter()

    def __call__(self, old: types.CodeType, new: types.CodeType) -> types.CodeType | None:
        is_resume = resumed.is_resume(old)
        rest = self.made(old, "resume") if is_resume else None
        if self.mode == "transformed":
            return self.made(new, "transformed")
        self.resumed[old.co_name] += 1
        return None if self.mode == "later" and self.resumed[old.co_name] == 1 else rest

    def made(self, code: types.CodeType, kind: str) -> types.CodeType:
        source = decompile(code)
        if LOG:
            told = {"name": code.co_name, "kind": kind, "instructions": len(decode(code)), "pieces": "match __at" in source, "source": source}
            with open(LOG, "a") as file:
                file.write(json.dumps(told) + "\n")
        try:
            return compiled_from(source, code)
        except Exception as error:
            raise framegraft.exc.DecompileError(f"{code.co_name}: {error}") from error


@contextlib.contextmanager
def swapping(mode: str | None) -> Iterator[None]:
    """Inside, code is swapped in the given mode; with None nothing is."""
    handle = framegraft.register_bytecode_hook(Swap(mode)) if mode is not None else None
    try:
        yield
    finally:
        if handle is not None:
            handle.remove()
