"""The running interpreter's bytecode: the only place that asks which version it is."""

import sys

if sys.version_info[:2] == (3, 11):
    from .py311 import VERSION
else:
    raise ImportError(f"framegraft supports CPython 3.11, this is {sys.version.split()[0]}")

__all__ = ["VERSION"]
