"""Framegraft: captures torch.fx graphs from running, unmodified PyTorch programs."""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import bytecode as _bytecode  # noqa: F401 (first: it says which interpreters are supported)
from . import config, exc, testing
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
    from .tools.report import recording, report

__version__ = "0.1.0"

_LATER = {  # imported when they are first asked for
    "debug": ".tools.debug",
    "decompile": ".decompiler",
    "explain": ".tools.explain",
    "export": ".tools.export",
    "install": ".tools.bytecode_log",
    "prepare_debug": ".tools.artefacts",
    "recording": ".tools.report",
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
    "optimize",
    "prepare_debug",
    "recording",
    "register_backend",
    "register_bytecode_hook",
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

if os.environ.get("FRAMEGRAFT_REPORT"):
    import_module(".tools.report", __name__).start_from_environment(os.environ["FRAMEGRAFT_REPORT"])
