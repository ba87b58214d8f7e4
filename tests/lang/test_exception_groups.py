"""What exceptions have learnt with CPython 3.11: groups, ``except*`` and notes (not collected before; see conftest.py)."""

import gc
import weakref

import torch

import framegraft

from ..decompile.swap import swapping
from .differential import differential


@differential()
def test_except_star(x):
    log = []
    try:
        raise ExceptionGroup("g", [ValueError(1), KeyError(2), ValueError(3)])
    except* ValueError as group:
        log.append([e.args for e in group.exceptions])
    except* KeyError as group:
        log.append(len(group.exceptions))
    return x + 1, log


@differential()
def test_notes(x):
    error = ValueError("with notes")
    error.add_note("one")
    error.add_note("two")
    x = x + 1
    raise error


class Held:
    """Something to refer to weakly."""


def lets_go(x, kept):
    held = Held()
    kept.append(weakref.ref(held))
    try:
        print(end="")
        raise ExceptionGroup("g", [ValueError(1), KeyError(2)])
    except* ValueError:
        for at in range(3):
            if at == len(kept):
                break
    except* KeyError as group:
        kept.append(weakref.ref(group))
    return x + 1


def test_decompiled_groups_keep_no_frames():
    """Where decompiled source of a resume function runs in numbered pieces, it lets go of what was handled."""
    gc.disable()
    try:
        with swapping("resumed"):
            kept = []
            framegraft.compile(lets_go, backend="eager")(torch.ones(2), kept)
            assert [ref() for ref in kept] == [None, None]
    finally:
        gc.enable()
