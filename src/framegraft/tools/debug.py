"""``framegraft.debug()``: what runs are the files that a person can read, so that pdb, breakpoints and tracebacks show them."""

from __future__ import annotations

import pathlib
import tempfile
from types import CodeType, MethodType
from typing import Any

from torch.fx import GraphModule

from .. import _native, events
from ..api import compiled_codes
from ..bytecode.encode import hiding
from ..decompiler import DecompileError
from ..decompiler.placing import compiled_for
from ..run import records
from ..run.names import InstalledName
from . import sources
from .artefacts import Artefacts, transformed_text


class Debug(Artefacts):
    """``with Debug(): ...``: entries written by ``prepare_debug``, and all that are made inside, run from their files."""

    def __init__(self, directory: str | pathlib.Path | None = None) -> None:
        super().__init__(directory or tempfile.mkdtemp(prefix="framegraft_debug_"))
        self._swapped: list[tuple[CodeType, Any, Any]] = []
        self._graphs: list[tuple[InstalledName, Any]] = []
        self._hook: Any = None

    def __enter__(self) -> Debug:
        super().__enter__()
        self._hook = records.register_bytecode_hook(self._from_file)
        for code in compiled_codes():
            for entry in _native.cache_entries(code):
                folder = getattr(entry.info, "folder", None)
                if folder is not None:
                    self._swap(code, entry, folder)
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self._hook.remove()
        super().__exit__(*exc_info)
        for installed, original in self._graphs:
            if installed.scope.get(installed.name) is installed.obj:
                installed.scope[installed.name] = original
            installed.obj = original
        for code, original, stepped in self._swapped:
            if _native.remove_entry(code, stepped):
                _native.add_entry(code, original)
        self._graphs.clear()
        self._swapped.clear()

    # -- what is made inside

    def graph_compiled(self, event: events.GraphCompiled) -> None:
        super().graph_compiled(event)
        event.compiled = graph_from_file(self.folder(event.capture) / f"{event.name}.py", event.compiled) or event.compiled

    def _from_file(self, old: CodeType, new: CodeType) -> CodeType | None:
        capture = self._current[-1]
        text, is_source = transformed_text(capture, new)
        path = self.write(capture, "transformed.py", text)
        return code_from_file(path, text, new) if is_source else None

    # -- what was there before

    def _swap(self, code: CodeType, entry: Any, folder: pathlib.Path) -> None:
        installed = [c for c in entry.code.co_consts if isinstance(c, InstalledName)]
        for name in installed:
            original, path = name.obj, folder / f"{name.name}.py"
            stepped = graph_from_file(path, original) if path.exists() else None
            if stepped is not None and name.scope.get(name.name) is original:
                self._graphs.append((name, original))
                name.obj = name.scope[name.name] = stepped
                _native.set_skip(stepped.__func__.__code__, True)
        path = folder / "transformed.py"
        made = code_from_file(path, path.read_text(), entry.code) if path.exists() else None
        if made is None and entry.graph is None and entry.quick is None:
            return
        # Without the core's short cuts past the code: what runs is what the files say.
        made = entry.code if made is None else hiding(made.replace(co_consts=(*made.co_consts, *installed)), entry.info.rests)
        _native.set_skip(made, True)
        stepped = _native.Entry(entry.program, made, entry.globals, entry.ctx, entry.info, needs_hook=entry.info.broken is not None)
        if _native.remove_entry(code, entry):
            _native.add_entry(code, stepped)
            self._swapped.append((code, entry, stepped))


def graph_from_file(path: pathlib.Path, compiled: Any) -> Any:
    """The graph's method as the file defines it, bound to the same module; None if ``compiled`` is no graph that runs as it is."""
    owner = getattr(compiled, "__self__", None)
    if not isinstance(owner, GraphModule) or not isinstance(compiled, MethodType) or compiled.__func__ is not type(owner).forward:
        return None
    scope: dict[str, Any] = {"__name__": path.stem, "__file__": str(path)}
    exec(compile(path.read_text(), str(path), "exec", dont_inherit=True), scope)
    scope.update(sources.graph_globals(owner))
    return MethodType(scope[type(owner).__name__].forward, owner)


def code_from_file(path: pathlib.Path, text: str, code: CodeType) -> CodeType | None:
    """The function in ``text`` as a code object of the file that can stand for ``code``; None if the text defines none."""
    try:
        return compiled_for(text, code, sources.function_name(code), str(path))
    except (DecompileError, SyntaxError):
        return None


def debug(directory: str | pathlib.Path | None = None) -> Debug:
    """``with debug(): ...`` runs captured code from files that debuggers show; see ``prepare_debug`` for what they hold.

    Inside, transformed code and graphs that run as they are (``backend="eager"``) come from files in ``directory``, by
    default a new temporary one; what ``prepare_debug`` wrote before is used where it lies, edits of those files included.
    Code that the decompiler refuses runs as it was. What is captured inside stays as it is made afterwards.
    """
    return Debug(directory)
