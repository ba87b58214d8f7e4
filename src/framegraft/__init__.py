"""Framegraft: captures torch.fx graphs from running, unmodified PyTorch programs."""

from . import config, exc, testing
from .api import (
    _debug_get_cache_entry_list,
    allow_in_graph,
    assume_constant_result,
    break_reasons,
    compile,
    disable,
    disallow_in_graph,
    explain,
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

__version__ = "0.1.0"

__all__ = [
    "_debug_get_cache_entry_list",
    "allow_in_graph",
    "assume_constant_result",
    "break_reasons",
    "compile",
    "config",
    "disable",
    "disallow_in_graph",
    "exc",
    "explain",
    "graph_break",
    "innermost_fn",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_unbacked",
    "maybe_mark_dynamic",
    "optimize",
    "register_backend",
    "register_bytecode_hook",
    "reset",
    "run",
    "set_logs",
    "set_stance",
    "stats",
    "testing",
]
