"""The context managers of torch.fx.traceback, by which programs tell tracers what to write on nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch.fx import traceback


def annotate(annotation_dict: Any) -> Iterator[None]:
    before = begin(annotation_dict)
    try:
        yield
    finally:
        end(before)


def nothing(*args: Any) -> Iterator[None]:
    """For context managers that tell something to torch's own tracers, none of which is at work here."""
    yield


def begin(annotations: Any) -> Any:
    """What held before. A trace has it done for the nodes of its graph."""
    before = traceback.current_meta.get("custom")
    traceback.current_meta["custom"] = {**(before or {}), **annotations}
    return before


def end(before: Any) -> None:
    if before is None:
        traceback.current_meta.pop("custom", None)
    else:
        traceback.current_meta["custom"] = before
