"""Settings. ``framegraft.config.cache_size_limit = 8`` sets one; an unknown name or a wrong type is an error at once.

``framegraft.config.patch(cache_size_limit=8)`` sets for a while, as a context manager or as a decorator. Settings are
those of the process, not of a thread. The module is its own settings object, so reading one is an attribute access.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import logging
import sys
import types
from collections.abc import Callable
from typing import Any, TypeVar

from .errors import ConfigError
from .log import switch_by_setting

# --- caching ---------------------------------------------------------------------------------------------------------

#: Entries kept for one code object; a call that fits none of so many runs in eager mode, with one warning.
cache_size_limit: int = 64
#: Captures made of one code object, those that are gone included; one more runs in eager mode, with one warning.
accumulated_cache_size_limit: int = 256
#: Entries kept for one code object of which none, nor any of what goes on behind their breaks, has a graph. A call that fits none
#: of so many, and all that follow, run in eager mode. Not so with ``fullgraph``.
graphless_cache_size_limit: int = 8
#: Raise ``RecompileLimitExceeded`` instead of compiling a second entry for one code object (to find recompiles).
error_on_recompile: bool = False

# --- what is specialised ---------------------------------------------------------------------------------------------

#: Capture with symbolic sizes at once, where ``compile(dynamic=...)`` was not given.
dynamic_shapes: bool = False
#: On a recompile, capture with symbols what was seen to change: sizes, strides, Python ints and floats.
automatic_dynamic_shapes: bool = True
#: Treat Python ints as constants of the graph and guard their values, even those that change.
specialize_int: bool = False
#: The same for floats.
specialize_float: bool = False
#: Capture ``.item()`` as a symbolic number instead of breaking the graph.
capture_scalar_outputs: bool = False
#: Capture operations whose output shape depends on data instead of breaking the graph.
capture_dynamic_output_shape_ops: bool = False

# --- compilers -------------------------------------------------------------------------------------------------------

#: In a ``DistributedDataParallel`` model, hand graphs to AOTAutograd in parts that end where DDP's buckets of gradients do, so
#: that the first buckets are reduced while the backward pass goes on.
split_ddp_graphs: bool = False

# --- errors ----------------------------------------------------------------------------------------------------------

#: When the backend fails, warn and run the frame in eager mode instead of raising ``BackendCompilerFailed``.
suppress_errors: bool = False
#: Where failures that are suppressed leave what is needed to see them again: None is a folder for temporary files, "" nowhere.
repro_directory: str | None = None
#: Raise ``InternalError`` for bugs of Framegraft instead of falling back to eager mode with a warning.
raise_internal_errors: bool = False
#: Check that new guards hold on the very frame that created them.
verify_guards_on_creation: bool = True
#: Instructions that one trace may execute; more breaks the graph (a loop that never ends would never return).
max_trace_steps: int = 5_000_000
#: Instructions that one trace may execute without a tensor operation. A longer stretch, a long loop over plain Python, runs in
#: eager mode: unrolling it takes a hundred times as long as running it. Not so with ``fullgraph``.
max_idle_steps: int = 200_000
#: For tests: break the graph at the n-th instruction of the root frame, counted from 0.
force_break_at: int | None = None

# --- output ----------------------------------------------------------------------------------------------------------

#: Level of the ``framegraft`` logger: a name ("debug", "info", "warning", "error") or a number of ``logging``.
log_level: str | int = "warning"
#: Print graph, original and modified bytecode and guards of each capture (as FRAMEGRAFT_LOGS=graph,bytecode,guards).
output_code: bool = False


_LEVELS = ("debug", "info", "warning", "error", "critical")
_POSITIVE = ("cache_size_limit", "accumulated_cache_size_limit", "graphless_cache_size_limit", "max_trace_steps", "max_idle_steps")

_TYPES: dict[str, tuple[type, ...]] = {
    "cache_size_limit": (int,),
    "accumulated_cache_size_limit": (int,),
    "graphless_cache_size_limit": (int,),
    "error_on_recompile": (bool,),
    "dynamic_shapes": (bool,),
    "automatic_dynamic_shapes": (bool,),
    "specialize_int": (bool,),
    "specialize_float": (bool,),
    "capture_scalar_outputs": (bool,),
    "capture_dynamic_output_shape_ops": (bool,),
    "split_ddp_graphs": (bool,),
    "suppress_errors": (bool,),
    "repro_directory": (str, type(None)),
    "raise_internal_errors": (bool,),
    "verify_guards_on_creation": (bool,),
    "max_trace_steps": (int,),
    "max_idle_steps": (int,),
    "force_break_at": (int, type(None)),
    "log_level": (str, int),
    "output_code": (bool,),
}

_F = TypeVar("_F", bound=Callable[..., Any])


class _UnknownSetting(ConfigError, AttributeError):
    """An AttributeError too, so that ``hasattr`` works on the settings."""


def _unknown(name: str) -> _UnknownSetting:
    near = difflib.get_close_matches(name, _TYPES, n=3)
    offer = f"; did you mean {' or '.join(near)}?" if near else f"; there are {', '.join(sorted(_TYPES))}"
    return _UnknownSetting(f"framegraft.config has no setting {name!r}{offer}")


def _check(name: str, value: Any) -> None:
    """Raise ConfigError unless ``value`` may be stored under ``name``. An exact type: True is no int here."""
    expected = _TYPES.get(name)
    if expected is None:
        raise _unknown(name)
    if type(value) not in expected:
        wanted = " or ".join("None" if t is type(None) else t.__name__ for t in expected)
        raise ConfigError(f"framegraft.config.{name} takes {wanted}, not {type(value).__name__} ({value!r})")
    if name in _POSITIVE and value < 1:
        raise ConfigError(f"framegraft.config.{name} must be at least 1, not {value}")
    if name == "force_break_at" and value is not None and value < 0:
        raise ConfigError(f"framegraft.config.{name} must be None or at least 0, not {value}")
    if name == "log_level" and isinstance(value, str) and value.lower() not in _LEVELS:
        raise ConfigError(f"framegraft.config.log_level takes one of {', '.join(_LEVELS)} or a number, not {value!r}")


def _apply(name: str, value: Any) -> None:
    """What a setting does beyond being stored."""
    if name == "log_level":
        level = getattr(logging, value.upper()) if isinstance(value, str) else value
        logging.getLogger("framegraft").setLevel(level)
    elif name == "output_code":
        switch_by_setting(("graph", "bytecode", "guards"), value)


class _Patch:
    """Settings that hold inside of a ``with`` block or of every call of a decorated function. Re-entrant."""

    def __init__(self, changes: dict[str, Any]) -> None:
        for name, value in changes.items():
            _check(name, value)
        self._changes = changes
        self._saved: list[dict[str, Any]] = []

    def __enter__(self) -> None:
        self._saved.append({name: getattr(_settings, name) for name in self._changes})
        for name, value in self._changes.items():
            setattr(_settings, name, value)

    def __exit__(self, *exc_info: object) -> None:
        for name, value in self._saved.pop().items():
            setattr(_settings, name, value)

    def __call__(self, fn: _F) -> _F:
        if isinstance(fn, type):
            raise ConfigError("config.patch decorates functions, not classes")

        @functools.wraps(fn)
        def patched(*args: Any, **kwargs: Any) -> Any:
            with _Patch(self._changes):
                return fn(*args, **kwargs)

        return patched  # type: ignore[return-value]


def patch(changes: dict[str, Any] | None = None, /, **more: Any) -> _Patch:
    """Settings for a while: ``with patch(cache_size_limit=3): ...`` or ``@patch(cache_size_limit=3)``.

    Names and types are checked when ``patch`` is called. A dict of changes may be given instead of keywords.
    """
    return _Patch({**(changes or {}), **more})


def settings() -> dict[str, Any]:
    """All settings and their present values."""
    return {name: getattr(_settings, name) for name in _TYPES}


@contextlib.contextmanager
def preserved() -> Any:
    """Restore every setting on exit (tests use it)."""
    with _Patch(settings()):
        yield


class _Settings(types.ModuleType):
    """The class of this module: assignments are checked."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name.startswith("__") and name.endswith("__")):  # the import system writes __spec__ and the like
            _check(name, value)
            _apply(name, value)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise ConfigError(f"framegraft.config.{name} cannot be deleted")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise _unknown(name)


_settings = sys.modules[__name__]
config: Any = _settings  # so that ``from framegraft.config import config`` gives the same object
_settings.__class__ = _Settings
