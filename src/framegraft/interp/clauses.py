"""Which exceptions a ``try`` statement handles, as far as its code tells."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any

# Classes of exceptions that an operation on tensors does not raise because of their values: it raises others, and none of those is
# derived from one of these.
_OTHERS = (AttributeError, ImportError, KeyError, ModuleNotFoundError, NameError, NotImplementedError, OSError, StopIteration, TypeError)


def handles_data(frame: Any, start: int) -> bool:
    """False only where the handler at ``start`` has nothing but ``except`` clauses for classes that have nothing to do with data."""
    found = list(_clauses(frame, start + 1))
    return not found or not all(any(cls is other for other in _OTHERS) for cls in found)


def _clauses(frame: Any, index: int) -> Iterator[Any]:
    """The classes that the clauses are for; with None where something else follows than the next clause."""
    instructions, scope = frame.instructions, frame.scope
    while instructions[index].op != "RERAISE":
        name, match, jump = instructions[index : index + 3]
        if (name.op, match.op, jump.op, jump.arg) != ("LOAD_GLOBAL", "CHECK_EXC_MATCH", "POP_JUMP_IF", "false"):
            yield None
            return
        known = name.arg in scope.stores or name.arg in scope.real
        yield None if known else getattr(builtins, name.arg, None)
        index = jump.target.index
