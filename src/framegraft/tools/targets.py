"""What a command line names: ``FILE:FUNCTION`` or ``MODULE:FUNCTION``."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import pathlib
import runpy
import sys
from types import CodeType
from typing import Any

from ..bytecode.code import qualified_name
from ..bytecode.decode import decode


class BadTarget(Exception):
    """A file, module or function that is not there, in words for the user."""


def split(target: str) -> tuple[str, str]:
    """(file or module, function or "")."""
    place, colon, function = target.rpartition(":")
    if not colon or (len(place) == 1 and function.startswith("\\")):  # a drive letter is no file
        place, function = target, ""
    if not is_file(place) and not all(part.isidentifier() for part in place.split(".")):
        raise BadTarget(f"{target!r} names no file or module; write FILE:FUNCTION or MODULE:FUNCTION")
    return place, function


def existing_file(place: str) -> pathlib.Path:
    path = pathlib.Path(place)
    if not path.is_file():
        raise BadTarget(f"{place} is a folder; name a file in it" if path.is_dir() else f"there is no file {place}")
    return path


def syntax_error(place: str, error: SyntaxError) -> BadTarget:
    return BadTarget(f"{place}:{error.lineno}: {error.msg}")


class LoadFailed(Exception):
    """A module raised while it was run; ``__cause__`` is its error."""


def is_file(place: str) -> bool:
    return place.endswith(".py") or "/" in place


def code_of(place: str) -> CodeType:
    """The code of a file or module, which is not run. Packages that it lies in are imported."""
    if is_file(place):
        path = existing_file(place)
        try:
            return compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
        except SyntaxError as error:
            raise syntax_error(place, error) from error
    sys.path.insert(0, "")
    try:
        spec = importlib.util.find_spec(place)
    except (ImportError, ValueError) as error:
        raise BadTarget(f"module {place}: {error}") from error
    finally:
        sys.path.remove("")
    get_code = getattr(spec.loader, "get_code", None) if spec is not None else None
    code = get_code(place) if get_code is not None else None
    if code is None:
        raise BadTarget(f"there is no Python code of a module {place}" if spec is not None else f"there is no module {place}")
    return code


def functions_in(code: CodeType) -> dict[str, CodeType]:
    """Functions that a module's code defines, by qualified name, those in classes and functions included."""
    found: dict[str, CodeType] = {}
    decode(code)  # tells the qualified names of the code inside, where that does not know its own
    for value in code.co_consts:
        if isinstance(value, CodeType):
            if value.co_flags & 1:  # a function, no class body
                found.setdefault(qualified_name(value), value)
            found.update({k: v for k, v in functions_in(value).items() if k not in found})
    return found


def find_code(place: str, function: str) -> CodeType:
    known = functions_in(code_of(place))
    if function in known:
        return known[function]
    ends = [name for name in known if name.rpartition(".")[2] == function]
    if len(ends) == 1:
        return known[ends[0]]
    methods = [name for name in known if name.startswith(f"{function}.")]
    if methods:
        raise BadTarget(f"{function} of {place} is no function; name one inside of it: {', '.join(methods[:10])}")
    raise BadTarget(_not_there(place, function, list(known)))


def load(place: str, function: str) -> tuple[Any, dict[str, Any]]:
    """The function and the namespace of its module, which is run (under its own name, not as ``__main__``).

    Raises:
        BadTarget: there is no such file, module or function.
        LoadFailed: the module raised.
    """
    try:
        scope = _run_file(place) if is_file(place) else _imported(place)
    except (BadTarget, KeyboardInterrupt):
        raise
    except SystemExit as stop:
        raise LoadFailed(f"{place} ended with {stop!r} while it was loaded; "
                         "what only its program is to do belongs behind if __name__ == \"__main__\"") from stop
    except BaseException as error:
        raise LoadFailed(f"{place} raised {type(error).__name__} while it was loaded") from error
    found: Any = scope
    for part in function.split("."):
        found = found.get(part) if isinstance(found, dict) else getattr(found, part, None)
        if found is None:
            raise BadTarget(_not_there(place, function, [n for n, v in scope.items() if callable(v) and not n.startswith("_")]))
    if not callable(found):
        raise BadTarget(f"{function} of {place} is not something to call but of type {type(found).__name__}")
    return found, scope


def _run_file(place: str) -> dict[str, Any]:
    path = existing_file(place)
    code_of(place)  # a syntax error of the file itself
    sys.path.insert(0, str(path.parent.resolve()))
    saved, sys.argv = sys.argv, [place]
    try:
        return runpy.run_path(str(path), run_name=path.stem)
    finally:
        sys.argv = saved


def _imported(place: str) -> dict[str, Any]:
    sys.path.insert(0, "")
    try:
        return vars(importlib.import_module(place))
    except ModuleNotFoundError as error:
        if not f"{place}.".startswith(f"{error.name}."):
            raise  # it is one that the module wants
        raise BadTarget(f"module {place}: {error}") from error


def _not_there(place: str, function: str, known: list[str]) -> str:
    near = difflib.get_close_matches(function, known, n=3)
    offer = f"; did you mean {' or '.join(near)}?" if near else f"; it has {', '.join(sorted(known)[:10]) or 'none'}"
    return f"{place} has no function {function}{offer}"
