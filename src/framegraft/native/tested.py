"""Which releases of torch the test suites have passed with (README.md tells on which CPython each)."""

from __future__ import annotations

import warnings

import torch

TESTED = ("2.13",)


def is_tested(version: str) -> bool:
    """Whether a release, as ``torch.__version__`` names it, is one of those."""
    return ".".join(version.split(".")[:2]) in TESTED


def warn_if_untested() -> None:
    """A warning at the first capture under another torch: it may work, nobody has looked."""
    if not is_tested(torch.__version__):
        text = f"framegraft has been tested with torch {', '.join(TESTED)} only; this is {torch.__version__}"
        warnings.warn(text, stacklevel=2)
