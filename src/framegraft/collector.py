"""The garbage collector waits while a frame is captured.

What a capture makes mostly stays, and a full collection in its middle takes as long as half the capture: the collector walks
all of torch's objects to find nothing. What a large one makes goes to the oldest generation at once, since a look at it as young
would find nothing either, and take a tenth of the capture.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

_YOUNG = 1  # this generation and those below it
_MANY = 5_000  # objects, which a collection of the youngest generation looks at in a millisecond or two


class Waiting:
    """A context in which the collector does not run by itself; a program that has switched it off finds it so.

    ``loaded``: modules were loaded in it. Where these have tried in vain to import others, they leave cycles of frames behind, and
    with them their callers' frames, the program's among these.
    """

    loaded = False

    def __enter__(self) -> Waiting:
        self._was_on = gc.isenabled()
        if self._was_on:
            gc.collect(_YOUNG)  # the program's own garbage is not to grow old with what is made now
        gc.disable()
        return self

    def __exit__(self, *_: object) -> None:
        if self._was_on:
            if Waiting.loaded:
                Waiting.loaded = False
                gc.collect(_YOUNG)
            if gc.get_count()[0] > _MANY and not gc.get_freeze_count():  # the program's frozen objects stay frozen
                gc.freeze()  # CPython: all generations into the permanent one,
                gc.unfreeze()  # and that one into the oldest
            gc.enable()

    @contextlib.contextmanager
    def interrupted(self) -> Iterator[None]:
        """A context inside in which it runs as it did outside."""
        self.__exit__()
        try:
            yield
        finally:
            self.__enter__()
