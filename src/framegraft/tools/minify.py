"""``framegraft.minify``: the smallest part of a captured graph on which a backend fails, as a script that shows it."""

from __future__ import annotations

import contextlib
import copy
import io
import os
import pathlib
import runpy
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx
from torch._functorch.fx_minifier import minifier
from torch.fx import GraphModule

from ..api import compile as compile_object
from ..backends.registry import backend_name, call_backend, lookup_backend
from ..errors import BackendCompilerFailed, FramegraftError
from . import byvalue, sources

TOLERANCE = 1e-3  # of a difference, relative to the greatest absolute value of an output


@dataclass(frozen=True)
class Failure:
    """How a backend fails on a graph: ``kind`` is ``"wrong"`` or the name of an exception."""

    kind: str
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass
class Minified:
    """A minimal graph. ``operations`` and ``operations_before`` count calls; ``path`` is the script."""

    path: pathlib.Path
    module: GraphModule
    inputs: list[Any]
    failure: Failure
    operations: int
    operations_before: int


def minify(fn: Any, *args: Any, backend: Any, path: str | os.PathLike[str] = "framegraft_minified.py",
           tolerance: float = TOLERANCE, **kwargs: Any) -> Minified:
    """Find the first captured graph on which ``backend`` raises or computes something else than eager mode, shrink it as long
    as it fails in the same way, and write a script that shows the failure.

    Args:
        fn: a function or module, which is called once with ``args`` and ``kwargs`` (in eager mode, with all its effects), or a
            ``torch.fx.GraphModule`` of its inputs ``args``.
        backend: a name or a compiler, as for ``compile``. Neither it nor its graphs may take the process down.
        path: the script. ``python SCRIPT`` exits with 1 as long as the backend fails. What it needs beyond code (a backend that
            cannot be imported, inputs on whose very values the failure depends) lies beside it, named alike.
        tolerance: greatest difference between outputs that is no failure, relative to the greatest absolute value of each.

    Raises:
        InvalidBackend: there is no such backend.
        OSError: ``path`` cannot be written.
        FramegraftError: nothing is captured, or the backend does on every graph what eager mode does.
    """
    compiler = lookup_backend(backend)
    sources.writable(path)
    graphs = [(fn, list(args))] if isinstance(fn, GraphModule) else _captured(fn, args, kwargs)
    if not graphs:
        raise FramegraftError("no operation on tensors was captured")
    for module, inputs in graphs:
        failure = failure_of(module, inputs, compiler, tolerance)
        if failure is not None:
            small, left = _shrunk(module, inputs, compiler, tolerance, failure)
            failure = failure_of(small, left, compiler, tolerance) or failure
            target = write_script(small, left, backend, path, failure, tolerance)
            return Minified(target, small, left, failure, _operations(small), _operations(module))
    raise FramegraftError(f"backend {backend_name(compiler)!r} does what eager mode does, on each of {len(graphs)} graphs")


def failure_of(module: Any, inputs: Sequence[Any], compiler: Any, tolerance: float = TOLERANCE) -> Failure | None:
    """How ``compiler`` fails on a graph; None if it does what the graph does as it is (or that fails itself)."""
    try:
        expected = copy.deepcopy(module)(*_copies(inputs))
    except Exception:
        return None
    try:
        found = call_backend(compiler, copy.deepcopy(module), _copies(inputs))(*_copies(inputs))
    except Exception as error:
        cause = error.__cause__ if isinstance(error, BackendCompilerFailed) and error.__cause__ is not None else error
        return Failure(type(cause).__name__, f"{type(cause).__name__}: {cause}")
    if len(found) != len(expected):
        return Failure("wrong", f"{len(found)} outputs instead of {len(expected)}")
    for number, (a, b) in enumerate(zip(expected, found, strict=True)):
        what = _difference(a, b, tolerance)
        if what:
            return Failure("wrong", f"output {number}: {what}")
    return None


def _difference(a: Any, b: Any, tolerance: float) -> str:
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return "" if type(a) is type(b) and bool(a == b) else f"{b!r} instead of {a!r}"
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{b.dtype} {tuple(b.shape)} instead of {a.dtype} {tuple(a.shape)}"
    if not a.numel() or a.layout != torch.strided:
        return ""
    wide = torch.complex128 if a.is_complex() else torch.float64
    x, y = a.detach().to(wide), b.detach().to(wide)
    if torch.equal(x.isnan(), y.isnan()):
        apart = torch.where(x == y, torch.zeros_like(x), x - y).nan_to_num(0.0).abs().max().item()  # x == y for infinities
        finite = x[x.isfinite()].abs()
        scale = finite.max().item() if finite.numel() else 0.0
        return f"it is off by {apart:.3g}, where values go up to {scale:.3g}" if apart > tolerance * max(scale, 1e-6) else ""
    return "NaN in other places"


