"""``framegraft run``: a program as it is, with capture on."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import pathlib
import runpy
import sys
import traceback
from collections.abc import Iterator
from typing import Any

import torch
from rich.console import Console
from rich.text import Text

from .. import _native
from ..api import Context, compile, context_for
from ..backends.registry import lookup_backend
from ..bytecode.code import qualified_name
from ..emit.resume import origin_of
from ..errors import InvalidBackend
from . import show
from .report import Recorder
from .sources import writable
from .targets import BadTarget, existing_file


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", default="framegraft_report.html", metavar="FILE",
                        help="where the report goes; a folder gets FILE named after the program (default: %(default)s)")
    parser.add_argument("--json", metavar="FILE", help="the report's data as JSON, too; - for stdout")
    parser.add_argument("-f", "--function", action="append", default=[], metavar="NAME",
                        help="capture this function (its name, CLASS.NAME or MODULE:NAME) although the program does not "
                        "compile it; may be given more than once")
    parser.add_argument("-b", "--backend", default="eager", help="backend of --function (default: %(default)s)")
    parser.add_argument("--no-report", action="store_true", help="capture only")
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is the name of a module")
    parser.add_argument("script", metavar="SCRIPT")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="arguments of the script")


class Named(Context):
    """Captures frames of named functions only; the evaluation hook offers all."""

    def __init__(self, names: list[str], backend: str) -> None:
        super().__init__(context_for(backend, False, None).compiler, False, None)
        self._names = [(m, n) for m, _, n in (name.rpartition(":") for name in names)]
        self._met: set[tuple[str, str]] = set()

    def miss(self, compiled: Any, args: tuple) -> Any:
        fn = compiled.fn if isinstance(compiled, _native.CompiledFunction) else compiled
        code = fn.__code__
        origin = origin_of(code)
        if origin is code:
            found = [name for name in self._names if self._is(fn, qualified_name(origin), *name)]
            self._met.update(found)
            if not found:
                _native.set_skip(code, True)
                return None
        return super().miss(compiled, args)

    def unmet(self) -> list[str]:
        """Names of functions that were not called."""
        return [f"{module}:{name}" if module else name for module, name in self._names if (module, name) not in self._met]

    def _is(self, fn: Any, qualname: str, module: str, name: str) -> bool:
        if module and fn.__module__ != module and not (module.endswith(".py") and fn.__code__.co_filename.endswith(module)):
            return False
        return qualname == name or qualname.endswith(f".{name}")


def command(wanted: Any, console: Console) -> int:
    """Run the program; the exit code is the program's."""
    if not wanted.module:
        existing_file(wanted.script)
    elif not _module_exists(wanted.script):
        raise BadTarget(f"there is no module {wanted.script}")
    for name in wanted.function:
        if not name.rpartition(":")[2]:
            raise BadTarget(f"--function {name!r} names no function; write NAME, CLASS.NAME or MODULE:NAME")
    check_backend(wanted.backend)
    if not wanted.no_report:
        check_output("--output", _output(wanted))
    if wanted.json not in (None, "-"):
        check_output("--json", wanted.json)
    recorder = Recorder([wanted.script, *wanted.arguments])
    named = Named(wanted.function, wanted.backend) if wanted.function else None
    with in_place_of_torch_compile(), recorder:
        code = _run(wanted, named)
    errors = Console(stderr=True, highlight=False, soft_wrap=True)
    with errors.status("writing the report"):
        data = recorder.data()
        path = None if wanted.no_report else recorder.write(_output(wanted), data)
    if wanted.json == "-":
        sys.stdout.write(json.dumps(data) + "\n")
    elif wanted.json:
        pathlib.Path(wanted.json).write_text(json.dumps(data))
    for name in named.unmet() if named is not None else ():
        errors.print(Text.assemble(("framegraft: ", "bold"), f"--function {name}: no function of that name was called"))
    if path is not None:
        graphs, breaks = show.count(data["totals"]["graphs"], "graph"), show.count(data["totals"]["breaks"], "break")
        errors.print(Text.assemble(("framegraft: ", "bold"), f"{graphs}, {breaks}; report in {path}"))
    return code


def check_backend(name: str) -> None:
    try:
        lookup_backend(name)
    except InvalidBackend as error:
        raise BadTarget(f"--backend: {error}") from error


def check_output(option: str, path: str | pathlib.Path) -> None:
    """Before the work rather than behind it: the file can be written."""
    try:
        writable(path)
    except OSError as error:
        raise BadTarget(f"{option} {path} cannot be written: {error.strerror}") from error


@contextlib.contextmanager
def in_place_of_torch_compile() -> Iterator[None]:
    """Inside, ``torch.compile`` is Framegraft's."""
    stock, torch.compile = torch.compile, _stand_in
    try:
        yield
    finally:
        torch.compile = stock


def print_error(error: BaseException) -> None:
    """The traceback of an error of the program, without the frames that started it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith((_HERE, runpy.__file__, "<frozen")):
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace)


_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def _stand_in(model: Any = None, **options: Any) -> Any:
    """torch.compile, as the program calls it."""
    return compile(model, **options)


def _module_exists(name: str) -> bool:
    sys.path.insert(0, "")
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
    finally:
        sys.path.remove("")


def _output(wanted: Any) -> pathlib.Path:
    path = pathlib.Path(wanted.output)
    return path / f"{pathlib.Path(wanted.script).stem}.html" if path.is_dir() or wanted.output.endswith(os.sep) else path


def _run(wanted: Any, named: Named | None) -> int:
    saved_argv, saved_path = sys.argv, list(sys.path)
    sys.argv = [wanted.script, *wanted.arguments]
    sys.path[0:0] = ["" if wanted.module else str(pathlib.Path(wanted.script).parent.resolve())]
    old = _native.set_mode(1, named, named.miss) if named is not None else None
    try:
        if wanted.module:
            runpy.run_module(wanted.script, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(wanted.script, run_name="__main__")
        return 0
    except SystemExit as stop:
        if stop.code is None or isinstance(stop.code, int):
            return int(stop.code or 0)
        sys.stderr.write(f"{stop.code}\n")
        return 1
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            return 130
        print_error(error)
        return 1
    finally:
        if old is not None:
            _native.set_mode(*old)
        sys.argv, sys.path[:] = saved_argv, saved_path
