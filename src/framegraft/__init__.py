"""Framegraft: captures torch.fx graphs from running, unmodified PyTorch programs."""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import bytecode as _bytecode  # noqa: F401 (first: it says which interpreters are supported)
from . import config, events, exc, testing
from .api import (
    _debug_get_cache_entry_list,
    allow_in_graph,
    assume_constant_result,
    break_reasons,
    compile,
    disable,
    disallow_in_graph,
    graph_break,
    innermost_fn,
    is_compiling,
    mark_dynamic,
    mark_static,
    mark_unbacked,
    maybe_mark_dynamic,
    optimize,
    register_bytecode_hook,
    reset,
    run,
    set_stance,
    stats,
)
from .backends.registry import list_backends, register_backend
from .log import set_logs

if TYPE_CHECKING:
    from .decompiler import decompile
    from .tools.artefacts import prepare_debug
    from .tools.bytecode_log import install, uninstall
    from .tools.debug import debug
    from .tools.explain import explain, status
    from .tools.export import export
    from .tools.frames import replay
    from .tools.minify import minify
    from .tools.report import recording, report

__version__ = "0.1.0"

_LATER = {  # imported when they are first asked for
    "debug": ".tools.debug",
    "decompile": ".decompiler",
    "explain": ".tools.explain",
    "export": ".tools.export",
    "install": ".tools.bytecode_log",
    "minify": ".tools.minify",
    "prepare_debug": ".tools.artefacts",
    "recording": ".tools.report",
    "replay": ".tools.frames",
    "report": ".tools.report",
    "status": ".tools.explain",
    "uninstall": ".tools.bytecode_log",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_LATER[name], __name__), name)
    return found


__all__ = [
    "_debug_get_cache_entry_list",
    "allow_in_graph",
    "assume_constant_result",
    "break_reasons",
    "compile",
    "config",
    "debug",
    "decompile",
    "disable",
    "disallow_in_graph",
    "events",
    "exc",
    "explain",
    "export",
    "graph_break",
    "innermost_fn",
    "install",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_unbacked",
    "maybe_mark_dynamic",
    "minify",
    "optimize",
    "prepare_debug",
    "recording",
    "register_backend",
    "register_bytecode_hook",
    "replay",
    "report",
    "reset",
    "run",
    "set_logs",
    "set_stance",
    "stats",
    "status",
    "testing",
    "uninstall",
]


class _Repros(events.Listener):
    """Suppressed failures leave a folder; what writes it is imported for the first one."""

    is_permanent = True

    def capture_failed(self, event: events.CaptureFailed) -> None:
        if event.suppressed:
            import_module(".tools.repro", __name__).write(event)


events.subscribe(_Repros())

for _variable, _tool in (("FRAMEGRAFT_REPORT", ".tools.report"), ("FRAMEGRAFT_TRACE", ".tools.trace")):
    if os.environ.get(_variable):
        try:
            import_module(_tool, __name__).start_from_environment(os.environ[_variable])
        except OSError as _error:
            raise exc.ConfigError(f"{_variable}={os.environ[_variable]} cannot be written: {_error.strerror}") from _error
