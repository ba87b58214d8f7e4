"""Logs: what is printed, and where it is switched on.

``FRAMEGRAFT_LOGS="+dynamo,guards,bytecode"`` or ``framegraft.set_logs(guards=True)``. A bare name switches an artifact
on; ``+name`` gives more detail where the name is a component (``dynamo``), ``-name`` switches off. All goes to stderr:

    [2023-10-06 23:56:44,929] [0/0] framegraft.convert_frame.__bytecode: [DEBUG] ORIGINAL BYTECODE toy_example ...

``[0/1]`` is frame 0, compiled for the second time. Ask ``enabled(name)`` before building a message: it is one look-up.
"""

from __future__ import annotations

import contextvars
import difflib
import logging
import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from .errors import ConfigError

#: Artifacts: name -> (component of the logger's name, what is printed).
ARTIFACTS: dict[str, tuple[str, str]] = {
    "guards": ("guards", "the guards of each new entry, with the user's line that needed them"),
    "bytecode": ("convert_frame", "original and modified bytecode of each captured frame"),
    "graph": ("output_graph", "each captured graph as a table"),
    "graph_code": ("output_graph", "each captured graph as Python code"),
    "graph_sizes": ("output_graph", "the shapes of each graph's tensors"),
    "recompiles": ("guards", "which guard failed when a function is compiled again"),
    "graph_breaks": ("symbolic_convert", "why, where and with which hint a graph broke"),
    "trace_source": ("symbolic_convert", "each line of the program as it is traced"),
    "trace_bytecode": ("symbolic_convert", "each instruction as it is traced"),
}
#: Components that are plain loggers: the name in FRAMEGRAFT_LOGS -> the logger.
COMPONENTS: dict[str, str] = {"dynamo": "framegraft"}
_ALIASES = {"framegraft": "dynamo", "all": "all"}

_on: set[str] = set()  # what prints: what the user switched on, and what a setting did
_by_user: set[str] = set()
_by_setting: set[str] = set()
_compile_id: contextvars.ContextVar[str] = contextvars.ContextVar("framegraft_compile_id", default="-/-")


class _Formatter(logging.Formatter):
    """Prefixes every line of a message, so that a table or a disassembly can be grepped."""

    def format(self, record: logging.LogRecord) -> str:
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
        prefix = f"[{stamp},{int(record.msecs):03d}] [{_compile_id.get()}] {record.name}: [{record.levelname}]"
        text = record.getMessage()
        if record.exc_info:
            text = f"{text}\n{self.formatException(record.exc_info)}"
        return "\n".join(f"{prefix} {line}".rstrip() for line in text.split("\n"))


