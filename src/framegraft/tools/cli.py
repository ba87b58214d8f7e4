"""The command line: ``framegraft`` and ``python -m framegraft``.

Exit codes: 0 all is well, 1 something failed or was found wrong, 2 the command line is wrong. ``run`` ends as its script does.
"""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import json
import os
import pathlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

from ..api import compile as compile_object
from ..backends.registry import backend_origin, list_backends
from ..bytecode.code import qualified_name
from ..decompiler import decompile
from ..errors import FramegraftError
from ..reasons import REASONS
from . import doctor, frames, program, show, targets
from .explain import explain
from .minify import minify


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="framegraft",
        description="Captures graphs from PyTorch programs as they are, and shows what was captured and what was not.",
        epilog="framegraft COMMAND --help tells more of a command.",
    )
    made.add_argument("--no-color", action="store_true", help="no colours, whatever the terminal can do")
    commands = made.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(name: str, run: Callable[[Any, Console], int], text: str, **more: Any) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".", **more)
        sub.set_defaults(run=run)
        return sub

    sub = command("run", program.command, "run a program with capture on, and write a report as one HTML page",
                  epilog="torch.compile is Framegraft's inside of the program, with the backend that the program names.",
                  usage="framegraft run [options] SCRIPT [arguments of the script]\n       framegraft run [options] -m MODULE [arguments]")
    program.arguments(sub)

    sub = command("explain", _explain, "call a function once and tell graphs, breaks, guards and costs",
                  epilog='Example: framegraft explain model.py:forward --args "torch.randn(4, 8)"')
    sub.add_argument("target", metavar="FILE:FUNCTION", help="or MODULE:FUNCTION; CLASS.METHOD of a module-level object works, too")
    sub.add_argument("--args", default="", metavar="EXPRESSIONS",
                     help="the arguments, as Python in the module's namespace, with torch at hand; name=value for keywords")
    sub.add_argument("--json", action="store_true", help="the same as JSON on stdout")

    sub = command("decompile", _decompile, "print the source of a function, made from its bytecode; nothing is run",
                  epilog="A module without :FUNCTION prints all functions at its top.")
    sub.add_argument("target", metavar="FILE|MODULE[:FUNCTION]")

    sub = command("minify", _minify, "shrink the graph that a backend fails on to a small script",
                  epilog="Recordings lie in repro folders (config.repro_directory) and where prepare_debug(frames=True) writes. "
                  "Exit code 1: the backend does what eager mode does.")
    sub.add_argument("recording", metavar="RECORDING", help="frame.pkl or its folder; a pickle, so only one that you trust")
    sub.add_argument("-b", "--backend", help="by default that of the recording, if it has a name")
    sub.add_argument("-o", "--output", default="framegraft_minified.py", metavar="FILE", help="the script (default: %(default)s)")
    sub.add_argument("--tolerance", type=float, default=1e-3, metavar="SHARE",
                     help="difference that is no failure, relative to the greatest value of an output (default: %(default)s)")

    sub = command("replay", _replay, "capture and run a recorded frame again, without its program, and tell as explain does",
                  epilog="Example: framegraft replay /tmp/framegraft_repros/forward_123_0")
    sub.add_argument("recording", metavar="RECORDING", help="frame.pkl or its folder; a pickle, so only one that you trust")
    sub.add_argument("-b", "--backend", help="run it with this backend instead")

    sub = command("backends", _backends, "list the compilers that backend= takes")
    sub.add_argument("--all", action="store_true", help="those for debugging, too")

    sub = command("reasons", _reasons, "the catalogue of reasons why graphs break: why, what to do, an example")
    sub.add_argument("id", nargs="*", metavar="REASON", help="only these")
    sub.add_argument("--json", action="store_true", help="the same as JSON on stdout")

    sub = command("doctor", _doctor, "look at versions, the native core and its calibration, and capture a small function")
    sub.add_argument("--json", action="store_true", help="the same as JSON on stdout")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code. ``arguments`` are those behind the program's name, by default ``sys.argv``'s."""
    wanted = parser().parse_args(arguments)
    piped = not sys.stdout.isatty()
    width = 118 if piped and "COLUMNS" not in os.environ else None  # where nobody says how wide, tables need not be narrow
    console = Console(no_color=True if wanted.no_color else None, highlight=False, soft_wrap=piped, width=width)
    try:
        return wanted.run(wanted, console)
    except targets.BadTarget as error:
        return _fail(str(error), 2)
    except FramegraftError as error:
        return _fail(f"{type(error).__name__}: {error}", 1)
    except BrokenPipeError:  # `framegraft reasons | head`
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        return 130


def _fail(text: str, code: int) -> int:
    Console(stderr=True, highlight=False, soft_wrap=True).print(Text.assemble(("framegraft: ", "bold red"), text))
    return code


def _print_json(data: Any) -> None:
    sys.stdout.write(json.dumps(data, indent=2) + "\n")


# --- the commands ----------------------------------------------------------------------------------------------------


def _explain(wanted: Any, console: Console) -> int:
    place, function = targets.split(wanted.target)
    if not function:
        raise targets.BadTarget(f"{wanted.target} names no function; write FILE:FUNCTION")
    try:
        with program.in_place_of_torch_compile():
            fn, scope = targets.load(place, function)
    except targets.LoadFailed as error:
        if not isinstance(error.__cause__, (SystemExit, type(None))):
            program.print_error(error.__cause__)
        return _fail(str(error), 1)
    try:
        args, kwargs = eval(f"(lambda *args, **kwargs: (args, kwargs))({wanted.args})", {"torch": sys.modules["torch"], **scope})
    except Exception as error:
        raise targets.BadTarget(f"--args {wanted.args!r}: {type(error).__name__}: {error}") from error
    try:
        found = explain(fn)(*args, **kwargs)
    except Exception as error:
        program.print_error(error)
        return _fail(f"{function} raised {type(error).__name__}", 1)
    if wanted.json:
        _print_json(found.as_dict())
    else:
        console.print(found)
    return 0


def _recording(text: str) -> frames.Recording:
    path = pathlib.Path(text)
    path = path / "frame.pkl" if path.is_dir() else path
    if not path.is_file():
        raise targets.BadTarget(f"there is no recording {path}")
    try:
        return frames.load(path)
    except FramegraftError as error:
        raise targets.BadTarget(str(error)) from error


def _minify(wanted: Any, console: Console) -> int:
    recorded = _recording(wanted.recording)
    backend = wanted.backend or recorded.told["backend"]
    if backend not in list_backends(exclude_tags=()):
        raise targets.BadTarget(f"no backend is called {backend!r}; --backend names another, framegraft.minify takes functions, too")
    program.check_output("--output", wanted.output)
    with Console(stderr=True).status("shrinking the graph"):
        found = recorded.call(lambda *args, **kwargs: minify(
            recorded.fn, *args, backend=backend, path=wanted.output, tolerance=wanted.tolerance, **kwargs))
    console.print(f"{found.operations_before} operations became {found.operations}; {found.failure}")
    console.print(f"python {found.path} shows it")
    return 0


def _replay(wanted: Any, console: Console) -> int:
    recorded = _recording(wanted.recording)
    if wanted.backend is not None:
        program.check_backend(wanted.backend)
    told = recorded.told
    console.print(Text.assemble(("recorded: ", "dim"), f"{told['function']} ({told['filename']}:{told['line']})"))
    if told["error"]:
        console.print(Text.assemble(("failed then: ", "dim"), told["error"]))
    try:
        if wanted.backend is None:
            console.print(recorded.call(explain(recorded.fn)))
        else:
            recorded.call(compile_object(recorded.fn, backend=wanted.backend))
            console.print(f"it runs with backend {wanted.backend}")
    except FramegraftError:
        raise
    except Exception as error:
        program.print_error(error)
        return _fail(f"{told['function']} raised {type(error).__name__}", 1)
    return 0


def _decompile(wanted: Any, console: Console) -> int:
    place, function = targets.split(wanted.target)
    if function:
        codes = [targets.find_code(place, function)]
    else:
        known = targets.functions_in(targets.code_of(place))
        codes = [code for name, code in known.items() if "." not in name and name.isidentifier()]
        if not codes:
            raise targets.BadTarget(f"{place} defines no functions")
    failed = 0
    for number, code in enumerate(codes):
        try:
            source = decompile(code)
        except FramegraftError as error:
            failed += 1
            _fail(f"{qualified_name(code)} cannot be decompiled: {error}", 1)
            continue
        if number:
            console.print()
        console.print(Syntax(source, "python", background_color="default") if console.is_terminal else Text(source), soft_wrap=True)
    return 1 if failed else 0


def _backends(wanted: Any, console: Console) -> int:
    made = show.table("name", "from", "what it does")
    for name in list_backends(exclude_tags=() if wanted.all else ("debug",)):
        made.add_row(name, *backend_origin(name))
    console.print(made)
    return 0


def _reasons(wanted: Any, console: Console) -> int:
    for name in wanted.id:
        if name not in REASONS:
            near = difflib.get_close_matches(name, REASONS, n=1)
            raise targets.BadTarget(f"there is no reason {name}" + (f"; did you mean {near[0]}?" if near else ""))
    chosen = [REASONS[name] for name in wanted.id or REASONS]
    if wanted.json:
        _print_json([dataclasses.asdict(reason) for reason in chosen])
        return 0
    for reason in chosen:
        console.print(Text(reason.id, "bold red"))
        console.print(Text.assemble(("  Why:  ", "dim"), reason.why))
        console.print(Text.assemble(("  Hint: ", "dim"), reason.hint))
        if reason.example:
            for line in reason.example.strip("\n").splitlines():
                console.print(Text(f"      {line}", "cyan"), soft_wrap=True)
        console.print()
    return 0


def _doctor(wanted: Any, console: Console) -> int:
    findings = doctor.examine()
    if wanted.json:
        _print_json([dataclasses.asdict(finding) for finding in findings])
    else:
        marks = {True: Text("ok", "green"), False: Text("no", "bold red"), None: Text("")}
        made = show.table("", "", "")
        made.show_header = False
        for finding in findings:
            made.add_row(marks[finding.ok], finding.topic, finding.what)
        console.print(made)
    return 1 if any(finding.ok is False for finding in findings) else 0