def _copies(inputs: Sequence[Any]) -> list[Any]:
    return [v.detach().clone().requires_grad_(v.requires_grad) if isinstance(v, torch.Tensor) else v for v in inputs]


def _operations(module: GraphModule) -> int:
    return sum(node.op.startswith("call_") for node in module.graph.nodes)


def _captured(fn: Any, args: tuple, kwargs: dict[str, Any]) -> list[tuple[GraphModule, list[Any]]]:
    found: list[tuple[GraphModule, list[Any]]] = []

    def keep(gm: GraphModule, inputs: list[Any]) -> Any:
        def run(*values: Any) -> Any:
            if not kept:
                kept.append(True)
                found.append((copy.deepcopy(gm), _copies(values)))
            return gm.forward(*values)

        kept: list[bool] = []
        return run

    compile_object(fn, backend=keep, dynamic=False)(*args, **kwargs)
    return found


def _shrunk(module: GraphModule, inputs: list[Any], compiler: Any, tolerance: float, failure: Failure) -> tuple[GraphModule, list[Any]]:
    def fails(candidate: GraphModule, values: Sequence[Any]) -> bool:
        again = failure_of(candidate, values, compiler, tolerance)
        return again is not None and again.kind == failure.kind

    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):  # it talks of each step
        small, left = minifier(copy.deepcopy(module), _copies(inputs), fails, lambda *_: None)
    return small, list(left)


# --- the script ------------------------------------------------------------------------------------------------------

_MAIN = '''

if __name__ == "__main__":
    from framegraft.tools.minify import show

    raise SystemExit(show(graph(), {inputs}, {backend}, {tolerance}))
'''


def show(module: Any, inputs: list[Any], backend: Any, tolerance: float = TOLERANCE) -> int:
    """For the scripts: tell whether ``backend`` fails on the graph; the exit code."""
    compiler = lookup_backend(backend)
    failure = failure_of(torch.fx.symbolic_trace(module), inputs, compiler, tolerance)
    print(f"backend {backend_name(compiler)!r}", f"fails: {failure}" if failure else "does what eager mode does")
    return 1 if failure else 0


def write_script(module: GraphModule, inputs: list[Any], backend: Any, path: str | os.PathLike[str], failure: Any,
                 tolerance: float = TOLERANCE) -> pathlib.Path:
    """A script of a graph that runs by itself and shows how ``backend`` fails on it."""
    target = pathlib.Path(path).resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    name = backend if isinstance(backend, str) else backend_name(backend)
    head = f"Backend {name!r} fails on this graph: {failure}\n\nRuns by itself: python {target.name}\n"
    head = head.replace('"""', "'''").replace("\\", "/")
    places = {"inputs": "example_inputs()", "backend": _backend_text(backend, target), "tolerance": tolerance}
    target.write_text(sources.graph_file(module, inputs, head, _MAIN.format(**places)))
    if isinstance(failure, Failure) and not _still_fails(target, backend, tolerance, failure):
        torch.save(inputs, target.with_suffix(".pt"))
        places["inputs"] = 'torch.load(__file__.removesuffix(".py") + ".pt")'
        target.write_text(sources.graph_file(module, inputs, head, _MAIN.format(**places)))
    return target


def _still_fails(script: pathlib.Path, backend: Any, tolerance: float, failure: Failure) -> bool:
    """Whether it does with inputs of the same shapes and other values."""
    try:
        scope = runpy.run_path(str(script))
        graph = next(v for v in scope.values() if isinstance(v, type) and issubclass(v, torch.nn.Module))
        found = failure_of(torch.fx.symbolic_trace(graph()), scope["example_inputs"](), lookup_backend(backend), tolerance)
    except Exception:
        return False
    return found is not None and found.kind == failure.kind


def _backend_text(backend: Any, script: pathlib.Path) -> str:
    """An expression for the backend; one that nobody can import lies beside the script, by value."""
    if isinstance(backend, str):
        return repr(backend)
    module, name = getattr(backend, "__module__", None), getattr(backend, "__qualname__", "")
    if byvalue.is_installed(module) and name.isidentifier() and getattr(sys.modules.get(str(module)), name, None) is backend:
        return f'__import__("importlib").import_module({module!r}).{name}'
    try:
        script.with_suffix(".backend.pkl").write_bytes(byvalue.dumps(backend))
    except Exception as error:
        return f"None,  # set it: the backend cannot be stored ({type(error).__name__})\n   "
    return '__import__("framegraft.tools.byvalue", fromlist=["load"]).load(__file__.removesuffix(".py") + ".backend.pkl")'
