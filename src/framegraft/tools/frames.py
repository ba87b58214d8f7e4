"""Recorded frames: a function and its arguments in one file, to run again without the user's program."""

from __future__ import annotations

import inspect
import os
import pathlib
import sys
import types
from typing import Any

import torch

from .. import events
from ..api import compile as compile_object
from ..bytecode.code import qualified_name
from ..errors import FramegraftError
from . import byvalue

VERSION = 1


class Recording:
    """A frame as it was before it ran.

    Attributes:
        fn: the function, which does not need the program's files. ``args``: its parameters, as the interpreter lays them out.
        told: ``version``, ``python``, ``torch``, ``function``, ``filename``, ``line``, ``backend`` and ``error`` of the recording.
    """

    def __init__(self, fn: types.FunctionType, args: tuple, told: dict[str, Any]) -> None:
        self.fn, self.args, self.told = fn, args, told

    def call(self, fn: Any = None) -> Any:
        """``fn`` (by default the recorded function as it is) with the recorded arguments."""
        args, kwargs = _call(self.fn.__code__, self.args)
        return (fn or self.fn)(*args, **kwargs)


def _call(code: types.CodeType, flat: tuple) -> tuple[tuple, dict[str, Any]]:
    names = code.co_varnames
    count = code.co_argcount
    named = count + code.co_kwonlyargcount
    kwargs = dict(zip(names[count:named], flat[count:named], strict=True))
    rest = list(flat[named:])
    args = (*flat[:count], *(rest.pop(0) if code.co_flags & inspect.CO_VARARGS else ()))
    return args, kwargs | (rest.pop(0) if code.co_flags & inspect.CO_VARKEYWORDS else {})


def record(fn: types.FunctionType, args: tuple, path: str | os.PathLike[str], backend: str = "", error: str = "") -> pathlib.Path:
    """Write a frame that has not run yet. Raises what ``pickle`` does for what cannot be pickled."""
    code = fn.__code__
    told = {"version": VERSION, "python": sys.version_info[:2], "torch": torch.__version__, "function": qualified_name(code),
            "filename": code.co_filename, "line": code.co_firstlineno, "backend": backend, "error": error}
    data = byvalue.dumps((told, byvalue.dumps((fn, args))))  # what was recorded can be told though it cannot be read
    target = pathlib.Path(path)
    target.write_bytes(data)
    return target


def load(path: str | os.PathLike[str]) -> Recording:
    """A recorded frame. It is a pickle, which runs code: load only what you trust.

    Raises:
        FramegraftError: no recording, or one of another Python version.
    """
    try:
        path = pathlib.Path(path)
        told, inner = byvalue.load(path / "frame.pkl" if path.is_dir() else path)
        version = told["version"]
    except OSError:
        raise
    except Exception as error:
        raise FramegraftError(f"{path} is no recorded frame ({type(error).__name__}: {error})") from error
    if version != VERSION or tuple(told["python"]) != sys.version_info[:2]:
        made = ".".join(map(str, told["python"]))
        raise FramegraftError(f"{path} was recorded by Python {made} in format {version}; bytecode of another version cannot be read")
    fn, args = byvalue.loads(inner)
    return Recording(fn, args, told)


def replay(path: str | os.PathLike[str], backend: Any = "eager", **options: Any) -> Any:
    """Capture and run a recorded frame again; returns what it returns, and raises what it raises.

    Args:
        path: ``frame.pkl`` (or its folder) of a repro folder, or of a folder that ``prepare_debug(directory, frames=True)`` has written.
        backend, options: as for ``compile``. ``backend=None`` runs the function as it is, in eager mode.
    """
    recorded = load(path)
    return recorded.call(None if backend is None else compile_object(recorded.fn, backend=backend, **options))


def record_event(event: events.EntryMade | events.CaptureFailed, folder: pathlib.Path, backend: str = "", error: str = "") -> str:
    """Writes ``frame.pkl`` for an event; "" or why it cannot be."""
    try:
        record(event.fn, event.args, folder / "frame.pkl", backend, error)
    except Exception as failed:
        return f"the frame cannot be recorded: {type(failed).__name__}: {failed}"
    return ""
