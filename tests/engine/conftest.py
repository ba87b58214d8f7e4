"""What the tests of the engine share."""

from __future__ import annotations

import weakref
from collections.abc import Iterator

import pytest

from framegraft.tensor.fake import CaptureMode


@pytest.fixture(autouse=True)
def no_modes_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Modes that a test makes forget its tensors. A twin of a view is held by its base in C++, where the collector does not look: these
    modes would live for good, thousands of them, and each collection would walk through them. A capture lets go of its own."""
    made: weakref.WeakSet[CaptureMode] = weakref.WeakSet()
    init = CaptureMode.__init__

    def noted(self: CaptureMode) -> None:
        init(self)
        made.add(self)

    monkeypatch.setattr(CaptureMode, "__init__", noted)
    yield
    for mode in made:
        mode.fake_tensor_converter.forget()
