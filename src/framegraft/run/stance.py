"""What a call does for which nothing fitting was captured: the stance of a thread."""

from __future__ import annotations

import functools
import threading
from typing import Any

from .. import _native
from ..bytecode.code import qualified_name
from ..errors import ConfigError, RecompileError

STANCES = {
    "default": "capture",
    "force_eager": "run everything in eager mode, what was captured too",
    "eager_on_recompile": "use what was captured, run the rest in eager mode",
    "fail_on_recompile": "use what was captured, raise RecompileError for the rest",
}
_DISABLED = 2


class _Local(threading.local):
    stance = "default"
    mode: Any = None  # the native mode from before force_eager


_local = _Local()


def current() -> str:
    return _local.stance


def _apply(stance: str) -> None:
    if _local.stance == "force_eager" and stance != "force_eager":
        _native.set_mode(*_local.mode)
        _local.mode = None
    elif stance == "force_eager" and _local.stance != "force_eager":
        _local.mode = _native.set_mode(_DISABLED, None, None)
    _local.stance = stance


def refuse(fn: Any, explain: Any) -> None:
    """A call fits no capture, and the stance is not the default: nothing is captured; an error if the stance says so."""
    if _local.stance == "fail_on_recompile":
        code = fn.__code__
        reasons = explain()
        text = "".join(f"\n  {line}" for reason in reasons for line in reason.splitlines())
        raise RecompileError(
            f"{qualified_name(code)} ({code.co_filename}:{code.co_firstlineno}) would be captured, and the stance is "
            f"fail_on_recompile{text or ': it was never captured before'}")


class set_stance:  # noqa: N801 - used as a function
    """``set_stance("eager_on_recompile")``: what this thread does for calls that fit nothing that was captured.

    As a function it holds from now on, as a context manager for a block, as a decorator for each call of a function.

    - ``"default"``: capture.
    - ``"force_eager"``: run everything in eager mode, what was captured too.
    - ``"eager_on_recompile"``: use what was captured, run the rest in eager mode.
    - ``"fail_on_recompile"``: use what was captured, raise ``framegraft.exc.RecompileError`` for the rest.

    Raises:
        ConfigError: no such stance.
    """

    def __init__(self, stance: str) -> None:
        if stance not in STANCES:
            raise ConfigError(f"no stance {stance!r}; there are {', '.join(STANCES)}")
        self.stance = stance
        self._before = _local.stance
        _apply(stance)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info: object) -> None:
        _apply(self._before)

    def __call__(self, fn: Any) -> Any:
        if not callable(fn):
            raise TypeError(f"fn must be callable, not a {type(fn).__name__}")
        _apply(self._before)
        stance = self.stance

        @functools.wraps(fn)
        def called(*args: Any, **kwargs: Any) -> Any:
            with set_stance(stance):
                return fn(*args, **kwargs)

        return called
