"""Room for a capture's frames on Python's stack.

CPython 3.11 and later keep the frames of Python functions in chunks of 16 KiB (``_PyThreadState_PushFrame``). A call that finds
no room in its chunk maps another one, which is unmapped when it returns: calls in a loop that happen to begin at a chunk's end
pay for two system calls and for page faults each. That was up to 40 % of a capture, or nothing, as deep as the caller was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..bytecode.versions import VERSION

_WORDS = 1 << 17  # 1 MiB: too much for half of 2 MiB, so that the other half stays for the frames of what is called


def roomy(fn: Callable[..., Any]) -> Callable[..., Any]:
    """``fn``, run from a frame that claims so large a stack that its chunk has room for all frames of ``fn``.

    Nothing of what it claims is touched, so that it takes addresses, not memory.
    """

    def in_own_chunk(*args: Any) -> Any:
        return fn(*args)

    if VERSION.stacks_frames:
        in_own_chunk.__code__ = VERSION.replace(in_own_chunk.__code__, co_stacksize=_WORDS)
    return in_own_chunk
