"""The running interpreter's features: the only place that asks which version it is."""

from __future__ import annotations

import sys
import sysconfig
from typing import Any

SUPPORTED = ((3, 10), (3, 11), (3, 12), (3, 13))

if sys.version_info[:2] not in SUPPORTED:
    raise ImportError(f"framegraft supports CPython 3.10 to 3.13; this is {sys.version.split()[0]}")
if sys.implementation.name != "cpython":
    raise ImportError(f"framegraft supports CPython only; this is {sys.implementation.name}")
if sysconfig.get_config_var("Py_GIL_DISABLED"):
    raise ImportError("framegraft does not support free-threaded builds of CPython; use a build with the GIL")
SUBINTERPRETERS = "framegraft does not support subinterpreters"
try:
    from ... import _native
except ImportError as error:
    if "subinterpreters" in str(error):  # one with a GIL of its own
        raise ImportError(SUBINTERPRETERS) from None
    raise
if not _native.in_main_interpreter():
    raise ImportError(SUBINTERPRETERS)

NAME = f"{sys.version_info.major}.{sys.version_info.minor}"
BLOCK_STACK = sys.version_info < (3, 11)  # instead of a table of handlers; `py310` has a decoder and an encoder of its own
ASKED_PROTOCOLS = sys.version_info < (3, 12)  # see Version.asks_protocol_members

FEATURES: Any
if sys.version_info >= (3, 13):
    from .py313 import FEATURES
elif sys.version_info >= (3, 12):
    from .py312 import FEATURES
elif not BLOCK_STACK:
    from .py311 import FEATURES

__all__ = ["ASKED_PROTOCOLS", "BLOCK_STACK", "FEATURES", "NAME", "SUPPORTED"]
