"""Lists that ``warnings.catch_warnings(record=True)`` fills: warnings come to them behind the graph, and from inside of it.

So the trace never looks into one: what does breaks the graph, and runs when all warnings so far are there.
"""

from __future__ import annotations

import types
import warnings
from typing import Any

from ..errors import GraphBreak
from ..model.guards import Condition

_IMPL: Any = warnings._showwarnmsg_impl  # type: ignore[attr-defined]
SHOWN = "shown as CPython does"


def way() -> Any:
    """Where warnings go: ``SHOWN``, the list that records them (Lib/warnings.py, catch_warnings), or None for something else."""
    impl = warnings._showwarnmsg_impl  # type: ignore[attr-defined]
    if impl is _IMPL:
        return SHOWN
    is_append = type(impl) is types.BuiltinMethodType and impl.__name__ == "append" and type(impl.__self__) is list
    return impl.__self__ if is_append else None


def check(value: list) -> None:
    """GraphBreak if it is the list that records warnings."""
    if way() is value:
        raise GraphBreak("introspection", "a list that records warnings")


class _RecordsNone(Condition):
    """Guard: warnings are not recorded in this list."""

    __name__ = "records_no_warnings"
    key = None

    def __call__(self, value: list) -> bool:
        return way() is not value


RECORDS_NONE = _RecordsNone()
