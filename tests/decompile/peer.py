"""Framegraft as harnesses take it (``compile`` and ``reset``), with decompiled code in its place.

FRAMEGRAFT_SWAP is a mode of ``swap``, by default ``transformed``. For models, with this repository on the path:
``run.py --peer tests.decompile.peer --mode eval --models ...``.
"""

import os

import framegraft
from framegraft import compile, reset  # noqa: F401 - what a peer has

from .swap import Swap

framegraft.config.raise_internal_errors = True  # what does not decompile is an error, not eager mode
framegraft.register_bytecode_hook(Swap(os.environ.get("FRAMEGRAFT_SWAP", "transformed")))
