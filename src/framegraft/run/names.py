"""Names that transformed code uses in the globals of the function."""

from __future__ import annotations

from typing import Any


class Numbering:
    """The number in the next name of a graph or resume function. A name that running code still uses is left out."""

    next = 0


def reset_counter() -> None:
    """Numbers in names start at zero again."""
    Numbering.next = 0


class InstalledName:
    """A name in a function's globals. It goes when nothing uses it any more.

    The code objects that load the name hold it, as one of their constants. A frame keeps its code: so a name stays while a
    frame that uses it runs, whatever happens to the cache meanwhile, and it never changes its meaning.
    """

    __slots__ = ("__weakref__", "name", "obj", "scope")

    def __init__(self, scope: dict[str, Any], name: str, obj: Any) -> None:
        self.scope = scope
        self.name = name
        self.obj = obj
        scope[name] = obj

    def __del__(self) -> None:
        if self.scope.get(self.name) is self.obj:
            del self.scope[self.name]
