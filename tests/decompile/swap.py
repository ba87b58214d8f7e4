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

import collections
import contextlib
import json
import os
import types
from collections.abc import Iterator

import framegraft
from framegraft.bytecode.decode import decode
from framegraft.decompiler import decompile, resumed
from framegraft.decompiler.placing import compiled_for


def recompiled(code: types.CodeType) -> types.CodeType:
    """``code`` decompiled, compiled and made ready to take its place."""
    return compiled_for(decompile(code), code)


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
            return compiled_for(source, code)
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
