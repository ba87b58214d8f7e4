"""The running interpreter's features: the only place that asks which version it is."""

import sys

if sys.version_info[:2] == (3, 11):
    from .py311 import FEATURES
elif sys.version_info[:2] == (3, 12):
    from .py312 import FEATURES
elif sys.version_info[:2] == (3, 13):
    from .py313 import FEATURES
else:
    raise ImportError(f"framegraft supports CPython 3.11 to 3.13, this is {sys.version.split()[0]}")

__all__ = ["FEATURES"]
