"""Framegraft as harnesses take it (``compile`` and ``reset``), with decompiled code in its place.

FRAMEGRAFT_SWAP is a mode of ``swap``, by default ``transformed``.
"""

import os

import framegraft
from framegraft import compile, reset  # noqa: F401 - what a peer has

from .swap import Swap

framegraft.register_bytecode_hook(Swap(os.environ.get("FRAMEGRAFT_SWAP", "transformed")))
