"""The garbage collector waits while a frame is captured.

What a capture makes mostly stays, and a full collection in its middle takes as long as half the capture: the collector walks
all of torch's objects to find nothing.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


class Waiting:
    """A context in which the collector does not run by itself; a program that has switched it off finds it so."""

    def __enter__(self) -> Waiting:
        self._was_on = gc.isenabled()
        gc.disable()
        return self

    def __exit__(self, *_: object) -> None:
        if self._was_on:
            gc.enable()

    @contextlib.contextmanager
    def interrupted(self) -> Iterator[None]:
        """A context inside in which it runs as it did outside."""
        self.__exit__()
        try:
            yield
        finally:
            self.__enter__()
