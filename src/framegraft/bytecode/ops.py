"""Functions that APPLY names where the operator module has none with the operands in stack order."""

from __future__ import annotations

from typing import Any


def contains(item: Any, container: Any) -> bool:
    return item in container


def not_contains(item: Any, container: Any) -> bool:
    return item not in container
