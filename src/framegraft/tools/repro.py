"""Repro folders: all that is needed to see a suppressed failure again, without the program that it happened in."""

from __future__ import annotations

import itertools
import os
import pathlib
import tempfile
import traceback

import torch

from .. import config, events
from ..backends.registry import backend_name, lookup_backend
from . import frames, minify, sources

_numbers = itertools.count()


def directory() -> pathlib.Path | None:
    """Where repro folders are made; None where ``config.repro_directory`` is empty."""
    if config.repro_directory is None:
        return pathlib.Path(tempfile.gettempdir()) / "framegraft_repros"
    return pathlib.Path(config.repro_directory).resolve() if config.repro_directory else None


def write(event: events.CaptureFailed) -> None:
    """A folder for a suppressed failure, and a note of it for the warning. It never raises."""
    where = directory()
    if where is None:
        return
    try:
        folder = where / f"{sources.function_name(event.fn.__code__)}_{os.getpid()}_{next(_numbers)}"
        folder.mkdir(parents=True)
        event.notes.append(_fill(folder, event))
    except Exception as error:
        event.notes.append(f"no repro folder could be written ({type(error).__name__}: {error})")


def _fill(folder: pathlib.Path, event: events.CaptureFailed) -> str:
    error = event.error.__cause__ if event.graph is not None and event.error.__cause__ is not None else event.error
    text = "".join(traceback.format_exception(event.error))
    name = backend_name(event.compiler)
    refused = frames.record_event(event, folder, name, f"{type(error).__name__}: {error}")
    (folder / "error.txt").write_text(f"{text}\n{refused}\n" if refused else text)
    if event.graph is not None:
        _, module, inputs = event.graph
        values = [v.detach() if isinstance(v, torch.Tensor) else v for v in inputs]
        script = minify.write_script(module, values, _named(event.compiler, name), folder / "graph.py", f"{type(error).__name__}: {error}")
        return f"To see it again: python {script}"
    return f"To see it again: framegraft replay {folder}" if not refused else f"the error is in {folder}; {refused}"


def _named(compiler: object, name: str) -> object:
    """The registered name of a compiler, or itself."""
    try:
        return name if lookup_backend(name) is compiler else compiler
    except Exception:
        return compiler