class _StderrHandler(logging.StreamHandler):
    """Writes to the sys.stderr of the moment: tests and notebooks replace it."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> Any:
        return sys.stderr

    @stream.setter
    def stream(self, value: Any) -> None:
        pass


_root = logging.getLogger("framegraft")
_loggers: dict[str, logging.Logger] = {}


def _install() -> None:
    if not any(isinstance(h, _StderrHandler) for h in _root.handlers):
        handler = _StderrHandler()
        handler.setFormatter(_Formatter())
        _root.addHandler(handler)
        _root.propagate = False
        _root.setLevel(logging.WARNING)


def artifact(name: str) -> logging.Logger:
    """The logger of an artifact, ``framegraft.<component>.__<name>``; its ``debug`` prints if the artifact is on."""
    found = _loggers.get(name)
    if found is None:
        if name not in ARTIFACTS:
            raise _bad_name(name)
        found = _loggers[name] = logging.getLogger(f"framegraft.{ARTIFACTS[name][0]}.__{name}")
        found.setLevel(logging.DEBUG if name in _on else logging.CRITICAL + 1)
    return found


def enabled(name: str) -> bool:
    """Whether the artifact is switched on."""
    return name in _on


def get_logger(component: str = "") -> logging.Logger:
    """The plain logger ``framegraft.<component>``, for warnings and debugging; obeys ``config.log_level``."""
    return logging.getLogger(f"framegraft.{component}" if component else "framegraft")


@contextmanager
def compile_id(frame: int, attempt: int) -> Iterator[None]:
    """Messages inside carry ``[frame/attempt]``."""
    token = _compile_id.set(f"{frame}/{attempt}")
    try:
        yield
    finally:
        _compile_id.reset(token)


def set_logs(spec: str | None = None, /, *, all: int | None = None, dynamo: int | None = None, **artifacts: bool) -> None:
    """Switch logs on or off. Keywords not given stay as they are.

    Args:
        spec: the syntax of FRAMEGRAFT_LOGS, ``"+dynamo,guards"``; what it does not name is switched off.
        dynamo: level of the general logger (``logging.DEBUG``), or True for DEBUG, False for WARNING.
        all: as ``dynamo``, kept for those who know ``torch._logging``.
        **artifacts: names of ``ARTIFACTS`` with True or False.

    Raises:
        ConfigError: unknown artifact name, or a value that is no bool.
    """
    if spec is not None and not isinstance(spec, str):
        raise ConfigError(f"set_logs takes a string as FRAMEGRAFT_LOGS, or keywords, not {type(spec).__name__}")
    for name, value in artifacts.items():
        if name not in ARTIFACTS:
            raise _bad_name(name)
        if type(value) is not bool:
            raise ConfigError(f"set_logs({name}=...) takes True or False, not {value!r}")
    if spec is not None:
        wanted = list(_items(spec))  # an error leaves everything as it was
        reset_logs()
        set_logs_from_string(",".join(sign + name for sign, name in wanted))
    for level in (all, dynamo):
        if level is not None:
            _root.setLevel({True: logging.DEBUG, False: logging.WARNING}[level] if isinstance(level, bool) else level)
    for name, value in artifacts.items():
        _switch(name, value)


def _items(spec: str) -> Iterator[tuple[str, str]]:
    """(sign, name) of each item, all of them checked before the first is given."""
    found = []
    for item in filter(None, (part.strip() for part in spec.split(","))):
        sign, name = (item[0], item[1:]) if item[0] in "+-" else ("", item)
        name = _ALIASES.get(name, name)
        if name not in COMPONENTS and name not in ARTIFACTS and name != "all":
            raise _bad_name(name)
        found.append((sign, name))
    yield from found


def set_logs_from_string(spec: str) -> None:
    """Apply the syntax of FRAMEGRAFT_LOGS: names separated by commas, each with an optional ``+`` or ``-``."""
    for sign, name in _items(spec):
        if name in COMPONENTS or name == "all":
            level = {"+": logging.DEBUG, "-": logging.ERROR, "": logging.INFO}[sign]
            logging.getLogger(COMPONENTS.get(name, "framegraft")).setLevel(level)
        else:
            _switch(name, sign != "-")


def reset_logs() -> None:
    """Everything off but warnings."""
    for name in ARTIFACTS:
        _switch(name, False)
    _root.setLevel(logging.WARNING)


def graph_table(graph: Any) -> str:
    """An fx graph as ``graph.print_tabular()`` prints it, without its dependency on another package."""
    rows = [("opcode", "name", "target", "args", "kwargs")]
    rows += [(n.op, n.name, str(n.target), str(n.args), str(n.kwargs)) for n in graph.nodes]
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    rows.insert(1, tuple("-" * width for width in widths))  # type: ignore[arg-type]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows)


def switch_by_setting(names: Iterable[str], on: bool) -> None:
    """For ``config.output_code``: artifacts that print while the setting is on, whatever ``set_logs`` says."""
    for name in names:
        (_by_setting.add if on else _by_setting.discard)(name)
        _update(name)


def _switch(name: str, on: bool) -> None:
    (_by_user.add if on else _by_user.discard)(name)
    _update(name)


def _update(name: str) -> None:
    logger = artifact(name)
    if name in _by_user or name in _by_setting:
        _on.add(name)
        logger.setLevel(logging.DEBUG)
    else:
        _on.discard(name)
        logger.setLevel(logging.CRITICAL + 1)


def _bad_name(name: str) -> ConfigError:
    valid = sorted(ARTIFACTS) + sorted(COMPONENTS)
    near = difflib.get_close_matches(name, valid, n=1)
    offer = f" (did you mean {near[0]}?)" if near else ""
    return ConfigError(f"no log artifact {name!r}{offer}; valid are {', '.join(valid)}")


_install()
if os.environ.get("FRAMEGRAFT_LOGS"):
    try:
        set_logs_from_string(os.environ["FRAMEGRAFT_LOGS"])
    except ConfigError as _error:
        raise ConfigError(f"FRAMEGRAFT_LOGS: {_error}") from None
